#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Names of clients that are commands to the terminal of whoever looks at them."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import private_server  # noqa: E402
from raw_client import RawClient  # noqa: E402


class Raw(str):
    """Goes over the wire as these very bytes."""

    def __new__(cls, data):
        self = super().__new__(cls, "raw")
        self.data = data
        return self

    def encode(self, *_):
        return self.data


class Names(unittest.TestCase):
    def test_nothing_of_a_name_is_a_control_character(self):
        with private_server.Server() as server:
            for sent, shown in (
                (b"caf\xc3\xa9", "caf\u00e9"),
                (b"\xc2\x9b31mC1", "??31mC1"),
                (b"\x9b31m8bit", "?31m8bit"),
                (b"\xc0\xaflong", "??long"),
                (b"cut\xe2\x80", "cut??"),
            ):
                client = RawClient(server.client)
                client.attach(name=Raw(sent))
                client.ask("memory_alloc", count=1)  # of a client that asks for nothing the log says nothing
                rows = json.loads(server.ctl("--json", "clients").stdout)["clients"]
                self.assertEqual(rows[-1]["name"], shown)
                self.assertIn(f"'{shown}'", server.text())
                client.close()
            client = RawClient(server.client)
            self.assertRaises(RuntimeError, client.attach, name=Raw(b"\x1b[31m"))
            client.close()


if __name__ == "__main__":
    unittest.main()
