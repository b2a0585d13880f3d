#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The structure as the built objects show it: files of a component call each other in one direction, the client
library's engine calls none of its public functions and the library prints nothing, and no exported name stands twice or
for tests alone."""
import os
import platform
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))

# A component: its folder, the folders in it that are components of their own, and the most files that
# may stand in circles. A number above 0 is a debt: it may only be lowered.
COMPONENTS = [
    ("common", ("common/cuda/front",), 0),
    ("common/cuda/front", (), 0),
    ("client", ("client/tools", "client/cuda"), 0),
    ("client/cuda/runtime", (), 0),
    ("client/cuda/driver", (), 0),
    ("client/tools", (), 0),
    ("server/scheduler", (), 0),
    ("server/supervisor", (), 0),
    ("server/worker", (), 0),
    ("server/softgpu", (), 0),
]
# The C library's ways to a terminal or a log; dprintf and write are used for sockets and memory files alone.
PRINTS = re.compile(r"^_*(v?f?printf|puts|fputs|putchar|fputc|putc|fwrite|perror|v?warnx?|v?errx?|v?syslog|stderr|stdout)(_chk|_unlocked)?$")
# What a program that is not ours calls: CUDA's functions, the client library's, and those of an auditing library.
PUBLIC = re.compile(r"cu[A-Z]|cuda[A-Z]|__cuda|gpushare_|la_|main$|__odr_asan")
# Functions that only tests call, each with the reason why it stands in production code.
FOR_TESTS = {
    "cuda_driver_open_partly": "the programs that look at a driver of any kind take it, and go out in the bundle for GPUs",
    "device_adopt": "a test plays the worker at the other end of a socket",
    "log_journal_close": "the journal's socket is the process's, and each case has one of its own",
    "log_limit_reset": "the counts are the process's, and each case begins with none",
    "worker_link_outstanding": "no other thing shows a request whose answer nobody gets",
}
NO_CODE = re.compile(r"""/\*.*?\*/|'(?:\\.|[^'\\\n])'|"(?:\\.|[^"\\\n])*\"""", re.S)
# NAME_MACHINE.c is compiled for that machine alone.
OTHER_MACHINE = re.compile(r"_(?!%s)(x86_64|aarch64)\.c$" % platform.machine())


def sources(folder, apart=()):
    """Paths of all .c files below a folder, without those of the folders that stand apart and of other machines."""
    found = []
    for at, _, names in os.walk(os.path.join(ROOT, folder)):
        inside = os.path.relpath(at, ROOT)
        if not any(inside == other or inside.startswith(other + "/") for other in apart):
            found += [os.path.join(inside, name) for name in names if name.endswith(".c") and not OTHER_MACHINE.search(name)]
    return sorted(found)


def symbols(paths):
    """{source: (defined, undefined)}: the global names of its object."""
    objects = {os.path.join(BUILD, "obj", path[:-2] + ".o"): path for path in paths}
    missing = [path for name, path in objects.items() if not os.path.exists(name)]
    if missing:
        raise AssertionError("not built: " + ", ".join(missing))
    text = subprocess.run(["nm", "-P", "-g", "-A", *objects], check=True, stdout=subprocess.PIPE).stdout.decode()
    found = {path: (set(), set()) for path in paths}
    for line in text.splitlines():
        name, rest = line.rsplit(": ", 1)
        symbol, kind = rest.split()[:2]
        if kind not in "wv":
            found[objects[name]][kind == "U"].add(symbol)
    return found


def calls(found):
    """{source: {other source: a symbol of the other's that it uses}}."""
    home = {symbol: path for path, (defined, _) in found.items() for symbol in defined}
    return {
        path: {home[symbol]: symbol for symbol in sorted(undefined) if symbol in home}
        for path, (_, undefined) in found.items()
    }


def circles(graph):
    """The strongly connected components of more than one file (Tarjan 1972), largest first."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def shortest(graph, circle):
    """A shortest way round from the circle's first file: "a.c -(symbol)-> b.c -(symbol)-> a.c"."""
    start, before, queue = circle[0], {}, [circle[0]]
    for node in queue:
        for other in graph[node]:
            if other == start:
                way = [node]
                while way[0] != start:
                    way.insert(0, before[way[0]])
                names = way + [start]
                text = names[0]
                for one, two in zip(names, names[1:]):
                    text += " -(%s)-> %s" % (graph[one][two], two)
                return text
            if other in circle and other not in before:
                before[other] = node
                queue.append(other)
    raise AssertionError("no circle")


def report(graph):
    return "".join("\n  %d files, such as %s" % (len(circle), shortest(graph, circle)) for circle in circles(graph))


class Circles(unittest.TestCase):
    def test_a_circle_is_found_and_named(self):
        graph = {"a": {"b": "f"}, "b": {"c": "g"}, "c": {"a": "h"}, "d": {"a": "i"}, "e": {"d": "j"}}
        self.assertEqual(circles(graph), [["a", "b", "c"]])
        self.assertIn("3 files, such as a -(f)-> b -(g)-> c -(h)-> a", report(graph))
        self.assertEqual(circles({"a": {"b": "f"}, "b": {}}), [])

    def test_files_in_circles(self):
        for folder, apart, allowed in COMPONENTS:
            with self.subTest(folder):
                graph = calls(symbols(sources(folder, apart)))
                self.assertGreater(len(graph), 3)
                count = sum(len(circle) for circle in circles(graph))
                self.assertLessEqual(count, allowed, "%s: files in circles:%s" % (folder, report(graph)))

    def test_the_engine_calls_no_public_function(self):
        for path, (_, undefined) in symbols(sources("client/session") + sources("client/engine")).items():
            public = sorted(symbol for symbol in undefined if symbol.startswith("gpushare_"))
            self.assertEqual(public, [], path)

    def test_the_library_prints_nothing(self):
        found = subprocess.run(["nm", "-D", "--undefined-only", "--format=just-symbols",
                                os.path.join(BUILD, "lib/libgpushare-client.so")], capture_output=True, text=True, check=True)
        used = {name.partition("@")[0] for name in found.stdout.split()}
        self.assertIn("connect", used)
        self.assertTrue(PRINTS.match("__fprintf_chk") and PRINTS.match("stderr") and not PRINTS.match("snprintf"))
        self.assertEqual(sorted(name for name in used if PRINTS.match(name)), [])

    def test_public_functions_stand_in_api_files_alone(self):
        for path, (defined, _) in symbols(sources("client", ("client/tools", "client/cuda"))).items():
            public = {symbol for symbol in defined if symbol.startswith("gpushare_")}
            self.assertEqual(bool(public), path.endswith("_api.c"), path)
            if public:
                self.assertEqual(public, defined, path)

    def test_no_exported_name_stands_twice(self):
        home = {}
        for folder, apart, _ in COMPONENTS:
            for path, (defined, _) in symbols(sources(folder, apart)).items():
                # CUDA chose the names of its driver's calls, and two libraries have them; each answers the front's operations.
                # AddressSanitizer adds a symbol of its own for each variable.
                for symbol in {symbol for symbol in defined if not re.match(r"cu[A-Z]|front_|__odr_asan", symbol)} - {"main"}:
                    home.setdefault(symbol, []).append(path)
        # One of them is in each library of the CUDA runtime, with the parameters of its release.
        releases = {"client/cuda/runtime/release_12.c", "client/cuda/runtime/release_13.c"}
        self.assertEqual({symbol: paths for symbol, paths in home.items() if len(paths) > 1 and set(paths) != releases}, {})

    def test_production_calls_each_function_that_it_exports(self):
        defined, undefined, words = {}, set(), {}
        for folder, apart, _ in COMPONENTS:
            for path, (own, others) in symbols(sources(folder, apart)).items():
                defined.update((symbol, path) for symbol in own if not PUBLIC.match(symbol))
                undefined |= others
        for folder in ("common", "server", "client"):
            for at, _, names in os.walk(os.path.join(ROOT, folder)):
                for name in names:
                    if name.endswith((".c", ".h", ".inc")):
                        with open(os.path.join(at, name), encoding="utf-8") as text:
                            for word in re.findall(r"\w+", NO_CODE.sub(" ", text.read())):
                                words[word] = words.get(word, 0) + 1
        # A function that its own file calls stands there twice, and once in a header.
        self.assertGreater(len(defined), 1500)
        alone = {symbol for symbol in defined if symbol not in undefined and words.get(symbol, 0) < 3}
        self.assertEqual({symbol: defined[symbol] for symbol in alone - FOR_TESTS.keys()}, {}, "only tests call these")
        self.assertEqual(FOR_TESTS.keys() - alone, set(), "these need no exception")


if __name__ == "__main__":
    unittest.main()
