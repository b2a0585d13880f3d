# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Debian systems that debootstrap made, in folders: what is executed there sees nothing else."""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


class Failure(Exception):
    """What a step found, with all that its program said."""


def host(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    if done.returncode:
        raise Failure(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M)[1]


def mirror():
    """The first address from which this machine itself has packages of its release."""
    for line in host("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages").splitlines():
        site, suite, component = line.split()
        if (suite, component) == (release(), "main"):
            return site
    raise Failure("apt-get knows no address of this Debian release: see /etc/apt/sources.list")


def make_base(folder):
    """A minimal system, made once, which knows the addresses that this machine's apt knows."""
    if not os.path.isdir(folder):
        partial = folder + ".partial"
        shutil.rmtree(partial, ignore_errors=True)
        host("debootstrap", "--variant=minbase", release(), partial, mirror())
        for path in ("/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")):
            if os.path.exists(path):
                shutil.copy(path, partial + path)
        # How to reach the addresses: a proxy, say.
        lines = [line for line in host("apt-config", "dump").splitlines() if re.match(r"Acquire::(https?|Check)", line)]
        with open(os.path.join(partial, "etc/apt/apt.conf.d/99host"), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        os.rename(partial, folder)
    shutil.copy("/etc/resolv.conf", os.path.join(folder, "etc/resolv.conf"))
    host("chroot", folder, "apt-get", "-q", "update", env=ENVIRONMENT)


class System:
    """A copy of the base. Its /proc shows the processes of whoever looks."""

    def __init__(self, base, folder):
        self.root, self.name = folder, os.path.basename(folder)
        shutil.rmtree(folder, ignore_errors=True)
        host("cp", "-a", base, folder)
        host("mount", "-t", "proc", "proc", folder + "/proc")
        host("mount", "--rbind", "/dev", folder + "/dev")
        os.makedirs(folder + "/tmp", exist_ok=True)

    def path(self, path):
        return self.root + path

    def read(self, path):
        with open(self.path(path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def write(self, path, text):
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    def has(self, path):
        """Also of a symbolic link that leads nowhere here."""
        return os.path.lexists(self.path(path))

    def become(self, user):
        """The words that have a command executed by the user."""
        if not user:
            return []
        group = re.search(rf"^{user}:[^:]*:\d+:(\d+):", self.read("/etc/passwd"), re.M)[1]
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups", "--no-new-privs", "--bounding-set=-all"]

    def words(self, command, user=None):
        """The command as one of this machine."""
        return ["/usr/sbin/chroot", self.root, *self.become(user), *command]

    def start(self, *command, user=None, **env):
        return subprocess.Popen(self.words(command, user), env={**ENVIRONMENT, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *command, user=None, status=0, **env):
        """What the command printed. Another exit status than the expected one fails."""
        started = self.start(*command, user=user, **env)
        text, _ = started.communicate(timeout=600)
        if started.returncode != status:
            raise Failure(f"{self.name}: {shlex.join(command)}: exit status {started.returncode}, not {status}\n{text}")
        return text

    def shell(self, line):
        return self.run("/bin/sh", "-e", "-c", line)

    def install(self, *packages):
        return self.run("apt-get", "-q", "install", "-y", "--no-install-recommends", *packages)

    def take(self, paths, folder):
        """Copies files of this machine into a folder of the system. Returns their paths there."""
        os.makedirs(self.path(folder), exist_ok=True)
        return [os.path.join(folder, os.path.basename(shutil.copy(path, self.path(folder)))) for path in paths]

    def close(self):
        host("umount", "-R", "-l", self.path("/dev"))
        host("umount", "-l", self.path("/proc"))


class Image(System):
    """A system with what a Containerfile says done to it: of its instructions those that are used here."""

    def __init__(self, base, folder, containerfile, context):
        super().__init__(base, folder)
        self.env, self.user, self.entry = {}, None, []
        with open(containerfile, encoding="utf-8") as file:
            text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", file.read(), flags=re.M))
        for line in filter(None, text.splitlines()):
            word, rest = line.split(maxsplit=1)
            self.instruct(word, rest, context)

    def instruct(self, word, rest, context):
        if word == "RUN":
            self.shell(rest)
        elif word == "COPY":
            *patterns, folder = rest.split()
            paths = [path for pattern in patterns for path in sorted(glob.glob(os.path.join(context, pattern)))]
            if not paths:
                raise Failure(f"COPY {rest}: nothing in {context} fits")
            self.take(paths, folder)
        elif word == "ENV":
            self.env.update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "USER":
            self.user = rest
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        elif word not in ("FROM", "VOLUME", "LABEL"):
            raise Failure(f"{word} {rest}: this instruction is not known here")
