#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A server that can't start answers those who wait at the sockets that a service manager passed: a manager that starts one for each
connection would do so again and again, until it gives up."""
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import ENV, GPUSHARE, GPUSHARECTL, SECONDS, run  # noqa: E402
from service_manager import Manager, unit_numbers  # noqa: E402
from survive_case import draw_seed  # noqa: E402

# A server stays so many seconds for those who come (REFUSAL_MS of server/supervisor/main.c).
STAYS = 5

CAUSES = {
    "a driver that is not there": (["--driver", "/nowhere/libcuda.so.1"], {}, "{}\n", 1, "/nowhere/libcuda.so.1"),
    "an option": (["--no-such-option"], {}, "{}\n", 2, "no-such-option"),
    "a variable": ([], {"GPUSHARE_MEMORY_LIMIT": "16 G"}, "{}\n", 2, "GPUSHARE_MEMORY_LIMIT"),
    "the configuration": ([], {}, "clients: {memory: {limt: 1G}}\n", 1, "limt"),
}


class Refusal(unittest.TestCase):
    def ask(self, manager):
        client = {**ENV, "GPUSHARE_SOCKET": manager.client}
        return [subprocess.Popen(command, env=client, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for command in ([GPUSHARECTL, "--socket", manager.admin, "status"], [GPUSHARE, "info"])]

    def start(self, manager):
        self.started = time.monotonic()
        manager.start(wait=False)

    def await_answers(self, manager, asked):
        """Until all have ended. Whoever comes after the server's time is served by the next one, which a service manager starts for a
        connection that waits. No server ends before its time."""
        end = time.monotonic() + SECONDS
        while any(one.poll() is None for one in asked):
            self.assertLess(time.monotonic(), end, manager.text())
            if manager.process.poll() is not None and select.select(manager.listening.values(), [], [], 0)[0]:
                self.assertGreaterEqual(time.monotonic() - self.started, STAYS)
                manager.settle()
                self.start(manager)
            time.sleep(0.01)

    def check_answers(self, manager, asked, cause):
        self.await_answers(manager, asked)
        (admin, client) = [one.communicate(timeout=SECONDS)[1] for one in asked]
        self.assertEqual([one.returncode != 0 for one in asked], [True, True])
        self.assertIn("the server can't start: ", admin)
        self.assertIn(cause, admin)
        self.assertIn("the server can't start: its log says why", client)
        # Lines of the configuration are the administrators'.
        self.assertNotIn(cause, client)

    def test_those_who_wait_and_those_who_come_are_told(self):
        rng = random.Random(draw_seed())
        for name, (options, variables, config, status, cause) in CAUSES.items():
            with self.subTest(name), Manager() as manager:
                self.assertEqual(manager.kill(signal.SIGTERM), 0)
                manager.command, manager.env = manager.command + options, {**manager.env, **variables}
                manager.configure(config)
                waiting = [self.ask(manager) for _ in range(rng.randrange(1, 4))]
                for one in (one for asked in waiting for one in asked):
                    self.wait_until_it_waits(one)
                self.start(manager)
                for asked in waiting:
                    self.check_answers(manager, asked, cause)
                # It stays for seconds, and answers whoever comes.
                self.check_answers(manager, self.ask(manager), cause)
                self.assertEqual(manager.process.wait(SECONDS), status)
                # Nobody waits any more: there is no reason for a start.
                self.assertEqual([self.waits_at(manager, kind) for kind in ("client", "admin")], [False, False])
                # Mended, the same sockets serve.
                manager.command, manager.env = manager.command[:len(manager.command) - len(options)], {**ENV}
                manager.configure("{}\n")
                manager.start()
                self.assertEqual(run(GPUSHARE, "info", GPUSHARE_SOCKET=manager.client).returncode, 0)

    def wait_until_it_waits(self, process):
        """Until it sleeps in a system call that receives: it has connected, and asked."""
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/syscall", encoding="utf-8") as file:
                    words = file.read().split()
            except OSError:
                continue
            # poll, recvfrom, recvmsg, read, ppoll, epoll_wait, epoll_pwait; of aarch64 behind them.
            if words and words[0] in {"7", "45", "47", "0", "271", "232", "281", "73", "207", "212", "63", "22"}:
                return
        self.fail(f"it does not wait: {process.communicate()}")

    def waits_at(self, manager, kind):
        one = manager.listening[kind]
        one.setblocking(False)
        try:
            one.accept()
            return True
        except BlockingIOError:
            return False
        finally:
            one.setblocking(True)

    def test_one_with_clients_to_take_over_lets_systemd_try_again(self):
        """Its clients are saved if the mistake is mended in time, and until then systemd does not give up, whatever has gone wrong."""
        starts, most, within = 3, unit_numbers("StartLimitBurst")[0], unit_numbers("StartLimitIntervalSec")[0]
        for name in ("an option", "the configuration"):
            options, _, config, _, cause = CAUSES[name]
            state = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
            self.addCleanup(shutil.rmtree, state)
            with self.subTest(name), Manager("--state-dir", state) as manager:
                steady = manager.steady(1)
                self.assertEqual(steady.stdout.readline(), "ready\n")
                worker = manager.worker()
                self.assertNotEqual(manager.kill(), 0)
                # What a server with a mistake would go on with is lost as well.
                for file in os.listdir(state):
                    os.unlink(os.path.join(state, file))
                manager.command += options
                manager.configure(config)
                begun = time.monotonic()
                for number in range(starts):
                    admin = self.ask(manager)[0] if number == 0 else None
                    if admin:
                        self.wait_until_it_waits(admin)
                    manager.start(wait=False)
                    self.assertNotIn(manager.process.wait(SECONDS), [0, *unit_numbers("RestartPreventExitStatus")], manager.text())
                    manager.settle()
                    if admin:
                        self.assertIn(cause, admin.communicate(timeout=SECONDS)[1])
                self.assertGreater((time.monotonic() - begun) / starts * most, within, "systemd would give up")
                manager.command = manager.command[:len(manager.command) - len(options)]
                manager.configure("{}\n")
                manager.start()
                self.assertEqual(manager.worker(), worker)
                steady.terminate()
                self.assertEqual(steady.communicate(timeout=SECONDS)[1], "")
                self.assertEqual(steady.returncode, 0)

    def test_one_that_nobody_asks_ends_by_itself(self):
        with Manager() as manager:
            self.assertEqual(manager.kill(signal.SIGTERM), 0)
            manager.command += ["--driver", "/nowhere/libcuda.so.1"]
            manager.start(wait=False)
            self.assertEqual(manager.process.wait(SECONDS), 1)


if __name__ == "__main__":
    unittest.main()
