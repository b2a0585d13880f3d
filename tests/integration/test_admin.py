#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The admin socket, gpusharectl and gpushare against a private server; sockets through
LISTEN_FDS and a NOTIFY_SOCKET of the test's own. Every --json output is held against its
schema, the table of clients against what a client of the test's own was told."""
import contextlib
import copy
import json
import os
import pty
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from raw_client import RawClient  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.abspath("build"))
GPUSHARED, GPUSHARECTL, GPUSHARE = (os.path.join(BUILD, "bin", name) for name in ("gpushared", "gpusharectl", "gpushare"))
PASSED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "LC_ALL")
ENV = {key: os.environ[key] for key in PASSED if key in os.environ}
SECONDS = float(os.environ.get("TEST_LIMIT", "180")) / 3
NOBODY = 65534
# Who stands for everybody is no administrator, named or not.
CHANGES = unittest.skipIf(os.getuid() == NOBODY, "the user who stands for everybody may only look")

# Runs a program with descriptors from 3 on, as systemd does.
EXEC_WITH_FDS = """
import os, sys
fds, names, program = [int(fd) for fd in sys.argv[1].split(",")], sys.argv[2], sys.argv[3:]
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.closerange(3 + len(fds), 200)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(program[0], program)
"""


class Server:
    """A gpushared of the test's own; its folder can be entered by anybody."""

    def __init__(self, *options, passed=None, names="", abstract=False, env=None):
        self.folder = tempfile.mkdtemp(prefix="gpushare-admin-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.client, self.admin = (os.path.join(self.folder, name) for name in ("gpushare.sock", "admin.sock"))
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify = f"gpushare-test-{os.getpid()}-{id(self)}" if abstract else os.path.join(self.folder, "notify")
        self.notify.bind("\0" + notify if abstract else notify)
        self.states, self.made = [], []
        command = [GPUSHARED, "--driver", "softgpu", *options]
        fds = []
        if passed is None:
            command += ["--socket", self.client, "--admin-socket", self.admin]
        else:
            fds = [one.fileno() for one in passed(self)]
            command = [sys.executable, "-c", EXEC_WITH_FDS, ",".join(map(str, fds)), names] + command
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=fds,
                                        env={**ENV, "NOTIFY_SOCKET": ("@" if abstract else "") + notify, **(env or {})})
        try:
            self.hear("READY=1")
        except BaseException:
            self.give_up()
            raise

    def give_up(self):
        self.process.kill()
        self.process.wait()
        self.notify.close()
        self.log.close()
        for one in self.made:
            one.close()
        shutil.rmtree(self.folder)

    def hear(self, state):
        """Reads what the server tells systemd until it says this."""
        end = time.monotonic() + SECONDS
        self.notify.settimeout(0.2)
        while state not in self.states:
            with contextlib.suppress(TimeoutError):
                self.states.append(self.notify.recv(4096).decode())
                continue
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no {state} (status {self.process.poll()}): {self.text()}")

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        with contextlib.suppress(TimeoutError):
            self.hear("STOPPING=1")
        self.notify.close()
        self.log.close()
        for one in self.made:
            one.close()
        text = self.text()
        left = set(os.listdir(self.folder)) - {"log", "notify"}
        shutil.rmtree(self.folder)
        return status, left, text


def run(*command, **env):
    return subprocess.run(command, capture_output=True, text=True, env={**ENV, **env}, stdin=subprocess.DEVNULL,
                          timeout=SECONDS, check=False)


class WithServer(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)

    @classmethod
    def tearDownClass(cls):
        status, left, text = cls.server.stop()
        assert status == 0, f"exit status {status}: {text}"
        assert not left, f"left behind: {left}"

    def ctl(self, *arguments, **env):
        return run(GPUSHARECTL, "--socket", self.server.admin, *arguments, **env)

    def json(self, command, *arguments, schema=None, status=0):
        result = self.ctl("--json", command, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        answer = json.loads(result.stdout)
        json_check.check(schema or f"admin-{command}", answer)
        return answer

    def client_row(self, number):
        return next((row for row in self.json("clients")["clients"] if row["client"] == number), None)

    @contextlib.contextmanager
    def attached(self, **wishes):
        client = RawClient(self.server.client)
        try:
            yield client, client.attach(**wishes)
        finally:
            client.close()


class Commands(WithServer):
    options = () if os.getuid() == 0 else ("--admin-uid", str(os.getuid()))

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
        text = self.ctl("status").stdout
        self.assertIn("driver: softgpu (", text)
        self.assertIn("isolation between clients' kernels: none yet (one address space)", text)
        self.assertIn("SHARED QUEUES", text)
        self.assertIn(answer["devices"][0]["name"], text)

    def test_clients_show_what_the_client_was_told(self):
        with self.attached(name="asks for little", memory_limit=64 << 20, host_memory_limit=1 << 20,
                           thread_percentage=1250, priority=1) as (client, told), \
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
            table = self.ctl("clients").stdout
            self.assertIn("asks for little", table)
            self.assertIn("12.5 %", table)
            self.assertIn("64 MiB", table)
            self.assertGreaterEqual(self.json("status")["devices"][0]["memory_used_bytes"], used["used"])

    def test_a_client_that_has_only_connected(self):
        client = RawClient(self.server.client)
        try:
            client.ask("hello", major=1)
            rows = [row for row in self.json("clients")["clients"] if row["state"] == "greeted"]
            self.assertTrue(rows)
            self.assertIsNone(rows[0]["memory"])
        finally:
            client.close()

    def test_names_cannot_reach_the_terminal(self):
        with self.attached(name="a\x9b31mb") as (_, _told):
            table = self.ctl("clients").stdout
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
            self.assertEqual((result.returncode, result.stdout), (0, f"client {told['client']} is ended\n"))
        self.assertIn("killed", self.server.text())

    @CHANGES
    def test_limits_of_a_running_client(self):
        with self.attached(name="runs", memory_limit=64 << 20, thread_percentage=5000) as (client, told):
            number = str(told["client"])
            before = self.json("get", number)["clients"][0]
            self.assertEqual((before["threads"]["limit"]["asked_percent"], before["threads"]["multiprocessors"]),
                             (50, told["multiprocessors"]))
            self.assertEqual(before["memory"]["limit"], {"asked_bytes": 64 << 20, "granted_bytes": 64 << 20})
            client.ask("memory_alloc", count=32 << 20)
            row = self.json("set", number, "threads=25%", "memory=16M", "host_memory=1M", "priority=1")["clients"][0]
            self.assertLess(row["threads"]["multiprocessors"], told["multiprocessors"])
            self.assertEqual(row["threads"]["limit"], {"asked_percent": 50, "granted_percent": 25})
            self.assertEqual((row["memory"]["limit"]["granted_bytes"], row["memory"]["used_bytes"]), (16 << 20, 32 << 20))
            limits = client.ask("limits_query")
            self.assertEqual((limits["memory_limit"], limits["host_memory_limit"], limits["priority"]), (16 << 20, 1 << 20, 1))
            self.assertEqual(limits["multiprocessors"], row["threads"]["multiprocessors"])
            with self.assertRaisesRegex(RuntimeError, "limit", msg="below what is in use nothing new is given"):
                client.ask("memory_alloc", count=4 << 20)
            self.assertEqual(self.client_row(told["client"])["threads"]["limit"]["granted_percent"], 25)
            self.json("set", f"user:{os.getuid()}", "threads=1.0", "memory=64M")
            client.ask("memory_alloc", count=16 << 20)
            self.assertIn(" 100 %", self.ctl("get", f"client:{number}").stdout)
            window = told["window_bytes"]
            refused = self.json("set", number, f"memory={window * 2}", "priority=0", schema="admin-error", status=1)
            self.assertIn(str(window * 2), refused["text"])
            self.assertEqual(client.ask("limits_query")["priority"], 1, "refused whole")
        for words, part in ((("set", number), "something to set"), (("set", number, "colour=red"), "colour=red"),
                            (("set", number, "priority=low"), "priority"),
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
            self.assertEqual([seen[name] for name in ("thread_request", "thread_percentage", "time_request", "time_limit")],
                             [2500, 5000, 2500, 6000])
            self.assertEqual(seen["multiprocessors"], row["threads"]["multiprocessors"])
            self.assertIn("25 to 50 %", self.ctl("get", "client", number).stdout)
            self.assertIn("16 MiB to 64 MiB", self.ctl("clients").stdout)
            for words, part in (("threads.limit=20%",), "threads.request of 25%"), (("time.request=61%",), "time.request of 61%"), \
                    (("memory=8M",), "memory.request of 16M"), (("memory=8000001",), "memory.limit of 8000001B: set both"):
                refused = self.json("set", number, *words, schema="admin-error", status=1)
                self.assertIn(part, refused["text"])
            # More than there is: the worker's arithmetic, and nothing has changed.
            refused = self.json("set", str(other["client"]), "threads.request=90%", "priority=3", schema="admin-error", status=1)
            self.assertEqual(refused["error"], "invalid_value")
            self.assertRegex(refused["text"], "4 of the device's 16 .* 14 asked for .* makes 18")
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
            # One falls, two rise: it fits in the end, though not in every order.
            user = ("user", str(os.getuid()))
            self.json("set", *user, "threads.request=30%")
            before = [self.limits(told["client"]) for told in (a, b, c)]
            self.assertEqual([row["threads"]["request"]["granted_percent"] for row in before], [30] * 3)
            refused = self.json("set", *user, "threads.request=40%", "priority=5", "memory=32M", schema="admin-error", status=1)
            self.assertIn("makes 18", refused["text"])
            self.assertEqual([self.limits(told["client"]) for told in (a, b, c)], before)

    @CHANGES
    def test_how_a_gpu_is_shared(self):
        def schedule():
            row = self.json("get", "gpu", "0")["gpus"][0]
            device = self.json("status")["devices"][0]
            self.assertEqual((row["schedule"], row["threads_enforced_by"]), (device["schedule"], device["threads_enforced_by"]))
            return row["schedule"]

        self.assertEqual(schedule(), {"mode": "concurrent", "lease_seconds": 0.25, "precision_percent": 5, "quantum_seconds": 30,
                                      "plan_seconds": 5, "time_enforced": False})
        try:
            with self.attached(name="greedy", time_request=6000, time_limit=10000) as (client, told), \
                    self.attached(name="too", time_request=5000, time_limit=10000) as (_, other):
                self.assertEqual((told["mode"], told["time_request"]), (0, 6000))
                # In mode concurrent nothing was promised; a mode that would have to keep it is refused.
                refused = self.json("set", "gpu", "0", "mode=fair", schema="admin-error", status=1)
                self.assertEqual(refused["error"], "invalid_value")
                self.assertRegex(refused["text"], "110")
                self.assertEqual(schedule()["mode"], "concurrent")
                self.json("set", str(other["client"]), "time.request=40%")
                row = self.json("set", "gpu", "0", "mode=fair", "lease=50ms", "precision=10%", "quantum=1s")["gpus"][0]
                self.assertEqual(row["schedule"], {"mode": "fair", "lease_seconds": 0.05, "precision_percent": 10,
                                                   "quantum_seconds": 1, "plan_seconds": 0.5, "time_enforced": True})
                self.assertEqual(schedule(), row["schedule"])
                self.assertEqual(client.ask("limits_query")["mode"], 2)
                table = self.ctl("get", "gpu", "0").stdout.splitlines()
                self.assertEqual(table[1].split()[:5], ["0", "fair", "50ms", "10", "%"])
                refused = self.json("set", str(other["client"]), "time.request=41%", schema="admin-error", status=1)
                self.assertRegex(refused["text"], "101")
                # Who comes now and asks for more than is left is told so at once.
                late = RawClient(self.server.client)
                try:
                    with self.assertRaisesRegex(RuntimeError, "105"):
                        late.attach(time_request=500, time_limit=10000)
                finally:
                    late.close()
                self.json("set", "gpu", "0", "lease=short")
                self.assertEqual((schedule()["mode"], schedule()["lease_seconds"]), ("fair", 0.01))
        finally:
            self.ctl("set", "gpu", "0", "mode=concurrent", "lease=default", "precision=5%", "quantum=30s")
        for words, part in ((("mode=fare",), "concurrent, strict, fair and turns"), (("lease=1ms",), "5ms to 10s"),
                            (("precision=60%",), "1% to 50%"), (("quantum=2h",), "5ms to 1h")):
            self.assertIn(part, self.json("set", "gpu", "0", *words, schema="admin-error", status=1)["text"])
        self.assertEqual(self.json("get", "gpu", "99", schema="admin-error", status=1)["error"], "not_found")
        for words in (("set", "gpu", "0"), ("set", "gpu", "0", "priority=1"), ("get", "gpu"), ("get", "gpu", "x"),
                      ("kill", "gpu", "0"), ("set", "gpu", "0", "lease=1s", "lease=2s"), ("set", "1", "mode=fair")):
            self.assertEqual(self.ctl(*words).returncode, 2, words)

    def test_numbers_come_without_a_tail(self):
        with self.attached(name="third", thread_percentage=3333) as (_, told):
            for words in (("status",), ("clients",), ("get", str(told["client"]))):
                for number in re.findall(r"\d+\.\d+", self.ctl("--json", *words).stdout):
                    self.assertLessEqual(len(number.split(".")[1]), 9, number)
            self.assertIn('"asked_percent": 33.33,', self.ctl("--json", "clients").stdout)

    def test_every_column_is_documented(self):
        with open(os.path.join(json_check.ROOT, "docs/gpusharectl.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"`([0-9 %]*[A-Z][A-Z0-9 %]*)`", file.read().split("### Columns")[1].split("### Limits")[0]))
        with self.attached() as (_, told):
            seen = set()
            for words in (("status",), ("clients",), ("get", str(told["client"])), ("get", "gpu", "0")):
                heading = next(line for line in self.ctl(*words).stdout.splitlines() if re.match(r" *(DEVICE|CLIENT|GPU) ", line))
                seen |= set(re.split("  +", heading.strip()))
        self.assertEqual(seen - {"GPU"}, documented)

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
    def test_kill_of_nobody(self):
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

    def test_what_the_request_schema_says_is_what_the_server_takes(self):
        requests = [{"request": "ping"}, {"request": "clients"}, {"request": "ping", "client": 1}, {"request": "kill"},
                    {"request": "kill", "client": -1}, {"request": "kill", "client": 1.5}, {"request": "kill", "client": "1"},
                    {"request": "kill", "client": 2**32}, {"request": "reboot"}, {}, [], 7, {"request": None}]
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(SECONDS)
            peer.connect(self.server.admin)
            lines = peer.makefile(encoding="utf-8")
            for request in requests:
                peer.sendall(json.dumps(request).encode() + b"\n")
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
    options = Commands.options

    @contextlib.contextmanager
    def busy(self):
        """A program that launches without end, and its row once it has been served."""
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
    def test_what_a_program_used_and_how_long_it_waited(self):
        with self.busy() as row:
            self.assertGreater(row["gpu_time_seconds"], 0)
            self.assertEqual(row["charged_seconds"], row["gpu_time_seconds"], "in mode concurrent")
            self.assertEqual(row["multiprocessors_now"], row["threads"]["multiprocessors"])
            self.assertEqual(row["throttled_seconds"]["lease"], 0)
            # Each command that was handed to the device waited once; some are no launches or copies.
            self.assertGreaterEqual(sum(row["waits"]), row["launches"])
            self.json("set", "gpu", "0", "mode=fair", "lease=5ms", "precision=50%")
            try:
                self.json("set", str(row["client"]), "time.request=20%", "time.limit=40%")
                fair = self.wait(lambda now: now["leases"] >= 5 and now["throttled_seconds"]["lease"] > 0.01)
                self.assertGreater(fair["charged_seconds"], row["charged_seconds"])
                cells = re.split("  +", next(line for line in self.ctl("clients").stdout.splitlines() if " busy " in line).strip())
                self.assertIn("20 to 40 %", cells)
                self.assertTrue([cell for cell in cells if re.fullmatch(r"\d+\.\d{3} s, lease", cell)], cells)
                self.assertTrue([cell for cell in cells if re.fullmatch(r"<\d+ (us|ms|s)", cell)], cells)
            finally:
                self.json("set", "gpu", "0", "mode=concurrent", "lease=default", "precision=5%")


class WithoutPartitions(WithServer):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(env={"SOFTGPU_NO_GREEN": "1"})

    def test_a_duty_cycle_is_called_so(self):
        device = self.json("status")["devices"][0]
        self.assertEqual((device["threads_enforced_by"], device["partition_multiprocessors"]), ("duty_cycle", 0))
        with self.attached(thread_percentage=2500) as (_, told):
            self.assertEqual(told["partitioned"], 0)
            self.assertFalse(self.client_row(told["client"])["threads"]["partitioned"])
            self.assertIn(", duty cycle", self.ctl("get", str(told["client"])).stdout)
        self.assertIn("  duty cycle  ", self.ctl("status").stdout)
        text = run(GPUSHARE, "--socket", self.server.client, "info").stdout
        self.assertIn("its driver offers no partitions", text)
        self.assertIn(", duty cycle", text)


class Info(WithServer):
    options = Commands.options

    def info(self, *arguments, **env):
        return run(GPUSHARE, "--socket", self.server.client, *arguments, "info", **env)

    def test_nothing_asked(self):
        answer = json.loads(self.info("--json").stdout)
        json_check.check("gpushare-info", answer)
        limits = answer["limits"]
        self.assertEqual([limits[name]["limit"]["asked_by"] for name in ("threads", "time", "memory", "host_memory")], [None] * 4)
        self.assertIsNone(limits["priority"]["asked_by"])
        with self.attached() as (_, told):
            self.assertEqual((limits["memory"]["limit"]["granted_bytes"], limits["host_memory"]["limit"]["granted_bytes"],
                              limits["streams"], limits["threads"]["multiprocessors"]),
                             (told["memory_limit"], told["host_memory_limit"], told["streams"], told["multiprocessors"]))

    def test_it_counts_as_one_client_and_a_look_as_none(self):
        def served():
            return json.loads(run(GPUSHARECTL, "--socket", self.server.admin, "--json", "status").stdout)["clients_served"]
        before = served()
        self.assertEqual(self.info().returncode, 0)
        self.assertEqual(served(), before + 1)
        self.assertEqual(self.info(GPUSHARE_PROFILE="none-of-this-name").returncode, 1)
        self.assertEqual(served(), before + 1)

    def test_each_limit_and_the_variable_that_asked(self):
        env = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT": "0=64M",
               "GPUSHARE_PINNED_HOST_MEM_LIMIT": "1M", "GPUSHARE_CLIENT_PRIORITY": "1", "CUDA_VISIBLE_DEVICES": "0"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        limits = answer["limits"]
        self.assertEqual(limits["threads"]["limit"], {"asked_percent": 25, "asked_by": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                                      "granted_percent": 25})
        # Rounded down to whole partitions of the device.
        device = answer["device"]
        atom = device["partition_multiprocessors"]
        self.assertEqual(limits["threads"]["multiprocessors"], device["multiprocessors"] // 4 // atom * atom)
        self.assertEqual(limits["memory"]["limit"], {"asked_bytes": 64 << 20, "asked_by": "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
                                                     "granted_bytes": 64 << 20})
        self.assertEqual(limits["host_memory"]["limit"], {"asked_bytes": 1 << 20, "asked_by": "GPUSHARE_PINNED_HOST_MEM_LIMIT",
                                                          "granted_bytes": 1 << 20})
        self.assertEqual(limits["priority"], {"asked": 1, "asked_by": "GPUSHARE_CLIENT_PRIORITY", "granted": 1})
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
        self.assertIn("GPUSHARE_MEMORY_REQUEST requests 64M of device 0, and GPUSHARE_MEMORY_LIMIT limits it to 32M",
                      self.info(GPUSHARE_MEMORY_REQUEST="64M", GPUSHARE_MEMORY_LIMIT="32M").stderr)

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
        self.assertIn("shared in mode concurrent: shares of time do not bind in it", self.info(**env).stdout)
        env = {"GPUSHARE_MEMORY_REQUEST": "25%", "GPUSHARE_HOST_MEMORY_REQUEST": "1M"}
        answer = json.loads(self.info("--json", **env).stdout)
        json_check.check("gpushare-info", answer)
        quarter = answer["device"]["memory_bytes"] // 4
        self.assertEqual(answer["limits"]["memory"]["request"],
                         {"asked_bytes": quarter, "asked_by": "GPUSHARE_MEMORY_REQUEST", "granted_bytes": quarter})
        self.assertEqual(answer["limits"]["host_memory"]["request"],
                         {"asked_bytes": 1 << 20, "asked_by": "GPUSHARE_HOST_MEMORY_REQUEST", "granted_bytes": 1 << 20})
        self.assertRegex(self.info(**env).stdout, r"host_memory.request +1 MiB +GPUSHARE_HOST_MEMORY_REQUEST +1 MiB")
        self.assertEqual(run(GPUSHARECTL, "--socket", self.server.admin, "set", "gpu:0", "mode=strict").returncode, 0)
        self.assertIn("shared in mode strict\n", self.info(**env).stdout)
        self.assertTrue(json.loads(self.info("--json", **env).stdout)["limits"]["time"]["enforced"])
        self.assertEqual(run(GPUSHARECTL, "--socket", self.server.admin, "set", "gpu", "0", "mode=concurrent").returncode, 0)

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

    def test_no_visible_device(self):
        result = self.info(CUDA_VISIBLE_DEVICES="")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertNotEqual(result.stderr, "")

    def test_the_environments_socket(self):
        result = run(GPUSHARE, "info", GPUSHARE_SOCKET=self.server.client)
        self.assertEqual(result.returncode, 0, result.stderr)


class Permissions(WithServer):
    options = ("--admin-uid", "4711")

    @unittest.skipIf(os.getuid() == 0, "root may always")
    def test_whoever_started_the_server_is_nobody_in_particular(self):
        answer = self.json("kill", "1", schema="admin-error", status=1)
        self.assertEqual(answer["error"], "not_permitted")

    def as_user(self, uid, *requests):
        """The answers to these requests of a process with this uid; the kernel is the witness."""
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
                    self.assertIn(f"uid {uid}", killed["text"])
                    self.assertEqual(client.ask("memory_query")["used"], 0, "it lives")
                self.assertIn("was refused", self.server.text())
                self.assertTrue(self.as_user(4711, kill)[0]["ok"])
                self.assertEqual(client.receive()[0], "ended")
        finally:
            os.chmod(self.server.admin, 0o660)


class NoServer(unittest.TestCase):
    def test_each_command_names_socket_and_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "admin.sock")
            for command in ("ping", "status", "clients", "version", "kill 1"):
                result = run(GPUSHARECTL, "--socket", path, *command.split())
                self.assertEqual(result.returncode, 3, command)
                self.assertIn(path, result.stderr)
                self.assertIn("start gpushared", result.stderr)
                result = run(GPUSHARECTL, "--json", "--socket", path, *command.split())
                self.assertEqual(result.returncode, 3, command)
                json_check.check("admin-error", json.loads(result.stdout))
            result = run(GPUSHARE, "--socket", path, "info")
            self.assertEqual(result.returncode, 3)
            self.assertIn(path, result.stderr)

    def test_a_closed_socket_says_to_whom_it_is_open(self):
        if os.getuid():
            self.skipTest("needs root to become another user")
        # Where that user gets to, the tool too: neither $TMPDIR nor the build need be such a place.
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as closed:
            inner, tool = os.path.join(folder, "inner"), shutil.copy(GPUSHARECTL, folder)
            path = os.path.join(inner, "admin.sock")
            os.mkdir(inner, 0o700)
            os.chmod(folder, 0o755)
            closed.bind(path)
            closed.listen()
            os.chmod(path, 0o660)

            def refusal():
                done = subprocess.run([tool, "--socket", path, "ping"], stderr=subprocess.PIPE, text=True, env=ENV,
                                      user=NOBODY, group=NOBODY, extra_groups=[], timeout=SECONDS)
                self.assertEqual(done.returncode, 3)
                return done.stderr

            self.assertIn("a folder above it is closed to this user", refusal())
            os.chmod(inner, 0o755)
            self.assertIn("members of its group root may: use sudo", refusal())
            os.chown(path, 0, 54321)
            self.assertIn("members of its group 54321 may: use sudo", refusal())

    def test_whom_is_asked_for_in_the_words_of_its_kind(self):
        for words, sentence in (("get gpu GPU-1", '"GPU-1" is not the index of a GPU, as `gpusharectl status` shows it\n'),
                                ("set gpu", "set: it needs the index of a GPU, as `gpusharectl status` shows it\n"),
                                ("get user root", '"root" is not a uid, as id(1) shows it\n'),
                                ("set gpu:x", '"x" is not the index of a GPU, as `gpusharectl status` shows it\n'),
                                ("get client:", '"" is not the number of a client, as `gpusharectl clients` shows it\n'),
                                ("set user:x", '"x" is not a uid, as id(1) shows it\n'),
                                ("get seven", "shows it, or user and a uid, or gpu and an index\n"),
                                ("kill user 3", '"user" is not the number of a client, as `gpusharectl clients` shows it\n'),
                                ("kill client x", '"x" is not the number of a client')):
            result = run(GPUSHARECTL, *words.split())
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(sentence, result.stderr)

    def test_what_listens_is_something_else(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as other, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as clients:
            path = os.path.join(folder, "s")
            other.bind(path)
            self.assertIn("has ended", run(GPUSHARECTL, "--socket", path, "ping").stderr)
            other.listen()
            asking = subprocess.Popen([GPUSHARECTL, "--socket", path, "ping"], stderr=subprocess.PIPE, text=True, env=ENV)
            peer, _ = other.accept()
            peer.recv(100)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n")
            self.assertIn("is not of gpushared's form", asking.communicate(timeout=SECONDS)[1])
            self.assertEqual(asking.returncode, 3)
            peer.close()
            clients.bind(path + "2")
            clients.listen()
            self.assertIn("that is no admin socket", run(GPUSHARECTL, "--socket", path + "2", "ping").stderr)
            result = run(GPUSHARECTL, "--socket", "/" + "x" * 200, "ping")
            self.assertEqual(result.returncode, 3)

    def test_the_users_own_server_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "gpushare"))
            path = os.path.join(folder, "gpushare/admin.sock")
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(path)
                self.assertIn(path, run(GPUSHARECTL, "ping", XDG_RUNTIME_DIR=folder).stderr)
            self.assertIn("/run/gpushare/admin.sock", run(GPUSHARECTL, "ping", XDG_RUNTIME_DIR="/nonexistent").stderr)

    def test_usage(self):
        for tool, arguments in ((GPUSHARECTL, ("",)), (GPUSHARECTL, ("reboot",)), (GPUSHARECTL, ("ping", "1")),
                                (GPUSHARECTL, ("kill",)), (GPUSHARECTL, ("kill", "x")), (GPUSHARECTL, ("kill", "-1")),
                                (GPUSHARECTL, ("kill", "4294967296")), (GPUSHARECTL, ("kill", "1", "2")),
                                (GPUSHARECTL, ("--nonsense",)), (GPUSHARECTL, ("--socket",)), (GPUSHARE, ()),
                                (GPUSHARE, ("run",)), (GPUSHARE, ("info", "x")), (GPUSHARE, ("--device", "x", "info"))):
            result = run(tool, *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("--help", result.stderr)
        for tool in (GPUSHARECTL, GPUSHARE):
            result = run(tool, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith("usage: "))
            self.assertEqual(run(tool, "--version").returncode, 0)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([GPUSHARECTL, "--help"], stdout=full, stderr=subprocess.PIPE, env=ENV, check=False)
            self.assertEqual(result.returncode, 1)


class Systemd(unittest.TestCase):
    @staticmethod
    def listening(server, kinds):
        """Sockets as systemd would have made them."""
        made = server.made
        for kind in kinds:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if kind == "client" else socket.SOCK_STREAM)
            one.bind(getattr(server, kind))
            one.listen()
            made.append(one)
        return made

    def test_sockets_that_were_passed(self):
        for kinds, names in ((("client", "admin"), "client:admin"), (("admin", "client"), "")):
            with self.subTest(names):
                server = Server(passed=lambda it, kinds=kinds: self.listening(it, kinds), names=names)
                result = run(GPUSHARECTL, "--socket", server.admin, "ping")
                self.assertEqual(result.returncode, 0, result.stderr)
                result = run(GPUSHARE, "--socket", server.client, "info")
                self.assertEqual(result.returncode, 0, result.stderr)
                status, left, text = server.stop()
                self.assertEqual(status, 0, text)
                self.assertEqual(left, {"gpushare.sock", "admin.sock"}, "systemd's files are systemd's")
                self.assertIn("STOPPING=1", server.states)

    def test_a_socket_of_the_wrong_kind(self):
        with self.assertRaises(AssertionError) as raised:
            Server(passed=lambda it: self.listening(it, ("admin",)), names="client")
        self.assertIn("SOCK_SEQPACKET", str(raised.exception))

    def test_an_abstract_notify_socket_and_status(self):
        server = Server(abstract=True)
        status, _, text = server.stop()
        self.assertEqual(status, 0, text)
        self.assertTrue([state for state in server.states if state.startswith("STATUS=")], server.states)
        self.assertLess(server.states.index("READY=1"), server.states.index("STOPPING=1"))

    def test_two_servers_do_not_take_each_others_sockets(self):
        server = Server()
        second = run(GPUSHARED, "--driver", "softgpu", "--socket", os.path.join(server.folder, "other"), "--admin-socket",
                     server.admin)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn(server.admin, second.stderr)
        self.assertEqual(run(GPUSHARECTL, "--socket", server.admin, "ping").returncode, 0)
        status, left, text = server.stop()
        self.assertEqual((status, left), (0, set()), text)


class Terminal(WithServer):
    def on_a_terminal(self, **env):
        main_end, child_end = pty.openpty()
        try:
            subprocess.run([GPUSHARECTL, "--socket", self.server.admin, "status"], stdout=child_end, timeout=SECONDS,
                           env={**ENV, **env}, check=True)
            return os.read(main_end, 65536).decode()
        finally:
            os.close(main_end)
            os.close(child_end)

    def test_headings(self):
        self.assertIn("\x1b[1m", self.on_a_terminal(TERM="xterm"))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="xterm", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", self.ctl("status", TERM="xterm").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
