#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What a worker reads of the machine code in libraries of CUDA's, against a reading of its own.

    kernels.py LIBRARY...       the counts of what was compared; exit status 1 if anything differs

`make check` builds the program images, which unpacks the libraries' containers and reads each kernel's parameters as a worker
does. Here the same cubins are read again, by the ELF symbols and the attributes that NVIDIA's tools list: for each parameter its
ordinal, offset and size, and the size of all parameters together, which no parameter states.
"""
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
# How a record of .nv.info states its size, and the attributes that speak of parameters.
NO_VALUE, BYTE, HALF, SIZED = 1, 2, 3, 4
PARAMETER, ALL_PARAMETERS, LARGE_PARAMETER = 0x17, 0x19, 0x45
FUNCTION, ENTRY = 2, 0x10


def sections(data):
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]

    def text(section, at):
        begin = rows[section][4] + at
        return data[begin:data.index(b"\0", begin)].decode()
    return {text(names, row[0]): row for row in rows}, rows, text


def kernels(data):
    """The names of the functions that other code can't call, by the table of symbols."""
    named, rows, text = sections(data)
    found = []
    for row in rows:
        if row[1] != 2:
            continue
        for at in range(row[4], row[4] + row[5], 24):
            name, info, other = struct.unpack_from("<IBB", data, at)
            if info & 15 == FUNCTION and other & ENTRY:
                found.append(text(row[6], name))
    return found, named


def parameters(data, row):
    """The parameters in order, and the size of all."""
    at, end = row[4], row[4] + row[5]
    found, whole = {}, 0
    while at < end:
        kind, attribute, value = struct.unpack_from("<BBH", data, at)
        if kind not in (NO_VALUE, BYTE, HALF, SIZED):
            sys.exit(f"kernels.py: a record of form {kind}")
        body = at + 4
        at = body + (value if kind == SIZED else 0)
        if attribute == PARAMETER:
            _, ordinal, offset, size = struct.unpack_from("<IHHI", data, body)
            found[ordinal] = (offset, size >> 18)
        elif attribute == LARGE_PARAMETER:
            _, ordinal, offset, size = struct.unpack_from("<IHHI", data, body)
            found[ordinal] = (offset, size & 0xffffff)  # what else there is says something of pointers
        elif attribute == ALL_PARAMETERS:
            whole = value
    return [found[i] for i in sorted(found)], whole


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run([os.path.join(BUILD, "tests/programs/wheels/images"), folder, *sys.argv[1:]],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        read = {}
        for line in said.splitlines():
            number, kernel, *rest = line.split(" ")
            read.setdefault(int(number), {})[kernel] = rest
        files = sorted(int(name.split(".")[0]) for name in os.listdir(folder))
        count = 0
        for number in files:
            with open(os.path.join(folder, f"{number}.cubin"), "rb") as file:
                data = file.read()
            names, named = kernels(data)
            for kernel in names:
                listed, whole = parameters(data, named[f".nv.info.{kernel}"])
                mine = [str(len(listed)), str(max((o + s for o, s in listed), default=0)), ",".join(f"{o}:{s}" for o, s in listed)]
                theirs = read.get(number, {}).get(kernel)
                count += 1
                if theirs != mine or (int(mine[1]) + 7) // 8 != (whole + 7) // 8:
                    wrong += 1
                    print(f"{number}.cubin {kernel}: {theirs}, and by its attributes {mine} of {whole} bytes")
    print(f"{len(files)} cubins, {count} kernels, {wrong} read differently")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
