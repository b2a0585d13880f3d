#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A CUDA program that does the same thing in every way that CUDA has for it: its limits hold in each."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from private_server import BUILD, ENV, SECONDS, Server  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
TENANT = os.path.join(BUILD, "tests/programs/tenant/tenant")
LIMIT = 64 << 20


class Limits(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop_well)

    def environment(self, **more):
        return {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": self.server.client, **more}

    def used(self, resource):
        rows = json.loads(self.server.ctl("--json", "clients").stdout)["clients"]
        self.assertEqual(len(rows), 1)
        return rows[0][resource]["used_bytes"]

    def fill(self, mode, resource, **limits):
        """Runs the program, and compares with the server's count whenever it has all that it may have."""
        full = 0
        with open(self.server.file("errors"), "w+", encoding="utf-8") as errors, \
                subprocess.Popen([TENANT, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                 env={**ENV, **self.environment(**limits)}) as program:
            self.addCleanup(program.kill)
            for line in program.stdout:
                found = re.fullmatch(r"full (\d+)\n", line)
                if not found:
                    self.assertEqual(line, "right\n")
                    break
                full += 1
                used = self.used(resource)
                self.assertGreaterEqual(used, int(found[1]))
                self.assertLessEqual(used, LIMIT)
                program.stdin.write("\n")
                program.stdin.flush()
            status = program.wait(SECONDS)
            errors.seek(0)
            self.assertEqual((status, line), (0, "right\n"), errors.read() + self.server.text())
        return full

    def test_device_memory_is_limited_in_every_way_to_allocate(self):
        self.assertEqual(self.fill("fill-device", "memory", GPUSHARE_MEMORY_LIMIT=str(LIMIT)), 9 * 3)

    def test_host_memory_is_limited_in_every_way_to_allocate(self):
        self.assertEqual(self.fill("fill-host", "host_memory", GPUSHARE_HOST_MEMORY_LIMIT=str(LIMIT)), 7 * 3)

    def launches(self, **limits):
        """Returns how many multiprocessors it is told of, and [those that a launch ran on] for each way."""
        ended = subprocess.run([TENANT, "launches"], capture_output=True, text=True, timeout=SECONDS, check=False,
                               env={**ENV, **self.environment(**limits)})
        self.assertEqual(ended.returncode, 0, ended.stderr + self.server.text())
        first, *lines = ended.stdout.splitlines()
        self.assertEqual(len(lines), 9 * 4)
        return int(first.split()[1]), {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}

    def test_multiprocessors_are_limited_in_every_way_to_launch(self):
        whole, everywhere = self.launches()
        part, bounded = self.launches(GPUSHARE_ACTIVE_THREAD_PERCENTAGE="25")
        self.assertGreater(part, 0)
        self.assertLess(part, whole // 3)
        for way, count in everywhere.items():
            with self.subTest(way=way):
                # Without the limit the same launch is on more, so that its blocks would have gone elsewhere.
                self.assertGreater(count, part)
                self.assertLessEqual(bounded[way], part)
                self.assertGreater(bounded[way], 0)


    def test_default_streams_wait_as_each_of_their_handles_says(self):
        ended = subprocess.run([TENANT, "handles"], capture_output=True, text=True, timeout=SECONDS, check=False, env={**ENV, **self.environment()})
        self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr[-2000:] + self.server.text())


class Straight(unittest.TestCase):
    def test_default_streams_wait_as_each_of_their_handles_says(self):
        for strict in ("0", "1"):
            with self.subTest(strict=strict):
                ended = subprocess.run([TENANT, "handles"], capture_output=True, text=True, timeout=SECONDS, check=False,
                                       env={**ENV, "LD_LIBRARY_PATH": SOFTGPU + ":" + LIBRARIES, "SOFTGPU_STRICT": strict})
                self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended.stderr[-2000:])

    def test_a_small_device_is_filled_in_every_way(self):
        ended = subprocess.run([TENANT, "fill-device"], input="\n" * 27, capture_output=True, text=True, timeout=SECONDS, check=False,
                               env={**ENV, "LD_LIBRARY_PATH": SOFTGPU + ":" + LIBRARIES, "SOFTGPU_MEMORY": str(LIMIT)})
        self.assertEqual((ended.returncode, ended.stdout.splitlines()[-1:]), (0, ["right"]), ended.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
