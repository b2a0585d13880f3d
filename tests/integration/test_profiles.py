#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Some of the integration tests on the other devices that the software GPU can be: few multiprocessors,
little shared memory, an older compute capability, a driver without green contexts,
few hardware queues."""
import itertools
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
TESTS = ("test_limits", "test_client_api")
# Those of a group run side by side: more would leave the clients of each test too little of the CPU.
DEVICES = (("SOFTGPU_PROFILE=mig", "SOFTGPU_PROFILE=t4", "SOFTGPU_DRIVER_VERSION=12000"), ("SOFTGPU_PROFILE=h200", "SOFTGPU_PROFILE=h100", "SOFTGPU_QUEUES=8"))
# A client's window on such a device is 256 GiB, and ThreadSanitizer leaves a server 128 GiB of addresses.
TOO_LARGE = ("SOFTGPU_PROFILE=h200", "SOFTGPU_PROFILE=h100") if sanitizer.is_there("tsan") else ()


def start(test, device):
    softgpu = f"{device} {os.environ.get('TEST_SOFTGPU', '')}"
    return subprocess.Popen([os.path.join(BUILD, "tests/integration", test)], env=dict(os.environ, TEST_SOFTGPU=softgpu),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class OtherDevices(unittest.TestCase):
    def test_they_serve_as_the_usual_one_does(self):
        for test, group in itertools.product(TESTS, DEVICES):
            running = {device: start(test, device) for device in group if device not in TOO_LARGE}
            for device, process in running.items():
                said, _ = process.communicate()
                with self.subTest(device=device, test=test):
                    self.assertEqual(process.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()
