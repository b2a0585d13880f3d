#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A client that forks at any moment of its calls, while its work is in flight, its workers are killed and its server is replaced.
Its children find that they have no connection, and it goes on beside them. When it dies and they live, the server gets back
everything that it had."""
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, SECONDS  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import SurviveCase, await_true, draw_seed  # noqa: E402

CHILDREN = 40
CHILDREN_OF_TWO = 12  # half of them wait for a moment that not every lost worker brings
SO_PEERPIDFD = 77  # Linux 6.5

# A client without the library, whose child keeps all that it has.
KEEPER = f"""
import os, signal, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {os.path.abspath(os.path.join(os.path.dirname(__file__), "../support"))!r})
from raw_client import RawClient
client = RawClient(sys.argv[1])
client.attach()
client.ask("memory_alloc", count=1 << 20)
if os.fork():
    print("ready", flush=True)
signal.pause()
"""


class Fork(SurviveCase):
    def start(self, manager, command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env={**ENV, "GPUSHARE_SOCKET": manager.client, "GPUSHARE_CLIENT_NAME": "forks"})

        def end():
            os.killpg(process.pid, signal.SIGKILL)  # of its own, and it has members while they are not killed
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        return process

    def run_through(self, disturb, devices=1):
        seed = draw_seed()
        chance = random.Random(seed)
        children = CHILDREN if devices == 1 else CHILDREN_OF_TWO
        with Manager(env={"SOFTGPU_DEVICES": str(devices)}) as manager:
            process = self.start(manager, [os.path.join(BUILD, "tests/programs/survive/forks"), str(seed), str(children), *["two"][:devices - 1]])
            lines, told = [], []
            self.forked_children = lambda: lines.count("child\n")
            readers = [threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True),
                       threading.Thread(target=lambda: told.extend(iter(process.stderr.readline, "")), daemon=True)]
            for reader in readers:
                reader.start()

            def forked():
                self.assertEqual(told, [], f"seed {seed}: {manager.text()}{told}")  # the end of a long failure is printed
                self.assertIsNone(process.poll(), f"seed {seed}: {manager.text()}{told}, status {process.poll()}")
                return lines.count("child\n") == children and "forked\n" in lines

            seen, end = 0, time.monotonic() + SECONDS
            while not forked():
                if self.forked_children() > seen:
                    seen, end = self.forked_children(), time.monotonic() + SECONDS
                self.assertLess(time.monotonic(), end, f"seed {seed}: no child came for so long: {lines}{manager.text()}")
                disturb(manager, chance)
            forked()  # it works on, and nothing was told
            process.kill()
            process.wait()
            await_true(lambda: self.charged(manager) == 0, lambda: f"seed {seed}: {self.charged(manager)} bytes stay charged: {manager.text()}")
            wanted = {"s": 1, "w": devices, "p": devices, "b": devices, "d": 3 * devices}
            await_true(lambda: self.stored(manager) == wanted, lambda: f"seed {seed}: {self.stored(manager)}, not {wanted}")
            self.assertEqual(told, [], f"seed {seed}")
            print(f"seed {seed}")

    def test_with_work_in_flight(self):
        self.run_through(lambda *_: time.sleep(0.01))

    def test_while_the_worker_is_lost(self):
        def disturb(manager, chance):
            time.sleep(chance.random() * 0.05)
            last = manager.workers()
            for pid in last:
                os.kill(pid, signal.SIGKILL)
            await_true(lambda: manager.workers() and not set(last) & set(manager.workers()) and self.serves(manager), manager.text)

        self.run_through(disturb)

    def test_while_streams_are_interrupted_on_two_devices(self):
        """Each device's stream waits for the other's. Every second child is forked while both are interrupted, and before they are
        recovered."""
        def disturb(manager, chance):
            time.sleep(chance.random() * 0.05)
            last = chance.choice(manager.workers())
            os.kill(last, signal.SIGKILL)
            await_true(lambda: last not in manager.workers() and self.serves(manager), manager.text)

        self.run_through(disturb, devices=2)

    def test_while_the_server_is_replaced(self):
        """Servers that live for so short a time that no client gets on show nothing, and how long that is depends on the machine and on
        sanitizers: so they live longer while no child comes."""
        life, kills, seen = 0.05, 0, 0

        def disturb(manager, chance):
            nonlocal life, kills, seen
            kills += 1
            if self.forked_children() > seen:
                life, kills, seen = max(0.05, life / 2), 0, self.forked_children()
            elif kills % 10 == 0:
                life = min(2 * life, 5)
            time.sleep(chance.random() * life)
            manager.kill()
            manager.start()

        self.run_through(disturb)

    def test_a_child_that_keeps_the_socket(self):
        """The library's children don't. The parent dies before its server, or while there is none."""
        mine, other = socket.socketpair()
        with mine, other:
            try:
                os.close(mine.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
            except OSError:
                self.skipTest("the kernel does not say when the process at the other end of a socket ends")
        for server_first in (False, True):
            with self.subTest(server_first=server_first), Manager() as manager:
                process = self.start(manager, [sys.executable, "-c", KEEPER, manager.client])
                self.assertEqual(process.stdout.readline(), "ready\n")
                self.assertGreater(self.charged(manager), 0)
                if server_first:
                    manager.kill()
                process.kill()
                process.wait()
                if server_first:
                    manager.start()
                await_true(lambda: self.charged(manager) == 0, lambda: f"{self.charged(manager)} bytes stay charged: {manager.text()}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
