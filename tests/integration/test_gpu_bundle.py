#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# usual device: each verdict is that of a device whose calls wait only where a case asks for it
# timed: a step must see within 150 ms whether a call waits
# light: its steps wait
# long: most of a minute of steps, each with its budget
"""The GPU bundle, made as a user makes it, on the software GPU and on drivers that misbehave.

It runs from another folder, with an empty environment, from a folder that it can't write to; as root as user
nobody too. Each verdict must be the one that the driver's settings call for.
"""
import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import gpu_bundle  # noqa: E402
from gpu_bundle import TOO_SLOW, BundleCase  # noqa: E402

ENTRY = os.path.abspath("tests/programs/gpu/results_entry.py")
# The software GPU has neither cubins nor graphs nor work queue resources.
NOT_TO_BE_HAD = {"queues-17-balanced", "queues-70-balanced", "graph-cost"}
# The software GPU's cuMemFree waits, as NVIDIA documents of its own, and its cuMemHostUnregister, as an H200's was seen to; a copy
# ends with its registration, as is reported.
FALSE = {"blocks-memory-free", "blocks-host-unregister", "registration"}
# As if one registration were as good as another.
KIND = {"SOFTGPU_WHOLE_REGISTRATIONS": "0"}
# The verdict of these steps depends on the CPU time that they get; they must have one.
TIMED = {"gpushare-halves", "gpushare-strict-30-70"}
# The software GPU's cuInit costs no time, so which process is sooner is chance.
EITHER = {"standby"}


class Bundle(BundleCase):
    # ---- the whole of it

    def check_first(self, results):
        listed = subprocess.run([os.path.join(self.bundle, "run-checks.sh"), "--list"], env={}, capture_output=True,
                                text=True, check=True).stdout.splitlines()
        first = {line.split()[1] for line in listed if line.startswith("first")}
        self.assertGreater(len(first), 45)
        self.assertEqual(set(results), first)
        for name, result in results.items():
            with self.subTest(step=name):
                if name in NOT_TO_BE_HAD or TOO_SLOW in result["verdict"]:
                    expected = {"unknown"}
                elif name in FALSE:
                    expected = {"false"}
                elif name in EITHER:
                    expected = {"held", "false"}
                elif name in TIMED:
                    expected = {"passed", "not met"}
                else:
                    expected = {"held", "passed", "measured"}
                self.assertIn(result["outcome"], expected, result["verdict"])
                self.assertTrue(result["verdict"])
                self.assertIsNone(result["ended"] if result["outcome"] != "unknown" else None)

    def test_first_on_the_software_gpu(self):
        began = time.monotonic()
        status, output = self.run_checks("--driver", "softgpu", "--first", "--results", "results")
        self.assertLess(time.monotonic() - began, 170)
        results = self.results()
        self.check_first(results)
        self.assertEqual(status, 1, output)  # an answer is wrong: the step never counts as passed
        with open(os.path.join(self.folder, "results/page.md"), encoding="utf-8") as file:
            page = file.read()
        assumptions = [row for result in results.values() for row in result["assumptions"]]
        for verdict in ("held", "false", "unknown"):
            count = sum(row["verdict"] == verdict for row in assumptions)
            self.assertRegex(page.splitlines()[-1], rf"\b{count} {verdict}\b")
        for row in assumptions:
            self.assertIn(row["text"].replace("|", "\\|"), page)
        for name in results:
            self.assertRegex(output, rf"(?m)^(held|passed|measured|unknown|false|not met) +{re.escape(name)} \(")
        self.assertIn("what changes if it is false", page)
        # The entry for the document, made from the folder alone.
        entry = subprocess.run([sys.executable, ENTRY, os.path.join(self.folder, "results")], capture_output=True, text=True,
                               check=True).stdout
        for row in assumptions:
            self.assertIn(f"| {row['name']} | {row['verdict']} |", entry)
        self.assertIn(results["inventory"]["facts"]["device"], entry)
        size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(self.bundle) for file in files)
        self.assertLess(size, 64 << 20)
        # The bundle has every library that its programs need beside glibc, since the machine may have none of them.
        for program in ("gpu/checks", "bin/gpushared", "libexec/gpushare-worker"):
            needed = subprocess.run(["readelf", "-d", os.path.join(self.bundle, program)], capture_output=True, text=True,
                                    check=True).stdout
            for library in re.findall(r"NEEDED.*\[(.*?)\]", needed):
                if not re.match(r"(libc|libm|libdl|libpthread|ld-linux-x86-64|libgcc_s)\.so", library):
                    self.assertTrue(os.path.exists(os.path.join(self.bundle, "lib/needed", library)), library)

    def test_as_this_user_too(self):
        status, output, results = self.only("inventory", "registration", "gpushare-vector-add", user=False, env=KIND)
        self.assertEqual(status, 0, output)
        self.assertEqual({r["outcome"] for r in results.values()}, {"held", "passed"})
        self.assertIn("softgpu", results["inventory"]["facts"]["library"])

    # ---- drivers of several kinds

    def test_a_driver_without_green_contexts(self):
        env = {"SOFTGPU_NO_GREEN": "1"}
        status, output, results = self.only("inventory", "completion-memop", "partition-sizes", "blocks-green-context-create",
                                            "gpushare-vector-add", env=env)
        self.assertEqual(status, 1, output)
        self.assertEqual(self.verdicts(results["inventory"])["green-contexts"], "false")
        self.assertEqual(self.verdicts(results["completion-memop"]), {"memop-on-green-stream": "unknown"})
        self.assertEqual(set(self.verdicts(results["partition-sizes"]).values()), {"unknown"})
        self.assertIn("no green contexts", results["partition-sizes"]["verdict"])
        self.assertEqual(results["blocks-green-context-create"]["outcome"], "unknown")
        self.assertEqual(results["gpushare-vector-add"]["outcome"], "passed")

    def test_a_device_that_serves_one_process(self):
        env = {"SOFTGPU_COMPUTE_MODE": "3", "SOFTGPU_STATE": os.path.join(self.folder, "contexts")}
        _, output, results = self.only("standby", env=env)
        self.assertRegex(results["standby"]["verdict"], r"started then [\d.]+ ms, with cuInit called before [\d.]+ ms, "
                                                        "with a context was refused beside the first", output)
        _, output, results = self.only("standby", env={"SOFTGPU_CREATION_US": "0"})
        self.assertRegex(results["standby"]["verdict"], r"with a context [\d.]+ ms", output)

    def test_refused_hints(self):
        status, output, results = self.only("arenas", env={"SOFTGPU_HINT_REFUSAL": "100", "SOFTGPU_HINT_ERROR": "0"})
        self.assertEqual(status, 1, output)
        self.assertEqual(self.verdicts(results["arenas"]), {"host-arena": "held", "device-arena-before-context": "false",
                                                            "device-arena-after-context": "false"})
        self.assertTrue(any("none of those tried" in row["text"] for row in results["arenas"]["checks"]))
        with open(os.path.join(self.folder, "results/arenas.log"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^64 GiB at 0x1000000000: 8 times elsewhere, first at 0x")

    # ---- drivers that misbehave

    def test_a_driver_that_hangs_costs_its_own_step(self):
        driver, env = self.broken("hang", "cuMemExportToShareableHandle")
        began = time.monotonic()
        status, output, results = self.only("jit", "blocks-memory-export", "partition-blocks", driver=driver, env=env)
        self.assertLess(time.monotonic() - began, 40)
        self.assertEqual(status, 3, output)
        hung = results["blocks-memory-export"]
        self.assertEqual((hung["outcome"], self.verdicts(hung)), ("unknown", {"memory-export-does-not-wait": "unknown"}))
        self.assertIn("killed after 12 s, in or after memory-export", hung["verdict"])
        self.assertEqual((results["jit"]["outcome"], results["partition-blocks"]["outcome"]), ("held", "held"))

    def test_a_hang_everywhere_ends_within_the_budget(self):
        driver, env = self.broken("hang", "cuInit")
        began = time.monotonic()
        status, output = self.run_checks("--driver", driver, "--first", "--results", "results", "--budget", "6", env=env)
        self.assertLess(time.monotonic() - began, 12)
        self.assertEqual(status, 4, output)
        results = self.results()
        # The results before the call that crashed are kept, and the call is named.
        self.assertIn("kernel", results["inventory"]["facts"])
        self.assertIn("in or after cuInit", results["inventory"]["verdict"])
        self.assertEqual(results["inventory"]["outcome"], "not run")  # the budget cut it, not its limit
        self.assertEqual(set(self.verdicts(results["inventory"]).values()), {"unknown"})
        self.assertEqual({r["outcome"] for r in results.values()}, {"not run"})
        left = subprocess.run(["pgrep", "-f", re.escape(driver)], capture_output=True, text=True, check=False).stdout
        self.assertEqual(left, "", "a process of the step is left")

    def test_a_driver_that_crashes(self):
        driver, env = self.broken("crash", "cuStreamBatchMemOp")
        status, output, results = self.only("inventory", "completion-batch-memop", "gpushare-vector-add", driver=driver, env=env)
        self.assertEqual(results["inventory"]["outcome"], "held", output)
        self.assertEqual(results["completion-batch-memop"]["outcome"], "unknown")
        self.assertIn("signal 6", results["completion-batch-memop"]["verdict"])
        # gpushare's own check fails and ends, and the server's log says how the worker ended.
        self.assertEqual(results["gpushare-vector-add"]["outcome"], "failed")
        self.assertEqual(status, 1)
        with open(os.path.join(self.folder, "results/gpushare-vector-add.log"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"the worker is lost|worker .*signal 6")

    def test_a_driver_that_lacks_a_call(self):
        driver, env = self.broken("lack", "cuStreamBatchMemOp")
        status, output, results = self.only("completion-memop", "completion-batch-memop", "gpushare-vector-add",
                                            driver=driver, env=env)
        self.assertEqual(results["completion-memop"]["outcome"], "held", output)
        self.assertEqual(results["completion-batch-memop"]["outcome"], "unknown")
        self.assertIn("the driver has no cuStreamBatchMemOp", results["completion-batch-memop"]["verdict"])
        # gpushare can't work without this call, so its own check has failed; the result is not just unknown.
        self.assertEqual(results["gpushare-vector-add"]["outcome"], "failed")
        with open(os.path.join(self.folder, "results/gpushare-vector-add.log"), encoding="utf-8") as file:
            self.assertIn("the driver has no cuStreamBatchMemOp", file.read())
        self.assertEqual(status, 1)
        # The same fault in a call that nothing makes changes nothing: so the failure above came from the call.
        env["BROKEN_CALL"] = "cuNothing"
        status, output, results = self.only("gpushare-vector-add", driver=driver, env=env)
        self.assertEqual(results["gpushare-vector-add"]["outcome"], "passed", output)

    def test_a_killed_step_keeps_the_output_of_its_programs(self):
        # The worker itself launches at its start, and no client would come.
        driver, env = self.broken("hang", "cuMemcpyAsync")
        _, output, results = self.only("gpushare-six-clients", driver=driver, env=env, words=("--budget", "6"))
        self.assertEqual(results["gpushare-six-clients"]["outcome"], "not run", output)  # cut by the budget
        outputs = os.listdir(os.path.join(self.folder, "results/outputs"))
        self.assertTrue(any(name.startswith("vector-add-") for name in outputs), outputs)
        status, output = self.run_checks("--results", "results", "--rest", "--budget", "3", "--driver", "softgpu")
        self.assertNotEqual(self.results()["inventory"]["outcome"], "not run", output)

    def test_two_runs_in_one_folder(self):
        first = subprocess.Popen([os.path.join(self.bundle, "run-checks.sh"), "--driver", "softgpu", "--results", "results",
                                  "--only", "gpushare-strict-30-70"], cwd=self.folder, env={}, stdout=subprocess.PIPE,
                                 **({"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}))
        while not os.path.exists(os.path.join(self.folder, "results/gpushare-strict-30-70.log")):
            self.assertIsNone(first.poll())
            time.sleep(0.02)
        status, output = self.run_checks("--driver", "softgpu", "--results", "results", "--only", "jit")
        self.assertEqual(status, 5, output)
        self.assertIn("another run", output)
        first.terminate()
        first.communicate()
        self.assertEqual(first.returncode, 4)  # a step that was stopped from outside counts as not run
        self.assertEqual(self.results()["gpushare-strict-30-70"]["outcome"], "not run")

    @unittest.skipUnless(os.getuid() == 0, "a file system of its own is for root")
    def test_a_full_disk_ends_nothing(self):
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k,mode=777", "tmpfs", small], check=False).returncode:
            self.skipTest("no tmpfs can be mounted here")
        try:
            status, output = self.run_checks("--driver", "softgpu", "--results", "small/results", "--only", "inventory",
                                             "--only", "jit", "--only", "arenas", "--only", "registration", env=KIND)
        finally:
            subprocess.run(["umount", "-l", small], check=True)
        self.assertEqual(status, 0, output)
        for name in ("inventory", "jit", "arenas", "registration"):
            self.assertRegex(output, rf"(?m)^held +{name} ")
        self.assertIn("No space left", output)

    def test_a_library_that_is_no_driver_is_refused(self):
        driver = os.path.join(self.bundle, "lib/libgpushare-client.so.0")
        status, output, results = self.only("inventory", "jit", driver=driver)
        self.assertEqual(status, 3, output)
        self.assertEqual({r["outcome"] for r in results.values()}, {"unknown"})
        self.assertIn("not a CUDA driver", results["jit"]["verdict"])

    # ---- budget, resuming, usage

    def test_budget_and_resuming(self):
        status, output, results = self.only("jit", "inventory")
        self.assertEqual(status, 0, output)
        stamps = {name: os.stat(os.path.join(self.folder, f"results/{name}.json")).st_mtime_ns for name in ("jit", "inventory")}
        status, output = self.run_checks("--driver", "softgpu", "--results", "results", "--rest", "--budget", "4")
        results = self.results()
        self.assertIn(status, (1, 3, 4), output)
        self.assertEqual(results["row-accounting_error"]["outcome"], "not run")
        self.assertIn("budget", results["row-accounting_error"]["verdict"])
        self.assertIn(results["registration"]["outcome"], ("false", "unknown"))
        for name, stamp in stamps.items():
            self.assertEqual(os.stat(os.path.join(self.folder, f"results/{name}.json")).st_mtime_ns, stamp, name)
        self.assertRegex(output.splitlines()[-1], r"^\d+ steps: .*\d+ not run")

    def test_usage(self):
        for words in (["--driver", "nonsense"], ["--frist"], ["--first", "--rest"], ["--only", "nothing"],
                      ["--first", "--budget", "soon"]):
            with self.subTest(words=words):
                more = [] if words[0] == "--driver" else ["--driver", "softgpu"]
                status, output = self.run_checks(*more, *words)
                self.assertEqual(status, 2, output)
        status, output = self.run_checks("--driver", "/nowhere/libcuda.so.1", "--first")
        self.assertEqual(status, 5, output)
        status, output = self.run_checks("--first", "--driver")
        self.assertEqual(status, 2, output)
        # --driver counts wherever it stands.
        status, output = self.run_checks("--only", "jit", "--driver", "softgpu", "--results", "anywhere")
        self.assertEqual(status, 0, output)

    def test_a_folder_that_cannot_be_written(self):
        if os.getuid() == 0 and not self.user:
            self.skipTest("root can write everywhere")
        status, output = self.run_checks("--driver", "softgpu", "--first", folder=self.bundle)
        self.assertEqual(status, 5, output)
        self.assertIn("--results", output)


if __name__ == "__main__":
    gpu_bundle.main()
