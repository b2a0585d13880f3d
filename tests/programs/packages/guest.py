# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A Debian machine that qemu boots, with systemd as process 1. Commands reach it through a port of its own; it has no network."""
import base64
import os
import shlex
import shutil
import socket
import subprocess
import time

from system import ENVIRONMENT, Failure, System, host

# Emulation works everywhere. GUEST_ACCEL=kvm is many times as fast, where a machine's /dev/kvm boots a kernel.
ACCELERATOR = os.environ.get("GUEST_ACCEL", "tcg")
MACHINE = ("systemd-sysv", "dbus", "libpam-systemd", "initramfs-tools")
# What executes the commands. A port of virtio's has no length of a line, and no echo.
AGENT = """#!/bin/sh
until [ -c /dev/virtio-ports/trial ]; do sleep 0.1; done
exec 3<>/dev/virtio-ports/trial
echo ready >&3
while read -r line <&3; do
    echo "$line" | base64 -d >/run/trial.sh
    status=0
    /bin/sh -e /run/trial.sh >/run/trial.out 2>&1 </dev/null 3>&- || status=$?
    echo "$status $(base64 -w0 /run/trial.out)" >&3
done
"""
UNIT = f"""[Unit]
After=multi-user.target
[Service]
Type=exec
ExecStart=/usr/local/sbin/trial-agent
Environment={' '.join(f'{name}={value}' for name, value in ENVIRONMENT.items())}
[Install]
WantedBy=multi-user.target
"""


def kernel():
    return "linux-image-cloud-" + host("dpkg", "--print-architecture").strip()


def make_image(base, folder, files, wanted):
    """Makes the disk: the base, what boots it, the files in their folders, and the packages `wanted`, not yet installed."""
    tree = System(base, os.path.join(folder, "tree"))
    tree.install(*MACHINE, kernel())
    for name, paths in files.items():
        tree.take(paths, name)
    tree.run("apt-get", "-q", "install", "-y", "--no-install-recommends", "--download-only", *wanted)
    tree.write("/usr/local/sbin/trial-agent", AGENT)
    os.chmod(tree.path("/usr/local/sbin/trial-agent"), 0o755)
    tree.write("/etc/systemd/system/trial.service", UNIT)
    tree.run("systemctl", "enable", "trial.service")
    tree.write("/etc/hostname", "node\n")
    tree.write("/etc/hosts", "127.0.0.1 localhost node\n")
    tree.close()
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(tree.path("/" + name), os.path.join(folder, name))
    image = os.path.join(folder, "disk.img")
    host("mke2fs", "-q", "-F", "-t", "ext4", "-d", tree.root, image, "4G")
    shutil.rmtree(tree.root)
    return image


class Started:
    """A command that goes on in the guest, as a unit of its own."""

    def __init__(self, guest, unit):
        self.guest, self.unit, self.returncode = guest, unit, None

    def communicate(self, timeout):
        end = time.monotonic() + timeout
        while self.guest.shell(f"systemctl show -P SubState {self.unit}").strip() not in ("exited", "failed"):
            if time.monotonic() > end:
                raise Failure(f"{self.unit} goes on after {timeout} s: {self.guest.read(f'/run/{self.unit}.out')}")
            time.sleep(0.1)
        code, status = self.guest.shell(f"systemctl show -P ExecMainCode -P ExecMainStatus {self.unit}").split()
        self.returncode = int(status) if code == "1" else -int(status)  # 1: it ended by itself
        return self.guest.read(f"/run/{self.unit}.out"), None


class Guest(System):
    def __init__(self, folder, image, timeout=600):  # pylint: disable=super-init-not-called
        self.name, self.folder, self.timeout, self.units, self.lost = "guest", folder, timeout, 0, False
        self.port = socket.socket(socket.AF_UNIX)
        path = os.path.join(folder, "port")
        if os.path.exists(path):
            os.unlink(path)
        with open(os.path.join(folder, "console.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["qemu-system-x86_64", "-accel", ACCELERATOR, "-cpu", "max", "-smp", "2", "-m", "2G", "-nodefaults", "-no-user-config",
                 "-display", "none", "-serial", "stdio", "-drive", f"file={image},format=raw,if=virtio,cache=unsafe",
                 "-kernel", os.path.join(folder, "vmlinuz"), "-initrd", os.path.join(folder, "initrd.img"),
                 "-append", "root=/dev/vda rw console=ttyS0 quiet", "-device", "virtio-serial", "-device", "virtio-rng-pci",
                 "-chardev", f"socket,id=trial,path={path},server=on,wait=off", "-device", "virtserialport,chardev=trial,name=trial"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 10
        while self.port.connect_ex(path):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure(f"qemu does not start: {self.console()}")
            time.sleep(0.05)
        self.lines = self.port.makefile("r", encoding="ascii")
        self.hear_ready()

    def console(self):
        with open(os.path.join(self.folder, "console.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def hear(self):
        self.port.settimeout(self.timeout)
        try:
            line = self.lines.readline()
        except TimeoutError:
            line = ""
        if not line:
            self.lost = True
            raise Failure(f"the guest does not answer: {self.console()}")
        return line

    def hear_ready(self):
        if self.hear() != "ready\n":
            raise Failure("the guest's first word is not that it is ready")

    def execute(self, script):
        """The exit status of a script of the shell's, and what it printed."""
        self.port.sendall(base64.b64encode(script.encode()) + b"\n")
        status, _, text = self.hear().partition(" ")
        return int(status), base64.b64decode(text).decode(errors="replace")

    def run(self, *command, user=None, status=0, **env):
        words = [*(["env", *(f"{name}={value}" for name, value in env.items())] if env else []), *self.become(user), *command]
        got, text = self.execute("exec " + shlex.join(words))
        if got != status:
            raise Failure(f"{self.name}: {shlex.join(command)}: exit status {got}, not {status}\n{text}")
        return text

    def start(self, *command, user=None, **env):
        self.units += 1
        unit = f"trial-{self.units}"
        self.run("systemd-run", "--quiet", f"--unit={unit}", f"--uid={user or 'root'}", "--property=RemainAfterExit=yes",
                 *(f"--property=Standard{name}=append:/run/{unit}.out" for name in ("Output", "Error")),
                 *(f"--setenv={name}={value}" for name, value in {**ENVIRONMENT, **env}.items()), "--", *command)
        return Started(self, unit)

    def read(self, path):
        return self.run("cat", path)

    def write(self, path, text):
        self.shell(f"mkdir -p {shlex.quote(os.path.dirname(path))}; cat >{shlex.quote(path)} <<'END'\n{text}END\n")

    def has(self, path):
        return self.execute(f"[ -e {shlex.quote(path)} ] || [ -L {shlex.quote(path)} ]")[0] == 0

    def take(self, paths, folder):
        """The paths of files that make_image() put there."""
        return [self.shell(f"ls {os.path.join(folder, os.path.basename(path))}").strip() for path in paths]

    def reboot(self):
        self.execute("systemctl --no-block reboot")
        self.hear_ready()

    def close(self):
        self.port.sendall(base64.b64encode(b"systemctl --no-block poweroff") + b"\n")
        try:
            if self.process.wait(60):
                raise Failure(f"qemu ended with status {self.process.returncode}")
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"the guest does not switch off: {self.console()}") from None
