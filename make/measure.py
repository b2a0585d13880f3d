#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Measure the shape of the source tree and print it beside that of an earlier revision.

usage: measure.py [--base REVISION] [--json] [--lists] [--work FOLDER] [--tree FOLDER]

With --base, that revision is exported from git into FOLDER/<commit> (kept, so that a second run
is quick) and measured by the same rules. Both trees are built with -O0 for their symbols; each
has a build folder of its own below FOLDER, so the objects of a normal build are left alone.
--lists names what was counted. Python's standard library, git, make and nm are all it needs.

What is measured
  production files  *.c and *.h below common/, server/ and client/, without tests and examples.
                    A function's rules read these alone, not what the build generates.
  lines             newlines of a file. Median, p90 and p99 are nearest-rank percentiles.
  function          a definition with a body at file level, in a .c or .h file. Its length runs from
                    the line of its name to the line of its closing brace, both counted.
                    Where #if has an #else, the text behind #else is not read.
  call circle       a strongly connected set of two or more object files of one component, where
                    object A needs object B if a symbol undefined in A is defined in B. Tables of
                    functions count, since their relocations name the symbol too.
  component         common, scheduler, softgpu, supervisor, worker, client, tools: a folder with all
                    folders below it (client without client/tools, which is "tools").
  one-word static   a static function in a .c file whose name has no underscore.
  shared static     a name that static functions of three or more .c files have.
  sentence buffer, parameter
                    two adjacent parameters `char *X, size_t Y` where X is in SENTENCE_NAMES, whatever
                    Y is called; functions that are defined, each counted once. Not counted: functions
                    whose name ends in _format, _text or _name (they print a value, not a reason).
  sentence buffer, local
                    an array `char X[N]` inside a function where X is in SENTENCE_NAMES and N is at
                    least 120: a number, or a constant that the tree defines as one number.
  copy of min/max   a function or macro of two parameters whose whole body is `a < b ? a : b` with one
                    of < > <= >= and the parameters in any order. The floor's own min and max are macros
                    of another form and not counted.
  written-out choice  an expression `a < b ? a : b` (or one of > <= >=) over names and members in any
                    function that is not such a copy itself.
  written-out container_of  a subtraction `- offsetof(...)` outside common/util.h.
  written-out doubling  `room ? room * 2 : N` or `room ? 2 * room : N` outside common/array.h.
  bare atomic       a call of an __atomic_* builtin outside common/ipc/shared_word.h.
  comment density   lines that hold a comment or a part of one, in percent of all lines that are not
                    blank. Lines that hold "SPDX-" are counted as neither.
  parameters        commas at the top level of a definition's parameter list plus one; (void) is none.
  exported twice    a global symbol that two or more production objects define; main is expected.
  prefix            a function in a .c file that is not static should begin with its file's noun, so that
                    the name leads to the file. The noun is the file's stem, or the name of a folder above
                    it and the stem where that folder gives the stem its sense: session_quota_open in
                    session/quota.c, session_memory_free in session/owned/memory.c.
  family prefix     the name begins with a shorter noun that several files share: the first words of the
                    stem, if a header of the component has that name (exec_shuffle in exec_warp.c beside
                    exec.h), or the name of the file's folder (session_fail in session_state.c). Such a
                    name leads to the family, whose header says which file has it. Counted apart from
                    foreign prefixes, which lead elsewhere.
                    In neither count: main, the public functions gpushare_* and CUDA's own names (cu and a
                    capital), which are not ours to choose; names all in capitals, which are macros that
                    define functions.
"""
import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys

FOLDERS = ("common", "server", "client")
COMPONENTS = {  # the longest prefix decides
    "common": "common", "server/scheduler": "scheduler", "server/softgpu": "softgpu",
    "server/supervisor": "supervisor", "server/worker": "worker", "client": "client", "client/tools": "tools",
}
SENTENCE_NAMES = frozenset("why text reason reasons message sentence words said trouble complaint".split())
PRINTS_A_VALUE = re.compile(r"_(format|text|name)$")
SENTENCE_BYTES = 120
LONG_FUNCTION = 60
ATTRIBUTES = frozenset(("__attribute__", "_Alignas", "__typeof__", "_Static_assert"))
TOKEN = re.compile(r"[A-Za-z_]\w*|[{}()\[\];,=]|\S")

Function = collections.namedtuple("Function", "path name line length static parameters body")


# ---- reading C ------------------------------------------------------------------------------
LEXEME = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    """The same number of lines, and nothing else."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Comments become blanks and literals empty ones, so that lines keep their numbers."""
    def replace(match):
        lexeme = match.group(0)
        if lexeme[0] == "/":
            return blank(lexeme)
        return lexeme[0] + blank(lexeme[1:-1]) + lexeme[-1]
    return LEXEME.sub(replace, text)


def without_directives(text):
    """Blanks for preprocessor lines, and for the branches behind #else and #elif."""
    kept, hidden, continued = [], [], False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if continued or directive:
            if directive and not continued:
                word = directive.group(1)
                if word in ("if", "ifdef", "ifndef"):
                    hidden.append(False)
                elif word in ("else", "elif") and hidden:
                    hidden[-1] = True
                elif word == "endif" and hidden:
                    hidden.pop()
            continued = line.endswith("\\")
            kept.append("")
        else:
            kept.append("" if any(hidden) else line)
    return "\n".join(kept)


def parameters_of(tokens):
    """The parameter list, split at its own commas."""
    found, depth = [[]], 0
    for word in tokens:
        depth += (word in "([") - (word in ")]")
        if word == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
    return [] if found in ([[]], [["void"]]) else [" ".join(part) for part in found]


def declared(head):
    """Of a declaration's tokens (word, line): name, line, parameters of the function it defines, or None."""
    depth, opened = 0, None
    for at, (word, _) in enumerate(head):
        if word == "=" and depth == 0:
            return None
        if word == "(":
            if depth == 0 and at and re.match(r"[A-Za-z_]", head[at - 1][0]) and head[at - 1][0] not in ATTRIBUTES:
                opened = at
            depth += 1
        elif word == ")":
            depth -= 1
            if depth == 0 and opened is not None:
                name, line = head[opened - 1]
                return name, line, parameters_of([w for w, _ in head[opened + 1:at]])
    return None


def functions_of(path, text):
    """The functions that a file defines. `text` is as it stands in the file."""
    code = without_directives(without_comments(text))
    found, head, depth, current, line, end = [], [], 0, None, 1, 0
    for match in TOKEN.finditer(code):
        line += code.count("\n", end, match.start())
        end, word = match.start(), match.group(0)
        if word == "{":
            if depth == 0:
                if [w for w, _ in head] == ["extern", '"', '"']:
                    head = []
                    continue  # extern "C": what it holds stands at file level
                current = declared(head)
                start = match.end()
            depth += 1
        elif word == "}":
            if depth == 0:
                continue
            depth -= 1
            if depth == 0 and current:
                name, begun, parameters = current
                static = any(w == "static" for w, _ in head)
                found.append(Function(path, name, begun, line - begun + 1, static, parameters, code[start:match.start()]))
                head = []
        elif depth == 0:
            head = [] if word == ";" else head + [(word, line)]
    if depth:
        raise ValueError(f"{path}: its braces don't match")
    return found


def comment_share(texts):
    """Lines with a comment, in percent of those that are not blank, without SPDX lines."""
    commented = everything = 0
    for text in texts:
        # A comment's characters become \1, so that a line shows what it holds.
        marked = LEXEME.sub(lambda m: re.sub(r"\S", "\1", m.group(0)) if m.group(0)[0] == "/" else m.group(0), text)
        for line, shown in zip(text.split("\n"), marked.split("\n")):
            if line.strip() and "SPDX-" not in line:
                everything += 1
                commented += "\1" in shown
    return 100.0 * commented / everything if everything else 0.0


OPERAND = r"([A-Za-z_][\w.\[\]]*(?:->[\w.\[\]]+)*)"
WRITTEN_CHOICE = re.compile(OPERAND + r"\s*(?:<|>|<=|>=)\s*" + OPERAND + r"\s*\?\s*" + OPERAND + r"\s*:\s*" + OPERAND)
DOUBLING = re.compile(r"\?\s*(?:[\w>.*-]+\s*\*\s*2|2\s*\*\s*[\w>.*-]+)\s*:")


def written_out(functions):
    """Of the functions' bodies: what the headers of common/ exist for."""
    found = {"choice": [], "container_of": [], "doubling": [], "atomic": []}
    for f in functions:
        where = f"{f.path}: {f.name}"
        for match in WRITTEN_CHOICE.finditer(f.body):
            words = match.groups()
            if set(words[:2]) == set(words[2:]) and len(set(words)) == 2:
                found["choice"].append(f"{where}: {match.group(0)}")
        found["container_of"] += [where] * len(re.findall(r"-\s*offsetof\(", f.body))
        if f.path != "common/array.h":
            found["doubling"] += [where] * len(DOUBLING.findall(f.body))
        if f.path != "common/ipc/shared_word.h":
            found["atomic"] += [where] * len(re.findall(r"\b__atomic_\w+\(", f.body))
    return found


CHOICE = r"\(?(\w+)\)?\s*(?:<|>|<=|>=)\s*\(?(\w+)\)?\s*\?\s*\(?(\w+)\)?\s*:\s*\(?(\w+)\)?"
MACRO_CHOICE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\((\w+),[ \t]*(\w+)\)[ \t]*\(*" + CHOICE + r"\)*[ \t]*$", re.M)


def is_choice(names, words):
    return len(set(names)) == 2 and set(words[:2]) == set(names) and set(words[2:]) == set(names)


def choices_of(path, text, functions):
    """The functions and macros that are min or max under whatever name."""
    found = []
    for function in functions:
        body = re.fullmatch(r"\s*return\s*" + CHOICE + r"\s*;\s*", function.body)
        if body and len(function.parameters) == 2:
            names = [re.findall(r"\w+", p)[-1] for p in function.parameters]
            if is_choice(names, body.groups()):
                found.append(function)
    for match in MACRO_CHOICE.finditer(without_comments(text)):
        name, a, b, *words = match.groups()
        if is_choice((a, b), words):
            found.append(Function(path, name, 0, 1, True, [a, b], ""))
    return found


def constants_of(text):
    """#define NAME NUMBER and enumerators NAME = NUMBER."""
    code = without_comments(text)
    found = dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)\)?[ \t]*$", code, re.M))
    found.update(re.findall(r"\b([A-Z]\w*)\s*=\s*(\d+)\s*[,}]", code))
    return {name: int(number) for name, number in found.items()}


def takes_sentence(function):
    if PRINTS_A_VALUE.search(function.name):
        return False
    for first, second in zip(function.parameters, function.parameters[1:]):
        one = re.fullmatch(r"char \* (\w+)", first)
        if one and one.group(1) in SENTENCE_NAMES and re.fullmatch(r"size_t \w+", second):
            return True
    return False


def local_sentences(function, constants):
    found = []
    for declaration in re.finditer(r"(?<![\w*])char\s+([^;*()]*?\[[^;]*?);", function.body):
        for name, size in re.findall(r"\b(\w+)\s*\[\s*(\w+)(?:\s*\+\s*\w+)?\s*\]", declaration.group(1)):
            number = int(size) if size.isdigit() else constants.get(size, 0)
            if name in SENTENCE_NAMES and number >= SENTENCE_BYTES:
                found.append(f"{function.path}: {function.name}: {name}[{size}]")
    return found


# ---- reading objects --------------------------------------------------------------------------
def component_of(path):
    """Of a source's or object's path from the root."""
    best = max((p for p in COMPONENTS if path.startswith(p + "/")), key=len, default=None)
    return COMPONENTS.get(best)


def symbols_of(objects):
    """{object: (defined, undefined)} of its global symbols, by nm."""
    found = {}
    if not objects:
        return found
    output = subprocess.run(["nm", "-A", "-g", "-P", *objects], check=True, capture_output=True, text=True).stdout
    for path in objects:
        found[path] = (set(), set())
    for line in output.splitlines():
        path, name, kind = re.match(r"(.*?):\s*(\S+) (\S)", line).groups()
        found[path][kind in "Uvw"].add(name)
    return found


def strongly_connected(graph):
    """Sets of two or more nodes that reach one another (Tarjan, without recursion)."""
    index, low, stack, on_stack, circles = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for other in edges:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = set()
                    while True:
                        other = stack.pop()
                        on_stack.discard(other)
                        circle.add(other)
                        if other == node:
                            break
                    if len(circle) > 1:
                        circles.append(circle)
    return sorted(circles, key=lambda c: (-len(c), sorted(c)))


def circles_of(symbols):
    """{component: circles} from {path from the root without its suffix: (defined, undefined)}."""
    members = collections.defaultdict(dict)
    for path, (defined, undefined) in symbols.items():
        component = component_of(path)
        if component:
            members[component][path] = (defined, undefined)
    result = {}
    for component, objects in members.items():
        owner = {name: path for path, (defined, _) in objects.items() for name in defined}
        graph = {path: {owner[name] for name in undefined if name in owner} - {path}
                 for path, (_, undefined) in objects.items()}
        result[component] = strongly_connected(graph)
    return result


def exported_twice(symbols):
    owners = collections.defaultdict(list)
    for path, (defined, _) in symbols.items():
        if component_of(path):
            for name in defined:
                owners[name].append(path)
    return {name: sorted(paths) for name, paths in owners.items() if len(paths) > 1 and name != "main"}


# ---- a tree -------------------------------------------------------------------------------------
def percentile(numbers, share):
    """Nearest rank; 0 of nothing."""
    ordered = sorted(numbers)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0


def sources_of(tree):
    """{path from the root: text} of the production files."""
    found = {}
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(tree, folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(where, name)
                    with open(path, encoding="utf-8") as file:
                        found[os.path.relpath(path, tree)] = file.read()
    return dict(sorted(found.items()))


def begins_with(name, noun):
    return name == noun or name.startswith(noun + "_")


def prefix_of(function, headers):
    """own, family or foreign; None where the name is not ours to choose. headers: {component: stems of its headers}."""
    if re.match(r"gpushare_|cu[A-Z]|cuda[A-Z]|__cuda[A-Z]|la_|main$", function.name) or function.name.isupper():
        return None
    *folders, stem = function.path[:-2].split("/")
    if any(begins_with(function.name, noun) for noun in [stem] + [f"{folder}_{stem}" for folder in folders]):
        return "own"
    words = stem.split("_")
    nouns = {"_".join(words[:i]) for i in range(1, len(words))} & headers[component_of(function.path)]
    return "family" if any(begins_with(function.name, noun) for noun in nouns | {folders[-1]}) else "foreign"


def measure(sources, symbols):
    """(rows, lists): what the table shows, in its order, and what was counted."""
    functions, choices, constants = [], [], {}
    for path, text in sources.items():
        here = functions_of(path, text)
        functions += here
        choices += choices_of(path, text, here)
        constants.update(constants_of(text))
    c_files = {p: t for p, t in sources.items() if p.endswith(".c")}
    h_files = {p: t for p, t in sources.items() if p.endswith(".h")}
    c_lines = [t.count("\n") for t in c_files.values()]
    lengths = [f.length for f in functions]
    statics = [f for f in functions if f.static and f.path.endswith(".c")]
    one_word = [f for f in statics if "_" not in f.name]
    where = collections.defaultdict(set)
    for function in statics:
        where[function.name].add(function.path)
    shared = {name: paths for name, paths in where.items() if len(paths) >= 3}
    takers = [f for f in functions if takes_sentence(f)]
    locals_ = [one for f in functions for one in local_sentences(f, constants)]
    exported = [f for f in functions if not f.static and f.path.endswith(".c")]
    headers = collections.defaultdict(set)
    for path in h_files:
        headers[component_of(path)].add(os.path.basename(path)[:-2])
    prefixes = collections.defaultdict(list)
    for function in exported:
        prefixes[prefix_of(function, headers)].append(f"{function.path}: {function.name}")
    ours = len(exported) - len(prefixes[None])
    longest = sorted(functions, key=lambda f: (-len(f.parameters), f.path, f.name))
    written = written_out([f for f in functions if f not in choices])
    circles = circles_of(symbols)
    twice = exported_twice(symbols)

    rows = {
        "production files .c / .h": f"{len(c_files)} / {len(h_files)}",
        "lines": sum(t.count("\n") for t in sources.values()),
        ".c length median / p90 / max": f"{percentile(c_lines, .5)} / {percentile(c_lines, .9)} / {max(c_lines, default=0)}",
        "functions": len(functions),
        "function length median / mean / p90 / p99 / max":
            f"{percentile(lengths, .5)} / {sum(lengths) / max(1, len(lengths)):.1f} / {percentile(lengths, .9)} / "
            f"{percentile(lengths, .99)} / {max(lengths, default=0)}",
        f"functions over {LONG_FUNCTION} lines": sum(n > LONG_FUNCTION for n in lengths),
    }
    for component in COMPONENTS.values():
        sizes = "+".join(str(len(c)) for c in circles.get(component, ())) or "0"
        rows[f"files in call circles, {component}"] = sizes
    rows.update({
        "static functions of one word": f"{len(one_word)} of {len(statics)} ({100 * len(one_word) / max(1, len(statics)):.0f} %)",
        "static names that stand in 3 or more files": len(shared),
        "functions that take a sentence buffer": len(takers),
        "local sentence buffers": len(locals_),
        "copies of min/max": len(choices),
        "written-out choices / container_of / doublings": f"{len(written['choice'])} / {len(written['container_of'])} / {len(written['doubling'])}",
        "bare atomics": len(written["atomic"]),
        "comment density .c / .h": f"{comment_share(c_files.values()):.1f} % / {comment_share(h_files.values()):.1f} %",
        "parameters median / p90 / max": f"{percentile([len(f.parameters) for f in functions], .5)} / "
                                         f"{percentile([len(f.parameters) for f in functions], .9)} / "
                                         f"{max((len(f.parameters) for f in functions), default=0)}",
        "functions of 6 or more parameters": sum(len(f.parameters) >= 6 for f in functions),
        "longest parameter lists": ", ".join(f"{f.name} {len(f.parameters)}" for f in longest[:4]),
        "exported symbols defined twice": len(twice),
        "functions whose prefix is foreign to their file": f"{len(prefixes['foreign'])} of {ours}",
        "functions whose prefix is their family's": f"{len(prefixes['family'])} of {ours}",
    })
    lists = {
        "functions over %d lines" % LONG_FUNCTION: [f"{f.path}: {f.name} {f.length}" for f in functions if f.length > LONG_FUNCTION],
        "call circles": [f"{component}: {' '.join(sorted(os.path.basename(p) for p in circle))}"
                         for component in COMPONENTS.values() for circle in circles.get(component, ())],
        "static functions of one word": [f"{f.path}: {f.name}" for f in one_word],
        "static names that stand in 3 or more files":
            [f"{name}: {' '.join(sorted(paths))}" for name, paths in sorted(shared.items(), key=lambda i: (-len(i[1]), i[0]))],
        "functions that take a sentence buffer": [f"{f.path}: {f.name}" for f in takers],
        "local sentence buffers": locals_,
        "copies of min/max": [f"{f.path}: {f.name}" for f in choices],
        "written-out choices": written["choice"],
        "written-out container_of": written["container_of"],
        "written-out doublings": written["doubling"],
        "bare atomics": written["atomic"],
        "longest parameter lists": [f"{f.path}: {f.name} {len(f.parameters)}" for f in longest if len(f.parameters) >= 6],
        "exported symbols defined twice": [f"{name}: {' '.join(paths)}" for name, paths in sorted(twice.items())],
        "functions whose prefix is foreign to their file": prefixes["foreign"],
        "functions whose prefix is their family's": prefixes["family"],
    }
    return rows, lists


def built_symbols(tree, build):
    """Builds the tree for its objects and reads them. `build` is relative to the tree or absolute."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")}
    made = subprocess.run(["make", "-C", tree, f"BUILD={build}", "OPT=-O0 -g0", "WERROR=0", "all"],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode:
        raise SystemExit(f"measure: {tree} does not build:\n{made.stdout[-4000:]}")
    root = os.path.join(tree, build, "obj")
    found = {}
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                source = os.path.relpath(os.path.join(where, name[:-2] + ".c"), root)
                # An object may have outlived its source in a folder that is built again and again.
                if name.endswith(".o") and os.path.exists(os.path.join(tree, source)):
                    found[os.path.join(where, name)] = source[:-2]
    return {found[path]: sets for path, sets in symbols_of(sorted(found)).items()}


def exported_revision(tree, revision, work):
    """The folder that holds the revision's files."""
    commit = subprocess.run(["git", "-C", tree, "rev-parse", "--verify", revision + "^{commit}"],
                            capture_output=True, text=True, check=False)
    if commit.returncode:
        raise SystemExit(f"measure: git does not know the revision {revision}: {commit.stderr.strip()}")
    commit = commit.stdout.strip()
    folder = os.path.join(work, commit[:12])
    if not os.path.exists(os.path.join(folder, ".exported")):
        os.makedirs(folder, exist_ok=True)
        archive = subprocess.Popen(["git", "-C", tree, "archive", commit], stdout=subprocess.PIPE)
        unpacked = subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=False)
        archive.stdout.close()
        if archive.wait() or unpacked.returncode:
            raise SystemExit(f"measure: cannot export {commit}")
        with open(os.path.join(folder, ".exported"), "w", encoding="utf-8") as mark:
            mark.write(commit + "\n")
    return folder


def table(columns):
    """Markdown: one line for each row of the last column; a row that a column lacks is empty there."""
    titles, rows = zip(*columns)
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]
    for name in rows[-1]:
        lines.append("| " + " | ".join([name] + [str(row.get(name, "")) for row in rows]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", default="", help="a git revision to print beside the tree")
    parser.add_argument("--json", action="store_true", help="rows and lists as JSON")
    parser.add_argument("--lists", action="store_true", help="name what was counted")
    parser.add_argument("--work", default="build/measure", help="where revisions and objects are kept")
    parser.add_argument("--tree", default=".", help="the root of the tree to measure")
    args = parser.parse_args()
    tree, work = os.path.abspath(args.tree), os.path.abspath(args.work)
    columns = []
    if args.base:
        folder = exported_revision(tree, args.base, work)
        columns.append((f"before ({os.path.basename(folder)[:7]})", measure(sources_of(folder), built_symbols(folder, "build"))))
    columns.append(("after", measure(sources_of(tree), built_symbols(tree, os.path.join(work, "tree")))))
    if args.json:
        json.dump({title: {"rows": rows, "lists": lists} for title, (rows, lists) in columns}, sys.stdout, indent=1)
        print()
        return
    print(table([(title, rows) for title, (rows, _) in columns]))
    if args.lists:
        for title, (_, lists) in columns:
            for name, entries in lists.items():
                print(f"\n{title}: {name}" + "".join(f"\n  {entry}" for entry in entries))


if __name__ == "__main__":
    main()
