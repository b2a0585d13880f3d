#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/numbers.md says of each row once whether it is met: in its table, and in the section that explains the row."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
NOT_MET, WERE_NOT_MET = "## Rows that are not met", "## Rows that were not met"


class Numbers(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "docs/numbers.md"), encoding="utf-8") as page:
            self.text = page.read()
        self.judged = {cells[1].strip(" `"): cells[-2].strip() for cells in
                       (line.split("|") for line in self.text.splitlines() if re.match(r"\| `\w+` \|.*\| (not )?met[^|]*\|$", line))}
        self.assertGreater(len(self.judged), 40, "the table was not found")

    def section(self, title):
        return self.text.split(title + "\n")[1].split("\n## ")[0]

    def test_each_row_that_is_not_met_is_explained(self):
        explained = re.findall(r"^\* `(\w+)`", self.section(NOT_MET), re.MULTILINE)
        self.assertEqual(sorted(explained), sorted(name for name, judged in self.judged.items() if judged.startswith("not met")))

    def test_rows_that_were_not_met_are_met(self):
        explained = re.findall(r"^`(\w+)` was ", self.section(WERE_NOT_MET), re.MULTILINE)
        self.assertGreater(len(explained), 2, "the section was not found")
        self.assertEqual([name for name in explained if self.judged[name] != "met"], [])


if __name__ == "__main__":
    unittest.main()
