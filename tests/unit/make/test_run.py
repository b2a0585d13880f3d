#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The runner of the tests: what it counts, repeats, says, and clears away."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
RUN = os.path.join(ROOT, "tests/run")
TIMED = "# timed: a second of its own\n"


@contextlib.contextmanager
def busy_machine():
    """Programs that are not the runner's children take every CPU."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def script(self, name, body):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{body}\n")
        os.chmod(path, 0o755)
        return path

    def run_all(self, *paths, options=(), **how):
        done = subprocess.run([RUN, "--build", self.folder.name, *options, *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **how)
        return done.returncode, done.stdout

    def runs(self):
        with open(os.path.join(self.folder.name, "runs"), encoding="utf-8") as file:
            return len(file.read().split())

    def counted(self, body):
        return f"echo run >>{self.folder.name}/runs\nsleep 0.3\n{body}"

    def test_each_test_has_a_line_with_its_number_and_the_last_line_counts_them(self):
        good, skipped = self.script("test_good.sh", "exit 0"), self.script("test_skipped.sh", "echo because\nexit 77")
        bad = self.script("test_bad.sh", "echo what was wrong\nexit 3")
        status, text = self.run_all(good, skipped, options=("--lanes", "1"))
        self.assertRegex(text, r"^software GPU: .*\n\[1/2\] ok +test_good.sh \(\d+\.\d s\)\n\[2/2\] skip +test_skipped.sh \(.*\)\n +because\n")
        self.assertTrue(text.endswith("\n1 passed, 0 failed, 1 skipped\n"), text)
        self.assertEqual(status, 0)
        status, text = self.run_all(good, skipped, bad, options=("--lanes", "1"))
        self.assertRegex(text, r"(?s)\[3/3\] FAILED test_bad.sh .*exit status 3\nwhat was wrong\n")
        self.assertTrue(text.endswith("\n1 passed, 1 failed, 1 skipped\n"), text)
        self.assertEqual(status, 1)

    def test_nothing_that_passed_is_no_success(self):
        self.assertEqual(self.run_all(self.script("test_skipped.sh", "exit 77"))[0], 1)
        self.assertEqual(self.run_all(self.script("test_good.sh", "exit 0"), options=("--match", "no such"))[0], 1)

    def test_a_timed_test_is_run_again_while_others_have_the_cpu(self):
        with busy_machine():
            status, text = self.run_all(self.script("test_timed.sh", TIMED + self.counted("exit 1")))
        self.assertEqual((status, self.runs()), (1, 3), text)
        self.assertIn("It needs time: a second of its own. Measured:", text)
        self.assertRegex(text, r"  run 3: in \d\.\d s programs that are not the test's used \d+\.\d\d of \d+ CPUs.*: exit status 1\n")
        self.assertIn("The CPU was taken from it each time", text)

    def test_a_timed_test_that_passes_at_last_has_passed_aloud(self):
        body = self.counted(f"[ $(wc -l <{self.folder.name}/runs) -ge 2 ]")
        with busy_machine():
            status, text = self.run_all(self.script("test_timed.sh", TIMED + body))
        self.assertEqual((status, self.runs()), (0, 2), text)
        self.assertRegex(text, r"ok +test_timed.sh .*\n +run again, for it needs time \(a second of its own\): in ")
        last = text.splitlines()[-1]
        self.assertEqual(last, "1 passed, 0 failed, 0 skipped; 1 repeated because the machine was busy: test_timed.sh")
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            page = re.search(r"It ends with `(N passed.*?)`.*?`(; N repeated.*?)` and the names", file.read(), re.S)
        self.assertRegex(last, "^" + "".join(page.groups()).replace("N ", r"\d+ ") + " test_timed.sh$")

    def test_another_test_is_never_run_again(self):
        with busy_machine():
            status, text = self.run_all(self.script("test_plain.sh", self.counted("exit 1")))
        self.assertEqual((status, self.runs()), (1, 1), text)

    def test_the_cpu_that_a_test_takes_from_itself_is_its_own(self):
        """Of what its children take nothing is taken for others', whoever their parent is by now."""
        path = self.script("test_hot.sh", TIMED + self.counted("(setsid timeout 1 sh -c 'while :; do :; done' &)\nsleep 0.9\nexit 1"))
        status, text = self.run_all(path)
        self.assertEqual(status, 1)
        # On a machine that does other things as well it is repeated, and says so. A run may get the CPU then.
        if self.runs() < 3:
            self.assertIn("its own, so the failure stands", text)
        elif "its own, so the failure stands" not in text:
            self.assertIn("The CPU was taken from it each time", text)

    def test_a_limit_ends_a_test_and_what_it_has_started(self):
        path = self.script("test_hangs.sh", f"setsid sleep 600 &\necho $! >{self.folder.name}/pid\nsleep 600")
        began = time.monotonic()
        status, text = self.run_all(path, options=("--limit", "0.5"))
        self.assertEqual(status, 1)
        self.assertIn("timed out", text)
        self.assertLess(time.monotonic() - began, 60)
        with open(os.path.join(self.folder.name, "pid"), encoding="utf-8") as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_a_process_that_ends_meanwhile_is_gone_for_the_test(self):
        body = "pid=$(sh -c 'sleep 0.2 >/dev/null & echo $!')\nfor i in $(seq 100); do kill -0 $pid || exit 0; sleep 0.1; done\nexit 1"
        self.assertEqual(self.run_all(self.script("test_orphan.sh", body))[0], 0)

    def test_signals_that_a_shell_ignores_in_the_background_reach_the_tests(self):
        path = self.script("test_signal.sh", "kill -INT $$\nexit 0")
        ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
        self.assertIn("exit status -2", self.run_all(path, **ignored)[1])

    # ---- lanes

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def until(self, condition):
        """Waits for a condition, which another process brings about."""
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    @staticmethod
    def shell_until(condition):
        """The same in a test's script, which fails if the condition never holds."""
        return f"for i in $(seq 600); do {condition} && break; sleep 0.1; done; {condition} || exit 1"

    def test_tests_run_side_by_side(self):
        """Each of the two waits for the other."""
        scripts = [self.script(f"test_{one}.sh", f"touch {self.file(one)}\n{self.shell_until(f'[ -e {self.file(other)} ]')}")
                   for one, other in (("left", "right"), ("right", "left"))]
        status, text = self.run_all(*scripts, options=("--lanes", "2"))
        self.assertEqual(status, 0, text)

    def test_a_failure_beside_a_test_that_passes_is_shown(self):
        good = self.script("test_good.sh", self.shell_until(f"[ -e {self.file('failed')} ]"))
        bad = self.script("test_bad.sh", f"echo what was wrong\ntouch {self.file('failed')}\nexit 3")
        status, text = self.run_all(good, bad, options=("--lanes", "2"))
        self.assertEqual(status, 1, text)
        self.assertRegex(text, r"(?s)\[[12]/2\] FAILED test_bad.sh .*---- test_bad.sh: exit status 3\nwhat was wrong\n")
        self.assertRegex(text, r"\[[12]/2\] ok +test_good.sh")
        self.assertTrue(text.endswith("\n1 passed, 1 failed, 0 skipped\n"), text)

    def test_what_is_timed_or_says_so_runs_without_others(self):
        """Each script is in the folder `running` while it runs; one that is to be alone fails if another is there, too."""
        os.mkdir(self.file("running"))
        inside = f"cd {self.file('running')}\ntouch $$\nsleep 0.2"
        alone = f"{inside}\n[ $(ls | wc -l) -eq 1 ] || exit 1\nrm $$"
        scripts = [self.script("test_timed.sh", TIMED + alone), self.script("test_alone.sh", f"# alone: it counts\n{alone}")]
        scripts += [self.script(f"test_plain_{number}.sh", f"{inside}\nrm $$") for number in range(5)]
        status, text = self.run_all(*scripts, options=("--lanes", "3"))
        self.assertEqual(status, 0, text)
        self.assertIn("7 passed", text)

    def test_light_tests_run_beside_each_other_and_again_without(self):
        """The first fails while the second runs; when it is run again, the second must have ended."""
        light, here, seen = TIMED + "# light: it waits\n", self.file("here"), self.file("seen")
        first = self.script("test_first.sh", light + f"[ -e {seen} ] && exec test ! -e {here}\n" +
                            self.shell_until(f"[ -e {here} ]") + f"\ntouch {seen}\nexit 1")
        second = self.script("test_second.sh", light + f"touch {here}\n{self.shell_until(f'[ -e {seen} ]')}\nsleep 1\nrm {here}")
        with busy_machine():
            status, text = self.run_all(first, second, options=("--lanes", "2"))
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("; 1 repeated because the machine was busy: test_first.sh\n"), text)

    def test_a_word_that_no_test_has_is_named(self):
        status, text = self.run_all(self.script("test_one.sh", ":"), options=("--match", "gpusharectl"))
        self.assertEqual(status, 1, text)
        self.assertIn("\nno test has gpusharectl in its path", text)

    def test_three_light_tests_run_side_by_side_where_there_are_two_lanes(self):
        light, here = TIMED + "# light: it waits\n", self.file("here")
        scripts = [self.script(f"test_light_{number}.sh", f"{light}touch {here}{number}\n" +
                               self.shell_until(f"[ -e {here}0 ] && [ -e {here}1 ] && [ -e {here}2 ]"))
                   for number in range(3)]
        status, text = self.run_all(*scripts, options=("--lanes", "2"))
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("3 passed, 0 failed, 0 skipped\n"), text)

    def test_an_orphan_is_ended_with_the_test_that_left_it_and_not_with_another(self):
        """The orphan of the first must live when a test beside it has ended and the next one has begun there."""
        pid, next_one = self.file("pid"), self.file("next")
        first = self.script("test_first.sh", f"(setsid sleep 600 & echo $! >{pid})\n" +
                            self.shell_until(f"[ -e {next_one} ]") + f"\nkill -0 $(cat {pid})")
        second = self.script("test_second.sh", self.shell_until(f"[ -s {pid} ]"))
        third = self.script("test_third.sh", f"touch {next_one}")
        status, text = self.run_all(first, second, third, options=("--lanes", "2"))
        self.assertEqual(status, 0, text)
        with open(pid, encoding="utf-8") as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def gone(self, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    def test_a_signal_ends_the_tests_of_all_lanes(self):
        for number, status in ((signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(signal=number), tempfile.TemporaryDirectory(dir=self.folder.name) as folder:
                scripts = [self.script(f"test_{name}.sh", f"(setsid sleep 600 & echo $! >{folder}/{name}.orphan)\n"
                                       f"echo $$ >{folder}/{name}.test\nsleep 600") for name in ("left", "right")]
                runner = subprocess.Popen([RUN, "--build", self.folder.name, "--lanes", "2", *scripts], stdout=subprocess.PIPE,
                                          text=True, env={**os.environ, "TMPDIR": folder}, start_new_session=True)
                files = [f"{folder}/{name}.{what}" for name in ("left", "right") for what in ("test", "orphan")]
                self.until(lambda files=files: all(os.path.exists(file) and os.path.getsize(file) for file in files))
                runner.send_signal(number)
                text = runner.communicate()[0]
                self.assertEqual(runner.returncode, status)
                pids = []
                for name in files:
                    with open(name, encoding="utf-8") as file:
                        pids.append(int(file.read()))
                self.until(lambda pids=pids: all(map(self.gone, pids)))
                self.until(lambda folder=folder: not [name for name in os.listdir(folder) if name.startswith("gpushare-test-")])
                if number != signal.SIGKILL:
                    self.assertTrue(text.endswith("interrupted\n0 passed, 1 failed, 0 skipped\n"), text)

    # ---- the software GPU

    def device_of(self, test, given):
        """The settings of the software GPU that a test was run with, and what the runner printed."""
        env = {key: value for key, value in os.environ.items() if key not in ("TEST_SOFTGPU", "TEST_SEED")}
        status, text = self.run_all(test, env={**env, **given})
        with open(os.path.join(self.folder.name, "device"), encoding="utf-8") as file:
            return file.read().strip(), status, text

    def test_tests_run_on_the_strict_device_with_a_seed_that_is_printed(self):
        tell = f'echo "$TEST_SOFTGPU/$SOFTGPU_STRICT/$SOFTGPU_SEED" >{self.folder.name}/device'
        plain = self.script("test_plain.sh", f"{tell}\nexit 1")
        device, _, text = self.device_of(plain, {})
        self.assertRegex(device, r"^SOFTGPU_STRICT=1 SOFTGPU_SEED=(\d+)/1/\1$")
        self.assertTrue(text.startswith(f"software GPU: {device.split('/')[0]}\n"), text)
        self.assertRegex(text, rf"\nTo repeat it: TEST_SOFTGPU='{device.split('/')[0]}' TEST_SEED=\d+ make check MATCH=test_plain.sh\n")
        self.assertNotEqual(self.device_of(plain, {})[0], device)
        self.assertEqual(self.device_of(plain, {"TEST_SOFTGPU": "SOFTGPU_STRICT=1 SOFTGPU_SEED=7"})[0],
                         "SOFTGPU_STRICT=1 SOFTGPU_SEED=7/1/7")
        self.assertEqual(self.device_of(plain, {"TEST_SOFTGPU": ""})[0], "//")

    def program(self, name, says=""):
        """A compiled test of the integration tests, and its source, which says this in a comment. It notes its device."""
        for folder, text, mode in (("", f"{says}\n", 0o644), ("build", f"#!/bin/sh\necho $TEST_SOFTGPU >>{self.file(name)}\n", 0o755)):
            path = os.path.join(self.folder.name, folder, "tests/integration", f"test_{name}" + ("" if folder else ".c"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        return f"build/tests/integration/test_{name}"

    def devices(self, name):
        with open(self.file(name), encoding="utf-8") as file:
            return file.read().splitlines()

    def run_programs(self, *options, **names):
        programs = [self.program(name, says) for name, says in names.items()]
        done = subprocess.run([RUN, *options, "--build", "build", "--lanes", "1", *programs], capture_output=True, text=True,
                              check=False, cwd=self.folder.name, env={**os.environ, "TEST_SOFTGPU": "SOFTGPU_STRICT=1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_integration_programs_run_once_more_on_a_device_whose_calls_drain(self):
        strict, drain = "SOFTGPU_STRICT=1", "SOFTGPU_STRICT=1 SOFTGPU_DRAIN_PERCENT=100 SOFTGPU_UNSURE_DRAINS=1"
        text = self.run_programs(plain="", own="/* draining: not, for it chooses */", unlocked="/* draining: without locks, why */")
        self.assertEqual(self.devices("plain"), [strict, f"{drain} SOFTGPU_LOCKING_DRAINS=1"])
        self.assertEqual(self.devices("unlocked"), [strict, drain])
        self.assertEqual(self.devices("own"), [strict])
        self.assertIn("ok     integration/test_plain:draining (", text)
        self.assertIn("5 passed", text)
        self.run_programs("--match", "again:draining", again="")
        self.assertEqual(len(self.devices("again")), 1)

    def test_tests_that_say_that_they_take_long_begin_first(self):
        scripts = [self.script(f"test_{name}.sh", body) for name, body in (("one", "exit"), ("two", "# long: it waits\nexit"))]
        self.assertRegex(self.run_all(*scripts, options=("--lanes", "1"))[1], r"(?s)1/2\] ok +test_two.*2/2\] ok +test_one")

    def test_a_test_of_the_usual_device_has_no_settings(self):
        tell = f'echo "$TEST_SOFTGPU/$SOFTGPU_STRICT" >{self.folder.name}/device'
        usual = self.script("test_usual.sh", f"# usual device: it counts what strictness delays\n{tell}\nexit 1")
        device, _, text = self.device_of(usual, {})
        self.assertEqual(device, "/")
        self.assertNotIn("TEST_SOFTGPU=", text)

    def test_scenes_are_drawn_from_one_seed_that_a_failure_names(self):
        plain = self.script("test_plain.sh", f'echo "$TEST_SEED" >{self.folder.name}/device\nexit 1')
        drawn, _, text = self.device_of(plain, {"TEST_SOFTGPU": ""})
        self.assertIn(f"\nTo repeat it: TEST_SEED={drawn} make check MATCH=test_plain.sh\n", text)
        self.assertEqual(self.device_of(plain, {"TEST_SEED": "7"})[0], "7")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
