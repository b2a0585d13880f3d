#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Writes the version script of libcudart.so.MAJOR from the table in runtime_exports.h. The node has the library's name,
as NVIDIA's has, because programs ask for name and node together."""
import re
import sys


def main():
    table, major, output = sys.argv[1:]
    with open(table, encoding="utf-8") as text:
        rows = re.findall(r"^\s*E\([^,]+, (\w+), (\w+), \(", text.read(), re.M)
    names = sorted(name for name, releases in rows if releases in ("BOTH", "V" + major))
    if not names:
        sys.exit("%s: no exports for release %s" % (table, major))
    with open(output, "w", encoding="utf-8") as script:
        script.write("libcudart.so.%s {\n    global:\n" % major)
        script.writelines("        %s;\n" % name for name in names)
        script.write("    local:\n        *;\n};\n")


main()
