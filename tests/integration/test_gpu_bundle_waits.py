#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# usual device: each verdict is that of a device whose calls wait only where a case asks for it
# timed: a step must see within 150 ms whether a call waits, and a thread that sleeps must wake within milliseconds
# light: its steps wait
"""The steps of the GPU bundle that time a call of the driver beside a kernel, on drivers whose calls wait and don't."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import gpu_bundle  # noqa: E402
from gpu_bundle import TOO_SLOW, BundleCase  # noqa: E402


class BundleWaits(BundleCase):
    def on_a_host_with_time(self, step, **options):
        """Runs a step again, five times at most, while it reports that the host was too busy for a verdict."""
        for _ in range(5):
            _, output, results = self.only(step, **options)
            if TOO_SLOW not in results[step]["verdict"]:
                return results
        return self.fail(f"five times {TOO_SLOW}: {output}")

    def test_unmapping_that_waits_and_that_does_not(self):
        results = self.on_a_host_with_time("blocks-memory-unmap", env={"SOFTGPU_UNMAP_WAITS": "1"})
        self.assertEqual(results["blocks-memory-unmap"]["outcome"], "false", results)
        self.assertIn("WAITS", results["blocks-memory-unmap"]["verdict"])
        self.assertGreater(results["blocks-memory-unmap"]["measures"]["beside_ms"]["value"], 100)
        _, output, results = self.only("blocks-memory-unmap")
        if TOO_SLOW not in results["blocks-memory-unmap"]["verdict"]:
            self.assertEqual(results["blocks-memory-unmap"]["outcome"], "held", output)
        # Nothing is deleted.
        earlier = [n for n in os.listdir(os.path.join(self.folder, "results")) if n.startswith("blocks-memory-unmap.json.")]
        self.assertTrue(earlier)
        with open(os.path.join(self.folder, "results", sorted(earlier)[-1]), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["outcome"], "false")

    def test_a_call_that_holds_up_launches(self):
        driver, env = self.broken("hold", "cuMemRelease")
        results = self.on_a_host_with_time("blocks-memory-release", driver=driver, env=env)
        _, output, more = self.only("blocks-event-create", driver=driver, env=env)
        results.update(more)
        held = results["blocks-memory-release"]
        self.assertEqual(held["outcome"], "false", output)
        self.assertIn("HOLDS UP", held["verdict"])
        self.assertGreater(held["measures"]["worst_launch_beside_ms"]["value"], 50)
        if TOO_SLOW not in results["blocks-event-create"]["verdict"]:
            self.assertEqual(results["blocks-event-create"]["outcome"], "held", output)

    def test_a_first_launch_that_waits_though_the_limit_was_raised_and_one_that_does_not(self):
        step = "blocks-first-launch-after-limit"
        env = {"SOFTGPU_CONTEXT_LOCK": "1", "SOFTGPU_DRAIN_PERCENT": "100", "SOFTGPU_DRAINS": "cuLaunchKernel"}
        results = self.on_a_host_with_time(step, env=env | {"SOFTGPU_LIMIT_RESERVES": "0"})
        self.assertEqual(results[step]["outcome"], "false", results)
        self.assertIn("WAITS", results[step]["verdict"])
        _, output, results = self.only(step, env=env)
        if TOO_SLOW not in results[step]["verdict"]:
            self.assertEqual(results[step]["outcome"], "held", output)


if __name__ == "__main__":
    gpu_bundle.main()
