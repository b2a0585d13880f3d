# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What tests of servers that follow one another have in common: clients that make calls all the time and verify what comes
back (tests/programs/survive/steady.c), and what they leave."""
import json
import os
import random
import signal
import time
import unittest

from private_server import SECONDS

# Of a device: pages of its heartbeat, its ledger and its code. Of a client: its socket, header, status, shadow and doorbell, and two pieces of memory for its rings.
CLIENT_FDS = 7


def draw_seed():
    """$TEST_SEED, which tests/run draws and tells of a failure."""
    return int(os.environ.get("TEST_SEED", str(random.randrange(1 << 32))))


def await_true(holds, what):
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(what())
        time.sleep(0.01)


class SurviveCase(unittest.TestCase):
    def begin(self, manager, count):
        clients = [manager.steady(seed + 1) for seed in range(count)]
        for client in clients:
            self.addCleanup(self.end, client)
            self.assertEqual(client.stdout.readline(), "ready\n", manager.text())
        return clients

    def end(self, client):
        if client.poll() is None:
            client.kill()
        client.wait()
        for pipe in (client.stdin, client.stdout, client.stderr):
            pipe.close()

    def no_call_failed(self, manager, clients):
        """Tells each client to give back what it has. Returns their numbers of rounds and longest calls."""
        for client in clients:
            self.assertIsNone(client.poll(), "" if client.poll() is None else client.stderr.read() + manager.text())
            client.send_signal(signal.SIGTERM)
        lines = [client.stdout.readline() for client in clients]
        for client, line in zip(clients, lines):
            self.assertTrue(line, "" if line else client.stderr.read() + manager.text())
        return [tuple(map(int, line.split())) for line in lines]

    def charged(self, manager):
        """Device memory of all clients."""
        answer = manager.ctl("--json", "clients")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return sum(row["memory"]["used_bytes"] for row in json.loads(answer.stdout)["clients"])

    def serves(self, manager):
        """A client ends where no worker serves for two seconds: so none is killed before it does."""
        answer = manager.ctl("--json", "status")
        return answer.returncode == 0 and all(device["state"] == "ready" for device in json.loads(answer.stdout)["devices"])

    def stored(self, manager):
        manager.settle()
        letters = {}
        for name, fds in manager.stored.items():
            self.assertEqual(len(fds), 1, name)
            letters[name[0]] = letters.get(name[0], 0) + 1
        return letters

    def rest(self, clients):
        """Each stops between two rounds, with nothing in flight."""
        for client in clients:
            client.send_signal(signal.SIGUSR1)
        for client in clients:
            _, status = os.waitpid(client.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status), "" if os.WIFSTOPPED(status) else client.stderr.read())
