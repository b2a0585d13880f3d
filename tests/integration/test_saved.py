#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl set --save through real servers, one after the other: what outlives a server, how it is given up, and what
happens when the file or its folder is not as it should be."""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import json_check  # noqa: E402
from configured_server import Case  # noqa: E402
from private_server import Server  # noqa: E402
from server_case import CHANGES  # noqa: E402

CONFIG = "gpus: [{gpu: 0, mode: strict, lease: 100ms}]\nusers: [{uid: 1001, memory: {limit: 48M}}]\n"


class Saved(Case):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.folder, "state")
        self.path = os.path.join(self.state, "saved.json")
        self.config = os.path.join(self.folder, "gpushared.yaml")
        self.write(self.config, CONFIG)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def server(self, *words, env=None):
        return Server("--config", self.config, *(words or ("--state-dir", self.state)), env=env)

    def kept(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def ctl(self, server, *words, ok=True):
        """The answer of a command, which has the form that its schema says. ok: its words if it is refused."""
        answer = json.loads(server.ctl("--json", *words).stdout)
        json_check.check(f"admin-{words[0]}" if answer["ok"] else "admin-error", answer)
        self.assertEqual(answer["ok"], ok, answer)
        return answer

    def refused(self, server, *words):
        return self.ctl(server, *words, ok=False)["text"]

    def gpu(self, server):
        gpu = self.ctl(server, "get", "gpu", "0")["gpus"][0]
        return gpu["schedule"]["mode"], gpu["schedule"]["lease_seconds"], gpu["saved"]

    def total(self, server, kind, number, what="memory"):
        row = self.ctl(server, "get", kind, number)["total"][what]
        row = row[0] if isinstance(row, list) else row
        limit = row["limit_percent"] if "limit_percent" in row else row["limit_bytes"]
        return limit, row["limited_by"], row["saved"]

    @CHANGES
    def test_what_is_saved_outlives_the_server_and_what_is_only_set_does_not(self):
        with self.server() as one:
            self.assertEqual(self.gpu(one), ("strict", 0.1, []))
            self.assertFalse(os.path.exists(self.state), "made before anything is saved")
            self.ctl(one, "set", "gpu", "0", "lease=50ms")
            self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
            self.ctl(one, "set", "--save", "user", "1001", "total.memory=32M", "total.time.request=25%")
            self.ctl(one, "set", "user", "1002", "total.memory=16M")
            self.ctl(one, "set", "group", "7", "total.time=50%", "--save")
            self.ctl(one, "set", "--save", "cgroup", "/a.slice/b", "total.threads.request=25%", "total.time=50%")
            self.assertEqual(self.gpu(one), ("fair", 0.05, ["mode"]))
            self.assertEqual(self.total(one, "user", "1001"), (32 << 20, "administrator", True))
            self.assertEqual(self.total(one, "user", "1002"), (16 << 20, "administrator", False))
            self.assertIn("mode is fair, which is saved, and the configuration says strict", one.ctl("get", "gpu", "0").stdout)
            self.assertIn("administrator, saved", one.ctl("get", "user", "1001").stdout)
        kept = self.kept()
        self.assertEqual([list(gpu.items()) for gpu in kept["gpus"].values()], [[("mode", "fair")]])
        self.assertEqual(kept["users"], {"1001": {"memory": {"limit": "32M"}, "time": {"request": "25%"}}})
        self.assertEqual(kept["groups"], {"7": {"time": {"limit": "50%"}}})
        self.assertEqual(kept["cgroups"], {"/a.slice/b": {"threads": {"request": "25%"}, "time": {"limit": "50%"}}})
        self.assertEqual(os.listdir(self.state), ["saved.json"], "a file is left over")
        # systemd's folder, which may be one of several, is the same as one that an option names.
        with self.server("--log-level", "info", env={"STATE_DIRECTORY": self.state + ":/nowhere"}) as two:
            self.assertEqual(self.gpu(two), ("fair", 0.1, ["mode"]))
            self.assertEqual(self.total(two, "user", "1001"), (32 << 20, "administrator", True))
            row = self.ctl(two, "get", "user", "1001")["total"]["time"][0]
            self.assertEqual((row["request_percent"], row["limit_percent"], row["saved"]), (25, None, True))
            self.assertIn("no client of uid 1002", self.refused(two, "get", "user", "1002"))
            self.assertEqual(self.total(two, "group", "7", "time"), (50, "administrator", True))
            self.assertEqual(self.total(two, "cgroup", "/a.slice/b", "time"), (50, "administrator", True))
            row = self.ctl(two, "get", "cgroup", "/a.slice/b")["total"]["threads"][0]
            self.assertEqual((row["request_percent"], row["limit_percent"], row["saved"]), (25, None, True))
            self.assertIn(self.path, two.text(), "the log does not say where the values come from")

    @CHANGES
    def test_the_file_is_as_its_page_shows_it(self):
        with open(os.path.join(HERE, "../../docs/configuration.md"), encoding="utf-8") as page:
            (shown,) = re.findall(r"```json\n(.*?)```", page.read(), re.S)
        with self.server() as server:
            self.ctl(server, "set", "--save", "gpu", "0", "mode=fair")
            self.ctl(server, "set", "--save", "user", "1001", "total.memory=40%")
            with open(self.path, encoding="utf-8") as file:
                self.assertEqual(file.read().rstrip("\n"), shown.rstrip("\n"))

    @CHANGES
    def test_a_file_that_is_deleted_is_written_again_while_the_server_runs_and_is_gone_for_the_next(self):
        with self.server() as one:
            self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
            os.unlink(self.path)
            self.assertEqual(self.gpu(one)[0], "fair")
            self.ctl(one, "set", "--save", "user", "1001", "total.memory=32M")
            self.assertEqual(([*self.kept()["gpus"].values()], self.kept()["users"]), ([{"mode": "fair"}], {"1001": {"memory": {"limit": "32M"}}}))
            os.unlink(self.path)
        with self.server() as two:
            self.assertEqual(self.gpu(two), ("strict", 0.1, []))
            self.assertEqual(self.total(two, "user", "1001"), (48 << 20, "configuration", False))
            self.assertFalse(os.path.exists(self.path), "written though nothing is saved")

    @CHANGES
    def test_values_are_given_up_by_set_and_by_a_reset_and_by_a_file_that_says_something_else(self):
        def save(server):
            self.ctl(server, "set", "--save", "gpu", "0", "mode=fair", "lease=50ms")
            self.ctl(server, "set", "--save", "user", "1001", "total.memory=32M", "total.host_memory=8M")

        with self.server() as one:
            save(one)
            # Without --save another value holds until the server ends, and the saved one stays.
            self.ctl(one, "set", "gpu", "0", "mode=turns")
            self.assertEqual(self.gpu(one), ("turns", 0.05, ["lease"]))
            self.assertEqual(list(self.kept()["gpus"].values()), [{"mode": "fair", "lease": "50ms"}])
            self.ctl(one, "set", "gpu", "0", "mode=configured")
            self.ctl(one, "set", "user", "1001", "total.memory=configured")
            self.assertEqual(self.gpu(one), ("strict", 0.05, ["lease"]))
            self.assertEqual(self.total(one, "user", "1001"), (48 << 20, "configuration", False))
            self.assertEqual(list(self.kept()["gpus"].values()), [{"lease": "50ms"}])
            self.assertEqual(self.kept()["users"], {"1001": {"host_memory": {"limit": "8M"}}})
            self.assertEqual(one.ctl("reload", "--reset").returncode, 0)
            self.assertEqual(self.gpu(one), ("strict", 0.1, []))
            self.assertEqual(self.total(one, "user", "1001", "host_memory")[1:], (None, False))
            save(one)
            self.assertEqual(one.ctl("reload").returncode, 0)
            self.assertEqual(self.gpu(one), ("fair", 0.05, ["mode", "lease"]))
            self.write(self.config, CONFIG.replace("100ms", "200ms").replace("48M", "40M"))
            self.assertEqual(one.ctl("reload").returncode, 0)
            self.assertEqual(self.gpu(one), ("fair", 0.2, ["mode"]))
            self.assertEqual(self.total(one, "user", "1001"), (40 << 20, "configuration", False))
            self.assertEqual(self.total(one, "user", "1001", "host_memory"), (8 << 20, "administrator", True))
        with self.server() as two:
            self.assertEqual(self.gpu(two), ("fair", 0.2, ["mode"]))
            self.assertEqual(self.total(two, "user", "1001"), (40 << 20, "configuration", False))
            self.assertEqual(self.total(two, "user", "1001", "host_memory"), (8 << 20, "administrator", True))

    @CHANGES
    def test_what_can_not_be_kept_is_refused_and_nothing_changes(self):
        with self.server("--log-level", "info") as one:
            self.assertIn("--state-dir", self.refused(one, "set", "--save", "gpu", "0", "mode=fair"))
            self.assertIn("--state-dir", self.refused(one, "set", "--save", "user", "1001", "total.memory=1M"))
            self.assertEqual(self.gpu(one), ("strict", 0.1, []))
            self.assertEqual(self.total(one, "user", "1001"), (48 << 20, "configuration", False))
            self.assertIn("--save is an option of set", one.ctl("get", "--save", "gpu", "0").stderr)
        with self.server() as one:
            for target in (("1",), ("user", "1001")):
                self.assertIn("end with them", self.refused(one, "set", "--save", *target, "threads=50%"))
            # A value that is refused is not kept.
            self.assertIn("lease", self.refused(one, "set", "--save", "gpu", "0", "lease=1h"))
            self.assertIn("exceed", self.refused(one, "set", "--save", "user", "1001", "total.time=10%", "total.time.request=20%"))
            self.assertIn("no GPU 9", self.refused(one, "set", "--save", "gpu", "9", "mode=fair"))
            self.assertFalse(os.path.exists(self.path))
            # The change holds all the same, and the answer says both.
            self.write(self.state, "in the way of the folder")
            text = self.refused(one, "set", "--save", "gpu", "0", "mode=fair")
            self.assertIn("in force", text)
            self.assertIn(self.path, text)
            self.assertEqual(self.gpu(one)[0], "fair")
            os.remove(self.state)
            self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
            self.assertEqual(len(self.kept()["gpus"]), 1)

    @CHANGES
    def test_only_what_the_file_has_is_shown_as_saved(self):
        with self.server() as one:
            self.ctl(one, "set", "--save", "user", "1001", "total.memory=32M", "total.time=50%")
            self.ctl(one, "set", "user", "1001", "total.memory=40M", "total.time.request=10%")
            self.assertEqual(self.total(one, "user", "1001"), (40 << 20, "administrator", False))
            self.assertEqual(self.total(one, "user", "1001", "time"), (50, "administrator", True), "the limit is")
            self.ctl(one, "set", "user", "1001", "total.memory=32768K")
            self.assertEqual(self.total(one, "user", "1001"), (32 << 20, "administrator", True))
        with self.server() as two:
            os.rename(self.path, self.path + ".old")
            os.mkdir(self.path)
            self.assertIn("in force", self.refused(two, "set", "--save", "gpu", "0", "mode=fair"))
            self.assertIn("in force", self.refused(two, "set", "--save", "user", "1001", "total.memory=8M"))
            self.assertEqual(self.gpu(two), ("fair", 0.1, []))
            self.assertEqual(self.total(two, "user", "1001"), (8 << 20, "administrator", False))
            self.assertEqual(sorted(os.listdir(self.state)), ["saved.json", "saved.json.old"], "a part of a file is left over")
            os.rmdir(self.path)
            self.ctl(two, "set", "--save", "user", "1002", "total.memory=8M")
            self.assertEqual(self.gpu(two), ("fair", 0.1, ["mode"]), "it went with the next")

    @CHANGES
    def test_what_lies_where_the_new_file_is_written_is_never_opened(self):
        os.mkdir(self.state)
        other = os.path.join(self.folder, "other")
        self.write(other, "of somebody else")
        os.link(other, self.path + ".new")
        with self.server() as one:
            self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
            with open(other, encoding="utf-8") as file:
                self.assertEqual(file.read(), "of somebody else")
            os.mkfifo(self.path + ".new")
            self.ctl(one, "set", "--save", "gpu", "0", "lease=50ms")
            self.assertEqual(self.gpu(one), ("fair", 0.05, ["mode", "lease"]))

    @CHANGES
    def test_a_file_that_can_not_be_read_stops_no_server_and_is_not_written_over(self):
        good = json.dumps({"schema_version": 1, "gpus": {}, "users": {"1001": {"memory": {"limit": "32M"}}}, "groups": {}})
        os.mkdir(self.state)
        for text, mode, words in (("{\n\"gpus\": oops", 0o644, "saved.json:2:"), ("[]", 0o644, "schema_version"), (good, 0o666, "mode 666"),
                                  (good.replace(": 1", ": 2", 1), 0o644, "\"schema_version\": 1"), (good.replace("{}", "[]"), 0o644, "groups")):
            self.write(self.path, text)
            os.chmod(self.path, mode)
            with self.server() as one:
                self.assertIn(words, one.text())
                self.assertIn(words, self.refused(one, "set", "--save", "gpu", "0", "mode=fair"))
                self.ctl(one, "set", "gpu", "0", "mode=fair")
                self.ctl(one, "set", "gpu", "0", "mode=configured")
                self.assertEqual(one.ctl("reload", "--reset").returncode, 0)
                self.assertEqual(self.total(one, "user", "1001"), (48 << 20, "configuration", False))
            with open(self.path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            os.chmod(self.path, 0o600)
        os.remove(self.path)
        os.mkfifo(self.path)
        with self.server() as one:
            self.assertIn("is not a file", one.text())

    @CHANGES
    def test_values_that_are_no_object_stop_no_server_and_can_be_replaced(self):
        with self.server() as one:
            self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
        (uuid,) = self.kept()["gpus"]
        for values in ("fair", None, 7, True, ["mode", "fair"]):
            self.write(self.path, json.dumps({"schema_version": 1, "gpus": {uuid: values}, "users": {"1001": values}, "groups": {}}))
            with self.server() as one:
                self.assertIn(f"the values of GPU {uuid} are not in force: they must be an object", one.text())
                self.assertIn("the values of user 1001 are not in force: they must be an object", one.text())
                self.assertEqual(self.gpu(one), ("strict", 0.1, []))
                self.assertEqual(self.total(one, "user", "1001"), (48 << 20, "configuration", False))
                self.ctl(one, "set", "--save", "gpu", "0", "mode=fair")
                self.ctl(one, "set", "--save", "user", "1001", "total.memory=32M")
            self.assertEqual(self.kept()["gpus"], {uuid: {"mode": "fair"}})
            self.assertEqual(self.kept()["users"], {"1001": {"memory": {"limit": "32M"}}})

    @CHANGES
    def test_one_value_that_does_not_fit_leaves_the_others_in_force(self):
        os.mkdir(self.state)
        kept = {"schema_version": 1,
                "gpus": {"GPU-00000000-0000-0000-0000-000000000000": {"mode": "fair"}},
                "users": {"1001": {"memory": {"limit": "32M"}}, "1002": {"memory": {"limit": "many"}}, "ada": {"memory": {"limit": "1M"}},
                          "1003": {"wings": {"limit": "2"}}},
                "groups": {"7": {"time": {"request": "80%", "limit": "50%"}}}}
        self.write(self.path, json.dumps(kept))
        with self.server() as one:
            text = one.text()
            for words in ("GPU-00000000-0000-0000-0000-000000000000 is not among", "values of user 1002", "\"ada\" is not the number of a user",
                          "values of user 1003", "values of group 7"):
                self.assertIn(words, text)
            self.assertEqual(self.total(one, "user", "1001"), (32 << 20, "administrator", True))
            self.assertEqual(self.gpu(one), ("strict", 0.1, []))
            # What has no effect now may have one again: a GPU may come back.
            self.ctl(one, "set", "--save", "gpu", "0", "lease=50ms")
        now = self.kept()
        self.assertEqual((now["users"], now["groups"]), (kept["users"], kept["groups"]))
        self.assertEqual(len(now["gpus"]), 2)

    @CHANGES
    def test_of_several_values_those_that_are_right_hold_and_can_be_kept(self):
        with self.server() as one:
            self.ctl(one, "set", "--save", "gpu", "0", "precision=10%", "lease=50ms")
            self.ctl(one, "set", "--save", "user", "1001", "total.time.request=50%", "total.memory=24M")
            self.ctl(one, "set", "--save", "group", "7", "total.time.request=50%", "total.time.limit=60%", "total.memory=16M")
        kept = self.kept()
        (uuid,) = kept["gpus"]
        kept["gpus"][uuid]["mode"] = "quick"
        kept["users"]["1001"]["wings"] = {"limit": "2"}
        self.write(self.path, json.dumps(kept))
        # While no server ran, the file has got limits below the requests that were saved.
        self.write(self.config, CONFIG.replace("memory", "time: {limit: 40%}, memory") + "groups: [{gid: 7, time: {limit: 40%}}]\n")
        with self.server() as one:
            for words in (f"the value mode of GPU {uuid} is not in force: ", "the value time of user 1001 is not in force: the request of time",
                          "the value wings of user 1001 is not in force: "):
                self.assertEqual(one.text().count(words), 1, words)
            gpu = self.ctl(one, "get", "gpu", "0")["gpus"][0]
            self.assertEqual((gpu["schedule"]["precision_percent"], gpu["schedule"]["lease_seconds"], gpu["schedule"]["mode"]), (10, 0.05, "strict"))
            self.assertEqual(sorted(gpu["saved"]), ["lease", "precision"])
            self.assertEqual(self.total(one, "user", "1001"), (24 << 20, "administrator", True))
            self.assertEqual(self.total(one, "user", "1001", "time"), (40, "configuration", False))
            # Both values of one resource hold together, or neither does.
            self.assertEqual(self.total(one, "group", "7", "time"), (60, "administrator", True))
            self.ctl(one, "set", "--save", "user", "1001", "total.memory=20M")
            self.ctl(one, "set", "--save", "gpu", "0", "precision=20%")
        with self.server() as two:
            self.assertEqual(self.total(two, "user", "1001"), (20 << 20, "administrator", True))
            self.assertEqual(self.ctl(two, "get", "gpu", "0")["gpus"][0]["schedule"]["precision_percent"], 20)


if __name__ == "__main__":
    unittest.main()
