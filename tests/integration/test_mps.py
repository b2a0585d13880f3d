#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl mps: the commands of nvidia-cuda-mps-control, one by one and from a script on standard input. They print what
NVIDIA's program prints; what has no meaning here is refused in words. Below them: limits of clients to come."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import ENV, GPUSHARECTL, SECONDS, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES, WithServer  # noqa: E402
from survive_case import await_true  # noqa: E402

ME = str(os.getpid())


class OverTwoGpus(WithServer):
    settings = {"env": {"SOFTGPU_DEVICES": "2"}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The server is ready with the first worker.
        await_true(lambda: all(device["state"] == "ready" for device in cls.asked("status")["devices"]), cls.server.text)
        devices = cls.asked("status")["devices"]
        cls.servers, cls.uuids = [str(device["worker_pid"]) for device in devices], [device["uuid"] for device in devices]

    @classmethod
    def asked(cls, what):
        return json.loads(cls.server.ctl("--json", what).stdout)

    def setUp(self):
        # Those of the test before may still be leaving.
        await_true(lambda: not self.asked("clients")["clients"], self.server.text)

    def mps(self, *words, status=0):
        done = self.ctl("mps", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr == "", status == 0, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def script(self, text, status=0):
        done = subprocess.run(self.server.command("mps"), input=text, capture_output=True, text=True, env=ENV, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def client(self, **wishes):
        client = RawClient(self.server.client)
        self.addCleanup(client.close)
        return client, client.attach(**wishes)


class Looks(OverTwoGpus):
    def test_servers(self):
        self.assertEqual(self.mps("get_server_list").split(), self.servers)
        self.assertEqual(self.mps("get_server_status", self.servers[1]), "ACTIVE\n")
        self.assertEqual(self.mps("start_server", "-uid", str(os.getuid())), "")

    def test_clients_and_a_script(self):
        _, told = self.client(device=1)
        self.client(device=1)
        self.assertEqual(self.mps("get_client_list", self.servers[0]), "")
        self.assertEqual(self.mps("get_client_list", self.servers[1]), ME + "\n", "two connections of one process")
        self.assertEqual(self.mps("get_device_client_list"), f"{self.uuids[0]}\n{self.uuids[1]} {ME}\n")
        self.assertEqual(self.mps("get_device_client_list", self.servers[0]), f"{self.uuids[0]}\n")
        rows = [line.split() for line in self.mps("ps").splitlines()]
        self.assertEqual(rows[0], ["PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND"])
        self.assertEqual(len(rows), 3)
        space = re.search(r"\d+", os.readlink("/proc/self/ns/pid")).group(0)
        self.assertEqual(rows[1][:5], [ME, str(told["client"]), self.servers[1], self.uuids[1][:22], space])
        self.assertEqual(len(self.mps("ps", "-p", self.servers[0]).splitlines()), 1)
        done = self.script(f"get_server_list\n\n  get_client_list {self.servers[1]} \nnonsense\nget_server_status {self.servers[0]}", status=2)
        self.assertEqual(done.stdout.split(), [*self.servers, ME, "ACTIVE"], "a line that fails keeps no other from being carried out")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_refusals(self):
        _, told = self.client()
        for words, said, status in (
                (("get_server_status", "1"), "no server has the process number 1: get_server_list", 1),
                (("get_server_status", "x"), "is no process number", 2),
                (("get_active_thread_percentage", ME), f"gpusharectl set {told['client']}", 1),
                (("get_server_status",), "get_server_status PID", 2),
                (("ps", self.servers[0]), "ps [-p PID]", 2),
                (("start_server", "-uid", "x"), "is no user's number", 2),
                (("get_device_pinned_mem_limit", self.servers[0], "1"), "serves GPU 0 alone, and not GPU 1", 2),
                (("get_default_device_pinned_mem_limit", "2"), "2", 1),
                (("shutdown_server", self.servers[0]), "gpusharectl drain --wait", 1),
                (("quit",), "systemctl stop gpushared", 1), (("quit", "-t", "10"), "systemctl stop gpushared", 1),
                (("lspart",), "threads.request=25%", 1), (("sm_partition", "add", "0", "2"), "threads.request=25%", 1),
                (("get_server_lst",), "perhaps get_server_list was meant", 2), (("dance",), "mps help", 2)):
            self.assertIn(said, self.mps(*words, status=status))
        self.assertEqual(self.ctl("--json", "mps", "ps").returncode, 2)
        self.assertEqual(run(GPUSHARECTL, "--socket", "/nowhere/admin.sock", "mps", "ps").returncode, 3)

    def test_a_script_that_can_not_be_read_is_told(self):
        folder = os.open("/", os.O_RDONLY)
        self.addCleanup(os.close, folder)
        done = subprocess.run(self.server.command("mps"), stdin=folder, capture_output=True, text=True, env=ENV, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("standard input can't be read: Is a directory", done.stderr)
        done = self.script("get_server_list\0\nget_server_status x\n", status=2)
        self.assertEqual(done.stdout, "", "a part of a line is no command")
        self.assertIn("a line has a byte 0", done.stderr)

    def test_help_and_completion_have_each_command(self):
        listed = re.findall(r"^  ([a-z_]+)", self.mps("help"), re.M)
        self.assertIn("terminate_client", listed)
        for words in (("mps", "--help"), ("help", "mps")):
            self.assertIn(self.mps("help"), self.ctl(*words).stdout)
        offered = re.search(r'^    mps\) words="([^"]*)"', self.ctl("completion", "bash").stdout, re.M).group(1)
        self.assertEqual(offered.split(), listed)


@CHANGES
class Orders(OverTwoGpus):
    def test_threads(self):
        self.client(device=1)  # it came before, and keeps what it has
        self.assertEqual(self.mps("get_default_active_thread_percentage"), "100.0\n")
        self.assertEqual(self.mps("set_default_active_thread_percentage", "50"), "50.0\n")
        self.assertEqual(self.mps("get_default_active_thread_percentage"), "50.0\n")
        self.assertEqual(self.mps("set_active_thread_percentage", self.servers[1], "12.25"), "12.25\n")
        self.assertEqual(self.mps("get_active_thread_percentage", self.servers[1]), "12.25\n")
        self.assertEqual(self.mps("get_active_thread_percentage", self.servers[0]), "50.0\n")
        self.assertIn("differently", self.mps("get_default_active_thread_percentage", status=1))
        _, told = self.client(device=1)
        row = self.client_row(told["client"])
        self.assertEqual((row["threads"]["limit"]["granted_percent"], row["changed"]), (12.25, ["threads.limit"]))
        _, told = self.client(device=1, threads_limit=1000)
        self.assertEqual(self.client_row(told["client"])["threads"]["limit"]["granted_percent"], 10, "its own wish is the stricter one")
        first = min(self.json("clients")["clients"], key=lambda client: client["client"])
        self.assertEqual(first["threads"]["limit"]["granted_percent"], 100)
        for wrong in ("0", "101", "50%", "x"):
            self.assertIn("is no percentage", self.mps("set_default_active_thread_percentage", wrong, status=2))
        self.assertEqual(self.script("set_default_active_thread_percentage 100\n").stdout, "100.0\n")

    def test_memory_and_priority(self):
        self.assertEqual(self.mps("set_default_device_pinned_mem_limit", "0", "24M"), "")
        self.assertEqual(self.mps("get_default_device_pinned_mem_limit", "0"), "24M\n")
        self.assertEqual(self.mps("set_device_pinned_mem_limit", self.servers[1], "1", "48M"), "")
        self.assertEqual(self.mps("get_device_pinned_mem_limit", self.servers[1], "1"), "48M\n")
        self.assertEqual(self.mps("set_default_client_priority", "1"), "")
        self.assertEqual(self.mps("get_default_client_priority"), "1\n")
        _, told = self.client(device=0)
        self.assertEqual((told["memory_limit"], self.client_row(told["client"])["priority"]), (24 << 20, 1))
        said = self.ctl("get", "gpu", "0").stdout
        self.assertIn("new_clients.memory is 24 MiB, set by an administrator", said)
        self.assertIn("new_clients.priority is 1, ", said)
        self.assertIn("is no limit of memory", self.mps("set_default_device_pinned_mem_limit", "0", "much", status=2))
        self.assertIn("is no priority", self.mps("set_default_client_priority", "1001", status=2))
        self.assertEqual(self.ctl("set", "gpu", "0", "new_clients.memory=configured", "new_clients.priority=configured").returncode, 0)
        limits = self.json("get", "gpu", "0")["gpus"][0]["new_clients"]
        self.assertEqual((limits["priority"], limits["changed"]), (0, []))
        self.assertGreater(limits["memory_limit_bytes"], 24 << 20)
        # A client goes back to what the configuration says of it.
        answer = self.json("set", str(told["client"]), "priority=configured", "memory=configured")
        self.assertEqual((answer["clients"][0]["priority"], answer["clients"][0]["changed"]), (0, []))
        self.mps("set_default_client_priority", "0")
        self.ctl("set", "gpu", "1", "new_clients.memory=configured")

    def test_limits_of_clients_to_come_by_set(self):
        answer = self.json("set", "gpu", "1", "new_clients.time=40%", "new_clients.kernel_time_limit=30s", "new_clients.host_memory.limit=1M")
        limits = answer["gpus"][0]["new_clients"]
        self.assertEqual((limits["time_limit_percent"], limits["kernel_time_limit_seconds"], limits["host_memory_limit_bytes"]), (40, 30, 1 << 20))
        self.assertEqual(limits["changed"], ["time", "host_memory", "kernel_time_limit"])
        self.assertIn("limits of clients to come were set by", self.server.text())
        _, told = self.client(device=1)
        self.assertEqual(told["host_memory_limit"], 1 << 20)
        for words, said in ((("new_clients.threads=50%", "mode=fair"), "are set alone"), (("--save", "new_clients.threads=50%"), "are set alone"),
                            (("new_clients.threads.request=50%",), "is none of mode="), (("new_clients.wings=2",), "is none of mode=")):
            done = self.ctl("set", *words[:words[0] == "--save"], "gpu", "1", *words[words[0] == "--save":])
            self.assertIn(said, done.stderr)
        self.assertEqual(self.json("set", "gpu", "1", "new_clients.time=configured")["gpus"][0]["new_clients"]["changed"],
                         ["host_memory", "kernel_time_limit"])
        self.json("reload")
        self.assertEqual(len(self.json("get", "gpu", "1")["gpus"][0]["new_clients"]["changed"]), 2)
        self.json("reload", "--reset")
        self.assertEqual(self.json("get", "gpu", "1")["gpus"][0]["new_clients"]["changed"], [], "as all that an administrator has set")

    def test_clients_are_ended(self):
        (one, _), (two, _) = self.client(device=0), self.client(device=1)
        self.assertEqual(self.mps("terminate_client", self.servers[0], ME), "")
        name, _, values = one.receive()
        self.assertEqual((name, values["error"]), ("ended", one.schema.errors["killed"]))
        self.assertEqual(two.ask("memory_query")["used"], 0, "the other server's client goes on")
        self.assertIn(f"has no client with the process number {ME}", self.mps("terminate_client", self.servers[0], ME, status=1))
        self.assertIn("shutdown_server PID [-f]", self.mps("shutdown_server", self.servers[1], "-x", status=2))
        self.assertEqual(self.mps("shutdown_server", self.servers[1], "-f"), "")
        self.assertEqual(two.receive()[0], "ended")


if __name__ == "__main__":
    unittest.main(verbosity=2)
