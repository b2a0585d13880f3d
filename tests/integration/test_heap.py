#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Kernels that allocate memory, and their stacks: on the software GPU alone, and as clients, through the drop-in libcuda.so.1."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, GPUSHARED, SECONDS, Server, run  # noqa: E402

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
        ended = run(PROGRAM, "heap-limit", **self.environment())
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{8 << 20}\n"), ended.stderr)
        self.assertRegex(ended.stderr, r"(?m)^gpushare: kernels of all programs allocate from one heap of 8M on this GPU, so a limit of 8388609B "
                                       r"\(.*\) is refused; ask for less, or have gpushared started with --kernel-heap 8388609B$")


    def test_a_stack_is_made_room_for(self):
        self.assert_right("stack-limit")
        self.assertIn("there is room for 8192 bytes of local memory a thread", self.server.text())


class Larger(unittest.TestCase):
    def test_a_stack_that_the_device_has_no_room_for_is_refused_and_nothing_else(self):
        with Server(env={"SOFTGPU_LIMIT_RESERVES": "2"}) as server:
            ended = run(PROGRAM, "stack-too-large", LD_LIBRARY_PATH=LIBRARIES, GPUSHARE_SOCKET=server.client)
            self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr + server.text())
            self.assertIn("could not make room for 262144 bytes of local memory", server.text())

    def test_the_operator_gives_all_gpus_another_size(self):
        with Server("--kernel-heap", "48M", env={"SOFTGPU_DEVICES": "2"}) as server:
            for number in "01":
                ended = run(PROGRAM, "heap-limit", LD_LIBRARY_PATH=LIBRARIES, GPUSHARE_SOCKET=server.client, CUDA_VISIBLE_DEVICES=number)
                self.assertEqual((ended.returncode, ended.stdout), (0, f"{48 << 20}\n"), ended.stderr + server.text())

    def test_it_takes_memory_that_clients_would_have(self):
        for heap, status in (("64M", 0), ("512M", 1)):
            with Server("--kernel-heap", heap, env={"SOFTGPU_MEMORY": "1G"}) as server:
                ended = subprocess.run([PROGRAM, "fill"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       timeout=SECONDS, check=False,
                                       env={**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": server.client})
                self.assertEqual(ended.returncode, status, ended.stderr + server.text())
                self.assertEqual("OUT_OF_MEMORY" in ended.stderr, status == 1, ended.stderr)

    def test_a_worker_that_is_lost_leaves_one_of_the_same_size(self):
        with Server("--kernel-heap", "16M", "--offender-wait", "0") as server:
            for _ in range(2):
                environment = {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": server.client}
                ended = run(PROGRAM, "heap-limit", **environment)
                self.assertEqual((ended.returncode, ended.stdout), (0, f"{16 << 20}\n"), ended.stderr + server.text())
                ended = run(PROGRAM, "heap-twice", **environment)
                self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr + server.text())

    def test_a_heap_that_does_not_fit_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "none.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write("{}\n")
            ended = subprocess.run([GPUSHARED, "--driver", "softgpu", "--kernel-heap", "64G", "--config", config,
                                    "--socket", os.path.join(folder, "c"), "--admin-socket", os.path.join(folder, "a")],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False, env=dict(ENV))
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("the driver did not make a heap of 64G for kernels that allocate", ended.stdout)
        self.assertIn("give gpushared a smaller --kernel-heap", ended.stdout)


if __name__ == "__main__":
    unittest.main()
