#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A program that clears its environment, asks for more than it may have, or opens the server's socket itself gains nothing: it has
what the administrator's configuration gives to everybody."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from configured_server import Case  # noqa: E402
from private_server import BUILD, ENV, GPUSHARE, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
TENANT = os.path.join(BUILD, "tests/programs/tenant/tenant")
MIB = 1 << 20
UID = os.getuid()
MEMORY, HOST, USER_MEMORY, USER_HOST = 64 * MIB, 32 * MIB, 96 * MIB, 48 * MIB
CONFIGURATION = f"""
clients:
  memory: {{limit: 64M}}
  host_memory: {{limit: 32M}}
  threads: {{limit: 25%}}
  priority: 5
users: [{{uid: {UID}, memory: {{limit: 96M}}, host_memory: {{limit: 48M}}}}]
"""
# A quarter of 132 multiprocessors, in SM groups of 8.
MULTIPROCESSORS = 32
MOST = (1 << 64) - 2  # the largest number that is no special one


class Environment(Case):
    """env: what a program's own environment is replaced by, before it calls CUDA first."""

    def share(self, it, *around, **env):
        words = [f"{key}={value}" for key, value in {**ENV, **env}.items()]
        ended = run(*around, "env", "-i", "LD_LIBRARY_PATH=" + LIBRARIES, *words, PROGRAM, "share", **env)
        self.assertEqual(ended.returncode, 0, ended.stderr + it.server.text())
        return tuple(map(int, ended.stdout.split()))

    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one, and the auditor comes before it")
    def test_a_program_that_clears_its_environment_has_what_everybody_has(self):
        with self.configured(CONFIGURATION) as it:
            # Where the library looks by itself.
            os.symlink(it.server.folder, it.server.file("gpushare"))
            around = (GPUSHARE, "run", "--socket", it.server.client, "--memory", "16M", "--threads", "10%")
            self.assertEqual(self.share(it, *around, XDG_RUNTIME_DIR=it.server.folder), (MULTIPROCESSORS, MEMORY))
            # The options act where the environment stays, so they are what is cleared.
            kept = run(*around, PROGRAM, "share")
            self.assertEqual(kept.returncode, 0, kept.stderr)
            multiprocessors, memory = map(int, kept.stdout.split())
            self.assertEqual(memory, 16 * MIB)
            self.assertLess(multiprocessors, MULTIPROCESSORS)
            os.unlink(it.server.file("gpushare"))

    def test_a_program_that_asks_for_all_has_what_everybody_has(self):
        for wish in ({"GPUSHARE_MEMORY_LIMIT": "100%", "GPUSHARE_THREADS_LIMIT": "100%"},
                     {"GPUSHARE_MEMORY_LIMIT": str(1 << 50), "GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "100"},
                     {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1024G", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"}):
            with self.subTest(wish=wish), self.configured(CONFIGURATION) as it:
                self.assertEqual(self.share(it, GPUSHARE_SOCKET=it.server.client, **wish), (MULTIPROCESSORS, MEMORY))

    def test_its_launches_stay_where_everybodys_are(self):
        with self.configured(CONFIGURATION) as it:
            ended = run(TENANT, "launches", LD_LIBRARY_PATH=LIBRARIES, GPUSHARE_SOCKET=it.server.client, GPUSHARE_THREADS_LIMIT="100%")
            self.assertEqual(ended.returncode, 0, ended.stderr + it.server.text())
            first, *ways = ended.stdout.splitlines()
            self.assertEqual(first, f"multiprocessors {MULTIPROCESSORS}")
            self.assertEqual(len(ways), 9 * 4)
            for way in ways:
                self.assertLessEqual(int(way.rsplit(" ", 1)[1]), MULTIPROCESSORS, way)


class Socket(Case):
    def connect(self, it, **wishes):
        client = RawClient(it.server.client)
        self.addCleanup(client.close)
        return client, client.attach(**wishes)

    def take_all(self, client, message, unit, words):
        """Allocates until it is refused with these words. Returns the sum."""
        taken = 0
        with self.assertRaisesRegex(RuntimeError, words):
            while taken <= 1 << 40:
                client.ask(message, count=unit)
                taken += unit
        return taken

    def test_no_wish_of_its_own_is_more_than_the_configuration(self):
        with self.configured(CONFIGURATION) as it:
            whole = {"memory_limit": MOST, "host_memory_limit": MOST, "threads_limit": 10000, "priority": 0}
            # A claim about where a value comes from changes nothing either.
            claims = {f"sources_{name}_limit": 1 for name in ("memory", "host_memory", "threads")}
            for wishes in ({}, whole, {**whole, **claims}):
                with self.subTest(wishes=wishes):
                    granted = it.granted(**wishes)
                    self.assertEqual((granted["memory_limit"], granted["host_memory_limit"], granted["threads_limit"], granted["priority"]),
                                     (MEMORY, HOST, 2500, 5))

    def test_it_is_refused_what_is_above_the_configuration(self):
        with self.configured(CONFIGURATION) as it:
            client, _ = self.connect(it, memory_limit=MOST, host_memory_limit=MOST)
            self.assertEqual(self.take_all(client, "memory_alloc", 2 * MIB, "device memory limit of this client"), MEMORY)
            self.assertLessEqual(self.take_all(client, "host_alloc", MIB, "pinned host memory limit of this client"), HOST)

    @CHANGES
    def test_several_connections_have_no_more_than_their_user(self):
        with self.configured(CONFIGURATION) as it:
            sums = {"memory_alloc": 0, "host_alloc": 0}
            for _ in range(4):
                client, _ = self.connect(it, memory_limit=MOST, host_memory_limit=MOST)
                for message in sums:
                    sums[message] += self.take_all(client, message, 2 * MIB, "limit|total")
            self.assertEqual(sums["memory_alloc"], USER_MEMORY)
            self.assertLessEqual(sums["host_alloc"], USER_HOST)
            self.assertGreater(sums["host_alloc"], HOST)

    def test_a_second_attach_changes_nothing(self):
        with self.configured(CONFIGURATION) as it:
            client, granted = self.connect(it)
            self.assertEqual(granted["memory_limit"], MEMORY)
            with self.assertRaises(RuntimeError):
                client.ask("attach", memory_limit=MOST, host_memory_limit=MOST)
            it.wait_until_alone()


if __name__ == "__main__":
    unittest.main()
