# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""systemd's part for the installed gpushared.service of a system: sockets, user, folders, variables, stored descriptors."""
import os
import re
import shlex
import shutil
import signal
import sys

from system import ENVIRONMENT, Failure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/support"))
from fd_store import FdStore  # noqa: E402

SECONDS = 60


class Manager(FdStore):
    def __init__(self, system):
        self.system, self.unit = system, system.read("/lib/systemd/system/gpushared.service")
        self.user = self.value("User")
        for folder, kind in (("/run", "RuntimeDirectory"), ("/var/lib", "StateDirectory"), ("/var/cache", "CacheDirectory")):
            path = os.path.join(folder, self.value(kind))
            os.makedirs(system.path(path), exist_ok=True)
            system.run("chown", f"{self.user}:{self.user}", path)
        super().__init__(system.path("/run/gpushare"))
        self.environment = {"NOTIFY_SOCKET": "/run/gpushare/notify"}
        for name in ("gpushared.socket", "gpushared-admin.socket"):
            self.lend(system.read("/lib/systemd/system/" + name))
        os.chmod(self.heard, 0o666)
        self.log = open(system.path("/var/log/gpushared.log"), "a", encoding="utf-8")

    def value(self, key, text=None):
        return re.search(rf"^{key}=(.*)$", text or self.unit, re.M)[1]

    def lend(self, unit):
        """The mode and the owner of a socket, as its unit has them."""
        path = re.search(r"^Listen\w+=(.*)$", unit, re.M)[1]
        self.system.run("chmod", self.value("SocketMode", unit), path)
        if "SocketGroup=" in unit:
            self.system.run("chown", f"{self.value('SocketUser', unit)}:{self.value('SocketGroup', unit)}", path)

    def serve(self):
        """Starts the service as its unit says, and returns when it is ready."""
        variables = dict(line.split("=", 1) for line in re.findall(r"^([A-Z_]+=.*)$", self.system.read("/etc/default/gpushared"), re.M))
        words = shlex.split(self.value("ExecStart").replace("$GPUSHARED_OPTIONS", variables.pop("GPUSHARED_OPTIONS", "")))
        set_here = dict(pair.split("=", 1) for pair in re.findall(r"^Environment=(.*)$", self.unit, re.M))
        environment = {**ENVIRONMENT, **set_here, **variables, "STATE_DIRECTORY": "/var/lib/gpushare", "CACHE_DIRECTORY": "/var/cache/gpushare"}
        self.start(self.system.words(words, self.user), environment, self.log.fileno())
        if not self.heard_state("READY=1", SECONDS):
            raise Failure(f"the server does not get ready: {self.text()}")

    def pid(self):
        return self.process.pid

    def upgraded(self):
        """What the packages' scripts have systemd do, which is not there."""
        if self.process.poll() is not None:
            raise Failure(f"the upgrade has ended the server: {self.text()}")
        self.replace()

    def replace(self):
        """systemctl restart."""
        self.process.send_signal(getattr(signal, self.value("RestartKillSignal")))
        self.ends_well()
        self.serve()

    def ends_well(self):
        status = self.process.wait(SECONDS)
        self.settle()
        if status != 0:
            raise Failure(f"the server ended with status {status}: {self.text()}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.ends_well()
        if self.stored:
            raise Failure(f"the server left descriptors with the service manager: {sorted(self.stored)}")
        self.close()
        self.log.close()

    def text(self):
        return self.system.read("/var/log/gpushared.log")

    def forget(self):
        """What systemd itself would remove, and the log, which is journald's."""
        for path in ("/run/gpushare", "/var/log/gpushared.log"):
            whole = self.system.path(path)
            shutil.rmtree(whole) if os.path.isdir(whole) else os.unlink(whole)
