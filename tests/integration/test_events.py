#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl events and log-level: the lines of the server's log without its file, now and as they come, also from a server
that takes over; and how much of it is written."""
import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import json_check  # noqa: E402
from private_server import ENV, GPUSHARECTL, SECONDS, Server  # noqa: E402
from server_case import CHANGES, WithServer  # noqa: E402
from service_manager import Manager  # noqa: E402

STAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} "


@CHANGES
class Events(WithServer):
    def follow(self, admin, *words):
        follows = subprocess.Popen([GPUSHARECTL, "--socket", admin, *words, "events", "--follow"], stdout=subprocess.PIPE, text=True, env=ENV)

        def end():
            follows.kill()
            follows.wait()
            follows.stdout.close()

        self.addCleanup(end)
        return follows

    def until(self, follows, part):
        for line in follows.stdout:
            if part in line:
                return line
        raise AssertionError(f"it ended ({follows.wait(SECONDS)}) without {part}")

    def test_the_lines_of_the_log(self):
        with self.attached(name="comes and goes") as (client, told):
            client.ask("memory_alloc", count=1)
            number = told["client"]
        answer = self.json("events")
        self.assertEqual(answer["pid"], self.server.process.pid)
        texts = [event["text"] for event in answer["events"]]
        self.assertTrue(any(text.startswith(f"client {number} 'comes and goes'") for text in texts), texts)
        self.assertEqual([event["number"] for event in answer["events"]], list(range(1, answer["latest"] + 1)))
        for text in texts:
            if "'comes and goes'" in text:
                self.assertIn(text, self.server.text(), "the log has the level info")
        line = next(line for line in self.ctl("events").stdout.splitlines() if "'comes and goes'" in line)
        self.assertRegex(line, STAMP + f"info: client {number} ")

    def test_lines_that_were_not_kept_are_counted(self):
        with Server() as server:
            for _ in range(300):
                for verb in ("drain", "resume"):
                    server.ctl(verb)
            answer = json.loads(server.ctl("--json", "events").stdout)
            said = server.ctl("events").stdout
        self.assertEqual(len(answer["events"]), 512)
        self.assertGreater(answer["missed"], 0)
        self.assertEqual(answer["events"][0]["number"], answer["missed"] + 1)
        self.assertIn(f"(lines before these that are kept no longer: {answer['missed']})\n", said)

    def test_following(self):
        follows, lines = self.follow(self.server.admin), self.follow(self.server.admin, "--json")
        with self.attached(name="seen") as (client, _):
            client.ask("memory_alloc", count=1)  # of a client that asks for nothing the log says nothing
            self.assertRegex(self.until(follows, "'seen'"), STAMP)
            answer = json.loads(self.until(lines, "'seen'"))
            json_check.check("admin-events", answer)
        self.assertIsNone(follows.poll())

    def test_following_a_server_that_is_replaced(self):
        with Manager() as manager:
            follows = self.follow(manager.admin)
            manager.ctl("drain")
            self.until(follows, "takes no new clients any more: drained by")
            manager.kill()
            manager.start()
            manager.ctl("resume")
            self.until(follows, "takes new clients again: resumed by")

    def test_following_ends_with_the_server(self):
        with Server() as server:
            follows = self.follow(server.admin)
            server.ctl("drain")
            self.until(follows, "drained by")
        self.assertEqual(follows.wait(SECONDS), 3)

    def test_the_level(self):
        self.assertEqual(self.json("log-level")["level"], "info")
        self.assertEqual(self.ctl("log-level", "error").stdout, "the log has the level error\n")
        try:
            mark = len(self.server.text())
            with self.attached(name="unwritten") as (client, _):
                client.ask("memory_alloc", count=1)
                self.assertNotIn("unwritten", self.server.text()[mark:])
            # The events do not depend on it.
            self.assertIn("unwritten", self.ctl("events").stdout)
            self.assertEqual(self.json("log-level", "debug")["level"], "debug")
            self.assertIn("the log has the level debug now, by uid ", self.server.text()[mark:])
        finally:
            self.ctl("log-level", "info")
        refused = self.json("log-level", "loud", schema="admin-error", status=1)
        self.assertIn("error, warning, notice, info or debug", refused["text"])
        self.assertEqual(self.json("log-level")["level"], "info")
        for words in (("log-level", "info", "more"), ("events", "more"), ("status", "--follow")):
            self.assertEqual(self.ctl(*words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
