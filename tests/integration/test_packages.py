#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Debian's packages, made by debian/rules of what is built already: which file is in which, what they depend on and do when they
are installed, and that their parts find each other. `make deb` builds them with Debian's flags, `make deb-test` installs them."""
import glob
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import private_server  # noqa: E402
from private_server import BUILD, ENV, SECONDS, Server, run  # noqa: E402

PACKAGES = {"gpushare-server", "libgpushare-client0", "libgpushare-client-dev", "gpushare-cuda", "gpushare-softgpu", "gpushare-doc"}
VERSION = re.search(r"\((.*?)\)", open(os.path.join(ROOT, "debian/changelog"), encoding="utf-8").readline())[1]

# As dpkg-buildpackage has it in its own environment, for another user than root; and quicker than a release.
OPTIONS = {"DEB_RULES_REQUIRES_ROOT": "no", "DEB_BUILD_OPTIONS": "noautodbgsym", "DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}


def output(*command):
    return subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


def products(folder, names):
    """What debhelper left in debian/ of the tree, if somebody built packages there."""
    return [name for name in names if os.path.isdir(os.path.join(folder, name)) and name != "source"]


def build(folder):
    """Packages of this build, in `folder`. The tree is this one by links, but for debian/, into which debhelper writes."""
    tree = os.path.join(folder, "tree")
    os.mkdir(tree)
    for name in os.listdir(ROOT):
        if not name.startswith((".", "build")) and name != "debian":
            os.symlink(os.path.join(ROOT, name), os.path.join(tree, name))
    shutil.copytree(os.path.join(ROOT, "debian"), os.path.join(tree, "debian"), ignore=products)
    done = subprocess.run(["make", "-f", "debian/rules", "binary", "BUILT=1", "BUILD=" + BUILD], cwd=tree, capture_output=True, text=True, timeout=2 * SECONDS,
                          env={**ENV, **OPTIONS}, check=False)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(folder, "*.deb"))}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gpushare-test-", dir=os.environ.get("TMPDIR", "/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.paths = build(cls.folder)
        cls.root, cls.files, cls.control = os.path.join(cls.folder, "root"), {}, {}
        for name, path in cls.paths.items():
            lines = output("dpkg-deb", "--contents", path).splitlines()
            cls.files[name] = {words[5].lstrip("."): words for words in (line.split() for line in lines) if words[0][0] != "d"}
            cls.control[name] = os.path.join(cls.folder, "control", name)
            os.makedirs(cls.control[name])
            output("dpkg-deb", "--control", path, cls.control[name])
            output("dpkg-deb", "--extract", path, cls.root)

    def control_file(self, package, name):
        with open(os.path.join(self.control[package], name), encoding="utf-8") as file:
            return file.read()

    def needs(self, package, *fields):
        """{package: version or None} that these fields name."""
        text = ", ".join(output("dpkg-deb", "--field", self.paths[package], field).strip() for field in fields)
        return {name: version or None for name, version in re.findall(r"([a-z0-9][a-z0-9.+-]+)(?::any)?(?: \((.*?)\))?", text)}

    def test_all_packages_are_there_and_own_each_file_alone(self):
        self.assertEqual(set(self.paths), PACKAGES)
        owners = {}
        for package, files in self.files.items():
            for path, words in files.items():
                self.assertEqual(owners.setdefault(path, package), package, path)
                self.assertEqual(words[1], "root/root", path)
                self.assertNotIn("/usr/local", path)
                mode = words[0]
                program = "/bin/" in path or path.startswith("/usr/libexec/")
                self.assertEqual(mode, "lrwxrwxrwx" if " -> " in " ".join(words) else "-rwxr-xr-x" if program else "-rw-r--r--", path)

    def test_each_part_is_where_its_readers_look(self):
        machine = output("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        expected = {
            "gpushare-server": ["/usr/bin/gpushared", "/usr/bin/gpusharectl", "/usr/bin/gpushare-exporter", "/usr/libexec/gpushare-worker",
                                "/usr/libexec/gpushare-devices", "/etc/default/gpushared", "/usr/lib/sysusers.d/gpushare.conf",
                                "/usr/share/bash-completion/completions/gpusharectl"] +
                               ["/lib/systemd/system/" + os.path.basename(path)[:-3] for path in glob.glob(os.path.join(ROOT, "systemd/*.s*.in"))
                                if "user" not in path],
            "libgpushare-client0": [f"/usr/lib/{machine}/libgpushare-client.so.0", f"/usr/lib/{machine}/libgpushare-client.so.0.1.0"],
            "libgpushare-client-dev": ["/usr/include/gpushare.h", "/usr/include/gpushare_error.h", f"/usr/lib/{machine}/libgpushare-client.a",
                                       f"/usr/lib/{machine}/libgpushare-client.so", f"/usr/lib/{machine}/pkgconfig/gpushare-client.pc",
                                       f"/usr/lib/{machine}/cmake/gpushare-client/gpushare-client-config.cmake"],
            "gpushare-cuda": ["/usr/bin/gpushare"] + ["/usr/lib/gpushare/" + name for name in
                              ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libgpushare-audit.so")],
            "gpushare-softgpu": ["/usr/bin/softgpu", "/usr/lib/gpushare/softgpu/libcuda.so.1"],
            "gpushare-doc": ["/usr/share/doc/gpushare/configuration.md", "/usr/share/doc/gpushare/softgpu.conf", "/usr/share/doc/gpushare/examples/vector-add.c",
                             "/usr/share/doc/gpushare/monitoring/alerts.yaml"],
        }
        for package, paths in expected.items():
            for path in paths:
                self.assertIn(path, self.files[package])
        for package in PACKAGES:
            self.assertIn(f"/usr/share/doc/{package}/copyright", self.files[package])

    def test_documents_speak_of_the_packages_folders(self):
        pages = [path for path in self.files["gpushare-doc"] if path.endswith((".md", ".yaml", ".env", ".conf", ".json"))]
        self.assertGreater(len(pages), 40)
        for path in pages:
            with open(self.root + path, encoding="utf-8") as file:
                text = file.read()
            self.assertNotIn("/usr/local", text, path)
            for named in re.findall(r"/usr/share/doc/gpushare/[\w./*-]*\w", text):
                self.assertTrue(glob.glob(self.root + named + "*"), f"{path} names {named}")

    def test_no_package_needs_more_than_its_part(self):
        self.assertLessEqual(set(self.needs("libgpushare-client0", "Depends", "Pre-Depends")), {"libc6", "liblz4-1", "libzstd1"})
        self.assertEqual(self.needs("libgpushare-client-dev", "Depends")["libgpushare-client0"], "= " + VERSION)
        for package in PACKAGES - {"libgpushare-client-dev"}:
            needed = self.needs(package, "Depends", "Recommends") if package != "gpushare-server" else self.needs(package, "Depends")
            self.assertFalse([name for name in needed if re.search("gpushare|cuda|nvidia", name)], package)
        for package in ("gpushare-cuda", "gpushare-softgpu"):  # names of NVIDIA's are in their folder, and satisfy nobody's dependency
            self.assertFalse({"shlibs", "symbols", "triggers"} & set(os.listdir(self.control[package])), package)

    def test_the_library_has_its_symbols_file(self):
        with open(os.path.join(ROOT, "debian/libgpushare-client0.symbols"), encoding="utf-8") as file:
            stated = re.findall(r"^ (\S+) ", file.read(), re.M)
        self.assertEqual(sorted(re.findall(r"^ (\S+) ", self.control_file("libgpushare-client0", "symbols"), re.M)), sorted(stated))
        self.assertIn("libgpushare-client 0 libgpushare-client0", self.control_file("libgpushare-client0", "shlibs"))

    def test_installing_opens_the_sockets_and_upgrading_leaves_them(self):
        after = self.control_file("gpushare-server", "postinst")
        self.assertLess(after.index("systemd-sysusers"), after.index("deb-systemd-invoke"))
        for socket in ("gpushared.socket", "gpushared-admin.socket"):
            self.assertRegex(after, rf"deb-systemd-helper enable '?{re.escape(socket)}")
            self.assertRegex(after, rf"deb-systemd-invoke start [^\n]*{re.escape(socket)}")
            self.assertNotRegex(after, rf"restart [^\n]*{re.escape(socket)}")
        # The service's links are renewed where an operator enabled it, and not made at first.
        self.assertRegex(after, r"if deb-systemd-helper debian-installed '?gpushared\.service")
        self.assertRegex(after, r"deb-systemd-invoke try-restart '?gpushared\.service")
        self.assertNotIn("preinst", os.listdir(self.control["gpushare-server"]), "nothing stops the server before its files are replaced")
        self.assertIn("gpushared.socket", self.control_file("gpushare-server", "prerm"))
        self.assertEqual(self.control_file("gpushare-server", "conffiles").split(), ["/etc/default/gpushared"])
        for package in PACKAGES:
            for name in {"postinst", "prerm", "postrm"} & set(os.listdir(self.control[package])):
                output("sh", "-n", os.path.join(self.control[package], name))
                self.assertEqual(package, "gpushare-server", name)

    def test_the_conffile_does_not_say_that_it_must_be_copied(self):
        with open(os.path.join(self.root, "etc/default/gpushared"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("Copy it", text)
        self.assertEqual([line for line in text.splitlines() if line and not line.startswith("#")], [], "a variable is set")

    def test_what_was_unpacked_works_together(self):
        programs = {name: os.path.join(self.root, "usr/bin", name) for name in ("gpushared", "gpusharectl", "gpushare")}
        with mock.patch.object(private_server, "GPUSHARED", programs["gpushared"]), Server() as server:
            status = run(programs["gpusharectl"], "--socket", server.admin, "status")
            self.assertEqual(status.returncode, 0, status.stderr)
            worker = os.path.realpath(os.path.join(self.root, "usr/libexec/gpushare-worker"))
            with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children", encoding="ascii") as file:
                self.assertIn(worker, [os.readlink(f"/proc/{pid}/exe") for pid in file.read().split()])
            # A program whose libcuda.so.1 is the one of the package.
            loaded = run(programs["gpushare"], "run", "--", sys.executable, "-c",
                         "import ctypes; ctypes.CDLL('libcuda.so.1'); print(open('/proc/self/maps').read())", GPUSHARE_SOCKET=server.client)
            self.assertEqual(loaded.returncode, 0, loaded.stderr)
            self.assertIn(os.path.realpath(os.path.join(self.root, "usr/lib/gpushare/libcuda.so.1")), loaded.stdout)

    def test_programs_are_stripped(self):
        for path in ("usr/bin/gpushared", "usr/lib/gpushare/libcuda.so.1"):
            full = os.path.join(self.root, path)
            self.assertTrue(os.stat(full).st_mode & stat.S_IRUSR)
            self.assertNotIn(".debug_info", output("readelf", "-SW", full))


if __name__ == "__main__":
    if not shutil.which("dh"):
        print("debhelper is not installed: make deps-packages")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])
