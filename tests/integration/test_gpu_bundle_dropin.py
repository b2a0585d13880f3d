#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# usual device: the bundle brings its own driver, and is run with an empty environment, as on a machine with a GPU
# light: its steps wait
# long: a program that is late is given its thirty seconds
"""The bundle's steps with programs that know only CUDA, and what they say of programs that do not do well."""
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import gpu_bundle  # noqa: E402
from gpu_bundle import BundleCase  # noqa: E402

PACKAGES = {"dropin-torch": "torch", "dropin-triton": "triton", "dropin-cuda-core": "cuda"}


class Dropin(BundleCase):
    SAMPLES = {"good": "#!/bin/sh\necho Test passed\n", "waived": "#!/bin/sh\necho no second device\nexit 2\n"}

    def test_all_of_them_by_one_name(self):
        status, output, results = self.only("dropin")
        self.assertEqual(set(results) - {"results"}, {"dropin-programs", "dropin-heat", "dropin-heat-python", "dropin-pace", "dropin-samples",
                                                      *PACKAGES}, output)
        for name, package in PACKAGES.items():
            if importlib.util.find_spec(package) is None:
                self.assertEqual(results.pop(name)["outcome"], "not run", output)
                self.assertEqual(status, 4, output)
        self.assertEqual({name: result["outcome"] for name, result in results.items()}, dict.fromkeys(results, "passed"), output)
        self.assertRegex(results["dropin-heat"]["verdict"], "^one had its illegal address; two beside it verified, and the next one$")
        self.assertEqual(results["dropin-samples"]["verdict"], "1 of 2 ended with 0, 1 waived")
        measures = set(results["dropin-pace"]["measures"])
        self.assertEqual(measures, {f"{mode}_{way}" for mode in ("launch", "sync", "pinned", "pageable", "allocate", "start")
                                    for way in ("client", "straight")})


class Wrong(BundleCase):
    SAMPLES = {"good": "#!/bin/sh\necho Test passed\n", "bad": "#!/bin/sh\necho Test failed\nexit 1\n",
               "late": "#!/bin/sh\nexec sleep 60\n"}

    def test_programs_that_fail_are_counted(self):
        status, output, results = self.only("dropin-samples")
        self.assertEqual((status, results["dropin-samples"]["outcome"]), (1, "not met"), output)
        self.assertEqual(results["dropin-samples"]["verdict"],
                         "1 of 3 ended with 0, 0 waived, 1 took over 30 s, 1 ended otherwise")
        with open(os.path.join(self.folder, "results/dropin-samples.log"), encoding="utf-8") as file:
            self.assertIn("sample bad: exit status 1: Test failed", file.read())

    def test_a_driver_without_the_call_fails_the_programs(self):
        driver, env = self.broken("lack", "cuStreamBatchMemOp")
        status, output, results = self.only("dropin-programs", "dropin-heat", driver=driver, env=env)
        self.assertEqual((status, {result["outcome"] for result in results.values()}), (1, {"failed"}), output)


if __name__ == "__main__":
    gpu_bundle.main()
