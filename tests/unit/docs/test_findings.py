#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/findings.md names tests that are there, and that run."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
PATH = re.compile(r"tests/[\w/]+\.(?:c|py|sh)")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


def cases_of(cell):
    """The files of a cell, and of each the cases that follow it."""
    found = []
    for word in re.findall(r"`([^`]+)`", cell):
        if PATH.fullmatch(word):
            found.append((word, []))
        else:
            assert found, f"{word} follows no file"
            found[-1][1].append(word)
    return found


class Findings(unittest.TestCase):
    def setUp(self):
        rows = re.findall(r"^\| (.+) \| (.+) \|$", text_of("docs/findings.md"), re.M)
        self.rows = [row for row in rows if row != ("finding", "tests")]
        self.assertGreater(len(self.rows), 25)

    def test_each_names_tests_that_are_there(self):
        for finding, cell in self.rows:
            files = cases_of(cell)
            self.assertTrue(files, finding)
            for path, cases in files:
                text = text_of(path)
                self.assertEqual(bool(cases), not path.endswith(".sh"), finding)
                for case in cases:
                    self.assertRegex(text, rf"(?m)^(static void {case}\(|    def {case}\()", finding)
                    # A case that is in no list never runs; unittest finds its own.
                    if path.endswith(".c"):
                        self.assertGreater(len(re.findall(rf"\b{case}\b", text)), 1, f"{path}: {case} is not run")

    def test_no_finding_stands_twice(self):
        findings = [finding for finding, _ in self.rows]
        self.assertEqual(len(findings), len(set(findings)))


if __name__ == "__main__":
    unittest.main()
