#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A state folder that can't be written: all that look at the server are warned, until the next attempt to write succeeds."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import ENV, GPUSHARE, SECONDS, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import await_true  # noqa: E402

NAMES = ("configuration_not_copied", "accounting_not_written", "saved_not_kept")
MOUNTED = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o "size=$1" none "$0" && shift && exec "$@"']


def may_mount():
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*MOUNTED, folder, "64k", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class StateFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, "state")

    def warnings(self, manager):
        """{name: text} of the warnings, on which all that show them agree."""
        status, metrics = (json.loads(manager.ctl("--json", what).stdout) for what in ("status", "metrics"))
        json_check.check("admin-status", status)
        json_check.check("admin-metrics", metrics)
        self.assertEqual(status["state_folder"], self.state)
        found = {warning["name"]: warning["text"] for warning in status["warnings"]}
        self.assertEqual([name for name in NAMES if metrics[name]], [name for name in NAMES if name in found])
        shown = dict(re.findall(r"(?m)^gpushare_(\w+) ([01])(?:\.0)?$", manager.ctl("metrics").stdout))
        self.assertEqual({name for name in NAMES if shown[name] == "1"}, set(found))
        for text in found.values():
            self.assertIn(f"warning: {text}\n", manager.ctl("status").stdout)
        doctor = json.loads(run(GPUSHARE, "doctor", "--socket", manager.client, "--json").stdout)["checks"]
        self.assertEqual({check["text"] for check in doctor if check["status"] == "warn" and check["subject"] == "server"}, set(found.values()))
        return found

    def client_ends(self, manager):
        client = RawClient(manager.client)
        client.attach(name="counted")
        client.ask("memory_alloc", count=4096)
        client.close()

    def test_what_can_not_be_written_is_shown_until_it_is(self):
        away = self.state + ".away"
        os.mkdir(self.state)
        accounting = os.path.join(self.state, "accounting.jsonl")
        with Manager("--state-dir", self.state, config=f"accounting: {{file: {accounting}}}\n") as manager:
            manager.worker()
            self.assertEqual(self.warnings(manager), {})
            os.rename(self.state, away)
            with open(self.state, "w", encoding="utf-8"):
                pass  # no folder any more
            self.client_ends(manager)
            self.assertNotEqual(manager.ctl("set", "--save", "gpu", "0", "mode=fair").stderr, "")
            self.assertEqual(manager.ctl("reload").returncode, 0)
            await_true(lambda: "accounting_not_written" in manager.ctl("--json", "status").stdout, manager.text)
            found = self.warnings(manager)
            self.assertEqual(set(found), set(NAMES))
            for text in found.values():
                self.assertIn(self.state, text)
                self.assertIn("Not a directory", text)
                self.assertIn("rights", text)
            os.unlink(self.state)
            os.rename(away, self.state)
            # Accounting and the copy of the configuration are tried again by the server itself.
            await_true(lambda: not re.search("accounting_not_written|configuration_not_copied", manager.ctl("--json", "status").stdout),
                       manager.text)
            self.assertEqual(set(self.warnings(manager)), {"saved_not_kept"})
            with open(os.path.join(self.state, "accepted.yaml"), encoding="utf-8") as file:
                self.assertIn(accounting, file.read())
            text = manager.text()
            self.assertEqual(text.count("accepted.yaml can't be written"), 1, "a further try that fails says nothing")
            self.assertEqual(text.count("accepted.yaml could be written this time"), 1)
            self.assertEqual(manager.ctl("set", "--save", "gpu", "0", "mode=fair").returncode, 0)
            self.assertEqual(self.warnings(manager), {})

    def test_a_saved_file_that_is_damaged_is_shown(self):
        os.mkdir(self.state)
        with open(os.path.join(self.state, "saved.json"), "w", encoding="utf-8") as file:
            file.write("{")
        with Manager("--state-dir", self.state) as manager:
            manager.worker()
            self.assertIn(os.path.join(self.state, "saved.json"), self.warnings(manager)["saved_not_kept"])

    @unittest.skipUnless(may_mount(), "this process may not mount")
    def test_the_doctor_looks_at_the_folders_room(self):
        with Server("--state-dir", self.state) as server:
            root = os.path.join(self.folder, "root")
            place = root + self.state
            os.makedirs(place)
            os.makedirs(f"{root}/proc/{server.process.pid}")
            with open(f"{root}/proc/{server.process.pid}/comm", "w", encoding="utf-8") as file:
                file.write("gpushared\n")
            for size, status, message in (("32m", "ok", "doctor_state"), ("4m", "warn", "doctor_state_full"),
                                          ("32m,nr_inodes=2", "warn", "doctor_state_full")):
                ended = subprocess.run([*MOUNTED, place, size, GPUSHARE, "doctor", "--root", root, "--socket", server.client, "--json"],
                                       env=ENV, capture_output=True, text=True, timeout=SECONDS, check=False)
                checks = [check for check in json.loads(ended.stdout)["checks"] if check["subject"] == "state folder"]
                self.assertEqual([(check["status"], check["message"]) for check in checks], [(status, message)], (size, ended.stdout))
                self.assertIn(self.state, checks[0]["text"])
            # It is made when something is written: its parent counts until then.
            os.rmdir(place)
            ended = run(GPUSHARE, "doctor", "--root", root, "--socket", server.client, "--json")
            self.assertIn("state folder", [check["subject"] for check in json.loads(ended.stdout)["checks"]])


if __name__ == "__main__":
    unittest.main()
