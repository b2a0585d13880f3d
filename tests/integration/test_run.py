#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare run: a CUDA program finds gpushare's libraries wherever it looks, and has the limits of the command line."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, GPUSHARE, Server, run  # noqa: E402

LOADER = os.path.join(BUILD, "tests/programs/loader")
RPATH, RUNPATH = (os.path.join(LOADER, name) for name in ("ask_rpath", "ask_runpath"))
DECOY = os.path.join(LOADER, "decoy/libcuda.so.1")
SHARE = os.path.join(BUILD, "tests/programs/dropin/program")
# The decoy's version, and the software GPU's.
FROM_DECOY, FROM_GPUSHARE = "1\n", "13000\n"


class CommandLine(unittest.TestCase):
    def refused(self, status, words, *command):
        ended = run(GPUSHARE, "run", *command)
        self.assertEqual((ended.returncode, ended.stdout), (status, ""), ended.stderr)
        self.assertIn(words, ended.stderr)

    def test_what_is_wrong_is_named(self):
        self.refused(2, "a program is missing")
        self.refused(2, "a program is missing", "--memory", "1G", "--")
        self.refused(2, "--threads: GPUSHARE_THREADS_LIMIT=\"300%\"", "--threads", "300%", "true")
        self.refused(2, "--memory: ", "--memory", "much", "true")
        self.refused(2, "--priority: ", "--priority", "-1", "true")
        self.refused(2, "no option --nothing", "--nothing", "true")
        self.refused(127, "/nonexistent/program", "/nonexistent/program")
        self.refused(126, "/etc/passwd", "/etc/passwd")

    def test_help_names_each_option(self):
        text = run(GPUSHARE, "run", "--help").stdout
        for option in ("threads", "memory", "fraction", "priority", "device", "name", "socket"):
            self.assertIn("--" + option, text)
        self.assertIn("gpushare run", run(GPUSHARE, "--help").stdout)

    def test_the_programs_own_options_and_status_stay(self):
        ended = run(GPUSHARE, "run", "--name", "mine", "sh", "-c", "echo $0 $GPUSHARE_CLIENT_NAME; exit 7", "--memory")
        self.assertEqual((ended.returncode, ended.stdout), (7, "--memory mine\n"), ended.stderr)

    def test_without_its_libraries_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(GPUSHARE, folder)
            ended = run(alone, "run", "true")
            self.assertEqual(ended.returncode, 126)
            self.assertIn("libgpushare-audit.so can't be used", ended.stderr)


@unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one, and the auditor comes before it")
class Loader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop_well)

    def found(self, *command, expected=FROM_GPUSHARE, **env):
        ended = run(GPUSHARE, "run", "--socket", self.server.client, *command, **env)
        self.assertEqual((ended.returncode, ended.stdout), (0, expected), ended.stderr)

    def test_the_decoy_is_in_the_way(self):
        for program in (RPATH, RUNPATH):
            self.assertEqual(run(program).stdout, FROM_DECOY)
            self.assertEqual(run(program, "exec").stdout, FROM_DECOY)
            self.assertEqual(run(program, DECOY).stdout, FROM_DECOY)
        tags = subprocess.run(["readelf", "-d", RPATH, RUNPATH], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("(RPATH)", tags)
        self.assertIn("(RUNPATH)", tags)

    def test_a_program_with_an_rpath_finds_gpushare(self):
        self.found(RPATH)

    def test_a_program_with_a_runpath_finds_gpushare(self):
        self.found(RUNPATH)

    def test_a_library_that_is_opened_by_an_absolute_path_is_gpushares(self):
        self.found(RUNPATH, DECOY)
        self.found(RUNPATH, "libcuda.so")

    def test_a_program_that_the_program_executes_finds_gpushare(self):
        self.found(RPATH, "exec")
        self.found("sh", "-c", RUNPATH)

    def test_library_path_does_not_matter(self):
        self.found(RUNPATH, LD_LIBRARY_PATH=os.path.dirname(DECOY))

    def test_limits_of_the_command_line_hold(self):
        ended = run(GPUSHARE, "run", "--socket", self.server.client, "--memory", "256M", "--threads", "50%", SHARE, "share",
                    GPUSHARE_MEMORY_LIMIT="1G")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        multiprocessors, memory = map(int, ended.stdout.split())
        self.assertEqual(memory, 256 << 20)
        self.assertLess(multiprocessors, 100)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    def test_a_program_that_nvcc_built_runs(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/cudart/vector_add.cu")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "vector_add")
            subprocess.run(["nvcc", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75", "-o", program, source], check=True)
            self.found(program, expected="right\n")


if __name__ == "__main__":
    unittest.main()
