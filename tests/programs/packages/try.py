#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Debian's packages in a system of their own: installed, used by three users, upgraded under a running client, purged. Then the
two container images, made by the lines of their Containerfiles, with a client in one and its server in the other.

usage: try.py DEBS FOLDER      (as root; `make deb-test`)

systemd is played: it needs to be process 1. The base system is made once, in FOLDER."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../.."))
sys.path.insert(0, HERE)
from manager import Manager  # noqa: E402
from system import ENVIRONMENT, Failure, Image, System, host, make_base  # noqa: E402
from trial import SECONDS, Trial, main, need, wait  # noqa: E402


class Packages(Trial):
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


if __name__ == "__main__":
    main(Packages)
