# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A private server with a configuration file, and test cases that make such servers."""
import contextlib
import json
import os
import signal
import tempfile
import time
import unittest

from private_server import SECONDS, Server
from raw_client import RawClient


class Configured:
    """A server with a configuration file of the test's own."""

    def __init__(self, test, text, env=None):
        self.test = test
        self.folder = test.folder
        self.path = os.path.join(self.folder, "gpushared.yaml")
        self.write(text)
        self.server = Server("--config", self.path, env=env)

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def granted(self, **wishes):
        client = RawClient(self.server.client)
        try:
            return client.attach(**wishes)
        finally:
            client.close()

    def clients(self):
        return json.loads(self.server.ctl("--json", "clients").stdout)["clients"]

    def wait_until_alone(self):
        """Waits until no client is left. A client that disconnected counts until the worker has freed its resources."""
        end = time.monotonic() + SECONDS
        while self.clients():
            self.test.assertLess(time.monotonic(), end, "clients that hung up stay")

    def reload(self):
        return self.server.ctl("--json", "reload")

    def hang_up(self):
        """Sends SIGHUP. Returns the log from its line about that on."""
        before = self.server.text().count("SIGHUP:")
        self.server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + SECONDS
        while self.server.text().count("SIGHUP:") == before:
            self.test.assertLess(time.monotonic(), end, "no word of SIGHUP in the log")
            time.sleep(0.01)
        return self.server.text().rsplit("SIGHUP:", 1)[1]


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="gpushare-config-", dir="/tmp") as path:
        os.chmod(path, 0o755)
        yield path


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = stack.enter_context(folder())

    @contextlib.contextmanager
    def configured(self, text, env=None):
        one = Configured(self, text, env)
        with one.server:
            yield one
