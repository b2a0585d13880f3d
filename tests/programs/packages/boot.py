#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Debian's packages on a machine with a real systemd, which qemu boots: socket activation, watchdog, restarts and an upgrade under
a running client, refused configurations, journal, exporter, a user's own server, a reboot, purge.

usage: boot.py DEBS FOLDER      (as root; `make guest-test`)

The base system is made once, in FOLDER; the log of the machine's console and of the server's unit is left there."""
import json
import os
import re
import shlex
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guest import Guest, make_image  # noqa: E402
from system import make_base  # noqa: E402
from trial import LIBRARY, OWN, SECONDS, Trial, clients, finish, main, need, wait  # noqa: E402

DROP_IN = "/etc/systemd/system/gpushared.service.d/trial.conf"
CONFIG = "/etc/gpushare/gpushared.yaml"
OPTIONS = "/etc/default/gpushared"
SOCKETS = ("gpushared.socket", "gpushared-admin.socket")


class Service:
    """gpushared.service, kept by the guest's systemd."""

    def __init__(self, guest):
        self.guest = guest

    def show(self, name):
        return self.guest.run("systemctl", "show", "-P", name, "gpushared.service").strip()

    def pid(self):
        return int(self.show("MainPID"))

    def text(self):
        return self.guest.run("journalctl", "--no-pager", "-o", "cat", "-u", "gpushared")

    def ready(self):
        return self.show("ActiveState") == "active" and self.show("SubState") == "running"

    def upgraded(self):
        wait(self.ready, "the server is not there after the upgrade")

    def forget(self):
        self.guest.run("systemctl", "daemon-reload")

    def worker(self):
        return json.loads(self.guest.run("gpusharectl", "--json", "status"))["devices"][0]["worker_pid"]


class Boot(Trial):
    def quote(self, text):
        for line in text.strip().splitlines():
            print(f"            {line}", flush=True)

    def unserved(self, guest, service):
        """The machine has no GPU of NVIDIA's. Whoever asks is told so, again and again, and the sockets go on listening."""
        options = guest.read(OPTIONS)
        guest.run("rm", OPTIONS)
        for _ in range(3):
            status, said = guest.execute("gpusharectl status")
            need(status != 0 and "the server can't start: " in said, f"gpusharectl status without a GPU: {said}")
            wait(lambda: service.show("ActiveState") == "failed", "a server without a GPU goes on")
        for unit in SOCKETS:
            need(guest.shell(f"systemctl is-active {unit}").strip() == "active", f"{unit} does not listen any more")
        guest.write(OPTIONS, options)
        self.step("without a GPU three questions were answered, and the sockets go on listening:")
        self.quote(said)

    def start(self, guest, service):
        """The first question starts the server."""
        need(service.show("ActiveState") in ("inactive", "failed"), "the service runs before anybody has asked")
        for unit in SOCKETS:
            need(guest.shell(f"systemctl is-active {unit}").strip() == "active", f"{unit} does not listen")
        said = guest.run("gpusharectl", "status")
        need("MODE" in said or "ready" in said, f"gpusharectl status: {said}")
        need(service.ready(), "the first question did not start the service")
        self.step("the sockets listened; the first question started the service, which says:")
        self.quote(service.show("StatusText"))

    def replaced(self, guest, service, how, title):
        """The server is replaced; its worker and its clients go on."""
        pid, worker, client = service.pid(), service.worker(), clients(guest)["resilient"]
        stored = int(service.show("NFileDescriptorStore"))
        need(stored > 0, "systemd stores no descriptor")
        began = time.monotonic()
        how()
        wait(lambda: service.ready() and service.pid() not in (0, pid), f"{title}: no next server")
        wait(lambda: guest.execute("gpusharectl status")[0] == 0, f"{title}: the next server does not answer")
        taken = time.monotonic() - began
        need(service.worker() == worker, f"{title}: the worker was lost")
        now = clients(guest)["resilient"]
        need((now["client"], now["pid"]) == (client["client"], client["pid"]), f"{title}: the client is another one: {client} {now}")
        self.step(f"{title}: the next server has worker and client after {taken:.1f} s ({stored} descriptors were stored)")

    def replace(self, guest, service):
        self.replaced(guest, service, lambda: guest.run("systemctl", "restart", "gpushared"), "systemctl restart")
        self.replaced(guest, service, lambda: guest.run("systemctl", "kill", "-s", "KILL", "--kill-whom=main", "gpushared"), "SIGKILL")
        guest.write(DROP_IN, "[Service]\nWatchdogSec=3\n")
        guest.shell("systemctl daemon-reload; systemctl restart gpushared")
        self.replaced(guest, service, lambda: guest.run("systemctl", "kill", "-s", "STOP", "--kill-whom=main", "gpushared"),
                      "a server that stands still, with WatchdogSec=3")
        need("Watchdog timeout" in guest.run("journalctl", "--no-pager", "-o", "cat", "-u", "gpushared"), "it was not the watchdog")
        guest.shell(f"rm {DROP_IN}; systemctl daemon-reload; systemctl restart gpushared")
        wait(service.ready, "the server is not there without the drop-in")

    def hung_worker(self, guest, service):
        """A worker that hangs is the supervisor's concern, not systemd's."""
        pid, worker = service.pid(), service.worker()
        guest.shell(f"kill -STOP {worker}")
        wait(lambda: service.worker() not in (0, worker, None), "a hung worker was not replaced")
        need(service.pid() == pid, "systemd has replaced the server for a hung worker")
        wait(lambda: "resilient" in clients(guest), "the client was lost with the hung worker")
        self.step("a worker that stood still was replaced; the server and its client stayed")

    def configure(self, guest, service):
        uid = guest.run("id", "-u", "bob").strip()
        guest.write(CONFIG, f"users:\n  - uid: {uid}\n    memory: {{limit: 64M}}\n")
        guest.run("systemctl", "reload", "gpushared")
        need("64" in guest.run("gpusharectl", "get", "user", "bob"), "the reloaded file is not in force")
        guest.write(CONFIG, f"users:\n  - uid: {uid}\n    memory: {{limt: 32M}}\n")
        guest.run("systemctl", "reload", "gpushared", status=1)
        need("64" in guest.run("gpusharectl", "get", "user", "bob"), "a refused file is in force")
        refusal = [line for line in service.text().splitlines() if "limt" in line]
        need(refusal, "the journal has no reason for the refusal")
        self.step("a configuration was reloaded; a wrong one was refused, the old one stayed in force:")
        self.quote(refusal[-1])
        self.replaced(guest, service, lambda: guest.run("systemctl", "restart", "gpushared"), "systemctl restart with the wrong one")
        need("64" in guest.run("gpusharectl", "get", "user", "bob"), "the restart has lost the configuration that was in force")
        guest.write(CONFIG, "{}\n")
        guest.run("systemctl", "reload", "gpushared")

    def mistake(self, guest, service):
        """A wrong variable of the service ends nobody."""
        options = guest.read(OPTIONS)
        guest.write(OPTIONS, options + "GPUSHARE_MEMORY_LIMIT=16 G\n")
        self.replaced(guest, service, lambda: guest.run("systemctl", "restart", "gpushared"), "systemctl restart with a wrong variable")
        warnings = json.loads(guest.run("gpusharectl", "--json", "status"))["warnings"]
        need([warning["name"] for warning in warnings] == ["options_refused"], f"the warnings are {warnings}")
        guest.write(OPTIONS, options)
        self.replaced(guest, service, lambda: guest.run("systemctl", "restart", "gpushared"), "systemctl restart without it")
        need(not json.loads(guest.run("gpusharectl", "--json", "status"))["warnings"], "the warning stays")

    def journal(self, guest):
        rows = [json.loads(line) for line in guest.shell("journalctl --no-pager -o json -u gpushared").splitlines()]
        named = [row for row in rows if "EVENT" in row and "CLIENT" in row]
        need(named, "no line of the journal has the fields EVENT= and CLIENT=")
        uid = guest.run("id", "-u", "carol").strip()
        fault = [row for row in named if row.get("CLIENT_UID") == uid and "made it fail" in row["MESSAGE"]]
        need(fault, "carol's fault is not found by its fields")
        self.step("the journal has the fields of carol's fault: " + " ".join(
            f"{name}={fault[0][name]}" for name in ("EVENT", "CLIENT", "CLIENT_UID", "DEVICE", "PRIORITY") if name in fault[0]))

    def watch(self, guest):
        guest.shell("cp /usr/share/doc/gpushare/gpushare-exporter.env /etc/default/gpushare-exporter; systemctl enable --now gpushare-exporter")
        fetch = "exec 9<>/dev/tcp/127.0.0.1/9408 && printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&9 && cat <&9"
        wait(lambda: "\ngpushare_" in guest.execute("exec bash -c " + shlex.quote(fetch))[1], "no metrics")
        self.step("the exporter serves metrics")
        for unit in ("gpushared.service", "gpushare-exporter.service"):
            need(guest.shell(f"systemd-analyze verify --man=no {unit} 2>&1").strip() == "", f"systemd-analyze verify {unit} says something")
            line = guest.shell(f"systemd-analyze security --no-pager {unit}").strip().splitlines()[-1]
            need(float(re.search(r"(\d+\.\d)", line)[1]) <= 1.5, line)
            self.step(line.strip("→ "))

    def doctor(self, guest):
        status, text = guest.execute("gpushare doctor")
        need("systemd" in text, f"gpushare doctor says nothing of systemd: {text}")
        self.step(f"gpushare doctor, exit status {status}:")
        self.quote(text)

    def own_server(self, guest):
        """alice's own server, kept by her systemd."""
        uid = guest.run("id", "-u", "alice").strip()
        guest.run("loginctl", "enable-linger", "alice")
        wait(lambda: guest.has(f"/run/user/{uid}/systemd/private"), "alice's service manager does not start")
        guest.run("mkdir", "-p", "/home/alice/.config/gpushare", user="alice")
        guest.shell("echo 'GPUSHARED_OPTIONS=--driver softgpu' >/home/alice/.config/gpushare/gpushared.env")
        env = {"XDG_RUNTIME_DIR": f"/run/user/{uid}", "HOME": "/home/alice"}
        guest.run("systemctl", "--user", "start", "gpushared", user="alice", **env)
        said = guest.run("vector-add", user="alice", **env)
        need("sums verified" in said, said)
        listed = guest.run("gpusharectl", "status", user="alice", **env)
        guest.run("systemctl", "--user", "stop", "gpushared", user="alice", **env)
        guest.run("loginctl", "disable-linger", "alice")
        need("ready" in listed, listed)
        self.step("alice's own server, under her service manager, served her")

    def drain(self, guest, alice):
        guest.run("gpusharectl", "drain")
        refused = guest.start("vector-add", user="bob")
        text, _ = refused.communicate(SECONDS)
        need(refused.returncode != 0, f"a client came in while the server was drained: {text}")
        guest.run("gpusharectl", "resume")
        finish(guest.start("vector-add", user="bob"), "bob's client", "sums verified")
        need("resilient" in clients(guest), "alice's client was lost")
        self.step("drained, and resumed; bob was told:")
        self.quote(text.splitlines()[-1])

    def reboot(self, guest, service):
        guest.run("gpusharectl", "set", "--save", "gpu", "0", "mode=strict")
        guest.reboot()
        self.start(guest, service)
        need("strict" in guest.run("gpusharectl", "get", "gpu", "0"), "what was saved is not in force after a boot")
        self.step("booted again; what was saved is in force")

    def stop(self, guest, service):
        alice = guest.start("resilient", "-s", "1000000000", user="alice")
        wait(lambda: "resilient" in clients(guest), "alice's client is not in the list")
        worker = service.worker()
        guest.run("systemctl", "stop", "gpushared.service")
        alice.communicate(SECONDS)
        need(service.show("NFileDescriptorStore") == "0", "descriptors are left with systemd after a stop")
        need(not guest.has(f"/proc/{worker}"), "its worker is left")
        # What alice and the administrator wrote is not the packages'.
        guest.run("rm", "-r", "/home/alice/.config/gpushare", os.path.dirname(CONFIG), "/etc/default/gpushare-exporter")
        self.step("systemctl stop ended the server, its worker and its client")

    def run(self):
        make_base(self.base)
        self.step("the base system is there")
        folder = os.path.join(self.folder, "guest")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        own, library = self.packages(OWN), self.packages(LIBRARY)
        image = make_image(self.base, folder, {"/packages": own + library, "/next": self.make_next()},
                           ["gcc", "libc6-dev", "pkg-config", *(os.path.join("/packages", os.path.basename(path)) for path in own + library)])
        self.step("the machine's disk is made")
        guest = Guest(folder, image)
        service = Service(guest)
        try:
            self.trial(guest, service)
        finally:
            if not guest.lost:
                with open(os.path.join(folder, "journal.log"), "w", encoding="utf-8") as file:
                    file.write(guest.run("journalctl", "--no-pager", "-o", "short-precise", "-u", "gpushared", "-u", "gpushared.socket"))
                guest.close()

    def trial(self, guest, service):
        state = guest.execute("systemctl is-system-running --wait")[1].strip()
        need(state == "running", f"the machine is {state}: {guest.execute('systemctl --failed --no-pager')[1]}")
        self.step("booted: " + guest.shell("echo Linux $(uname -r), $(systemctl --version | head -n 1), $(systemd-detect-virt)").strip())
        self.install(guest)
        self.unserved(guest, service)
        self.start(guest, service)
        self.develop(guest)
        alice = self.use(guest, service)
        self.journal(guest)
        self.replace(guest, service)
        self.hung_worker(guest, service)
        self.configure(guest, service)
        self.mistake(guest, service)
        self.watch(guest)
        self.doctor(guest)
        self.own_server(guest)
        self.drain(guest, alice)
        self.upgrade(guest, service, alice)
        self.reboot(guest, service)
        self.stop(guest, service)
        self.purge(guest, service)


if __name__ == "__main__":
    main(Boot)
