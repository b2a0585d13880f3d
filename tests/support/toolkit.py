# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The CUDA toolkits that are installed, for tests that compare with them; nothing else needs one."""
import glob
import os


def in_toolkits(*paths):
    """The files of the toolkits that are installed; CUDA_HOME may name one more."""
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), *glob.glob("/usr/local/cuda-*"), "/usr/local"]
    found = [os.path.join(home, path) for home in homes for path in paths]
    return sorted({os.path.realpath(path): path for path in found if os.path.exists(path)}.values())
