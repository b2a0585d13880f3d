#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What holds for a client under the total of its user or its groups, wherever a program or a person reads it."""
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from configured_server import Case  # noqa: E402
from private_server import BUILD, ENV, SECONDS  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
MIB = 1 << 20
UID, GID = os.getuid(), os.getgid()
OUT_OF_MEMORY = 2  # of CUresult


class Program:
    """A program that knows only CUDA."""

    def __init__(self, test, server, **more):
        env = {**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": server.client, **more}
        self.process = subprocess.Popen([PROGRAM, "takes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        self.test = test
        test.assertEqual(self.process.stdout.readline(), "ready\n")

    def take(self, mib=0):
        """Allocates as much. Returns the result, the size of the device's memory, and what of it is free, in MiB."""
        self.process.stdin.write(f"{mib}\n")
        self.process.stdin.flush()
        result, device, total, free = map(int, self.process.stdout.readline().split())
        self.test.assertEqual(device, total)
        self.test.assertEqual((total % MIB, free % MIB), (0, 0))
        return result, total // MIB, free // MIB

    def await_free(self, mib):
        """Freed memory is given back in a moment, when no work uses it."""
        end = time.monotonic() + SECONDS
        while (seen := self.take()[2]) != mib:
            self.test.assertLess(time.monotonic(), end, f"{seen} MiB are free")
            time.sleep(0.01)


class WithClients(Case):
    def attached(self, server, **wishes):
        client = RawClient(server.client)
        self.addCleanup(client.close)
        client.number = client.attach(**wishes)["client"]
        return client

    def ctl(self, it, *words):
        done = it.server.ctl("--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        json_check.check(f"admin-{words[0]}", answer)
        return answer


class Memory(WithClients):
    def left(self, client):
        info = client.ask("memory_query")
        return info["limit"] // MIB, (info["limit"] - info["used"]) // MIB

    @CHANGES
    def test_a_program_sees_what_its_users_total_leaves(self):
        with self.configured(f"users: [{{uid: {UID}, memory: {{limit: 64M}}}}]\n") as it:
            one = Program(self, it.server)
            self.assertEqual(one.take(), (0, 64, 64))
            other = self.attached(it.server)
            address = other.ask("memory_alloc", count=40 * MIB)["address"]
            self.assertEqual(one.take(), (0, 64, 24))
            self.assertEqual(one.take(16), (0, 64, 8))
            self.assertEqual(self.left(other), (64, 8))
            # What is shown is to be had, and no more.
            self.assertEqual(one.take(10), (OUT_OF_MEMORY, 64, 8))
            self.assertEqual(one.take(8), (0, 64, 0))
            other.ask("memory_free", address=address)
            one.await_free(40)
            # A limit of the program's own that is lower than the total is its size; what the total leaves may be less.
            small = Program(self, it.server, GPUSHARE_MEMORY_LIMIT="32M")
            self.assertEqual(small.take(), (0, 32, 32))
            self.assertEqual(one.take(30), (0, 64, 10))
            self.assertEqual(small.take(), (0, 32, 10))
            # Another total holds at once, also one below what is in use.
            self.ctl(it, "set", "user", str(UID), "total.memory=128M")
            self.assertEqual((one.take(), small.take()), ((0, 128, 74), (0, 32, 32)))
            self.ctl(it, "set", "user", str(UID), "total.memory=16M")
            self.assertEqual((one.take(), small.take()), ((0, 16, 0), (0, 16, 0)))
            self.assertEqual(one.take(2), (OUT_OF_MEMORY, 16, 0))

    def test_freed_memory_that_a_program_keeps_is_free_under_a_total(self):
        with self.configured(f"users: [{{uid: {UID}, memory: {{limit: 1G}}}}]\n") as it:
            done = subprocess.run([PROGRAM, "calls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  env={**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": it.server.client})
            self.assertEqual(done.returncode, 0, done.stderr)

    @CHANGES
    def test_the_strictest_total_holds_and_what_is_requested_stays(self):
        text = f"users: [{{uid: {UID}, memory: {{limit: 64M}}, host_memory: {{limit: 8M}}}}]\ngroups: [{{gid: {GID}, memory: {{limit: 48M}}}}]\n"
        with self.configured(text) as it:
            sure = self.attached(it.server, memory_request=24 * MIB)
            other = self.attached(it.server)
            # A request is held as if it were used.
            self.assertEqual((self.left(sure), self.left(other)), ((48, 48), (48, 24)))
            other.ask("host_alloc", count=2 * MIB)
            info = sure.ask("memory_query")
            self.assertEqual((info["host_limit"], info["host_used"]), (8 * MIB, 2 * MIB))
            self.ctl(it, "set", "group", str(GID), "total.memory=16M")
            self.assertEqual((self.left(sure), self.left(other)), ((24, 24), (16, 0)))
            sure.ask("memory_alloc", count=24 * MIB)
            self.assertEqual(self.left(sure), (24, 0))
            granted = [client.ask("limits_query") for client in (sure, other)]
            self.assertEqual([one["memory_limit"] for one in granted], [24 * MIB, 16 * MIB])
            self.assertEqual([one["memory_request"] for one in granted], [24 * MIB, 0])


if __name__ == "__main__":
    unittest.main()
