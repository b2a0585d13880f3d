#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The configuration file, through the real server: what rules, profiles and ceilings grant,
what a reload changes and what it does not, and that the schema says what the server does."""
import contextlib
import getpass
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import json_check  # noqa: E402
from configured_server import Case  # noqa: E402
from private_server import BUILD, ENV, FOR_OTHER_USERS, GPUSHARE, GPUSHARED, SECONDS, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402

MIB = 1 << 20
OTHER_UID = 4713
UID, GIDS = os.getuid(), sorted({os.getgid(), *os.getgroups()})
EXAMPLE = os.path.join(HERE, "../../docs/gpushared.yaml")


def cgroup():
    """This process's control group, read here without the server's code."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for number, kind, path in lines:
        if number == "0" and not kind:
            return path
    return next((path for _, kind, path in lines if kind == "name=systemd"), None)


class Rules(Case):
    @CHANGES
    def test_rules_by_identity_give_their_limits(self):
        own = cgroup()
        text = f"""
clients:
  threads: {{limit: 75%}}
gpus:
  - {{gpu: 0, memory: {{limit: 96M}}}}
profiles:
  small: {{memory: {{limit: 16M}}, priority: 5}}
  half: {{fraction: 0.5}}
rules:
  - match: {{uid: {UID}}}
    memory: {{limit: 64M}}
  - match: {{uid: {UID + 1}}}
    memory: {{limit: 2M}}
  - match: {{gid: {GIDS[-1]}}}
    host_memory: {{limit: 32M}}
  - match: {{gid: 4294967294}}
    host_memory: {{limit: 1M}}
  - match: {{name: "nb-*"}}
    profile: small
  - match: {{name: "free"}}
    except: {{uid: {UID}}}
    memory: {{limit: 4M}}
"""
        if own:
            text += f"  - match: {{cgroup: {json.dumps(own)}, name: in-group}}\n    priority: 9\n"
            text += "  - match: {cgroup: /no/such/group, name: in-group}\n    priority: 11\n"
        with self.configured(text) as it:
            told = it.granted(name="any")
            self.assertEqual(told["memory_limit"], 64 * MIB)
            self.assertEqual(told["host_memory_limit"], 32 * MIB)
            self.assertEqual(told["threads_limit"], 7500)
            self.assertEqual(told["priority"], 0)
            told = it.granted(name="nb-7")
            self.assertEqual((told["memory_limit"], told["priority"]), (16 * MIB, 5))
            self.assertEqual(it.granted(name="nb")["memory_limit"], 64 * MIB)
            self.assertEqual(it.granted(name="free")["memory_limit"], 64 * MIB)
            if own:
                self.assertEqual(it.granted(name="in-group")["priority"], 9)
            # A client's wish tightens a limit, and never loosens one.
            told = it.granted(memory_limit=8 * MIB, threads_limit=9000, priority=1)
            self.assertEqual((told["memory_limit"], told["threads_limit"], told["priority"]), (8 * MIB, 7500, 1))
            told = it.granted(memory_limit=512 * MIB, profile="small")
            self.assertEqual((told["memory_limit"], told["priority"]), (16 * MIB, 5))

    @CHANGES
    def test_granted_limits_are_enforced(self):
        with self.configured("clients:\n  memory: {limit: 6M}\n  host_memory: {limit: 1M}\n") as it:
            client = RawClient(it.server.client)
            with contextlib.closing(client):
                client.attach()
                client.ask("memory_alloc", count=4 * MIB)
                with self.assertRaisesRegex(RuntimeError, "device memory limit of this client"):
                    client.ask("memory_alloc", count=4 * MIB)
                with self.assertRaisesRegex(RuntimeError, "pinned host memory limit of this client"):
                    client.ask("host_alloc", count=2 * MIB)
            # A client that set its own limit can raise it; the others must ask the administrator.
            device = {"memory_limit": 2 * MIB, "sources_memory_limit": 4}
            host = {"host_memory_limit": 4096, "sources_host_memory_limit": 2}
            for wish, kind, remedy in (({}, "memory_alloc", "ask the administrator for a higher limit .*yaml:2"),
                                       (device, "memory_alloc", "comes from GPUSHARE_FRACTION"),
                                       (device, "host_alloc", "ask the administrator for a higher limit"),
                                       (host, "host_alloc", "comes from GPUSHARE_PINNED_HOST_MEM_LIMIT")):
                client = RawClient(it.server.client)
                with contextlib.closing(client):
                    client.attach(**wish)
                    with self.assertRaisesRegex(RuntimeError, "of this client: .*" + remedy):
                        client.ask(kind, count=8 * MIB)
            it.write("")
            self.assertEqual(it.reload().returncode, 0)
            client = RawClient(it.server.client)
            with contextlib.closing(client):
                client.attach()
                with self.assertRaisesRegex(RuntimeError, "free some: there is no more"):
                    client.ask("memory_alloc", count=1 << 40)

    def test_profiles_by_environment(self):
        with self.configured("profiles:\n  small: {memory: {limit: 16M}}\n") as it:
            env = {**ENV, "GPUSHARE_SOCKET": it.server.client}
            result = run(GPUSHARE, "--json", "info", **{**env, "GPUSHARE_PROFILE": "small"})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(str(16 * MIB), result.stdout)
            result = run(GPUSHARE, "info", **{**env, "GPUSHARE_PROFILE": "smal"})
            self.assertEqual(result.returncode, 1)
            self.assertIn('no profile "smal" (GPUSHARE_PROFILE)', result.stderr)
            result = run(GPUSHARE, "info", **{**env, "GPUSHARE_PROFILE": ""})
            self.assertIn("GPUSHARE_PROFILE", result.stderr)
            self.assertNotEqual(result.returncode, 0)

    def test_a_profile_of_a_server_without_a_file_is_refused(self):
        with self.configured("") as it:
            with self.assertRaisesRegex(RuntimeError, "no profile"):
                it.granted(profile="small")


class Requests(Case):
    """Requests: each key reaches the client, and a request that does not fit is refused with the sum."""

    @CHANGES
    def test_every_key_arrives(self):
        shares = ("threads_request", "threads_limit", "time_request", "time_limit", "memory_limit", "mode", "priority")
        none = {"threads_request": 0, "threads_limit": 10000, "time_request": 0, "time_limit": 10000, "mode": 0,
                "priority": 0}
        keys = {"threads: {request: 12.5%}": {"threads_request": 1250},
                "threads: {request: 0.1, limit: 30%}": {"threads_request": 1000, "threads_limit": 3000},
                "time: {request: 20%}": {"time_request": 2000}, "time: {limit: 0.75}": {"time_limit": 7500},
                "time: {request: 10%, limit: 20%}": {"time_request": 1000, "time_limit": 2000},
                "fraction: 0.25": {"time_request": 2500, "memory_limit": 0.25},
                "replicas: 4": {"threads_limit": 2500, "memory_limit": 0.25}, "priority: 5": {"priority": 5},
                "memory: {limit: 12.5%}": {"memory_limit": 0.125}, "mode: fair": {"mode": 2}, "mode: strict": {"mode": 1},
                "mode: turns": {"mode": 3}}
        with self.configured("") as it:
            whole = it.granted()["memory_limit"]
            for key, wanted in keys.items():
                places = ["gpus: [{gpu: 0, %s}]\n"]
                if "mode" not in key:
                    places += ["clients: {%s}\n", "rules: [{%s}]\n", "profiles: {p: {%s}}\nrules: [{profile: p}]\n"]
                for place in places:
                    it.write(place % key)
                    self.assertEqual(it.reload().returncode, 0)
                    told = {name: it.granted()[name] for name in shares}
                    wanted_here = {**none, "memory_limit": 1, **wanted}
                    wanted_here["memory_limit"] = int(whole * wanted_here["memory_limit"])
                    self.assertEqual(told, wanted_here, place % key)

    @CHANGES
    def test_the_administrators_values_lower_the_clients_wish(self):
        with self.configured("profiles: {none: {threads: {request: 0}, time: {request: 0}}}\n"
                             "rules: [{match: {name: given}, threads: {request: 20%}, time: {request: 30%}}]\n") as it:
            for wishes, wanted in (({}, (0, 0)), ({"threads_request": 5000, "time_request": 4000}, (5000, 4000)),
                                   ({"name": "given"}, (2000, 3000)),
                                   ({"name": "given", "threads_request": 5000, "time_request": 100}, (2000, 100)),
                                   ({"name": "given", "threads_limit": 1000}, (1000, 3000)),
                                   ({"profile": "none", "threads_request": 5000, "time_request": 4000}, (0, 0))):
                told = it.granted(**wishes)
                self.assertEqual((told["threads_request"], told["time_request"]), wanted, wishes)

    def test_a_client_asks_for_guarantees_of_memory(self):
        with self.configured("gpus: [{gpu: 0}]\nprofiles: {none: {memory: {request: 0}, host_memory: {request: 0}}}\n") as it:
            whole = it.granted()["memory_limit"]
            it.wait_until_alone()
            most = whole // 4 * 3
            first = RawClient(it.server.client)
            with contextlib.closing(first):
                told = first.attach(memory_request=most, host_memory_request=MIB)
                self.assertEqual((told["memory_request"], told["host_memory_request"]), (most, MIB))
                seen = it.clients()[0]
                self.assertEqual(seen["memory"]["request"], {"asked_bytes": most, "granted_bytes": most})
                self.assertEqual(seen["host_memory"]["request"], {"asked_bytes": MIB, "granted_bytes": MIB})
                # No other client gets the memory, neither by a request nor by allocating it.
                with self.assertRaisesRegex(RuntimeError, "does not fit.*guaranteed to other clients"):
                    it.granted(memory_request=whole // 2)
                other = RawClient(it.server.client)
                with contextlib.closing(other):
                    other.attach()
                    with self.assertRaisesRegex(RuntimeError, "in use or guaranteed"):
                        other.ask("memory_alloc", count=whole // 2)
                told = it.granted(memory_request=most, host_memory_request=MIB, profile="none")
                self.assertEqual((told["memory_request"], told["host_memory_request"]), (0, 0))
                # A request is never above its limit.
                self.assertEqual(it.granted(memory_request=2 * MIB, memory_limit=MIB)["memory_request"], MIB)

    @CHANGES
    def test_sums_that_do_not_fit_are_refused_with_the_arithmetic(self):
        text = """
gpus: [{gpu: 0, mode: fair}]
rules:
  - {match: {name: first}, threads: {request: 60%}, time: {request: 70%}, memory: {request: 70%}}
  - {match: {name: threads}, threads: {request: 50%}}
  - {match: {name: time}, time: {request: 40%}}
  - {match: {name: memory}, memory: {request: 40%}}
"""
        with self.configured(text) as it:
            first = RawClient(it.server.client)
            with contextlib.closing(first):
                whole = first.attach(name="first")["memory_limit"]
                with self.assertRaisesRegex(RuntimeError, "groups of .* multiprocessors of their own"):
                    it.granted(name="threads")
                with self.assertRaisesRegex(RuntimeError, "70 %; with the 40 % of this request that makes 110 %"):
                    it.granted(name="time")
                with self.assertRaisesRegex(RuntimeError, "guaranteed to other clients, together .*, and there are"):
                    it.granted(name="memory")
                other = RawClient(it.server.client)
                with contextlib.closing(other):
                    other.attach(name="other")
                    other.ask("memory_alloc", count=whole * 3 // 10 // (2 * MIB) * 2 * MIB)
                    with self.assertRaisesRegex(RuntimeError, "device memory of all clients together"):
                        other.ask("memory_alloc", count=2 * MIB)
                    first.ask("memory_alloc", count=whole * 7 // 10 // (2 * MIB) * 2 * MIB)
            for name in ("threads", "time", "memory"):
                it.wait_until_alone()
                it.granted(name=name)

    @CHANGES
    def test_the_environments_words(self):
        with self.configured("") as it:
            env = {**ENV, "GPUSHARE_SOCKET": it.server.client}
            whole = it.granted()["memory_limit"]

            def limits(**variables):
                result = run(GPUSHARE, "--json", "info", **{**env, **variables})
                self.assertEqual(result.returncode, 0, result.stderr)
                return json.loads(result.stdout)["limits"]

            told = limits(GPUSHARE_FRACTION="0.25")
            self.assertEqual(told["memory"]["limit"]["granted_bytes"], whole // 4)
            self.assertEqual(told["time"]["request"]["granted_percent"], 25)
            self.assertEqual(told["time"]["limit"]["granted_percent"], 100)
            self.assertEqual((told["time"]["mode"], told["time"]["enforced"]), ("concurrent", False))
            told = limits(GPUSHARE_THREADS_REQUEST="12.5%", GPUSHARE_TIME_REQUEST="0.1", GPUSHARE_TIME_LIMIT="40%")
            self.assertEqual(told["threads"]["request"]["granted_percent"], 12.5)
            self.assertEqual(told["time"]["request"]["granted_percent"], 10)
            self.assertEqual(told["time"]["limit"]["granted_percent"], 40)
            self.assertNotIn("less is granted", run(GPUSHARE, "info", **{**env, "GPUSHARE_TIME_REQUEST": "40%"}).stdout)
            it.write("gpus: [{gpu: 0, mode: strict}]\nclients: {threads: {request: 10%}}\n")
            self.assertEqual(it.reload().returncode, 0)
            told = run(GPUSHARE, "info", **{**env, "GPUSHARE_THREADS_REQUEST": "40%", "GPUSHARE_TIME_REQUEST": "40%"}).stdout
            self.assertIn("\nthreads.request: less is granted than was asked for: ", told)
            self.assertEqual(told.count("less is granted"), 1)
            told = limits(GPUSHARE_FRACTION="0.5")
            self.assertEqual((told["time"]["mode"], told["time"]["enforced"]), ("strict", True))
            result = run(GPUSHARE, "info", **{**env, "GPUSHARE_FRACTION": "0.5", "GPUSHARE_TIME_LIMIT": "40%"})
            self.assertIn("GPUSHARE_FRACTION requests 50%, and GPUSHARE_TIME_LIMIT limits it to 40%", result.stderr)

    def test_the_servers_own_environment_is_default_and_ceiling(self):
        variables = {"GPUSHARE_FRACTION": "0.5", "GPUSHARE_THREADS_REQUEST": "20%", "GPUSHARE_TIME_LIMIT": "80%",
                     "GPUSHARE_MEMORY_REQUEST": "12.5%", "GPUSHARE_HOST_MEMORY_REQUEST": "3M"}
        with self.configured("", env=variables) as it:
            told = it.granted()
            self.assertEqual((told["threads_request"], told["time_request"], told["time_limit"]), (2000, 5000, 8000))
            self.assertEqual((told["memory_request"], told["host_memory_request"]), (told["memory_limit"] // 4, 3 * MIB))
            told = it.granted(memory_request=MIB)
            self.assertEqual((told["memory_request"], told["host_memory_request"]), (MIB, 3 * MIB))
            told = it.granted(threads_request=3000, time_request=1000, time_limit=9000)
            self.assertEqual((told["threads_request"], told["time_request"], told["time_limit"]), (2000, 1000, 8000))

    @CHANGES
    def test_the_servers_environment_says_how_gpus_are_shared_where_the_file_does_not(self):
        variables = {"GPUSHARE_MODE": "fair", "GPUSHARE_LEASE": "10ms"}
        with self.configured("", env=variables) as it:
            self.assertEqual(it.granted()["mode"], 2)
            status = json.loads(it.server.ctl("--json", "status").stdout)
            self.assertEqual(status["devices"][0]["schedule"]["lease_seconds"], 0.01)
            for text, mode in (("gpus: [{gpu: 0, mode: strict}]\n", 1), ("gpus: [{gpu: 0, lease: 1s}]\n", 2), ("", 2)):
                it.write(text)
                self.assertEqual(it.reload().returncode, 0)
                self.assertEqual(it.granted()["mode"], mode, text)

    def test_the_servers_own_limits_have_the_names_of_the_dialect(self):
        for variables, memory in (({"GPUSHARE_THREADS_LIMIT": "50%", "GPUSHARE_MEMORY_LIMIT": "64M"}, lambda whole: 64 * MIB),
                                  ({"GPUSHARE_THREADS_LIMIT": "50%", "GPUSHARE_MEMORY_LIMIT": "12.5%", "GPUSHARE_FRACTION": "0.5"},
                                   lambda whole: whole // 8)):
            with self.configured("", env=variables) as it:
                status = it.server.ctl("--json", "status").stdout
                whole = json.loads(status)["devices"][0]["memory_bytes"]
                for told in (it.granted(), it.granted(memory_limit=whole, threads_limit=9000)):
                    self.assertEqual((told["threads_limit"], told["memory_limit"]), (5000, memory(whole)))

    @CHANGES
    def test_nvidias_block(self):
        with self.configured("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n") as it:
            quarter = it.granted()
            self.assertEqual((quarter["threads_limit"], quarter["mode"]), (2500, 0))
            it.write("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n")
            self.assertEqual(it.reload().returncode, 0)
            told = it.granted()
            self.assertEqual((told["threads_limit"], told["mode"], told["time_request"]), (10000, 2, 0))
            self.assertEqual(told["memory_limit"], 4 * quarter["memory_limit"])
            it.write("sharing:\n  timeSlicing:\n    failRequestsGreaterThanOne: true\n")
            self.assertIn(":3: failRequestsGreaterThanOne: true is not supported", json.loads(it.reload().stdout)["text"])


class Totals(Case):
    def come_back(self, client, count):
        end = time.monotonic() + SECONDS
        while True:
            try:
                client.ask("memory_alloc", count=count)
                return
            except RuntimeError:
                self.assertLess(time.monotonic(), end, "the memory of the client that left was not given back")

    @CHANGES
    def test_a_users_clients_share_one_limit_to_the_byte(self):
        text = "users:\n  - {uid: %u, memory: {limit: %s}, host_memory: {limit: 2M}}\n"
        with self.configured(text % (UID, "12M")) as it:
            one, two = RawClient(it.server.client), RawClient(it.server.client)
            with contextlib.closing(one), contextlib.closing(two):
                one.attach()
                two.attach()
                first = one.ask("memory_alloc", count=8 * MIB)["address"]
                two.ask("memory_alloc", count=4 * MIB)
                for client in (one, two):
                    with self.assertRaisesRegex(RuntimeError, f"of all clients of user {UID} together: 12 MiB of 12 MiB"):
                        client.ask("memory_alloc", count=1)
                two.ask("host_alloc", count=2 * MIB)
                with self.assertRaisesRegex(RuntimeError, f"pinned host memory limit of all clients of user {UID}"):
                    one.ask("host_alloc", count=4096)
                it.write(text % (UID, "16M"))
                self.assertEqual(it.reload().returncode, 0)
                two.ask("memory_alloc", count=4 * MIB)
                with self.assertRaisesRegex(RuntimeError, "16 MiB of 16 MiB"):
                    two.ask("memory_alloc", count=1)
                # Freeing memory and disconnecting return before the charge is given back.
                one.ask("memory_free", address=first)
                self.come_back(two, 8 * MIB)
                two.close()
                self.come_back(one, 16 * MIB)

    @CHANGES
    def test_a_total_is_set_while_clients_run(self):
        def ctl(*words, schema, status=0):
            result = it.server.ctl("--json", *words)
            self.assertEqual(result.returncode, status, result.stderr)
            answer = json.loads(result.stdout)
            json_check.check(schema, answer)
            return answer

        with self.configured("users:\n  - {memory: {limit: 12M}}\n") as it:
            user = ("user", str(UID))
            one = RawClient(it.server.client)
            with contextlib.closing(one):
                one.attach()
                one.ask("memory_alloc", count=12 * MIB)
                with self.assertRaisesRegex(RuntimeError, f"of all clients of user {UID} together"):
                    one.ask("memory_alloc", count=1)
                total = ctl("set", *user, "total.memory=16M", "total.host_memory=2M", schema="admin-set")["total"]
                self.assertEqual(total["user"], UID)
                self.assertEqual(total["memory"], [{"gpu": 0, "limit_bytes": 16 * MIB, "used_bytes": 12 * MIB, "limited_by": "administrator", "saved": False}])
                self.assertEqual(total["host_memory"], {"limit_bytes": 2 * MIB, "used_bytes": 0, "limited_by": "administrator", "saved": False})
                one.ask("memory_alloc", count=4 * MIB)
                one.ask("host_alloc", count=2 * MIB)
                with self.assertRaisesRegex(RuntimeError, "16 MiB of 16 MiB"):
                    one.ask("memory_alloc", count=1)
                with self.assertRaisesRegex(RuntimeError, f"pinned host memory limit of all clients of user {UID}"):
                    one.ask("host_alloc", count=4096)
                (client,) = ctl("get", *user, schema="admin-get")["clients"]
                self.assertEqual(client["memory"]["used_bytes"], 16 * MIB)
                text = it.server.ctl("get", *user).stdout
                self.assertRegex(text, rf"user {UID} +memory of GPU 0 +- +16 MiB +administrator +- +- +16 MiB\n")
                self.assertRegex(text, rf"user {UID} +pinned host memory +- +2 MiB +administrator +- +- +2 MiB\n")
                self.assertIn("CLIENT", text)
                # The totals of its groups count the client too; the stricter total holds.
                answer = ctl("set", f"group:{GIDS[-1]}", "total.memory.limit=50%", schema="admin-set")
                self.assertNotIn("clients", answer)
                self.assertEqual(answer["total"]["group"], GIDS[-1])
                self.assertEqual(answer["total"]["memory"][0]["used_bytes"], 16 * MIB)
                ctl("set", *user, "total.memory=100%", schema="admin-set")
                one.ask("memory_alloc", count=64 * MIB)
                ctl("set", "group", str(GIDS[-1]), "total.memory=8M", schema="admin-set")
                with self.assertRaisesRegex(RuntimeError, f"of all clients of group {GIDS[-1]} together: 80 MiB of 8 MiB"):
                    one.ask("memory_alloc", count=1)
                self.assertIn("two commands", it.server.ctl("set", *user, "total.memory=1G", "threads=5%").stderr)
                self.assertIn("total.host_memory=", it.server.ctl("set", "group", "5", "threads=5%").stderr)
                ctl("set", *user, "total.memory=much", schema="admin-error", status=1)
                nobody = ctl("set", "user", "65534", "total.memory=1G", schema="admin-error", status=1)
                self.assertEqual(nobody["error"], "not_found")
                total = ctl("set", *user, "total.memory=default", schema="admin-set")["total"]
                self.assertEqual(total["memory"], [{"gpu": 0, "limit_bytes": 12 * MIB, "used_bytes": 80 * MIB,
                                                    "limited_by": "configuration", "saved": False}])
                self.assertIn(f"user {UID}, limit in total by uid {UID} (pid ", it.server.text())
            it.wait_until_alone()
            # No client is attached: the next one gets the new limit.
            ctl("set", "group", str(GIDS[-1]), "total.memory=100%", schema="admin-set")
            ctl("set", *user, "total.memory=6M", schema="admin-set")
            self.assertIn("memory of GPU 0", it.server.ctl("get", *user).stdout)
            one = RawClient(it.server.client)
            with contextlib.closing(one):
                one.attach()
                with self.assertRaisesRegex(RuntimeError, "0 B of 6 MiB"):
                    one.ask("memory_alloc", count=8 * MIB)
                # The file's value is in force again.
                it.write("users:\n  - {memory: {limit: 20M}}\n")
                self.assertEqual(it.reload().returncode, 0)
                self.assertIn(f"user {UID}: the total of device memory that an administrator set no longer holds", it.server.text())
                one.ask("memory_alloc", count=20 * MIB)
                with self.assertRaisesRegex(RuntimeError, "20 MiB of 20 MiB"):
                    one.ask("memory_alloc", count=1)

    @CHANGES
    def test_a_groups_members_share_one_limit(self):
        text = f"groups:\n  - {{gid: {GIDS[-1]}, memory: {{limit: 4M}}}}\n  - {{gid: 4294967294, memory: {{limit: 2M}}}}\n"
        with self.configured(text) as it:
            one, two = RawClient(it.server.client), RawClient(it.server.client)
            with contextlib.closing(one), contextlib.closing(two):
                one.attach()
                two.attach()
                one.ask("memory_alloc", count=4 * MIB)
                with self.assertRaisesRegex(RuntimeError, f"of all clients of group {GIDS[-1]} together"):
                    two.ask("memory_alloc", count=1)

    def test_a_client_is_told_its_multiprocessors_when_a_total_of_threads_changes(self):
        with self.configured("clients: {}\n") as it:
            client = RawClient(it.server.client)
            with contextlib.closing(client):
                number = client.attach()["client"]

                def multiprocessors():
                    rows = json.loads(it.server.ctl("--json", "get", str(number)).stdout)["clients"]
                    self.assertEqual(rows[0]["threads"]["multiprocessors"], client.ask("limits_query")["multiprocessors"])
                    return rows[0]["threads"]["multiprocessors"]

                for limit, wanted in (("25%", 32), ("50%", 64), ("configured", 132)):
                    result = it.server.ctl("set", "user", str(UID), f"total.threads.limit={limit}")
                    self.assertEqual((result.returncode, multiprocessors()), (0, wanted), result.stderr)
                # A change that is refused as a whole leaves the number as it is.
                result = it.server.ctl("set", "user", str(UID), "total.threads.limit=25%", "total.threads.request=50%")
                self.assertEqual((result.returncode, multiprocessors()), (1, 132))
                it.write(f"users: [{{uid: {UID}, threads: {{limit: 25%}}}}]\n")
                self.assertEqual((it.reload().returncode, multiprocessors()), (0, 32))

    @CHANGES
    def test_a_control_groups_share_is_set_while_clients_run(self):
        def ctl(*words):
            answer = json.loads(it.server.ctl("--json", *words).stdout)
            json_check.check(f"admin-{words[0]}", answer)
            return answer

        def time_of(path):
            return ctl("get", "cgroup", path)["total"]["time"][0]

        with self.configured("gpus: [{gpu: 0, mode: fair}]\ncgroups: [{cgroup: /elsewhere, time: {limit: 10%}}]\n") as it:
            one = RawClient(it.server.client)
            with contextlib.closing(one):
                one.attach()
                self.assertEqual(time_of("/")["clients"], 0)
                self.assertEqual(time_of("/elsewhere")["limit_percent"], 10)
                ctl("set", "cgroup", "/", "total.time.request=30%", "total.time.limit=60%")
                row = time_of("/")
                self.assertEqual((row["request_percent"], row["limit_percent"], row["limited_by"], row["clients"]),
                                 (30, 60, "administrator", 1))
                self.assertEqual(row["one_client_at_a_time_seconds"], 0)
                shown = it.server.ctl("get", "cgroup:/").stdout
                self.assertRegex(shown, r"cgroup / +time of GPU 0 +30 % +60 % +administrator +1 +0 % +-")
                self.assertNotIn("memory", shown)
                for words, said in ((("total.memory=1G",), "none of total.threads= or total.time="), (("threads=25%",), "none of")):
                    refused = it.server.ctl("set", "cgroup", "/", *words)
                    self.assertEqual(refused.returncode, 2)
                    self.assertIn(said, refused.stderr)
                self.assertIn("not the path of a control group", it.server.ctl("get", "cgroup", "a").stderr)
                ctl("set", "cgroup", "/", "total.time.request=configured", "total.time.limit=configured")
                row = time_of("/")
                self.assertEqual((row["request_percent"], row["limit_percent"], row["clients"]), (None, None, 0))


class Reload(Case):
    @CHANGES
    def test_a_new_file_applies_to_new_clients_and_disconnects_none(self):
        with self.configured("clients:\n  memory: {limit: 64M}\n") as it:
            client = RawClient(it.server.client)
            with contextlib.closing(client):
                client.attach()
                client.ask("memory_alloc", count=32 * MIB)
                work = subprocess.Popen([os.path.join(BUILD, "examples/vector-add")], text=True,
                                        env={**ENV, "GPUSHARE_SOCKET": it.server.client}, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
                try:
                    for limit in (40, 16):
                        it.write(f"clients:\n  memory: {{limit: {limit}M}}\nprofiles: {{a: {{}}}}\nusers: [{{uid: 1, memory: {{limit: 1G}}}}]\n")
                        result = it.reload()
                        self.assertEqual(result.returncode, 0, result.stderr)
                        answer = json.loads(result.stdout)
                        json_check.check("admin-reload", answer)
                        self.assertEqual((answer["file"], answer["profiles"], answer["rules"], answer["users"]), (it.path, 1, 0, 1))
                        # vector-add may be attached, or have left.
                        self.assertIn(answer["changed_clients"], (1, 2))
                        self.assertEqual(answer["changed_settings"], 0)
                        self.assertEqual(it.granted()["memory_limit"], limit * MIB)
                    it.write("clients:\n  memory: {limit: 24M}\n")
                    self.assertIn("has been read again", it.hang_up())
                    self.assertEqual(it.granted()["memory_limit"], 24 * MIB)
                    output = work.communicate(timeout=SECONDS)[0]
                    self.assertEqual(work.returncode, 0, output)
                finally:
                    work.kill()
                    work.wait()
                # The attached client keeps its memory, and can't allocate more.
                told = client.ask("memory_query")
                self.assertGreaterEqual(told["used"], 32 * MIB)
                self.assertEqual(told["limit"], 24 * MIB)
                with self.assertRaisesRegex(RuntimeError, "device memory limit"):
                    client.ask("memory_alloc", count=4 * MIB)

    def test_info_names_the_profiles_and_the_owners_of_totals(self):
        with self.configured("profiles: {small: {memory: {limit: 32M}}, own: {priority: 1}}\nrules: [{profile: small}]\n"
                             "users: [{memory: {limit: 48M}, time: {request: 25%, limit: 50%}}]\n") as it:
            answer = json.loads(it.server.info("--json", GPUSHARE_PROFILE="own").stdout)
            json_check.check("gpushare-info", answer)
            self.assertEqual((answer["profiles"], answer["more_owners"]), (["small", "own"], False))
            self.assertEqual(answer["owners"], [
                {"name": f"user {os.getuid()}", "scheduled": True, "time_request_percent": 25, "time_limit_percent": 50,
                 "threads_request_percent": None, "threads_limit_percent": None, "memory_limit_bytes": 48 * MIB,
                 "memory_used_bytes": 0, "host_memory_limit_bytes": None, "host_memory_used_bytes": None}])
            text = it.server.info().stdout
            self.assertIn("profiles that hold for this client: small\n", text)
            self.assertRegex(text, rf"user {os.getuid()} +this client's +25 to 50 % +- +0 B of 48 MiB +-\n")

    @CHANGES
    def test_a_new_file_changes_only_the_values_that_differ(self):
        text = "clients:\n  threads: {limit: %s}\n  memory: {limit: %s}\n  priority: %u\n"
        with self.configured(text % ("50%", "64M", 1)) as it:
            client = RawClient(it.server.client)
            with contextlib.closing(client):
                number = client.attach()["client"]
                before = client.ask("limits_query")
                self.assertEqual((before["threads_limit"], before["priority"]), (5000, 1))
                result = it.server.ctl("set", str(number), "memory=8M")
                self.assertEqual(result.returncode, 0, result.stderr)
                it.write(text % ("100%", "64M", 2))
                self.assertEqual(it.reload().returncode, 0)
                end = time.monotonic() + SECONDS
                while client.ask("limits_query")["threads_limit"] != 10000:
                    self.assertLess(time.monotonic(), end, "the threads stayed as they were")
                after = client.ask("limits_query")
                self.assertGreater(after["multiprocessors"], before["multiprocessors"])
                self.assertEqual((after["priority"], after["memory_limit"]), (2, 8 * MIB))

    @CHANGES
    def test_requests_and_modes_change_with_work_in_flight_or_not_at_all(self):
        text = """
gpus: [{gpu: 0, mode: %s, lease: 20ms}]
rules:
  - {match: {name: a}, threads: {request: %s}, time: {request: %s}}
  - {match: {name: b}, threads: {request: %s}, time: {request: %s}}
"""
        with self.configured(text % ("concurrent", "60%", "30%", "30%", "60%")) as it:
            env = {**ENV, "GPUSHARE_SOCKET": it.server.client}
            a, b = RawClient(it.server.client), RawClient(it.server.client)
            shares = ("mode", "threads_request", "time_request")
            work = None
            with contextlib.closing(a), contextlib.closing(b):
                a.attach(name="a")
                b.attach(name="b")
                for mode, number, good in (("fair", 2, ("30%", "70%", "60%", "20%")), ("strict", 1, ("60%", "10%", "30%", "90%")),
                                           ("turns", 3, ("10%", "50%", "90%", "50%"))):
                    work = subprocess.Popen([os.path.join(BUILD, "examples/nbody")], text=True, env=env,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
                    try:
                        it.write(text % (mode, *good))
                        result = it.reload()
                        self.assertEqual(result.returncode, 0, result.stdout)
                        before = [[client.ask("limits_query")[name] for name in shares] for client in (a, b)]
                        percent = [100 * int(value[:-1]) for value in good]
                        self.assertEqual(before, [[number, *percent[:2]], [number, *percent[2:]]])
                        # The requests of threads don't fit; the mode and the other values would.
                        it.write(text % ("concurrent", "60%", "1%", "60%", "1%"))
                        result = it.reload()
                        self.assertEqual(result.returncode, 1, result.stdout)
                        self.assertRegex(json.loads(result.stdout)["text"], "stays as it was: client [0-9]+: threads: .* makes")
                        after = [[client.ask("limits_query")[name] for name in shares] for client in (a, b)]
                        self.assertEqual(after, before)
                        self.assertEqual(it.granted()["mode"], number)
                        output = work.communicate(timeout=SECONDS)[0]
                        self.assertEqual(work.returncode, 0, output)
                    finally:
                        work.kill()
                        work.wait()
                # Mode turns does not look at requests of time; strict can't keep these.
                it.write(text % ("turns", "10%", "60%", "10%", "60%"))
                self.assertEqual(it.reload().returncode, 0)
                it.write(text % ("strict", "10%", "60%", "10%", "60%"))
                self.assertIn("120 %", json.loads(it.reload().stdout)["text"])
                self.assertEqual(a.ask("limits_query")["mode"], 3)

    @CHANGES
    def test_settings_that_are_not_the_files_are_shown_and_go_back(self):
        def ctl(*words):
            answer = json.loads(it.server.ctl("--json", *words).stdout)
            json_check.check(f"admin-{words[0]}", answer)
            return answer

        def drift():
            (gpu,), (device,) = ctl("get", "gpu", "0")["gpus"], ctl("status")["devices"]
            self.assertEqual((gpu["changed"], gpu["configured"]), (device["changed"], device["configured"]))
            self.assertEqual((gpu["configured"]["mode"], gpu["configured"]["lease_seconds"]), ("strict", 0.1))
            return gpu["changed"]

        with self.configured("gpus: [{gpu: 0, mode: strict, lease: 100ms}]\n") as it:
            self.assertEqual(drift(), [])
            self.assertNotIn("configuration says", it.server.ctl("status").stdout)
            for back in (("mode=default", "lease=configured", "watchdog_limit=default"), ("mode=configured", "lease=100ms", "watchdog_limit=10s")):
                ctl("set", "gpu", "0", "mode=turns", "lease=default", "watchdog_limit=0")
                self.assertEqual(it.reload().returncode, 0)
                self.assertEqual(drift(), ["mode", "lease", "watchdog_limit"], "the files agree")
                for words in (("status",), ("status", "--wide"), ("get", "gpu", "0")):
                    text = it.server.ctl(*words).stdout
                    self.assertIn("GPU 0: mode is turns, and the configuration says strict\n", text)
                    self.assertIn("GPU 0: lease is 250ms, and the configuration says 100ms\n", text)
                    self.assertIn("GPU 0: watchdog_limit is 0, and the configuration says 10s\n", text)
                ctl("set", "gpu", "0", *back)
                self.assertEqual(drift(), [])

    @CHANGES
    def test_what_an_administrator_has_set_of_a_client_is_shown_and_goes_back(self):
        def ctl(*words, ok=True):
            answer = json.loads(it.server.ctl("--json", *words).stdout)
            json_check.check(f"admin-{words[0]}" if answer["ok"] else "admin-error", answer)
            self.assertEqual(answer["ok"], ok, answer)
            return answer

        def row(number):
            return ctl("get", number)["clients"][0]

        text = "clients: {memory: {limit: 32M}, priority: 3, kernel_time_limit: 9s}\nprofiles: {wide: {threads: {limit: 75%}}}\n"
        with self.configured(text) as it:
            one, two = RawClient(it.server.client), RawClient(it.server.client)
            with contextlib.closing(one), contextlib.closing(two):
                first = str(one.attach(threads_limit=5000, time_request=4000)["client"])
                second = str(two.attach(profile="wide")["client"])
                before = row(first), row(second)
                self.assertEqual([row["changed"] for row in before], [[], []])
                self.assertNotIn("administrator", it.server.ctl("get", first).stdout)
                ctl("set", "user", str(UID), "threads=25%", "memory=16M", "memory.request=8M", "priority=5")
                ctl("set", first, "time.request=10%", "kernel_time_limit=3s")
                self.assertEqual(row(second)["changed"], ["threads.limit", "memory.request", "memory.limit", "priority"])
                self.assertEqual(row(first)["changed"], ["threads.limit", "time.request", "memory.request", "memory.limit", "priority", "kernel_time_limit"])
                words = f"client {second}: an administrator has set threads.limit, memory.request, memory.limit, priority\n"
                for command in (("get", second), ("clients", "--wide"), ("get", "user", str(UID))):
                    self.assertIn(words, it.server.ctl(*command).stdout)
                    self.assertIn("NAME=configured", it.server.ctl(*command).stdout)
                clients = {str(client["client"]): client["changed"] for client in ctl("clients")["clients"]}
                self.assertEqual(clients[second], row(second)["changed"])
                # One value, then all, each client to its own: of what it asked for, of its profile, and of the file.
                ctl("set", second, "priority=configured")
                self.assertEqual((row(second)["priority"], row(second)["changed"]), (3, ["threads.limit", "memory.request", "memory.limit"]))
                ctl("set", "user", str(UID), "threads=configured", "memory=configured", "memory.request=configured", "priority=configured")
                self.assertEqual(row(second), before[1])
                self.assertEqual(row(first)["changed"], ["time.request", "kernel_time_limit"])
                ctl("set", first, "time.request=configured", "kernel_time_limit=configured")
                end = time.monotonic() + SECONDS
                while row(first) != before[0]:  # its own request rises when others' have been looked at
                    self.assertLess(time.monotonic(), end, (row(first), before[0]))
                    time.sleep(0.05)
                # After a reload the new file's word is what it goes back to.
                ctl("set", first, "memory=16M", "threads.request=12%", "threads=25%")
                it.write(text.replace("32M", "24M").replace("wide", "narrow"))
                self.assertEqual(it.reload().returncode, 0)
                self.assertEqual(row(first)["memory"]["limit"]["granted_bytes"], 24 * MIB)
                self.assertEqual(row(first)["changed"], ["threads.request", "threads.limit"])
                ctl("set", first, "fraction=0.5")
                ctl("set", first, "fraction=configured", "threads.request=configured", "threads=configured")
                self.assertEqual((row(first)["memory"]["limit"]["granted_bytes"], row(first)["changed"]), (24 * MIB, []))
                self.assertIn("\"wide\"", ctl("set", second, "threads=configured", ok=False)["text"])
                # A request above a limit that goes back is refused whole.
                ctl("set", first, "threads=100%", "threads.request=60%")
                self.assertIn("above its threads.limit", ctl("set", first, "threads=configured", ok=False)["text"])
                self.assertEqual(row(first)["threads"]["limit"]["granted_percent"], 100)

    @CHANGES
    def test_a_reset_gives_up_all_that_an_administrator_has_set(self):
        text = f"clients: {{memory: {{limit: 32M}}, priority: 3}}\nusers: [{{uid: {UID}, memory: {{limit: 48M}}}}]\n"

        def ctl(*words):
            answer = json.loads(it.server.ctl("--json", *words).stdout)
            json_check.check(f"admin-{words[0]}", answer)
            return answer

        def total():
            return ctl("get", "user", str(UID))["total"]

        with self.configured(text) as it:
            client, other = RawClient(it.server.client), RawClient(it.server.client)
            with contextlib.closing(client), contextlib.closing(other):
                told = client.attach(threads_limit=5000, time_limit=6000)
                other.attach()
                number = str(told["client"])
                before = ctl("get", number)["clients"], total(), ctl("get", "gpu", "0")["gpus"]
                ctl("set", number, "threads=25%", "time.request=10%", "memory.limit=16M", "memory.request=8M", "host_memory=1M",
                    "priority=5", "kernel_time_limit=3s")
                ctl("set", "user", str(UID), "total.memory=20M", "total.host_memory=4M")
                ctl("set", "gpu", "0", "mode=fair", "quantum=3s")
                changed = ctl("get", number)["clients"], total(), ctl("get", "gpu", "0")["gpus"]
                self.assertEqual(it.reload().returncode, 0)
                self.assertEqual((ctl("get", number)["clients"], total(), ctl("get", "gpu", "0")["gpus"]), changed)
                # Limits that do not fit change nothing.
                it.write("gpus: [{gpu: 0, mode: strict}]\nclients: {threads: {request: 100%}}\n")
                self.assertIn("that makes 24: ask for 8 at most", it.server.ctl("reload", "--reset").stderr)
                self.assertEqual((ctl("get", number)["clients"], total(), ctl("get", "gpu", "0")["gpus"]), changed)
                it.write(text)
                self.assertTrue(ctl("reload", "--reset")["ok"])
                self.assertEqual((ctl("get", number)["clients"], total(), ctl("get", "gpu", "0")["gpus"]), before)
                self.assertIn("reload --reset asked for by uid", it.server.text())
                # The log says once what the client has in the end, and agrees with what is shown.
                lines = [line for line in it.server.text().splitlines()
                         if f"client {number} " in line and "was given by the configuration" in line]
                self.assertEqual(len(lines), 1, lines)
                for part in ("threads 0% to 50%", "time 0% to 60%", "device memory 0 B to 32 MiB", "priority 3", "kernel_time_limit none"):
                    self.assertIn(part, lines[0])
                said = rf"user {UID}, %s in total by uid {UID} \(pid \d+\): %s\n\Z"
                for word, kind, text in (("total.time.request=10%", "request", "time 10%"),
                                         ("total.time=configured", "limit", "time no limit, as configured"),
                                         ("total.memory=25%", "limit", "device memory 25 % of each GPU's"),
                                         ("total.memory=configured", "limit", "device memory 48 MiB, as configured"),
                                         ("total.time.request=configured", "request", "time no request, as configured")):
                    ctl("set", "user", str(UID), word)
                    self.assertRegex(it.server.text(), said % (kind, text))
                with self.assertRaisesRegex(RuntimeError, "of 32 MiB"):
                    client.ask("memory_alloc", count=33 * MIB)
                client.ask("memory_alloc", count=30 * MIB)

    @CHANGES
    def test_a_broken_file_changes_nothing(self):
        good = "clients:\n  memory: {limit: 32M}\nprofiles: {a: {}}\n"
        with self.configured(good) as it:
            for text, words in (("clients:\n  memory: {limit: 1M}\nrulez: []\n", ":3: unknown key"),
                                ("clients:\n  memory: {limit: 1M}\n  time: {limit: 50}\n", ":3: time.limit \"50\" must be"),
                                ("clients:\n  memory: {limit: 1M, request: 2M}\n", ":2: memory: the request 2 MiB exceeds"),
                                ("clients: {memory: {limit: 1M}}\ngpus:\n  - gpu: 7\n", ":3: there is no GPU"),
                                ("clients: [\n", "not YAML")):
                it.write(text)
                result = it.reload()
                self.assertEqual(result.returncode, 1, result.stdout)
                answer = json.loads(result.stdout)
                json_check.check("admin-error", answer)
                self.assertIn(it.path + ":", answer["text"])
                self.assertIn(words, answer["text"])
                self.assertIn(words, it.hang_up())
                self.assertEqual(it.granted(profile="a")["memory_limit"], 32 * MIB)
            os.unlink(it.path)
            gone = it.reload()
            self.assertEqual(gone.returncode, 1)
            self.assertIn(it.path + ": the file is gone, and the configuration from it is in force",
                          json.loads(gone.stdout)["text"])
            self.assertEqual(it.granted()["memory_limit"], 32 * MIB)
            it.write("")
            self.assertEqual(it.reload().returncode, 0)
            self.assertGreater(it.granted()["memory_limit"], 32 * MIB)

    def test_a_broken_file_is_no_start(self):
        path = os.path.join(self.folder, "broken.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("clients:\n  priority: high\n")
        for named, words in ((path, path + ":2: priority must be"), (path + "x", path + "x: there is no such file")):
            result = run(GPUSHARED, "--driver", "softgpu", "--config", named, "--socket", os.path.join(self.folder, "c"),
                         "--admin-socket", os.path.join(self.folder, "a"))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)
            checked = run(GPUSHARED, "--check-config", "--config", named)
            self.assertEqual(checked.returncode, 1)
            self.assertIn(words, checked.stderr)
            self.assertEqual(checked.stdout, "")

    def closed(self):
        """A file that only root can read, and the words that make a command another user's. The build folder may be closed to that user."""
        path = os.path.join(self.folder, "closed.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("{}\n")
        os.chmod(path, 0)
        os.chmod(self.folder, 0o755)
        return path, {"user": OTHER_UID, "group": OTHER_UID, "extra_groups": []} if UID == 0 else {}

    def test_a_file_that_the_server_may_not_read_names_its_user(self):
        path, other = self.closed()
        program = shutil.copy(GPUSHARED, self.folder)
        checked = subprocess.run([program, "--check-config", "--config", path], env={**ENV, **FOR_OTHER_USERS}, capture_output=True,
                                 text=True, check=False, timeout=SECONDS, **other)
        self.assertEqual(checked.returncode, 1)
        for words in (path, "Permission denied", f"the user {OTHER_UID if UID == 0 else getpass.getuser()}, as whom gpushared runs"):
            self.assertIn(words, checked.stderr)

    @unittest.skipUnless(UID == 0, "only root can ask for another user")
    def test_root_is_told_of_a_file_that_the_service_may_not_read(self):
        path, _ = self.closed()
        passwd = os.path.join(self.folder, "passwd")
        with open(passwd, "w", encoding="utf-8") as file:
            file.write(f"root:x:0:0::/:/bin/sh\ngpushare:x:{OTHER_UID}:{OTHER_UID}::/:/bin/false\n")
        within = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', passwd]
        if run(*within, "true").returncode:
            self.skipTest("this process may not mount")
        for mode, told in ((0, True), (0o640, True), (0o644, False)):
            os.chmod(path, mode)
            checked = run(*within, GPUSHARED, "--check-config", "--config", path)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertIn("no mistake found", checked.stdout)
            self.assertEqual(f"{path}: the service's user gpushare can't read it: Permission denied" in checked.stderr, told, checked.stderr)
        # Where there is no such user, nobody can tell.
        os.chmod(path, 0)
        if "gpushare" not in {user.pw_name for user in pwd.getpwall()}:
            self.assertEqual(run(GPUSHARED, "--check-config", "--config", path).stderr, "")

    def test_users_whose_requests_do_not_fit_together_are_told_before_one_is_refused(self):
        path = os.path.join(self.folder, "sums.yaml")
        for mode, resource, told in (("fair", "time", True), ("concurrent", "time", False), ("concurrent", "threads", True)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"gpus:\n  - {{gpu: 0, mode: {mode}}}\nusers:\n"
                           f"  - {{uid: {UID}, {resource}: {{request: 70%}}}}\n  - {{uid: {OTHER_UID}, {resource}: {{request: 50%}}}}\n")
            words = f"{path}: the users that it names (2) request 120 % of the {resource} together, more than 100 %"
            checked = run(GPUSHARED, "--check-config", "--config", path)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertIn(words, checked.stderr, "which GPUs there are is not known")
            self.assertIn("no mistake found", checked.stdout)
            with Server("--config", path) as server:
                self.assertEqual(words in server.text(), told, server.text())
                if UID:
                    continue  # only root has clients of two users
                with server.work("first", 1000, 1):
                    if told:
                        with self.assertRaises(AssertionError):
                            server.work("second", 1000, 1, user=OTHER_UID)
                        server.wait_log(f"{resource}: the requests of others")
                        self.assertRegex(server.text(), rf"uid {OTHER_UID}\) is disconnected: no_room: .*{resource}: the requests of others")
                    else:
                        with server.work("second", 1000, 1, user=OTHER_UID):
                            pass

    def test_a_file_is_checked_without_a_server_or_a_gpu(self):
        example = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../docs/gpushared.yaml"))
        checked = run(GPUSHARED, "--driver", "/nowhere/libcuda.so.1", "--check-config", "--config", example)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertTrue(checked.stdout.startswith(example + ": no mistake found"))


# JSON is YAML, so each document here is given to the JSON Schema and to the server: both must accept it, or both refuse it.
FITS = [{}, {"clients": None}, {"clients": {"memory": {"limit": "1.5G"}}}, {"clients": {"memory": {"limit": 1000000}, "host_memory": {"limit": "0"}}},
        {"clients": {"memory": {"limit": 0.25}, "threads": {"limit": "12.5%"}, "host_memory": {"limit": 0}}},
        {"clients": {"memory": {"request": "10%"}, "threads": {"request": 0, "limit": "50%"}, "time": {"request": "0%"}}},
        {"clients": {"time": {"request": "25%", "limit": 0.5}, "host_memory": {"request": "1M"}}},
        {"gpus": [{"gpu": 0, "mode": "strict", "lease": "short", "precision": "2.5%", "quantum": "1.5s", "window_limit": "0.5s", "local_memory": "4K"}]},
        {"gpus": [{"gpu": 0, "departed_time_limit": "5s", "watchdog_warning": "0", "watchdog_limit": 0}]},
        {"gpus": [{"gpu": 0, "mode": "turns", "lease": 3}]}, {"gpus": [{"gpu": 0, "mode": "fair", "lease": "50ms"}]},
        {"users": [{"uid": "1000-1999", "memory": {"limit": "50%"}}, {"host_memory": {"limit": "1G"}}]},
        {"groups": [{"gid": [1, 2], "memory": {"limit": "8G"}}]}, {"users": None, "groups": None, "sharing": None},
        {"sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}], "renameByDefault": False}}},
        {"sharing": {"timeSlicing": {"resources": [{"replicas": 10, "devices": "all"}]}}},
        {"clients": {"fraction": "0.5"}}, {"profiles": {"a.b": {"replicas": 4}}}, {"gpus": [{"gpu": 0, "mode": "concurrent"}]},
        {"clients": {"threads": {"limit": "100.0%"}, "memory": {"limit": "0.1G"}, "time": {"limit": "0.01%"}}},
        {"clients": {"memory": {"limit": "101b"}, "host_memory": {"request": "0%", "limit": "1b"}, "threads": {"limit": "1.0"}}},
        {"gpus": [{"gpu": "0", "priority": 1}]}, {"users": [{"uid": ["5"], "memory": {"limit": "1G"}}]},
        {"groups": [{"threads": {"limit": "1%"}}]}, {"cgroups": [{"cgroup": "/a", "time": {"request": "50%"}}]},
        {"rules": [{"match": {"uid": "root"}, "except": {"gid": ["root", 7]}}]},
        {"rules": [{}]}, {"rules": [{"match": {"uid": [1, "2-3"], "cgroup": "/a", "name": ["x*"]}, "except": {"gid": 5}}]}]
FITS_NOT = [[], {"client": {}}, {"gpus": [{"gpu": 0, "watchdog_limit": 5}]}, {"gpus": [{"gpu": 0, "departed_time_limit": "5"}]},
            *({"clients": {"memory": {"limit": text}}} for text in ("25", "500", "999999", 999999, "100b", "0M", "0%", "101%", "1.5", "0.0")),
            *({"clients": {"threads": {"limit": text}}} for text in ("0%", "0.00%", "100.01%", "101%", "0.0000", "1.5", "1")),
            {"clients": {"host_memory": {"limit": "500"}}}, {"clients": {"host_memory": {"limit": 500}}},
            {"clients": {"host_memory": {"limit": "1.5"}}}, {"clients": {"time": {"request": "0.0"}}}, {"clients": {"memory": "1G"}}, {"clients": {"memory": {"limit": "1Q"}}},
            {"clients": {"memory": {"limit": 0}}}, {"clients": {"threads": {"limit": 25}}},
            {"clients": {"threads": {"limit": "25"}}}, {"clients": {"threads": {"request": 25}}},
            {"clients": {"time": {"limit": "25"}}}, {"clients": {"time": {"limit": 0}}}, {"clients": {"time": "25%"}},
            {"clients": {"host_memory": {"request": "0%%"}}}, {"clients": {"memory": {"request": "1Q"}}},
            {"users": {}}, {"users": [{"gid": 1}]}, {"users": [{"uid": "1-"}]},
            {"groups": [{"gid": []}]}, {"users": [{"memory": {"request": "1G"}}]}, {"sharing": []},
            {"sharing": {"mps": {}}}, {"sharing": {"mps": {"resources": []}}},
            {"sharing": {"mps": {"resources": [{"replicas": 0}]}}},
            {"sharing": {"mps": {"resources": [{"replicas": 2}], "renameByDefault": True}}},
            {"sharing": {"mps": {"resources": [{"replicas": 2}]}, "timeSlicing": {"resources": [{"replicas": 2}]}}},
            {"sharing": {"mps": {"resources": [{"name": "nvidia.com/mig-1g.5gb", "replicas": 2}]}}},
            {"sharing": {"mps": {"resources": [{"replicas": 2, "rename": "x"}]}}}, {"clients": {"priority": 1001}}, {"clients": {"priority": "1"}},
            {"clients": {"host_memory": {"limit": "50%"}}}, {"clients": {"fraction": 1.5}}, {"clients": {"replicas": 0}},
            {"gpus": {}}, {"gpus": [{"mode": "concurrent"}]}, {"gpus": [{"gpu": 0, "mode": "lottery"}]},
            {"gpus": [{"gpu": 0, "lease": 250}]}, {"gpus": [{"gpu": 0, "lease": "long-ish"}]},
            {"gpus": [{"gpu": 0, "precision": 5}]}, {"gpus": [{"gpu": 0, "quantum": 30}]}, {"profiles": {"a b": {}}}, {"profiles": []},
            {"rules": [{"match": {"uid": []}}]}, {"rules": [{"uid": 1}]},
            {"rules": [{"match": {"cgroup": "a"}}]}, {"rules": [{"except": {"name": "x"}}]}, {"rules": [{"except": {}}]},
            {"rules": [{"match": {"name": ""}}]}]


class TheSchema(Case):
    @CHANGES
    def test_the_check_agrees_with_the_server(self):
        with self.configured("") as it:
            for value in FITS + FITS_NOT:
                it.write(json.dumps(value))
                result = it.reload()
                self.assertEqual(result.returncode, 0 if value in FITS else 1, f"{value}: {result.stdout}")
                if value in FITS:
                    json_check.check("gpushared-config", value)
                    continue
                with self.assertRaises(json_check.Mismatch, msg=value):
                    json_check.check("gpushared-config", value)

    @CHANGES
    def test_the_example_is_right(self):
        with open(EXAMPLE, encoding="utf-8") as file:
            text = file.read()
        with self.configured(text) as it:
            self.assertEqual(it.granted(profile="small", name="x")["threads_limit"], 2500)
            self.assertLessEqual(it.granted(name="notebook-1")["memory_limit"], 256 * MIB)
        with contextlib.suppress(ImportError):
            import yaml
            json_check.check("gpushared-config", yaml.safe_load(text))


if __name__ == "__main__":
    unittest.main()
