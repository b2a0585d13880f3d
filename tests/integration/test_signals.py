#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""CUDA programs and signals: handlers that run while calls wait, an end by a signal, a stop in the middle of work."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, SECONDS, Server, run  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
TENANT = os.path.join(BUILD, "tests/programs/tenant/tenant")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
HANDLERS = ("signals", "signals-restart")


class Straight(unittest.TestCase):
    def test_handlers_run_beside_right_results(self):
        for mode in HANDLERS:
            with self.subTest(mode=mode):
                ended = run(TENANT, mode, LD_LIBRARY_PATH=SOFTGPU + ":" + LIBRARIES, GPUSHARE_SOCKET="/nowhere")
                self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr)


class Served(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop_well)
        self.environment = {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": self.server.client}

    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**ENV, **self.environment})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def run_well(self, *command):
        ended = run(*command, **self.environment)
        self.assertEqual(ended.returncode, 0, ended.stderr + self.server.text())
        return ended.stdout

    def status(self):
        return json.loads(self.server.ctl("--json", "status").stdout)

    def await_nobody(self):
        end = time.monotonic() + SECONDS
        while self.status()["clients"]:
            self.assertLess(time.monotonic(), end, "a client that has ended stays")
            time.sleep(0.01)

    def test_handlers_run_beside_right_results(self):
        for mode in HANDLERS:
            with self.subTest(mode=mode):
                self.assertEqual(self.run_well(TENANT, mode), "right\n")

    def test_an_end_by_a_signal_frees_what_the_program_had(self):
        before = self.status()["devices"][0]["memory_used_bytes"]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
            with self.subTest(number=number):
                process = self.start(TENANT, "endless")
                self.assertGreater(self.status()["devices"][0]["memory_used_bytes"], before)
                process.send_signal(number)
                self.assertEqual(process.wait(SECONDS), -number)
                self.await_nobody()
                self.assertEqual(self.status()["devices"][0]["memory_used_bytes"], before)
        self.run_well(PROGRAM, "fill")

    def test_a_stopped_program_holds_up_no_other(self):
        steady, endless = self.start(PROGRAM, "steady"), self.start(TENANT, "endless")
        for _ in range(3):
            for process in (steady, endless):
                process.send_signal(signal.SIGSTOP)
            # It loads modules and frees memory, which need moments in which nothing runs.
            self.run_well(PROGRAM, "calls")
            for process in (steady, endless):
                process.send_signal(signal.SIGCONT)
            self.run_well(TENANT, "signals")
        output, errors = steady.communicate("", SECONDS)
        self.assertEqual(steady.returncode, 0, errors)
        self.assertGreater(int(output), 0)
        self.assertIsNone(endless.poll())


if __name__ == "__main__":
    unittest.main()
