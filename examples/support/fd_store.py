# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A service manager's part in one gpushared, as systemd plays it: it opens the sockets, hears the notifications, keeps
the descriptors that the server stores (FDSTORE=1), and starts the next server with all of them."""
import array
import ctypes
import fcntl
import os
import signal
import socket
import threading
import time

PR_SET_CHILD_SUBREAPER = 36


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
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
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

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                raise TimeoutError("the server does not end")
            time.sleep(0.0005)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class FdStore:
    """Its sockets are in `folder`: `client` and `admin` are their paths, `environment` is what a server has to have."""

    def __init__(self, folder):
        # Orphaned workers become this process's children, as they become systemd's.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.client, self.admin, self.heard = (os.path.join(folder, name) for name in ("gpushare.sock", "admin.sock", "notify"))
        self.listening = {"client": self._listen(self.client, socket.SOCK_SEQPACKET),
                          "admin": self._listen(self.admin, socket.SOCK_STREAM)}
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.heard)
        self.environment = {"NOTIFY_SOCKET": self.heard}
        self.stored, self.states, self.lock = {}, [], threading.Lock()
        self.process, self.ended = None, False
        self.thread = threading.Thread(target=self._hear_all, daemon=True)
        self.thread.start()

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
            else:
                self.states += lines
                # A server that sends a barrier waits until its descriptor is closed.
                for fd in fds:
                    os.close(fd)

    def settle(self):
        """Waits until all is read that was sent."""
        asked = socket.socketpair()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
            mine.sendto(f"MARK={id(asked)}".encode(), self.heard)
        for one in asked:
            one.close()
        self.heard_state(f"MARK={id(asked)}")

    def heard_state(self, state, seconds=60):
        """Waits for a line of a notification. Returns whether it came before the time was up, or the server's end."""
        end = time.monotonic() + seconds
        while state not in self.states:
            if time.monotonic() > end or (state == "READY=1" and self.process.poll() is not None):
                return False
            time.sleep(0.001)
        with self.lock:
            self.states.remove(state)
        return True

    def start(self, command, env, log):
        """Starts a server, which is ready when READY=1 is heard."""
        with self.lock:
            named = [(name, one.fileno()) for name, one in self.listening.items()]
            named += [(name, fd) for name, many in self.stored.items() for fd in many]
            self.states = [state for state in self.states if state != "READY=1"]
            names, fds = ":".join(name for name, _ in named), [fd for _, fd in named]
            self.process = Started(command, names, fds, {**env, **self.environment}, log)
        return self.process

    def close(self):
        with self.lock:
            for many in self.stored.values():
                for fd in many:
                    os.close(fd)
            self.stored, self.ended = {}, True
        for one in self.listening.values():
            one.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
            mine.sendto(b"CLOSING=1", self.heard)
        self.thread.join()
        self.notify.close()
        for path in (self.client, self.admin, self.heard):
            os.unlink(path)
