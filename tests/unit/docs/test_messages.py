#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The table in common/messages.h is what users read: each of its rows is used somewhere."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TABLES = sorted(glob.glob(os.path.join(ROOT, "common/messages*.h")))


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources():
    """Path and text of each source that is built, but for the table."""
    found = {}
    for folder in ("client", "common", "server"):
        for ending in ("c", "h", "inc"):
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*." + ending), recursive=True):
                if path not in TABLES:
                    found[os.path.relpath(path, ROOT)] = text_of(path)
    return found


class Messages(unittest.TestCase):
    def test_each_row_is_used(self):
        rows = [name for path in TABLES for name in re.findall(r"^ {4}X\((\w+), [A-Z_]+,", text_of(path), re.M)]
        self.assertGreater(len(rows), 500)
        used = {name for text in sources().values() for name in re.findall(r"\bMESSAGE(?:_TEXT)?\((\w+)\)", text)}
        self.assertEqual([name for name in rows if name not in used], [])


if __name__ == "__main__":
    unittest.main()
