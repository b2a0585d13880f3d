# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What a machine with the packages goes through: installed, used by three users, upgraded under a running client, purged."""
import glob
import json
import os
import re
import sys
import time

from system import Failure, host

OWN = ("gpushare-server", "gpushare-softgpu", "gpushare-cuda", "gpushare-doc")
LIBRARY = ("libgpushare-client0", "libgpushare-client-dev")
EXAMPLES = "/usr/share/doc/gpushare/examples"
# Emulated machines are slow.
SECONDS = 300


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

    def install(self, system):
        system.install(*system.take(self.packages(OWN), "/packages"))
        need(system.run("id", "-gn", "gpushare").strip() == "gpushare", "no user gpushare")
        for unit in ("gpushared.socket", "gpushared-admin.socket"):
            need(system.has("/etc/systemd/system/sockets.target.wants/" + unit), f"{unit} is not enabled")
        need(not system.has("/etc/systemd/system/multi-user.target.wants/gpushared.service"),
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

    def make_next(self):
        """The same files as a later version: what is tried is the way, not the change. Returns their paths."""
        folder = os.path.join(self.folder, "next")
        host("rm", "-rf", folder)
        os.makedirs(folder)
        version = self.version()
        for path in self.packages(OWN + LIBRARY):
            tree = os.path.join(folder, "tree")
            host("dpkg-deb", "--raw-extract", path, tree)
            with open(os.path.join(tree, "DEBIAN/control"), encoding="utf-8") as file:
                text = file.read().replace(f"Version: {version}", f"Version: {version}.1").replace(f"(= {version})", f"(= {version}.1)")
            with open(os.path.join(tree, "DEBIAN/control"), "w", encoding="utf-8") as file:
                file.write(text)
            host("dpkg-deb", "-Zgzip", "-z1", "--build", tree, folder)
            host("rm", "-rf", tree)
        return self.packages(OWN + LIBRARY, folder)

    def version(self):
        return host("dpkg-deb", "--field", self.packages(["gpushare-server"])[0], "Version").strip()

    def upgrade(self, system, manager, alice):
        packages, server = system.take(self.make_next(), "/next"), manager.pid()
        before = json.loads(system.run("gpusharectl", "--json", "status"))["devices"][0]["worker_pid"]
        system.install(*packages)
        need(system.run("dpkg-query", "-W", "-f", "${Version}", "gpushare-server") == self.version() + ".1", "the version is the old one")
        need("--driver softgpu" in system.read("/etc/default/gpushared"), "the upgrade has overwritten /etc/default/gpushared")
        manager.upgraded()
        need(manager.pid() != server, "the server was not replaced")
        need(json.loads(system.run("gpusharectl", "--json", "status"))["devices"][0]["worker_pid"] == before, "the worker was lost")
        system.shell(f"kill {clients(system)['resilient']['pid']}")
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


def main(kind):
    """Carries out a trial of the kind: of the packages and in the folder that the command line names."""
    debs, folder = sys.argv[1:]
    if os.getuid() != 0:
        sys.exit(f"gpushare: {os.path.basename(sys.argv[0])} makes systems of its own, with chroot: run it as root")
    if os.environ.get("GPUSHARE_TRIAL") != "inside":
        # Mounts and processes of the trial end with it, however it ends.
        os.execvpe("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv],
                   {**os.environ, "GPUSHARE_TRIAL": "inside"})
    os.makedirs(folder, exist_ok=True)
    try:
        # A relative name: that of a socket has 107 bytes at most.
        kind(os.path.relpath(debs), os.path.relpath(folder)).run()
    except Failure as failure:
        sys.exit(f"gpushare: {failure}")
    print("Everything was as promised.")
