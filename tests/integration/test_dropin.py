#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The drop-in libcuda.so.1: what it exports, and programs that know only CUDA, which a server serves."""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, ENV, SECONDS, Server, run  # noqa: E402
from toolkit import compile_cuda  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
LIBRARIES = os.path.join(BUILD, "lib/gpushare")
SOFTGPU = os.path.join(BUILD, "lib/softgpu")
PROGRAM = os.path.join(BUILD, "tests/programs/dropin/program")
TENANT = os.path.join(BUILD, "tests/programs/tenant/tenant")


def rows_of_table():
    """{symbol: (name, version)} of all functions that NVIDIA's library has."""
    with open(os.path.join(ROOT, "common/cuda/front/exports.txt"), encoding="utf-8") as text:
        return {symbol: (name, int(version)) for symbol, name, version in re.findall(r"^(\w+) (\w+) (\d+)\b", text.read(), re.M)}


def carried_symbols():
    return subprocess.run([os.path.join(BUILD, "tests/programs/tables/tables"), "driver"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()


class Exports(unittest.TestCase):
    def test_both_libraries_export_each_function_of_the_table(self):
        rows = rows_of_table()
        self.assertGreater(len(rows), 700)
        for folder, others in ((LIBRARIES, ["gpushare_dropin_marker"]), (SOFTGPU, [])):
            with self.subTest(folder=folder):
                lines = subprocess.run(["nm", "-D", "--defined-only", os.path.join(folder, "libcuda.so.1")], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout
                self.assertEqual(set(re.findall(r" T (\S+)$", lines, re.M)), set(rows))
                self.assertEqual(re.findall(r" [A-SU-Z] (\S+)$", lines, re.M), others)

    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_both_libraries_carry_each_function_that_one_table_names(self):
        rows, carried = rows_of_table(), carried_symbols()
        self.assertGreater(len(carried), 250)
        self.assertEqual(set(carried) - set(rows), set())
        for folder in (LIBRARIES, SOFTGPU):
            library = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"))
            for symbol in carried:
                found = ctypes.c_void_p()
                name, version = rows[symbol]
                per_thread = 2 if symbol.endswith(("_ptsz", "_ptds")) else 0
                result = library.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), version, ctypes.c_uint64(per_thread), None)
                self.assertEqual((result, found.value), (0, ctypes.cast(library[symbol], ctypes.c_void_p).value), (folder, symbol))

    def test_a_function_that_is_not_carried_is_refused_and_named_once(self):
        # It asks no server.
        for folder in (LIBRARIES, SOFTGPU):
            with self.subTest(folder=folder):
                ended = run(PROGRAM, "absent", LD_LIBRARY_PATH=folder, GPUSHARE_SOCKET="/nowhere")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(re.findall(r"^gpushare: .* does not carry (\w+); .*CUDA_ERROR_NOT_SUPPORTED$", ended.stderr, re.M),
                                 ["cuGraphCreate", "cuStreamBeginCapture_v2_ptsz"])

    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_the_library_that_asks_for_an_undocumented_table_is_named_once(self):
        asker = os.path.join(os.path.dirname(PROGRAM), "library")
        for folder in (LIBRARIES, SOFTGPU):
            with self.subTest(folder=folder):
                ended = run(PROGRAM, "table", LD_LIBRARY_PATH=folder + ":" + asker, GPUSHARE_SOCKET="/nowhere")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(re.findall(r"^gpushare: (\S+) asks for .*\(cuGetExportTable\).*; link it with .*$", ended.stderr, re.M),
                                 [os.path.join(asker, "libasker.so")])
                self.assertEqual(ended.stderr.count("cuGetExportTable"), 1, ended.stderr)

    def test_the_server_does_not_serve_it(self):
        with tempfile.TemporaryDirectory() as folder:
            sockets = [os.path.join(folder, name) for name in ("client", "admin")]
            ended = run(os.path.join(BUILD, "bin/gpushared"), "--driver", os.path.join(LIBRARIES, "libcuda.so.1"),
                        "--socket", sockets[0], "--admin-socket", sockets[1])
            self.assertEqual(ended.returncode, 1)
            self.assertIn("gpushare's own drop-in", ended.stderr)


class Straight(unittest.TestCase):
    """The same programs on the software GPU alone, which makes the same promises."""

    def run_well(self, mode, **more):
        ended = run(PROGRAM, mode, LD_LIBRARY_PATH=SOFTGPU, GPUSHARE_SOCKET="/nowhere", **more)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_the_driver_api_does_as_cudas(self):
        for strict in ("0", "1"):
            with self.subTest(strict=strict):
                self.run_well("calls", SOFTGPU_STRICT=strict)

    def test_a_case_that_is_refused_is_named_once(self):
        ended = run(PROGRAM, "calls", LD_LIBRARY_PATH=SOFTGPU, GPUSHARE_SOCKET="/nowhere")
        refused = re.findall(r"^gpushare: .* does not carry (.*); each call of it", ended.stderr, re.M)
        self.assertIn("cuMemPoolCreate of memory that is shared, managed or of the host", refused)
        self.assertEqual(len(refused), len(set(refused)), refused)

    def test_a_program_sees_the_whole_device(self):
        multiprocessors, memory = map(int, self.run_well("share", SOFTGPU_PROFILE="h100").split())
        self.assertEqual((multiprocessors, memory), (132, 81559 << 20))

    def test_a_cooperative_grid_fills_the_device(self):
        self.assertGreater(int(self.run_well("cooperative")), 132)

    def test_copies_go_between_two_devices(self):
        self.run_well("peers", SOFTGPU_DEVICES="2")

    def test_streams_wait_for_values(self):
        for strict in ("0", "1"):
            with self.subTest(strict=strict):
                self.run_well("waits", SOFTGPU_STRICT=strict)


class Devices(unittest.TestCase):
    def test_copies_go_between_two_devices(self):
        with Server(env={"SOFTGPU_DEVICES": "2"}) as server:
            ended = run(PROGRAM, "peers", LD_LIBRARY_PATH=LIBRARIES, GPUSHARE_SOCKET=server.client)
            self.assertEqual(ended.returncode, 0, ended.stderr + server.text())


class Programs(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop_well)

    def environment(self, **more):
        return {"LD_LIBRARY_PATH": LIBRARIES, "GPUSHARE_SOCKET": self.server.client, **more}

    def run_well(self, *command, **more):
        ended = run(*command, **self.environment(**more))
        self.assertEqual(ended.returncode, 0, ended.stderr + self.server.text())
        return ended.stdout

    def start(self, mode, **more):
        process = subprocess.Popen([PROGRAM, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**ENV, **self.environment(**more)})
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_the_driver_api_does_as_cudas(self):
        self.run_well(PROGRAM, "calls")

    def test_programs_of_both_runtimes_run(self):
        for release in ("12", "13"):
            with self.subTest(release=release):
                self.run_well(os.path.join(BUILD, "tests/programs/cudart/program_" + release))

    def test_a_program_sees_its_share(self):
        whole, memory = map(int, self.run_well(PROGRAM, "share").split())
        part, limit = map(int, self.run_well(PROGRAM, "share", GPUSHARE_ACTIVE_THREAD_PERCENTAGE="25", GPUSHARE_MEMORY_LIMIT="256M").split())
        self.assertEqual(limit, 256 << 20)
        self.assertGreater(memory, limit)
        # A quarter, in whole SM groups.
        self.assertLess(part, whole // 3)
        self.assertGreater(part, 0)

    def test_a_limit_of_the_configuration_holds(self):
        with open(self.server.file("none.yaml"), "w", encoding="utf-8") as file:
            file.write("clients:\n  memory: {limit: 128M}\n")
        loaded = self.server.ctl("reload")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        self.assertEqual(int(self.run_well(PROGRAM, "share", GPUSHARE_MEMORY_LIMIT="1G").split()[1]), 128 << 20)

    def test_a_fault_is_its_authors_sticky_error(self):
        """Every call returns it, and the program is told once whose it is."""
        ended = run(PROGRAM, "fault", **self.environment())
        self.assertEqual(ended.returncode, 0, ended.stderr + self.server.text())
        self.assertEqual(re.findall(r"\bstray\b", ended.stderr), ["stray"], ended.stderr)

    def test_an_idle_program_goes_on_beside_a_fault(self):
        idle = self.start("idle")
        self.run_well(PROGRAM, "fault")
        output, errors = idle.communicate("\n", SECONDS)
        self.assertEqual((idle.returncode, output), (0, "right\n"), errors)

    def test_memory_that_a_program_keeps_idle_serves_another(self):
        keep = self.start("keep")
        self.run_well(PROGRAM, "fill")
        output, errors = keep.communicate("", SECONDS)
        self.assertEqual((keep.returncode, output), (0, "right\n"), errors)

    def test_a_program_that_requests_memory_gets_what_another_keeps_idle(self):
        keep = self.start("keep")
        memory = int(self.run_well(PROGRAM, "share").split()[1])
        self.run_well(PROGRAM, "fill", GPUSHARE_MEMORY_REQUEST=str(memory // 5 * 4))
        output, errors = keep.communicate("", SECONDS)
        self.assertEqual((keep.returncode, output), (0, "right\n"), errors)

    def test_memory_that_a_program_keeps_idle_outlives_the_worker(self):
        keep = self.start("keep")
        os.kill(self.worker(), signal.SIGKILL)
        output, errors = keep.communicate("", SECONDS)
        self.assertEqual((keep.returncode, output), (0, "right\n"), errors)

    def test_streams_wait_for_values(self):
        self.run_well(PROGRAM, "waits")

    def test_the_end_of_a_context_ends_its_waits(self):
        self.run_well(PROGRAM, "waits-reset")

    def test_a_program_that_waits_holds_up_no_other(self):
        """More streams wait than there are hardware queues; the other program loads a module, which needs a quiet window. So it does
        on a device whose calls all wait for what runs."""
        with Server(env={"SOFTGPU_LOCKING_DRAINS": "1", "SOFTGPU_DRAIN_PERCENT": "100"}) as draining:
            for server in (self.server, draining):
                for mode in ("wait-host", "wait-device"):
                    with self.subTest(mode=mode, draining=server is draining):
                        waiting = self.start(mode, GPUSHARE_SOCKET=server.client)
                        self.run_well(PROGRAM, "waits", GPUSHARE_SOCKET=server.client)
                        output, errors = waiting.communicate("\n", SECONDS)
                        self.assertEqual((waiting.returncode, output), (0, "right\n"), errors)

    def test_waits_end_with_their_program(self):
        for mode in ("wait-host", "wait-device"):
            with self.subTest(mode=mode):
                waiting = self.start(mode)
                self.assertEqual(self.clients(), 1)
                waiting.kill()
                waiting.communicate()
                while self.clients():
                    time.sleep(0.01)
                self.run_well(PROGRAM, "fill")

    def test_waits_outlive_the_worker(self):
        for mode in ("wait-host", "wait-device"):
            with self.subTest(mode=mode):
                waiting = self.start(mode)
                os.kill(self.worker(), signal.SIGKILL)
                output, errors = waiting.communicate("\n", SECONDS)
                self.assertEqual((waiting.returncode, output), (0, "right\n"), errors + self.server.text())
                self.server.hear_rest()

    def clients(self):
        status = self.server.ctl("--json", "status")
        self.assertEqual(status.returncode, 0, status.stderr)
        return json.loads(status.stdout)["clients"]

    def test_a_program_whose_work_is_lost_ends_with_a_sticky_error(self):
        for _ in range(30):
            steady = self.start("steady")
            os.kill(self.worker(), signal.SIGKILL)
            output, errors = steady.communicate("", SECONDS)
            if steady.returncode:
                break
            # Nothing of it was in flight at that moment.
            self.assertGreater(int(output), 0)
            self.server.hear_rest()
        self.assertEqual(steady.returncode, 1)
        self.assertIn("CUDA_ERROR_LAUNCH_FAILED", errors)
        self.assertIn("start the program again", errors)
        self.run_well(PROGRAM, "calls")

    def worker(self):
        children = subprocess.run(["pgrep", "-P", str(self.server.process.pid), "-f", "gpushare-worker.*--device"], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.split()
        self.assertEqual(len(children), 1)
        return int(children[0])

    def test_without_a_server_the_first_call_says_so(self):
        ended = run(PROGRAM, "share", LD_LIBRARY_PATH=LIBRARIES, GPUSHARE_SOCKET=self.server.file("nowhere"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("CUDA_ERROR_MPS_CONNECTION_FAILED", ended.stderr)
        self.assertIn("nowhere", ended.stderr)

    def test_a_cooperative_grid_fills_its_share(self):
        whole = int(self.run_well(PROGRAM, "cooperative"))
        part = int(self.run_well(PROGRAM, "cooperative", GPUSHARE_ACTIVE_THREAD_PERCENTAGE="25"))
        self.assertGreater(part, 0)
        self.assertLess(part, whole // 3)

    def test_cooperative_grids_of_several_programs_end(self):
        programs = [subprocess.Popen([PROGRAM, "cooperative"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env={**ENV, **self.environment()}) for _ in range(3)]
        for program in programs:
            self.addCleanup(program.kill)
        for program in programs:
            output, errors = program.communicate("", SECONDS)
            self.assertEqual(program.returncode, 0, errors + self.server.text())
            self.assertGreater(int(output), 0)

    def test_a_list_that_hides_all_devices_is_named(self):
        ended = run(PROGRAM, "share", **self.environment(GPUSHARE_VISIBLE_DEVICES="3"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("CUDA_ERROR_NO_DEVICE", ended.stderr)
        self.assertRegex(ended.stderr, "(?m)^gpushare: GPUSHARE_VISIBLE_DEVICES leaves this process no device")

    def test_a_misspelt_limit_is_named_once(self):
        for wanted, count in (("1", 1), ("0", 0)):
            with self.subTest(wanted=wanted):
                ended = run(PROGRAM, "calls", **self.environment(GPUSHARE_MEMRY_LIMIT="1G", GPUSHARE_WARNINGS=wanted))
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(len(re.findall("(?m)^gpushare: warning: .*GPUSHARE_MEMRY_LIMIT.*GPUSHARE_MEMORY_LIMIT", ended.stderr)),
                                 count, ended.stderr)

    def test_a_share_of_time_that_is_not_enforced_is_named_once(self):
        """The program has several connections, one after the other."""
        ended = run(PROGRAM, "calls", **self.environment(GPUSHARE_TIME_REQUEST="30%"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(re.findall("(?m)^gpushare: warning: GPUSHARE_TIME_REQUEST asks .* mode concurrent", ended.stderr)), 1,
                         ended.stderr)

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_a_program_that_nvcc_built_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(ROOT, "tests/programs/cudart/part_library.cu")
            for name, options in (("vector_add", ()), ("managed", ()), ("part_caller", ("-rdc=true", library))):
                with self.subTest(name=name):
                    program = os.path.join(folder, name)
                    compile_cuda(os.path.join(ROOT, "tests/programs/cudart", name + ".cu"), program, *options)
                    self.assertEqual(self.run_well(program), "right\n")

    @unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer's library must be a program's first one")
    def test_nvcc_chooses_whose_the_default_stream_is(self):
        source = os.path.join(ROOT, "tests/programs/cudart/per_thread.cu")
        with tempfile.TemporaryDirectory() as folder:
            for whose, milliseconds, seen in (("per-thread", "20000", "7\n"), ("legacy", "50", "0\n")):
                with self.subTest(whose=whose):
                    program = os.path.join(folder, whose)
                    compile_cuda(source, program, "--default-stream", whose, "-Xcompiler", "-pthread")
                    self.assertEqual(self.run_well(program, milliseconds), seen)

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer traces by itself")
    def test_no_device_node_is_opened(self):
        runtimes = [os.path.join(BUILD, "tests/programs/cudart/program_" + release) for release in ("12", "13")]
        for processes, command in ((1, (PROGRAM, "calls")), (1, (runtimes[0],)), (1, (runtimes[1],)), (2, (TENANT, "child"))):
            with self.subTest(command=command):
                self.trace_opens(processes, *command)

    def trace_opens(self, processes, *command):
        trace = self.server.file("trace")
        self.run_well("strace", "-f", "-e", "trace=?open,openat,?openat2,?open_by_handle_at,?creat,execve", "-o", trace, *command)
        with open(trace, encoding="utf-8", errors="replace") as file:
            opened = file.read()
        executed = re.findall(r"^(\d+) +execve\(.* = 0$", opened, re.M)
        self.assertEqual(len(executed), processes)
        for pid in executed:
            self.assertRegex(opened, rf"(?m)^{pid} .*/libcuda\.so\.1.* = \d+$")
        self.assertEqual(set(re.findall(r'"(/dev/[^"]*)"', opened)), set())
        self.assertNotIn("open_by_handle_at", opened)

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer traces by itself")
    def test_what_the_process_knows_asks_nobody(self):
        trace = self.server.file("trace")
        self.run_well("strace", "-f", "-e", "trace=!brk,mmap,munmap", "-o", trace, TENANT, "local")
        with open(trace, encoding="utf-8", errors="replace") as file:
            calls = re.findall(r"^\d+ +(.*)$", file.read(), re.M)
        ends = [i for i, call in enumerate(calls) if call.startswith('write(2, "asked\\n"')]
        begins = [i for i, call in enumerate(calls) if call.startswith('write(2, "asks ')]
        self.assertEqual(len(ends), 1)
        self.assertGreater(len(begins), 50)
        # Of each question its line alone: the call behind one is the next line.
        self.assertEqual([calls[i - 1:i + 2] for i in range(begins[0], ends[0]) if not calls[i].startswith('write(2, "asks ')], [])

    def count_calls(self, bursts):
        """Of a program that launches so many bursts, and looks without a wait when they are done: its writes meanwhile, which no tracer
        slows down, its pauses between two commands, and {system call: how often} of all others."""
        counts = self.server.file(f"counts-{bursts}")
        said = self.run_well("strace", "-f", "--seccomp-bpf", "-c", "-U", "calls,name", "-e", "trace=!write", "-o", counts,
                             os.path.join(BUILD, "tests/programs/pace/pace"), "steady", str(bursts))
        with open(counts, encoding="utf-8") as file:
            found = {name: int(calls) for calls, name in re.findall(r"^ *(\d+) (\w+)$", file.read(), re.M)}
        self.assertGreater(found.pop("total"), 0)
        writes, pauses = map(int, said.split())
        return writes, pauses, found

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer traces by itself")
    def test_more_launches_make_no_more_system_calls(self):
        bursts, launches = 400, 400 * 64
        few = self.count_calls(50)[2]
        writes, pauses, many = self.count_calls(bursts)
        # A worker that has gone to sleep is woken by a write, once for whatever was launched until it woke. It sleeps where there is a
        # second processor to stay awake on only behind a pause.
        if os.cpu_count() > 1:
            self.assertLessEqual(writes, pauses)
        self.assertLess(writes, launches / 64)
        for name in few.keys() | many.keys():
            # A wait for a lock, or a page of memory: a few, however many launches there are.
            self.assertLess(abs(many.get(name, 0) - few.get(name, 0)), 16, (name, few, many))


if __name__ == "__main__":
    unittest.main()
