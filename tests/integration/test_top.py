#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl top on a pseudo terminal, whose screen a small model keeps, and as text; the screen without a command; the
clients in chosen columns; the completion of bash."""
import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import sys
import termios
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import json_check  # noqa: E402
from private_server import GPUSHARECTL, run  # noqa: E402
from server_case import CHANGES, WithServer  # noqa: E402
from terminal import Top, rows_of  # noqa: E402

UP, DOWN, ESCAPE = "\x1b[A", "\x1b[B", "\x1b"


class Live(WithServer):
    def top(self, *words, **how):
        top = Top(self.server, *words, **how)
        self.addCleanup(top.close)
        return top

    def names(self, top):
        return [words[0] for _, _, words in rows_of(top.screen.lines())]

    def test_a_screen_of_24_lines_and_after_a_resize(self):
        with self.attached(name="a client with a long name", threads_request=2500, threads_limit=5000, memory_limit=64 << 20) as (client, told):
            client.ask("memory_alloc", count=5 << 20)
            used = client.ask("memory_query")["used"] >> 20
            top = self.top("-d", "0.1")
            lines = top.until(lambda lines: any("a client wi+" in line for line in lines))
            self.assertTrue(top.screen.other and not top.screen.cursor)
            self.assertTrue(lines[0].startswith("gpushare "), lines)
            self.assertRegex(lines[1], r"^  0 \S.* concurrent +\[\|* *\] (\d+%|-) +\[\|* *\] [\d.]+ [KMG]iB/\d+ GiB$")
            self.assertRegex(lines[-1], "^q quit  s sort .* h help$")
            (selected, number, words), = rows_of(lines)
            self.assertTrue(selected)
            self.assertEqual(number, told["client"])
            self.assertIn("25-50%", words)
            self.assertIn(f"{used} MiB 64 MiB attached", " ".join(words))
            top.resize(12, 120)
            lines = top.until(lambda lines: any("a client with a long name" in line for line in lines))
            self.assertEqual(len(lines), 12)
            self.assertRegex(lines[-1], "h help$")
            top.resize(24, 40)
            lines = top.until(lambda lines: any("a client wi+" in line for line in lines))
            self.assertLessEqual(max(map(len, lines)), 40)
            top.resize(2, 80)
            top.until(lambda lines: "h help" in lines[1] and lines[0].startswith("gpushare "))
            top.resize(1, 20)
            top.until(lambda lines: lines == ["q quit  s sort  r re"])
            top.press("q")
            self.assertEqual(top.ended(), 0)
            self.assertFalse(top.screen.other, "the screen is given back")
            self.assertTrue(top.screen.cursor)
            self.assertEqual(termios.tcgetattr(top.child), top.usual)

    def test_looks_differ_only_where_colour_is_wanted(self):
        with self.attached(name="one"):
            plain, usual = self.top(NO_COLOR="1"), self.top()
            for top in (plain, usual):
                top.until(lambda lines: any(line.startswith(">") for line in lines))
                top.press("q")
                self.assertEqual(top.ended(), 0)
            self.assertEqual(plain.screen.looks, {"0"}, "at the end alone")
            self.assertEqual(usual.screen.looks, {"0", "1", "7"})

    def test_keys_sort_filter_and_choose(self):
        with self.attached(name="beta") as (client, _), self.attached(name="alpha"), self.attached(name="gamma"):
            client.ask("memory_alloc", count=5 << 20)
            top = self.top("-d", "0.2")
            top.until(lambda lines: "sorted by got" in "\n".join(lines) and len(rows_of(lines)) == 3)
            top.press("s")
            top.until(lambda lines: "sorted by memory" in "\n".join(lines) and rows_of(lines)[0][2][0] == "beta")
            top.press("ss")
            top.until(lambda lines: "sorted by name" in "\n".join(lines))
            self.assertEqual(self.names(top), ["alpha", "beta", "gamma"])
            top.press("r")
            top.until(lambda lines: "reversed" in "\n".join(lines))
            self.assertEqual(self.names(top), ["gamma", "beta", "alpha"])
            top.press("r")
            top.until(lambda lines: "reversed" not in "\n".join(lines))
            top.press(UP + UP + UP)
            top.until(lambda lines: rows_of(lines)[0][0])
            top.press(DOWN)
            top.until(lambda lines: rows_of(lines)[1][0])
            top.press("/AMM")
            top.until(lambda lines: lines[-1].startswith("filter: AMM_") and len(rows_of(lines)) == 1)
            self.assertEqual(self.names(top), ["gamma"])
            top.press("X\x7f\r")
            top.until(lambda lines: lines[-1].startswith("q quit"))
            self.assertIn("only: AMM", "\n".join(top.screen.lines()))
            top.press("/zzz")
            top.until(lambda lines: " no such clients" in lines)
            top.press(ESCAPE)
            top.until(lambda lines: lines[-1].startswith("q quit"))
            self.assertEqual(self.names(top), ["gamma"], "Esc takes the change back")
            top.press("h")
            top.until(lambda lines: any("end the connection of the chosen client" in line for line in lines))
            top.press("h\x03")
            self.assertEqual(top.ended(), 0)

    def test_a_pause_stands_still(self):
        with self.attached(name="first"):
            top = self.top("-d", "0.1")
            top.until(lambda lines: len(rows_of(lines)) == 1)
            top.press("p")
            top.until(lambda lines: "PAUSED" in lines[0])
            with self.attached(name="second"):
                # The next redrawing would show it: ten looks would have passed.
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    top.read(0.05)
                self.assertEqual(self.names(top), ["first"])
                top.press("p")
                top.until(lambda lines: len(rows_of(lines)) == 2 and "PAUSED" not in lines[0])

    @CHANGES
    def test_kill_asks_first(self):
        with self.attached(name="victim") as (client, told), self.attached(name="other") as (other, _):
            top = self.top()
            top.until(lambda lines: len(rows_of(lines)) == 2)
            top.press("/victim\r")
            top.until(lambda lines: len(rows_of(lines)) == 1 and lines[-1].startswith("q quit"))
            top.press("k")
            top.until(lambda lines: f"end the connection of client {told['client']} 'victim' of " in lines[-1])
            top.press("n")
            top.until(lambda lines: lines[-1] == f"client {told['client']} goes on")
            self.assertEqual(client.ask("memory_query")["used"], 0, "it was not killed")
            top.press("k")
            top.until(lambda lines: "y: yes" in lines[-1])
            top.press("y")
            top.until(lambda lines: lines[-1].startswith(f"client {told['client']} 'victim' of ") and lines[-1].endswith("connection ended"))
            name, _, values = client.receive()
            self.assertEqual((name, values["error"]), ("ended", client.schema.errors["killed"]))
            top.until(lambda lines: " no such clients" in lines)
            top.press("k")
            top.until(lambda lines: lines[-1] == "there is no client to kill")
            self.assertEqual(other.ask("memory_query")["used"], 0)

    def test_more_clients_than_lines(self):
        with contextlib.ExitStack() as held:
            numbers = [held.enter_context(self.attached(name=f"n{i}"))[1]["client"] for i in range(12)]
            top = self.top(rows=10)
            top.until(rows_of)
            top.press("ss")
            top.until(lambda lines: "sorted by id" in "\n".join(lines) and rows_of(lines))
            first = rows_of(top.screen.lines())
            self.assertLess(len(first), 12)
            top.press(DOWN * 12)
            lines = top.until(lambda lines: rows_of(lines)[-1][:2] == (True, numbers[-1]))
            self.assertEqual(len(rows_of(lines)), len(first))
            top.press(UP * 12)
            top.until(lambda lines: rows_of(lines)[0][:2] == (True, numbers[0]))

    def test_signals_give_the_screen_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            top = self.top()
            top.until(lambda lines: lines[0].startswith("gpushare "))
            top.process.send_signal(number)
            self.assertEqual(top.ended(), 0)
            self.assertFalse(top.screen.other)
            self.assertEqual(termios.tcgetattr(top.child), top.usual)

    def test_it_ends_after_its_looks(self):
        top = self.top("-n", "2", "-d", "0.1")
        self.assertEqual(top.ended(), 0)
        self.assertFalse(top.screen.other)


class Text(WithServer):
    def test_a_busy_client_got_what_the_counters_say(self):
        with self.server.work("busy", 2000, 60) as client, self.attached(name="idle"):
            client.go()
            looks = self.ctl("top", "-b", "-n", "3", "-d", "0.5").stdout
            self.assertNotIn("\x1b", looks)
            parts = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  gpushare )", looks)[1:]
            self.assertEqual(len(parts), 3, looks)
            for part in parts:
                got = {line.split()[1]: line for line in part.splitlines() if re.match(r" *\d+  (busy|idle) ", line)}
                self.assertRegex(got["idle"], r"  0%  ")
                self.assertGreater(int(re.search(r"  (\d+)%  +[\d.]+ \S+  +[\d.]+ \S+  attached$", got["busy"])[1]), 0, part)
            client.process.kill()

    def test_a_pipe_gets_one_look(self):
        with self.attached(name="one"):
            self.assertEqual(self.ctl("top", "-d", "0.1").stdout.count("gpushare 0."), 1)
            lines = self.ctl("--json", "top", "-n", "2", "-d", "0.1").stdout.splitlines()
            self.assertEqual(len(lines), 2)
            for line in lines:
                self.whole(json.loads(line))

    def whole(self, answer):
        json_check.check("admin-overview", answer)
        json_check.check("admin-status", answer["status"])
        json_check.check("admin-clients", answer["clients"])

    def test_a_terminal_that_is_a_printer(self):
        top = Top(self.server, "-d", "0.1", TERM="dumb")
        self.addCleanup(top.close)
        self.assertEqual(top.ended(), 0)
        self.assertFalse(top.screen.looks or top.screen.other)
        self.assertIn("gpushare ", "\n".join(top.screen.lines()))

    def test_wrong_usage_and_no_server(self):
        for words in (("top", "-n", "0"), ("top", "-n", "x"), ("top", "-d", "0"), ("top", "-d", "1x"), ("top", "more"), ("status", "-b"),
                      ("ping", "--all"), ("clients", "--wait"), ("-b",), ("kill", "--all", "7"), ("kill", "--all", "--user", "0"),
                      ("clients", "-o", "nonsense"), ("clients", "-o", "name,"), ("clients", "-o", "csv", "--wide"),
                      ("--json", "clients", "-o", "name"), ("completion",), ("completion", "zsh")):
            self.assertEqual(self.ctl(*words).returncode, 2, words)
        for words in ((), ("top",), ("top", "-b"), ("clients", "-o", "csv"), ("drain", "--wait")):
            done = run(GPUSHARECTL, "--socket", "/nonexistent/admin.sock", *words)
            self.assertEqual((done.returncode, done.stdout), (3, ""), words)
            self.assertIn("/nonexistent/admin.sock", done.stderr)

    def test_the_screen_without_a_command(self):
        with self.attached(name="a client with a long name", threads_request=2500, threads_limit=5000, memory_limit=64 << 20) as (_, told):
            text = self.ctl().stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
            self.assertRegex(text, r"(?m)^GPU  NAME .* UTIL$")
            self.assertRegex(text, rf"(?m)^ *{told['client']}  a client wi\+  \S+ +0 +25-50% +25-50% +\d+% +0 B  64 MiB  attached$")
            answer = json.loads(self.ctl("--json").stdout)
            self.whole(answer)
            self.assertEqual([row["client"] for row in answer["clients"]["clients"]], [told["client"]])

    def test_the_share_is_of_time_where_the_mode_enforces_it(self):
        with self.attached(name="shares", time_request=1000, time_limit=3000, threads_limit=5000):
            self.assertIn("  50%  ", self.ctl().stdout)
            self.ctl("set", "gpu", "0", "mode=fair")
            try:
                self.assertIn("  10-30%  ", self.ctl().stdout)
            finally:
                self.ctl("set", "gpu", "0", "mode=configured")

    def test_columns_of_choice(self):
        with self.attached(name='a "quoted", name', memory_limit=64 << 20) as (client, told):
            client.ask("memory_alloc", count=5 << 20)
            used = client.ask("memory_query")["used"]
            table = self.ctl("clients", "-o", "client,name,memory_bytes").stdout.splitlines()
            self.assertEqual(table[0].split(), ["client", "name", "memory_bytes"])
            self.assertRegex(table[1], rf'^ *{told["client"]}  a "quoted", name +[\d.]+ MiB$')
            row, = csv.DictReader(io.StringIO(self.ctl("clients", "-o", "csv").stdout))
            self.assertEqual((row["client"], row["name"], row["pid"]), (str(told["client"]), 'a "quoted", name', str(os.getpid())))
            self.assertEqual((row["memory_bytes"], row["memory_limit_bytes"], row["time_asked_percent"]), (str(used), str(64 << 20), ""))
            with open(os.path.join(json_check.ROOT, "docs/gpusharectl.md"), encoding="utf-8") as page:
                part = page.read().split("The columns are ")[1].split("\n\n")[0]
            self.assertEqual(list(row), [word for word in re.findall(r"`(\w+)`", part) if word != "UTIL"])
            self.assertEqual(json.loads(self.ctl("clients", "-o", "json").stdout)["clients"][0]["client"], told["client"])
            self.assertEqual(self.ctl("clients", "-o", "wide").stdout.splitlines()[0], self.ctl("clients", "--wide").stdout.splitlines()[0])
        self.assertEqual(len(self.ctl("clients", "-o", "csv").stdout.splitlines()), 1)

    @CHANGES
    def test_kill_of_all_and_of_a_user(self):
        with self.attached(name="one") as (one, _), self.attached(name="two") as (two, _):
            answer = self.json("kill", "--all")
            self.assertEqual((answer["client"], answer["uid"], len(answer["clients"])), (None, None, 2))
            for client in (one, two):
                self.assertEqual(client.receive()[0], "ended")
        self.assertEqual(self.json("kill", "--all")["clients"], [])
        self.assertEqual(self.ctl("kill", "--all").stdout, "there was no client to end\n")
        self.json("kill", "--all", "--force", schema="admin-error", status=1)
        with self.attached(name="three") as (three, _):
            self.assertEqual(self.json("kill", "--user", str(os.getuid()))["uid"], os.getuid())
            self.assertEqual(three.receive()[0], "ended")


class Completion(unittest.TestCase):
    """The script is made from the table of commands; bash itself says what it completes."""

    def complete(self, *words):
        if not shutil.which("bash"):
            self.skipTest("there is no bash")
        script = run(GPUSHARECTL, "completion", "bash").stdout
        done = run("bash", "-c", script + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpusharectl; printf "%s\\n" "${COMPREPLY[@]}"',
                   "bash", "gpusharectl", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return set(done.stdout.split())

    def test_every_command_and_option_of_the_help(self):
        text = run(GPUSHARECTL, "--help").stdout
        part = re.search(r"^commands:\n(.*?)\n\n", text, re.M | re.S)[1]
        rows = re.findall(r"^  ([a-z-]+)(?: (.*))?$", part, re.M)
        self.assertGreater(len(rows), 10)
        common = {"--socket", "--json", "--help", "--version"}
        self.assertEqual(self.complete(""), {name for name, _ in rows} | common)
        for name, _ in rows:
            own = run(GPUSHARECTL, "help", name).stdout
            named = set(re.findall(r"(?<![\w-])(?:--[a-z-]+|-[a-z](?=[ \]]))", own.split("\n\n")[1])) - common - {"--admin-uid"}
            shown = {word for word in self.complete(name, "") if word.startswith("-")}
            self.assertEqual(shown, named | common, name)
            for option in shown:
                self.assertEqual(self.complete(name, option), {word for word in shown if word.startswith(option)})

    def test_words(self):
        self.assertEqual(self.complete("dr"), {"drain"})
        self.assertEqual(self.complete("--socket", "/x", "--json", "dr"), {"drain"})
        self.assertIn("gpu", self.complete("get", ""))
        self.assertEqual(self.complete("completion", "b"), {"bash"})
        self.assertIn("drain", self.complete("help", ""))
        self.assertEqual(self.complete("trace", "--seconds", ""), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
