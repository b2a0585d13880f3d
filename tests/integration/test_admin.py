#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The admin socket and gpusharectl against a private server: each command, who may use it, and
how it looks on a terminal. The table of clients is held against what a client of the test's
own was told."""
import contextlib
import copy
import errno
import json
import os
import pty
import pwd
import re
import socket
import stat
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import BUILD, ENV, GPUSHARECTL, SECONDS, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES, NOBODY, WithServer  # noqa: E402


def name_of(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


# This user in the words of a command, and in those of an answer.
USER = name_of(os.getuid()) or str(os.getuid())
NAMED = f"{os.getuid()}, user {USER}" if name_of(os.getuid()) else str(os.getuid())


class Commands(WithServer):
    def test_ping(self):
        self.assertEqual(self.ctl("ping").stdout, "gpushared answers\n")
        self.json("ping")

    def test_version(self):
        answer = self.json("version")
        own = run(GPUSHARECTL, "--version").stdout
        self.assertEqual(own, f"gpusharectl {answer['client_version']}\n")
        self.assertIn(f"gpushared {answer['server_version']} (protocol {answer['protocol_version']})", self.ctl("version").stdout)

    def test_status(self):
        answer = self.json("status")
        self.assertEqual(answer["driver"]["name"], "softgpu")
        self.assertEqual(answer["pid"], self.server.process.pid)
        self.assertEqual(answer["kernel_isolation"], "none")
        self.assertEqual(answer["devices"][0]["state"], "ready")
        worker = answer["devices"][0]["worker_pid"]
        with open(f"/proc/{worker}/stat", encoding="utf-8") as file:
            self.assertEqual(int(file.read().rsplit(")", 1)[1].split()[1]), self.server.process.pid, "its parent")
        text = self.ctl("status", "--wide").stdout
        self.assertIn("driver: softgpu (", text)
        self.assertIn("isolation between clients' kernels: none yet (one address space)", text)
        self.assertIn("SHARED QUEUES", text)
        self.assertIn(answer["devices"][0]["name"], text)

    def test_clients_show_what_the_client_was_told(self):
        with self.attached(name="asks for little", memory_limit=64 << 20, host_memory_limit=1 << 20,
                           threads_limit=1250, priority=1) as (client, told), \
                self.attached(name="asks for nothing") as (_, other):
            memory = client.ask("memory_alloc", count=5 << 20)
            self.assertGreaterEqual(memory["count"], 5 << 20)
            used = client.ask("memory_query")
            row, plain = self.client_row(told["client"]), self.client_row(other["client"])
            self.assertEqual((row["name"], row["pid"], row["uid"], row["state"]),
                             ("asks for little", os.getpid(), os.getuid(), "attached"))
            self.assertEqual(row["memory"], {"request": {"asked_bytes": None, "granted_bytes": 0}, "used_bytes": used["used"],
                                             "limit": {"asked_bytes": 64 << 20, "granted_bytes": told["memory_limit"]}})
            self.assertEqual(row["host_memory"]["limit"], {"asked_bytes": 1 << 20, "granted_bytes": 1 << 20})
            self.assertEqual(row["threads"], {"request": {"asked_percent": None, "granted_percent": 0},
                                              "limit": {"asked_percent": 12.5, "granted_percent": 12.5},
                                              "multiprocessors": told["multiprocessors"],
                                              "partitioned": told["partitioned"] == 1})
            self.assertEqual(row["priority"], 1)
            self.assertEqual(plain["memory"]["limit"], {"asked_bytes": None, "granted_bytes": other["memory_limit"]})
            self.assertEqual(plain["time"], {"request": {"asked_percent": None, "granted_percent": 0},
                                             "limit": {"asked_percent": None, "granted_percent": 100}})
            self.assertEqual(row["launches"], 0)
            self.assertIsNotNone(row["gpu_time_seconds"])
            table = self.ctl("clients", "--wide").stdout
            self.assertIn("asks for little", table)
            self.assertIn("12.5 %", table)
            for resource in ("THREADS", "TIME", "MEMORY", "HOST"):
                self.assertIn(f"{resource} GRANTED", table)
            self.assertIn("64 MiB", table)
            self.assertGreaterEqual(self.json("status")["devices"][0]["memory_used_bytes"], used["used"])

    def test_a_client_that_has_only_connected(self):
        client = RawClient(self.server.client)
        try:
            client.ask("hello", major=client.schema.major)
            rows = [row for row in self.json("clients")["clients"] if row["state"] == "greeted"]
            self.assertTrue(rows)
            self.assertIsNone(rows[0]["memory"])
        finally:
            client.close()

    def test_names_cannot_reach_the_terminal(self):
        with self.attached(name="a\x9b31mb") as (_, _told):
            for words in (("clients",), ("clients", "--wide")):
                table = self.ctl(*words).stdout
                self.assertNotIn("\x9b", table)
                self.assertIn("a??31mb", table)  # two bytes

    @CHANGES
    def test_kill(self):
        with self.attached(name="victim") as (client, told):
            self.assertEqual(self.json("kill", str(told["client"]))["client"], told["client"])
            name, _, values = client.receive()
            self.assertEqual((name, values["error"]), ("ended", client.schema.errors["killed"]))
            self.assertIsNone(client.receive())
        with self.attached(name="victim") as (client, told):
            result = self.ctl("kill", str(told["client"]))
            whom = f"client {told['client']} 'victim' (pid {os.getpid()}, uid {NAMED})"
            self.assertEqual((result.returncode, result.stdout), (0, f"{whom}: connection ended\n"))
        self.assertIn("killed", self.server.text())

    @CHANGES
    def test_kill_by_name(self):
        with self.attached(name="train 7") as (one, first), self.attached(name="train 7") as (two, second), self.attached(name="12") as (odd, third):
            numbers = [told["client"] for told in (first, second)]
            # Several have the name: nobody is ended, and the candidates are there with what tells them apart.
            refused = self.json("kill", "train 7", schema="admin-error", status=1)
            self.assertEqual(refused["error"], "invalid_value")
            listed = re.findall(rf"(\d+) \(pid {os.getpid()}, uid {os.getuid()}\)", refused["text"])
            self.assertEqual([int(number) for number in listed], numbers, refused["text"])
            self.assertIn("--all", refused["text"])
            for client in (one, two, odd):
                self.assertEqual(client.ask("memory_query")["used"], 0, "the client is still served")
            # A number is a number, unless it is said to be a name.
            self.assertEqual(self.json("kill", "name", "12")["client"], third["client"])
            self.assertEqual(odd.receive()[0], "ended")
            answer = self.json("kill", "--all", "train 7")
            self.assertEqual([(row["client"], row["name"], row["pid"], row["uid"]) for row in answer["clients"]],
                             [(number, "train 7", os.getpid(), os.getuid()) for number in numbers])
            for client in (one, two):
                self.assertEqual(client.receive()[0], "ended")
        with self.attached(name="12") as (_, told), self.attached(name="other") as (other, _):
            result = self.ctl("kill", "name:12")
            self.assertEqual((result.returncode, result.stdout),
                             (0, f"client {told['client']} '12' (pid {os.getpid()}, uid {NAMED}): connection ended\n"))
            self.assertEqual(other.ask("memory_query")["used"], 0, "another name is left alone")
        refused = self.json("kill", "nobody of this name", schema="admin-error", status=1)
        self.assertEqual(refused["error"], "not_found")
        self.assertIn('"nobody of this name"', refused["text"])
        for words in (("name",), ("one", "two"), ("--user", "0", "one"), ("--all", "7")):
            self.assertEqual(self.ctl("kill", *words).returncode, 2, words)

    @CHANGES
    def test_kill_of_a_users_clients(self):
        with self.attached(name="one") as (one, first), self.attached(name="two") as (two, second):
            # Nobody of this number is there.
            refused = self.json("kill", "user", "4294967000", schema="admin-error", status=1)
            self.assertEqual(refused["error"], "not_found")
            refused = self.json("kill", "--force", "user", str(os.getuid()), schema="admin-error", status=1)
            self.assertIn("for one client", refused["text"])
            self.assertEqual(one.ask("memory_query")["used"], 0, "the client is still served")
            answer = self.json("kill", f"user:{os.getuid()}")
            self.assertEqual((answer["client"], answer["uid"]), (None, os.getuid()))
            ended = {row["client"]: (row["name"], row["pid"], row["uid"]) for row in answer["clients"]}
            for client, told, name in ((one, first, "one"), (two, second, "two")):
                self.assertEqual(ended[told["client"]], (name, os.getpid(), os.getuid()))
                kind, _, values = client.receive()
                self.assertEqual((kind, values["error"]), ("ended", client.schema.errors["killed"]))
        with self.attached(name="three") as (_, told):
            result = self.ctl("kill", "user", NAMED.split(", user ")[-1])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"client {told['client']} 'three' (pid {os.getpid()}, uid {NAMED}): connection ended\n", result.stdout)
        self.assertIn("or user and a uid or name", self.ctl("kill", "group", "0").stderr)

    @CHANGES
    def test_limits_of_a_running_client(self):
        with self.attached(name="runs", memory_limit=64 << 20, threads_limit=5000) as (client, told):
            number = str(told["client"])
            before = self.json("get", number)["clients"][0]
            self.assertEqual((before["threads"]["limit"]["asked_percent"], before["threads"]["multiprocessors"]),
                             (50, told["multiprocessors"]))
            self.assertEqual(before["memory"]["limit"], {"asked_bytes": 64 << 20, "granted_bytes": 64 << 20})
            client.ask("memory_alloc", count=32 << 20)
            self.assertIsNone(before["kernel_time_limit_seconds"])
            row = self.json("set", number, "threads=25%", "memory=16M", "host_memory=1M", "priority=1",
                            "kernel_time_limit=1500ms")["clients"][0]
            self.assertEqual((row["kernel_time_limit_seconds"], row["kernel_time_limited_by"]), (1.5, "administrator"))
            self.assertIn(" 1500ms  administrator", self.ctl("get", number).stdout)
            self.assertLess(row["threads"]["multiprocessors"], told["multiprocessors"])
            self.assertEqual(row["threads"]["limit"], {"asked_percent": 50, "granted_percent": 25})
            self.assertEqual((row["memory"]["limit"]["granted_bytes"], row["memory"]["used_bytes"]), (16 << 20, 32 << 20))
            limits = client.ask("limits_query")
            self.assertEqual((limits["memory_limit"], limits["host_memory_limit"], limits["priority"]), (16 << 20, 1 << 20, 1))
            self.assertEqual(limits["multiprocessors"], row["threads"]["multiprocessors"])
            with self.assertRaisesRegex(RuntimeError, "limit", msg="below what is in use nothing new is given"):
                client.ask("memory_alloc", count=4 << 20)
            self.assertEqual(self.client_row(told["client"])["threads"]["limit"]["granted_percent"], 25)
            self.json("set", f"user:{USER}", "threads=1.0", "memory=64M")
            client.ask("memory_alloc", count=16 << 20)
            self.assertIn(" 100 %", self.ctl("get", f"client:{number}").stdout)
            row = self.json("set", number, "kernel_time_limit=0")["clients"][0]
            self.assertEqual((row["kernel_time_limit_seconds"], row["kernel_time_limited_by"]), (None, None))
            refused = self.json("set", number, "kernel_time_limit=99ms", schema="admin-error", status=1)
            self.assertIn("a time from 100ms to 24h (units: ns, us, ms, s, min, h), like 30s or 5min, or 0 for none", refused["text"])
            window = told["window_bytes"]
            refused = self.json("set", number, f"memory={window * 2}", "priority=0", schema="admin-error", status=1)
            self.assertIn(str(window * 2), refused["text"])
            self.assertEqual(client.ask("limits_query")["priority"], 1, "refused whole")
        for words, part in ((("set", number), "needs a limit to set"), (("set", number, "colour=red"), "colour=red"),
                            (("set", number, "priority=low"), "priority"),
                            (("set", number, "threads.most=1%"), "none of threads=, time=, memory= or host_memory= (each"),
                            (("set", number, "total.memory=1G"), "none of threads="),
                            (("set", "user", "5", "time.=1%"), "of each client, or total.threads=, total.time=, total.memory= or total.host_memory= "),
                            (("set", "group", "5", "memory=1G"), "none of total.threads=, total.time=, total.memory= or total.host_memory= "),
                            (("set", "group", "5", "total.memory.request=1G"), "total.memory.request can't be set: each client"),
                            (("set", "group", "5", "total.priority=1"), "none of total.threads="),
                            (("set", "gpu", "0", "time=1%"), "is a limit of clients, and not of a GPU"),
                            (("set", number, "memory=1M", "fraction=0.5"), "twice"),
                            (("set", number, "fraction=2"), '"fraction=2": a fraction is a share above 0, like 25% or 0.25'), (("get",), "needs the number"),
                            (("set", number, "priority=1", "priority=2"), "twice")):
            result = self.ctl(*words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(part, result.stderr)
        self.assertEqual(self.json("get", "999999", schema="admin-error", status=1)["error"], "not_found")

    def limits(self, client):
        return self.json("get", str(client))["clients"][0]

    @CHANGES
    def test_requests_and_time_of_a_running_client(self):
        with self.attached(name="runs") as (client, told), self.attached(name="other") as (_, other):
            number = str(told["client"])
            row = self.json("set", "client", number, "threads.request=25%", "threads.limit=50%", "time.request=0.25",
                            "time.limit=60%", "memory.request=16M", "memory.limit=64M")["clients"][0]
            self.assertEqual(row["threads"]["request"], {"asked_percent": None, "granted_percent": 25})
            self.assertEqual(row["threads"]["limit"], {"asked_percent": None, "granted_percent": 50})
            self.assertEqual((row["time"]["request"]["granted_percent"], row["time"]["limit"]["granted_percent"]), (25, 60))
            self.assertEqual((row["memory"]["request"]["granted_bytes"], row["memory"]["limit"]["granted_bytes"]),
                             (16 << 20, 64 << 20))
            seen = client.ask("limits_query")
            self.assertEqual([seen[name] for name in ("threads_request", "threads_limit", "time_request", "time_limit")],
                             [2500, 5000, 2500, 6000])
            self.assertEqual(seen["multiprocessors"], row["threads"]["multiprocessors"])
            self.assertIn("25 to 50 %", self.ctl("get", "client", number).stdout)
            self.assertIn("16 MiB to 64 MiB", self.ctl("clients", "--wide").stdout)
            for words, part in (("threads.limit=20%",), "threads.request of 25%"), (("time.request=61%",), "time.request of 61%"), \
                    (("memory=8M",), "memory.request of 16M"), (("memory=8000001",), "memory.limit of 8000001B: the request must be"):
                refused = self.json("set", number, *words, schema="admin-error", status=1)
                self.assertIn(part, refused["text"])
            # A number without a unit is no limit of so many bytes.
            for words in ((number, "memory=500"), (number, "host_memory.request=500"), ("user", str(os.getuid()), "total.memory=500"),
                          ("gpu", "0", "new_clients.host_memory=500")):
                self.assertIn("did you mean 500M?", self.json("set", *words, schema="admin-error", status=1)["text"], words)
            # Memory of the host is as bounded as the device's.
            for words, part in (("memory=1T", "that is what the device has"), ("host_memory=1T", "--host-memory-total")):
                self.assertIn(part, self.json("set", number, words, schema="admin-error", status=1)["text"])
            for word in ("total.memory.request=1M", "total.host_memory.request=1M"):
                self.assertIn("each client requests memory for itself", self.ctl("set", "user", "1000", word).stderr)
            # The requests exceed the device: the worker's arithmetic says so, and nothing has changed.
            refused = self.json("set", str(other["client"]), "threads.request=90%", "priority=3", schema="admin-error", status=1)
            self.assertEqual(refused["error"], "no_room")
            self.assertRegex(refused["text"], "4 of the device's 16 .* 14 of this request .* makes 18")
            after = self.limits(other["client"])
            self.assertEqual((after["threads"]["request"]["granted_percent"], after["priority"]), (0, 0))
            row = self.json("set", number, "threads.request=0", "time.request=0%", "memory.request=0")["clients"][0]
            self.assertEqual([row[name]["request"]["granted_percent"] for name in ("threads", "time")], [0, 0])
            self.assertEqual(row["memory"]["request"]["granted_bytes"], 0)
            fraction = self.json("set", number, "fraction=0.125")["clients"][0]
            device = self.json("status")["devices"][0]["memory_bytes"]
            self.assertEqual(fraction["memory"]["limit"]["granted_bytes"], device // 8)
            self.assertEqual(fraction["time"]["request"]["granted_percent"], 12.5)

    @CHANGES
    def test_a_user_gets_all_or_nothing(self):
        with self.attached(name="a") as (_, a), self.attached(name="b") as (_, b), self.attached(name="c") as (_, c):
            self.json("set", str(a["client"]), "threads.request=75%")
            self.json("set", str(b["client"]), "threads.request=10%", "priority=2")
            # One request falls and two rise: together they fit, though not in every order of the three changes.
            user = ("user", USER)
            self.json("set", *user, "threads.request=30%")
            self.assertEqual([row["client"] for row in self.json("get", *user)["clients"]], [told["client"] for told in (a, b, c)])
            # They request 30 % of the threads each, and use nothing.
            shown = self.ctl("get", *user).stdout
            self.assertRegex(shown, r"IN TOTAL +REQUEST +LIMIT +SET BY +CLIENTS +THEY REQUEST +USED\n")
            self.assertRegex(shown, rf"user {os.getuid()} +threads of GPU 0 +- +- +- +3 +90 % +0 SMs\n")
            self.assertRegex(shown, rf"user {os.getuid()} +time of GPU 0 +- +- +- +3 +0 % +0 %\n")
            self.assertRegex(shown, rf"user {os.getuid()} +memory of GPU 0 +- +- +- +- +- +0 B\n")
            before = [self.limits(told["client"]) for told in (a, b, c)]
            self.assertEqual([row["threads"]["request"]["granted_percent"] for row in before], [30] * 3)
            refused = self.json("set", *user, "threads.request=40%", "priority=5", "memory=32M", schema="admin-error", status=1)
            self.assertIn("makes 18", refused["text"])
            self.assertEqual([self.limits(told["client"]) for told in (a, b, c)], before)

    @CHANGES
    def test_the_log_names_a_client_that_is_refused(self):
        before = self.json("status")["clients_refused"]
        self.assertEqual(self.server.info(GPUSHARE_PROFILE="unknown", GPUSHARE_CLIENT_NAME="mine").returncode, 1)
        self.assertEqual(self.json("status")["clients_refused"], before + 1)
        self.assertRegex(self.server.text(), rf"client \d+ 'mine' \(pid \d+, uid {os.getuid()}\) is refused: "
                                             r'\w+: this server has no profile "unknown"')

    def test_how_a_gpu_is_shared(self):
        def schedule():
            row = self.json("get", "gpu", "0")["gpus"][0]
            device = self.json("status")["devices"][0]
            self.assertEqual((row["schedule"], row["threads_enforced_by"]), (device["schedule"], device["threads_enforced_by"]))
            return row["schedule"]

        self.assertEqual(schedule(), {"mode": "concurrent", "lease_seconds": 0.25, "precision_percent": 5, "quantum_seconds": 30,
                                      "window_limit_seconds": 0.5, "local_memory_bytes": 1024, "departed_time_limit_seconds": 10,
                                      "watchdog_warning_seconds": 2, "watchdog_limit_seconds": 10,
                                      "standby": "none", "plan_seconds": 5, "time_enforced": False})
        try:
            with self.attached(name="greedy", time_request=6000, time_limit=10000) as (client, told), \
                    self.attached(name="too", time_request=5000, time_limit=10000) as (_, other):
                self.assertEqual((told["mode"], told["time_request"]), (0, 6000))
                # Mode concurrent promises no time; a switch to a mode that would have to is refused.
                refused = self.json("set", "gpu", "0", "mode=fair", schema="admin-error", status=1)
                self.assertEqual(refused["error"], "no_room")
                self.assertRegex(refused["text"], "110")
                self.assertEqual(schedule()["mode"], "concurrent")
                self.json("set", str(other["client"]), "time.request=40%")
                row = self.json("set", "gpu", "0", "mode=fair", "lease=50ms", "precision=10%", "quantum=1s", "window_limit=100ms",
                                "local_memory=2K", "departed_time_limit=5s", "watchdog_warning=0", "watchdog_limit=20s",
                                "standby=driver")["gpus"][0]
                self.assertEqual(row["schedule"], {"mode": "fair", "lease_seconds": 0.05, "precision_percent": 10,
                                                   "quantum_seconds": 1, "window_limit_seconds": 0.1, "local_memory_bytes": 2048,
                                                   "departed_time_limit_seconds": 5, "watchdog_warning_seconds": 0,
                                                   "watchdog_limit_seconds": 20, "standby": "driver",
                                                   "plan_seconds": 0.5, "time_enforced": True})
                self.assertEqual(schedule(), row["schedule"])
                self.assertEqual(client.ask("limits_query")["mode"], 2)
                table = self.ctl("get", "gpu", "0").stdout.splitlines()
                self.assertEqual(table[1].split()[:5], ["0", "fair", "50ms", "10", "%"])
                refused = self.json("set", str(other["client"]), "time.request=41%", schema="admin-error", status=1)
                self.assertRegex(refused["text"], "101")
                # A client that attaches now and asks for more than is left is refused at once.
                late, before = RawClient(self.server.client), self.json("status")["clients_refused"]
                try:
                    with self.assertRaisesRegex(RuntimeError, "105"):
                        late.attach(time_request=500, time_limit=10000)
                finally:
                    late.close()
                self.assertEqual(self.json("status")["clients_refused"], before + 1)
                info = self.server.info("--json", GPUSHARE_TIME_REQUEST="5%")
                self.assertEqual((info.returncode, json.loads(info.stdout)["error"]), (1, "no_room"))
                self.json("set", "gpu", "0", "lease=short")
                self.assertEqual((schedule()["mode"], schedule()["lease_seconds"]), ("fair", 0.01))
        finally:
            self.ctl("set", "gpu", "0", "mode=concurrent", "lease=default", "precision=5%", "quantum=30s", "window_limit=500ms", "local_memory=1K",
                     "departed_time_limit=10s", "watchdog_warning=2s", "watchdog_limit=10s", "standby=none")
        for words, part in ((("mode=fare",), "concurrent, strict, fair and turns"), (("lease=1ms",), "5ms to 10s"),
                            (("precision=60%",), "1% to 50%"), (("quantum=2h",), "5ms to 1h"),
                            (("window_limit=11s",), "1ms to 10s"), (("local_memory=1M",), "1K to 512K"),
                            (("departed_time_limit=1ms",), "100ms to 24h"), (("watchdog_warning=x",), "100ms to 24h"),
                            (("watchdog_limit=25h",), "100ms to 24h"), (("standby=warm",), "none, driver and context")):
            self.assertIn(part, self.json("set", "gpu", "0", *words, schema="admin-error", status=1)["text"])
        self.assertEqual(self.json("get", "gpu", "99", schema="admin-error", status=1)["error"], "not_found")
        for words in (("set", "gpu", "0"), ("set", "gpu", "0", "priority=1"), ("get", "gpu"), ("get", "gpu", "x"),
                      ("kill", "gpu", "0"), ("set", "gpu", "0", "lease=1s", "lease=2s"), ("set", "1", "mode=fair")):
            self.assertEqual(self.ctl(*words).returncode, 2, words)
        # A name of another kind of target is said to be that.
        for words, part in ((("3", "mode=fair"), "is a setting of a GPU: gpusharectl set gpu 0 mode=fair"),
                            (("user", "7", "lease=x"), "is a setting of a GPU"), (("group", "7", "quantum=1s"), "is a setting of a GPU"),
                            (("gpu", "0", "threads.request=25%"), "is a limit of clients, and not of a GPU: gpusharectl set 7 threads.request=25%"),
                            (("gpu", "0", "fraction=x"), "is a limit of clients"), (("gpu", "0", "priority=x"), "is a limit of clients"),
                            (("gpu", "0", "wings=2"), "is none of mode="), (("3", "wings=2"), "is none of threads=")):
            self.assertIn(part, self.ctl("set", *words).stderr, words)

    def test_numbers_come_without_a_tail(self):
        with self.attached(name="third", threads_limit=3333) as (_, told):
            for words in (("status",), ("clients",), ("get", str(told["client"]))):
                for number in re.findall(r"\d+\.\d+", self.ctl("--json", *words).stdout):
                    self.assertLessEqual(len(number.split(".")[1]), 9, number)
            self.assertIn('"asked_percent": 33.33,', self.ctl("--json", "clients").stdout)

    def test_every_column_is_documented(self):
        with open(os.path.join(json_check.ROOT, "docs/gpusharectl.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"`([0-9 %]*[A-Z][A-Z0-9 %]*)`", file.read().split("### Columns")[1].split("### Limits")[0]))
        with self.attached() as (_, told):
            seen = set()
            for words in (("status",), ("clients",), ("status", "--wide"), ("clients", "--wide"), ("get", str(told["client"])), ("get", "gpu", "0")):
                heading = next(line for line in self.ctl(*words).stdout.splitlines() if re.match(r" *(DEVICE|CLIENT|GPU) ", line))
                seen |= set(re.split("  +", heading.strip()))
        self.assertEqual(seen, documented)

    @CHANGES
    def test_a_thousand_changes_in_a_row_while_clients_leave(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SECONDS)
        connection.connect(self.server.admin)
        answers, left = connection.makefile("r"), 0
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(self.attached(name=f"leaves {i}")) for i in range(10)]
            for i in range(1000):
                client, told = clients[i // 100]
                line = {"request": "set", "client": told["client"], "threads": {"limit": f"{1 + i % 100}%"}, "priority": i % 2}
                connection.sendall((json.dumps(line) + "\n").encode())
                if i % 100 == 90:
                    client.close()
                answer = json.loads(answers.readline())
                if not answer["ok"]:
                    left += 1
                    self.assertEqual((answer["error"], i % 100 >= 90), ("not_found", True), answer)
        connection.close()
        self.assertGreater(left, 0)
        self.assertEqual(self.json("status")["devices"][0]["state"], "ready")

    @CHANGES
    def test_kill_of_an_unknown_client(self):
        answer = self.json("kill", "999999", schema="admin-error", status=1)
        self.assertEqual(answer["error"], "not_found")
        result = self.ctl("kill", "999999")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no client 999999", result.stderr)

    def test_requests_of_many_lines(self):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(SECONDS)
            peer.connect(self.server.admin)
            peer.sendall(b'{"request":"ping"}\nnonsense\n{"request":"status"}\n')
            lines = peer.makefile(encoding="utf-8")
            for schema in ("admin-ping", "admin-error", "admin-status"):
                json_check.check(schema, json.loads(lines.readline()))
            lines.close()

    def test_the_server_takes_the_requests_that_the_schema_allows(self):
        requests = [{"request": "ping"}, {"request": "clients"}, {"request": "ping", "client": 1}, {"request": "kill"},
                    {"request": "kill", "client": -1}, {"request": "kill", "client": 1.5}, {"request": "kill", "client": "1"},
                    {"request": "kill", "client": 2**32}, {"request": "reboot"}, {}, [], 7, {"request": None}]
        # No client and no user has these numbers; only totals can be set before anybody has them.
        limits = [{}, {"threads": {"limit": "25%"}}, {"time": {"request": "5%", "limit": "10%"}}, {"memory": {"request": "0"}},
                  {"host_memory": {"limit": "1M"}}, {"priority": 3}, {"priority": 1001}, {"threads": {}}, {"threads": "25%"},
                  {"threads": {"limit": "25%", "most": "30%"}}, {"mode": "fair"}, {"total": {"memory": {"limit": "1G"}}},
                  {"total": {"memory": {"limit": "50%"}, "host_memory": {"limit": "1M"}}}, {"total": {}}, {"total": {"memory": {}}},
                  {"total": {"threads": {"limit": "25%"}}}, {"total": {"memory": {"limit": "1G"}}, "priority": 1}]
        requests += [{"request": "set", whom: 4294967000, **limit} for whom in ("client", "user", "group") for limit in limits]
        requests += [{"request": "set", "gpu": 99, **how} for how in ({}, {"mode": "fair"}, {"lease": "50ms"}, {"lease": 50},
                                                                      {"precision": "5%", "quantum": "1s"}, {"threads": {"limit": "5%"}})]
        requests += [{"request": kind, whom: 4294967000} for kind in ("get", "kill", "status") for whom in ("client", "user", "group", "gpu")]
        requests += [{"request": "get"}, {"request": "get", "client": 1, "user": 1}, {"request": "get", "gpu": "0"},
                     {"request": "trace", "gpu": 99, "seconds": 1}, {"request": "trace", "gpu": 99, "seconds": 601},
                     {"request": "metrics"}, {"request": "metrics", "clients": 5}, {"request": "metrics", "clients": -1},
                     {"request": "metrics", "clients": 10001}, {"request": "metrics", "client": 5}, {"request": "status", "clients": 5},
                     {"request": "trace", "gpu": 99}, {"request": "trace", "seconds": 1}, {"request": "reload", "gpu": 0}]
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(SECONDS)
            peer.connect(self.server.admin)
            lines = peer.makefile(encoding="utf-8")
            for request in requests:
                peer.sendall(json.dumps(request).encode() + b"\n")
                # invalid_device: a trace of a GPU that does not exist.
                taken = json.loads(lines.readline()).get("error") not in ("invalid_value", "not_supported")
                self.assertEqual(taken, json_check._fits(json_check.load("admin-request"), request, ""), request)
            lines.close()

    def test_a_schema_that_is_broken_in_one_place_is_noticed(self):
        with self.attached(name="x") as (_, _told):
            for schema in ("status", "clients"):
                answer = self.json(schema)
                objects = [answer, (answer.get("devices") or answer.get("clients"))[0]]
                for which, holder in enumerate(objects):
                    for key in list(holder):
                        broken = copy.deepcopy(answer)
                        place = broken if which == 0 else (broken.get("devices") or broken.get("clients"))[0]
                        del place[key]
                        with self.assertRaises(json_check.Mismatch, msg=key):
                            json_check.check(f"admin-{schema}", broken)
                        place[key] = {"of another": "type"}
                        with self.assertRaises(json_check.Mismatch, msg=key):
                            json_check.check(f"admin-{schema}", broken)


class Usage(WithServer):
    @contextlib.contextmanager
    def busy(self):
        """A program that launches until it is stopped, and its row of `clients` once it has launched."""
        command = [os.path.join(BUILD, "examples/vector-add"), "-n", "4096", "-r", "100000000"]
        env = {**ENV, "GPUSHARE_SOCKET": self.server.client, "GPUSHARE_CLIENT_NAME": "busy"}
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        try:
            yield self.wait(lambda row: row["launches"])
        finally:
            program.kill()
            program.wait()

    def wait(self, holds):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            row = next((row for row in self.json("clients")["clients"] if row["name"] == "busy"), None)
            if row and holds(row):
                return row
            time.sleep(0.02)
        raise AssertionError(f"waited in vain: {row}")

    @CHANGES
    def test_status_shows_a_programs_gpu_time_and_queueing_time(self):
        with self.busy() as row:
            self.assertGreater(row["gpu_time_seconds"], 0)
            self.assertEqual(row["charged_seconds"], row["gpu_time_seconds"], "in mode concurrent")
            self.assertEqual(row["multiprocessors_now"], row["threads"]["multiprocessors"])
            self.assertEqual(row["throttled_seconds"]["lease"], 0)
            # Each command that was handed to the device waited once; some commands are neither launches nor copies.
            self.assertGreaterEqual(sum(row["waits"]), row["launches"])
            self.json("set", "gpu", "0", "mode=fair", "lease=5ms", "precision=50%")
            try:
                self.json("set", str(row["client"]), "time.request=20%", "time.limit=40%")
                fair = self.wait(lambda now: now["leases"] >= 5 and now["throttled_seconds"]["lease"] > 0.01)
                self.assertGreater(fair["charged_seconds"], row["charged_seconds"])
                cells = re.split("  +", next(line for line in self.ctl("clients", "--wide").stdout.splitlines() if " busy " in line).strip())
                self.assertIn("20 to 40 %", cells)
                self.assertTrue([cell for cell in cells if re.fullmatch(r"\d+\.\d{3} s, lease", cell)], cells)
                self.assertTrue([cell for cell in cells if re.fullmatch(r"<\d+ (us|ms|s)", cell)], cells)
            finally:
                self.json("set", "gpu", "0", "mode=concurrent", "lease=default", "precision=5%")


class WithoutPartitions(WithServer):
    settings = {"env": {"SOFTGPU_NO_GREEN": "1"}}

    def test_a_duty_cycle_is_shown_by_name(self):
        device = self.json("status")["devices"][0]
        self.assertEqual((device["threads_enforced_by"], device["partition_multiprocessors"]), ("duty_cycle", 0))
        with self.attached(threads_limit=2500) as (_, told):
            self.assertEqual(told["partitioned"], 0)
            self.assertFalse(self.client_row(told["client"])["threads"]["partitioned"])
            self.assertIn(", duty cycle", self.ctl("get", str(told["client"])).stdout)
        self.assertIn("  duty cycle  ", self.ctl("status", "--wide").stdout)
        text = self.server.info().stdout
        self.assertIn("its driver offers no partitions", text)
        self.assertIn(", duty cycle", text)


class Permissions(WithServer):
    settings = {"admin": 4711}

    @CHANGES
    def test_the_user_who_started_the_server_administers_it(self):
        self.assertEqual(self.json("kill", "1", schema="admin-error", status=1)["error"], "not_found")

    def as_user(self, uid, *requests):
        """The answers to these requests, sent by a process with this uid, which the server learns from the kernel."""
        end, child_end = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                answers = []
                with socket.socket(socket.AF_UNIX) as peer:
                    try:
                        peer.connect(self.server.admin)
                        for request in requests:
                            peer.sendall(json.dumps(request).encode() + b"\n")
                            answers.append(json.loads(peer.makefile(encoding="utf-8").readline()))
                    except PermissionError:
                        answers = None
                os.write(child_end, json.dumps(answers).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(child_end)
        with os.fdopen(end, "rb") as pipe:
            answers = pipe.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return json.loads(answers)

    @unittest.skipIf(os.getuid() != 0, "needs root to become others")
    def test_the_file_keeps_strangers_out(self):
        status = os.stat(self.server.admin)
        self.assertEqual(stat.S_IMODE(status.st_mode), 0o660)
        self.assertIsNone(self.as_user(NOBODY, {"request": "ping"}))

    @unittest.skipIf(os.getuid() != 0, "needs root to become others")
    def test_a_clients_attempt_to_kill_is_refused(self):
        os.chmod(self.server.admin, 0o666)
        try:
            with self.attached(name="innocent") as (client, told):
                kill = {"request": "kill", "client": told["client"]}
                for uid in (NOBODY, 4712):
                    ping, clients, killed = self.as_user(uid, {"request": "ping"}, {"request": "clients"}, kill)
                    self.assertTrue(ping["ok"] and clients["ok"])
                    json_check.check("admin-error", killed)
                    self.assertEqual(killed["error"], "not_permitted")
                    self.assertRegex(killed["text"], f"^uid {uid} .*may not use kill: ask root")
                    self.assertEqual(client.ask("memory_query")["used"], 0, "the client is still served")
                self.assertIn(f'asked for "kill client {told["client"]}" and was refused', self.server.text())
                self.assertTrue(self.as_user(4711, kill)[0]["ok"])
                self.assertEqual(client.receive()[0], "ended")
        finally:
            os.chmod(self.server.admin, 0o660)


class Terminal(WithServer):
    def on_a_terminal(self, **env):
        """Returns all that status wrote: a terminal passes it on in pieces, and ends with EIO."""
        main_end, child_end = pty.openpty()
        text = b""
        try:
            try:
                subprocess.run([GPUSHARECTL, "--socket", self.server.admin, "status"], stdout=child_end, timeout=SECONDS,
                               env={**ENV, **env}, check=True)
            finally:
                os.close(child_end)
            while piece := os.read(main_end, 65536):
                text += piece
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)
        finally:
            os.close(main_end)
        return text.decode()

    def test_headings(self):
        self.assertIn("\x1b[1m", self.on_a_terminal(TERM="xterm"))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="xterm", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", self.ctl("status", TERM="xterm").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
