#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A server whose log goes to journald, which this test plays: each line is one datagram with fields."""
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import ENV, GPUSHARED, SECONDS, Server  # noqa: E402
from raw_client import RawClient  # noqa: E402

# In a mount namespace of its own the server finds the test's socket where journald's is.
IN_NAMESPACE = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /run && exec "$@"']


def may_mount():
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*IN_NAMESPACE, folder, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class JournalServer(Server):
    def _start(self, command, passed, names, env):
        place = self.file("run")
        os.makedirs(os.path.join(place, "systemd/journal"))
        self.journald = self.held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.journald.bind(os.path.join(place, "systemd/journal/socket"))
        self.journald.settimeout(SECONDS)
        log = os.fstat(self.log.fileno())
        super()._start([*IN_NAMESPACE, place, *command], passed, names, {**env, "JOURNAL_STREAM": f"{log.st_dev}:{log.st_ino}"})

    def entry(self, event):
        """Reads until this event. Returns its fields, and the events before it."""
        before = []
        while True:
            fields = dict(line.split("=", 1) for line in self.journald.recv(8192).decode().splitlines())
            if fields.get("EVENT") == event:
                return fields, before
            before.append(fields.get("EVENT"))


@unittest.skipUnless(may_mount(), "this process may not mount")
class Journal(unittest.TestCase):
    def test_fields_say_who_and_where(self):
        with JournalServer() as server:
            ready, _ = server.entry("ready")
            self.assertEqual((ready["PRIORITY"], ready["SYSLOG_IDENTIFIER"]), ("5", "gpushared"))
            self.assertRegex(ready["MESSAGE_ID"], "^[0-9a-f]{32}$")
            self.assertEqual(server.info().returncode, 0)
            client = RawClient(server.client)
            number = client.attach(name="notebook")["client"]
            client.ask("memory_alloc", count=4096)
            self.assertEqual(server.ctl("kill", str(number)).returncode, 0)
            attached, before = server.entry("client_attached")
            self.assertEqual(before, [], "gpushare info leaves no trail")
            ended, _ = server.entry("client_ended")
            client.close()
            who = {"CLIENT": str(number), "CLIENT_UID": str(os.getuid()), "CLIENT_PID": str(os.getpid()), "DEVICE": "0"}
            for entry, priority in ((attached, "6"), (ended, "4")):
                self.assertEqual({name: entry[name] for name in who}, who)
                self.assertEqual(entry["PRIORITY"], priority)
                self.assertIn("'notebook'", entry["MESSAGE"])
            self.assertNotRegex(server.text(), r"(?m)^<\d>", "all lines went to the journal")

    def test_a_refused_file_has_its_own_event(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            os.makedirs(os.path.join(folder, "run/systemd/journal"))
            config = os.path.join(folder, "gpushared.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write("gpus:\n  - {gpu: 0, mode: fare}\n")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald, open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
                journald.bind(os.path.join(folder, "run/systemd/journal/socket"))
                journald.setblocking(False)
                stream = os.fstat(log.fileno())
                ended = subprocess.run([*IN_NAMESPACE, os.path.join(folder, "run"), GPUSHARED, "--driver", "softgpu", "--config", config,
                                        "--socket", os.path.join(folder, "clients"), "--admin-socket", os.path.join(folder, "admin")],
                                       env={**ENV, "JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"}, stderr=log, timeout=SECONDS,
                                       check=False)
                self.assertEqual(ended.returncode, 1)
                entries = []
                with contextlib.suppress(BlockingIOError):
                    while True:
                        entries.append(dict(line.split("=", 1) for line in journald.recv(8192).decode().splitlines()))
        events = [(entry.get("EVENT"), entry["PRIORITY"]) for entry in entries if "fare" in entry["MESSAGE"]]
        self.assertEqual(events, [("schedule_value", "3")], entries)


if __name__ == "__main__":
    unittest.main()
