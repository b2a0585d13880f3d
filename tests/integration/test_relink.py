#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The commands of docs/unmodified.md by which a program with a static CUDA runtime is linked again, on the object that
examples/unmodified has, as nvcc made it."""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, GPUSHARE, Server, run  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
OBJECT = os.path.join(ROOT, "examples/unmodified/heat_%s.o" % platform.machine())
VERIFIED = r"^heat: 40 steps on \d+ multiprocessors, \d+ MiB: verified$"


def commands():
    """The page's commands, by what the remark behind each says."""
    with open(os.path.join(ROOT, "docs/unmodified.md"), encoding="utf-8") as page:
        found = re.findall(r"^(nvcc|c\+\+)( .*-o program program\.o.*?) +# (.+)$", page.read(), re.M)
    return {remark: command + words for command, words, remark in found}


@unittest.skipUnless(os.path.exists(OBJECT), "examples/unmodified has no object for this processor")
@unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
class Relink(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop_well)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "program")
        self.link = commands()
        self.assertEqual(sorted(self.link), ["a static runtime", "the same objects, linked again", "without nvcc"])
        shutil.copy(OBJECT, self.program + ".o")

    def made(self, remark):
        command = self.link[remark].replace("/usr/local/lib/gpushare", os.path.join(BUILD, "lib/gpushare"))
        subprocess.run(command.split(), cwd=os.path.dirname(self.program), check=True)

    def executed(self):
        return run(GPUSHARE, "run", "--socket", self.server.client, self.program, "40")

    def test_a_program_is_linked_again_without_nvcc(self):
        self.made("without nvcc")
        ended = self.executed()
        self.assertRegex(ended.stdout, re.compile(VERIFIED, re.M), ended.stderr)
        self.assertEqual(ended.returncode, 0)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    def test_a_program_with_a_static_runtime_is_linked_again(self):
        self.made("a static runtime")
        explained = run(GPUSHARE, "run", "--explain", self.program)
        self.assertEqual(explained.returncode, 1)
        self.assertIn("linked statically", explained.stdout)
        self.assertNotEqual(self.executed().returncode, 0)
        self.made("the same objects, linked again")
        self.assertEqual(run(GPUSHARE, "run", "--explain", self.program).returncode, 0)
        ended = self.executed()
        self.assertRegex(ended.stdout, re.compile(VERIFIED, re.M), ended.stderr)
        self.assertEqual(ended.returncode, 0)


if __name__ == "__main__":
    unittest.main()
