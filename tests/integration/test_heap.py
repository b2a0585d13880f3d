#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Kernels that allocate memory: on the software GPU alone, and as clients, through the drop-in libcuda.so.1."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, SECONDS, Server, run  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")


class Straight(unittest.TestCase):
    def test_a_program_has_the_device_to_itself(self):
        for mode in ("heap-calls", "heap-kept"):
            ended = run(PROGRAM, mode, LD_LIBRARY_PATH=SOFTGPU, GPUSHARE_SOCKET="/nowhere")
            self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr)


class Served(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop_well)

    def environment(self):
        return {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": self.server.client}

    def assert_right(self, mode):
        ended = run(PROGRAM, mode, **self.environment())
        self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr + self.server.text())
        return ended.stderr

    def test_a_client_allocates_as_it_would_alone(self):
        self.assert_right("heap-calls")

    def test_blocks_outlive_their_module(self):
        self.assert_right("heap-kept")

    def test_clients_that_allocate_at_once_never_have_the_same_block(self):
        programs = [subprocess.Popen([PROGRAM, "heap-together"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env={**ENV, **self.environment()}) for _ in range(3)]
        for program in programs:
            self.assertEqual(program.stdout.readline(), "ready\n")
        for program in programs:
            program.stdin.close()
        for program in programs:
            with program:
                self.assertEqual((program.stdout.read(), program.wait(SECONDS)), ("right\n", 0), self.server.text())

    def test_a_block_that_is_freed_twice_ends_the_work_of_its_client_with_a_line(self):
        self.assert_right("heap-twice")
        self.assertRegex(self.server.text(), r"misuse of the heap in heap_free, block \(0,0,0\), thread \(0,0,0\), PTX line \d+: "
                                             r"free of 0x[0-9a-f]+, which was freed before")

    def test_a_larger_heap_is_refused_with_what_to_do(self):
        said = self.assert_right("heap-limit")
        self.assertEqual(len(re.findall(r"^gpushare: .*cuCtxSetLimit.*$", said, re.M)), 1, said)


if __name__ == "__main__":
    unittest.main()
