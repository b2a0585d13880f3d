#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushared as systemd starts it: sockets through LISTEN_FDS, a NOTIFY_SOCKET of the test's own,
and sockets on which another server listens."""
import json
import os
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import GPUSHARED, Server, run  # noqa: E402


class Systemd(unittest.TestCase):
    def test_sockets_that_were_passed(self):
        for kinds, names in ((("client", "admin"), "client:admin"), (("admin", "client"), "")):
            with self.subTest(names):
                server = Server(passed=kinds, names=names)
                result = server.ctl("ping")
                self.assertEqual(result.returncode, 0, result.stderr)
                result = server.info()
                self.assertEqual(result.returncode, 0, result.stderr)
                status, left, text = server.stop()
                self.assertEqual(status, 0, text)
                self.assertEqual(left, {"gpushare.sock", "admin.sock"}, "systemd's files are systemd's")
                self.assertIn("STOPPING=1", server.states)

    def test_a_socket_of_the_wrong_kind(self):
        with self.assertRaises(AssertionError) as raised:
            Server(passed=("admin",), names="client")
        self.assertIn("SOCK_SEQPACKET", str(raised.exception))

    def test_an_abstract_notify_socket_and_status(self):
        server = Server(abstract=True)
        status, _, text = server.stop()
        self.assertEqual(status, 0, text)
        self.assertTrue([state for state in server.states if state.startswith("STATUS=")], server.states)
        self.assertLess(server.states.index("READY=1"), server.states.index("STOPPING=1"))

    def test_the_loop_feeds_the_watchdog_whatever_a_worker_does(self):
        with Server("--watchdog-warning", "0", "--watchdog-limit", "0", env={"WATCHDOG_USEC": "200000"}) as server:
            server.hear("WATCHDOG=1")
            worker = json.loads(server.ctl("--json", "status").stdout)["devices"][0]["worker_pid"]
            os.kill(worker, signal.SIGSTOP)
            try:
                for _ in range(3):
                    server.states.clear()
                    server.hear("WATCHDOG=1")
            finally:
                os.kill(worker, signal.SIGCONT)

    def test_a_watchdog_of_another_process_is_none(self):
        server = Server(env={"WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(os.getpid())})
        status, _, text = server.stop()
        self.assertEqual(status, 0, text)
        self.assertNotIn("WATCHDOG=1", server.states)

    def test_two_servers_do_not_take_each_others_sockets(self):
        with Server() as server:
            second = run(GPUSHARED, "--driver", "softgpu", "--socket", os.path.join(server.folder, "other"), "--admin-socket",
                         server.admin)
            self.assertNotEqual(second.returncode, 0)
            self.assertIn(server.admin, second.stderr)
            self.assertEqual(server.ctl("ping").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
