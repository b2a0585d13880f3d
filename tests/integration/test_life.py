#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The life of CUDA programs: two runtimes, contexts of their own, forks, threads that exit, libraries that come and go, the end."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, Server, run  # noqa: E402

RUNTIMES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
PROGRAM = os.path.join(BUILD, "tests/programs/cudart/life")
PLUGINS = os.path.join(BUILD, "tests/programs/cudart/library")


@unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
class Life(unittest.TestCase):
    def run_everywhere(self, mode, expected="right\n"):
        ended = run(PROGRAM, mode, PLUGINS, LD_LIBRARY_PATH=SOFTGPU + ":" + RUNTIMES, GPUSHARE_SOCKET="/nowhere")
        self.assertEqual((ended.returncode, ended.stdout), (0, expected), ended.stderr)
        with Server() as server:
            ended = run(PROGRAM, mode, PLUGINS, LD_LIBRARY_PATH=RUNTIMES, GPUSHARE_SOCKET=server.client)
            self.assertEqual((ended.returncode, ended.stdout), (0, expected), ended.stderr + server.text())

    def test_both_runtimes_share_one_context_in_one_process(self):
        self.run_everywhere("both")

    def test_a_current_context_of_the_driver_wins_over_the_primary_one(self):
        self.run_everywhere("context")

    def test_a_child_gets_cudas_error_where_its_parent_had_begun_and_works_elsewhere(self):
        self.run_everywhere("fork")

    def test_threads_that_exit_leave_their_work_and_no_descriptor(self):
        self.run_everywhere("threads")

    def test_handlers_and_destructors_call_after_exit(self):
        self.run_everywhere("exit", "freed\nunregistered\n")

    def test_work_that_does_not_end_keeps_no_process_from_ending(self):
        self.run_everywhere("endless", "unregistered\n")

    def test_a_library_is_unloaded_beside_launches_with_its_work_in_flight(self):
        self.run_everywhere("unload")

    def test_a_library_takes_its_runtime_away(self):
        self.run_everywhere("unload-all")

    def test_the_driver_is_closed_with_work_in_flight(self):
        self.run_everywhere("unload-driver")


if __name__ == "__main__":
    unittest.main()
