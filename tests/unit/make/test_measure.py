#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make/measure.py counts what its head says, on small sources planted for it."""
import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SPEC = importlib.util.spec_from_file_location("measure", os.path.join(ROOT, "make/measure.py"))
measure = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(measure)

HARD = '''#include <stddef.h>
#define OPEN {
/* A brace { in a comment, and a name(like) { this. */
struct table {
    int (*call)(int, int);
};
static const struct table TABLE = {.call = NULL};
enum kind { KIND_A, KIND_B };
extern "C" {
__attribute__((noinline)) static int first(int a, char (*b)[4], void (*c)(int, int))
{
    if (a) { // "{"
        return '{';
    }
    return b && c;
}

void second_thing(void) { const char *s = "}{\\""; (void)s; }
}
#if WIDE
int third(
    int a)
{
#else
int third(long a)
{
#endif
    return 0;
}
int declared_only(int a, int b);
'''

CHOICES = '''
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define HALF(a, b) ((a) > (b) ? 1 : (b))
static int lesser(int a, int b)
{
    return a < b ? a : b;
}
static int sign(int a, int b)
{
    return a < b ? a : 0;
}
static int loop(struct s *s, int a)
{
    int room = s->room ? s->room * 2 : 8;
    struct t *t = (void *)((char *)s - offsetof(struct t, s));
    __atomic_store_n(&t->x, 1, __ATOMIC_RELAXED);
    return s->room < a ? s->room : a;
}
'''

SENTENCES = '''
enum { WHY_BYTES = 380, SHORT_BYTES = 20 };
int plain(int a, char *why, size_t size)
{
    char text[WHY_BYTES], words[119], reason[SHORT_BYTES], name[400];
    return 0;
}
int constant(const char *text, size_t bytes) { return 0; }
int apart(char *why, int a, size_t size) { return 0; }
const char *price_format(int a, char *text, size_t bytes) { return text; }
static int take(void) { static char message[120]; return 0; }
'''


def functions(text, path="common/x.c"):
    return measure.functions_of(path, text)


class Functions(unittest.TestCase):
    def test_definitions_alone_are_found_with_length_and_parameters(self):
        found = [(f.name, f.line, f.length, f.static, len(f.parameters)) for f in functions(HARD)]
        self.assertEqual(found, [("first", 10, 7, True, 3), ("second_thing", 18, 1, False, 0), ("third", 21, 9, False, 1)])

    def test_a_file_whose_braces_do_not_match_is_an_error(self):
        with self.assertRaises(ValueError):
            functions("int f(void) {")

    def test_percentiles_are_nearest_rank(self):
        numbers = list(range(1, 11))
        self.assertEqual([measure.percentile(numbers, share) for share in (.5, .9, .99)], [5, 9, 10])
        self.assertEqual(measure.percentile([], .5), 0)


class Counts(unittest.TestCase):
    def test_copies_of_min_and_max(self):
        found = measure.choices_of("common/x.c", CHOICES, functions(CHOICES))
        self.assertEqual([f.name for f in found], ["lesser", "LARGER"])

    def test_what_is_written_out(self):
        found = measure.written_out(functions(CHOICES)[1:])
        self.assertEqual({kind: len(places) for kind, places in found.items()},
                         {"choice": 1, "container_of": 1, "doubling": 1, "atomic": 1})

    def test_the_floor_itself_is_not_counted(self):
        self.assertEqual(measure.written_out(functions(CHOICES, "common/array.h"))["doubling"], [])
        self.assertEqual(measure.written_out(functions(CHOICES, "common/ipc/shared_word.h"))["atomic"], [])

    def test_sentence_buffers(self):
        found = functions(SENTENCES)
        self.assertEqual([f.name for f in found if measure.takes_sentence(f)], ["plain"])
        constants = measure.constants_of(SENTENCES)
        local = [one for f in found for one in measure.local_sentences(f, constants)]
        self.assertEqual(local, ["common/x.c: plain: text[WHY_BYTES]", "common/x.c: take: message[120]"])

    def test_comment_density_is_of_lines_without_spdx(self):
        text = '// SPDX-License-Identifier: X\n/* one\n * two */\n\nint a; // three\nchar *b = "/* no */";\n'
        self.assertEqual(measure.comment_share([text]), 75.0)

    def test_a_tree_of_two_files(self):
        sources = {"client/stream.c": "static int go(void)\n{\n}\nint stream_end(void) { return 0; }\nint streams(void) { return 0; }\n"
                                      "int gpushare_end(void) { return 0; }\nint stream(void) { return 0; }\n",
                   "client/stream.h": "/* Says it. */\nint stream_end(void);\n"}
        rows, lists = measure.measure(sources, {})
        self.assertEqual(rows["production files .c / .h"], "1 / 1")
        self.assertEqual(rows["lines"], 9)
        self.assertEqual(rows["static functions of one word"], "1 of 1 (100 %)")
        self.assertEqual(lists["functions whose prefix is foreign to their file"], ["client/stream.c: streams"])
        self.assertIn("| lines | 9 |", measure.table([("after", rows)]))
        self.assertEqual(measure.table([("before", {}), ("after", {"lines": 9})]).splitlines()[-1], "| lines |  | 9 |")


class Prefixes(unittest.TestCase):
    HEADERS = {"softgpu": {"exec", "warp"}, "supervisor": {"quota", "session"}}

    def prefix(self, path, name):
        return measure.prefix_of(measure.Function(path, name, 1, 1, False, [], ""), self.HEADERS)

    def test_the_noun_is_the_stem_or_folder_and_stem(self):
        path = "server/supervisor/session/quota.c"
        self.assertEqual(self.prefix(path, "quota_open"), "own")
        self.assertEqual(self.prefix(path, "session_quota_open"), "own")
        self.assertEqual(self.prefix(path, "quota"), "own")
        self.assertEqual(self.prefix(path, "quotas_open"), "foreign")
        self.assertEqual(self.prefix("server/supervisor/session/owned/memory.c", "session_memory_free"), "own")

    def test_a_family_is_a_folder_or_a_header_that_begins_the_stem(self):
        self.assertEqual(self.prefix("server/supervisor/session/quota.c", "session_fail"), "family")
        self.assertEqual(self.prefix("server/softgpu/value/exec_round.c", "exec_shuffle"), "family")
        self.assertEqual(self.prefix("server/softgpu/value/exec_round.c", "warp_exit"), "foreign")
        self.assertEqual(self.prefix("server/softgpu/device/stream_pool.c", "stream_open"), "foreign")

    def test_names_that_are_not_ours_are_in_neither_count(self):
        for name in ("main", "gpushare_close", "cuInit", "ROUND"):
            self.assertIsNone(self.prefix("server/softgpu/device/stream.c", name))


class Objects(unittest.TestCase):
    SOURCES = {
        "client/a": "int a(void); int b(void); int a(void) { return b(); }",
        "client/b": "int c(void); int b(void); int b(void) { return c(); }",
        # A table holds a function's address: that is a need as well.
        "client/c": "int a(void); int c(void); extern int (*const C[])(void); int (*const C[])(void) = {a}; int c(void) { return 1; }",
        "client/d": "int a(void); int d(void); int d(void) { return a(); }",
        "client/tools/a": "int a(void); int a(void) { return 2; }",
        "server/worker/e": "int d(void); int d(void) { return 3; }",
    }

    def test_circles_and_symbols_that_two_objects_export(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        names = {}
        for path, text in self.SOURCES.items():
            source = os.path.join(folder, path + ".c")
            os.makedirs(os.path.dirname(source), exist_ok=True)
            with open(source, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            subprocess.run(["cc", "-c", source, "-o", source[:-2] + ".o"], check=True)
            names[source[:-2] + ".o"] = path
        symbols = {names[path]: sets for path, sets in measure.symbols_of(sorted(names)).items()}
        circles = measure.circles_of(symbols)
        self.assertEqual(circles["client"], [{"client/a", "client/b", "client/c"}])
        self.assertEqual(circles["tools"], [])
        self.assertEqual(measure.exported_twice(symbols),
                         {"a": ["client/a", "client/tools/a"], "d": ["client/d", "server/worker/e"]})

    def test_the_folder_decides_the_component(self):
        of = measure.component_of
        self.assertEqual([of("client/tools/x"), of("client/api/x"), of("server/worker/run/x"), of("generated/x")],
                         ["tools", "client", "worker", None])


if __name__ == "__main__":
    unittest.main()
