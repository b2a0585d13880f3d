#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What debian/ repeats of the tree is the same there: version, symbols, packages that a build needs. The tarball of a release
is the same to the byte from a clone, from its own contents, and for another umask."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def field(paragraph, name):
    """The words of a field of debian/control, without versions and commas."""
    found = re.search(rf"^{name}:((?:.*\n)(?:[ \t].*\n)*)", paragraph + "\n", re.M)
    return set(re.findall(r"(?:^|[\s,])([a-z][a-z0-9.+-]+)", re.sub(r"\(.*?\)", "", found.group(1)))) if found else set()


def make(*words, folder=ROOT, umask=0o022):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    before = os.umask(umask)
    try:
        done = subprocess.run(["make", "-C", folder, "--no-print-directory", *words], env=environment, capture_output=True, text=True,
                              check=False)
    finally:
        os.umask(before)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


class Packaging(unittest.TestCase):
    def test_the_package_has_the_version_of_the_makefile(self):
        version = re.search(r"^VERSION := (.*)$", text_of("Makefile"), re.M)[1]
        self.assertRegex(text_of("debian/changelog"), rf"^gpushare \({re.escape(version)}-0gpushare[0-9]+\) ")

    def test_the_symbols_file_has_the_recorded_symbols(self):
        recorded = set(re.findall(r"^libgpushare-client\.so (gpushare_\w+)@@(\S+) = ", text_of("tests/interface/symbols.txt"), re.M))
        stated = set(re.findall(r"^ (gpushare_\w+)@(\S+) [0-9.]+$", text_of("debian/libgpushare-client0.symbols"), re.M))
        self.assertGreater(len(recorded), 40)
        self.assertEqual(stated, recorded, "a new symbol needs a line in debian/libgpushare-client0.symbols, with the version that has it")

    def test_the_soname_is_the_packages_name(self):
        soname = re.search(r"^(\S+)\.so\.(\d+) (\S+) #MINVER#$", text_of("debian/libgpushare-client0.symbols"), re.M)
        self.assertEqual(soname.group(1) + soname.group(2), soname.group(3))
        self.assertIn(f"-soname,{soname.group(1)}.so.{soname.group(2)} ", text_of("make/programs.mk"))

    def test_a_build_needs_what_the_projects_own_list_says(self):
        listed = re.search(r"programs \| build\)\n\s*wanted=\"\$wanted (.*?)\"", text_of("make/deps.sh"), re.S)[1].split()
        # Debian builds with build-essential; `make` of a tree installs its parts.
        essential = {"binutils", "gcc", "libc6-dev", "make"}
        source = text_of("debian/control").split("\n\n")[0]
        own = {name for name in field(source, "Build-Depends") if not name.startswith(("debhelper", "dh-"))}
        self.assertEqual(own, set(listed) - essential)

    def test_the_tarball_is_the_same_from_anywhere(self):
        if not shutil.which("git") or not os.path.exists(os.path.join(ROOT, ".git")):
            self.skipTest("this tree is no clone")
        with tempfile.TemporaryDirectory() as folder:
            # BUILD is relative to the tree that make is run in.
            first = os.path.join(folder, "first")
            path = make("dist", f"BUILD={first}").split()[-1]
            with tarfile.open(path) as archive:
                names = {name.split("/", 1)[1] for name in archive.getnames()}
                self.assertEqual({name.split("/", 1)[0] for name in archive.getnames()}, {os.path.basename(path)[:-len(".tar.gz")]})
                archive.extractall(folder)
            tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(names, set(tracked.split("\0")) - {""})
            unpacked = os.path.join(folder, os.path.basename(path)[:-len(".tar.gz")])
            # What was built in the tree does not get in.
            os.mkdir(os.path.join(unpacked, "build"))
            with open(os.path.join(unpacked, "build/waste"), "w", encoding="ascii") as file:
                file.write("waste")
            second = os.path.join(unpacked, make("dist", folder=unpacked, umask=0o077).split()[-1])
            sums = []
            for tarball in (path, second):
                with open(tarball, "rb") as file:
                    sums.append(hashlib.sha256(file.read()).hexdigest())
            self.assertEqual(sums[0], sums[1])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
