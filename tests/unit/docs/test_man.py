#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The manual pages say what the programs have: each option, command, variable, key, exit status, function and error, and none
that is not there. tests/integration/test_interface.py holds the records of tests/interface/ to the programs. The pages of
section 3 are made from client/gpushare.h, as `make` does it."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_server import ENV  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = {"gpushared": "gpushared.8", "gpusharectl": "gpusharectl.1", "gpushare": "gpushare.1", "gpushare-exporter": "gpushare-exporter.8",
            "gpushare-worker": "gpushare-worker.8", "softgpu": "softgpu.1"}
# Variables by which programs of gpushare speak with each other. Nobody else sets them.
INTERNAL = {"GPUSHARE_AUDIT_DRIVER"}
CLIENTS = ("gpushare", "libgpushare-client", "gpushared", "gpusharectl")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def record(subject):
    """{name: value} of a record of the interface."""
    rows = [line for line in text_of(f"tests/interface/{subject}.txt").splitlines() if line and not line.startswith("#")]
    return dict(row.rsplit(" = ", 1) for row in rows)


def recorded(subject, program):
    """The names in a record that belong to a program."""
    return {name.split(" ", 1)[1]: value for name, value in record(subject).items() if name.startswith(program + " ")}


PAGES = {os.path.basename(path): text_of(path) for path in sorted(glob.glob(os.path.join(ROOT, "docs/man/*.[0-9]")))}


def section(page, heading, kind="Sh"):
    """The text of a section or of a part of one."""
    ends = r"(?=^\.Sh )" if kind == "Sh" else r"(?=^\.S[hs] )"
    return re.split(ends, page.split(f"\n.{kind} {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def items(text, macro):
    """The names of a list's items that have this macro: `.It Ev A , B`."""
    found = []
    for line in re.findall(rf"^\.It {macro} (.*)", text, re.M):
        found += re.split(rf" , (?:{macro} )?", re.split(r" (?:Ar|Op|Oo|Fl|Cm|Ic) ", line + " Ar ", maxsplit=1)[0] if macro != "Fl" else line)
    return [name.split(" ")[0] for name in found]


def lint(path):
    return subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True, check=False).stdout

# By a test whose scene is no invocation: tests/integration/test_survive.py.
SEEN_ELSEWHERE = {"gpushared": {"3"}}


class Pages(unittest.TestCase):
    def test_mandoc_has_no_warning(self):
        self.assertGreater(len(PAGES), 5)
        for name in PAGES:
            self.assertEqual(lint(os.path.join(ROOT, "docs/man", name)), "")

    def test_mandoc_finds_a_planted_mistake(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(PAGES["softgpu.1"].replace(".Os\n", "").replace(".El\n", "", 1))
            file.flush()
            self.assertIn("WARNING", lint(file.name))

    def test_references_lead_to_pages(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
            subprocess.run([sys.executable, os.path.join(ROOT, "client/generate_man.py"), folder], check=True)
            made = {name: text_of(os.path.join(folder, name)) for name in os.listdir(folder)}
        there = set(PAGES) | set(made)
        for name, text in {**PAGES, **made}.items():
            for page, number in re.findall(r"^\.(?:It )?Xr (\S+) (\d)", text, re.M):
                self.assertIn(f"{page}.{number}", there, name)
            for target in re.findall(r"^\.so man3/(\S+)$", text):
                self.assertIn(target, there, name)


class Programs(unittest.TestCase):
    def test_options_are_those_of_the_program(self):
        for program, page in PROGRAMS.items():
            options = {name for name, value in recorded("flags", program).items() if value != "command"}
            if program == "softgpu":  # it has no row of its own: what its help lists
                options = set(re.findall(r"(?<!\S)(--?[a-z]+)(?=[ ,])", self.help("softgpu", "--help").split("\noptions:", 1)[1])) | {"-V"}
            told = {"-" + name for name in re.findall(r"\bFl (-?\w[\w-]*)", PAGES[page])}
            if program == "gpushare":
                told = {"-" + name for name in re.findall(r"\bFl (-?\w[\w-]*)", section(PAGES[page], "OPTIONS"))}
            others = {"--save", "--driver", "--admin-uid", "--worker"} - options  # of other programs, which the page names
            self.assertEqual(sorted(options - told), [], f"{page} lacks options")
            self.assertEqual(sorted(told - options - others), [], f"{page} has options that {program} does not have")

    def help(self, *command):
        return subprocess.run([os.path.join(BUILD, "bin", command[0]), *command[1:]], env=ENV, capture_output=True, text=True, check=True).stdout

    def test_options_of_run_are_those_of_run(self):
        listed = set(re.findall(r"^  --([\w-]+)", self.help("gpushare", "run", "--help"), re.M)) - {"help"}
        told = set(name.lstrip("-") for name in items(section(PAGES["gpushare.1"], "OPTIONS OF RUN"), "Fl")) - {"help", "h"}
        self.assertGreater(len(listed), 10)
        self.assertEqual(told, listed)

    def test_each_option_of_run_has_its_variable(self):
        lines = self.help("gpushare", "run", "--help")
        listed = dict(re.findall(r"^  --([\w-]+)(?:(?!\n  --).)*?\((GPUSHARE_\w+)\)", lines, re.M | re.S))
        told = dict(re.findall(r"^\.It Fl -([\w-]+).*\n(?:(?!\.It).*\n)*?\.Pq Ev (\w+)", section(PAGES["gpushare.1"], "OPTIONS OF RUN"), re.M))
        self.assertGreater(len(listed), 10)
        self.assertEqual(told, listed)

    def test_commands_are_those_of_the_program(self):
        for program, heading in (("gpusharectl", "COMMANDS"), ("gpushare", "DESCRIPTION")):
            commands = {name for name, value in recorded("flags", program).items() if value == "command"}
            self.assertEqual(set(items(section(PAGES[PROGRAMS[program]], heading), "Ic")), commands, program)

    def test_each_command_of_gpusharectl_has_its_options(self):
        """In the part of the page that is about the command, as in that of --help."""
        flag = r"(?<![\w-])--?[a-z][\w-]*"
        text = self.help("gpusharectl", "--help").split("\ncommands:\n", 1)[1].split("\n\n", 1)[0]
        listed = {name: set(re.findall(flag, part)) - {"--admin-uid"}
                  for name, part in re.findall(r"^  ([a-z][a-z-]*)\b(.*\n?(?:^ {3}.*\n?)*)", text, re.M)}
        parts = re.split(r"^\.It Ic ", section(PAGES["gpusharectl.1"], "COMMANDS"), flags=re.M)[1:]
        told = {part.split()[0]: {"-" + name for name in re.findall(r"\bFl (-?\w[\w-]*)", part)} for part in parts}
        self.assertGreater(sum(map(len, listed.values())), 12)
        self.assertEqual(told, listed)

    def test_exit_statuses_are_those_that_were_seen(self):
        for program, page in PROGRAMS.items():
            seen = {value for name, value in record("exits").items() if program in [word for word in name.split() if "=" not in word][:1]}
            if seen:
                seen |= SEEN_ELSEWHERE.get(program, set())
                told = re.findall(r"^\.It (\d+)$", section(PAGES[page], "EXIT STATUS"), re.M)
                self.assertEqual(told, sorted(seen, key=int), page)

    def test_values_of_set_are_on_the_page(self):
        """The names that --help lists for set, and those of the schema of a GPU's entry."""
        text = section(PAGES["gpusharectl.1"], "COMMANDS")
        told = set(re.findall(r"\bCm ([\w.]+)", text))
        listed = {name.split(".limit")[0] for name in re.findall(r"(?<!\S)([a-z_.]+)=", self.help("gpusharectl", "help", "set"))}
        listed = {re.sub(r"\.(request|limit)$", "", name) for name in listed}
        self.assertGreater(len(listed), 15)
        self.assertEqual(sorted(listed - told), [])


class Variables(unittest.TestCase):
    def test_variables_of_clients_and_server(self):
        read = {name for program in CLIENTS for name in recorded("variables", program) if re.match("GPUSHARE_|CUDA_", name)} - INTERNAL
        told = {name for name in items(PAGES["gpushare.7"], "Ev") if re.match("GPUSHARE_|CUDA_", name)}
        self.assertGreater(len(told), 25)
        self.assertEqual(told, read)

    def test_variables_of_the_software_gpu(self):
        told = items(PAGES["softgpu.1"], "Ev")
        self.assertEqual(sorted(told), sorted(recorded("variables", "softgpu")))

    def test_what_else_a_program_reads_is_on_a_page(self):
        for program in PROGRAMS:
            others = {name for name in recorded("variables", program) if not re.match("GPUSHARE_|CUDA_|SOFTGPU_|JOURNAL_(?!STREAM)", name)}
            pages = PAGES[PROGRAMS[program]] + PAGES["gpushare.7"]
            self.assertEqual({name for name in others if name not in items(pages, "Ev")}, set(), program)


class Configuration(unittest.TestCase):
    PAGE = PAGES["gpushared.yaml.5"]

    def test_each_key_stands_in_the_part_of_its_block(self):
        limits = items(section(self.PAGE, "limits", "Ss"), "Ic")
        wanted, told = {}, {}
        for path in record("yaml"):
            top, *rest = re.sub(r"\[\]|\*\.", "", path).split(".")
            wanted.setdefault(top, set()).update(word for word in rest if word not in ("request", "limit"))
        self.assertEqual(set(items(section(self.PAGE, "KEYS"), "Ic")) & set(wanted), set(wanted))
        for top in wanted:
            own = section(self.PAGE, top, "Ss") if f"\n.Ss {top}\n" in self.PAGE else "Limits"
            told[top] = set(items(own, "Ic")) | (set(limits) if own.startswith("Limits") else set())
            self.assertEqual(told[top], wanted[top], top)

    def test_values_and_defaults_are_those_of_the_page_about_the_file(self):
        table = text_of("docs/configuration.md").split("| key | value | default | meaning |", 1)[1].split("\n\n", 1)[0]
        told = dict(re.findall(r"^\.It Ic (\w+)\n((?:(?!\.It ).*\n)*)", section(self.PAGE, "gpus", "Ss"), re.M))
        rows = re.findall(r"^\| `(\w+)` \| (.*?) \| `(\w+%?)` \|", table, re.M)
        self.assertGreater(len(rows), 8)
        for key, value, default in rows:
            for word in re.findall(r"`([\w%]+)`", value):
                self.assertRegex(told[key], rf"(?<!\w){word}(?!\w)", key)
            self.assertRegex(" ".join(told[key].split()), rf"default(: | is \.Cm ){default}", key)

    def test_the_example_is_taken(self):
        example = re.search(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed", section(self.PAGE, "EXAMPLES"), re.M | re.S)[1]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(example)
            file.flush()
            done = subprocess.run([os.path.join(BUILD, "bin/gpushared"), "--check-config", "--config", file.name], env=ENV, capture_output=True,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
            subprocess.run([sys.executable, os.path.join(ROOT, "client/generate_man.py"), folder], check=True)
            cls.pages = {name: text_of(os.path.join(folder, name)) for name in os.listdir(folder)}
            cls.lint = "".join(lint(os.path.join(folder, name)) for name, text in sorted(cls.pages.items()) if not text.startswith(".so "))

    def test_mandoc_has_no_warning(self):
        self.assertEqual(self.lint, "")

    def page_of(self, function):
        text = self.pages[function + ".3"]
        return self.pages[re.match(r"\.so man3/(\S+)\n", text)[1]] if text.startswith(".so ") else text

    def test_each_function_has_a_page_with_its_parameters(self):
        functions = set(re.findall(r"^libgpushare-client\.so (gpushare_\w+)@@\S+ = T$", text_of("tests/interface/symbols.txt"), re.M))
        self.assertGreater(len(functions), 40)
        self.assertEqual({name[:-2] for name in self.pages}, functions | {"gpushare"})
        declared = dict(re.findall(r"\b(gpushare_\w+)\(((?:[^()]|\(\*)*?)\);", re.sub(r"/\*.*?\*/", "", text_of("client/gpushare.h"), flags=re.S)))
        for function in functions:
            page = self.page_of(function)
            self.assertRegex(page, rf"(?m)^\.Nm {function}\b")
            told = re.findall(r'^\.Fa "(.*)"$', re.search(rf"^\.Fo {function}\n(.*?)^\.Fc", page, re.M | re.S)[1], re.M)
            self.assertEqual(told, [" ".join(part.split()) for part in declared[function].split(",")], function)

    def test_each_error_is_on_the_first_page_and_on_those_whose_comment_names_it(self):
        errors = {name.split(" ")[0] for number, name in record("errors").items() if number.isdigit() and number != "0"}
        self.assertEqual(set(re.findall(r"^\.It Bq Er (\w+)$", self.pages["gpushare.3"], re.M)), errors)
        checked = 0
        for comment, function in re.findall(r"/\*((?:(?!\*/).)*)\*/\s*GPUSHARE_API [^;(]*?\b(gpushare_\w+)\(", text_of("client/gpushare.h"), re.S):
            for name in errors if "\n.Sh ERRORS\n" in self.page_of(function) else ():  # others return no error
                if re.search(rf"\b{name[len('GPUSHARE_ERROR_'):]}\b", comment):
                    self.assertIn(f"\n.It Bq Er {name}\n", self.page_of(function), function)
                    checked += 1
        self.assertGreater(checked, 30)

    def test_no_word_of_a_comment_is_lost(self):
        """Each word of a function's comment stands on its page in the same order."""
        for comment, function in re.findall(r"/\*((?:(?!\*/).)*)\*/\s*GPUSHARE_API [^;(]*?\b(gpushare_\w+)\(", text_of("client/gpushare.h"), re.S):
            words = re.findall(r"[a-z]{4,}", re.sub(r"^ ?\*", " ", comment, flags=re.M))
            page = iter(re.findall(r"[a-z]{4,}", section(self.page_of(function), "DESCRIPTION")))
            self.assertEqual([word for word in words if word not in page], [], function)


if __name__ == "__main__":
    unittest.main()
