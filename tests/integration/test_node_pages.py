#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The commands of docs/operators.md and docs/users.md do what the pages say, in their order. Those of systemd are not tried:
tests/integration/test_systemd_units.sh verifies the units."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_server import BUILD, ENV, SECONDS, Server  # noqa: E402

HEAT = os.path.join(BUILD, "examples/unmodified/heat")
FILE = "/etc/gpushare/gpushared.yaml"
# The user whose limits the page sets. Here that is the user of the test.
USER = "1003"
# What only the service manager can do.
NOT_TRIED = ("systemctl ", "systemd-sysusers ")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def blocks(page, language):
    return [text for word, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S) if word == language]


def lines(page):
    """The commands of all blocks, without the remarks behind them."""
    found = [re.sub(r"\s+#.*$", "", line) for block in blocks(page, "") for line in block.splitlines()]
    return [line for line in found if line and not line.startswith(NOT_TRIED)]


class Pages(unittest.TestCase):
    def said(self, server, page, *changes):
        """{line: what it printed} of the page's commands, each of which must be done. changes: pairs of words that are put into it."""
        env = {**ENV, "GPUSHARE_SOCKET": server.client, "PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"]}
        found = {}
        for line in lines(page):
            command = line
            for old, new in changes:
                command = re.sub(old, new, command)
            done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
            found[line] = done.stdout + done.stderr
        return found

    def test_an_operators_commands(self):
        page = read("docs/operators.md")
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            config, state = os.path.join(folder, "gpushared.yaml"), os.path.join(folder, "state")
            os.mkdir(state)
            (text,) = blocks(page, "yaml")
            with open(config, "w", encoding="utf-8") as out:
                out.write("{}\n")
            with Server("--config", config, "--state-dir", state) as server:
                with open(config, "w", encoding="utf-8") as out:
                    out.write(text.replace(USER, str(os.getuid())))
                with server.work("job", 1000, 0.01) as client:
                    client.go()
                    client.row()
                    # The machine's own file must not count.
                    said = self.said(server, page, (FILE, config), (USER, str(os.getuid())), ("--check-config$", f"--check-config --config {config}"))
        self.assertGreater(len(said), 12)
        self.assertIn("fair", said["gpusharectl get gpu 0"])
        self.assertIn("256 MiB", said["GPUSHARE_MEMORY_LIMIT=256M gpushare info"])
        self.assertIn("512 MiB", said["gpushare info"], "the profile of the rule")
        self.assertIn("connection ended", said[f"gpusharectl kill --user {USER}"])
        self.assertIn("job", said["gpusharectl clients --wide"])
        self.assertIn("takes no new clients", said["gpusharectl drain gpu 0"])

    @unittest.skipUnless(os.path.exists(HEAT), "programs that nvcc made are not linked under a sanitizer, nor for each machine")
    def test_a_users_commands(self):
        with Server() as server:
            said = self.said(server, read("docs/users.md"), (r"--explain \./program", f"--explain {HEAT}"), (r"\./program", f"{HEAT} 4"))
        self.assertGreater(len(said), 5)
        ((_, memory),) = [(line, text) for line, text in said.items() if line.startswith("GPUSHARE_MEMORY_LIMIT")]
        self.assertIn("256 MiB", memory)
        self.assertIn("nothing of the file is in the way", said["gpushare run --explain ./program"])
        ((_, ran),) = [(line, text) for line, text in said.items() if line.startswith("gpushare run --memory")]
        self.assertIn("verified", ran)

    def test_options_that_they_name_are_there(self):
        options = set(re.findall(r"^[a-z-]+ (--[a-z-]+) = ", read("tests/interface/flags.txt"), re.M))
        options |= {"--" + name for name in re.findall(r"^\.It Fl -([\w-]+)", read("docs/man/gpushare.1"), re.M)}
        for page in ("docs/operators.md", "docs/users.md"):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", read(page))) - {"--now", "--gpus"}  # of systemctl and of docker
            self.assertGreater(len(named), 3)
            self.assertLessEqual(named, options, page)

    def test_the_list_of_manual_pages_is_whole(self):
        pages = re.findall(r"^\| ([\w.-]+)\((\d)\) \|", read("docs/operators.md"), re.M)
        written = {name for name in os.listdir(os.path.join(ROOT, "docs/man")) if name[-1].isdigit()}
        self.assertEqual({f"{name}.{number}" for name, number in pages}, written | {"gpushare.3"})


if __name__ == "__main__":
    unittest.main()
