#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Each row of the bench is run to its end by a test, in its short form: a row that nobody runs can be broken for weeks."""
import json
import os
import re
import subprocess
import unittest

BUILD = os.environ.get("BUILD", "build")
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SCRIPTS = ("test_bench.sh", "test_bench_recovery.sh", "test_bench_shares.sh")


def rows_of(script):
    """The words of all lists of rows that the script gives to the bench, and the row that has to live on where another dies."""
    with open(os.path.join(ROOT, "tests/integration", script), encoding="utf-8") as file:
        text = file.read()
    lists = re.findall(r'^ *rows="([^"]*)"', text, re.M) + re.findall(r'/dies\.json" launch_async (\w+)', text)
    return [word for words in lists for word in words.replace("\\\n", " ").split() if word != "$rows"]


class Rows(unittest.TestCase):
    def test_scripts_run_each_row_once(self):
        listed = json.loads(subprocess.run([f"{BUILD}/tests/programs/bench/bench", "--list"], check=True, capture_output=True,
                                           timeout=20).stdout)
        run = [row for script in SCRIPTS for row in rows_of(script)]
        self.assertGreater(len(run), 40)
        self.assertEqual(sorted(run), sorted(row["name"] for row in listed))

    def test_a_script_that_has_a_list_is_one_of_these(self):
        folder = os.path.join(ROOT, "tests/integration")
        self.assertEqual(sorted(SCRIPTS), sorted(name for name in os.listdir(folder) if name.startswith("test_bench")))


if __name__ == "__main__":
    unittest.main()
