#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare run --explain: the functions of CUDA that programs and their libraries call, and folders. nm says which functions a file
calls, the compiled tables which of them are carried, and the dynamic linker which libraries it finds."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, GPUSHARE, run  # noqa: E402

CC = os.environ.get("CC", "cc").split()
DRIVER = os.path.join(BUILD, "lib/gpushare/libcuda.so.1")
REFUSED, CARRIED, UNKNOWN = "cuGraphCreate", "cuInit", "cuFunctionOfTomorrow"


def exported_by(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r" T (cu\w+)", lines))


def called_by(program):
    lines = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r" U (cu[A-Z]\w+)", lines))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def file(self, *names):
        return os.path.join(self.folder, *names)

    def compile(self, output, text, *options):
        """A file from C, in a folder that is made for it."""
        os.makedirs(os.path.dirname(output), exist_ok=True)
        subprocess.run([*CC, "-w", "-fPIC", "-xc", "-", "-xnone", "-o", output, *options], check=True, input=text, text=True)
        return output

    def library(self, output, *functions, calls=(), options=()):
        """A library with these functions, each of which calls the others; its name is its file's."""
        text = "".join("void %s();\n" % name for name in calls)
        text += "".join("void %s() { %s }\n" % (name, "".join("%s();" % call for call in calls)) for name in functions)
        return self.compile(output, text, "-shared", "-Wl,-soname," + os.path.basename(output), *options)

    def stub(self, name, *functions):
        """A library of CUDA to link with: ours may need a sanitizer's, and does not have what is new."""
        path = self.file("stubs", name)
        return path if os.path.exists(path) and not functions else self.library(path, *functions)

    def program(self, output, *calls, options=()):
        text = "".join("void %s();\n" % name for name in calls)
        return self.compile(output, text + "int main() { %s return 0; }\n" % "".join("%s();" % name for name in calls), *options)

    def explain(self, path, status, **env):
        ended = run(GPUSHARE, "run", "--explain", path, **env)
        self.assertEqual((ended.returncode, ended.stderr), (status, ""), ended.stdout)
        return ended.stdout

    def with_code(self, output, section, *kinds):
        """A program that calls the shared runtime, with entries of a fatbin (1: PTX, 2: cubin) in a section."""
        entries = b"".join(struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, 8, 0, 0, 0, 7, 75, 0, 0, 0x11, 0, 0) + bytes(8) for kind in kinds)
        with open(self.file("code"), "wb") as file:
            file.write(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries)
        return self.compile(output, '__asm__(".section %s,\\"a\\"; .balign 8; .incbin \\"%s\\"; .previous");'
                            "int cudaFree(void *); int main() { return cudaFree(0); }" % (section, self.file("code")),
                            self.stub("libcudart.so.13", "cudaFree"))

    def named(self, text, state):
        """The functions of a line, and how many more it counts."""
        found = re.search({"refused": r"fails as not supported: (.*?)(?: and (\d+) more)?; use others",
                           "in part": r"carries in part: (.*?)(?: and (\d+) more)?; cuda-api",
                           "unknown": r"do not have: (.*?)(?: and (\d+) more)?; they are newer"}[state], text)
        return (found.group(1).split(", "), int(found.group(2) or 0)) if found else ([], 0)


class Functions(Case):
    def test_a_refused_function_is_named_and_a_carried_one_is_not(self):
        driver = self.stub("libcuda.so.1", CARRIED, REFUSED)
        for style in ("sysv", "gnu", "both"):
            program = self.program(self.file("program"), CARRIED, REFUSED, options=(driver, "-Wl,--hash-style=" + style))
            self.assertEqual(called_by(program), {CARRIED, REFUSED})
            text = self.explain(program, 1)
            self.assertEqual(self.named(text, "refused"), ([REFUSED], 0), text)
            self.assertNotIn(CARRIED, text)
            program = self.program(self.file("program"), CARRIED, options=(driver, "-Wl,--hash-style=" + style))
            self.assertIn("functions of CUDA that it calls: 1, none of them refused", self.explain(program, 0))

    def test_section_headers_are_not_needed(self):
        driver = self.stub("libcuda.so.1", CARRIED, REFUSED)
        for style in ("sysv", "gnu"):
            for binding in ("lazy", "now"):
                program = self.program(self.file("program"), CARRIED, REFUSED, options=(driver, "-Wl,--hash-style=" + style, "-Wl,-z," + binding))
                with open(program, "r+b") as file:
                    file.seek(40)
                    file.write(bytes(8))  # e_shoff
                    file.seek(58)
                    file.write(bytes(6))  # e_shentsize, e_shnum, e_shstrndx
                text = self.explain(program, 1)
                self.assertEqual(self.named(text, "refused"), ([REFUSED], 0), text)
                self.assertIn("has no section headers", text)

    def test_each_function_of_the_driver_is_told_as_the_tables_have_it(self):
        carried = set(subprocess.run([os.path.join(BUILD, "tests/programs/tables/tables"), "driver"], check=True, stdout=subprocess.PIPE,
                                     text=True).stdout.split())
        everything = exported_by(DRIVER)
        self.assertGreater(len(everything), 700)
        driver = self.stub("libcuda.so.1", *everything)
        program = self.program(self.file("program"), *everything, options=(driver,))
        self.assertEqual(called_by(program), everything)
        text = self.explain(program, 1)
        refused = sorted(everything - carried)
        self.assertEqual(self.named(text, "refused"), (refused[:8], len(refused) - 8))
        with open(os.path.join(os.path.dirname(__file__), "../../common/cuda/front/exports.txt"), encoding="utf-8") as rows:
            in_part = sorted(re.findall(r"^(\w+) .* - ", rows.read(), re.M))
        self.assertEqual(self.named(text, "in part"), (in_part[:8], len(in_part) - 8))
        self.assertEqual(self.named(text, "unknown"), ([], 0))
        program = self.program(self.file("program"), *carried, options=(driver,))
        text = self.explain(program, 0)
        self.assertIn("functions of CUDA that it calls: %d, none of them refused" % len(carried), text)

    def test_a_function_that_is_in_part_is_named_and_not_in_the_way(self):
        driver = self.stub("libcuda.so.1", CARRIED, "cuCtxGetLimit")
        text = self.explain(self.program(self.file("program"), CARRIED, "cuCtxGetLimit", options=(driver,)), 0)
        self.assertEqual(self.named(text, "in part"), (["cuCtxGetLimit"], 0), text)

    def test_a_function_that_is_newer_is_named(self):
        driver = self.stub("libcuda.so.1", CARRIED, UNKNOWN)
        text = self.explain(self.program(self.file("program"), CARRIED, UNKNOWN, options=(driver,)), 1)
        self.assertEqual(self.named(text, "unknown"), ([UNKNOWN], 0), text)
        self.assertEqual(self.named(text, "refused"), ([], 0), text)

    def test_a_function_of_another_library_is_not_cudas(self):
        driver = self.stub("libcuda.so.1", CARRIED)
        other = self.library(self.file("lib/libcufile.so.0"), "cuFileRead", REFUSED)
        program = self.program(self.file("program"), CARRIED, "cuFileRead", REFUSED, options=(other, driver, "-Wl,-rpath,$ORIGIN/lib"))
        self.assertIn("functions of CUDA that it calls: 1, none", self.explain(program, 0))
        os.remove(other)
        text = self.explain(program, 1)
        self.assertEqual((self.named(text, "unknown"), self.named(text, "refused")), ((["cuFileRead"], 0), ([REFUSED], 0)), text)
        self.assertIn("not found, and not looked at: libcufile.so.0; ", text)

    def test_a_runtimes_release_counts(self):
        # The one before CUDA 13 has other parameters, and is not carried.
        for release, refused in (("12", ["cudaGetDeviceProperties", "cudaGraphCreate"]), ("13", ["cudaGraphCreate"])):
            calls = ("cudaGetDeviceProperties", "cudaGraphCreate", "cudaMalloc")
            runtime = self.stub("libcudart.so." + release, *calls)
            text = self.explain(self.program(self.file("program"), *calls, options=(runtime,)), 1)
            self.assertEqual(self.named(text, "refused"), (refused, 0), text)


class Code(Case):
    def test_kernels_are_counted_of_whole_programs_and_of_parts(self):
        for section in (".nv_fatbin", "__nv_relfatbin"):
            with self.subTest(section=section):
                program = self.with_code(self.file("program"), section, 1, 2, 1)
                self.assertIn("its kernels: of PTX 2, cubins 1;", self.explain(program, 0, LD_LIBRARY_PATH=self.file("stubs")))


class Libraries(Case):
    def setUp(self):
        super().setUp()
        self.driver = self.stub("libcuda.so.1", CARRIED, REFUSED)
        # Named without a folder of its own, as a library is that another one's list finds.
        inner = self.library(self.file("lib/libinner.so"), "inner", calls=(REFUSED,), options=(self.driver,))
        self.library(self.file("lib/libouter.so"), "outer", calls=("inner",), options=(inner,))

    def link(self, *options):
        return self.program(self.file("bin/program"), "outer", options=(self.file("lib/libouter.so"), "-Wl,--allow-shlib-undefined",
                                                                        "-Wl,--unresolved-symbols=ignore-all", *options))

    def found(self, program, **env):
        """Whether --explain looked at the inner library. The dynamic linker has to agree."""
        listed = run("ldd", program, LD_LIBRARY_PATH=os.path.dirname(self.driver) + ":" + env.get("LD_LIBRARY_PATH", "/nonexistent")).stdout
        ended = run(GPUSHARE, "run", "--explain", program, **env)
        there = not re.search(r"not found, and not looked at: .*lib(inner|outer)\.so; ", ended.stdout)
        self.assertEqual(there, not re.search(r"lib(inner|outer)\.so => not found", listed), listed + ended.stdout)
        self.assertEqual(there, self.named(ended.stdout, "refused") == ([REFUSED], 0), ended.stdout)
        self.assertEqual(ended.returncode, there, ended.stdout)
        return there

    def test_an_rpath_holds_for_libraries_of_libraries(self):
        self.assertTrue(self.found(self.link("-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib")))

    def test_a_runpath_holds_for_its_file_alone(self):
        self.assertFalse(self.found(self.link("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib")))

    def test_the_variable_holds_for_all(self):
        program = self.link()
        self.assertFalse(self.found(program))
        self.assertTrue(self.found(program, LD_LIBRARY_PATH=self.file("nowhere") + ":" + self.file("lib")))

    def test_a_link_to_a_program_has_its_files_folder(self):
        program = self.link("-Wl,--disable-new-dtags,-rpath,${ORIGIN}/../lib")
        os.mkdir(self.file("links"))
        os.symlink(program, self.file("links/link"))
        self.assertIn(self.file("lib/libinner.so") + ": calls", self.explain(self.file("links/link"), 1).replace("/bin/..", ""))

    def test_the_systems_libraries_are_found(self):
        self.assertNotIn("not found", self.explain("/bin/sh", 0))

    def test_a_damaged_library_is_named(self):
        program = self.link("-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib")
        os.truncate(self.file("lib/libinner.so"), 4200)
        text = self.explain(program, 1)
        self.assertRegex(text, r"libinner\.so: is damaged")


class Folders(Case):
    def test_each_file_of_cuda_has_a_line(self):
        driver = self.stub("libcuda.so.1", CARRIED, REFUSED)
        runtime = self.stub("libcudart.so.13", "cudaMalloc")
        place = self.file("place")
        bad = self.library(self.file("place/a/b/libbad.so"), "bad", calls=(CARRIED, REFUSED), options=(driver,))
        good = self.library(self.file("place/a/good.cpython-312.so"), "good", calls=("cudaMalloc",), options=(runtime,))
        self.library(self.file("place/libplain.so"), "plain")
        self.library(self.file("place/nvidia/libcudart.so.13"), "cudaMalloc", calls=(REFUSED,), options=(driver,))
        self.library(self.file("elsewhere/libmore.so"), "more", calls=(REFUSED,), options=(driver,))
        with open(self.file("place/a/module.py"), "w", encoding="ascii") as text:
            text.write("import this\n")
        os.mkfifo(self.file("place/pipe"))
        os.symlink(place, self.file("place/a/loop"))
        os.symlink(self.file("elsewhere"), self.file("place/elsewhere"))
        os.symlink(bad, self.file("place/a/again.so"))
        self.assertEqual(self.explain(place, 1).splitlines(), [
            bad + ": in the way: refused functions: " + REFUSED,
            good + ": nothing in the way; its kernels: of PTX 0, cubins 0; its functions of CUDA: 1 carried, 0 in part",
            place + ": files that use CUDA: 2, with something in the way: 1; gpushare run --explain FILE says more, and has the remedies"])
        # What is named itself may be a link.
        os.symlink(place, self.file("link"))
        self.assertIn("files that use CUDA: 2", self.explain(self.file("link"), 1))
        os.remove(bad)
        self.assertIn("with something in the way: 0", self.explain(place, 0))
        os.remove(good)
        self.assertEqual(self.explain(place, 0), place + ": no executable and no library in it uses CUDA\n")

    def test_a_name_does_not_steer_a_terminal(self):
        driver = self.stub("libcuda.so.1", REFUSED)
        self.library(self.file("place/lib\033[2J.so"), "bad", calls=(REFUSED,), options=(driver,))
        self.assertIn("lib?[2J.so: in the way", self.explain(self.file("place"), 1))

    def test_folders_that_lie_too_deep_are_named(self):
        driver = self.stub("libcuda.so.1", REFUSED)
        deep = self.file("place", *["d"] * 40)
        self.library(os.path.join(deep, "libbad.so"), "bad", calls=(REFUSED,), options=(driver,))
        text = self.explain(self.file("place"), 1)
        self.assertIn("not all were looked at", text)
        self.assertNotIn("libbad.so", text)
        self.assertIn("libbad.so: in the way", self.explain(self.file("place", *["d"] * 20), 1))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_a_folder_that_can_not_be_read_is_named(self):
        os.makedirs(self.file("place/closed"))
        os.chmod(self.file("place/closed"), 0)
        self.addCleanup(os.chmod, self.file("place/closed"), 0o700)
        self.assertIn("not looked at: %s: Permission denied" % self.file("place/closed"), self.explain(self.file("place"), 1))


if __name__ == "__main__":
    unittest.main()
