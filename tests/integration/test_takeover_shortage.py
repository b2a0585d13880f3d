#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Each call by which a server that takes over asks the system for something is failed in turn (tests/programs/shortage), beside a
client that works. The server goes on, or says in a sentence why it can't: then it ends all in order and starts afresh, or
ends itself, and the next one finds what there is. It never crashes or hangs, and no worker is left."""
import mmap
import os
import signal
import struct
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, SECONDS  # noqa: E402
import sanitizer  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import CLIENT_FDS, SurviveCase, await_true  # noqa: E402

# struct shortage: armed, fail_at, count, failed, name.
FORM = "<IIII32s"


class Shortage:
    def __init__(self):
        self.fd = os.memfd_create("shortage", 0)
        os.ftruncate(self.fd, mmap.PAGESIZE)
        self.page = mmap.mmap(self.fd, mmap.PAGESIZE)
        self.env = {"LD_PRELOAD": os.path.join(BUILD, "tests/programs/shortage/shortage.so"),
                    "SHORTAGE_FILE": f"/proc/{os.getpid()}/fd/{self.fd}"}

    def arm(self, call):
        struct.pack_into(FORM, self.page, 0, 1, call, 0, 0, b"")

    def disarm(self):
        struct.pack_into("<I", self.page, 0, 0)

    def read(self):
        """How many calls were failed, and the name of the last one."""
        _, _, _, failed, name = struct.unpack_from(FORM, self.page)
        return failed, name.split(b"\0")[0].decode()


@unittest.skipIf(sanitizer.is_there(), "a sanitizer has allocations of its own")
class TakeOver(SurviveCase):
    def next_server(self, manager, what):
        """Returns whether it serves."""
        begun = len(manager.text())
        manager.start(wait=False)
        end = time.monotonic() + SECONDS
        while "READY=1" not in manager.states:
            status = manager.process.poll()
            if status is not None:
                # libuv aborts where its loop or its threads can't be made, and says nothing. An assertion would speak. Nothing
                # has been kept anew by then, so the next server finds what this one found.
                if status == -signal.SIGABRT:
                    self.assertNotIn("ssertion", manager.text()[begun:], what)
                else:
                    self.assertGreater(status, 0, f"{what}: it crashed: {manager.text()[begun:]}")
                    self.assertRegex(manager.text()[begun:], "gpushared: .{20}", what)
                manager.settle()
                return False
            self.assertLess(time.monotonic(), end, f"{what}: it hangs: {manager.text()[begun:]}")
            time.sleep(0.001)
        manager.hear("READY=1")
        return True

    def test_each_failed_call(self):
        shortage, call, kept, ended, ends, failed = Shortage(), 1, 0, 0, 0, 1
        with Manager(env=shortage.env) as manager:
            client, = self.begin(manager, 1)
            while failed:
                manager.kill()
                shortage.arm(call)
                serves = self.next_server(manager, f"call {call}")
                failed, name = shortage.read()
                shortage.disarm()
                what = f"call {call} ({name})"
                if not serves:
                    ends += 1
                    self.assertTrue(self.next_server(manager, what), f"{what}: {manager.text()}")
                # It has finished a call that it began when all was over, or has been told.
                client.send_signal(signal.SIGTERM)
                if client.stdout.readline():
                    kept += 1
                else:
                    ended += 1
                    self.assertEqual(client.wait(SECONDS), 1, what)
                    self.assertGreater(len(client.stderr.read()), 60, what)
                self.end(client)
                await_true(lambda: len(manager.workers()) == 1, lambda: f"{what}: workers {manager.workers()}: {manager.text()}")
                client, = self.begin(manager, 1)
                call += 1
            self.no_call_failed(manager, [client])
            await_true(lambda: self.charged(manager) == 0, lambda: f"{self.charged(manager)} bytes stay charged: {manager.text()}")
            # A server without memory for its ledger or for code does without.
            one = {"s": 1, "w": 1, "p": 1, "b": 1}
            await_true(lambda: {letter: count for letter, count in self.stored(manager).items() if letter != "d"} == one and
                       self.stored(manager)["d"] <= 3 + CLIENT_FDS, lambda: f"{self.stored(manager)}: {manager.text()}")
        print(f"each of {call - 2} calls was failed: {kept} times the client went on, {ended} times it was told, {ends} servers ended")


if __name__ == "__main__":
    unittest.main(verbosity=2)
