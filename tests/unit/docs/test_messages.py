#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The table in common/messages.h is what users read: each of its rows is used somewhere, and no call that makes a
sentence brings words of its own. The software GPU, which stands for a driver, has its sentences beside their causes."""
import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TABLES = sorted(glob.glob(os.path.join(ROOT, "common/messages*.h")))
# Functions that make a sentence for a user: how many arguments stand before the error number (log: no number).
NUMBERED = {"admin_peer_refuse": 1, "config_refuse": 2, "error_set": 1, "failure": 0, "mark_ended": 1,
            "ptx_fail": 2, "refuse": 2, "request_refuse": 1, "session_fail": 1, "session_refuse": 2}
FORMATTED = {"failure_prefix": 1, "log_debug": 0, "log_error": 0, "log_info": 0, "log_notice": 0, "log_warning": 0, "report_note": 3,
             "send_warning": 1, "session_fail_logged": 3}
CALL = re.compile(r"\b(%s)\(" % "|".join([*NUMBERED, *FORMATTED]))
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


# What may be one: a number stands behind such a word ("clients: %u"), since the sentence would be wrong for one of them.
COUNTED = ("accounts clients connections copies cubins descriptors devices entries faults kernels launches modules objects operands others "
           "parameters records requests streams users workers").split()
PLURAL = re.compile(r"%%(?:l|ll|z)?u (?:more |other |such )?(%s)\b" % "|".join(COUNTED))
# Rows whose number is a bound above one.
NEVER_ONE = {"admin_user_connections_max", "config_list_max", "log_accounts_left_out", "modules_max"}


def plurals(text):
    return PLURAL.findall(text)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources():
    """Path and text of each source that is built, but for the table."""
    found = {}
    for folder in ("client", "common", "server"):
        for ending in ("c", "h", "inc"):
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*." + ending), recursive=True):
                if path not in TABLES:
                    found[os.path.relpath(path, ROOT)] = text_of(path)
    return found


def arguments(text, at):
    """The arguments of the call whose parenthesis stands before text[at]."""
    found, depth = [""], 1
    while True:
        string = STRING.match(text, at)
        piece = string.group() if string else text[at]
        at += len(piece)
        depth += (piece in ("(", "{", "[")) - (piece in (")", "}", "]"))
        if not depth:
            return [" ".join(argument.split()) for argument in found]
        if piece == "," and depth == 1:
            found.append("")
        else:
            found[-1] += piece


def format_of(name, given):
    """The argument that is the format; of MESSAGE(), which is number and format, that."""
    at = FORMATTED.get(name, NUMBERED.get(name))
    if name in NUMBERED and not given[at].startswith("MESSAGE("):
        at += 1
    return given[at]


def wordy_calls(text):
    """The calls whose format has words. "%s" alone passes on a sentence that was made elsewhere."""
    text = re.sub(r"/\*.*?\*/|^ *# *define \w+\([^)]*\)", "", text, flags=re.S | re.M)
    calls = [(call.group(1), arguments(text, call.end())) for call in CALL.finditer(text)]
    return [name for name, given in calls if any(string != '"%s"' for string in STRING.findall(format_of(name, given)))]


def quoted_arguments(text):
    """The rows whose call is given a text in quotes, bare or as a branch of ?:. Those in a call within are that call's."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = []
    for row in re.finditer(r"\bMESSAGE(?:_TEXT)?\((\w+)\)\s*,", text):
        for argument in arguments(text, row.end()):
            outer = argument
            while re.search(r"\w\([^()]*\)", STRING.sub('""', outer)):
                outer = re.sub(r"\w+\([^()]*\)", "x", STRING.sub(lambda s: '"w"' if len(s[0]) > 2 else s[0], outer))
            if any(len(string) > 2 for string in STRING.findall(outer)):
                found.append(row.group(1))
    return found


def formats():
    """{name of a row: its format}."""
    return {row.split(",")[0]: "".join(string[1:-1] for string in STRING.findall(row))
            for path in TABLES for row in re.split(r"^ {4}X\(", text_of(path), flags=re.M)[1:]}


def logged(text):
    """The rows that a line of the log is made of."""
    return re.findall(r"\blog_(?:error|warning|notice|info|debug)\(\s*MESSAGE_TEXT\((\w+)\)", text)


class Messages(unittest.TestCase):
    def test_no_line_of_the_log_has_the_format_of_another_row(self):
        # The journal's field EVENT is found by the format (common/log_journal.c).
        rows, found = formats(), {name for text in sources().values() for name in logged(text)}
        self.assertGreater(len(found), 100)
        alike = {name: [other for other in rows if other != name and rows[other] == rows[name]] for name in found}
        self.assertEqual({name: others for name, others in alike.items() if others}, {})

    def test_no_line_of_a_service_passes_on_bare_words(self):
        # Such a line has no field EVENT. A sentence that was made elsewhere goes by log_sentence, with its error.
        services = {path: text for path, text in sources().items() if path.startswith(("server/", "common/", "client/tools/exporter/"))}
        self.assertGreater(len(services), 300)
        bare = [(path, name) for path, text in services.items() for name in re.findall(r"\b(log_(?:error|warning|notice|info|debug))\(\s*\"", text)]
        self.assertEqual(bare, [])

    def test_each_row_is_used(self):
        rows = [name for path in TABLES for name in re.findall(r"^ {4}X\((\w+), [A-Z_]+,", text_of(path), re.M)]
        self.assertGreater(len(rows), 500)
        used = {name for text in sources().values() for name in re.findall(r"\bMESSAGE(?:_TEXT)?\((\w+)\)", text)}
        self.assertEqual([name for name in rows if name not in used], [])

    def test_no_call_has_words_of_its_own(self):
        calls = 0
        for path, text in sources().items():
            if not path.startswith("server/softgpu/"):
                calls += len(CALL.findall(text))
                self.assertEqual(wordy_calls(text), [], path)
        self.assertGreater(calls, 500)

    def test_no_argument_is_a_text_in_quotes(self):
        for path, text in sources().items():
            self.assertEqual(quoted_arguments(text), [], path)

    def test_no_number_stands_before_a_plural(self):
        found = {}
        for path in TABLES:
            for row in re.split(r"^ {4}X\(", text_of(path), flags=re.M)[1:]:
                found[row.split(",")[0]] = plurals("".join(string[1:-1] for string in STRING.findall(row)))
        self.assertGreater(len(found), 500)
        self.assertEqual({name: words for name, words in found.items() if words and name not in NEVER_ONE}, {})

    def test_plurals_are_found(self):
        self.assertEqual(plurals("%u clients of %llu are %zu more records; client %u has %u"), ["clients", "records"])
        self.assertEqual(plurals("clients: %u, at most %d keys; client %u leaves %u multiprocessors"), [])

    def test_texts_in_quotes_are_found(self):
        self.assertEqual(quoted_arguments('return failure(MESSAGE(a), n, bad ? "one" : "two");'), ["a"])
        self.assertEqual(quoted_arguments('log_info(MESSAGE_TEXT(b), "the (first", n);'), ["b"])
        self.assertEqual(quoted_arguments('f(MESSAGE(c), g(h(1), "key"), p ? p : ""); u = "other";'), [])

    def test_words_are_found_wherever_the_format_stands(self):
        self.assertEqual(len(wordy_calls('return error_set(why, f(A, "x"), "no %s, (none", name);')), 1)
        self.assertEqual(len(wordy_calls('log_error("nothing");')), 1)
        self.assertEqual(len(wordy_calls('failure(E, bad ? "one" : "%s");')), 1)
        self.assertEqual(wordy_calls('error_set(why, MESSAGE(name), "noun"); log_info("%s", text); /* failure(E, "x") */'), [])


if __name__ == "__main__":
    unittest.main()
