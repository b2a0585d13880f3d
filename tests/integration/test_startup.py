#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""How the server starts on machines and drivers that are not as they should be: it serves
all the same, or says what is in the way and what helps."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))

import json_check  # noqa: E402
from private_server import BUILD, ENV, FOR_OTHER_USERS, GPUSHARECTL, GPUSHARED, SECONDS, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES  # noqa: E402

VECTOR_ADD = os.path.join(BUILD, "examples/vector-add")
INFO = (os.path.join(BUILD, "bin/gpushare"), "info")
# The shadow memory of a sanitizer lies where the ladder of address ranges leads.
SANITIZED = any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"))


def refusal(*options, **env):
    """The words of a server that does not start."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(GPUSHARED, "--driver", "softgpu", "--socket", f"{folder}/s", "--admin-socket", f"{folder}/a", *options, **env)
    if result.returncode != 1:
        raise AssertionError(f"status {result.returncode}: {result.stderr}")
    return result.stderr


class PinnedMemory(unittest.TestCase):
    def test_more_than_a_quarter_of_the_machine_is_logged(self):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        for total, said in ((memory // 4, False), (memory // 4 + 4096, True)):
            server = Server("--host-memory-total", str(total))
            self.assertEqual("more than a quarter" in server.text(), said, server.text())
            server.stop_well()


class Variables(unittest.TestCase):
    def test_those_that_only_clients_read_are_warned_of(self):
        server = Server(env={"GPUSHARE_PROFILE": "batch", "GPUSHARE_CLIENT_NAME": "me", "GPUSHARE_WARNINGS": "0", "GPUSHARE_MODE": "fair"})
        told = re.findall(r"gpushared: (\S+) is set, and has no effect on gpushared", server.text())
        self.assertEqual(told, ["GPUSHARE_CLIENT_NAME", "GPUSHARE_PROFILE", "GPUSHARE_WARNINGS"], server.text())
        server.stop_well()


@unittest.skipIf(SANITIZED, "a sanitizer's own memory is in these address ranges")
class AddressRanges(unittest.TestCase):
    def serves(self, env, *options):
        """Clients can work; what the log says."""
        server = Server(*options, env=env)
        result = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client)
        self.assertEqual(result.returncode, 0, result.stderr + server.text())
        text = server.text()
        server.stop_well()
        return text

    def test_another_range_is_taken_where_the_usual_one_is_refused(self):
        # 45 bits end where the usual range begins.
        text = self.serves({"SOFTGPU_ADDRESS_BITS": "45"})
        self.assertIn("device memory at 0x100000000000, host memory at 0x300000000000, 16T each", text)

    def test_a_driver_that_answers_hints_at_random_is_asked_again(self):
        self.serves({"SOFTGPU_HINT_ERROR": "30", "SOFTGPU_HINT_REFUSAL": "30"})
        # Once so many hints were refused that what the driver reserved instead lay at the hint.
        self.serves({"SOFTGPU_HINT_ERROR": "30", "SOFTGPU_HINT_REFUSAL": "30", "SOFTGPU_SEED": "535467615"})

    def test_a_refusal_names_both_ends_of_the_ladder(self):
        for env in ({"SOFTGPU_ADDRESS_BITS": "40"}, {"SOFTGPU_HINT_ERROR": "100"}, {"SOFTGPU_HINT_REFUSAL": "100"}):
            with self.subTest(env):
                text = refusal(**env)
                self.assertIn("from 16T each at 32T and 48T down to 1T each at 64T and 96T", text)
                self.assertIn("--device-base", text)

    def test_a_range_that_is_named_is_tried_alone(self):
        text = refusal("--arena", "8T", SOFTGPU_ADDRESS_BITS="45")
        self.assertIn("8T each at 32T and 48T", text)
        self.serves({"SOFTGPU_ADDRESS_BITS": "45"}, "--device-base", "0x100000000000", "--arena", "8T")


class ByHand(unittest.TestCase):
    """A server that a user starts in a shell, with a folder of the user's own."""

    def setUp(self):
        self.who = {} if os.getuid() else {"user": 4711, "group": 4711, "extra_groups": []}
        if subprocess.run(["test", "-x", GPUSHARED], check=False, **self.who).returncode:
            self.skipTest("the build folder is closed to other users")
        folder = tempfile.TemporaryDirectory(prefix="gpushare-hand-", dir="/tmp")  # $TMPDIR may be closed to that user
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        if self.who:
            os.chown(self.folder, 4711, 4711)
        self.socket = {"GPUSHARE_SOCKET": f"{self.folder}/clients"}

    def start(self, *options):
        """Starts the server in its folder, and waits until it is ready."""
        server = subprocess.Popen([GPUSHARED, "--driver", "softgpu", *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env={**ENV, **self.socket}, cwd=self.folder, **self.who)
        self.addCleanup(server.wait)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.terminate)
        said = ""
        while "ready: clients connect" not in said:
            line = server.stderr.readline()
            self.assertTrue(line, said)
            said += line

    def ctl(self, *words):
        return subprocess.run([GPUSHARECTL, *words], capture_output=True, text=True, env={**ENV, **self.socket}, check=False, timeout=SECONDS, **self.who)

    @CHANGES
    def test_its_user_administers_it_by_the_socket_beside_the_clients(self):
        with open(f"{self.folder}/file.yaml", "w", encoding="utf-8") as file:
            file.write("gpus: [{gpu: 0, mode: strict}]\n")
        self.start("--config", "file.yaml")
        self.assertTrue(os.path.exists(f"{self.folder}/admin.sock"))
        for words in (("set", "gpu", "0", "lease=50ms"), ("reload",)):
            done = self.ctl(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.folder}/file.yaml", done.stdout)
        self.assertIn(" strict ", self.ctl("get", "gpu", "0").stdout)


class CheckConfig(unittest.TestCase):
    def test_a_server_without_the_usual_file_has_none(self):
        if os.path.exists("/etc/gpushare/gpushared.yaml"):
            self.skipTest("this machine has a file of its own")
        done = run(GPUSHARED, "--check-config")
        self.assertEqual((done.returncode, done.stdout), (0, "/etc/gpushare/gpushared.yaml: there is no such file, and the server starts without one\n"))
        self.assertEqual(run(GPUSHARED, "--check-config", "--config", "absent.yaml").returncode, 1)


class Initialisation(unittest.TestCase):
    def test_an_error_of_the_driver_names_a_remedy(self):
        for number, words in (("100", "nvidia-smi"), ("101", "nvidia-smi mig"), ("802", "nvidia-fabricmanager"), ("803", "restart the machine"),
                              ("804", "compatibility library"), ("999", "gpushare-devices.service")):
            with self.subTest(number):
                self.assertIn(words, refusal(SOFTGPU_INIT_ERROR=number))


class Machine(unittest.TestCase):
    def test_a_prohibited_device_is_named(self):
        self.assertIn("nvidia-smi -i 0000:01:00.0 -c DEFAULT", refusal(SOFTGPU_COMPUTE_MODE="2"))

    def test_an_exclusive_device_is_served_unless_another_program_has_it(self):
        server = Server(env={"SOFTGPU_COMPUTE_MODE": "3"})
        done = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.stop_well()
        text = refusal(SOFTGPU_COMPUTE_MODE="3", SOFTGPU_TAKEN="1")
        self.assertIn("in an exclusive compute mode: end that program, or nvidia-smi -i 0000:01:00.0 -c DEFAULT", text)

    def test_an_mps_daemon_beside_is_named(self):
        # The kernel keeps fifteen characters of a name.
        named = "open('/proc/self/comm', 'w').write('nvidia-cuda-mps-control'); print('named', flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", named], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as daemon:
            self.assertEqual(daemon.stdout.readline(), "named\n")
            server = Server()
            found = json.loads(server.ctl("--json", "status").stdout)["devices"][0]["warnings"]
            self.assertIn(f"process {daemon.pid}", next(one["text"] for one in found if one["name"] == "mps"))
            server.stop_well()
            text = refusal(SOFTGPU_COMPUTE_MODE="3", SOFTGPU_TAKEN="1")
            self.assertIn(f"an MPS control daemon (process {daemon.pid}) runs", text)
            self.assertIn("echo quit | nvidia-cuda-mps-control", text)
            daemon.communicate("\n")

    def test_refused_green_contexts_leave_duty_cycles(self):
        for number in ("914", "915"):
            with self.subTest(number):
                server = Server(env={"SOFTGPU_GREEN_ERROR": number})
                server.wait_log("limits of multiprocessors are enforced by duty cycle: the driver failed making a green context")
                self.assertIn(f"({number})", server.text())
                device = json.loads(server.ctl("--json", "status").stdout)["devices"][0]
                self.assertEqual(device["threads_enforced_by"], "duty_cycle")
                done = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client, GPUSHARE_THREADS_LIMIT="25%")
                self.assertEqual(done.returncode, 0, done.stderr + server.text())
                server.stop_well()

    def test_what_was_found_stands_in_log_and_status(self):
        server = Server(env={"SOFTGPU_PAGEABLE_ACCESS": "1", "SOFTGPU_NO_JIT": "1"})
        server.wait_log("uvm_disable_hmm=1")
        server.wait_log("libnvidia-ptxjitcompiler.so.1")
        answer = json.loads(server.ctl("--json", "status").stdout)
        json_check.check("admin-status", answer)
        found = {warning["name"]: warning["text"] for warning in answer["devices"][0]["warnings"]}
        self.assertLessEqual({"host_access", "no_compiler"}, found.keys())
        self.assertIn("uvm_disable_hmm=1", found["host_access"])
        self.assertIn("device 0: warning: kernels on the GPU can read and write", server.ctl("status").stdout)
        refused = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client)
        self.assertNotEqual(refused.returncode, 0)
        server.stop_well()

    def test_ends_of_work_are_polled_where_the_device_writes_none(self):
        server = Server(env={"SOFTGPU_NO_GREEN_MEMOPS": "1"})
        server.wait_log("ends of work are polled")
        result = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client)
        self.assertEqual(result.returncode, 0, result.stderr + server.text())
        with server.work("worker", 200, 1, threads="25") as work:
            work.go()
            self.assertGreater(work.row()["launches"], 100)
        server.stop_well()

    @unittest.skipUnless(os.getuid() == 0, "needs a second user")
    def test_users_who_could_read_each_other_are_kept_apart(self):
        for options, status in ((), 1), (("--allow-host-access",), 0):
            with self.subTest(options):
                server = Server(*options, env={"SOFTGPU_PAGEABLE_ACCESS": "1"})
                os.chmod(server.client, 0o666)
                client = RawClient(server.client)
                client.attach()
                # Another user may not be let into the folder of the build.
                program = shutil.copy(VECTOR_ADD, server.file("vector-add"))
                library = "libgpushare-client.so.0"
                shutil.copy(os.path.join(BUILD, "lib", library), server.file(library))
                other = subprocess.run([program], env={**ENV, **FOR_OTHER_USERS, "GPUSHARE_SOCKET": server.client,
                                                       "LD_LIBRARY_PATH": server.folder}, user=65534, capture_output=True, text=True, check=False)
                self.assertEqual(other.returncode, status, other.stderr)
                if status:
                    self.assertIn("--allow-host-access", other.stderr)
                client.close()
                server.stop_well()


class OwnDevice(unittest.TestCase):
    def visible(self, server):
        """The devices that each worker's driver is told to show."""
        told = []
        for device in json.loads(server.ctl("--json", "status").stdout)["devices"]:
            with open(f"/proc/{device['worker_pid']}/environ", encoding="utf-8") as file:
                variables = dict(entry.split("=", 1) for entry in file.read().split("\0") if entry)
            told.append((device["uuid"], variables["CUDA_VISIBLE_DEVICES"]))
        return told

    def test_too_few_descriptors_are_named_and_not_an_option(self):
        folder = tempfile.mkdtemp()
        try:
            command = [GPUSHARED, "--driver", "softgpu", "--socket", os.path.join(folder, "gpushare.sock")]
            text = run("sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh", *command).stderr
            self.assertIn("the 64 file descriptors that this process may have are too few for one client: raise the limit", text)
            text = run("sh", "-c", "ulimit -n 1024 && exec \"$@\"", "sh", *command, "--max-clients", "9999").stderr
            self.assertIn("--max-clients 9999 needs more than the 1024 file descriptors", text)
        finally:
            shutil.rmtree(folder)

    def test_each_worker_sees_its_device_alone(self):
        server = Server(env={"SOFTGPU_DEVICES": "3", "GPUSHARE_VISIBLE_DEVICES": "2,0"})
        server.wait_log("device 0: gpushare software GPU")
        server.wait_log("device 1: gpushare software GPU")
        first, second = ("GPU-736f6674-6770-4075-8000-00000000000" + last for last in "20")
        self.assertEqual(self.visible(server), [(first, first), (second, second)])
        for device in "01":
            result = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client, CUDA_VISIBLE_DEVICES=device)
            self.assertEqual(result.returncode, 0, result.stderr + server.text())
        # A limit for a device that the process does not see has no effect, and somebody is told.
        for entry, shown in (("1=64M", "device 1"), (f"{first}=64M", f"device UUID {first[4:]}")):
            result = run(*INFO, GPUSHARE_SOCKET=server.client, CUDA_VISIBLE_DEVICES="1", GPUSHARE_PINNED_DEVICE_MEM_LIMIT=entry)
            self.assertIn(f"GPUSHARE_PINNED_DEVICE_MEM_LIMIT limits {shown}, which has no effect: of the server's devices this process sees 1 of 2 "
                          "(CUDA_VISIBLE_DEVICES)", result.stderr)
        result = run(*INFO, GPUSHARE_SOCKET=server.client, CUDA_VISIBLE_DEVICES="1", GPUSHARE_PINNED_DEVICE_MEM_LIMIT="0=64M")
        self.assertEqual(result.stderr, "")
        server.stop_well()

    def test_a_mig_instance_is_named_as_one(self):
        server = Server(env={"SOFTGPU_PROFILE": "mig"})
        self.assertEqual([told for _, told in self.visible(server)], ["MIG-736f6674-6770-4075-8000-000000000000"])
        server.stop_well()

    def test_an_instance_that_the_driver_does_not_show_first_is_found(self):
        second = "736f6674-6770-4075-8000-000000000001"
        server = Server(env={"SOFTGPU_PROFILE": "mig", "SOFTGPU_DEVICES": "3", "GPUSHARE_VISIBLE_DEVICES": f"MIG-{second}"})
        self.assertEqual(self.visible(server), [(f"GPU-{second}", f"MIG-{second}")])
        result = run(VECTOR_ADD, GPUSHARE_SOCKET=server.client)
        self.assertEqual(result.returncode, 0, result.stderr + server.text())
        server.stop_well()

    def test_a_driver_that_shows_all_devices_will_do(self):
        """The worker finds its own among them."""
        folder = tempfile.mkdtemp()
        worker = os.path.join(folder, "worker")
        with open(worker, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nunset CUDA_VISIBLE_DEVICES\nexec {BUILD}/libexec/gpushare-worker "$@"\n')
        os.chmod(worker, 0o755)
        try:
            server = Server("--worker", worker, env={"SOFTGPU_DEVICES": "2", "GPUSHARE_VISIBLE_DEVICES": "1"})
            device = json.loads(server.ctl("--json", "status").stdout)["devices"][0]
            self.assertEqual((device["uuid"][-1], device["pci"], device["driver_ordinal"]), ("1", "0000:02:00.0", 1))
            server.stop_well()
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
