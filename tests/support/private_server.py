# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A gpushared of a test's own on the software GPU, and clients whose kernels take a modelled
time (tests/pictures/work.c). Nothing is shared with any other test that runs at the same time."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ.get("BUILD", os.path.abspath("build"))
PASSED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "LC_ALL")
ENV = {key: os.environ[key] for key in PASSED if key in os.environ}
SECONDS = float(os.environ.get("TEST_LIMIT", "180")) / 3


class Work:
    """One process: made, told to go, asked for its launches, ended."""

    def __init__(self, server, name, kernel_us, seconds, *options, **env):
        command = [os.path.join(BUILD, "tests/pictures/work"), str(kernel_us), str(seconds), *map(str, options)]
        self.server, self.launches = server, None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**ENV, "GPUSHARE_SOCKET": server.client, "GPUSHARE_CLIENT_NAME": name, **env})
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError(f"{name} did not connect: {server.text()}")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def row(self):
        """Waits for its end; what the server then says of it."""
        self.launches = int(self.process.stdout.readline())
        rows = json.loads(self.server.ctl("--json", "clients").stdout)["clients"]
        return next(row for row in rows if row["pid"] == self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(SECONDS)


class Server:
    """Who runs the test may change things, unless admin is False."""

    def __init__(self, *options, admin=True, env=None):
        self.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.client, self.admin = (os.path.join(self.folder, name) for name in ("gpushare.sock", "admin.sock"))
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(os.path.join(self.folder, "notify"))
        notify.settimeout(0.2)
        command = [os.path.join(BUILD, "bin/gpushared"), "--driver", "softgpu", "--socket", self.client,
                   "--admin-socket", self.admin, *(("--admin-uid", str(os.getuid())) if admin and os.getuid() else ()), *options]
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env={**ENV, "NOTIFY_SOCKET": os.path.join(self.folder, "notify"), **(env or {})})
        end, ready = time.monotonic() + SECONDS, False
        while not ready:
            with contextlib.suppress(TimeoutError):
                ready = b"READY=1" in notify.recv(4096)
            if not ready and (self.process.poll() is not None or time.monotonic() > end):
                self.process.kill()
                raise AssertionError(f"the server did not come up: {self.text()}")
        notify.close()

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_log(self, words, mark=0):
        """Until the log says so, behind its first `mark` characters."""
        end = time.monotonic() + SECONDS
        while words not in self.text()[mark:]:
            if time.monotonic() > end:
                raise AssertionError(f"the log never said \"{words}\": {self.text()}")
            time.sleep(0.01)

    def command(self, *words):
        return [os.path.join(BUILD, "bin/gpusharectl"), "--socket", self.admin, *words]

    def ctl(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, env=ENV, stdin=subprocess.DEVNULL,
                              timeout=SECONDS, check=False)

    def start_ctl(self, *words):
        return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=ENV)

    def work(self, name, kernel_us, seconds, *options, threads=None, **env):
        if threads:
            env["GPUSHARE_ACTIVE_THREAD_PERCENTAGE"] = threads
        return Work(self, name, kernel_us, seconds, *options, **env)

    def stop(self, checked=True):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        self.log.close()
        text = self.text()
        shutil.rmtree(self.folder)
        if checked and status:
            raise AssertionError(f"exit status {status}: {text}")
