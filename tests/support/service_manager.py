# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A service manager that plays systemd's part for one gpushared of a test (examples/support/fd_store.py)."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from private_server import BUILD, ENV, GPUSHARED, SECONDS, run, GPUSHARECTL

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/support"))
from fd_store import FdStore  # noqa: E402


UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../systemd/gpushared.service.in")


def unit_numbers(key):
    """The numbers that the service's unit gives for a key, such as those exit statuses after which systemd starts no other server."""
    with open(UNIT, encoding="utf-8") as file:
        value, = re.findall(rf"^{key}=(.*)$", file.read(), re.M)
    return [int(word) for word in value.split()]


class Manager(FdStore):
    def __init__(self, *options, config="{}\n", env=None):
        self.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        super().__init__(self.folder)
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        self.configure(config)
        # A server that a service manager starts is nobody's: only root and who is named administers it.
        admin = ("--admin-uid", str(os.getuid())) if os.getuid() else ()
        self.command = [GPUSHARED, "--driver", "softgpu", "--config", self.file("config.yaml"), *admin, *options]
        self.env = {**ENV, **(env or {})}
        self.orphans = set()
        self.start()

    def start(self, wait=True):
        super().start(self.command, self.env, self.log.fileno())
        if wait:
            self.hear("READY=1")

    def hear(self, state):
        if not self.heard_state(state, SECONDS):
            raise AssertionError(f"no {state} (status {self.process.poll()}): {self.text()}")

    def kill(self, number=signal.SIGKILL):
        """Ends the server and waits. All that it sent is read before the next one starts, as systemd does."""
        self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        self.settle()
        self.reap()
        return status

    def reap(self):
        """Workers that have ended, but no process that somebody else waits for."""
        for pid in self.orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def file(self, name):
        """Returns the path of a file of the test's, in a folder that all users can enter."""
        return os.path.join(self.folder, name)

    def configure(self, text):
        """Writes the configuration file, which the server has read by then or not."""
        with open(self.file("config.yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def ctl(self, *words):
        return run(GPUSHARECTL, "--socket", self.admin, *words)

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def worker(self):
        """The pid of the worker that the server shows; waits until it serves."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            answer = self.ctl("--json", "status")
            device = json.loads(answer.stdout)["devices"][0] if answer.returncode == 0 else {}
            if device.get("state") == "ready" and device.get("worker_pid"):
                return device["worker_pid"]
            time.sleep(0.01)
        raise AssertionError(f"no worker serves: {self.text()}")

    def workers(self):
        """The pids of workers that run with this server's driver, by their parents: this process or the server."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    parts = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    name = file.read().strip()
                if name.startswith("gpushare-worke") and int(parts[1]) in (os.getpid(), self.process.pid):
                    found.append(int(pid))
        self.orphans.update(found)
        self.reap()
        return [pid for pid in found if os.path.exists(f"/proc/{pid}/exe") and os.path.lexists(f"/proc/{pid}")]

    def steady(self, seed):
        return subprocess.Popen([os.path.join(BUILD, "tests/programs/survive/steady"), str(seed)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**ENV, "GPUSHARE_SOCKET": self.client, "GPUSHARE_CLIENT_NAME": f"steady{seed}"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(SECONDS)
        end = time.monotonic() + SECONDS
        self.close()
        while self.workers() and time.monotonic() < end:
            time.sleep(0.01)
        self.reap()
        self.log.close()
        shutil.rmtree(self.folder)
