#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Our libcudart.so.12 and .so.13 on the software GPU: what they export, their layouts, and programs that use them."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from toolkit import compile_cuda, in_toolkits  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
RELEASES = ("12", "13")
# The cases of tests/programs/cudart/parts.c, with the error and the beginning of what the log says.
REFUSED_PARTS = (
    ("a part is missing", "cudaErrorInvalidSource", "undefined reference to 'is_odd' in 'part 2'"),
    ("a part is there twice", "cudaErrorInvalidSource", "multiple definition of 'is_odd' in 'part 3', first defined in 'part 2'"),
    ("a kernel launches kernels", "cudaErrorInvalidSource",
     "undefined reference to '__cudaCDP2LaunchDeviceV2' in 'part 1': if it is of NVIDIA's device runtime ('part 2'), which is carried for grid groups alone"),
    ("an entry is longer than its fatbin", "cudaErrorInvalidKernelImage", "'part 2' is a damaged fatbin"),
    ("a part is no fatbin", "cudaErrorInvalidKernelImage", "part 2 of them is no fatbin"),
    ("a part is for other devices", "cudaErrorNoKernelImageForDevice", "'part 2' has no PTX for compute capability 9.0 or lower"),
    ("no part", "cudaErrorNoKernelImageForDevice", "there is none"),
)


def run(program, driver, *arguments):
    environment = dict(os.environ, LD_LIBRARY_PATH=driver + ":" + LIBRARIES)
    return subprocess.run([program, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def exported_by(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r" T (\S+)$", lines, re.M))


def toolkits():
    return in_toolkits(*(folder + "/libcudart.so." + release for folder in ("lib", "lib64") for release in RELEASES))


class Runtime(unittest.TestCase):
    def program(self, release):
        return os.path.join(BUILD, "tests/programs/cudart/program_" + release)

    def test_each_function_of_the_table_is_exported_with_its_node(self):
        with open(os.path.join(ROOT, "client/cuda/runtime/exports.txt"), encoding="utf-8") as text:
            rows = re.findall(r"^(\w+) (BOTH|V12|V13)\b", text.read(), re.M)
        self.assertGreater(len(rows), 400)
        for release in RELEASES:
            self.assertEqual(exported_by(os.path.join(LIBRARIES, "libcudart.so." + release)),
                             {"%s@@libcudart.so.%s" % (name, release) for name, releases in rows if releases in ("BOTH", "V" + release)})

    @unittest.skipUnless(toolkits(), "no toolkit is installed")
    def test_each_function_of_an_installed_toolkit_is_exported(self):
        for library in toolkits():
            with self.subTest(library=library):
                theirs = exported_by(library)
                self.assertGreater(len(theirs), 300)
                self.assertEqual(theirs - exported_by(os.path.join(LIBRARIES, os.path.basename(library))), set())

    @unittest.skipUnless(in_toolkits("include/cuda_runtime_api.h"), "no toolkit is installed")
    def test_layouts_and_numbers_are_those_of_an_installed_toolkit(self):
        compiler = os.environ.get("CC", "cc").split()
        for header in in_toolkits("include/cuda_runtime_api.h"):
            with self.subTest(header=header):
                subprocess.run([*compiler, "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-I" + ROOT, "-I" + os.path.join(BUILD, "generated"),
                                "-isystem", os.path.dirname(header), os.path.join(ROOT, "tests/programs/cudart/layout.c")], check=True)

    def test_a_function_that_is_not_carried_is_refused_and_named_once(self):
        for release in RELEASES:
            with self.subTest(release=release):
                ended = run(self.program(release), SOFTGPU, "absent")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(re.findall(r"^gpushare: .* does not carry (\w+); .*cudaErrorNotSupported$", ended.stderr, re.M),
                                 ["cudaGraphCreate", "cudaIpcGetMemHandle"])

    def test_a_program_of_each_release_runs(self):
        for release in RELEASES:
            with self.subTest(release=release):
                ended = run(self.program(release), SOFTGPU)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertRegex(ended.stderr, "managed variables, since its kernels could not be loaded \\(cudaErrorNoKernelImageForDevice\\)")
                self.check_refused_parts(ended.stderr)

    def check_refused_parts(self, text):
        cases = re.findall(r"^parts: (.*)\n((?:(?!parts: ).*\n)*)parts: (\w+)$", text, re.M)
        refused = {case: (error, sentences) for case, sentences, error in cases}
        for case, error, sentence in REFUSED_PARTS:
            with self.subTest(case=case):
                self.assertEqual(refused[case][0], error)
                self.assertIn("(nvcc -rdc=true) can't be linked: " + sentence, refused[case][1])
        self.assertEqual(len(refused), len(REFUSED_PARTS))

    def test_without_a_driver_the_first_call_says_so(self):
        with tempfile.TemporaryDirectory() as empty:
            # No driver, wherever another may be installed: the loader stops at a file that is no library.
            with open(os.path.join(empty, "libcuda.so.1"), "wb"):
                pass
            for release in RELEASES:
                with self.subTest(release=release):
                    ended = run(self.program(release), empty, "no-driver")
                    self.assertEqual(ended.returncode, 0, ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_a_program_that_nvcc_built_runs(self):
        source = os.path.join(ROOT, "tests/programs/cudart/vector_add.cu")
        with tempfile.TemporaryDirectory() as folder:
            for mode in ("default", "none", "speed"):
                with self.subTest(mode=mode):
                    program = os.path.join(folder, mode)
                    option = [] if mode == "default" else ["--compress-mode=" + mode]
                    compile_cuda(source, program, *option)
                    ended = run(program, SOFTGPU)
                    self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_managed_variables_of_a_program_that_nvcc_built(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "managed")
            compile_cuda(os.path.join(ROOT, "tests/programs/cudart/managed.cu"), program)
            ended = run(program, SOFTGPU)
            self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_parts_that_nvcc_compiled_apart(self):
        caller, library = (os.path.join(ROOT, "tests/programs/cudart/part_%s.cu" % part) for part in ("caller", "library"))
        with tempfile.TemporaryDirectory() as folder:
            # PTX alone; and machine code that nvlink linked, for another device than this one and for this one.
            for name, options in (("ptx", ()), ("older", ("-gencode", "arch=compute_75,code=sm_75")), ("this", ("-gencode", "arch=compute_90,code=sm_90"))):
                with self.subTest(code=name):
                    program = os.path.join(folder, name)
                    compile_cuda(caller, program, "-rdc=true", *options, library)
                    ended = run(program, SOFTGPU)
                    self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_nvcc_chooses_whose_the_default_stream_is(self):
        source = os.path.join(ROOT, "tests/programs/cudart/per_thread.cu")
        with tempfile.TemporaryDirectory() as folder:
            for whose, milliseconds, seen in (("per-thread", "20000", "7\n"), ("legacy", "50", "0\n")):
                with self.subTest(whose=whose):
                    program = os.path.join(folder, whose)
                    compile_cuda(source, program, "--default-stream", whose, "-Xcompiler", "-pthread")
                    ended = run(program, SOFTGPU, milliseconds)
                    self.assertEqual((ended.returncode, ended.stdout), (0, seen), ended.stderr)


if __name__ == "__main__":
    unittest.main()
