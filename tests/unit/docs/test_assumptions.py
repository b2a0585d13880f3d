#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/gpu-results.md says what is assumed of the driver: in which files, and which steps of the bundle ask a GPU.
And it names the tests of what a driver may do."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SOURCES = r"(header|document|report|assumed)\b"


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


PAGE = text_of("docs/gpu-results.md")
STEP_C = text_of("tests/programs/gpu/step.c")


def tables(first):
    """The cells of all rows below headers that begin with this column."""
    rows = []
    for table in re.findall(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M):
        rows += [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return rows


def steps():
    """The names of all steps."""
    names = {prefix + name for kind, prefix in (("FIRST", ""), ("CHECK", ""), ("QUESTION", ""), ("REST", ""), ("CALL", "blocks-"), ("ROW", "row-"),
                                                ("TEST", "test-"))
             for name in re.findall(rf'^    {kind}\("([\w-]+)"', STEP_C, re.M)}
    assert len(names) > 60, names
    return names


def steps_with_assumptions():
    body = STEP_C[STEP_C.index("step_assumptions[] = {"):]
    return set(re.findall(r'^    \{"([\w-]+)", "', body, re.M)) | {"blocks-" + name for name in re.findall(r'^    BLOCKING\("([\w-]+)"', body, re.M)}


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


class Assumptions(unittest.TestCase):
    def setUp(self):
        self.rows = tables("assumption")
        self.assertGreater(len(self.rows), 40)

    def test_each_has_a_source_and_a_consequence(self):
        for assumption, source, _, _, consequence in self.rows:
            self.assertRegex(source, SOURCES, assumption)
            self.assertTrue(consequence, assumption)

    def test_the_files_that_stand_on_it_exist(self):
        for assumption, _, files, _, _ in self.rows:
            self.assertTrue(quoted(files), assumption)
            for path in quoted(files):
                self.assertTrue(os.path.isfile(os.path.join(ROOT, path)), path)

    def test_a_call_that_is_named_is_made_there(self):
        """Of several that an assumption names, one: the others say when or after what."""
        for assumption, _, files, _, _ in self.rows:
            calls = [call for call in quoted(assumption) if re.fullmatch(r"cu[A-Z]\w+", call)]
            made = set(re.findall(r"\bcu[A-Z]\w+", " ".join(text_of(path) for path in quoted(files))))
            if not made & set(calls) and calls:
                self.fail(f"{assumption}: none of {calls} is in {quoted(files)}")

    def test_the_steps_exist(self):
        known = steps()
        for assumption, _, _, asked, _ in self.rows:
            self.assertTrue(asked == "none" or quoted(asked), assumption)
            self.assertLessEqual(set(quoted(asked)), known, assumption)

    def test_no_step_asks_what_is_not_told_here(self):
        asked = {step for row in self.rows for step in quoted(row[3])}
        # Calls that the server does not make.
        unused = {"blocks-memory-alloc", "blocks-memory-free", "blocks-memory-import"}
        self.assertEqual(sorted(steps_with_assumptions() - unused - asked), [])


def tests_of_rows():
    """For each row what the driver does, and the pairs of file and case; a shell script has no case."""
    rows = []
    for driver, _, named in tables("the driver"):
        pairs, path = [], None
        for name in quoted(named):
            if "/" in name:
                path = name
                pairs += [(path, "")] if path.endswith(".sh") else []
            else:
                pairs.append((path, name))
        rows.append((driver, pairs))
    return rows


class Tests(unittest.TestCase):
    def setUp(self):
        self.rows = tests_of_rows()
        self.assertGreater(len(self.rows), 10)

    def test_each_row_has_a_mutant_of_a_test_that_it_names(self):
        """A Python script is a mutant's test as a whole."""
        mutants = set()
        for table in glob.glob(os.path.join(ROOT, "tests/programs/mutants/*.mutants")):
            mutants |= set(re.findall(r"^test: (\S+) ?(\S*)$", text_of(os.path.relpath(table, ROOT)), re.M))
        self.assertGreater(len(mutants), 100)
        for driver, pairs in self.rows:
            named = {(path, "" if path.endswith(".py") else case) for path, case in pairs}
            self.assertTrue(named & mutants, f"{driver}: no mutant turns one of {sorted(named)} red")

    def test_each_row_names_a_test_that_is_there(self):
        for driver, pairs in self.rows:
            self.assertTrue(pairs, driver)
            for path, case in pairs:
                text = text_of(path)
                if not case:
                    continue
                self.assertRegex(text, rf"(?m)^(static void {case}\(|    def {case}\()", driver)
                # A case that is in no list never runs; unittest finds its own.
                if path.endswith(".c"):
                    self.assertGreater(len(re.findall(rf"\b{case}\b", text)), 1, f"{path}: {case} is not run")


if __name__ == "__main__":
    unittest.main()
