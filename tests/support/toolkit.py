# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The CUDA toolkits that are installed, for tests that compare with them or compile with them; nothing else needs one."""
import glob
import os
import subprocess


def in_toolkits(*paths):
    """The files of the toolkits that are installed; CUDA_HOME may name one more."""
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), *glob.glob("/usr/local/cuda-*"), "/usr/local"]
    found = [os.path.join(home, path) for home in homes for path in paths]
    return sorted({os.path.realpath(path): path for path in found if os.path.exists(path)}.values())


def compile_cuda(source, program, *options):
    """A program with PTX alone as the device's code, and with the runtime as a library of its own."""
    subprocess.run(["nvcc", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75", *options, "-o", program, source], check=True)
