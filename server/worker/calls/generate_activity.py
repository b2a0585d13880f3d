#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Writes activity_calls.inc: for each entry of common/cuda/cuda_driver.h a function that notes the call and makes it.

The preprocessor can't take the names of parameters out of a declaration, so this program does."""
import re
import sys

# The calls of a launch, of a copy and of the end of a batch: the submitter notes these itself, without the clock.
UNWATCHED = re.compile(r"cuLaunchKernel(Ex)?|cuStream(WriteValue(32|64)|BatchMemOp|WaitEvent)"
                       r"|cuEventRecord|cuMemcpy\w*Async|cuMemsetD\d+Async|cuGetError\w+")


def entries(text):
    """Each entry's name and parameters, as the header's table has them."""
    table = text.split("#define CUDA_DRIVER_ENTRIES(X)", 1)[1].replace("\\\n", " ")
    for match in re.finditer(r"X\((\w+),\s*\w+,\s*\d+,\s*[01],\s*\(((?:[^()]|\([^()]*\))*)\)\)", table.split("struct cuda_driver", 1)[0]):
        yield match[1], " ".join(match[2].split())


def argument(parameter):
    return re.search(r"(\w+)\s*(?:\[\d*\])?$", parameter.strip())[1]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(entries(file.read()))
    watched = [(name, params) for name, params in found if not UNWATCHED.fullmatch(name)]
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(f"/* Made by {sys.argv[0]} from {sys.argv[1]}. */\n")
        for name, params in watched:
            arguments = "" if params == "void" else ", ".join(map(argument, params.split(",")))
            out.write(f"static cuda_result watched_{name}({params})\n{{\n"
                      f"    uint32_t before = call_begin(ACTIVITY_{name});\n"
                      f"    return call_end(before, real.{name}({arguments}));\n}}\n")
        rows = " ".join(f"X({name})" for name, _ in watched)
        out.write(f"#define ACTIVITY_WATCHED(X) {rows}\n#define ACTIVITY_ENTRIES_READ {len(found)}\n")


main()
