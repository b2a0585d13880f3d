#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl config check and config show: a mistake has file, line and remedy without a server; what is shown is a file that
gpushared reads, and it says what is in force, whatever said so. And get all, which shows the same of clients and users."""
import contextlib
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import GPUSHARECTL, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES, NOBODY  # noqa: E402

UID = os.getuid()
FILE = f"""
clients: {{host_memory: {{limit: 32M}}}}
gpus:
  - {{gpu: 0, mode: fair, memory: {{limit: 50%}}, threads: {{request: 25%}}}}
profiles:
  small: {{memory: {{limit: 16M}}, priority: 5}}
rules:
  - match: {{uid: [4001, 5000-5999], name: "~"}}
    except: {{gid: 4294967000}}
    profile: small
  - {{match: {{name: "nb-*"}}, fraction: 0.5}}
users:
  - {{uid: {UID}, memory: {{limit: 40%}}, host_memory: {{limit: 48M}}}}
cgroups: [{{cgroup: /batch.slice, time: {{limit: 50%}}}}]
sharing: {{mps: {{resources: [{{name: nvidia.com/gpu, replicas: 2}}]}}}}
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Check(Case):
    def test_files(self):
        good, bad = self.write("good.yaml", FILE), self.write("bad.yaml", "clients:\n  memory: {limit: much}\n")
        done = run(GPUSHARECTL, "config", "check", good)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        self.assertIn(f"{good}: no mistake found", done.stdout)
        done = run(GPUSHARECTL, "config", "check", bad)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"^gpusharectl: {bad}:2: .*memory.*much.*4G.*\n$")
        done = run(GPUSHARECTL, "config", "check", os.path.join(self.folder, "absent.yaml"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent.yaml", done.stderr)

    def test_json(self):
        good, bad = self.write("good.yaml", "{}\n"), self.write("bad.yaml", "clients: [\n")
        done = run(GPUSHARECTL, "--json", "config", "check", good)
        answer = json.loads(done.stdout)
        json_check.check("admin-config-check", answer)
        self.assertEqual((done.returncode, answer["file"], answer["warnings"]), (0, good, []))
        done = run(GPUSHARECTL, "--json", "config", "check", bad)
        answer = json.loads(done.stdout)
        json_check.check("admin-error", answer)
        self.assertEqual((done.returncode, answer["error"]), (1, "invalid_value"))
        self.assertRegex(answer["text"], rf"^{bad}:[12]: ")

    def test_warnings(self):
        much = self.write("much.yaml", "users:\n  - {uid: [1, 2], time: {request: 60%}, threads: {request: 60%}}\n")
        done = run(GPUSHARECTL, "--json", "config", "check", much)
        answer = json.loads(done.stdout)
        json_check.check("admin-config-check", answer)
        self.assertEqual((done.returncode, done.stderr, len(answer["warnings"])), (0, "", 2))
        for warning, resource in zip(answer["warnings"], ("threads", "time")):
            self.assertTrue(warning.startswith(f"{much}: the users that it names (2) request 120 % of the {resource} together"), warning)
        self.assertTrue(answer["text"].startswith(f"{much}: no mistake found"), answer["text"])
        done = run(GPUSHARECTL, "config", "check", much)
        self.assertEqual((done.returncode, done.stdout), (0, answer["text"] + "\n"))
        self.assertEqual(done.stderr.splitlines(), [f"gpusharectl: {warning}" for warning in answer["warnings"]])

    def test_usage(self):
        for words, said in (((), "check [FILE], or show"), (("chek",), "no part of config"), (("check", "a", "b"), "one argument too many"),
                            (("show", "a"), "one argument too many"), (("show", "--wait"), "is no option of config")):
            done = run(GPUSHARECTL, "config", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)
        done = run(GPUSHARECTL, "config", "check", GPUSHARE_MODE="loud")
        self.assertEqual(done.returncode, 2)
        self.assertIn("GPUSHARE_MODE", done.stderr)


@CHANGES
class Show(Case):
    def shown(self, server):
        done = server.ctl("--json", "config", "show")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        json_check.check("admin-config", answer)
        json_check.check("gpushared-config", answer["configuration"])
        return answer

    def granted(self, server, **wishes):
        with contextlib.closing(RawClient(server.client)) as client:
            told = client.attach(**wishes)
            return {key: value for key, value in told.items() if key.endswith(("_limit", "_request")) or key == "priority"}

    def test_what_is_shown_has_the_same_effect(self):
        config = self.write("gpushared.yaml", FILE)
        with Server("--config", config, env={"GPUSHARE_MEMORY_LIMIT": "24M", "GPUSHARE_QUANTUM": "7s"}) as server:
            for words in (("set", "gpu", "0", "lease=50ms", "standby=none"), ("set", "gpu", "0", "new_clients.threads=37.5%"),
                          ("set", "user", "4711", "total.memory=1G")):
                self.assertEqual(server.ctl(*words).returncode, 0, words)
            answer, text = self.shown(server), server.ctl("config", "show").stdout
            gpu, = answer["configuration"]["gpus"]
            self.assertEqual((answer["file"], answer["totals"]), (config, ["set user 4711 total.memory.limit=1G"]))
            self.assertEqual((gpu["mode"], gpu["lease"], gpu["quantum"]), ("fair", "50ms", "7s"))
            self.assertEqual((gpu["memory"], gpu["threads"]), ({"limit": "24M"}, {"request": "25%", "limit": "37.5%"}))
            self.assertIn(f"# The configuration that gpushared {answer['server_version']} has in force. Its file: {config}\n", text)
            self.assertIn("gpusharectl set user 4711 total.memory.limit=1G\n", text)
            named = {"name": "nb-x"}
            before = self.granted(server), self.granted(server, **named), json.loads(server.ctl("--json", "get", "gpu", "0").stdout)["gpus"][0]["schedule"]
        again = self.write("again.yaml", text)
        self.assertEqual(run(GPUSHARECTL, "config", "check", again).returncode, 0, text)
        with Server("--config", again) as server:
            second = self.shown(server)
            self.assertEqual(second["configuration"], answer["configuration"], text)
            after = self.granted(server), self.granted(server, **named), json.loads(server.ctl("--json", "get", "gpu", "0").stdout)["gpus"][0]["schedule"]
        self.assertEqual(after, before)
        self.assertEqual(second["configuration"]["rules"][0]["match"], {"uid": [4001, "5000-5999"], "name": "~"}, "no null of a text in quotes")

    def test_without_a_file_and_without_the_right(self):
        with Server(admin=None) as server:
            answer = self.shown(server)
            self.assertEqual(list(answer["configuration"]), ["gpus"])
            if UID == 0:
                os.chmod(server.admin, 0o666)
                # That user may not be let into the folder of the sources, where gpusharectl is.
                done = run(sys.executable, "-c", f"import os, socket; os.setgid({NOBODY - 1}); os.setuid({NOBODY - 1}); "
                           f"admin = socket.socket(socket.AF_UNIX); admin.connect({server.admin!r}); "
                           "admin.sendall(b'{\"request\":\"config\"}\\n'); print(admin.makefile().readline())")
                self.assertEqual(json.loads(done.stdout)["error"], "not_permitted", done.stderr)


@CHANGES
class GetAll(Case):
    def test_get_all(self):
        with Server(env={"SOFTGPU_DEVICES": "2"}) as server:
            def got():
                done = server.ctl("--json", "get", "all")
                self.assertEqual(done.returncode, 0, done.stderr)
                answer = json.loads(done.stdout)
                json_check.check("admin-get-all", answer)
                return answer

            self.assertEqual((len(got()["gpus"]), got()["clients"], got()["totals"]), (2, [], []))
            with contextlib.closing(RawClient(server.client)) as client, contextlib.closing(RawClient(server.client)) as other:
                told = [client.attach(), other.attach()]
                answer = got()
                self.assertEqual([row["gpu"] for row in answer["gpus"]], [0, 1])
                self.assertEqual([row["client"] for row in answer["clients"]], [one["client"] for one in told])
                self.assertEqual([row["user"] for row in answer["totals"]], [UID])
                text = server.ctl("get", "all").stdout
                self.assertIn("STANDBY", text)
                self.assertIn(f"user {UID}", text)
            self.assertEqual(server.ctl("get", "all", "more").returncode, 2)
        self.assertEqual(run(GPUSHARECTL, "--socket", os.path.join(self.folder, "absent"), "get", "all").returncode, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
