#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A mistake in the configuration file when a server is replaced: the clients go on with the limits that they had, and the log says
why. A server that starts anew refuses the same file."""
import json
import os
import random
import signal
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import ENV, GPUSHARE, GPUSHARED, SECONDS, run  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import draw_seed  # noqa: E402

MISTAKES = ("clients: {memory: {limt: 1G}}\n", "clients: [\n", "gpus: [{gpu: 31, mode: strict}]\n", "\0")


class Accepted(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(draw_seed())

    def manager(self, text):
        self.state = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.state)
        self.copy = os.path.join(self.state, "accepted.yaml")
        return Manager("--state-dir", self.state, config=text)

    def limit(self, manager):
        rows = json.loads(manager.ctl("--json", "clients").stdout)["clients"]
        return {row["name"]: row["memory"]["limit"]["granted_bytes"] for row in rows}

    def test_a_server_that_takes_over_goes_on_with_what_was_in_force(self):
        megabytes = self.random.randrange(300, 900)
        for mistake in MISTAKES:
            with self.subTest(mistake), self.manager(f"clients: {{memory: {{limit: {megabytes}M}}}}\n") as manager:
                steady = manager.steady(self.random.randrange(1 << 16))
                self.assertEqual(steady.stdout.readline(), "ready\n")
                before, worker = self.limit(manager), manager.worker()
                self.assertEqual(list(before.values()), [megabytes << 20])
                manager.configure(mistake)
                for number in (signal.SIGUSR2, signal.SIGKILL):
                    manager.kill(number)
                    manager.start()
                    self.assertEqual(manager.worker(), worker)
                    self.assertEqual(self.limit(manager), before)
                text = manager.text()
                self.assertEqual(text.count("go on with the configuration that it had"), 2, text)
                self.assertIn(manager.file("config.yaml"), text.split("go on with the configuration that it had")[0].splitlines()[-1])
                # Mended, it is in force after a reload, and after the next server too.
                manager.configure(f"clients: {{memory: {{limit: {megabytes + 1}M}}}}\n")
                ended = manager.ctl("reload")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                manager.configure(mistake)
                manager.kill()
                manager.start()
                self.assertEqual(list(self.limit(manager).values()), [(megabytes + 1) << 20])
                steady.terminate()
                steady.communicate(timeout=SECONDS)
                self.assertEqual(steady.returncode, 0)

    def assert_shown(self, manager, *words):
        """All that look at the server say that the file is refused, with these words, or say nothing if there are none."""
        status, metrics = (json.loads(manager.ctl("--json", what).stdout) for what in ("status", "metrics"))
        for name, answer in (("status", status), ("metrics", metrics)):
            json_check.check("admin-" + name, answer)
        self.assertEqual([warning["name"] for warning in status["warnings"]], ["configuration_refused"] if words else [])
        self.assertEqual(metrics["configuration_refused"], bool(words))
        self.assertRegex(manager.ctl("metrics").stdout, rf"(?m)^gpushare_configuration_refused {int(bool(words))}(\.0)?$")
        doctor = json.loads(run(GPUSHARE, "doctor", "--socket", manager.client, "--json").stdout)["checks"]
        for text in (status["warnings"][0]["text"] if words else "",
                     *("\n".join(line for line in manager.ctl(*command).stdout.splitlines() if line.startswith("warning: "))
                       for command in ((), ("status",), ("status", "--wide"))),
                     "".join(check["text"] for check in doctor if check["status"] == "warn" and check["subject"] == "server")):
            self.assertEqual(bool(text), bool(words), text)
            for word in (*words, *("gpusharectl reload",)[:len(words)]):
                self.assertIn(word, text)

    def test_a_file_that_is_refused_is_shown_until_it_is_mended(self):
        good = "clients: {memory: {limit: 512M}}\n"
        with self.manager(good) as manager:
            file = manager.file("config.yaml")
            self.assert_shown(manager)
            manager.configure(MISTAKES[0])
            self.assertEqual(manager.ctl("reload").returncode, 1)
            self.assert_shown(manager, f"{file}:1: ", "limt", "what was in force before")
            manager.configure(good)
            self.assertEqual(manager.ctl("reload").returncode, 0)
            self.assert_shown(manager)
            manager.configure(MISTAKES[0])
            manager.kill()
            manager.start()
            manager.worker()
            self.assert_shown(manager, f"{file}:1: ", "limt", "the next stop or boot")
            # Another mistake, and the signal in the place of the command.
            manager.configure(MISTAKES[2])
            manager.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + SECONDS
            while 'GPU "31"' not in manager.ctl("status").stdout and time.monotonic() < end:
                time.sleep(0.01)
            self.assert_shown(manager, 'GPU "31"', "the next stop or boot")
            manager.configure(good)
            self.assertEqual(manager.ctl("reload").returncode, 0)
            self.assert_shown(manager)

    def test_a_file_that_has_vanished_is_shown(self):
        with self.manager("{}\n") as manager:
            self.assert_shown(manager)
            os.unlink(manager.file("config.yaml"))
            self.assertEqual(manager.ctl("reload").returncode, 1)
            self.assert_shown(manager, manager.file("config.yaml"))

    def test_a_reload_that_is_refused_is_not_kept(self):
        with self.manager("clients: {memory: {limit: 512M}}\n") as manager:
            manager.configure(MISTAKES[0])
            self.assertEqual(manager.ctl("reload").returncode, 1)
            with open(self.copy, encoding="utf-8") as file:
                self.assertEqual(file.read(), "clients: {memory: {limit: 512M}}\n")

    def test_a_copy_that_others_may_write_or_that_is_no_file_is_not_used(self):
        for spoil in (lambda path: os.chmod(path, 0o666), lambda path: (os.unlink(path), os.mkfifo(path)),
                      lambda path: (os.rename(path, path + ".away"), os.symlink(path + ".away", path)), os.unlink):
            with self.manager("clients: {memory: {limit: 512M}}\n") as manager:
                manager.configure(MISTAKES[0])
                manager.kill()
                spoil(self.copy)
                manager.start(wait=False)
                self.assertEqual(manager.process.wait(SECONDS), 3)
                self.assertIn("accepted.yaml", manager.text())
                # What is left waits for a server whose file is right.
                manager.configure("clients: {memory: {limit: 512M}}\n")
                manager.settle()
                manager.start()

    def test_a_server_that_starts_anew_refuses_the_file(self):
        with self.manager("clients: {memory: {limit: 512M}}\n") as manager:
            self.assertTrue(os.path.exists(self.copy))
            manager.configure(MISTAKES[0])
            folder = manager.file("other")
            os.mkdir(folder)
            done = subprocess.run([*manager.command, "--socket", os.path.join(folder, "s"), "--admin-socket", os.path.join(folder, "a")],
                                  env=ENV, capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("limt", done.stderr)

    def test_a_server_that_takes_over_goes_on_with_the_options_and_variables_it_had(self):
        streams = self.random.randrange(20, 90)
        mistakes = ((["--max-clients", "none"], {}), (["--hello-timeout=5x"], {}), (["--no-such-option"], {}), (["word"], {}), ([], {"GPUSHARE_MEMORY_LIMIT": "16 G"}),
                    ([], {"GPUSHARE_MODE": "fare"}), (["--streams"], {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "many"}))
        self.state = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.state)
        with Manager("--state-dir", self.state, "--streams", str(streams), env={"GPUSHARE_MEMORY_LIMIT": "700M"}) as manager:
            steady = manager.steady(self.random.randrange(1 << 16))
            self.assertEqual(steady.stdout.readline(), "ready\n")
            worker, command, env = manager.worker(), manager.command, manager.env
            for options, variables in mistakes:
                with self.subTest(options=options, variables=variables):
                    manager.command, manager.env = command + options, {**env, "GPUSHARE_MEMORY_LIMIT": "600M", **variables}
                    manager.kill(self.random.choice((signal.SIGUSR2, signal.SIGKILL)))
                    before = len(manager.text())
                    manager.start()
                    said = manager.text()[before:]
                    self.assertIn("go on, with the options and variables that it had", said)
                    self.assertTrue(any(word.split("=")[0] in said for word in (*options, *variables)), said)
                    self.assertEqual(manager.worker(), worker)
                    status, metrics = (json.loads(manager.ctl("--json", verb).stdout) for verb in ("status", "metrics"))
                    self.assertEqual([warning["name"] for warning in status["warnings"]], ["options_refused"])
                    self.assertTrue(any(word.split("=")[0] in status["warnings"][0]["text"] for word in (*options, *variables)))
                    self.assertTrue(metrics["options_refused"])
                    # Those that it had, and none of the others beside the mistake.
                    self.assertEqual(list(self.limit(manager).values()), [700 << 20])
                    info = run(GPUSHARE, "info", "--json", GPUSHARE_SOCKET=manager.client)
                    self.assertEqual(json.loads(info.stdout)["limits"]["streams"], streams, info.stderr)
            # Mended, they are in force: for clients that come, and for the next mistake.
            for options in ([], ["--no-such-option"]):
                manager.command, manager.env = command + options, {**env, "GPUSHARE_MEMORY_LIMIT": "600M"}
                manager.kill()
                manager.start()
                other = manager.steady(7)
                self.assertEqual(other.stdout.readline(), "ready\n")
                self.assertEqual(self.limit(manager)["steady7"], 600 << 20)
                other.terminate()
                other.communicate(timeout=SECONDS)
            steady.terminate()
            steady.communicate(timeout=SECONDS)
            self.assertEqual(steady.returncode, 0)

    def test_without_what_the_last_server_had_a_mistake_among_the_options_is_refused(self):
        for spoil in (lambda path: os.chmod(path, 0o666), os.unlink, lambda path: open(path, "w", encoding="utf-8").close()):
            with self.manager("{}\n") as manager:
                manager.command.append("--no-such-option")
                manager.kill()
                spoil(os.path.join(self.state, "accepted-start.json"))
                manager.start(wait=False)
                self.assertEqual(manager.process.wait(SECONDS), 3)
                self.assertIn("accepted-start.json", manager.text())
                self.assertIn("no-such-option", manager.text())
                manager.command.pop()
                manager.settle()
                manager.start()

    def test_an_older_start_is_not_taken_for_one_that_could_not_be_kept(self):
        """The server in between had other variables, which nobody could keep: its successor has nothing to go on with."""
        self.state = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.state)
        with Manager("--state-dir", self.state, env={"GPUSHARE_MEMORY_LIMIT": "700M"}) as manager:
            worker = manager.worker()
            # The text of an argument can't be kept, so the file is written no more; the folder is as it was.
            manager.command, env = [*manager.command, b"--accounting=" + os.fsencode(manager.file("bill")) + b"\xff"], manager.env
            manager.env = {**env, "GPUSHARE_MEMORY_LIMIT": "600M"}
            manager.kill()
            manager.start()
            self.assertEqual(manager.worker(), worker)
            status = json.loads(manager.ctl("--json", "status").stdout)
            self.assertEqual([warning["name"] for warning in status["warnings"]], ["configuration_not_copied"])
            self.assertIn("accepted-start.json", status["warnings"][0]["text"])
            self.assertIn("gpushare_configuration_not_copied 1", manager.ctl("metrics").stdout)
            self.assertFalse(os.path.exists(os.path.join(self.state, "accepted-start.json")))
            manager.command[-1] = "--no-such-option"
            manager.kill()
            manager.start(wait=False)
            self.assertEqual(manager.process.wait(SECONDS), 3)
            manager.settle()
            manager.command.pop()
            manager.start()
            self.assertEqual(manager.worker(), worker)
            status = json.loads(manager.ctl("--json", "status").stdout)
            self.assertEqual(status["warnings"], [])


if __name__ == "__main__":
    unittest.main()
