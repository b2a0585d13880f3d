#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/programming.md has every function of the library beside the call of CUDA that client/gpushare.h compares it with, and no
function or error that is not there. tests/integration/test_interface.py compares the record of functions and errors with the
library. tests/integration/test_install.sh builds and runs the page's program."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def recorded(subject, row):
    """What stands in the group of each row of the record of an interface."""
    return set(re.findall(row, text_of(f"tests/interface/{subject}.txt"), re.M))


PAGE = text_of("docs/programming.md")
SECTION = PAGE.split("\n## From CUDA's calls to gpushare's\n", 1)[1]
FUNCTIONS = recorded("symbols", r"^libgpushare-client\.so (gpushare_\w+)@@\S+ = T$")
# A function with the comment before it. No program could print that: a compiler drops comments.
DESCRIBED = re.findall(r"/\*((?:(?!\*/).)*)\*/\s*GPUSHARE_API [^;(]*?\b(gpushare_\w+)\(", text_of("client/gpushare.h"), re.S)


def names(text, prefix):
    return set(re.findall(r"`(%s\w+)`" % prefix, text))


class ProgrammingPage(unittest.TestCase):
    def test_each_function_has_a_row(self):
        self.assertGreater(len(FUNCTIONS), 40)
        rows = "\n".join(line for line in SECTION.split("\n") if line.startswith("|"))
        self.assertEqual(names(rows, "gpushare_"), FUNCTIONS)

    def test_rows_have_the_call_that_the_header_names(self):
        checked = 0
        for comment, function in DESCRIBED:
            rows = "\n".join(line for line in SECTION.split("\n") if line.startswith("|") and f"`{function}`" in line)
            for call in re.findall(r"\b(cu[A-Z]\w+)", comment):
                self.assertIn(call, names(rows, "cu"), f"{function}: {rows}")
                checked += 1
        self.assertGreater(checked, 25)

    def test_errors_are_the_headers(self):
        rows = re.findall(r"^\| (`.*?) \|", PAGE.split("\n## When a call fails\n", 1)[1].split("\n## ", 1)[0], re.M)
        errors = set(re.findall(r"`(\w+)`", " ".join(rows)))
        self.assertGreater(len(errors), 5)
        self.assertLessEqual(errors, recorded("errors", r"^\d+ = GPUSHARE_ERROR_\w+ (\w+)$"))


if __name__ == "__main__":
    unittest.main()
