#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""No symbol of CUDA's driver or runtime is missing that PyTorch's wheels leave undefined, for CUDA 12 and for CUDA 13, in the
libraries that replace them. tests/programs/wheels/symbols.py made the lists from PyPI's wheels."""
import os
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
LISTS = os.path.join(ROOT, "tests/programs/wheels")


def exported(*libraries):
    names = set()
    for library in libraries:
        said = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", os.path.join(BUILD, "lib", library)],
                              capture_output=True, text=True, check=True).stdout
        names |= {line.split()[-1].replace("@@", "@") for line in said.splitlines()}
    return names


def wanted(name):
    with open(os.path.join(LISTS, name), encoding="utf-8") as file:
        return {line.strip() for line in file if not line.startswith("#")}


class Wheels(unittest.TestCase):
    def hold(self, name, driver, major):
        names = wanted(name)
        runtime = {symbol for symbol in names if symbol.endswith(f"@libcudart.so.{major}")}
        self.assertGreater(len(runtime), 80)
        self.assertTrue({symbol for symbol in names if re.match(r"cu[A-Z]\w+$", symbol)}, "the list has the driver's symbols too")
        self.assertEqual(sorted(names - exported(driver, f"gpushare/libcudart.so.{major}")), [])

    def test_pytorch_for_cuda_12(self):
        self.hold("torch-2.9.1.txt", "gpushare/libcuda.so.1", 12)

    def test_pytorch_for_cuda_13(self):
        self.hold("torch-2.15.0.txt", "gpushare/libcuda.so.1", 13)

    def test_pytorch_straight_on_the_software_gpu(self):
        self.hold("torch-2.9.1.txt", "softgpu/libcuda.so.1", 12)
        self.hold("torch-2.15.0.txt", "softgpu/libcuda.so.1", 13)


if __name__ == "__main__":
    unittest.main()
