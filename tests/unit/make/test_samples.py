#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The list of NVIDIA's samples, and the verdicts on what they print: scripts stand in for the samples."""
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
FOLDER = os.path.abspath("tests/programs/samples")
sys.path.insert(0, FOLDER)
import samples  # noqa: E402

REASONS = {"graphics", "library", "texture", "graph", "tensor", "host", "ipc", "device", "build"}


class List(unittest.TestCase):
    def test_each_line_says_run_or_why_not(self):
        names = []
        with open(os.path.join(FOLDER, "samples.txt"), encoding="utf-8") as file:
            for line in file:
                if line.startswith("#"):
                    continue
                name, what, how = line.rstrip("\n").split(None, 2)
                names.append(name)
                self.assertRegex(name, r"^\d_[A-Za-z_0-9]+/\w+$")
                if what == "run":
                    re.compile(how)
                else:
                    self.assertEqual((what, how in REASONS), ("out", True), line)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([sample.name for sample in samples.listed(["vectorAddD"])], ["0_Introduction/vectorAddDrv"])
        self.assertGreater(len(samples.listed([])), 60)


class Verdicts(unittest.TestCase):
    def judged(self, script, verdict="Test passed", limit=20):
        with tempfile.TemporaryDirectory() as folder:
            samples.OUT = folder
            sample = samples.Sample("0_Stand/in", verdict)
            program = samples.program_of(sample)
            os.makedirs(os.path.dirname(program))
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(program, 0o755)
            return samples.execute(sample, [], limit, {**samples.ENV}).outcome

    def test_what_it_prints_counts_more_than_its_status(self):
        self.assertEqual(self.judged("echo Test passed"), "right")
        self.assertEqual(self.judged("exit 0"), "wrong")  # nothing was executed
        self.assertEqual(self.judged("echo Test passed; echo Test failed!"), "wrong")
        self.assertEqual(self.judged("echo Test passed; exit 1"), "status 1")
        self.assertEqual(self.judged("kill -SEGV $$", "status"), "status -11")
        self.assertEqual(self.judged("echo Test passed", "status"), "right")
        self.assertEqual(self.judged("echo 3 Failures", "status"), "wrong")
        self.assertEqual(self.judged("echo 0 Failures", "status"), "right")

    def test_what_is_refused_or_waived_is_told_from_wrong(self):
        self.assertEqual(self.judged("echo 'code=801(cudaErrorNotSupported)'; exit 1"), "refused")
        self.assertEqual(self.judged("echo no second device, waiving; exit 2"), "waived")
        self.assertEqual(self.judged("exec sleep 60", limit=0.2), "late")


class Table(unittest.TestCase):
    def printed(self, **ways):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, way + ".json") for way in ways]
            for path, rows in zip(paths, ways.values()):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump([samples.Result(*row, "")._asdict() for row in rows], file)
            with contextlib.redirect_stdout(io.StringIO()) as text:
                differs = samples.table(paths)
            return differs, text.getvalue()

    def test_ways_are_counted_and_compared(self):
        differs, text = self.printed(straight=[("a", "right", 1), ("b", "right", 61), ("c", "waived", 1)],
                                     server=[("a", "right", 1), ("b", "status 1", 1), ("c", "waived", 1)])
        self.assertTrue(differs)
        self.assertIn("| straight | 3 | 2 | 1 | 0 | 0 | 0 | 1 |\n| server | 3 | 1 | 1 | 0 | 0 | 1 | 1 |\n", text)
        self.assertTrue(text.endswith("| b | right | status 1 |\n| c | waived | waived |\n"), text)

    def test_equal_outcomes_do_not_differ(self):
        self.assertFalse(self.printed(straight=[("a", "late", 9)], server=[("a", "late", 9)])[0])


if __name__ == "__main__":
    unittest.main()
