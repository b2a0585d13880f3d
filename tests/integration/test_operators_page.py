#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The commands of docs/operators.md do what the page says, in its order, with its configuration, beside a client that works. Those of
systemd are not tried: tests/integration/test_systemd_units.sh verifies the units."""
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

with open(os.path.join(ROOT, "docs/operators.md"), encoding="utf-8") as file:
    PAGE = file.read()
FILE = "/etc/gpushare/gpushared.yaml"
# The user whose limits the page sets. Here that is the user of the test.
USER = "1003"
# What only the service manager can do, and what a reader's own shell has.
NOT_TRIED = ("systemctl ", "systemd-sysusers ")


def blocks(language):
    return [text for word, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S) if word == language]


def lines():
    """The commands of all blocks, without the remarks behind them."""
    found = [re.sub(r"\s+#.*$", "", line) for block in blocks("") for line in block.splitlines()]
    return [line for line in found if line and not line.startswith(NOT_TRIED)]


class OperatorsPage(unittest.TestCase):
    def test_every_command_does_what_it_is_for(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            config, state = os.path.join(folder, "gpushared.yaml"), os.path.join(folder, "state")
            os.mkdir(state)
            (text,) = blocks("yaml")
            with open(config, "w", encoding="utf-8") as out:
                out.write("{}\n")
            with Server("--config", config, "--state-dir", state) as server:
                with open(config, "w", encoding="utf-8") as out:
                    out.write(text.replace(USER, str(os.getuid())))
                env = {**ENV, "GPUSHARE_SOCKET": server.client, "PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"]}
                said = {}
                with server.work("job", 1000, 0.01) as client:
                    client.go()
                    client.row()
                    for line in lines():
                        command = line.replace(FILE, config).replace(USER, str(os.getuid()))
                        if command == "gpushared --check-config":
                            command += " --config " + config  # the machine's own file must not count
                        done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                              timeout=SECONDS, check=False)
                        self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
                        said[line] = done.stdout + done.stderr
        self.assertGreater(len(said), 12)
        self.assertIn("fair", said["gpusharectl get gpu 0"])
        self.assertIn("256 MiB", said["GPUSHARE_MEMORY_LIMIT=256M gpushare info"])
        self.assertIn("512 MiB", said["gpushare info"], "the profile of the rule")
        self.assertIn("connection ended", said[f"gpusharectl kill --user {USER}"])
        self.assertIn("job", said["gpusharectl clients --wide"])
        self.assertIn("takes no new clients", said["gpusharectl drain gpu 0"])

    def test_options_and_pages_that_it_names_are_there(self):
        with open(os.path.join(ROOT, "tests/interface/flags.txt"), encoding="utf-8") as record:
            options = set(re.findall(r"^[a-z-]+ (--[a-z-]+) = ", record.read(), re.M))
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) - {"--now", "--gpus"}  # of systemctl and of docker
        self.assertGreater(len(named), 10)
        self.assertLessEqual(named, options)
        pages = re.findall(r"^\| ([\w.-]+)\((\d)\) \|", PAGE, re.M)
        written = {name for name in os.listdir(os.path.join(ROOT, "docs/man")) if name[-1].isdigit()}
        self.assertEqual({f"{name}.{number}" for name, number in pages}, written | {"gpushare.3"})


if __name__ == "__main__":
    unittest.main()
