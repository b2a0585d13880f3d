# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The sanitizers that the programs under test were built with."""
import os
import re


def is_there(names="asan|tsan|ubsan"):
    """Whether gpushared was built with one of these."""
    with open(os.path.join(os.environ.get("BUILD", "build"), "bin/gpushared"), "rb") as file:
        return re.search(rb"__(%s)_" % names.encode(), file.read()) is not None
