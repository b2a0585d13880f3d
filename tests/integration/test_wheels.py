#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""No symbol of CUDA's driver or runtime is missing that PyTorch's wheels leave undefined, for CUDA 12 and for CUDA 13, in the
libraries that replace them. tests/programs/wheels/symbols.py made the lists from PyPI's wheels. And a worker reads the machine
code of a library of CUDA's rightly."""
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import toolkit  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
LISTS = os.path.join(ROOT, "tests/programs/wheels")
LIBRARY = toolkit.in_toolkits("lib64/libcublasLt.so", "lib64/libcurand.so")


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

    @unittest.skipUnless(LIBRARY, "no library with machine code is here: neither cuRAND nor cuBLASLt of a CUDA toolkit")
    def test_a_librarys_machine_code(self):
        """cuBLASLt has kernels whose parameters are longer than 4 KiB."""
        done = subprocess.run([os.path.join(LISTS, "kernels.py"), LIBRARY[0]], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        self.assertRegex(done.stdout, r"^[1-9]\d* cubins, [1-9]\d* kernels, 0 read differently$")


if __name__ == "__main__":
    unittest.main()
