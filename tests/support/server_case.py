# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Test cases that share one private server. They have helpers to ask it, and clients of their own
that they ask about. Every --json answer is checked against its schema."""
import contextlib
import json
import os
import unittest

import json_check
from private_server import Server
from raw_client import RawClient

NOBODY = 65534
# The overflow uid stands for every unmapped user, so it is never an administrator.
CHANGES = unittest.skipIf(os.getuid() == NOBODY, "the user who stands for everybody may only look")


class WithServer(unittest.TestCase):
    settings = {}  # of the Server

    @classmethod
    def setUpClass(cls):
        cls.server = Server(**cls.settings)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop_well()

    def ctl(self, *arguments, **env):
        return self.server.ctl(*arguments, **env)

    def json(self, command, *arguments, schema=None, status=0):
        result = self.ctl("--json", command, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        answer = json.loads(result.stdout)
        json_check.check(schema or f"admin-{command}", answer)
        return answer

    def client_row(self, number):
        return next((row for row in self.json("clients")["clients"] if row["client"] == number), None)

    @contextlib.contextmanager
    def attached(self, **wishes):
        client = RawClient(self.server.client)
        try:
            yield client, client.attach(**wishes)
        finally:
            client.close()
