#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""HACKING.md speaks of this tree: files, functions and constants that it names are there."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FOLDERS = ("client", "common", "docs", "examples", "make", "schemas", "server", "systemd", "tests")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tree():
    """All files below the folders of sources, and the folders themselves, relative to the root."""
    found = set()
    for folder in FOLDERS:
        for at, folders, files in os.walk(os.path.join(ROOT, folder)):
            found |= {os.path.relpath(os.path.join(at, name), ROOT) for name in folders + files}
    return found | set(FOLDERS)


PAGE, TREE = text_of("HACKING.md"), tree()
PROSE = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
WORDS = re.findall(r"`([^`\n]+)`", PROSE)


class Hacking(unittest.TestCase):
    def test_paths_are_there(self):
        paths = [word for word in WORDS if re.match(r"(?:%s)/[\w./-]*$" % "|".join(FOLDERS), word)]
        self.assertGreater(len(paths), 40)
        for path in paths:
            self.assertIn(path.rstrip("/"), TREE)
        for link in re.findall(r"\]\(([\w./-]+)\)", PAGE):
            self.assertTrue(os.path.exists(os.path.join(ROOT, link)), link)

    def test_files_named_without_their_folder_are_somewhere(self):
        names = {os.path.basename(path) for path in TREE}
        bare = [word for word in WORDS if re.match(r"[\w-]+\.(?:c|h|py|sh|json|xml|inc|md)$", word)]
        self.assertGreater(len(bare), 10)
        for name in bare:
            if name != "admin-place.schema.json":  # the page's own example of a new file
                self.assertIn(name, names)

    def test_names_of_the_sources_are_in_them(self):
        sources = "".join(text_of(path) for path in TREE if re.search(r"\.(?:[ch]|py)$", path) and "test_hacking" not in path)
        names = [word for word in WORDS if re.match(r"[a-z]+_\w+$", word) or re.match(r"[A-Z]+_[A-Z_]+$", word)]
        self.assertGreater(len(names), 5)
        for name in names:
            if not name.endswith(("PLACE", "_")):
                self.assertRegex(sources, r"\b%s\b" % name)

    def test_functions_of_a_step_are_in_the_files_of_that_step(self):
        checked = 0
        sources = "".join(text_of(path) for path in TREE if re.search(r"\.(?:[ch]|py)$", path))
        for step in re.findall(r"^\d+\. (?:.+\n?(?!\d+\. ))+", PAGE, re.M):
            words = re.findall(r"`([^`\n]+)`", step)
            files = [path for path in TREE for word in words
                     if re.search(r"\.(?:[ch]|py)$", word) and ("/" + path).endswith("/" + word)]
            for name in [word for word in words if files and re.match(r"[a-z]+_\w+$", word)]:
                if not re.search(r"\b%s\(" % name, sources):
                    continue  # a member of a struct
                self.assertTrue(any(re.search(r"\b%s\(" % name, text_of(path)) for path in files), f"{name}: {step}")
                checked += 1
        self.assertGreater(checked, 6)

    def test_threads_of_a_worker_are_those_that_it_starts(self):
        worker = {path: text_of(path) for path in TREE if re.match(r"server/worker/.*\.c$", path)}
        started = set()
        for path, text in worker.items():
            for name in re.findall(r"\bthread_start\([^,]+, ([^,]+),", text):
                table = re.match(r"(\w+)\[\w+\]\.name$", name)
                if table:
                    (rows,) = re.findall(r"\b%s\[[^]]*\] = \{(.*?)\n?\};" % table[1], text, re.S)
                    started |= set(re.findall(r'"(\w+)"', rows))
                else:
                    self.assertRegex(name, r'^"\w+"$', path)
                    started.add(name.strip('"'))
        (told,) = re.findall(r"the threads are named ((?:`\w+`[,\s]+(?:and\s+)?)+)", PAGE)
        self.assertEqual(set(re.findall(r"\w+(?=`)", told)), started)

    def test_readme_leads_here(self):
        self.assertIn("(HACKING.md)", text_of("README.md"))


if __name__ == "__main__":
    unittest.main()
