#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What the drop-in links and refuses, beside what NVIDIA's linker does with the same inputs. NVIDIA's compiler has to take each
text that we make. Where ptxas and nvlink are not installed, only our own verdicts are checked."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, Server, run  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
PROTOTYPE = ".func (.param .b32 v) %s(.param .b32 a)"
CALL = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 1; call.uni (y), %s, (x); }"


def function(linkage, name):
    return linkage + " " + PROTOTYPE % name + " { st.param.b32 [v], 1; ret; }\n"


def kernel(name, body):
    return ".visible .entry %s() { .reg .b32 %%r<9>; .reg .b64 %%d<9>; %s ret; }\n" % (name, body)


def declared(name):
    return ".extern " + PROTOTYPE % name + ";\n"


CALLER = declared("f") + kernel("k", CALL % "f")
READS = ".extern .global .u32 x;\n" + kernel("k", "ld.global.u32 %r1, [x];")


def with_own(name):
    return ".global .u64 state = 1;\n" + function("", "own") + kernel(name, CALL % "own" + " ld.global.u64 %d1, [state];")


def prints(name):
    return ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n" + kernel(
        name, "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], 0; st.param.b64 [a], 0; call.uni (r), vprintf, (f, a); }")


# Name, inputs, and whether they are linked.
CASES = (
    ("a function", (CALLER, function(".visible", "f")), True),
    ("a function before its user", (function(".visible", "f"), CALLER), True),
    ("two users", (CALLER, function(".visible", "f"), CALLER.replace(" k()", " k2()")), True),
    ("own names", (with_own("k1"), with_own("k2")), True),
    ("an own name beside a common one", (with_own("k1"), declared("own") + kernel("k2", CALL % "own"), function(".visible", "own")), True),
    ("weak and strong", (CALLER, function(".weak", "f"), function(".visible", "f")), True),
    ("two weak", (CALLER, function(".weak", "f"), function(".weak", "f")), True),
    ("weak kernels", (".weak .entry t() { ret; }\n",) * 2, True),
    ("a variable", (READS, ".visible .global .u32 x = 1;\n"), True),
    ("common variables", (READS, ".common .global .u32 x;\n", ".common .global .u32 x;\n"), True),
    ("variables that name each other", (".extern .global .u64 b;\n.visible .global .u64 a = generic(b);\n",
                                        ".extern .global .u64 a;\n.visible .global .u64 b = generic(a);\n"), True),
    ("a table of functions", (declared("f") + ".visible .global .u64 table[1] = {f};\n", function(".visible", "f"),
                              ".extern .global .u64 table[1];\n" + kernel("k", "ld.global.u64 %d1, [table];")), True),
    ("memory that launches size", (".extern .shared .align 4 .b8 d[];\n" + kernel("k1", "st.shared.u32 [d], 1;"),
                                   ".extern .shared .align 16 .b8 d[];\n" + kernel("k2", "st.shared.u32 [d], 1;")), True),
    ("printf", (prints("k1"), prints("k2")), True),
    ("a declaration that nobody uses", (declared("f") + kernel("k", ""), kernel("k2", "")), True),
    ("constants", (".extern .const .u32 c[2];\n" + kernel("k", "ld.const.u32 %r1, [c+4];"),
                   ".visible .const .u32 c[2] = {1, 2};\n"), True),
    ("common and strong", (".common .global .u32 x;\n", ".visible .global .u32 x = 1;\n", READS), True),
    ("memory of blocks", (".extern .shared .u32 s;\n" + kernel("k1", "st.shared.u32 [s], 1;"),
                          ".visible .shared .u32 s;\n" + kernel("k2", "st.shared.u32 [s], 1;")), True),
    ("own memory of blocks beside what launches size", (".extern .shared .b8 s[];\n" + kernel("k1", "st.shared.u32 [s], 1;"),
                                                        ".shared .b8 s[64];\n" + kernel("k2", "st.shared.u32 [s], 1;")), True),
    ("signed and unsigned", (CALLER, ".visible .func (.param .s32 v) f(.param .u32 a) { st.param.b32 [v], 1; ret; }\n"), True),
    ("an array without a size", (".extern .global .u32 x[];\n" + kernel("k", "ld.global.u32 %r1, [x];"),
                                 ".visible .global .u32 x[4];\n"), True),
    ("the address of a kernel", (".extern .entry k2();\n.visible .global .u64 p = k2;\n", kernel("k2", "")), True),
    ("managed memory", (".extern .global .attribute(.managed) .u32 x;\n" + kernel("k", "ld.global.u32 %r1, [x];"),
                        ".visible .global .attribute(.managed) .u32 x = 1;\n"), True),
    ("arguments in registers", (".visible .func (.reg .b32 v) f(.reg .b32 a) { mov.b32 v, a; ret; }\n",
                                ".extern .func (.reg .b32 v) f(.reg .b32 a);\n" + kernel("k", "call.uni (%r1), f, (%r2);")), True),
    ("no return", (".extern .func f() .noreturn;\n" + kernel("k", "call.uni f;"), ".visible .func f() .noreturn { trap; ret; }\n"), True),
    ("a larger common variable, and its user",
     (".common .global .u32 x[9];\n", ".common .global .u32 x;\n", ".extern .global .u32 x[9];\n" +
      kernel("k", "ld.global.u32 %r1, [x];")), True),
    ("a common variable, and a user of another size", (".common .global .u32 x[9];\n", READS), False),
    ("a common variable larger than the strong one", (".common .global .u32 x[9];\n", ".visible .global .u32 x = 1;\n"), False),
    ("a weak variable of another size", (".weak .global .u32 x = 1;\n", ".weak .global .u64 x = 1;\n"), False),
    ("a weak function of another prototype", (function(".weak", "f"), ".weak .func f() { ret; }\n"), False),
    ("two memories of blocks", (".visible .shared .u32 s;\n" + kernel("k1", "st.shared.u32 [s], 1;"),
                                ".visible .shared .u32 s;\n" + kernel("k2", "st.shared.u32 [s], 1;")), False),
    ("no memory of blocks", (".extern .shared .u32 s;\n" + kernel("k1", "st.shared.u32 [s], 1;"), kernel("k2", "")), False),
    ("a number and an array", (CALLER, ".visible .func (.param .align 4 .b8 v[4]) f(.param .b32 a) { st.param.b32 [v], 1; ret; }\n"), False),
    ("a float and an integer", (CALLER, ".visible .func (.param .b32 v) f(.param .f32 a) { st.param.b32 [v], 1; ret; }\n"), False),
    ("two functions", (function(".visible", "f"), function(".visible", "f")), False),
    ("two kernels", (kernel("k", ""), kernel("k", "")), False),
    ("two variables", (".visible .global .u32 x = 1;\n", ".visible .global .u32 x = 1;\n"), False),
    ("no function", (CALLER, kernel("k2", "")), False),
    ("no variable", (READS, kernel("k2", "")), False),
    ("an own function is not another's", (CALLER, function("", "f") + kernel("k2", CALL % "f")), False),
    ("another size", (READS, ".visible .global .u64 x = 1;\n"), False),
    ("another space", (READS, ".visible .const .u32 x = 1;\n"), False),
    ("another prototype", (CALLER, ".visible .func (.param .b32 v) f(.param .b64 a) { st.param.b32 [v], 1; ret; }\n"), False),
    ("a function and a variable", (CALLER, ".visible .global .u32 f = 1;\n"), False),
)


class Links(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, texts):
        paths = [os.path.join(self.folder, "input%d.ptx" % i) for i in range(len(texts))]
        for path, text in zip(paths, texts):
            with open(path, "w", encoding="utf-8") as file:
                file.write(HEAD + text)
        return paths

    def test_our_linker_takes_and_refuses_as_its_page_says(self):
        with Server() as server:
            for name, texts, linked in CASES:
                with self.subTest(name):
                    paths = self.write(texts)
                    ended = run(PROGRAM, "link", *paths, LD_LIBRARY_PATH=os.path.join(BUILD, "lib/gpushare"), GPUSHARE_SOCKET=server.client)
                    self.assertEqual(ended.returncode, 0 if linked else 3, ended.stdout + ended.stderr)
                    if not linked:
                        self.assertRegex(ended.stderr, r"refused: .*'\w+'.*input\d\.ptx'")
                    elif shutil.which("ptxas"):
                        self.compile(ended.stdout)

    def compile(self, text):
        """NVIDIA's compiler takes it."""
        path = os.path.join(self.folder, "merged.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        ended = subprocess.run(["ptxas", "-arch=sm_75", "-o", path + ".cubin", path], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr + text)

    @unittest.skipUnless(shutil.which("ptxas") and shutil.which("nvlink"), "NVIDIA's ptxas and nvlink are not installed")
    def test_nvidias_linker_takes_and_refuses_the_same(self):
        for name, texts, linked in CASES:
            with self.subTest(name):
                paths = self.write(texts)
                for path in paths:
                    subprocess.run(["ptxas", "-c", "-arch=sm_75", "-o", path + ".o", path], check=True)
                ended = subprocess.run(["nvlink", "-arch=sm_75", "-o", os.path.join(self.folder, "linked"), *[path + ".o" for path in paths]],
                                       capture_output=True, text=True, check=False)
                self.assertEqual(ended.returncode == 0, linked, ended.stdout + ended.stderr)


@unittest.skipUnless(shutil.which("nvcc"), "NVIDIA's nvcc is not installed")
class Compiled(unittest.TestCase):
    """Two files of CUDA C++, compiled apart by nvcc and linked."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def compile(self, *options):
        paths = []
        for name in ("user", "library"):
            paths.append(os.path.join(self.folder, name + ".ptx"))
            source = os.path.join(ROOT, "tests/programs/dropin/linked", name + ".cu")
            subprocess.run(["nvcc", "-rdc=true", "-ptx", "-arch=compute_75", *options, "-o", paths[-1], source], check=True)
        return paths

    def demand(self, ended):
        """What C++ says of both files."""
        self.assertEqual(ended.returncode, 0, ended.stderr)
        words = [1 + i % 4 + i * 100 + 2 * 7 + 2 * i + i * 3 + 5 + 1000 * (1 + i % 4) + (i * 2 if i % 2 else i + 2) - i for i in range(64)]
        self.assertEqual([int(word) for word in ended.stdout.split()], words)

    def test_they_compute_what_their_sources_say(self):
        with Server() as server:
            # -G has debugging information and code that is not optimised.
            for options in ((), ("-lineinfo",), ("-G",)):
                paths = self.compile(*options)
                for order in (paths, paths[::-1]):
                    with self.subTest(options=options, first=order[0]):
                        self.demand(run(PROGRAM, "run", *order, LD_LIBRARY_PATH=os.path.join(BUILD, "lib/gpushare"),
                                        GPUSHARE_SOCKET=server.client))
                        self.demand(run(PROGRAM, "run", *order, LD_LIBRARY_PATH=os.path.join(BUILD, "lib/softgpu"), GPUSHARE_SOCKET="/nowhere"))


if __name__ == "__main__":
    unittest.main()
