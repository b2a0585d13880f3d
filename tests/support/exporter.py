# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A running gpushare-exporter, on a port that was free."""
import contextlib
import http.client
import os
import re
import signal
import subprocess
import time

from exposition import Exposition
from private_server import BUILD, ENV, SECONDS

EXPORTER = os.path.join(BUILD, "bin/gpushare-exporter")


class Exporter:
    """A running exporter. get() asks it over HTTP."""

    def __init__(self, socket_path, *options, address="127.0.0.1"):
        self.process = subprocess.Popen([EXPORTER, "--listen", f"{address}:0", "--socket", socket_path, *options],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)
        self.lines = []
        found = None
        while not found:
            self.lines.append(self.process.stderr.readline())
            assert self.lines[-1], "it has ended: " + "".join(self.lines)
            found = re.search(r"http://[^/]*:(\d+)/metrics", self.lines[-1])
        self.port = int(found.group(1))

    def ask(self, method="GET", path="/metrics", body=None, **headers):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as connection:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def get(self):
        status, _, text = self.ask()
        assert status == 200, text
        return Exposition(text)

    def await_up(self, up):
        """Answers are kept for a second, so the wait is for the next question."""
        end = time.monotonic() + SECONDS
        while (now := self.get()).one("gpushare_up") != up:
            assert time.monotonic() < end, f"gpushare_up is not {up}"
            time.sleep(0.05)
        return now

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        rest = self.process.stderr.read()
        self.process.stderr.close()
        status = self.process.wait(SECONDS)
        assert status == 0, f"exit status {status}: {rest}"
