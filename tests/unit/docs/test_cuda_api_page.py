#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""docs/cuda-api.md is what the tables of CUDA's functions say, and the tables have what an installed toolkit's headers declare."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
sys.path.insert(0, os.path.join(ROOT, "client/cuda"))
import exports  # noqa: E402
from toolkit import in_toolkits  # noqa: E402

DRIVER = ("cuda", "cudaGL", "cudaEGL", "cudaVDPAU", "cudaProfiler")
RUNTIME = ("cuda_runtime_api", "cuda_profiler_api", "cuda_gl_interop", "cuda_egl_interop", "cuda_vdpau_interop")
# Inline in a header, and for Windows alone.
NO_SYMBOLS = {"cuGetProcAddress_v2_ptsz", "cuWGLGetDevice", "cudaWGLGetDevice"}


def read(folder, names):
    """The headers that are there, without comments."""
    texts = []
    for path in [os.path.join(folder, name + ".h") for name in names]:
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as text:
                texts.append(re.sub(r"/\*.*?\*/", "", text.read(), flags=re.S))
    return "\n".join(texts)


def declared(text, result, prefix, macro):
    """Each function of the headers: those that are declared, those that a name stands for, and the forms that a macro makes."""
    found = set(re.findall(r"\b%s\s+(%s\w+)\s*\(" % (result, prefix), text))
    found |= set(re.findall(r"#\s*define\s+%s\w+\s+(%s\w+_v\d)$" % (prefix, prefix), text, re.M))
    for kind, name in re.findall(r"%s_(PTDS|PTSZ)\((%s\w+)\)" % (macro, prefix), text):
        found |= {name, name + "_" + kind.lower()}
    return found


class Page(unittest.TestCase):
    def test_it_is_what_the_tables_say(self):
        with tempfile.TemporaryDirectory() as folder:
            fresh = os.path.join(folder, "page.md")
            subprocess.run([sys.executable, os.path.join(ROOT, "client/cuda/generate_reference.py"), fresh], check=True)
            with open(fresh, encoding="utf-8") as new, open(os.path.join(ROOT, "docs/cuda-api.md"), encoding="utf-8") as old:
                self.assertEqual(new.read(), old.read(), "run: make cuda-api")


class Forms(unittest.TestCase):
    def test_a_carried_function_is_carried_for_default_streams_of_each_thread(self):
        for library in (exports.driver(), exports.runtime()):
            carried = {function.symbol for function in library if function.carried}
            forms = {function.symbol for function in library if re.sub(r"_pt[sd][sz]$", "", function.symbol) in carried - {function.symbol}}
            self.assertGreater(len(forms), 15)
            self.assertEqual(forms - carried, set())


@unittest.skipUnless(in_toolkits("include/cuda.h"), "no toolkit is installed")
class Toolkit(unittest.TestCase):
    def test_each_function_of_the_drivers_headers_is_in_the_table(self):
        symbols = {function.symbol for function in exports.driver()}
        for header in in_toolkits("include/cuda.h"):
            theirs = declared(read(os.path.dirname(header), DRIVER), r"CUresult\s+CUDAAPI", "cu[A-Z]", "__CUDA_API")
            self.assertGreater(len(theirs), 500)
            self.assertEqual(theirs - symbols - NO_SYMBOLS, set(), header)

    def test_each_version_of_a_drivers_function_is_in_the_table(self):
        rows = {(function.keys[0], int(function.keys[1]), function.symbol.endswith(("_ptsz", "_ptds"))) for function in exports.driver()}
        for header in in_toolkits("include/cudaTypedefs.h"):
            text = read(os.path.dirname(header), [name + "Typedefs" for name in DRIVER])
            theirs = {(name, int(version), bool(end)) for name, version, end in
                      re.findall(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", text) if name not in NO_SYMBOLS}
            self.assertGreater(len(theirs), 500)
            self.assertEqual(theirs - rows, set(), header)

    def test_each_function_of_the_runtimes_headers_is_in_the_table(self):
        for header in in_toolkits("include/cuda_runtime_api.h"):
            folder = os.path.dirname(header)
            major = re.search(r"#define CUDART_VERSION\s+(\d+)\d{3}$", read(folder, ["cuda_runtime_api"]), re.M).group(1)
            symbols = {function.symbol for function in exports.runtime(major)}
            theirs = declared(read(folder, RUNTIME), r"CUDARTAPI(?:_CDECL)?", "cuda[A-Z]", "__CUDART_API")
            self.assertGreater(len(theirs), 250)
            self.assertEqual(theirs - symbols - NO_SYMBOLS, set(), header)


if __name__ == "__main__":
    unittest.main()
