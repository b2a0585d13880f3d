#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What holds for a client under the total of its user or its groups, wherever a program or a person reads it."""
import contextlib
import grp
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from configured_server import Case  # noqa: E402
from exposition import Exposition  # noqa: E402
from private_server import BUILD, ENV, SECONDS, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402
from survive_case import await_true  # noqa: E402

LIBRARIES = os.path.join(BUILD, "lib/gpushare")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
MIB = 1 << 20
UID, GID = os.getuid(), os.getgid()
OUT_OF_MEMORY = 2  # of CUresult


class Program:
    """A program that knows only CUDA."""

    def __init__(self, test, server, **more):
        env = {**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": server.client, **more}
        self.process = subprocess.Popen([PROGRAM, "takes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        self.test = test
        test.assertEqual(self.process.stdout.readline(), "ready\n")

    def take(self, mib=0):
        """Allocates as much. Returns the result, the size of the device's memory, and what of it is free, in MiB."""
        self.process.stdin.write(f"{mib}\n")
        self.process.stdin.flush()
        result, device, total, free = map(int, self.process.stdout.readline().split())
        self.test.assertEqual(device, total)
        self.test.assertEqual((total % MIB, free % MIB), (0, 0))
        return result, total // MIB, free // MIB

    def await_free(self, mib):
        """Freed memory is given back in a moment, when no work uses it."""
        end = time.monotonic() + SECONDS
        while (seen := self.take()[2]) != mib:
            self.test.assertLess(time.monotonic(), end, f"{seen} MiB are free")
            time.sleep(0.01)


class WithClients(Case):
    def attached(self, server, **wishes):
        client = RawClient(server.client)
        self.addCleanup(client.close)
        client.number = client.attach(**wishes)["client"]
        return client

    def ctl(self, it, *words):
        done = it.server.ctl("--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        json_check.check(f"admin-{words[0]}", answer)
        return answer


class Memory(WithClients):
    def left(self, client):
        info = client.ask("memory_query")
        return info["limit"] // MIB, (info["limit"] - info["used"]) // MIB

    @CHANGES
    def test_a_program_sees_what_its_users_total_leaves(self):
        with self.configured(f"users: [{{uid: {UID}, memory: {{limit: 64M}}}}]\n") as it:
            one = Program(self, it.server)
            self.assertEqual(one.take(), (0, 64, 64))
            other = self.attached(it.server)
            address = other.ask("memory_alloc", count=40 * MIB)["address"]
            self.assertEqual(one.take(), (0, 64, 24))
            self.assertEqual(one.take(16), (0, 64, 8))
            self.assertEqual(self.left(other), (64, 8))
            # What is shown is to be had, and no more.
            self.assertEqual(one.take(10), (OUT_OF_MEMORY, 64, 8))
            self.assertEqual(one.take(8), (0, 64, 0))
            other.ask("memory_free", address=address)
            one.await_free(40)
            # A limit of the program's own that is lower than the total is its size; what the total leaves may be less.
            small = Program(self, it.server, GPUSHARE_MEMORY_LIMIT="32M")
            self.assertEqual(small.take(), (0, 32, 32))
            self.assertEqual(one.take(30), (0, 64, 10))
            self.assertEqual(small.take(), (0, 32, 10))
            # Another total holds at once, also one below what is in use.
            self.ctl(it, "set", "user", str(UID), "total.memory=128M")
            self.assertEqual((one.take(), small.take()), ((0, 128, 74), (0, 32, 32)))
            self.ctl(it, "set", "user", str(UID), "total.memory=16M")
            self.assertEqual((one.take(), small.take()), ((0, 16, 0), (0, 16, 0)))
            self.assertEqual(one.take(2), (OUT_OF_MEMORY, 16, 0))

    def test_a_program_sees_what_others_leave_of_the_gpu(self):
        with self.configured("{}\n") as it:
            one = Program(self, it.server)
            result, size, free = one.take()
            self.assertEqual((result, free), (0, size))
            other = self.attached(it.server)
            address = other.ask("memory_alloc", count=40 * MIB)["address"]
            self.assertEqual(one.take(), (0, size, size - 40))
            # What is requested is held, and is its client's own.
            sure = self.attached(it.server, memory_request=24 * MIB)
            self.assertEqual(one.take(), (0, size, size - 64))
            self.assertEqual((self.left(sure), self.left(other)), ((size, size - 40), (size, size - 64)))
            # A limit is the size; what is free of it may be less.
            small = Program(self, it.server, GPUSHARE_MEMORY_LIMIT="32M")
            self.assertEqual(small.take(), (0, 32, 32))
            # What is shown is to be had, and no more.
            self.assertEqual(one.take(size - 62), (OUT_OF_MEMORY, size, size - 64))
            self.assertEqual(one.take(size - 74), (0, size, 10))
            self.assertEqual(small.take(), (0, 32, 10))
            self.assertEqual(one.take(10), (0, size, 0))
            self.assertEqual((small.take(), self.left(other)), ((0, 32, 0), (size, 0)))
            self.assertEqual(self.left(sure), (size, 24))
            other.ask("memory_free", address=address)
            one.await_free(40)
            self.assertEqual(small.take(), (0, 32, 32))

    def test_freed_memory_that_a_program_keeps_is_free_under_a_total(self):
        with self.configured(f"users: [{{uid: {UID}, memory: {{limit: 1G}}}}]\n") as it:
            done = subprocess.run([PROGRAM, "calls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  env={**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": it.server.client})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_memory_that_another_program_keeps_idle_is_free_under_their_total(self):
        with self.configured(f"users: [{{uid: {UID}, memory: {{limit: 256M}}}}]\n") as it:
            keeper = subprocess.Popen([PROGRAM, "keep"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": it.server.client})
            self.addCleanup(keeper.communicate)
            self.assertTrue(keeper.stdout.readline())
            row, = it.clients()
            kept = row["memory"]["used_bytes"]
            self.assertGreater(kept, 90 * MIB)
            one = Program(self, it.server)
            result, size, free = one.take()
            self.assertEqual((result, size), (0, 256))
            # All of it, but for what the other one uses.
            self.assertGreater(free, 256 - 8)
            self.assertEqual(one.take(free), (0, 256, 0))

    def test_memory_that_another_program_keeps_idle_is_free_on_the_gpu(self):
        with self.configured("{}\n") as it:
            keeper = subprocess.Popen([PROGRAM, "keep"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**ENV, "LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": it.server.client})
            self.addCleanup(keeper.communicate)
            self.assertTrue(keeper.stdout.readline())
            row, = it.clients()
            self.assertGreater(row["memory"]["used_bytes"], 90 * MIB)
            one = Program(self, it.server)
            result, size, free = one.take()
            self.assertEqual(result, 0)
            self.assertGreater(free, size - 8)
            # More than the other one would leave, and less than the driver keeps for itself.
            self.assertEqual(one.take(free - 40), (0, size, 40))

    @CHANGES
    def test_the_strictest_total_holds_and_what_is_requested_stays(self):
        text = f"users: [{{uid: {UID}, memory: {{limit: 64M}}, host_memory: {{limit: 8M}}}}]\ngroups: [{{gid: {GID}, memory: {{limit: 48M}}}}]\n"
        with self.configured(text) as it:
            sure = self.attached(it.server, memory_request=24 * MIB)
            other = self.attached(it.server)
            # A request is held as if it were used.
            self.assertEqual((self.left(sure), self.left(other)), ((48, 48), (48, 24)))
            other.ask("host_alloc", count=2 * MIB)
            info = sure.ask("memory_query")
            self.assertEqual((info["host_limit"], info["host_used"]), (8 * MIB, 2 * MIB))
            self.ctl(it, "set", "group", str(GID), "total.memory=16M")
            self.assertEqual((self.left(sure), self.left(other)), ((24, 24), (16, 0)))
            sure.ask("memory_alloc", count=24 * MIB)
            self.assertEqual(self.left(sure), (24, 0))
            granted = [client.ask("limits_query") for client in (sure, other)]
            self.assertEqual([one["memory_limit"] for one in granted], [24 * MIB, 16 * MIB])
            self.assertEqual([one["memory_request"] for one in granted], [24 * MIB, 0])


    def test_the_log_of_a_reload_has_the_new_totals(self):
        text = "clients: {{memory: {{limit: {0}M}}, time: {{limit: {1}%}}}}\nusers: [{{uid: {2}, memory: {{limit: {3}M}}, time: {{limit: {4}%}}}}]\n"
        with self.configured(text.format(512, 100, UID, 256, 50)) as it:
            client = self.attached(it.server)
            it.write(text.format(400, 90, UID, 128, 20))
            self.assertEqual(it.reload().returncode, 0)
            granted = client.ask("limits_query")
            self.assertEqual((granted["memory_limit"], granted["time_limit"]), (128 * MIB, 2000))
            line = [line for line in it.server.text().splitlines() if f"client {client.number} " in line][-1]
            self.assertIn("time 0% to 20%, device memory 0 B to 128 MiB", line)


class Lists(WithClients):
    """Two clients of a user with a total: one asks for nothing, and one for less of some."""
    RESOURCES = ("threads", "time", "memory", "host_memory")
    GRANTED = {"wide": (50, 40, 64 * MIB, 8 * MIB), "narrow": (50, 20, 32 * MIB, 8 * MIB)}

    @contextlib.contextmanager
    def shared(self):
        self.file = os.path.join(self.folder, "use.jsonl")
        text = (f"users:\n  - uid: {UID}\n    threads: {{limit: 50%}}\n    time: {{request: 30%, limit: 40%}}\n"
                f"    memory: {{limit: 64M}}\n    host_memory: {{limit: 8M}}\naccounting: {{file: {self.file}}}\n")
        with self.configured(text) as it:
            yield it, {"wide": self.attached(it.server, name="wide"),
                       "narrow": self.attached(it.server, name="narrow", time_limit=2000, memory_limit=32 * MIB)}

    def limits(self, row, which):
        return tuple(row[name]["limit"].get(f"{which}_percent", row[name]["limit"].get(f"{which}_bytes")) for name in self.RESOURCES)

    @CHANGES
    def test_the_lists_show_the_limit_in_force(self):
        with self.shared() as (it, clients):
            for rows in (self.ctl(it, "clients")["clients"], self.ctl(it, "get", "user", str(UID))["clients"]):
                self.assertEqual({row["name"]: self.limits(row, "granted") for row in rows}, self.GRANTED)
                self.assertEqual({row["name"]: self.limits(row, "asked") for row in rows},
                                 {"wide": (None, None, None, None), "narrow": (None, 20, 32 * MIB, None)})
                self.assertEqual({row["threads"]["multiprocessors"] for row in rows}, {64})
            for words in (("clients",), ("clients", "--wide"), ("get", "all"), ()):
                shown = it.server.ctl(*words).stdout
                row, = (line for line in shown.splitlines() if " wide " in line)
                self.assertIn("64 MiB", row)
                self.assertIn("50%" if words == () else "40 %", row)
                self.assertNotIn("100 %", shown)
            # What an administrator sets of a client stays its own, and shows when the total leaves it.
            wide = str(clients["wide"].number)
            for words, memory in ((("set", wide, "memory.limit=48M"), 48), (("set", "user", str(UID), "total.memory=16M"), 16),
                                  (("set", wide, "memory.limit=40M"), 16), (("set", "user", str(UID), "total.memory=128M"), 40)):
                self.ctl(it, *words)
                row, = self.ctl(it, "get", wide)["clients"]
                self.assertEqual((row["memory"]["limit"]["granted_bytes"], row["changed"]), (memory * MIB, ["memory.limit"]))
            self.ctl(it, "set", "user", str(UID), "total.time.limit=100%", "total.threads.limit=25%")
            rows = self.ctl(it, "clients")["clients"]
            self.assertEqual({row["name"]: self.limits(row, "granted")[:2] for row in rows}, {"wide": (25, 100), "narrow": (25, 20)})

    def test_a_client_is_told_the_limit_in_force(self):
        with self.shared() as (it, clients):
            for name, client in clients.items():
                told = client.ask("limits_query")
                self.assertEqual(tuple(told[f"{resource}_limit"] for resource in self.RESOURCES),
                                 tuple(value * 100 if value <= 100 else value for value in self.GRANTED[name]))
            done = it.server.info("--json", GPUSHARE_MEMORY_LIMIT="48M")
            self.assertEqual(done.returncode, 0, done.stderr)
            limits = json.loads(done.stdout)["limits"]
            self.assertEqual(self.limits(limits, "asked"), (None, None, 48 * MIB, None))
            self.assertEqual(self.limits(limits, "granted"), (50, 40, 48 * MIB, 8 * MIB))

    def test_metrics_have_the_limit_in_force_and_the_totals(self):
        with self.shared() as (it, clients):
            answer = self.ctl(it, "metrics")
            done = run(os.path.join(BUILD, "bin/gpushare-exporter"), "--once", "--socket", it.server.admin)
            self.assertEqual(done.returncode, 0, done.stderr)
            seen, gpu = Exposition(done.stdout), {"gpu": "0", "UUID": answer["devices"][0]["uuid"]}
            names = ("threads_limit_ratio", "time_limit_ratio", "memory_limit_bytes", "host_memory_limit_bytes")
            for name, client in clients.items():
                labels = {**gpu, "client": str(client.number), "uid": str(UID), "name": name}
                self.assertEqual(tuple(seen.one(f"gpushare_client_{metric}", **labels) for metric in names),
                                 tuple(value / 100 if value <= 100 else value for value in self.GRANTED[name]))
            self.assertEqual([seen.one(f"gpushare_user_{metric}", uid=str(UID), **gpu) for metric in names[:3]], [0.5, 0.4, 64 * MIB])
            # A total without a limit has no sample.
            it.write(f"users: [{{uid: {UID}, memory: {{limit: 25%}}}}]\n")
            self.assertEqual(it.reload().returncode, 0, it.server.text())
            user, = self.ctl(it, "metrics")["users"]
            whole = answer["devices"][0]["memory_bytes"]
            self.assertEqual([user[name] for name in ("threads_limit_percent", "time_limit_percent", "memory_limit_bytes")],
                             [None, None, whole // 4])
            done = run(os.path.join(BUILD, "bin/gpushare-exporter"), "--once", "--socket", it.server.admin)
            self.assertEqual(Exposition(done.stdout).of("gpushare_user_time_limit_ratio"), {})

    def test_metrics_have_the_totals_of_groups(self):
        text = f"groups:\n  - gid: {GID}\n    threads: {{limit: 50%}}\n    memory: {{limit: 64M}}\n  - gid: 4242\n    memory: {{limit: 1G}}\n"
        with self.configured(text) as it:
            self.assertEqual(self.ctl(it, "metrics")["groups"], [], "nobody is there")
            clients = [self.attached(it.server, memory_request=24 * MIB), self.attached(it.server)]
            clients[1].ask("memory_alloc", count=10 * MIB)
            answer = self.ctl(it, "metrics")
            self.assertEqual(answer["groups"], [{"device": 0, "gid": GID, "clients": 2, "threads_limit_percent": 50, "time_limit_percent": None,
                                                 "memory_limit_bytes": 64 * MIB, "memory_held_bytes": 34 * MIB}])
            self.assertEqual(answer["groups_left_out"], 0)
            self.assertEqual(self.ctl(it, "get", "group", str(GID))["total"]["memory"][0]["used_bytes"], 34 * MIB)
            done = run(os.path.join(BUILD, "bin/gpushare-exporter"), "--once", "--socket", it.server.admin)
            self.assertEqual(done.returncode, 0, done.stderr)
            seen, gpu = Exposition(done.stdout), {"gpu": "0", "UUID": answer["devices"][0]["uuid"]}
            names = ("clients", "memory_held_bytes", "memory_limit_bytes", "threads_limit_ratio")
            self.assertEqual([seen.one(f"gpushare_group_{metric}", gid=str(GID), **gpu) for metric in names], [2, 34 * MIB, 64 * MIB, 0.5])
            self.assertEqual(seen.of("gpushare_group_time_limit_ratio"), {})
            self.assertEqual(seen.one("gpushare_group_info", gid=str(GID), group=grp.getgrgid(GID).gr_name), 1)
            for client in clients:
                client.close()
            await_true(lambda: not self.ctl(it, "metrics")["groups"], it.server.text)

    def test_the_accounting_has_the_limit_in_force(self):
        def last():
            if not os.path.exists(self.file):
                return {}
            with open(self.file, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file.read().splitlines()]
            return {line["name"]: line for line in lines if line["last"]}

        with self.shared() as (_, clients):
            for client in clients.values():
                client.ask("memory_alloc", count=MIB)
                client.close()
            await_true(lambda: set(last()) == set(clients), lambda: f"{self.file} lacks a line")
            for name, line in last().items():
                json_check.check("accounting-line", line)
                granted = line["granted"]
                self.assertEqual(tuple(granted[member] for member in ("threads_percent", "time_percent", "memory_bytes", "host_memory_bytes")),
                                 self.GRANTED[name])
                self.assertEqual(granted["multiprocessors"], 64)


if __name__ == "__main__":
    unittest.main()
