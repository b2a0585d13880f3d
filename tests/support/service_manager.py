# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A service manager that plays systemd's part for one gpushared: it opens the sockets, keeps the descriptors
that the server stores (FDSTORE=1), and starts the next server with all of them."""
import array
import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from private_server import BUILD, ENV, GPUSHARED, SECONDS, run, GPUSHARECTL


class Started:
    """A program that was forked from here, with the descriptors from 3 on, as systemd hands them over."""

    def __init__(self, command, names, fds, env, log):
        self.returncode = None
        first = max([*fds, 3 + len(fds)]) + 1
        self.pid = os.fork()
        if self.pid:
            return
        try:
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, first) for fd in fds]
            os.dup2(log, 1)
            os.dup2(log, 2)
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i, inheritable=True)
            os.closerange(3 + len(fds), first + len(fds) + 64)
            os.execve(command[0], command, {**env, "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(fds)),
                                            "LISTEN_FDNAMES": names, "FDSTORE": "16000"})
        finally:
            os._exit(127)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, seconds=SECONDS):
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                raise AssertionError("the server does not end")
            time.sleep(0.0005)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


PR_SET_CHILD_SUBREAPER = 36


class Manager:
    def __init__(self, *options, env=None):
        # Orphaned workers become this process's children, as they become systemd's.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.client, self.admin = (os.path.join(self.folder, name) for name in ("gpushare.sock", "admin.sock"))
        self.log = open(os.path.join(self.folder, "log"), "w", encoding="utf-8")
        none = os.path.join(self.folder, "none.yaml")
        with open(none, "w", encoding="utf-8") as file:
            file.write("{}\n")
        self.listening = {"client": self._listen(self.client, socket.SOCK_SEQPACKET),
                          "admin": self._listen(self.admin, socket.SOCK_STREAM)}
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(os.path.join(self.folder, "notify"))
        self.command = [GPUSHARED, "--driver", "softgpu", "--config", none, *options]
        self.env = {**ENV, "NOTIFY_SOCKET": os.path.join(self.folder, "notify"), **(env or {})}
        self.stored, self.states, self.lock = {}, [], threading.Lock()
        self.process, self.ended, self.orphans = None, False, set()
        self.thread = threading.Thread(target=self._hear_all, daemon=True)
        self.thread.start()
        self.start()

    @staticmethod
    def _listen(path, kind):
        one = socket.socket(socket.AF_UNIX, kind)
        one.bind(path)
        one.listen(64)
        return one

    def _hear_all(self):
        while not self.ended:
            message, control, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(16))
            fds = array.array("i")
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
            self._take(message.decode().splitlines(), list(fds))

    def _take(self, lines, fds):
        words = dict(line.split("=", 1) for line in lines if "=" in line)
        with self.lock:
            if words.get("FDSTORE") == "1":
                self.stored.setdefault(words["FDNAME"], []).extend(fds)
            elif words.get("FDSTOREREMOVE") == "1":
                for fd in self.stored.pop(words["FDNAME"], []):
                    os.close(fd)
            elif "BARRIER" not in words:
                self.states += lines

    def settle(self):
        """Waits until all is read that was sent."""
        asked = socket.socketpair()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
            mine.sendto(f"MARK={id(asked)}".encode(), os.path.join(self.folder, "notify"))
        for one in asked:
            one.close()
        self.hear(f"MARK={id(asked)}")

    def hear(self, state):
        end = time.monotonic() + SECONDS
        while state not in self.states:
            if time.monotonic() > end or (self.process.poll() is not None and state == "READY=1"):
                raise AssertionError(f"no {state} (status {self.process.poll()}): {self.text()}")
            time.sleep(0.001)
        with self.lock:
            self.states.remove(state)

    def start(self, wait=True):
        with self.lock:
            named = [(name, one.fileno()) for name, one in self.listening.items()]
            named += [(name, fd) for name, many in self.stored.items() for fd in many]
            self.states = [state for state in self.states if state != "READY=1"]
            names, fds = ":".join(name for name, _ in named), [fd for _, fd in named]
            self.process = Started(self.command, names, fds, self.env, self.log.fileno())
        if wait:
            self.hear("READY=1")

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

    def ctl(self, *words):
        return run(GPUSHARECTL, "--socket", self.admin, *words)

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

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
            self.process.wait()
        with self.lock:
            for many in self.stored.values():
                for fd in many:
                    os.close(fd)
            self.stored = {}
        for one in self.listening.values():
            one.close()
        end = time.monotonic() + SECONDS
        while self.workers() and time.monotonic() < end:
            time.sleep(0.01)
        self.reap()
        self.ended = True
        self.log.close()
        shutil.rmtree(self.folder)
