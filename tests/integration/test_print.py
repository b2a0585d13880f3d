#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What kernels print reaches the standard output of their own process, through the drop-in libcuda.so.1."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, Server, run  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")


def lines_of(name, numbers):
    return ["name %d line %d" % (name, number) for number in numbers]


class Print(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop_well)

    def environment(self, **more):
        return {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": self.server.client, **more}

    def printed(self, mode, **more):
        ended = run(PROGRAM, mode, **self.environment(**more))
        self.assertEqual(ended.returncode, 0, ended.stderr + self.server.text())
        return ended.stdout.splitlines()

    def assert_same_but_for_threads(self, one, other):
        """Among threads any order will do, within one there is one. The software GPU alone prints at once, whatever waits."""
        def parts(lines):
            lines = lines[:lines.index("the stream is synchronized")]
            steps = [line for line in lines if line.startswith("thread ")]
            return [line for line in lines if line not in steps], sorted(steps, key=lambda line: int(line.split()[1]))
        self.assertEqual(parts(one), parts(other))

    def test_the_lines_are_those_of_the_software_gpu_alone(self):
        served = self.printed("print-all")
        straight = run(PROGRAM, "print-all", LD_LIBRARY_PATH=SOFTGPU, GPUSHARE_SOCKET="/nowhere")
        self.assertEqual(straight.returncode, 0, straight.stderr)
        self.assertIn("ab|qqqq|    qqqq|qq|0x1234|100%", served)
        self.assert_same_but_for_threads(served, straight.stdout.splitlines())

    def test_each_point_of_cuda_shows_what_was_printed_before(self):
        served = self.printed("print-all")
        for last, point in (("taken", "the context is synchronized"), ("thread ", "the stream is synchronized"),
                            ("name 1 line 5", "the module is unloaded"), ("name 1 line 6", "the context is reset")):
            self.assertTrue(served[served.index(point) - 1].startswith(last), (point, served))
        self.assertEqual(served[-1], "the context is reset")

    def test_formats_and_results_are_cudas(self):
        self.assertEqual(self.printed("print-more"),
                         ["    77|77    |77    |2.750", "(null)|%y|%5%|77", "12.500000three", "none", "results 3 0 -2"])

    def test_processes_that_print_at_once_each_see_their_own(self):
        processes = [subprocess.Popen([PROGRAM, "print-own"], stdout=subprocess.PIPE, text=True, env={**ENV, **self.environment()})
                     for _ in range(3)]
        for process in processes:
            text = process.communicate()[0]
            self.assertEqual((process.returncode, sorted(text.splitlines())), (0, sorted(lines_of(process.pid, range(3200)))))

    def test_the_oldest_is_written_over_when_there_is_no_room(self):
        served = self.printed("print-overflow")
        rounds = " ".join(served).split("synchronized")
        self.assertEqual(len(rounds), 3)
        for text in rounds[:2]:
            numbers = [int(number) for number in re.findall(r"name 3 line (\d+)", text)]
            # 65536 bytes, of which a line takes 48: a record's head, two numbers and the format.
            self.assertEqual(numbers, list(range(5000 - 65536 // 48, 5000)))

    def test_a_fault_neither_repeats_nor_keeps_text(self):
        served = self.printed("print-fault")
        self.assertEqual(served[:3], lines_of(7, (1, 2, 3)))
        seen = served.index("the fault is seen")
        # The line before the fault may be lost with the memory, which the server takes back.
        self.assertIn(served[3:seen], ([], lines_of(7, (0,))))
        self.assertEqual(served[seen + 1:], lines_of(7, (9,)))

    def test_the_ring_counts_as_pinned_memory(self):
        ended = run(PROGRAM, "print-all", **self.environment(GPUSHARE_HOST_MEMORY_LIMIT="768K"))
        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertRegex(ended.stderr, r"cuModuleLoadData\(.*CUDA_ERROR_OUT_OF_MEMORY")


if __name__ == "__main__":
    unittest.main()
