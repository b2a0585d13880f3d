#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""`make help` names targets that exist, and all that are described or that the documents name."""
import glob
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def make(*arguments):
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    done = subprocess.run(["make", "-C", ROOT, "--no-print-directory", *arguments], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Help(unittest.TestCase):
    def setUp(self):
        self.shown = dict(re.findall(r"^ *make (\S+)\s+(\S.*)$", make("help"), re.M))
        rules = "\n".join(read(path) for path in [f"{ROOT}/Makefile"] + sorted(glob.glob(f"{ROOT}/make/*.mk")))
        self.described = re.findall(r"^([^\s:#]+):[^\n]*?## *(.+)$", rules, re.M)

    def test_every_line_of_help_is_a_target(self):
        self.assertTrue(self.shown)
        database = make("-pq", "help")
        for line in re.findall(r"^\.PHONY:(.*)$", database, re.M):
            phony = set(line.split())
        for name in self.shown:
            self.assertIn(name, phony)
            self.assertRegex(database, rf"(?m)^{re.escape(name)}:", "a phony target that no rule makes")

    def test_every_described_target_is_in_help(self):
        self.assertGreater(len(self.described), 10)
        for name, text in self.described:
            self.assertEqual(self.shown.get(name), text.strip(), name)
        self.assertEqual(len(self.shown), len(self.described))

    def test_targets_named_in_documents_are_in_help(self):
        named = {name: ".ci/run" for name in re.findall(r"^step make ([a-z-]+)$", read(f"{ROOT}/.ci/run"), re.M)}
        self.assertIn("check", named)
        for path in [f"{ROOT}/README.md", f"{ROOT}/HACKING.md"] + glob.glob(f"{ROOT}/docs/*.md"):
            # Commands, not prose: fenced blocks, and what stands between backquotes.
            for code in re.findall(r"^```.*?^```|`[^`\n]+`", read(path), re.M | re.S):
                for name in re.findall(r"(?:^|[\s`])make ([a-z][a-z-]*)", code):
                    named.setdefault(name, path)
        self.assertIn("demo", named)
        for name in sorted(named):
            self.assertIn(name, self.shown, f"{named[name]} names make {name}")

    def test_chaos_recovery_has_each_of_its_parts(self):
        """Nothing of it runs here: `make check` never makes this target, so that a name used twice would go unnoticed."""
        for given, parts in (([], None), (["CHAOS_PARTS=kills storm"], ["kills", "storm"])):
            shown = make("-n", "chaos-recovery", "WERROR=0", *given)
            run = re.search(r"for part in ([^;]*); do case \$part in(.*?)esac", shown, re.S)
            self.assertTrue(run, shown[-2000:])
            known = re.findall(r"(?:^|[\\\s])(\w+)\) ", run.group(2))
            self.assertGreaterEqual(len(known), 5)
            self.assertEqual(run.group(1).split(), parts or known)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
