#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/architecture.md lists what gpushare has of its own though a library or a tool does it too; the
first comment of each such file says why, and no other file says so."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FOLDERS = ("client", "common", "make", "schemas", "server", "tests")
REASON = "Why our " + "own: "  # in two parts, so that this file is not found


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def sources():
    for folder in FOLDERS:
        for at, _, files in os.walk(os.path.join(ROOT, folder)):
            for name in files:
                if name.endswith((".c", ".h", ".py", ".mk", ".sh")) or "." not in name:
                    yield os.path.relpath(os.path.join(at, name), ROOT)


class Own(unittest.TestCase):
    def test_the_table_lists_the_files_that_give_a_reason(self):
        section = text_of("docs/architecture.md").split("\n## What we wrote ourselves, and why\n", 1)[1].split("\n## ", 1)[0]
        listed = re.findall(r"^\|[^|]*\| `([^`]*)` \|", section, re.M)
        self.assertEqual(sorted(listed), sorted(path for path in sources() if REASON in text_of(path)))
        self.assertGreater(len(listed), 10)
        for path in listed:
            first = re.split(r"^(?:#include|import|from) ", text_of(path), maxsplit=1, flags=re.M)[0]
            self.assertIn(REASON, first, f"{path}: it does not stand in the first comment")


if __name__ == "__main__":
    unittest.main()
