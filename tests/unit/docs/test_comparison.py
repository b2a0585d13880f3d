#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""README's comparison: a cell of gpushare leads to a test that shows it, each other cell to a document with a date. It stands once."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
HEADING = "## Beside the other ways to share"
WAYS = ["gpushare", "MPS v3", "time-slicing", "MIG", "vGPU", "HAMi", "nvshare", "Run:ai"]
# What no model of a GPU can show. The page says it in words.
UNTESTED = {"cache and bandwidth divided": "docs/sharing.md#what-is-not-isolated"}
# The case of each test that shows the cell of gpushare.
CASES = {
    "kernels of several clients at once": "a_crowd_is_served_beside_an_endless_kernel",
    "sizes": "kernels_stay_on_the_multiprocessors_granted",
    "multiprocessors of one's own": "own_multiprocessors_are_lent_while_idle_and_come_back_in_time",
    "shares of time": "strict_shares_hold_among_programs",
    "limits change while it runs": "test_limits_of_a_running_client",
    "memory limit": "device_memory_is_refused_beyond_the_limit_and_returned_by_free",
    "limits hold against the client": "test_it_is_refused_what_is_above_the_configuration",
    "memory protected from other kernels": "a_stray_store_reaches_a_neighbours_memory",
    "a fault stays with its author": "a_stream_in_flight_is_interrupted_and_no_other",
    "clients on a GPU": "a_thousand_clients_at_once_each_get_their_64_mib",
    "CUDA programs as they are": "test_programs_of_both_runtimes_run",
}
DATED = re.compile(r"\b(January|February|March|April|May|June|July|August|September|October|November|December) 20\d\d$")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class Comparison(unittest.TestCase):
    def setUp(self):
        self.section = text_of("README.md").split(f"\n{HEADING}\n")[1].split("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.section.splitlines() if line.startswith("|")]
        self.assertEqual(rows[0], [""] + WAYS)
        self.rows = rows[2:]
        self.documents = {name: (url, date) for name, url, date in re.findall(r'^\[([\w-]+)\]: (\S+) "([^"]+)"$', self.section, re.M)}

    def test_each_cell_of_ours_leads_to_a_case_that_is_run(self):
        self.assertEqual({row[0] for row in self.rows}, CASES.keys() | UNTESTED.keys())
        for name, ours, *_ in self.rows:
            path = re.match(r"\[[^]]+\]\(([^)]+)\)", ours)[1]
            if name in UNTESTED:
                self.assertEqual(path, UNTESTED[name])
                continue
            self.assertRegex(path, r"^tests/(integration|unit|abuse)/[\w/]*test_\w+\.(c|py)$", name)
            text, case = text_of(path), CASES[name]
            self.assertRegex(text, rf"(?m)^(static void {case}\(|    def {case}\()", f"{name}: {path}")
            # A case that is in no list never runs; unittest finds its own.
            self.assertTrue(path.endswith(".py") or len(re.findall(rf"\b{case}\b", text)) > 1, f"{path}: {case} is not run")

    def test_each_other_cell_leads_to_a_dated_document(self):
        named = set()
        for name, _, *others in self.rows:
            self.assertEqual(len(others), len(WAYS) - 1, name)
            for way, cell in zip(WAYS[1:], others):
                found = re.fullmatch(r"\[[^]]+\]\[([\w-]+)\]", cell)
                self.assertTrue(found and found[1] in self.documents, f"{name}, {way}: {cell}")
                named.add(found[1])
        self.assertEqual(named, set(self.documents), "documents that no cell leads to")
        for name, (url, date) in self.documents.items():
            self.assertRegex(url, r"^https://\S+$", name)
            self.assertRegex(date, DATED, name)

    def test_the_list_below_the_table_names_each_document(self):
        listed = self.section.split("### Documents of the table")[1]
        for name in self.documents:
            self.assertRegex(listed, rf"\]\[{name}\]", name)

    def test_cells_are_short(self):
        for row in self.rows:
            for cell in row:
                self.assertLessEqual(len(re.sub(r"\]\([^)]*\)|\]\[[^]]*\]|[\[*]", "", cell).split()), 8, cell)

    def test_the_page_about_sharing_refers_to_it(self):
        page = text_of("docs/sharing.md")
        self.assertIn("(../README.md#beside-the-other-ways-to-share)", page)
        self.assertNotRegex(page, r"(?m)^\|.*\bMIG\b.*\bvGPU\b.*\|$", "a second table")


if __name__ == "__main__":
    unittest.main()
