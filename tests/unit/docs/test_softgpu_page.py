#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/softgpu.md has every variable that the software GPU reads, and no other. Each behaviour has a source, and each variable a
test that sets it."""
import os
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


PAGE = text_of("docs/softgpu.md")


def rows(heading):
    """The cells of each row of the table under a heading of columns."""
    lines = PAGE[PAGE.index(heading):].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def values():
    """{variable: (usual value, strict value)} of the settings' table."""
    table = subprocess.run([os.path.join(BUILD, "tests/programs/tables/tables"), "softgpu"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout
    return {variable: (float(usual), float(strict)) for variable, usual, strict in map(str.split, table.splitlines())}


class SoftgpuPage(unittest.TestCase):
    def test_every_variable_stands_in_one_table(self):
        read = set(re.findall(r"^softgpu (\w+) = read$", text_of("tests/interface/variables.txt"), re.M))
        told = [name for row in rows("| behaviour |") for name in re.findall(r"`([A-Z_]+)`", row[1])]
        told += [name for row in rows("| variable |") for name in re.findall(r"`([A-Z_]+)`", row[0])]
        self.assertGreater(len(told), 20)
        self.assertEqual(sorted(told), sorted(read))

    def test_every_behaviour_has_a_source_and_two_values(self):
        for behaviour, _, usual, strict, source, _ in rows("| behaviour |"):
            self.assertRegex(source, r"^(header|document|report|assumed)\b", behaviour)
            for value in (usual, strict):
                float(value)

    def test_values_are_those_of_the_code(self):
        code = values()
        for behaviour, variable, *told, _, _ in rows("| behaviour |"):
            self.assertEqual(tuple(map(float, told)), code[re.search("`(.+?)`", variable).group(1)], behaviour)

    def test_every_call_that_takes_the_lock_has_its_row(self):
        words = {"DRAINS": "draining", "UNSURE": "unsure", "LOCKS": "locking"}
        code = {call: words[kind] for call, kind in re.findall(r"X\(\w+, (cu\w+), (\w+)\)", text_of("server/softgpu/context_call.h"))}
        told = {re.search("`(cu\\w+)`", call).group(1): kind for call, kind, *_ in rows("| call |")}
        self.assertGreater(len(code), 15)
        self.assertEqual(told, code)

    def test_the_class_of_a_call_follows_what_was_seen(self):
        """A call that was seen to wait drains; one that was seen not to may be unsure, where a source says otherwise."""
        seen = {"draining": ("waits", "not asked"), "unsure": ("does not wait",), "locking": ("does not wait", "not asked")}
        made = {"draining": "in windows", "unsure": "as it was seen to be", "locking": "at once"}
        for call, kind, was, source, worker in rows("| call |"):
            self.assertIn(was, seen[kind], call)
            self.assertIn(worker, (made[kind], "never"), call)
            self.assertRegex(source, r"^(header|document|report|assumed)\b", call)

    def test_every_variable_names_a_test_that_sets_it(self):
        named = [(row[1], row[-1]) for row in rows("| behaviour |")] + [(row[0], row[-1]) for row in rows("| variable |")]
        for cell, test in named:
            variable = re.search("`([A-Z_]+)`", cell).group(1)
            self.assertRegex(test, r"^`test_\w+`$", variable)
            name = test.strip("`")
            path = f"tests/unit/softgpu/{name}.c"
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), f"{variable}: there is no {path}")
            code = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S)
            self.assertIn(f'"{variable}"', code, f"{path} does not set {variable}")


if __name__ == "__main__":
    unittest.main()
