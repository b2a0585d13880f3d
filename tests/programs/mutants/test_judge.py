#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The judge of mutants, judged: a small tree of its own, with mutants of every kind."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "run")
ONLY = os.path.join(os.environ["BUILD"], "tests/programs/mutants/only.so")

FILES = {
    "Makefile": """build/tests/unit/room/test_room: room.c tests/unit/room/test_room.c
\tmkdir -p $(@D)
\t$(CC) -w -I. -o $@ $^ -lcmocka
""",
    "room.c": """int room(int used, int limit)
{
    return used < limit ? limit - used : 0;
}

int unlocked(int hour)
{
    int open = 9;
    return hour >= open;
}

void loop(int forever)
{
    while (forever)
        continue;
}
""",
    "tests/unit/room/test_room.c": """#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
int room(int used, int limit);
int unlocked(int hour);
void loop(int forever);
static void what_is_left(void **state)
{
    assert_int_equal(room(3, 5), 2);
}
static void never_below_nothing(void **state)
{
    assert_int_equal(room(7, 5), 0);
}
static void at_nine(void **state)
{
    if (!unlocked(9))
        abort();
}
static void comes_back(void **state)
{
    loop(0);
}
static void fails_anyway(void **state)
{
    assert_int_equal(1, 2);
}
static void is_skipped(void **state)
{
    skip();
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left), cmocka_unit_test(never_below_nothing), cmocka_unit_test(at_nine),
        cmocka_unit_test(comes_back),   cmocka_unit_test(fails_anyway),        cmocka_unit_test(is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
""",
    "tests/unit/room/test_text.sh": """#!/bin/sh
grep -q 'limit - used' "$(dirname "$0")/../../../room.c"
""",
}

TEST = "tests/unit/room/test_room.c"
LEFT = "    return used < limit ? limit - used : 0;"


def block(name, old, new, case, test=TEST, file="room.c"):
    lines = [f"mutant: {name}", f"file: {file}", f"test: {test} {case}".rstrip()]
    return "\n".join(lines + [f"-{line}" for line in old] + [f"+{line}" for line in new]) + "\n"


OFF_BY_ONE = block("off by one", [LEFT], [LEFT.replace("limit - used", "limit - used + 1")], "what_is_left")
HARMLESS = block("harmless", [LEFT], [LEFT.replace("used < limit", "limit > used")], "what_is_left")


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.source = os.path.join(self.folder.name, "source")
        for name, text in FILES.items():
            path = os.path.join(self.source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def run_table(self, *blocks, more=()):
        table = os.path.join(self.folder.name, "small.mutants")
        with open(table, "w", encoding="utf-8") as file:
            file.write("# a comment\n\n" + "\n".join(blocks))
        done = subprocess.run([RUN, "--source", self.source, "--work", os.path.join(self.folder.name, "work"),
                               "--only", ONLY, *more, table], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        return done.returncode, done.stdout.decode()

    def expect(self, blocks, code, *words, more=()):
        status, text = self.run_table(*blocks, more=more)
        for word in words:
            self.assertRegex(text, word)
        self.assertEqual(status, code, text)
        return text

    def test_a_fault_that_the_named_case_notices_is_killed(self):
        self.expect([OFF_BY_ONE], 0, r"killed +off by one", "1 mutants: 1 killed, 0 survived, 0 broken")

    def test_a_harmless_change_is_reported_as_survived(self):
        self.expect([OFF_BY_ONE, HARMLESS], 1, r"SURVIVED harmless", "2 mutants: 1 killed, 1 survived, 0 broken")

    def test_another_case_that_notices_does_not_count(self):
        self.expect([block("negative", [LEFT], ["    return limit - used;"], "what_is_left")], 1, "SURVIVED negative")
        self.expect([block("negative", [LEFT], ["    return limit - used;"], "never_below_nothing")], 0, "killed")

    def test_text_that_is_gone_is_told_by_name(self):
        self.expect([OFF_BY_ONE, block("stale", ["    return used;"], ["    return 1;"], "what_is_left")], 1,
                    r"BROKEN +stale .*no longer in room.c", "2 mutants: 1 killed, 0 survived, 1 broken")

    def test_text_that_is_there_twice_is_refused(self):
        self.expect([block("which", ["}"], ["} "], "what_is_left")], 1, r"BROKEN +which .*3 times")

    def test_a_part_of_a_line_will_do(self):
        self.expect([block("part", ["limit - used"], ["limit"], "what_is_left")], 0, "killed +part")

    def change(self, name, *pairs):
        """The source with other words in it, as someone may have changed it."""
        text = FILES["room.c"]
        for old, new in pairs:
            self.assertIn(old, text)
            text = text.replace(old, new)
        with open(os.path.join(self.source, name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_text_is_found_after_a_rename_and_with_other_line_breaks(self):
        self.change("room.c", ("used", "taken"))
        self.expect([OFF_BY_ONE], 0, r"killed +off by one .*used is taken")
        self.change("room.c", ("limit ? limit", "limit /* so */\n        ? limit"))
        self.expect([OFF_BY_ONE], 0, r"killed +off by one")

    def test_text_with_hardly_a_name_left_is_another_text(self):
        self.change("room.c", ("used", "taken"), ("limit", "most"))
        self.expect([OFF_BY_ONE], 1, r"BROKEN +off by one .*nor renamed anywhere")

    def test_a_name_that_is_two_others_now_is_no_rename(self):
        self.change("room.c", ("limit - used", "limit - taken"))
        self.expect([OFF_BY_ONE], 1, r"BROKEN +off by one .*nor renamed anywhere")

    def test_text_and_case_are_found_in_other_files(self):
        for old, new in (("room.c", "space.c"), (TEST, "tests/unit/room/test_space.c")):
            os.rename(os.path.join(self.source, old), os.path.join(self.source, new))
        with open(os.path.join(self.source, "Makefile"), "w", encoding="utf-8") as file:
            file.write(FILES["Makefile"].replace("room.c", "space.c").replace("test_room", "test_space"))
        self.expect([OFF_BY_ONE], 0, r"killed +off by one .*now in space.c")

    def test_places_alone_are_told_without_a_build(self):
        self.expect([OFF_BY_ONE, block("stale", ["    return used;"], ["    return 1;"], "what_is_left")], 1,
                    r"BROKEN +stale", "2 mutants: 1 found, 1 broken", more=["--places"])
        self.expect([OFF_BY_ONE], 0, "1 mutants: 1 found, 0 broken", more=["--places"])

    def test_lines_that_stay_tell_equal_ones_apart(self):
        text = "mutant: late\nfile: room.c\ntest: " + TEST + " at_nine\n     int open = 9;\n" \
               "-    return hour >= open;\n+    return hour > open;\n"
        self.expect([text], 0, "killed +late")

    def test_a_case_that_fails_or_is_skipped_anyway_proves_nothing(self):
        change = [LEFT.replace("0;", "1;")]
        self.expect([block("a", [LEFT], change, "fails_anyway")], 1, r"BROKEN +a .*fails without it, too")
        self.expect([block("b", [LEFT], change, "is_skipped")], 1, r"BROKEN +b .*was skipped")
        self.expect([block("c", [LEFT], change, "no_such_case")], 1, r"BROKEN +c .*no case no_such_case")
        self.expect([block("d", [LEFT], change, "", "tests/unit/room/test_rooms.sh")], 1, r"BROKEN +d .*there is no")

    def test_a_mutant_that_does_not_build_proves_nothing(self):
        self.expect([block("typing error", [LEFT], ["    return ;;) 0;"], "what_is_left")], 1,
                    r"BROKEN +typing error .*does not build")

    def test_a_case_that_hangs_or_dies_has_noticed(self):
        self.expect([block("hangs", ["    while (forever)"], ["    while (forever + 1)"], "comes_back")], 0,
                    "killed +hangs", more=["--limit", "1"])
        self.expect([block("dies", ["    int open = 9;"], ["    int open = 10;"], "at_nine")], 0, "killed +dies")

    def test_scripts_count_as_a_whole(self):
        test = "tests/unit/room/test_text.sh"
        self.expect([block("text", [LEFT], [LEFT.replace("limit - used", "limit")], "", test)], 0, "killed +text")
        self.expect([block("text", [LEFT], [LEFT.replace("0;", "1;")], "", test)], 1, "SURVIVED text")

    def test_the_sources_are_left_alone_and_a_second_run_says_the_same(self):
        for _ in range(2):
            self.expect([OFF_BY_ONE, HARMLESS], 1, "1 killed, 1 survived")
            with open(os.path.join(self.source, "room.c"), encoding="utf-8") as file:
                self.assertEqual(file.read(), FILES["room.c"])

    def test_a_change_of_the_sources_is_seen(self):
        self.expect([OFF_BY_ONE], 0, "killed")
        path = os.path.join(self.source, TEST)
        with open(path, "w", encoding="utf-8") as file:
            file.write(FILES[TEST].replace("room(3, 5), 2", "room(7, 5), 0"))
        self.expect([OFF_BY_ONE], 1, "SURVIVED off by one")

    def test_nothing_to_judge_is_no_success(self):
        self.expect([], 1, "0 mutants")
        self.expect([OFF_BY_ONE], 1, "0 mutants", more=["--match", "no such word"])

    def test_malformed_tables_name_their_line(self):
        for text, word in (("mutant: a\nfile: room.c\n-x\n+y\n", r"small.mutants:3: a mutant needs"),
                           (OFF_BY_ONE + "oops\n", r"small.mutants:3: not a line of a mutant: oops"),
                           (block("same", [LEFT], [LEFT], "what_is_left"), "lines that change")):
            self.expect([text], 1, word)
        self.expect([OFF_BY_ONE, OFF_BY_ONE], 1, "named twice: off by one")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
