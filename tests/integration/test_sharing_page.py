#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/sharing.md does what it says: each example's file is accepted, each of its commands
changes a running client or GPU, each of its variables is granted, and what the page says
of lengths, defaults, rows and pictures is so."""
import contextlib
import json
import os
import re
import shlex
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from configured_server import Case, Configured  # noqa: E402
from private_server import BUILD, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402

UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


PAGE = read("docs/sharing.md")


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+) ?(\w+)", text).groups()
    return int(float(number) * UNITS[unit])


def table(heading):
    """The cells of the first table after these words, without its two lines of heading."""
    rows = PAGE.split(heading, 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0].split("\n")
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows[2:]]


def examples():
    """(title, file or "", lines of commands) of each worked example."""
    for part in PAGE.split("\n## Worked examples\n", 1)[1].split("\n### ")[1:]:
        title, body = part.split("\n", 1)
        files = re.findall(r"^```yaml\n(.*?)^```$", body, re.M | re.S)
        lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", body, re.M | re.S) for line in block.splitlines()]
        yield title, files, lines


class SharingPage(Case):
    def command(self, it, line, environment):
        words = shlex.split(line)
        if words[0] == "export":
            name, value = words[1].split("=", 1)
            environment[name] = value
            done = it.server.info("--json", **environment)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
            if name == "GPUSHARE_PROFILE":  # info shows the profile's limits, not its name: so an unknown name must be refused
                environment = {**environment, name: "no-such"}
                done = it.server.info("--json", **environment)
                self.assertNotEqual(done.returncode, 0, line)
                self.assertIn("no-such", done.stdout + done.stderr)
            else:
                self.assertIn(name, done.stdout, f"{line}: info does not name the variable")
            return
        self.assertEqual(words[0], "gpusharectl", line)
        done = it.server.ctl(*words[1:])
        self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")

    @CHANGES
    def test_the_examples_run(self):
        seen = {"file": 0, "command": 0, "variable": 0}
        for title, files, lines in examples():
            with self.subTest(title):
                self.assertLessEqual(len(files), 1)
                with self.configured(files[0] if files else "") as it, \
                        contextlib.closing(RawClient(it.server.client)) as client:
                    self.assertEqual(client.attach()["client"], 1, "the examples say 1")
                    mode = re.search(r"mode: (\w+)", "".join(files))
                    in_force = self.schedule(it)["mode"]
                    self.assertEqual(in_force, mode.group(1) if mode else "concurrent")
                    environment = {}
                    for line in lines:
                        self.command(it, line, environment)
                        seen["variable" if line.startswith("export") else "command"] += 1
                    seen["file"] += len(files)
        self.assertGreaterEqual(min(seen.values()), 4, seen)

    def test_all_fenced_text_is_in_an_example(self):
        before = PAGE.split("\n## Worked examples\n", 1)[0]
        self.assertNotIn("```", before)

    def schedule(self, it):
        done = it.server.ctl("--json", "get", "gpu", "0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["gpus"][0]["schedule"]

    @CHANGES
    def test_defaults_ranges_and_classes_are_the_servers(self):
        with self.configured("") as it:
            was = self.schedule(it)
            for name, default, bounds, _ in table("\n## Leases\n"):
                least, most = bounds.split(" to ")
                for value in (default, least, most):
                    word = f"{name}={value.replace(' ', '')}"
                    done = it.server.ctl("set", "gpu", "0", word)
                    self.assertEqual(done.returncode, 0, f"{word}: {done.stdout}{done.stderr}")
                beyond = {"%": "0.5%"}.get(least[-1], "4ms")
                done = it.server.ctl("set", "gpu", "0", f"{name}={beyond}")
                self.assertEqual(done.returncode, 1, f"{name}={beyond} is outside of {bounds}")
                done = it.server.ctl("set", "gpu", "0", f"{name}={default.replace(' ', '')}")
                self.assertEqual(self.schedule(it), was, f"{default} is not the default of {name}")
            for name, number, length in table("| `lease` | number | length |"[2:]):
                answers = []
                for value in (name, number, length.replace(" ", "")):
                    done = it.server.ctl("set", "gpu", "0", f"lease={value}")
                    self.assertEqual(done.returncode, 0, f"lease={value}: {done.stdout}{done.stderr}")
                    answers.append(self.schedule(it)["lease_seconds"])
                self.assertEqual(answers, [nanoseconds(length) / 1e9] * 3)

    @CHANGES
    def test_every_mode_can_be_had(self):
        modes = [row[0].split("`")[0] for row in table("\n## Which mode\n")]
        self.assertEqual(modes, ["concurrent", "strict", "fair", "turns"])
        with self.configured("") as it:
            for mode in modes:
                done = it.server.ctl("set", "gpu", "0", f"mode={mode}")
                self.assertEqual(done.returncode, 0, f"{mode}: {done.stdout}{done.stderr}")
                self.assertEqual(self.schedule(it)["mode"], mode)

    def test_rows_and_pictures_are_there(self):
        rows = re.findall(r"`([a-z0-9]+_[a-z0-9_]*(?:points|error|ratio|loss|ms|p99|bytes))`", PAGE)
        self.assertTrue(rows)
        bench = json.loads(run(os.path.join(BUILD, "tests/programs/bench/bench"), "--list").stdout)
        self.assertLessEqual(set(rows), {row["name"] for row in bench})
        self.assertEqual(len(re.findall(r"^!\[.+\]\(pictures/\w+\.svg\)$", PAGE, re.M)), 5)
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE):
            self.assertTrue(os.path.exists(os.path.join(ROOT, "docs", path)), path)


def backticked(cell):
    return re.findall(r"`([^`]+)`", cell)


ROWS = {there: here for there, here in (row.strip("|").rsplit("|", 1) for row in re.split(
    "\n\\|", PAGE.split("\n## Coming from another way\n", 1)[1].split("\n## ", 1)[0].rstrip())[3:])}
# For a server with two devices; CUDA_VISIBLE_DEVICES names the second one.
MPS = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=64M",
       "CUDA_MPS_CLIENT_PRIORITY": "1", "CUDA_VISIBLE_DEVICES": "1"}


class ComingFromAnotherWay(Case):
    """Each row of the section "Coming from another way" is tried as written: the server grants what it says."""

    def info(self, server, **variables):
        done = server.info("--json", **variables)
        self.assertEqual(done.returncode, 0, f"{variables}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def file(self, text):
        """The grant of a client that asks for nothing, and the mode of GPU 0, under this file."""
        if not hasattr(self, "one"):
            self.one = Configured(self, "")
            self.addCleanup(self.one.server.stop_well)
            self.whole = self.info(self.one.server)
        self.one.write(text)
        done = self.one.reload()
        self.assertEqual(done.returncode, 0, f"{text}: {done.stdout}")
        done = self.one.server.ctl("--json", "get", "gpu", "0")
        return self.info(self.one.server)["limits"], json.loads(done.stdout)["gpus"][0]["schedule"]

    def variable(self, words):
        """The grant of a client that sets this variable to this value."""
        name, value = words.split("=", 1)
        limits = self.info(self.one.server, **{name: value})["limits"]
        self.assertIn(f'"{name}"', json.dumps(limits))
        return limits

    def test_mps_variables_as_they_are(self):
        there = next(row for row in ROWS if "CUDA_MPS_CLIENT_PRIORITY" in row)
        self.assertEqual(backticked(there), list(MPS))
        self.assertEqual(ROWS[there].strip(), "as they are, for a client, and for the server as default and ceiling of all")
        for of_server in (False, True):
            with Server(env={"SOFTGPU_DEVICES": "2", **(MPS if of_server else {})}) as server:
                other = {**MPS, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=128M",
                         "CUDA_MPS_CLIENT_PRIORITY": "0", "CUDA_VISIBLE_DEVICES": "0"}
                for told in [self.info(server), self.info(server, **other)] if of_server else [self.info(server, **MPS)]:
                    limits = told["limits"]
                    self.assertEqual(limits["threads"]["limit"]["granted_percent"], 25)
                    self.assertEqual(limits["threads"]["multiprocessors"], 32)
                    self.assertEqual(limits["memory"]["limit"]["granted_bytes"], 64 << 20)
                    self.assertEqual(limits["priority"]["granted"], 1)
                    self.assertEqual(told["visible_devices"], 1)
                    self.assertTrue(told["device"]["uuid"].endswith("1"), told)

    @CHANGES
    def test_every_other_row(self):
        _, plain = self.file("")
        whole = self.whole["device"]["memory_bytes"]
        tested = set()

        def row(words):
            there = [one for one in ROWS if words in one]
            self.assertEqual(len(there), 1, words)
            tested.add(there[0])
            return backticked(ROWS[there[0]])

        threads, = row("set_default_active_thread_percentage 25")
        self.assertEqual(self.file(threads)[0]["threads"]["limit"], {"asked_percent": None, "asked_by": None, "granted_percent": 25})
        memory, = row("set_default_device_pinned_mem_limit 0 4G")
        self.assertEqual(self.file(memory)[0]["memory"]["limit"]["granted_bytes"], 4 << 30)

        self.assertFalse(row("NVIDIA's device plugin"))
        block = re.search(r"^```yaml\n(sharing:\n.*?)^```$", read("docs/configuration.md"), re.M | re.S).group(1)
        self.assertIn("replicas: 4", block)
        limits, schedule = self.file(block)
        self.assertEqual((limits["threads"]["limit"]["granted_percent"], limits["memory"]["limit"]["granted_bytes"], schedule),
                         (25, whole // 4, plain))
        limits, schedule = self.file(block.replace("mps:", "timeSlicing:"))
        self.assertEqual((limits["threads"]["limit"]["granted_percent"], limits["memory"]["limit"]["granted_bytes"]), (100, whole))
        self.assertEqual(schedule, {**plain, "mode": "fair", "time_enforced": True})

        slices, = row("nvidia-smi compute-policy --set-timeslice=short")
        for name, _, length in table("| `lease` | number | length |"[2:]):
            schedule = self.file(slices.replace("short", name))[1]
            self.assertEqual((schedule["mode"], schedule["lease_seconds"]), ("fair", nanoseconds(length) / 1e9))

        fraction, in_file, mebibytes = row('Run:ai: `gpu-fraction: "0.5"`; `gpu-memory: "4096"` (MiB)')
        for limits in (self.file("clients: {%s}" % in_file)[0], self.file("")[0] and self.variable(fraction)):
            self.assertEqual((limits["memory"]["limit"]["granted_bytes"], limits["time"]["request"]["granted_percent"],
                              limits["time"]["limit"]["granted_percent"]), (whole // 2, 50, 100))
        self.assertEqual(self.variable(mebibytes)["memory"]["limit"]["granted_bytes"], 4096 << 20)

        mebibytes, share = row("nvidia.com/gpumem-percentage: 25")
        self.assertEqual(self.variable(mebibytes)["memory"]["limit"]["granted_bytes"], 3000 << 20)
        self.assertEqual(self.variable(share)["memory"]["limit"]["granted_bytes"], whole // 4)

        threads, time, mode = row("nvidia.com/gpucores: 30")
        limits = self.variable(threads)["threads"]
        self.assertEqual((limits["limit"]["granted_percent"], limits["multiprocessors"]), (30, 36))  # four groups of 8 and that of 4, of 39.6
        self.file("gpus: [{gpu: 0, mode: %s}]" % mode)
        limits = self.variable(time)["time"]
        self.assertEqual((limits["limit"]["granted_percent"], limits["mode"], limits["enforced"]), (30, "fair", True))
        self.assertEqual({one for one in ROWS if one not in tested}, {one for one in ROWS if "CUDA_MPS_CLIENT_PRIORITY" in one})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
