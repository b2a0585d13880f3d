#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/sharing.md does what it says: each example's file is accepted, each of its commands
changes a running client or GPU, each of its variables is granted, and what the page says
of lengths, defaults, rows and pictures is so."""
import json
import os
import re
import shlex
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
from raw_client import RawClient  # noqa: E402
from test_admin import GPUSHARE, GPUSHARECTL, run  # noqa: E402
from test_config import Case, Configured  # noqa: E402

UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


PAGE = read("docs/sharing.md")


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+) ?(\w+)", text).groups()
    return int(float(number) * UNITS[unit])


def table(heading):
    """The cells of the first table after these words, without its two lines of heading."""
    rows = PAGE.split(heading, 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0].split("\n")
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows[2:]]


def examples():
    """(title, file or "", lines of commands) of each worked example."""
    for part in PAGE.split("\n## Worked examples\n", 1)[1].split("\n### ")[1:]:
        title, body = part.split("\n", 1)
        files = re.findall(r"^```yaml\n(.*?)^```$", body, re.M | re.S)
        lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", body, re.M | re.S) for line in block.splitlines()]
        yield title, files, lines


class SharingPage(Case):
    def command(self, server, line, environment):
        words = shlex.split(line)
        if words[0] == "export":
            name, value = words[1].split("=", 1)
            environment[name] = value
            done = run(GPUSHARE, "--socket", server.server.client, "--json", "info", **environment)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
            if name == "GPUSHARE_PROFILE":  # what it gives is told, not its name: so another one must be refused
                environment = {**environment, name: "no-such"}
                done = run(GPUSHARE, "--socket", server.server.client, "--json", "info", **environment)
                self.assertNotEqual(done.returncode, 0, line)
                self.assertIn("no-such", done.stdout + done.stderr)
            else:
                self.assertIn(name, done.stdout, f"{line}: info does not name the variable")
            return
        self.assertEqual(words[0], "gpusharectl", line)
        done = run(GPUSHARECTL, "--socket", server.server.admin, *words[1:])
        self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")

    def test_the_examples_run(self):
        seen = {"file": 0, "command": 0, "variable": 0}
        for title, files, lines in examples():
            with self.subTest(title):
                self.assertLessEqual(len(files), 1)
                server = Configured(self, files[0] if files else "")
                client = RawClient(server.server.client)
                try:
                    self.assertEqual(client.attach()["client"], 1, "the examples say 1")
                    mode = re.search(r"mode: (\w+)", "".join(files))
                    in_force = self.schedule(server)["mode"]
                    self.assertEqual(in_force, mode.group(1) if mode else "concurrent")
                    environment = {}
                    for line in lines:
                        self.command(server, line, environment)
                        seen["variable" if line.startswith("export") else "command"] += 1
                    seen["file"] += len(files)
                finally:
                    client.close()
                    server.server.stop()
        self.assertGreaterEqual(min(seen.values()), 4, seen)

    def test_all_fenced_text_is_in_an_example(self):
        before = PAGE.split("\n## Worked examples\n", 1)[0]
        self.assertNotIn("```", before)

    def schedule(self, server):
        done = run(GPUSHARECTL, "--socket", server.server.admin, "--json", "get", "gpu", "0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["gpus"][0]["schedule"]

    def test_defaults_ranges_and_classes_are_the_servers(self):
        server = Configured(self, "")
        try:
            was = self.schedule(server)
            for name, default, bounds, _ in table("\n## Leases\n"):
                least, most = bounds.split(" to ")
                for value in (default, least, most):
                    word = f"{name}={value.replace(' ', '')}"
                    done = run(GPUSHARECTL, "--socket", server.server.admin, "set", "gpu", "0", word)
                    self.assertEqual(done.returncode, 0, f"{word}: {done.stdout}{done.stderr}")
                beyond = {"%": "0.5%"}.get(least[-1], "4ms")
                done = run(GPUSHARECTL, "--socket", server.server.admin, "set", "gpu", "0", f"{name}={beyond}")
                self.assertEqual(done.returncode, 1, f"{name}={beyond} is outside of {bounds}")
                done = run(GPUSHARECTL, "--socket", server.server.admin, "set", "gpu", "0",
                           f"{name}={default.replace(' ', '')}")
                self.assertEqual(self.schedule(server), was, f"{default} is not the default of {name}")
            for name, number, length in table("| `lease` | number | length |"[2:]):
                answers = []
                for value in (name, number, length.replace(" ", "")):
                    done = run(GPUSHARECTL, "--socket", server.server.admin, "set", "gpu", "0", f"lease={value}")
                    self.assertEqual(done.returncode, 0, f"lease={value}: {done.stdout}{done.stderr}")
                    answers.append(self.schedule(server)["lease_seconds"])
                self.assertEqual(answers, [nanoseconds(length) / 1e9] * 3)
        finally:
            server.server.stop()

    def test_every_mode_can_be_had(self):
        modes = [row[0].split("`")[0] for row in table("\n## Which mode\n")]
        self.assertEqual(modes, ["concurrent", "strict", "fair", "turns"])
        server = Configured(self, "")
        try:
            for mode in modes:
                done = run(GPUSHARECTL, "--socket", server.server.admin, "set", "gpu", "0", f"mode={mode}")
                self.assertEqual(done.returncode, 0, f"{mode}: {done.stdout}{done.stderr}")
                self.assertEqual(self.schedule(server)["mode"], mode)
        finally:
            server.server.stop()

    def test_rows_and_pictures_are_there(self):
        rows = re.findall(r"`([a-z0-9]+_[a-z0-9_]*(?:points|error|ratio|loss|ms|p99|bytes))`", PAGE)
        self.assertTrue(rows)
        bench = "".join(read(os.path.join("tests/bench", name)) for name in os.listdir(os.path.join(ROOT, "tests/bench"))
                        if name.endswith(".c"))
        for row in rows:
            self.assertTrue(f'"{row}"' in bench, f"no row {row} of make bench")
        self.assertEqual(len(re.findall(r"^!\[.+\]\(pictures/\w+\.svg\)$", PAGE, re.M)), 5)
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE):
            self.assertTrue(os.path.exists(os.path.join(ROOT, "docs", path)), path)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
