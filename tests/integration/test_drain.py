#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl drain and resume: new clients are kept out with a sentence that says what to do, those that are attached go on;
a worker's replacement, a server that takes over and one that starts anew change nothing about it."""
import json
import os
import signal
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import json_check  # noqa: E402
from private_server import SECONDS, Server  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import await_true  # noqa: E402

REFUSED = r"GPU {0} takes no new clients, .*gpusharectl resume {0}"


@CHANGES
class Drain(unittest.TestCase):
    def served(self, *options, **env):
        server = Server(*options, env=env)
        self.addCleanup(server.stop_well)
        return server

    def client(self, path, device=0):
        client = RawClient(path)
        self.addCleanup(client.close)
        return client, client.attach(device=device)

    def ctl(self, server, *words, status=0):
        done = server.ctl("--json", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        json_check.check("admin-error" if status else f"admin-{words[0]}", answer)
        return answer

    def drained(self, server):
        return [device["drained"] for device in self.ctl(server, "status")["devices"]]

    def refused(self, path, device=0):
        with self.assertRaisesRegex(RuntimeError, REFUSED.format(device)):
            self.client(path, device)

    def test_one_gpu_and_all(self):
        server = self.served(SOFTGPU_DEVICES="2")
        client, _ = self.client(server.client)
        answer = self.ctl(server, "drain", "gpu", "0")
        self.assertEqual(answer["gpus"], [{"gpu": 0, "drained": True, "clients": 1}])
        self.assertFalse(answer["saved"], "there is no folder")
        self.assertEqual(self.drained(server), [True, False])
        self.refused(server.client)
        self.assertEqual(client.ask("memory_query")["used"], 0, "it goes on")
        self.client(server.client, 1)
        for words in (("status",), ("status", "--wide"), ()):
            self.assertIn("device 0: takes no new clients, because an administrator drains it: gpusharectl resume 0\n", server.ctl(*words).stdout)
            self.assertNotIn("device 1: takes no", server.ctl(*words).stdout)
        self.assertEqual([gpu["drained"] for gpu in self.ctl(server, "drain")["gpus"]], [True, True])
        self.refused(server.client, 1)
        self.ctl(server, "resume", "1")
        self.assertEqual(self.drained(server), [True, False])
        self.assertEqual([gpu["drained"] for gpu in self.ctl(server, "resume")["gpus"]], [False, False])
        self.client(server.client)
        said = server.ctl("drain", "gpu:0").stdout
        self.assertIn("GPU 0 takes no new clients; clients that are still attached: 2\n", said)
        self.assertIn("--state-dir", said)
        self.assertEqual(server.ctl("resume", "gpu", "0").stdout, "GPU 0 takes new clients\n")
        self.assertEqual(self.ctl(server, "drain", "gpu", "2", status=1)["error"], "not_found")
        for words in (("drain", "gpu"), ("drain", "x"), ("resume", "0", "1"), ("resume", "--wait")):
            self.assertEqual(server.ctl(*words).returncode, 2, words)
        self.assertIn("device 0: takes no new clients any more: drained by uid", server.text())

    def test_the_user_is_told_by_the_client_library(self):
        server = self.served()
        self.ctl(server, "drain")
        told = server.info()
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertRegex(told.stderr, REFUSED.format(0))

    def test_waiting_ends_when_the_last_client_leaves(self):
        server = self.served()
        (stays, _), (leaves, told) = self.client(server.client), self.client(server.client)
        waits = server.start_ctl("drain", "--wait")
        try:
            self.assertIn("still attached: 2", waits.stdout.readline())
            self.assertIn("ends for good", waits.stdout.readline())
            line = waits.stdout.readline()
            self.assertIn("GPU 0, clients: 2: ", line)
            self.assertIn(f"{told['client']} '", line)
            leaves.close()
            self.assertIn("GPU 0, clients: 1: ", waits.stdout.readline())
            self.assertIsNone(waits.poll(), "one client stays")
            stays.close()
            self.assertEqual(waits.stdout.readline(), "no client is left on the GPUs that are drained\n")
            self.assertEqual(waits.wait(SECONDS), 0)
        finally:
            waits.kill()
            waits.wait()
            waits.stdout.close()
            waits.stderr.close()
        self.assertEqual(self.ctl(server, "drain", "--wait")["gpus"], [{"gpu": 0, "drained": True, "clients": 0}], "at once")

    def test_waiting_ends_when_somebody_resumes(self):
        server = self.served()
        self.client(server.client)
        waits = server.start_ctl("drain", "--wait", "0")
        try:
            while "clients: 1: " not in waits.stdout.readline():
                self.assertIsNone(waits.poll())
            self.ctl(server, "resume")
            _, said = waits.communicate(timeout=SECONDS)
        finally:
            waits.kill()
            waits.wait()
        self.assertEqual(waits.returncode, 1, said)
        self.assertIn("GPU 0 takes new clients again", said)

    def test_waiting_ends_when_its_time_is_over(self):
        server = self.served()
        client, _ = self.client(server.client)
        refused = self.ctl(server, "drain", "--timeout", "100ms", status=1)
        self.assertEqual(refused["error"], "not_ready")
        self.assertIn("clients are still attached after 100ms", refused["text"])
        self.assertIn("GPU 0, clients: 1: ", refused["text"])
        self.assertEqual(self.drained(server), [True])
        client.close()
        self.assertEqual(self.ctl(server, "drain", "--wait", "--timeout=5min")["gpus"][0]["clients"], 0)
        for words in (("drain", "--timeout", "0"), ("drain", "--timeout", "soon"), ("resume", "--timeout", "1s")):
            self.assertEqual(server.ctl(*words).returncode, 2, words)

    def test_a_worker_that_is_replaced(self):
        server = self.served()
        client, _ = self.client(server.client)
        self.ctl(server, "drain")
        worker = self.ctl(server, "status")["devices"][0]["worker_pid"]
        os.kill(worker, signal.SIGKILL)

        def served_anew():
            device = self.ctl(server, "status")["devices"][0]
            return device["state"] == "ready" and device["worker_pid"] not in (None, worker)

        await_true(served_anew, server.text)
        self.refused(server.client)
        self.assertEqual(client.ask("memory_query")["used"], 0, "it goes on with the next worker")

    def test_a_client_that_waits_for_a_worker_is_told(self):
        """It asked before the GPU was drained, and no worker served then."""
        server = self.served()
        worker = self.ctl(server, "status")["devices"][0]["worker_pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            await_true(lambda: self.ctl(server, "status")["devices"][0]["worker_silent_seconds"] is not None, server.text)
            client = RawClient(server.client)
            self.addCleanup(client.close)
            client.ask("hello", major=client.schema.major)
            unset = dict.fromkeys((name for name, _, _ in client.schema.fields(client.schema.layouts["allowance"])
                                   if name.endswith(("_request", "_limit"))), client.schema.constants["unset"])
            client.serial += 1
            client.socket.send(client.schema.pack("attach", client.serial, unset))
            await_true(lambda: any(row["state"] == "greeted" for row in self.ctl(server, "clients")["clients"]), server.text)
            self.ctl(server, "drain")
            name, _, values = client.receive()
        finally:
            os.kill(worker, signal.SIGCONT)
        self.assertEqual(name, "failed")
        self.assertRegex(values["text"], REFUSED.format(0))

    def test_a_server_that_takes_over(self):
        with Manager() as manager:
            client, _ = self.client(manager.client)
            self.ctl(manager, "drain")
            manager.kill()
            manager.start()
            self.assertEqual(self.drained(manager), [True])
            self.refused(manager.client)
            self.assertEqual(client.ask("memory_query")["used"], 0, "it goes on")
            self.ctl(manager, "resume")
            manager.kill()
            manager.start()
            self.client(manager.client)

    def test_a_server_that_starts_anew(self):
        with Server() as other:
            state = other.file("state")
            with Server("--state-dir", state, env={"SOFTGPU_DEVICES": "2"}) as one:
                self.assertTrue(self.ctl(one, "drain", "1")["saved"])
            with open(os.path.join(state, "saved.json"), encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)["drained"]), 1)
            with Server("--state-dir", state, env={"SOFTGPU_DEVICES": "2"}) as two:
                self.assertEqual(self.drained(two), [False, True])
                self.refused(two.client, 1)
                self.assertIn(f"device 1: takes no new clients, because {state}/saved.json has it", two.text())
                self.ctl(two, "resume", "1")
            with Server("--state-dir", state, env={"SOFTGPU_DEVICES": "2"}) as three:
                self.assertEqual(self.drained(three), [False, False])

    def test_a_reset_keeps_it(self):
        with Server() as other:
            config = other.file("good.yaml")
            state = other.file("state")
            with open(config, "w", encoding="utf-8") as file:
                file.write("{}\n")
            with Server("--config", config, "--state-dir", state) as server:
                self.ctl(server, "drain")
                self.ctl(server, "reload", "--reset")
                self.assertEqual(self.drained(server), [True])
            with Server("--config", config, "--state-dir", state) as server:
                self.assertEqual(self.drained(server), [True])


if __name__ == "__main__":
    unittest.main(verbosity=2)
