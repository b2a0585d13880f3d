#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Pages as a reader of Markdown sees them: tables are whole, paragraphs are short."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SEPARATOR = re.compile(r"\|[ :|-]+\|?$")
WORDS_MAX = 80


def pages():
    """The pages for readers, as pairs of path and lines; blocks of code are empty lines."""
    for path in sorted(glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs/*.md"))):
        with open(path, encoding="utf-8") as text:
            code, lines = False, []
            for line in text.read().split("\n"):
                fence = line.lstrip().startswith("```")
                lines.append("" if code or fence else line.rstrip())
                code ^= fence
        yield os.path.relpath(path, ROOT), lines


class Pages(unittest.TestCase):
    def test_a_row_of_a_table_stands_in_a_table(self):
        found, rows = [], 0
        for path, lines in pages():
            for i, line in enumerate(lines[:-1]):
                if line.startswith("|"):
                    rows += 1
                    if not lines[i - 1].startswith("|") and not SEPARATOR.match(lines[i + 1]):
                        found.append(f"{path}:{i + 1}: {line[:60]}")
        self.assertGreater(rows, 300, "the tables were not found")
        self.assertEqual(found, [], "rows that no header belongs to")

    def test_a_table_ends_with_an_empty_line(self):
        found = [f"{path}:{i + 2}: {lines[i + 1][:60]}" for path, lines in pages()
                 for i, line in enumerate(lines[:-1])
                 if line.startswith("|") and lines[i + 1] and not lines[i + 1].startswith("|")]
        self.assertEqual(found, [], "words that become a row of the table before them")

    def test_a_paragraph_has_at_most_80_words(self):
        found = []
        for path, lines in pages():
            # A link's definition is no prose.
            text = "\n".join("" if line.startswith(("|", "#")) or re.match(r"\[[\w-]+\]: ", line) else line for line in lines)
            for part in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )", text):
                if len(part.split()) > WORDS_MAX:
                    found.append(f"{path}: {len(part.split())} words: {' '.join(part.split())[:60]}")
        self.assertEqual(found, [], "long paragraphs")


if __name__ == "__main__":
    unittest.main()
