#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare run: a CUDA program finds gpushare's libraries wherever it looks, and has the limits of the command line."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, ENV, GPUSHARE, SECONDS, Server, run  # noqa: E402

LOADER = os.path.join(BUILD, "tests/programs/loader")
RPATH, RUNPATH = (os.path.join(LOADER, name) for name in ("ask_rpath", "ask_runpath"))
SOFTGPU_TOOL = os.path.join(BUILD, "bin/softgpu")
DECOY = os.path.join(LOADER, "decoy/libcuda.so.1")
SHARE = os.path.join(BUILD, "tests/programs/dropin/program")
TENANT = os.path.join(BUILD, "tests/programs/tenant/tenant")
HEAT = os.path.join(BUILD, "examples/unmodified/heat")
# The decoy's version, and the software GPU's.
FROM_DECOY, FROM_GPUSHARE = "1\n", "13000\n"


class CommandLine(unittest.TestCase):
    def refused(self, status, words, *command, **env):
        ended = run(GPUSHARE, "run", *command, **env)
        self.assertEqual((ended.returncode, ended.stdout), (status, ""), ended.stderr)
        self.assertIn(words, ended.stderr)

    def test_what_is_wrong_is_named(self):
        self.refused(2, "a program is missing")
        self.refused(2, "a program is missing", "--memory", "1G", "--")
        self.refused(2, "--threads: GPUSHARE_THREADS_LIMIT=\"300%\"", "--threads", "300%", "true")
        self.refused(2, "--memory: ", "--memory", "much", "true")
        self.refused(2, "did you mean 500M?", "--memory", "500", "true")
        self.refused(2, "did you mean 500M?", "--host-memory-request", "500", "true")
        self.refused(2, "--priority: ", "--priority", "-1", "true")
        self.refused(2, "--host-memory: ", "--host-memory", "much", "true")
        self.refused(2, "--kernel-time-limit: ", "--kernel-time-limit", "1", "true")
        self.refused(2, "no option --nothing", "--nothing", "true")
        self.refused(127, "/nonexistent/program", "/nonexistent/program")
        self.refused(127, "no program nonexistent-program in the folders of PATH", "nonexistent-program")
        self.refused(126, "/etc/passwd is not executable", "/etc/passwd")
        self.refused(126, "/etc is a folder", "/etc")

    def test_a_program_that_cannot_be_executed_is_refused_in_words(self):
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            def made(name, text, mode):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, mode)
                return path

            script = made("own-script", "#!/nonexistent/interpreter\n", 0o755)
            self.refused(126, "names an interpreter or a dynamic linker that is not there", "--socket", server.client, script)
            # Of another user, so that the kernel would give it other rights.
            other = shutil.copy("/bin/true", os.path.join(folder, "other"))
            if os.getuid() == 0:
                os.chown(other, 1, -1)
                os.chmod(other, 0o4755)
                self.refused(126, "is setuid or setgid", other)
            here = os.getcwd()
            os.chdir(folder)
            try:
                self.refused(127, "write ./own-script", "own-script")
            finally:
                os.chdir(here)

    def test_a_server_that_is_not_there_is_named_before_the_program_starts(self):
        with tempfile.TemporaryDirectory() as folder:
            absent, marker = os.path.join(folder, "absent.sock"), os.path.join(folder, "marker")
            self.refused(125, absent, "--socket", absent, "touch", marker)
            self.refused(125, "GPUSHARE_MEMORY_LIMIT", "--socket", absent, "touch", marker, GPUSHARE_MEMORY_LIMIT="much")
            self.assertFalse(os.path.exists(marker))

    def test_help_names_each_option(self):
        text = run(GPUSHARE, "run", "--help").stdout
        for option in ("threads", "threads-request", "memory", "memory-request", "host-memory", "time", "time-request", "priority",
                       "kernel-time-limit", "fraction", "device", "profile", "name", "socket", "explain"):
            self.assertRegex(text, r"(?m)^  --%s " % option)
        self.assertIn("gpushare run", run(GPUSHARE, "--help").stdout)

    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_the_programs_own_options_and_status_stay(self):
        with Server() as server:
            ended = run(GPUSHARE, "run", "--socket", server.client, "--name", "mine", "--host-memory", "1G", "sh", "-c",
                        "echo $0 $GPUSHARE_CLIENT_NAME $GPUSHARE_HOST_MEMORY_LIMIT; exit 7", "--memory")
        self.assertEqual((ended.returncode, ended.stdout), (7, "--memory mine 1G\n"), ended.stderr)

    def test_softgpu_names_what_is_wrong(self):
        for status, words, command in ((2, "usage: softgpu run", ()), (2, "a program is missing", ("run",)), (2, "no option --memory", ("run", "--memory", "1G", "true")),
                                       (127, "/nonexistent/program", ("run", "/nonexistent/program"))):
            ended = run(SOFTGPU_TOOL, *command)
            self.assertEqual((ended.returncode, ended.stdout), (status, ""), ended.stderr)
            self.assertIn(words, ended.stderr)
        self.assertIn("usage: softgpu run", run(SOFTGPU_TOOL, "--help").stdout)
        self.assertRegex(run(SOFTGPU_TOOL, "--version").stdout, r"^softgpu \d+\.\d+")
        for tool in (GPUSHARE, SOFTGPU_TOOL):
            self.assertIn("[ARGUMENT]", run(tool, "run", "-h").stdout)
            self.assertEqual(run(tool, "run", "-h").stdout, run(tool, "run", "--help").stdout)

    def test_without_its_libraries_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(GPUSHARE, folder)
            ended = run(alone, "run", "true")
            self.assertEqual(ended.returncode, 126)
            self.assertIn("libgpushare-audit.so can't be used", ended.stderr)


class Explain(unittest.TestCase):
    """What is said of an executable, from the file alone."""

    def explained(self, status, words, program):
        ended = run(GPUSHARE, "run", "--explain", program)
        self.assertEqual((ended.returncode, ended.stderr), (status, ""), ended.stdout)
        self.assertIn(words, ended.stdout)

    def refused(self, words, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            ended = run(GPUSHARE, "run", "--explain", file.name)
            self.assertEqual((ended.returncode, ended.stdout), (126, ""), ended.stderr)
            self.assertIn(words, ended.stderr)

    def test_a_program_that_links_the_driver_runs(self):
        self.explained(0, "nothing of the file is in the way", RPATH)

    def test_the_drivers_refused_functions_are_named(self):
        # Two functions that it calls to see them refused.
        self.explained(1, "fails as not supported: cuGraphCreate, cuStreamBeginCapture_v2_ptsz; use others", SHARE)

    def test_the_runtimes_refused_functions_are_named(self):
        # Two functions that it calls to see them refused.
        for release in ("12", "13"):
            self.explained(1, "fails as not supported: cudaGraphCreate, cudaIpcGetMemHandle; use others",
                           os.path.join(BUILD, "tests/programs/cudart/program_" + release))

    @unittest.skipUnless(os.path.exists(HEAT), "programs that nvcc made are not linked under a sanitizer, nor for each machine")
    def test_a_program_as_nvcc_made_it_runs(self):
        self.explained(0, "nothing of the file is in the way; its kernels: of PTX 1, cubins 0", HEAT)

    def test_a_program_without_cuda_is_told_from_others(self):
        self.explained(0, "has no kernels and links no CUDA library", "/bin/true")

    def test_a_setuid_program_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(SHARE, folder)
            os.chmod(program, 0o4755)
            self.explained(1, "is setuid or setgid", program)

    def test_what_is_no_executable_is_refused(self):
        self.refused("is no executable", b"")
        self.refused("is no executable", b"#!/bin/sh\necho\n")
        ended = run(GPUSHARE, "run", "--explain", "/nonexistent/program")
        self.assertEqual(ended.returncode, 127)
        self.assertIn("/nonexistent/program: No such file", ended.stderr)

    def test_a_damaged_file_is_no_danger(self):
        with open(SHARE, "rb") as file:
            whole = file.read()
        generator = random.Random(int(os.environ.get("TEST_SEED", "1")))
        with tempfile.NamedTemporaryFile() as file:
            for _ in range(60):
                data = bytearray(whole[:generator.randrange(64, len(whole))] if generator.random() < 0.3 else whole)
                # The header, and the table of sections.
                for _ in range(generator.randrange(1, 6)):
                    near = generator.choice((0, int.from_bytes(whole[40:48], "little")))
                    data[min(near + generator.randrange(0, 2000), len(data) - 1)] = generator.randrange(256)
                file.seek(0)
                file.truncate()
                file.write(data)
                file.flush()
                ended = run(GPUSHARE, "run", "--explain", file.name)
                self.assertIn(ended.returncode, (0, 1, 126), ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    def test_programs_that_nvcc_built(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/cudart/vector_add.cu")
        with tempfile.TemporaryDirectory() as folder:
            for status, words, options in ((0, "nothing of the file is in the way; its kernels: of PTX 1, cubins 0", ("shared", "code=compute_75")),
                                           (0, "have no PTX", ("shared", "code=sm_75")),
                                           (1, "linked statically", ("static", "code=compute_75"))):
                program = os.path.join(folder, "program")
                subprocess.run(["nvcc", "-cudart", options[0], "-gencode", "arch=compute_75," + options[1], "-o", program, source], check=True)
                self.explained(status, words, program)


@unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one, and the auditor comes before it")
class Loader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop_well)

    def found(self, *command, expected=FROM_GPUSHARE, **env):
        ended = run(GPUSHARE, "run", "--socket", self.server.client, *command, **env)
        self.assertEqual((ended.returncode, ended.stdout), (0, expected), ended.stderr)

    def test_the_decoy_is_in_the_way(self):
        for program in (RPATH, RUNPATH):
            self.assertEqual(run(program).stdout, FROM_DECOY)
            self.assertEqual(run(program, "exec").stdout, FROM_DECOY)
            self.assertEqual(run(program, DECOY).stdout, FROM_DECOY)
        tags = subprocess.run(["readelf", "-d", RPATH, RUNPATH], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("(RPATH)", tags)
        self.assertIn("(RUNPATH)", tags)

    def test_a_program_with_an_rpath_finds_gpushare(self):
        self.found(RPATH)

    def test_a_program_with_a_runpath_finds_gpushare(self):
        self.found(RUNPATH)

    def test_a_library_that_is_opened_by_an_absolute_path_is_gpushares(self):
        self.found(RUNPATH, DECOY)
        self.found(RUNPATH, "libcuda.so")

    def test_a_program_that_the_program_executes_finds_gpushare(self):
        self.found(RPATH, "exec")
        self.found("sh", "-c", RUNPATH)

    def test_library_path_does_not_matter(self):
        self.found(RUNPATH, LD_LIBRARY_PATH=os.path.dirname(DECOY))

    def test_a_program_that_looks_for_the_file_finds_it(self):
        """As some do before they load it. What the user named comes first, and nothing is named twice."""
        for before in ({}, {"LD_LIBRARY_PATH": "/first"}, {"LD_LIBRARY_PATH": ""}):
            for command, folders in (((GPUSHARE, "run", "--socket", self.server.client), ["gpushare"]), ((SOFTGPU_TOOL, "run"), ["softgpu", "gpushare"])):
                said = run(*command, *command, "sh", "-c", "echo $LD_LIBRARY_PATH", **before)
                self.assertEqual(said.returncode, 0, said.stderr)
                found = said.stdout.strip().split(":")
                self.assertEqual(found[:-len(folders)], [path for path in before.values() if path])
                self.assertEqual([os.path.basename(path) for path in found[-len(folders):]], folders)
                self.assertTrue(os.path.isfile(os.path.join(found[-len(folders)], "libcuda.so.1")), found)

    def test_limits_of_the_command_line_hold(self):
        ended = run(GPUSHARE, "run", "--socket", self.server.client, "--memory", "256M", "--threads", "50%", SHARE, "share",
                    GPUSHARE_MEMORY_LIMIT="1G")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        multiprocessors, memory = map(int, ended.stdout.split())
        self.assertEqual(memory, 256 << 20)
        # Half of 132 multiprocessors, in SM groups: one more than half at most.
        self.assertLessEqual(multiprocessors, 68)
        self.assertGreater(multiprocessors, 0)

    def test_a_program_of_either_runtime_runs_as_a_client(self):
        for release in ("12", "13"):
            ended = run(GPUSHARE, "run", "--socket", self.server.client, os.path.join(BUILD, "tests/programs/cudart/program_" + release))
            self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_softgpu_needs_no_server(self):
        for command in ([RPATH], [RUNPATH, "exec"], [RUNPATH, DECOY]):
            ended = run(SOFTGPU_TOOL, "run", *command, GPUSHARE_SOCKET=self.server.file("nowhere"))
            self.assertEqual((ended.returncode, ended.stdout), (0, FROM_GPUSHARE), ended.stderr)
        ended = run(SOFTGPU_TOOL, "run", "--", os.path.join(BUILD, "tests/programs/cudart/program_13"), GPUSHARE_SOCKET=self.server.file("nowhere"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        # A client of the server below it is one.
        ended = run(SOFTGPU_TOOL, "run", GPUSHARE, "run", "--socket", self.server.client, "--memory", "256M", SHARE, "share")
        self.assertEqual((ended.returncode, ended.stdout.split()[1:]), (0, [str(256 << 20)]), ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    def test_a_program_that_nvcc_built_runs(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/cudart/vector_add.cu")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "vector_add")
            subprocess.run(["nvcc", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75", "-o", program, source], check=True)
            self.found(program, expected="right\n")


@unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one, and the auditor comes before it")
class Options(unittest.TestCase):
    """What the server sees of a program that was started with an option, and what the program sees itself."""
    @classmethod
    def setUpClass(cls):
        cls.server = Server(env={"SOFTGPU_DEVICES": "2", "GPUSHARE_MODE": "fair"})
        cls.addClassCleanup(cls.server.stop_well)
        # The server is ready with its first device.
        end = time.monotonic() + SECONDS
        while any(device["state"] != "ready" for device in cls.status()):
            if time.monotonic() > end:
                raise AssertionError(cls.server.text())
            time.sleep(0.01)
        cls.devices = cls.status()

    @classmethod
    def status(cls):
        return json.loads(cls.server.ctl("--json", "status").stdout)["devices"]

    def seen(self, *options):
        """Returns the server's row of the program, and [(UUID, bytes)] of the devices that it has."""
        with subprocess.Popen([GPUSHARE, "run", "--socket", self.server.client, *options, "--", TENANT, "devices"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env=ENV) as program:
            try:
                lines = []
                while not lines or lines[-1] not in ("ready\n", ""):
                    lines.append(program.stdout.readline())
                self.assertEqual(lines.pop(), "ready\n")
                rows = json.loads(self.server.ctl("--json", "clients").stdout)["clients"]
                row = next(row for row in rows if row["pid"] == program.pid)
                program.stdin.write("\n")
                program.stdin.close()
                self.assertEqual(program.wait(SECONDS), 0)
            finally:
                program.kill()
        return row, [(uuid, int(size)) for uuid, size in map(str.split, lines)]

    def uuids(self):
        return [device["uuid"].removeprefix("GPU-").replace("-", "") for device in self.devices]

    def test_without_options_a_program_has_all(self):
        row, devices = self.seen()
        self.assertEqual([uuid for uuid, _ in devices], self.uuids())
        self.assertEqual((row["device"], row["priority"]), (0, 0))
        self.assertEqual(row["time"]["request"]["granted_percent"], 0)

    def test_a_fraction_is_memory_at_most_and_time_at_least(self):
        whole = self.seen()[1][0][1]
        row, devices = self.seen("--fraction", "0.25")
        self.assertEqual(row["memory"]["limit"]["granted_bytes"], whole // 4)
        self.assertEqual(row["time"]["request"]["granted_percent"], 25)
        self.assertEqual([size for _, size in devices], [whole // 4] * 2)

    def test_a_device_is_the_only_one_that_is_seen(self):
        first, second = self.uuids()
        for option, expected in (("0", [first]), ("1", [second]), ("1,0", [second, first]), (self.devices[1]["uuid"], [second])):
            with self.subTest(option=option):
                row, devices = self.seen("--device", option)
                self.assertEqual([uuid for uuid, _ in devices], expected)
                self.assertEqual(row["device"], self.uuids().index(expected[0]))

    def test_a_priority_is_the_clients(self):
        self.assertEqual(self.seen("--priority", "7")[0]["priority"], 7)


if __name__ == "__main__":
    unittest.main()
