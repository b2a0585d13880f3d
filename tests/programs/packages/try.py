#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Debian's packages in a system of their own: installed, used by three users, upgraded under a running client, purged. Then the
two container images, made by the lines of their Containerfiles, with a client in one and its server in the other.

usage: try.py DEBS FOLDER      (as root; `make deb-test`)

systemd is played: it needs to be process 1. The base system is made once, in FOLDER."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../.."))
sys.path.insert(0, HERE)
from manager import Manager  # noqa: E402
from system import ENVIRONMENT, Failure, Image, System, host, make_base  # noqa: E402

OWN = ("gpushare-server", "gpushare-softgpu", "gpushare-cuda", "gpushare-doc")
LIBRARY = ("libgpushare-client0", "libgpushare-client-dev")
EXAMPLES = "/usr/share/doc/gpushare/examples"
SECONDS = 60


def need(holds, sentence):
    if not holds:
        raise Failure(sentence)


def wait(holds, sentence):
    end = time.monotonic() + SECONDS
    while not holds():
        need(time.monotonic() < end, sentence)
        time.sleep(0.05)


def clients(system):
    return {row["name"]: row for row in json.loads(system.run("gpusharectl", "--json", "clients"))["clients"]}


def finish(client, title, expected):
    text, _ = client.communicate(timeout=SECONDS)
    need(client.returncode == 0 and re.search(expected, text), f"{title}: exit status {client.returncode}: {text}")
    return text.strip()


class Trial:
    def __init__(self, debs, folder):
        self.debs, self.folder, self.base = debs, folder, os.path.join(folder, "base")
        self.began = time.monotonic()

    def step(self, title):
        print(f"{time.monotonic() - self.began:6.1f} s  {title}", flush=True)

    def packages(self, names, folder=None):
        return [glob.glob(os.path.join(folder or self.debs, name + "_*.deb"))[0] for name in names]

    # ---- one machine
    def install(self, system):
        system.install(*system.take(self.packages(OWN), "/packages"))
        need(system.run("id", "-gn", "gpushare").strip() == "gpushare", "no user gpushare")
        for unit in ("gpushared.socket", "gpushared-admin.socket"):
            need(os.path.islink(system.path("/etc/systemd/system/sockets.target.wants/" + unit)), f"{unit} is not enabled")
        need(not os.path.lexists(system.path("/etc/systemd/system/multi-user.target.wants/gpushared.service")),
             "the service is enabled, not its sockets alone")
        system.write("/etc/default/gpushared", "GPUSHARED_OPTIONS=--driver softgpu\n")
        self.step("the server's packages are installed; the sockets are enabled")

    def develop(self, system):
        """Compiles the installed examples where they lie, and a program that knows only CUDA."""
        system.install("gcc", "libc6-dev", "pkg-config", *system.take(self.packages(LIBRARY), "/packages"))
        for name in ("vector-add", "resilient", "stray"):
            system.shell(f"cd {EXAMPLES} && cc -Wall -Werror -o /usr/local/bin/{name} {name}.c $(pkg-config --cflags --libs gpushare-client)")
        system.write("/tmp/cuda.c", "int cuInit(unsigned), cuDeviceGetCount(int *);\n#include <stdio.h>\n"
                     "int main(void) { int n = 0; int e = cuInit(0) | cuDeviceGetCount(&n); printf(\"error %d, %d device\\n\", e, n); return e; }\n")
        system.shell("cc -o /usr/local/bin/cuda-program /tmp/cuda.c /usr/lib/gpushare/libcuda.so.1")
        for name in ("alice", "bob", "carol"):
            system.run("useradd", "--create-home", name)
        self.step("the library's packages are installed, the examples compiled")

    def use(self, system, manager):
        alice = system.start("resilient", "-s", "1000000000", user="alice", GPUSHARE_THREADS_LIMIT="25%", GPUSHARE_MEMORY_LIMIT="64M")
        wait(lambda: "resilient" in clients(system), "alice's client is not in the list")
        said = finish(system.start("vector-add", user="bob", GPUSHARE_MEMORY_LIMIT="128M"), "bob's client", "sums verified")
        need("memory" in system.run("gpushare", "info", user="carol").lower(), "gpushare info says nothing of memory")
        need("1 device" in system.run("gpushare", "run", "--memory", "1G", "--", "cuda-program", user="carol"), "carol's CUDA program")
        need("1 device" in system.run("softgpu", "run", "cuda-program", user="carol"), "carol's CUDA program without a server")
        self.step(f"three users have had the GPU; bob: {said.splitlines()[-1]}")
        number = str(clients(system)["resilient"]["client"])
        system.run("gpusharectl", "set", "client", number, "memory=48M")
        system.run("gpusharectl", "set", "client", number, "memory=48M", user="bob", status=3)
        need("memory" in system.run("gpusharectl", "get", number), "gpusharectl get")
        self.step("a limit of a running client was changed, and not by bob")
        text, _ = system.start("stray", user="carol").communicate(timeout=SECONDS)
        need("illegal_address" in text, f"carol's faulting kernel: {text}")
        wait(lambda: re.search(r"client \d+ 'stray' \(pid \d+, uid \d+\) made it fail", manager.text()), "the log does not name the author")
        self.step("a fault was reported to its author, and is in the log under its name")
        return alice

    def upgrade(self, system, manager, alice):
        """The same files as a later version: what is tried is the way, not the change."""
        folder = os.path.join(self.folder, "next")
        host("rm", "-rf", folder)
        os.makedirs(folder)
        version = host("dpkg-deb", "--field", self.packages(["gpushare-server"])[0], "Version").strip()
        for path in self.packages(OWN + LIBRARY):
            tree = os.path.join(folder, "tree")
            host("dpkg-deb", "--raw-extract", path, tree)
            with open(os.path.join(tree, "DEBIAN/control"), encoding="utf-8") as file:
                text = file.read().replace(f"Version: {version}", f"Version: {version}.1").replace(f"(= {version})", f"(= {version}.1)")
            with open(os.path.join(tree, "DEBIAN/control"), "w", encoding="utf-8") as file:
                file.write(text)
            host("dpkg-deb", "-Zgzip", "-z1", "--build", tree, folder)
            host("rm", "-rf", tree)
        server = manager.process.pid
        system.install(*system.take(self.packages(OWN + LIBRARY, folder), "/next"))
        need(system.run("dpkg-query", "-W", "-f", "${Version}", "gpushare-server") == version + ".1", "the version is the old one")
        need("--driver softgpu" in system.read("/etc/default/gpushared"), "the upgrade has overwritten /etc/default/gpushared")
        need(manager.process.poll() is None, "the upgrade has ended the server")
        before = json.loads(system.run("gpusharectl", "--json", "status"))["devices"][0]["worker_pid"]
        manager.replace()
        need(manager.process.pid != server, "the server was not replaced")
        need(json.loads(system.run("gpusharectl", "--json", "status"))["devices"][0]["worker_pid"] == before, "the worker was lost")
        pid = clients(system)["resilient"]["pid"]
        os.kill(pid, signal.SIGTERM)
        said = finish(alice, "alice's client", r"steps verified, \d times interrupted")
        self.step(f"upgraded under a running client; alice: {said.splitlines()[-1]}")

    def purge(self, system, manager):
        system.run("apt-get", "-q", "purge", "-y", *OWN, *LIBRARY)
        manager.forget()
        left = system.shell("dpkg-query -W -f '${Package} ${db:Status-Status}\\n' | grep gpushare || true").strip()
        need(not re.search(r" (installed|config-files)", left), f"packages are left: {left}")
        left = system.shell("find / -xdev \\( -path /proc -o -path /dev -o -path /packages -o -path /next \\) -prune -o "
                            "-iname '*gpushare*' -print -o -path '/usr/lib/gpushare*' -print").split()
        need(not left, f"files are left: {left}")
        self.step("purged; nothing is left but the user")

    def machine(self):
        system = System(self.base, os.path.join(self.folder, "machine"))
        self.install(system)
        manager = Manager(system)
        manager.serve()
        self.develop(system)
        alice = self.use(system, manager)
        self.upgrade(system, manager, alice)
        host("cp", system.path("/usr/local/bin/vector-add"), self.folder)  # for the container
        manager.stop()
        self.purge(system, manager)
        system.close()

    # ---- two containers
    def containers(self):
        recipes = os.path.join(ROOT, "docs/containers")
        server = Image(self.base, os.path.join(self.folder, "server"), os.path.join(recipes, "server.Containerfile"), self.debs)
        client = Image(self.base, os.path.join(self.folder, "client"), os.path.join(recipes, "client.Containerfile"), self.debs)
        self.step("both images are made")
        installed = client.shell("dpkg-query -W -f '${Package}\\n' | grep -E 'gpushare|cuda|nvidia'").split()
        need(installed == ["libgpushare-client0"], f"the client's image has more than the library: {installed}")
        client.take([os.path.join(self.folder, "vector-add")], "/usr/local/bin")
        os.makedirs(client.path("/run/gpushare"), exist_ok=True)
        host("mount", "--bind", server.path("/run/gpushare"), client.path("/run/gpushare"))
        # The server's container shares the machine's process numbers (--pid host).
        apart = ["unshare", "--ipc", "--net"]
        with open(os.path.join(self.folder, "server.log"), "w", encoding="utf-8") as log:
            served = subprocess.Popen([*apart, *server.words([*server.entry, "--driver", "softgpu"], server.user)],
                                      env={**ENVIRONMENT, **server.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with open(log.name, encoding="utf-8") as log:
            wait(lambda: "ready: clients connect" in (log.seek(0) or log.read()) or served.poll() is not None, "the server does not get ready")
        done = subprocess.run([*apart, "--pid", "--fork", "--kill-child", *client.words(["vector-add"], client.user)], env={**ENVIRONMENT, **client.env}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        with open(log.name, encoding="utf-8") as log:
            need(done.returncode == 0 and "sums verified" in done.stdout, f"the client: {done.stdout}{done.stderr}; the server: {log.read()}")
        answer = server.run("gpusharectl", "--socket", "/run/gpushare-admin/admin.sock", "status", user=server.user)
        need("ready" in answer, f"gpusharectl in the server's container: {answer}")
        need(not os.path.exists(client.path("/run/gpushare/admin.sock")), "the admin socket is in the client's container")
        served.terminate()
        served.wait(SECONDS)
        self.step(f"a client in one container, its server in the other: {done.stdout.splitlines()[-1]}")
        host("umount", client.path("/run/gpushare"))
        client.close()
        server.close()

    def run(self):
        make_base(self.base)
        self.step("the base system is there")
        self.machine()
        self.containers()


def main():
    debs, folder = sys.argv[1:]
    if os.getuid() != 0:
        sys.exit("gpushare: make deb-test makes systems of its own, with chroot: run it as root")
    if os.environ.get("GPUSHARE_TRIAL") != "inside":
        # Mounts and processes of the trial end with it, however it ends.
        os.execvpe("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv],
                   {**os.environ, "GPUSHARE_TRIAL": "inside"})
    os.makedirs(folder, exist_ok=True)
    try:
        # A relative name: that of a socket has 107 bytes at most.
        Trial(os.path.relpath(debs), os.path.relpath(folder)).run()
    except Failure as failure:
        sys.exit(f"gpushare: {failure}")
    print("Everything was as promised.")


if __name__ == "__main__":
    main()
