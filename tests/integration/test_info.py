#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare info against a private server: each limit, the variable that asked for it and what
was granted; malformed values are refused by name."""
import contextlib
import json
import os
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import ENV, GPUSHARE, SECONDS, run  # noqa: E402
from server_case import CHANGES, WithServer  # noqa: E402


class Info(WithServer):
    def info(self, *arguments, **env):
        return self.server.info(*arguments, **env)

    def test_nothing_asked(self):
        answer = json.loads(self.info("--json").stdout)
        json_check.check("gpushare-info", answer)
        limits = answer["limits"]
        self.assertEqual([limits[name]["limit"]["asked_by"] for name in ("threads", "time", "memory", "host_memory")], [None] * 4)
        self.assertIsNone(limits["priority"]["asked_by"])
        self.assertEqual((answer["profiles"], answer["more_owners"]), ([], False))
        self.assertEqual([(owner["name"], owner["scheduled"], owner["time_limit_percent"]) for owner in answer["owners"]],
                         [(f"user {os.getuid()}", True, None)])
        self.assertIn("profiles that hold for this client: none\n", self.info().stdout)
        with self.attached() as (_, told):
            self.assertEqual((limits["memory"]["limit"]["granted_bytes"], limits["host_memory"]["limit"]["granted_bytes"],
                              limits["streams"], limits["threads"]["multiprocessors"]),
                             (told["memory_limit"], told["host_memory_limit"], told["streams"], told["multiprocessors"]))

    def test_info_counts_as_one_client_and_without_attaching_as_none(self):
        def served():
            return json.loads(self.ctl("--json", "status").stdout)["clients_served"]
        before = served()
        self.assertEqual(self.info().returncode, 0)
        self.assertEqual(served(), before + 1)
        self.assertEqual(self.info(GPUSHARE_PROFILE="none-of-this-name").returncode, 1)
        self.assertEqual(served(), before + 1)

    def test_info_leaves_no_trail_in_the_log(self):
        mark = len(self.server.text())
        self.assertEqual(self.info().returncode, 0)
        end = time.monotonic() + SECONDS
        while json.loads(self.ctl("--json", "clients").stdout)["clients"]:
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.server.text()[mark:], "")

    def test_each_limit_and_the_variable_that_asked(self):
        env = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT": "0=64M",
               "GPUSHARE_PINNED_HOST_MEM_LIMIT": "1M", "GPUSHARE_CLIENT_PRIORITY": "1", "CUDA_VISIBLE_DEVICES": "0",
               "GPUSHARE_KERNEL_TIME_LIMIT": "1500ms"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        limits = answer["limits"]
        self.assertEqual(limits["threads"]["limit"], {"asked_percent": 25, "asked_by": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                                      "granted_percent": 25})
        # Rounded down to whole SM groups of the device.
        device = answer["device"]
        sm_group = device["partition_multiprocessors"]
        self.assertEqual(limits["threads"]["multiprocessors"], device["multiprocessors"] // 4 // sm_group * sm_group)
        self.assertEqual(limits["memory"]["limit"], {"asked_bytes": 64 << 20, "asked_by": "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
                                                     "granted_bytes": 64 << 20})
        self.assertEqual(limits["host_memory"]["limit"], {"asked_bytes": 1 << 20, "asked_by": "GPUSHARE_PINNED_HOST_MEM_LIMIT",
                                                          "granted_bytes": 1 << 20})
        self.assertEqual(limits["priority"], {"asked": 1, "asked_by": "GPUSHARE_CLIENT_PRIORITY", "granted": 1})
        self.assertEqual(limits["kernel_time_limit"], {"asked_seconds": 1.5, "asked_by": "GPUSHARE_KERNEL_TIME_LIMIT",
                                                       "granted_seconds": 1.5})
        self.assertEqual(answer["visible_by"], "CUDA_VISIBLE_DEVICES")
        text = self.info(**env).stdout
        for words in ("25 %", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "64 MiB", "none yet (one address space)"):
            self.assertIn(words, text)

    def test_limits_by_the_names_of_the_dialect(self):
        env = {"GPUSHARE_THREADS_LIMIT": "25%", "GPUSHARE_MEMORY_LIMIT": "0.5", "GPUSHARE_HOST_MEMORY_LIMIT": "1M",
               "GPUSHARE_FRACTION": "0.75"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        limits, half = answer["limits"], answer["device"]["memory_bytes"] // 2
        self.assertEqual(limits["threads"]["limit"], {"asked_percent": 25, "asked_by": "GPUSHARE_THREADS_LIMIT", "granted_percent": 25})
        self.assertEqual(limits["memory"]["limit"], {"asked_bytes": half, "asked_by": "GPUSHARE_MEMORY_LIMIT", "granted_bytes": half})
        self.assertEqual(limits["host_memory"]["limit"],
                         {"asked_bytes": 1 << 20, "asked_by": "GPUSHARE_HOST_MEMORY_LIMIT", "granted_bytes": 1 << 20})
        self.assertIn("GPUSHARE_MEMORY_REQUEST requests 64 MiB of device 0, and GPUSHARE_MEMORY_LIMIT limits it to 32 MiB",
                      self.info(GPUSHARE_MEMORY_REQUEST="64M", GPUSHARE_MEMORY_LIMIT="32M").stderr)

    def test_a_request_of_threads_is_shown_in_multiprocessors(self):
        for share in ("1%", "7%", "25%", "50%", "97%", "100%"):
            with self.subTest(share):
                answer = json.loads(self.info("--json", GPUSHARE_THREADS_REQUEST=share, GPUSHARE_THREADS_LIMIT=share).stdout)
                json_check.check("gpushare-info", answer)
                threads, sm_group = answer["limits"]["threads"], answer["device"]["partition_multiprocessors"]
                # A limit is rounded by the server to SM groups as a request is, and may have the device's last, smaller one.
                own = threads["multiprocessors"] // sm_group * sm_group
                self.assertEqual(threads["own_multiprocessors"], own)
                text = self.info(GPUSHARE_THREADS_REQUEST=share).stdout
                self.assertRegex(text, rf"threads.request +{share[:-1]} % +GPUSHARE_THREADS_REQUEST +{own} of {answer['device']['multiprocessors']} SMs\n")
        self.assertEqual(json.loads(self.info("--json").stdout)["limits"]["threads"]["own_multiprocessors"], 0)

    @CHANGES
    def test_requests_and_shares_of_time(self):
        env = {"GPUSHARE_THREADS_REQUEST": "25%", "GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "50", "GPUSHARE_FRACTION": "0.25",
               "GPUSHARE_TIME_LIMIT": "60%"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        limits = answer["limits"]
        self.assertEqual(limits["threads"]["request"], {"asked_percent": 25, "asked_by": "GPUSHARE_THREADS_REQUEST",
                                                        "granted_percent": 25})
        self.assertEqual(limits["time"], {"request": {"asked_percent": 25, "asked_by": "GPUSHARE_FRACTION", "granted_percent": 25},
                                          "limit": {"asked_percent": 60, "asked_by": "GPUSHARE_TIME_LIMIT", "granted_percent": 60},
                                          "mode": "concurrent", "enforced": False})
        self.assertEqual(limits["memory"]["limit"]["asked_by"], "GPUSHARE_FRACTION")
        self.assertEqual(limits["memory"]["limit"]["granted_bytes"], answer["device"]["memory_bytes"] // 4)
        self.assertIn("shared in mode concurrent: shares of time have no effect in this mode", self.info(**env).stdout)
        env = {"GPUSHARE_MEMORY_REQUEST": "25%", "GPUSHARE_HOST_MEMORY_REQUEST": "1M"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        quarter = answer["device"]["memory_bytes"] // 4
        self.assertEqual(answer["limits"]["memory"]["request"],
                         {"asked_bytes": quarter, "asked_by": "GPUSHARE_MEMORY_REQUEST", "granted_bytes": quarter})
        self.assertEqual(answer["limits"]["host_memory"]["request"],
                         {"asked_bytes": 1 << 20, "asked_by": "GPUSHARE_HOST_MEMORY_REQUEST", "granted_bytes": 1 << 20})
        self.assertRegex(self.info(**env).stdout, r"host_memory.request +1 MiB +GPUSHARE_HOST_MEMORY_REQUEST +1 MiB")
        self.assertEqual(self.ctl("set", "gpu:0", "mode=strict").returncode, 0)
        self.assertIn("shared in mode strict\n", self.info(**env).stdout)
        self.assertTrue(json.loads(self.info("--json", **env).stdout)["limits"]["time"]["enforced"])
        self.assertEqual(self.ctl("set", "gpu", "0", "mode=concurrent").returncode, 0)

    def test_a_limit_of_nothing_is_shown_with_its_variable(self):
        for name, value, limit in (("GPUSHARE_HOST_MEMORY_LIMIT", "0", "host_memory"),
                                   ("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=0", "memory")):
            with self.subTest(name):
                limits = json.loads(self.info("--json", **{name: value}).stdout)["limits"]
                self.assertEqual(limits[limit]["limit"], {"asked_bytes": 0, "asked_by": name, "granted_bytes": 0})
        # The list counts by its entry for this device, whatever else is asked for.
        uuid = json.loads(self.info("--json").stdout)["device"]["uuid"]
        asked = {"CUDA_VISIBLE_DEVICES": "0", "GPUSHARE_MEMORY_LIMIT": "32M"}
        for entry, by in ((f"{uuid}=64M", "GPUSHARE_MEMORY_LIMIT"), ("0=16M", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT")):
            limits = json.loads(self.info("--json", GPUSHARE_PINNED_DEVICE_MEM_LIMIT=entry, **asked).stdout)["limits"]
            self.assertEqual(limits["memory"]["limit"]["asked_by"], by)

    def test_malformed_values(self):
        for name, value, form in (("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "200", "up to 100"),
                                  ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "1G", "0=1G,1=512MB"),
                                  ("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "7=1G", "does not exist"),
                                  ("GPUSHARE_CLIENT_PRIORITY", "high", "0 (normal)"),
                                  ("CUDA_VISIBLE_DEVICES", "all", "device indices")):
            with self.subTest(name):
                result = self.info("--json", **{name: value})
                self.assertEqual(result.returncode, 1, result.stderr)
                answer = json.loads(result.stdout)
                json_check.check("admin-error", answer)
                self.assertEqual(answer["error"], "invalid_environment")
                self.assertIn(name, answer["text"])
                self.assertIn(form, answer["text"])

    def test_a_wish_without_effect_causes_a_warning(self):
        def warnings(**env):
            result = self.info(**env)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr.splitlines()
        fraction = "gpushare: warning: GPUSHARE_FRACTION asks for a share of time, which is not enforced: GPU 0 is shared in mode concurrent"
        slip = "gpushare: warning: GPUSHARE_MEMROY_LIMIT is set, and nothing of gpushare reads it: it should perhaps be GPUSHARE_MEMORY_LIMIT"
        self.assertEqual(warnings(), [])
        (line,) = warnings(GPUSHARE_FRACTION="0.5")
        self.assertTrue(line.startswith(fraction), line)
        self.assertEqual(warnings(GPUSHARE_MEMROY_LIMIT="1G"), [slip])
        self.assertEqual(len(warnings(GPUSHARE_MEMROY_LIMIT="1G", GPUSHARE_FRACTION="0.5", GPUSHARE_WARNINGS="1")), 2)
        self.assertEqual(warnings(GPUSHARE_MEMROY_LIMIT="1G", GPUSHARE_FRACTION="0.5", GPUSHARE_WARNINGS="0"), [])
        self.assertIn("GPUSHARE_WARNINGS=off: must be 1", self.info(GPUSHARE_WARNINGS="off").stderr)

    def test_a_warning_to_a_closed_output_harms_nothing(self):
        def closed(*fds):
            return {"preexec_fn": lambda: [os.close(fd) for fd in fds], "close_fds": False}

        def connects(**how):
            done = subprocess.run([GPUSHARE, "--socket", self.server.client, "info"], timeout=SECONDS, check=False, stdout=subprocess.PIPE,
                                  env={**ENV, "GPUSHARE_FRACTION": "0.5", "GPUSHARE_MEMROY_LIMIT": "1G"}, **how)
            self.assertEqual(done.returncode, 0, how)
            self.assertIn(b"GPUSHARE_FRACTION", done.stdout)
        # Otherwise a file that the library opens, or a descriptor that it receives, would become standard error.
        connects(**closed(2))
        connects(**closed(0, 2))
        reading, broken = os.pipe()
        os.close(reading)
        connects(stderr=broken, restore_signals=True)
        os.close(broken)
        reading, full = os.pipe2(os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(full, bytes(4096))
        os.set_blocking(full, True)
        connects(stderr=full)
        os.close(reading)
        os.close(full)

    @CHANGES
    def test_a_wish_with_effect_causes_no_warning(self):
        self.assertEqual(self.ctl("set", "gpu", "0", "mode=fair").returncode, 0)
        self.assertEqual(self.info(GPUSHARE_FRACTION="0.5").stderr, "")
        self.assertEqual(self.ctl("set", "gpu", "0", "mode=concurrent").returncode, 0)

    def test_no_visible_device(self):
        for value in ("", "none", "-1,0"):
            result = self.info(CUDA_VISIBLE_DEVICES=value)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("CUDA_VISIBLE_DEVICES leaves this process no device: it is empty, or says none;", result.stderr)
        self.assertIn("its list ends at the first that the server lacks", self.info(CUDA_VISIBLE_DEVICES="7").stderr)

    def test_the_environments_socket(self):
        result = run(GPUSHARE, "info", GPUSHARE_SOCKET=self.server.client)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
