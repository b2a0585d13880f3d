# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The tables of functions of CUDA's two libraries. exports.txt of a library names every function that NVIDIA's library has, and
the table in its header the functions that ours carries. From both follow the version scripts, the bodies of the functions that are
not carried, and docs/cuda-api.md."""
import collections
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
FRONT = os.path.join(HERE, "../../common/cuda/front")
# symbol: the exported one. keys: of exports.txt, the columns behind the symbol. remark: what the function does not do, or "".
# subject: the heading above its row in the header, or "" if it is not carried. carried: whether it is.
Function = collections.namedtuple("Function", "symbol keys remark subject carried")


DRIVER_ROW = r"\s*E\((?P<key1>\w+), (?P<symbol>\w+), (?P<key2>\d+), \("


def read_names(path):
    """{symbol: (keys, remark)} of an exports.txt, in its order."""
    found = {}
    with open(path, encoding="utf-8") as text:
        for line in text:
            if line.startswith("#") or not line.strip():
                continue
            row, _, remark = line.rstrip("\n").partition(" - ")
            symbol, *keys = row.split()
            if symbol in found:
                raise SystemExit("%s: %s stands twice" % (path, symbol))
            found[symbol] = (tuple(keys), remark)
    return found


def read_header(path, row):
    """[(symbol, keys, subject)] of the rows of a header's tables. row: a pattern with a group `symbol`, and one for each key. A group
    `form`, if it is in the row, says how the name of a second function ends that the row has."""
    found, subject = [], ""
    with open(path, encoding="utf-8") as text:
        for line in text:
            heading = re.match(r" +/\* (.+) \*/ \\$", line)
            if heading:
                subject = heading.group(1)
            match = re.match(row, line)
            if match:
                groups = match.groupdict()
                symbol, form = groups.pop("symbol"), groups.pop("form", None)
                keys = tuple(groups[name] for name in sorted(groups))
                found += [(name, keys, subject) for name in [symbol] + ([symbol + "_" + form.lower()] if form else [])]
    return found


def part_without(whole, keys):
    """The keys of what is left of a function when a row has these, () if nothing is: a row may carry it for one release alone. None
    if the row contradicts."""
    if whole == keys:
        return ()
    return {("V12",): ("V13",), ("V13",): ("V12",)}.get(keys) if whole == ("BOTH",) else None


def join(names, rows, path):
    """All functions, those that are carried first and in the header's order. A row that contradicts exports.txt ends the program."""
    found = []
    for symbol, keys, subject in rows:
        if symbol not in names:
            raise SystemExit("%s: exports.txt has no %s" % (path, symbol))
        others = part_without(names[symbol][0], keys)
        if others is None:
            raise SystemExit("%s: %s is %s, and exports.txt says %s" % (path, symbol, " ".join(keys), " ".join(names[symbol][0])))
        found.append(Function(symbol, keys, names[symbol][1], subject, True))
        if others:
            found.append(Function(symbol, others, "", "", False))
    carried = {function.symbol for function in found}
    if not found or len(carried) != len(rows):
        raise SystemExit("%s: no function, or one twice" % path)
    for symbol, (keys, remark) in names.items():
        if symbol not in carried:
            if remark:
                raise SystemExit("exports.txt: %s is not carried, and has a remark" % symbol)
            found.append(Function(symbol, keys, "", "", False))
    return found


def driver():
    """The driver's functions. Keys: the name for cuGetProcAddress, and the version."""
    path = os.path.join(FRONT, "driver_exports.h")
    rows = read_header(path, DRIVER_ROW)
    return join(read_names(os.path.join(FRONT, "exports.txt")), rows, path)


def softgpu():
    """The same for the software GPU's library, which carries some functions more."""
    path = os.path.join(HERE, "../../server/softgpu/api/softgpu_exports.h")
    own = {symbol: subject for symbol, _, subject in read_header(path, DRIVER_ROW)}
    found = [function._replace(subject=own[function.symbol], carried=True) if function.symbol in own else function for function in driver()]
    if not own or set(own) - {function.symbol for function in found}:
        raise SystemExit("%s: a function that exports.txt does not have" % path)
    return found


def runtime(major=None):
    """The runtime's functions, those of a major release alone if it is given. Key: BOTH, V12 or V13."""
    path = os.path.join(HERE, "runtime/runtime_exports.h")
    rows = read_header(path, r"\s*(?:E|(?P<form>PTSZ|PTDS))\([^,]+, (?P<symbol>\w+), (?P<key1>\w+), \(")
    return [function for function in join(read_names(os.path.join(HERE, "runtime/exports.txt")), rows, path)
            if not major or function.keys[0] in ("BOTH", "V" + major)]
