#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Writes the version script of the drop-in libcuda.so.1 from the table in driver_exports.h. The names are plain, as
NVIDIA's library has them: programs link against them without a version."""
import re
import sys


def main():
    table, output = sys.argv[1:]
    with open(table, encoding="utf-8") as text:
        names = re.findall(r"^\s*E\(\w+, (\w+), \d+, \(", text.read(), re.M)
    if not names:
        sys.exit("%s: no exports" % table)
    with open(output, "w", encoding="utf-8") as script:
        script.write("{\n    global:\n")
        script.writelines("        %s;\n" % name for name in sorted(names) + ["gpushare_dropin_marker"])
        script.write("    local:\n        *;\n};\n")


main()
