#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Tests that start a server do so on the software GPU that tests/run has chosen, the strict one, or say why not in a
comment, "usual device: why". The sources are read: whoever makes an environment keeps the device's variables."""
import ast
import glob
import importlib
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SUPPORT = os.path.join(ROOT, "tests/support")
USUAL = re.compile(r"^\s*(?:/?\*|#) usual device: \S", re.M)
# Where the device's variables come from.
KEEPS = re.compile(r"\b(ENV|environ)\b")
STARTS = {"run", "Popen", "call", "check_call", "check_output"}


def sources(suffix):
    """Path and text of each source of the tests that may start a server, but for those that say why they differ."""
    paths = [path for folder in ("integration", "abuse", "support") for path in glob.glob(os.path.join(ROOT, "tests", folder, "*" + suffix))]
    paths += glob.glob(os.path.join(ROOT, "examples", "*" + suffix))
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not USUAL.search(text):
            yield os.path.relpath(path, ROOT), text


def made_in(function):
    """The values assigned to each name of a function, as text."""
    made = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    made[target.id] = made.get(target.id, "") + ast.unparse(node.value)
    return made


def is_start(call):
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "subprocess" and call.func.attr in STARTS


def lost_in_python(text):
    """Places where a program is started with an environment that does not come from the caller's, or from one of which
    the device's variables were taken out."""
    tree, lost = ast.parse(text), []
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        made = made_in(function)
        given = {argument.arg for argument in function.args.args + function.args.kwonlyargs}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            words = ast.unparse(call)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "startswith" and "'SOFTGPU_'" in words:
                lost.append(f"line {call.lineno}: takes SOFTGPU_ out")
            for keyword in call.keywords if is_start(call) else ():
                value = ast.unparse(keyword.value)
                if keyword.arg == "env" and value not in given and not KEEPS.search(value + made.get(value, "")):
                    lost.append(f"line {call.lineno}: env={value}")
    return lost


def lost_in_shell(text):
    return [line for line in text.splitlines() if re.search(r"\benv -i\b|\bunset\b.*SOFTGPU", line)]


class Strict(unittest.TestCase):
    def test_python_keeps_the_device(self):
        for path, text in sources(".py"):
            with self.subTest(path):
                self.assertEqual(lost_in_python(text), [])

    def test_shell_keeps_the_device(self):
        for path, text in sources(".sh"):
            with self.subTest(path):
                self.assertEqual(lost_in_shell(text), [])

    def test_programs_start_servers_through_one_function(self):
        for path, text in sources(".c"):
            if path != "tests/support/server.c":
                with self.subTest(path):
                    self.assertNotIn('"bin/gpushared"', text)

    def test_the_environment_of_python_tests_has_the_device(self):
        os.environ["TEST_SOFTGPU"] = "SOFTGPU_STRICT=1 SOFTGPU_SEED=7"
        sys.path.insert(0, SUPPORT)
        env = importlib.import_module("private_server").ENV
        self.assertEqual((env["SOFTGPU_STRICT"], env["SOFTGPU_SEED"]), ("1", "7"))

    def test_what_loses_the_device_is_found(self):
        self.assertEqual(lost_in_python("def f():\n subprocess.run(a, env={**ENV, 'A': 'b'})\n"), [])
        self.assertEqual(lost_in_python("def f():\n e = dict(os.environ)\n subprocess.run(a, env=e)\n"), [])
        self.assertEqual(lost_in_python("def f():\n subprocess.Popen(a, env={'A': 'b'})\n"), ["line 2: env={'A': 'b'}"])
        self.assertEqual(lost_in_python("def f():\n e = {}\n subprocess.run(a, env=e)\n"), ["line 3: env=e"])
        self.assertEqual(lost_in_python("def f(k):\n return k.startswith(('CUDA_', 'SOFTGPU_'))\n"), ["line 2: takes SOFTGPU_ out"])
        self.assertEqual(len(lost_in_shell("unset $(env | sed -n 's/CUDA|SOFTGPU//p')\nenv -i ls\necho unset\n")), 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
