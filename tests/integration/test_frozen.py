#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Clients that stop in the middle of what they do: in each state of a connection, with answers that they don't read, with a
ring half written, and anywhere in the client library. Meanwhile their worker is killed, and the server replaced. Everybody
else goes on; so does the client when it is continued; and what it had comes back when it is killed."""
import mmap
import os
import random
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import SECONDS  # noqa: E402
from raw_client import RawClient  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import CLIENT_FDS, SurviveCase, await_true, draw_seed  # noqa: E402

OTHERS, VICTIMS = 2, 3
ROUNDS = int(os.environ.get("SURVIVE_ROUNDS", "6"))


class Stopped:
    """A client that has gone so far, by name, and does nothing more until thaw()."""

    def __init__(self, manager, state):
        self.state, self.client = state, RawClient(manager.client)
        self.client.socket.settimeout(SECONDS)
        allowance = self.client.schema.layouts["allowance"]
        self.unset = dict.fromkeys((name for name, _, _ in self.client.schema.fields(allowance)
                                    if name.endswith(("_request", "_limit"))), self.client.schema.constants["unset"])
        getattr(self, state)(manager)

    def send(self, message, **values):
        self.client.serial += 1
        self.client.socket.send(self.client.schema.pack(message, self.client.serial, values))

    def connected(self, manager):
        """A connection that is accepted and not kept yet goes with its server. A later one was answered: this one is kept."""
        later = RawClient(manager.client)
        later.ask("hello", major=later.schema.major)
        later.close()

    def greeted(self, _):
        self.client.ask("hello", major=self.client.schema.major)

    def attaching(self, manager):
        """The worker does not answer until somebody continues it."""
        self.greeted(manager)
        for pid in manager.workers():
            os.kill(pid, signal.SIGSTOP)
        self.send("attach", **self.unset)

    def attached(self, manager):
        self.greeted(manager)
        self.client.ask("attach", **self.unset)
        self.client.ask("memory_alloc", count=1 << 20)

    def unread(self, manager):
        """As many requests as the sockets take, and no answer is read."""
        self.attached(manager)
        self.first = self.client.serial + 1
        self.client.socket.setblocking(False)
        try:
            while True:
                self.send("memory_query")
        except BlockingIOError:
            self.client.serial -= 1
        self.client.socket.settimeout(SECONDS)

    def half_written(self, manager):
        """A part of a descriptor that the worker must not look at, since the tail is behind it."""
        self.attached(manager)
        self.client.ask("ring_make", stream=0)
        self.write(b"\xff" * 24)

    def write(self, data):
        """Into the first descriptor of the ring."""
        at = self.client.schema.constants["ring_descriptors"]
        with mmap.mmap(self.client.fds[-1], at + mmap.PAGESIZE) as ring:
            ring[at:at + len(data)] = data

    def thaw(self):
        """Goes on from there. Returns the sentence with which it was refused, or None."""
        try:
            if self.state == "connected":
                self.client.ask("hello", major=self.client.schema.major)
            if self.state in ("connected", "greeted"):
                self.client.ask("attach", **self.unset)
            while self.state == "attaching":
                name, serial, values = self.client.receive()
                if name in ("failed", "ended"):
                    return values["text"]
                if serial == self.client.serial:
                    break
            answered = set()
            while self.state == "unread" and len(answered) < self.client.serial + 1 - self.first:
                name, serial, _ = self.client.receive()
                if serial >= self.first:  # an earlier answer may come again from another server
                    assert name == "memory_info", name
                    answered.add(serial)
            if self.state == "half_written":
                self.write(bytes(24))
            self.client.ask("memory_alloc", count=4 << 20)
        except (RuntimeError, OSError) as refused:
            return str(refused)
        return None

    def close(self):
        self.client.close()


class Frozen(SurviveCase):
    STATES = ("connected", "greeted", "attaching", "attached", "unread", "half_written")

    def go_on(self, manager, clients, what):
        for client in clients:
            self.assertIsNone(client.poll(), "" if client.poll() is None else f"{what}: {client.stderr.read()}{manager.text()}")

    def continue_workers(self, manager):
        for pid in manager.workers():
            os.kill(pid, signal.SIGCONT)

    def kill_worker(self, manager, others):
        """With nothing of the others in flight."""
        self.continue_workers(manager)
        self.rest(others)
        last = manager.workers()
        for pid in last:
            os.kill(pid, signal.SIGKILL)
        for client in others:
            client.send_signal(signal.SIGCONT)
        await_true(lambda: manager.workers() and not set(last) & set(manager.workers()) and self.serves(manager), manager.text)

    def replace_server(self, manager):
        manager.kill()
        manager.start()
        self.continue_workers(manager)

    def test_in_each_state(self):
        for state in self.STATES:
            with self.subTest(state), Manager() as manager:
                others = self.begin(manager, OTHERS)
                stopped = Stopped(manager, state)
                self.replace_server(manager)
                self.go_on(manager, others, "server replaced")
                self.assertIsNone(stopped.thaw(), manager.text())
                stopped.close()

                stopped = Stopped(manager, state)
                self.kill_worker(manager, others)
                self.end_of_worker(manager, stopped, state)
                stopped.close()

                stopped = Stopped(manager, state)
                self.continue_workers(manager)
                self.rest(others)
                for pid in manager.workers():
                    os.kill(pid, signal.SIGKILL)
                self.replace_server(manager)
                for client in others:
                    client.send_signal(signal.SIGCONT)
                self.end_of_worker(manager, stopped, state)
                stopped.close()

                stopped = Stopped(manager, state)
                manager.kill()
                stopped.close()  # as the kernel does for a process that was killed
                manager.start()
                self.continue_workers(manager)
                self.nothing_left(manager, others)

    def end_of_worker(self, manager, stopped, state):
        """A client that was attaching may be told to try again."""
        sentence = stopped.thaw()
        if state != "attaching":
            self.assertIsNone(sentence, manager.text())
        elif sentence:
            self.assertIn("worker", sentence)

    def nothing_left(self, manager, others):
        self.no_call_failed(manager, others)
        await_true(lambda: self.charged(manager) == 0, lambda: f"{self.charged(manager)} bytes stay charged: {manager.text()}")
        wanted = {"s": 1, "w": 1, "p": 1, "b": 1, "d": 3 + len(others) * CLIENT_FDS}
        await_true(lambda: self.stored(manager) == wanted, lambda: f"{self.stored(manager)}, not {wanted}: {manager.text()}")

    def test_anywhere_in_the_library(self):
        seed = draw_seed()
        chance, went_on = random.Random(seed), 0
        with Manager() as manager:
            others = self.begin(manager, OTHERS)
            for at in range(ROUNDS):
                victims = self.begin(manager, VICTIMS)
                for victim in victims:
                    victim.send_signal(signal.SIGSTOP)
                    os.waitpid(victim.pid, os.WUNTRACED)
                what = chance.choice(("worker", "server", "both"))
                if what != "server":
                    self.kill_worker(manager, others)
                if what != "worker":
                    self.replace_server(manager)
                self.go_on(manager, others, f"round {at}, {what}, seed {seed}")
                late = self.begin(manager, 1)
                self.no_call_failed(manager, late)  # one that comes now is served
                self.end(late[0])
                for victim in victims:
                    if chance.random() < 0.5:
                        victim.kill()
                        victim.wait()
                        continue
                    victim.send_signal(signal.SIGTERM)
                    victim.send_signal(signal.SIGCONT)
                    if victim.stdout.readline():
                        went_on += 1
                        victim.kill()
                        continue
                    text = victim.stderr.read()
                    self.assertTrue(what != "server" and "gpushare_stream_recover" in text, f"seed {seed}, {what}: {text}{manager.text()}")
            self.nothing_left(manager, others)
            print(f"{ROUNDS * VICTIMS} clients, seed {seed}: {went_on} of those that were continued went on without a failed call")


if __name__ == "__main__":
    unittest.main(verbosity=2)
