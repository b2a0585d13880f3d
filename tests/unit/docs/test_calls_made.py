#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Each function that docs/cuda-api.md calls carried is called by a test program, which compares what it does with CUDA's."""
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FOLDERS = ("tests/programs", "tests/unit")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def table(path, first, end, row):
    """The names in a table of exports. What stands behind `end` are forms for default streams of each thread, which pass a
    stream of the thread on to the function: tests/integration/test_dropin.py looks each of them up, and
    tests/programs/cudart/per_thread.c and dropin/check_streams.c make one call of each kind."""
    text = text_of(path)
    return re.findall(row, text[text.index("#define " + first):text.index(end)])


def called():
    """Names that a test program calls, or that a macro of one stands for. Members of a table of functions are no calls: such a
    program has opened the library below, which may be NVIDIA's."""
    found = set()
    for folder in FOLDERS:
        for at, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith((".c", ".h", ".cu")):
                    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text_of(os.path.join(at, name)), flags=re.S)
                    # A prototype is no call.
                    text = re.sub(r"^\w[\w ]*[ *]+(?:cu|__cu)\w+\([^;{}]*\);", "", text, flags=re.M)
                    found |= set(re.findall(r"(?<![.>\w])((?:cu|__cuda)\w+)\(", text))
                    found |= set(re.findall(r"\bBATCH\((cuda?[A-Z]\w+),", text))  # of tests/programs/cudart/queries.c
                    found |= set(re.findall(r"^#define \w+ (cuda?[A-Z]\w+)$", text, re.M))
    return found


class Calls(unittest.TestCase):
    def test_of_the_driver(self):
        carried = table("common/cuda/front/driver_exports.h", "DRIVER_EXPORTS(E)", "#define DRIVER_EXPORTS_PER_THREAD",
                        r"\bE\(\w+, (\w+), \d+, ")
        self.assertGreater(len(carried), 190)
        self.assertEqual(sorted(set(carried) - called()), [])

    def test_of_the_runtime(self):
        carried = table("client/cuda/runtime/runtime_exports.h", "CUDART_EXPORTS(E", "\n#endif",
                        r"\b(?:E|PTSZ|PTDS)\([^,()]+, (\w+), (?:BOTH|V12|V13), ")
        self.assertGreater(len(carried), 140)
        self.assertEqual(sorted(set(carried) - called()), [])


if __name__ == "__main__":
    unittest.main()
