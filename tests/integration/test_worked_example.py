#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The worked example of docs/softgpu.md: what the accounts say of a kernel that computes."""
import os
import re
import sys
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from private_server import BUILD, SECONDS, Server, run  # noqa: E402

PAGE = os.path.join(HERE, "../../docs/softgpu.md")
USED = re.compile(r"used (\d+\.\d+) GPU seconds; launches: (\d+)")


class WorkedExample(unittest.TestCase):
    def played(self, server, command, repetitions):
        """(GPU seconds, launches) of the page's command, smaller."""
        words = re.sub(r"-r \d+", f"-r {repetitions}", command.replace("256x256", "96x96")).replace("m.png", server.file("m.png")).split()
        mark = len(server.text())
        done = run(os.path.join(BUILD, words[0].removeprefix("build/")), *words[1:], GPUSHARE_SOCKET=server.client)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.wait_log("GPU seconds", mark)
        seconds, launches = USED.search(server.text()[mark:]).groups()
        return float(seconds), int(launches)

    def test_accounts_grow_with_the_work(self):
        with open(PAGE, encoding="utf-8") as file:
            command, wall, used, launches, more, used_more = re.search(
                r"For example, `([^`]*)` took ([\d.]+) s on.*?used\s+([\d.]+) GPU seconds in (\d+) launches; with `-r (\d+)` it was ([\d.]+)\.",
                file.read(), re.S).groups()
        # The page's own numbers say what the text around them says.
        self.assertIn(f"-r {launches}", command)
        self.assertAlmostEqual(float(used_more) / float(used), int(more) / int(launches), delta=0.2)
        self.assertGreater(float(wall), 10 * float(used))
        with Server("--log-level", "info") as server:
            end = time.monotonic() + SECONDS
            while True:
                first, second = (self.played(server, command, n) for n in (launches, more))
                self.assertEqual((first[1], second[1]), (int(launches), int(more)))
                # Modelled time is CPU time, which a busy machine stretches by chance: wrong accounts stay wrong.
                if 1.5 < second[0] / first[0] < 2.7:
                    break
                self.assertLess(time.monotonic(), end, (first, second))


if __name__ == "__main__":
    unittest.main()
