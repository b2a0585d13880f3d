#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: a loop that always has a request must rest for a fifth of the time
"""Where a server keeps its state, a client with large records leaves others the server's loop."""
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from raw_client import RawClient  # noqa: E402
from service_manager import Manager  # noqa: E402

LARGE = 16384  # allocations, of which each is a part of a record


class Rest(unittest.TestCase):
    def test_clients_whose_records_are_large_leave_others_the_loop(self):
        """Such a client's requests cost the server a millisecond each, in which it serves nobody. Beside another user it
        may ask less often."""
        with Manager() as manager:
            large = RawClient(manager.client)
            self.addCleanup(large.close)
            large.attach()
            for _ in range(LARGE // 32):
                serials = [large.serial + 1 + i for i in range(32)]
                for large.serial in serials:
                    large.socket.send(large.schema.pack("memory_alloc", large.serial, {"count": 1}))
                for _ in serials:
                    self.assertEqual(large.receive()[0], "memory_allocated")

            def busy():
                """The part of the time in which the server's loop ran or waited for a processor, while it always has a request."""
                def loop():
                    with open(f"/proc/{manager.process.pid}/task/{manager.process.pid}/schedstat", encoding="utf-8") as file:
                        return sum(map(int, file.read().split()[:2])) / 1e9

                def send():
                    large.serial += 1
                    large.socket.send(large.schema.pack("memory_query", large.serial, {}))

                for _ in range(32):
                    send()
                begin, before, used = time.monotonic(), loop(), manager.cpu_seconds()
                while manager.cpu_seconds() < used + 0.5:
                    self.assertEqual(large.receive()[0], "memory_info")
                    send()
                part = (loop() - before) / (time.monotonic() - begin)
                for _ in range(32):
                    large.receive()
                return part

            alone = busy()
            os.chmod(manager.folder, 0o755)
            os.chmod(manager.client, 0o666)
            os.seteuid(65534)
            try:
                other = RawClient(manager.client)
            finally:
                os.seteuid(0)
            self.addCleanup(other.close)
            other.attach()
            beside = busy()
            print(f"the loop was busy for {alone:.2f} of the time, and for {beside:.2f} beside another user")
            self.assertGreater(alone, 0.9)
            self.assertLess(beside, 0.8)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("only root can connect as another user")
        sys.exit(77)
    unittest.main(verbosity=2)
