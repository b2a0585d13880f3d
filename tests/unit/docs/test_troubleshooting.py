#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/troubleshooting.md has a symptom for each message, and docs/messages.md lists each message below it. Commands that the page
names are there. tests/integration/test_interface.py holds the record of messages to --list-messages."""
import collections
import fnmatch
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "common"))
import generate_messages  # noqa: E402  pylint: disable=wrong-import-position

text_of = generate_messages.text_of
KNOWN = generate_messages.symptoms()
NAMES = [message.name for message in generate_messages.messages()]


class Troubleshooting(unittest.TestCase):
    def test_the_generator_reads_every_message(self):
        recorded = re.findall(r"^(?:gpushared )?(\w+) = ", text_of("tests/interface/messages.txt"), re.M)
        self.assertGreater(len(recorded), 500)
        self.assertEqual(sorted(NAMES), sorted(recorded))

    def test_every_message_belongs_to_a_symptom(self):
        self.assertEqual([name for name in NAMES if not generate_messages.symptom_of(name, KNOWN)], [],
                         "add these names to a comment of docs/troubleshooting.md, below the symptom that a reader sees")

    def test_every_name_of_a_symptom_is_a_message(self):
        self.assertEqual([(symptom.title, pattern) for symptom in KNOWN for pattern in symptom.patterns if not fnmatch.filter(NAMES, pattern)], [])

    def test_every_symptom_has_messages_and_words(self):
        used = {generate_messages.symptom_of(name, KNOWN).title for name in NAMES}
        self.assertEqual([symptom.title for symptom in KNOWN if symptom.title not in used], [])
        for title, part in re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", text_of("docs/troubleshooting.md"), re.M):
            self.assertGreater(len(re.sub(r"<!--[\s\S]*?-->", "", part).split()), 15, title)
            self.assertIn(title, [symptom.title for symptom in KNOWN] + ["Where to look"])

    def test_the_list_is_the_generators(self):
        self.assertTrue(generate_messages.page() == text_of("docs/messages.md"), "docs/messages.md is old: make messages")

    def test_no_pattern_fits_as_well_as_another(self):
        for name in NAMES:
            fitting = collections.Counter(len(pattern.replace("*", "")) for symptom in KNOWN for pattern in symptom.patterns if fnmatch.fnmatchcase(name, pattern))
            self.assertEqual(fitting[max(fitting)], 1, name)

    def test_commands_are_there(self):
        commands = set(re.findall(r"^gpusharectl ([a-z-]+) = command$", text_of("tests/interface/flags.txt"), re.M))
        named = set(re.findall(r"`gpusharectl ([a-z-]+)", text_of("docs/troubleshooting.md")))
        self.assertGreater(len(named), 5)
        self.assertLessEqual(named, commands)
        options = set(re.findall(r"^[a-z-]+ (--[a-z-]+) = ", text_of("tests/interface/flags.txt"), re.M)) | {"--explain", "--bundle"}
        page = re.sub(r"<!--[\s\S]*?-->", "", text_of("docs/troubleshooting.md"))
        self.assertLessEqual(set(re.findall(r"(?<![\w-])--[a-z-]+[a-z]", page)), options)


if __name__ == "__main__":
    unittest.main()
