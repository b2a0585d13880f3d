# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# usual device: the bundle brings its own driver, and is run with an empty environment, as on a machine with a GPU
"""gpu_bundle: the GPU bundle, made as a user makes it, for tests on drivers that do not need a GPU."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import sanitizer

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
NOBODY = 65534
# The verdict of a step that measured nothing, for others had the CPU.
TOO_SLOW = "this host is too slow to tell"


def main():
    """The main program of a test of bundles."""
    if sanitizer.is_there():
        print("a bundle is made of a build without sanitizers")
        sys.exit(77)
    unittest.main(verbosity=2)


class BundleCase(unittest.TestCase):
    """A case has a bundle that can't be written to, and a folder of its own in which the checks are run."""

    SAMPLES = {}  # the text of each program that goes along

    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="gpushare-bundle-", dir="/tmp")
        os.chmod(cls.top, 0o755)
        cls.bundle = os.path.join(cls.top, "bundle")
        samples = os.path.join(cls.top, "programs")
        os.mkdir(samples)
        for name, text in cls.SAMPLES.items():
            with open(os.path.join(samples, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(file.name, 0o755)
        made = subprocess.run(["make/gpu-bundle.sh", BUILD, cls.bundle, *([samples] if cls.SAMPLES else [])], capture_output=True, text=True, check=False)
        if made.returncode:
            raise AssertionError(made.stdout + made.stderr)
        for folder, _, files in os.walk(cls.bundle, topdown=False):
            for path in [folder] + [os.path.join(folder, file) for file in files]:
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~0o222 | 0o444)
        cls.softgpu = os.path.join(cls.bundle, "lib/softgpu/libcuda.so.1")

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["chmod", "-R", "u+w", cls.top], check=True)
        shutil.rmtree(cls.top)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="run-", dir=self.top)
        self.user = NOBODY if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user, self.user)

    def run_checks(self, *words, env=None, user=True, limit=170, folder=None):
        """Exit status and output of run-checks.sh in a folder of its own, run as the user nobody where that is possible."""
        as_user = {"user": self.user, "group": self.user, "extra_groups": []} if user and self.user else {}
        done = subprocess.run([os.path.join(self.bundle, "run-checks.sh"), *words], cwd=folder or self.folder, env=env or {},
                              capture_output=True, text=True, timeout=limit, check=False, **as_user)
        return done.returncode, done.stdout + done.stderr

    def results(self, folder="results"):
        found = {}
        for name in os.listdir(os.path.join(self.folder, folder)):
            if name.endswith(".json") and name != "results.json":
                with open(os.path.join(self.folder, folder, name), encoding="utf-8") as file:
                    found[name[:-5]] = json.load(file)
        return found

    def only(self, *steps, env=None, driver="softgpu", words=(), **options):
        selected = [word for step in steps for word in ("--only", step)]
        status, output = self.run_checks("--driver", driver, "--results", "results", *words, *selected, env=env, **options)
        return status, output, self.results()

    def broken(self, how, call):
        library = os.path.join(BUILD, "tests/programs/gpu/broken/libcuda.so.1")
        copy = os.path.join(self.folder, "libcuda.so.1")
        shutil.copy(library, copy)
        os.chmod(copy, 0o755)
        return copy, {"BROKEN_DRIVER": self.softgpu, "BROKEN_CALL": call, "BROKEN_HOW": how}

    def verdicts(self, result):
        return {row["name"]: row["verdict"] for row in result["assumptions"]}
