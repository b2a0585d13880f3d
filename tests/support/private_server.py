# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A private gpushared on the software GPU, and clients whose kernels take a modelled time
(tests/programs/pictures/work.c). Tests that run at the same time share nothing."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", os.path.abspath("build"))
GPUSHARED, GPUSHARECTL, GPUSHARE = (os.path.join(BUILD, "bin", name) for name in ("gpushared", "gpusharectl", "gpushare"))
PASSED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "LC_ALL")
# The device of this run of the tests, "SOFTGPU_STRICT=1 SOFTGPU_SEED=7", for whatever starts a server; a test's own
# settings override it.
SOFTGPU = dict(word.split("=", 1) for word in os.environ.get("TEST_SOFTGPU", "").split())
ENV = {**{key: os.environ[key] for key in PASSED if key in os.environ}, **SOFTGPU}
# On top of ENV for a program of another user, who may not be let into the folder of the sources: without the file that
# ThreadSanitizer is told to read, whose lines are all of kernels.
FOR_OTHER_USERS = {key: re.sub(r"suppressions=[^:]*:?", "", ENV[key]) for key in ("TSAN_OPTIONS",) if key in ENV}
SECONDS = float(os.environ.get("TEST_LIMIT", "180")) / 3

# Runs a program and hands it descriptors from 3 on, as systemd does.
EXEC_WITH_FDS = """
import os, sys
fds, names, program = [int(fd) for fd in sys.argv[1].split(",")], sys.argv[2], sys.argv[3:]
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.closerange(3 + len(fds), 200)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(program[0], program)
"""


def run(*command, **env):
    """Runs a command to its end. Of gpushare's variables its environment has only those of `env`, and the device of this run."""
    return subprocess.run(command, capture_output=True, text=True, env={**ENV, **env}, stdin=subprocess.DEVNULL,
                          timeout=SECONDS, check=False)


class Work:
    """One client process. It is started, told to begin, asked for its number of launches, and ended."""

    def __init__(self, server, name, kernel_us, seconds, *options, user=None, **env):
        """user: the uid that it runs as, which only root can choose; its program is then a copy that this user can read."""
        program = os.path.join(BUILD, "tests/programs/pictures/work")
        if user is not None:
            copied = server.file("work")
            program = copied if os.path.exists(copied) else shutil.copy(program, copied)
        command = [program, str(kernel_us), str(seconds), *map(str, options)]
        self.server, self.launches = server, None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        user=user, group=user, extra_groups=None if user is None else (),
                                        env={**ENV, **({} if user is None else FOR_OTHER_USERS), "GPUSHARE_SOCKET": server.client,
                                             "GPUSHARE_CLIENT_NAME": name, **env})
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError(f"{name} did not connect: {server.text()}")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def row(self):
        """Waits for its last launch. Returns the server's description of the client at that time."""
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
    """A server that is ready when the constructor returns. All users can enter its folder. As a context
    manager it fails the test if the server does not end well.

    options  further options of gpushared
    admin    the uid that may change things besides root, by default the user who runs the test; None: no other
    passed   kinds ("client", "admin") of the sockets that it inherits, as from systemd; `names` are their
             names in LISTEN_FDNAMES. None: it makes its own
    abstract its NOTIFY_SOCKET has no file
    env      variables of its environment besides ENV
    preexec  a function that its process calls before it becomes the server"""

    def __init__(self, *options, admin=os.getuid(), passed=None, names="", abstract=False, env=None, preexec=None):
        self.preexec = preexec
        self.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.held = contextlib.ExitStack()
        self.held.callback(shutil.rmtree, self.folder)
        self.client, self.admin = (os.path.join(self.folder, name) for name in ("gpushare.sock", "admin.sock"))
        self.process, self.states, self.not_its = None, [], {"log", "notify", "none.yaml"}
        try:
            os.chmod(self.folder, 0o755)
            self.log = self.held.enter_context(open(os.path.join(self.folder, "log"), "w", encoding="utf-8"))
            command = [GPUSHARED, "--driver", "softgpu", *(("--admin-uid", str(admin)) if admin else ()),
                       *(() if "--config" in options else ("--config", self._no_config())), *options]
            self._start(command, passed, names, {**ENV, "NOTIFY_SOCKET": self._listen(abstract), **(env or {})})
            self.hear("READY=1")
        except BaseException:
            self.give_up()
            raise

    def _no_config(self):
        """An empty configuration: the machine's own must not count."""
        path = os.path.join(self.folder, "none.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{}\n")
        return path

    def _listen(self, abstract):
        """Listens to the server's messages to systemd. Returns the name of the socket."""
        self.notify = self.held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        name = f"gpushare-test-{os.getpid()}-{id(self)}" if abstract else os.path.join(self.folder, "notify")
        self.notify.bind("\0" + name if abstract else name)
        return "@" + name if abstract else name

    def _start(self, command, passed, names, env):
        fds = []
        if passed is None:
            command += ["--socket", self.client, "--admin-socket", self.admin]
        else:
            fds = [self._made_by_systemd(kind) for kind in passed]
            command = [sys.executable, "-c", EXEC_WITH_FDS, ",".join(map(str, fds)), names] + command
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=fds, env=env,
                                        preexec_fn=self.preexec)

    def _made_by_systemd(self, kind):
        form = socket.SOCK_SEQPACKET if kind == "client" else socket.SOCK_STREAM
        one = self.held.enter_context(socket.socket(socket.AF_UNIX, form))
        one.bind(getattr(self, kind))
        one.listen()
        return one.fileno()

    def hear(self, state):
        """Reads the server's messages to systemd until one of them says this."""
        end = time.monotonic() + SECONDS
        self.notify.settimeout(0.2)
        while state not in self.states:
            with contextlib.suppress(TimeoutError):
                self.states += self.notify.recv(4096).decode().splitlines()
                continue
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no {state} (status {self.process.poll()}): {self.text()}")

    def hear_rest(self):
        """Reads what the server has told systemd so far, for which there is room for ten messages."""
        self.notify.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.states += self.notify.recv(4096).decode().splitlines()

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_log(self, words, mark=0):
        """Waits until the log has these words behind its first `mark` characters."""
        end = time.monotonic() + SECONDS
        while words not in self.text()[mark:]:
            if time.monotonic() > end:
                raise AssertionError(f"the log never said \"{words}\": {self.text()}")
            time.sleep(0.01)

    def file(self, name):
        """Returns the path of a file in the server's folder which the test makes, not the server."""
        self.not_its.add(name)
        return os.path.join(self.folder, name)

    def command(self, *words):
        return [GPUSHARECTL, "--socket", self.admin, *words]

    def ctl(self, *words, **env):
        return run(*self.command(*words), **env)

    def start_ctl(self, *words, **how):
        return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=ENV, **how)

    def info(self, *options, **env):
        return run(GPUSHARE, "--socket", self.client, *options, "info", **env)

    def work(self, name, kernel_us, seconds, *options, threads=None, **env):
        if threads:
            env["GPUSHARE_ACTIVE_THREAD_PERCENTAGE"] = threads
        return Work(self, name, kernel_us, seconds, *options, **env)

    def give_up(self):
        """Ends the server at once, in any state."""
        if self.process:
            self.process.kill()
            self.process.wait()
        self.held.close()

    def stop(self):
        """Stops the server. Returns its exit status, the names of the files that it left in its folder, and its log."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired as hangs:
            text = self.text()
            self.give_up()
            raise AssertionError(f"it does not stop: {text}") from hangs
        self.hear_rest()
        left, text = set(os.listdir(self.folder)) - self.not_its, self.text()
        self.held.close()
        return status, left, text

    def stop_well(self):
        status, left, text = self.stop()
        if status or left or "STOPPING=1" not in self.states:
            raise AssertionError(f"exit status {status}, left behind {left or 'nothing'}, told systemd {self.states}: {text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_well()
