#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make simulate's program, on a part of its day: a table of four modes and a picture that shows its
numbers; shares are as promised in the modes that promise them, and the same each time."""
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SIMULATE = os.path.join(os.environ["BUILD"], "tests/programs/simulate/simulate")
CHART = os.path.join(os.path.dirname(__file__), "../programs/simulate/chart.py")
SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = ("busy", "error_p50", "error_p99", "error_most", "wait_p50", "wait_p99", "wait_most", "wait_request", "jain",
           "bursts", "pauses")


def simulate(folder, *arguments):
    return subprocess.run([SIMULATE, folder, *arguments], capture_output=True, text=True, check=False, timeout=150)


def rows(table):
    found = {}
    for line in table.splitlines():
        words = line.replace("|", " ").split()
        if len(words) == len(COLUMNS) + 1 and words[0] != "mode":
            found[words[0]] = dict(zip(COLUMNS, map(float, words[1:])))
    return found


class Simulate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.done = simulate(cls.folder, "6", "8")
        cls.rows = rows(cls.done.stdout)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_the_table_has_a_row_for_each_mode_and_stands_in_the_folder(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        self.assertTrue(self.done.stdout.startswith("6 hours, 8 GPUs, 125 clients\n"), self.done.stdout)
        self.assertEqual(list(self.rows), ["concurrent", "strict", "fair", "turns"])
        self.assertEqual(self.read("table.txt"), self.done.stdout)
        for mode, row in self.rows.items():
            with self.subTest(mode):
                self.assertGreater(row["bursts"], 500)
                self.assertEqual(row["bursts"], self.rows["fair"]["bursts"])
                self.assertGreater(row["pauses"], 10 * row["bursts"])  # a third of the clients have them
                self.assertLessEqual(row["error_p50"], row["error_p99"])
                self.assertLessEqual(row["error_p99"], row["error_most"] + 0.001)
                self.assertLessEqual(row["wait_p50"], row["wait_p99"])
                self.assertGreaterEqual(row["wait_most"], row["wait_request"])

    def test_shares_are_as_promised_where_they_are_promised(self):
        for mode in ("strict", "fair"):
            with self.subTest(mode):
                row = self.rows[mode]
                self.assertLess(abs(row["busy"] - 1), 0.01)
                self.assertLess(row["error_p50"], 0.3)
                self.assertLess(row["error_p99"], 1.5)
                self.assertGreater(row["jain"], 0.995)
        # The measure can fail: with turns of 30 s no client has an equal part of a burst of 50 s.
        self.assertGreater(self.rows["turns"]["error_p99"], 10)
        self.assertLess(self.rows["turns"]["jain"], 0.97)

    def test_the_yardstick_is_held_against_the_same_promises(self):
        lines = self.done.stdout.split("plain time-slicing", 1)[1].splitlines()
        sliced = {words[0]: [float(word) for word in words[1:]]
                  for words in (line.replace("|", " ").split() for line in lines) if words and words[0] in self.rows}
        self.assertEqual(list(sliced), ["strict", "fair"])
        for mode, (median, p99, most, jain) in sliced.items():
            with self.subTest(mode):
                self.assertLessEqual(median, p99)
                self.assertLessEqual(p99, most + 0.001)
                # Equal parts know of no requests.
                self.assertGreater(p99, 5 * self.rows[mode]["error_p99"])
                self.assertLess(jain, self.rows[mode]["jain"])

    def test_the_picture_shows_the_tables_numbers(self):
        subprocess.run([sys.executable, CHART, self.folder], check=True)
        svg = ElementTree.fromstring(self.read("table.svg"))
        self.assertEqual(svg.tag, SVG + "svg")
        texts = [node.text for node in svg.iter(SVG + "text")]
        for mode in self.rows:
            self.assertEqual(texts.count(mode), 4)
        # Each bar's number is the one of its mode and column: three digits behind the point below ten, none from there on.
        labels = [node for node in svg.iter(SVG + "text") if node.get("data-mode")]
        shown = {(node.get("data-mode"), COLUMNS[int(node.get("data-column")) - 1]): node.text for node in labels}
        self.assertEqual(len(labels), 16)
        self.assertEqual(shown, {(mode, column): f"{row[column]:.{3 if row[column] < 10 else 0}f}"
                                 for mode, row in self.rows.items() for column in ("busy", "error_p99", "wait_p99", "jain")})
        width, height = float(svg.get("width")), float(svg.get("height"))
        bars = [node for node in svg.iter(SVG + "rect") if node.get("x")]
        self.assertEqual(len(bars), 16)
        for label, bar in zip(labels, bars):
            self.assertEqual(float(label.get("x")), float(bar.get("x")), label.text)
        for panel in range(0, 16, 4):
            heights = [float(bar.get("height")) for _, bar in sorted(
                zip(labels[panel:panel + 4], bars[panel:panel + 4]), key=lambda pair: float(pair[0].text))]
            self.assertEqual(heights, sorted(heights), "a larger number has a higher bar")
        for bar in bars:
            self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")), width)
            self.assertLessEqual(float(bar.get("y")) + float(bar.get("height")), height)

    def test_it_is_the_same_each_time(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(simulate(folder, "6", "8").stdout, self.done.stdout)

    def test_wrong_arguments_are_refused(self):
        for arguments in (["0"], ["25"], ["1", "65"], ["1", "0"], ["x"]):
            with self.subTest(arguments):
                self.assertEqual(simulate(self.folder, *arguments).returncode, 2)
        self.assertEqual(simulate("/nowhere", "1", "1").returncode, 1)


if __name__ == "__main__":
    unittest.main()
