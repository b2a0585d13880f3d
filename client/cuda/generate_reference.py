#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: generate_reference.py OUTPUT

Write docs/cuda-api.md: each function of CUDA's driver and runtime, and whether gpushare's libraries carry it, from the tables that
exports.py reads."""
import collections
import re
import sys

sys.dont_write_bytecode = True  # the folder holds sources alone
import exports  # pylint: disable=wrong-import-position

HEAD = """<!-- Made by client/cuda/generate_reference.py from the tables in client/cuda; do not edit. -->
# CUDA's functions, and which of them gpushare carries

This page is for programmers and administrators who want to know whether a program will run. It lists each function of CUDA's driver
(`libcuda.so.1`) and of CUDA's runtime (`libcudart.so.12`, `libcudart.so.13`). [unmodified.md](unmodified.md) says how such a
program is started, and what it sees.

* **Carried**: the function does what NVIDIA's does, for the client's share of the device.
* **In part**: the last column says what it does not do. It refuses that, unless the column says otherwise.
* **Refused**: each call returns `CUDA_ERROR_NOT_SUPPORTED` or `cudaErrorNotSupported`, and the first is named on standard error.
  The driver's `cuGetProcAddress` answers `CUDA_ERROR_NOT_FOUND`.

`_v2` and the like are other forms of the function before it. `_ptsz` and `_ptds` are for programs that are compiled with default
streams of each thread's own. (12) and (13) stand behind what one release of the runtime alone has.
"""


def base_of(symbol):
    """A symbol without the ends that choose among the forms of a function."""
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", symbol)


def grouped(functions):
    """{base: [functions]} in the functions' order."""
    found = collections.OrderedDict()
    for function in functions:
        found.setdefault(base_of(function.symbol), []).append(function)
    return found


def forms(base, functions, release):
    """The symbols of a function, the first one whole and the others without its name."""
    symbols = sorted({(function.symbol, release(function)) for function in functions})
    return ", ".join("`%s`%s" % (symbol if symbol == symbols[0][0] else symbol[len(base):], only) for symbol, only in symbols)


def state_and_remark(functions):
    remarks = list(collections.OrderedDict.fromkeys(part for function in functions if function.remark for part in function.remark.split("; ")))
    return "in part" if remarks else "carried", "; ".join(remarks)


def write_carried(text, functions, release):
    subjects = collections.OrderedDict()
    for function in functions:
        if function.carried:
            subjects.setdefault(function.subject, []).append(function)
    for subject, members in subjects.items():
        text.write("\n### %s\n\n| function | state | what it does not do |\n|---|---|---|\n" % (subject[0].upper() + subject[1:]))
        for base, same in grouped(members).items():
            text.write("| %s | %s | %s |\n" % (forms(base, same, release), *state_and_remark(same)))


def write_refused(text, functions, release):
    """Rows by the first word behind cu or cuda."""
    words = collections.OrderedDict()
    for base, same in sorted(grouped(function for function in functions if not function.carried).items()):
        word = re.match(r"(?:__)?cu(?:da)?(?:[A-Z]+(?=[A-Z][a-z])|[A-Z][A-Z]+|[A-Z][a-z]+|)", base).group(0)
        words.setdefault(word, []).append(forms(base, same, release))
    text.write("\n### Refused\n\n| begin with | functions |\n|---|---|\n")
    for word, names in words.items():
        text.write("| `%s` | %s |\n" % (word, ", ".join(names)))


def write_library(text, title, functions, release):
    bases = grouped(functions)
    parts = [state_and_remark(members) for members in ([one for one in same if one.carried] for same in bases.values()) if members]
    in_part = sum(state == "in part" for state, _ in parts)
    text.write("\n## %s\n\nOf %d functions, whose forms count as one, %d are carried, %d of these in part, and %d are refused.\n"
               % (title, len(bases), len(parts), in_part, len(bases) - len(parts)))
    write_carried(text, functions, release)
    write_refused(text, functions, release)


def write_softgpu(text):
    carried = {function.symbol for function in exports.driver() if function.carried}
    own = [function for function in exports.softgpu() if function.carried and function.symbol not in carried]
    text.write("\n### The software GPU\n\nThe `libcuda.so.1` of the [software GPU](softgpu.md), with which `softgpu run` starts a program, carries each function that is\n"
               "carried above: the two libraries are made from one table. It serves no share, so what is said of the server and of a\n"
               "client's share does not hold there. These functions it carries besides; the others are refused.\n\n"
               "| subject | functions |\n|---|---|\n")
    subjects = collections.OrderedDict()
    for function in own:
        subjects.setdefault(function.subject, []).append("`%s`" % function.symbol)
    text.writelines("| %s | %s |\n" % (subject, ", ".join(symbols)) for subject, symbols in subjects.items())


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as text:
        text.write(HEAD)
        write_library(text, "The driver", exports.driver(), lambda function: "")
        write_softgpu(text)
        write_library(text, "The runtime", exports.runtime(),
                      lambda function: {"BOTH": "", "V12": " (12)", "V13": " (13)"}[function.keys[0]])


main()
