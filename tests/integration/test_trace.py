#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: clients with kernels of milliseconds must run while they are traced
# light: it waits for traces
"""gpusharectl trace against a private server: Python's JSON reader reads the trace, which is compared
with the work of the clients and with the time that the server charged them."""
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
import private_server  # noqa: E402
from raw_client import RawClient  # noqa: E402
from server_case import CHANGES, NOBODY  # noqa: E402

GPU = 1
SLACK_US = 0.0015  # times are written in nanoseconds and read as binary fractions


class Trace:
    """A file as a viewer sees it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.whole = json.load(file)
        self.about, self.events = self.whole["otherData"], self.whole["traceEvents"]
        self.tracks = collections.defaultdict(list)
        self.processes, self.threads = {}, {}
        for event in self.events:
            if event["ph"] == "X":
                self.tracks[event["pid"], event["tid"]].append(event)
            elif event["name"] == "process_name":
                self.processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                self.threads[event["pid"], event["tid"]] = event["args"]["name"]
        for track in self.tracks.values():
            track.sort(key=lambda event: event["ts"])

    def spans(self, client):
        return {key: track for key, track in self.tracks.items()
                if key[0] == client + 1 and self.threads[key].startswith("stream ")}

    def leases(self):
        return {key: track for key, track in self.tracks.items() if key[0] == GPU and self.threads[key].startswith("leases")}

    def counters(self, process, name):
        return [(event["ts"], event["args"]["value"]) for event in self.events
                if event["ph"] == "C" and event["pid"] == process and event["name"] == name]


class Traces(unittest.TestCase):
    def check(self, trace):
        """Checks that every trace must pass."""
        self.assertEqual(trace.about["records_damaged"], 0)
        length = trace.about["seconds"] * 1e6
        for key, track in trace.tracks.items():
            self.assertIn(key[0], trace.processes)
            self.assertIn(key, trace.threads)
            end = 0
            for event in track:
                self.assertGreaterEqual(event["ts"] + SLACK_US, end, f"{trace.threads[key]}: {event}")
                self.assertGreaterEqual(event["dur"], 0)
                end = event["ts"] + event["dur"]
            self.assertLessEqual(end, length + SLACK_US)
        for event in trace.events:
            if event["ph"] in "Ci":
                self.assertLessEqual(event["ts"], length + SLACK_US)
        return trace

    def start_trace(self, server, path):
        """A trace that goes on until end_trace."""
        mark = len(server.text())
        tracer = server.start_ctl("trace", "-o", path, "--seconds", "599")
        server.wait_log("a trace of 599.000 s", mark)
        return tracer

    def end_trace(self, tracer, path):
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=private_server.SECONDS)
        self.assertEqual(tracer.returncode, 0, err)
        self.assertIn("ui.perfetto.dev", out)
        self.assertNotIn(" 1 clients", out)
        return self.check(Trace(path))

    def run_traced(self, server, *works):
        """Traces while the programs run. Returns the trace, and the server's row of each program."""
        path = server.file("trace.json")
        tracer = self.start_trace(server, path)
        for work in works:
            work.go()
        rows = [work.row() for work in works]
        return self.end_trace(tracer, path), rows


@CHANGES
class Concurrent(Traces):
    @classmethod
    def setUpClass(cls):
        cls.server = private_server.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop_well()

    def test_spans_of_a_client_alone_come_to_its_gpu_time(self):
        with self.server.work("alone \"1\"\\ \u00fc", 2000, 1, "--in-flight", 4) as work:
            trace, (row,) = self.run_traced(self.server, work)
        name = f"alone \"1\"\\ \u00fc (client {row['client']}, pid {work.pid}, uid {os.getuid()})"
        self.assertEqual(trace.processes[row["client"] + 1], name)
        spans = trace.spans(row["client"])
        self.assertEqual(len(spans), 1, "one stream, one track")
        (track,) = spans.values()
        # A span is cut where the device's clock is ahead of the estimate of it, as the software GPU's is
        # for a moment on a busy machine. The number of commands shows that no span is missing.
        spent = row["gpu_time_seconds"]
        self.assertAlmostEqual(sum(event["dur"] for event in track) / 1e6, spent, delta=spent / 100)
        self.assertGreaterEqual(row["gpu_time_seconds"], work.launches * 0.002 * 0.999)
        self.assertGreaterEqual(sum(event["args"]["commands"] for event in track), work.launches)
        self.assertEqual({event["args"]["multiprocessors"] for event in track}, {row["threads"]["multiprocessors"]})
        self.assertEqual({value for _, value in trace.counters(GPU, "clients in flight")}, {0, 1})

    def test_clients_side_by_side(self):
        with self.server.work("left", 3000, 1, threads="25") as left, \
                self.server.work("right", 3000, 1, "--streams", 3, threads="25") as right:
            trace, rows = self.run_traced(self.server, left, right)
        self.assertEqual([len(trace.spans(row["client"])) for row in rows], [1, 3])
        sets = [{event["args"]["sm_groups"] for track in trace.spans(row["client"]).values() for event in track} for row in rows]
        self.assertEqual([len(one) for one in sets], [1, 1])
        self.assertNotEqual(sets[0], sets[1], "disjoint quarters")
        names = {trace.threads[key] for key in trace.tracks if key[0] == GPU}
        for sm_groups in sets[0] | sets[1]:
            self.assertTrue(any(name.startswith(f"SM groups {sm_groups} (") for name in names), names)
        self.assertEqual(max(value for _, value in trace.counters(GPU, "clients in flight")), 2)

    def test_a_client_that_left_during_a_trace_keeps_its_name(self):
        path = self.server.file("left.json")
        tracer = self.start_trace(self.server, path)
        with self.server.work("gone soon", 1000, 0.1) as work:
            work.go()
            row = work.row()
        end = time.monotonic() + private_server.SECONDS
        while json.loads(self.server.ctl("--json", "clients").stdout)["clients"]:
            self.assertLess(time.monotonic(), end, "a client that left is still there")
            time.sleep(0.02)
        trace = self.end_trace(tracer, path)
        self.assertTrue(trace.spans(row["client"]))
        self.assertTrue(trace.processes[row["client"] + 1].startswith("gone soon ("))

    def test_json_and_refusals(self):
        path = self.server.file("json.json")
        answer = json.loads(self.server.ctl("--json", "trace", "-o", path, "--seconds", "0.05").stdout)
        json_check.check("admin-trace", answer)
        self.check(Trace(path))
        for words, part, status in ((("trace",), "-o FILE", 2), (("trace", "-o", path, "--seconds", "601"), "600", 2),
                                    (("trace", "-o", path, "--gpu", "x"), "number of a GPU", 2),
                                    (("status", "-o", path), "no option of status", 2),
                                    (("trace", "-o", path, "--gpu", "9"), "no GPU 9", 1),
                                    (("trace", "-o", "/dev/null/x"), "/dev/null/x", 1)):
            result = self.server.ctl(*words)
            self.assertEqual(result.returncode, status, result)
            self.assertIn(part, result.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("{"), "a refusal leaves the file as it was")
        other = self.server.file("none.json")
        self.assertEqual(self.server.ctl("trace", "-o", other, "--gpu", "9").returncode, 1)
        self.assertFalse(os.path.exists(other), "nor makes one")

    def test_one_trace_at_a_time_until_its_asker_is_gone(self):
        path = self.server.file("first.json")
        mark = len(self.server.text())
        first = self.server.start_ctl("trace", "-o", path, "--seconds", "599")
        self.server.wait_log("a trace of 599.000 s", mark)
        second = self.server.ctl("trace", "-o", path + "2", "--seconds", "1")
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"(pid {first.pid})", second.stderr)
        first.kill()
        first.communicate()
        end = time.monotonic() + private_server.SECONDS
        while self.server.ctl("trace", "-o", path, "--seconds", "0.01").returncode:
            self.assertLess(time.monotonic(), end, "a dead tool's trace goes on")
        self.check(Trace(path))

    def test_a_signal_ends_it_and_nothing_is_lost(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            path = self.server.file(f"{number.name}.json")
            tracer = self.start_trace(self.server, path)
            with self.server.work("in time", 1000, 0.1) as work:
                work.go()
                row = work.row()
                tracer.send_signal(number)
                _, err = tracer.communicate(timeout=private_server.SECONDS)
            self.assertEqual(tracer.returncode, 0, err)
            self.assertIn("the trace is cut short: it was ended early, after", err)
            trace = self.check(Trace(path))
            self.assertLess(trace.about["seconds"], private_server.SECONDS)
            (track,) = trace.spans(row["client"]).values()
            self.assertGreaterEqual(sum(event["args"]["commands"] for event in track), work.launches)

    def test_a_second_signal_ends_the_tool(self):
        """A server that reads the first request and never answers."""
        with socket.socket(socket.AF_UNIX) as silent, tempfile.TemporaryDirectory() as folder:
            silent.bind(os.path.join(folder, "a"))
            silent.listen()
            silent.settimeout(private_server.SECONDS)
            tracer = subprocess.Popen([private_server.GPUSHARECTL, "--socket", os.path.join(folder, "a"), "trace", "-o",
                                       os.path.join(folder, "t"), "--seconds", "599"], stderr=subprocess.PIPE, env=private_server.ENV)
            with tracer.stderr:
                peer, _ = silent.accept()
                with peer:
                    peer.settimeout(private_server.SECONDS)
                    line = b""
                    while not line.endswith(b"\n"):
                        line += peer.recv(4096)
                    tracer.send_signal(signal.SIGINT)
                    self.assertEqual(peer.recv(1), b"", "the tool must close its sending side")
                    self.assertIsNone(tracer.poll())
                    time.sleep(1)  # an earlier one is the first one over again
                    tracer.send_signal(signal.SIGTERM)
                    self.assertEqual(tracer.wait(private_server.SECONDS), -signal.SIGTERM)

    def test_a_signal_that_comes_twice_at_once_ends_the_trace(self):
        """As timeout(1) sends it: to the tool, and to the tool's process group."""
        path = self.server.file("twice.json")
        tracer = self.start_trace(self.server, path)
        for _ in range(2):
            tracer.send_signal(signal.SIGTERM)
            time.sleep(0.001)
        _, err = tracer.communicate(timeout=private_server.SECONDS)
        self.assertEqual(tracer.returncode, 0, err)
        self.check(Trace(path))

    def test_json_tells_that_a_trace_ended_early(self):
        mark = len(self.server.text())
        tracer = self.server.start_ctl("--json", "trace", "-o", self.server.file("early.json"), "--seconds", "599")
        self.server.wait_log("a trace of 599.000 s", mark)
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=private_server.SECONDS)
        self.assertEqual(tracer.returncode, 0, err)
        answer = json.loads(out)
        json_check.check("admin-trace", answer)
        self.assertRegex(answer["trouble"], r"^it was ended early, after \d+\.\d+ of 599\.000 s$")
        self.assertIn(f"is over: {answer['trouble']}", self.server.text())

    def test_a_signal_that_is_ignored_ends_nothing(self):
        path = self.server.file("ignored.json")
        mark = len(self.server.text())
        tracer = self.server.start_ctl("trace", "-o", path, "--seconds", "1",
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.server.wait_log("a trace of 1.000 s", mark)
        tracer.send_signal(signal.SIGINT)
        _, err = tracer.communicate(timeout=private_server.SECONDS)
        self.assertEqual((tracer.returncode, err), (0, ""))
        self.assertGreaterEqual(self.check(Trace(path)).about["seconds"], 0.99)

    def test_closing_the_sending_side_brings_the_answer_at_once(self):
        began = time.monotonic()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(private_server.SECONDS)
            peer.connect(self.server.admin)
            peer.sendall(b'{"request":"trace","gpu":0,"seconds":599}\n')
            peer.shutdown(socket.SHUT_WR)
            line, (fd,), _, _ = socket.recv_fds(peer, 1 << 16, 4)
            os.close(fd)
            self.assertTrue(json.loads(line)["ok"], line)
            self.assertEqual(peer.recv(1), b"", "and no more is waited for")
        self.assertLess(time.monotonic() - began, 300)

    def test_the_memory_can_only_be_read(self):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(private_server.SECONDS)
            peer.connect(self.server.admin)
            peer.sendall(b'{"request":"trace","gpu":0,"seconds":0.01}\n')
            _, (fd,), _, _ = socket.recv_fds(peer, 1 << 16, 4)
        try:
            with self.assertRaises(OSError):
                os.write(fd, b"x")
            with self.assertRaises(OSError):
                os.ftruncate(fd, 0)
        finally:
            os.close(fd)


class Restricted(Traces):
    def test_only_administrators_may(self):
        with private_server.Server(admin=None) as server:
            if os.getuid() != 0:
                result = server.ctl("trace", "-o", server.file("x"), "--seconds", "0.01")
                # Who started the server by hand is its administrator, unless that is nobody's user.
                self.assertEqual(result.returncode, os.getuid() == NOBODY, result.stderr)
                return
            os.chmod(server.admin, 0o777)
            ask = ("import os,socket,sys\ns=socket.socket(socket.AF_UNIX)\nos.setgroups([])\nos.setgid(12345)\n"
                   "os.setuid(12345)\ns.connect(sys.argv[1])\n"
                   "s.sendall(b'{\"request\":\"trace\",\"gpu\":0,\"seconds\":0.01}\\n')\nprint(s.recv(65536).decode())\n")
            result = subprocess.run([sys.executable, "-c", ask, server.admin], capture_output=True, text=True,
                                    timeout=private_server.SECONDS, check=True)
            self.assertEqual(json.loads(result.stdout)["error"], "not_permitted")


@CHANGES
class Modes(Traces):
    def setUp(self):
        self.server = private_server.Server()

    def tearDown(self):
        self.server.stop_well()

    def set_gpu(self, *words):
        result = self.server.ctl("set", "gpu", "0", *words)
        self.assertEqual(result.returncode, 0, result.stderr)

    def lease_sums(self, trace):
        sums = collections.Counter()
        for track in trace.leases().values():
            for lease in track:
                sums[lease["args"]["client"]] += lease["dur"] / 1e6
        return sums

    def test_leases_add_up_to_the_time_charged(self):
        self.set_gpu("mode=strict", "lease=20ms")
        with self.server.work("half", 2000, 1.5, "--in-flight", 8, GPUSHARE_TIME_REQUEST="50%") as half, \
                self.server.work("fifth", 2000, 1.5, "--in-flight", 8, GPUSHARE_TIME_REQUEST="20%") as fifth:
            trace, rows = self.run_traced(self.server, half, fifth)
        self.assertEqual(trace.about["mode"], "strict")
        self.assertEqual([trace.threads[key] for key in trace.leases()], ["leases, lease group 0"])
        sums = self.lease_sums(trace)
        for row in rows:
            self.assertGreater(sums[row["client"]], 0.05)
            # The last lease may have gone on when the server was asked.
            self.assertAlmostEqual(sums[row["client"]], row["charged_seconds"], delta=max(0.021, 0.01 * row["charged_seconds"]))
            held = [track for key, track in trace.tracks.items()
                    if key[0] == row["client"] + 1 and trace.threads[key] == "held: lease"]
            self.assertEqual(len(held), 1)
            self.assertAlmostEqual(sum(event["dur"] for event in held[0]) / 1e6, row["throttled_seconds"]["lease"], delta=0.05)
        leases = sorted((lease["ts"], lease["ts"] + lease["dur"], lease["args"]["client"])
                        for track in trace.leases().values() for lease in track)
        for row in rows:
            for track in trace.spans(row["client"]).values():
                for event in track:
                    middle = event["ts"] + event["dur"] / 2
                    self.assertTrue(any(start - 1000 <= middle <= end + 1000 for start, end, client in leases if client == row["client"]),
                                    f"work of {row['name']} at {middle} outside of its leases")

    def test_a_switch_of_mode_shows(self):
        path = self.server.file("switch.json")
        tracer = self.server.start_ctl("trace", "-o", path, "--seconds", "1")
        self.server.wait_log("a trace of")
        self.set_gpu("mode=turns", "quantum=50ms")
        with self.server.work("one", 1000, 0.2) as work:
            work.go()
            work.row()
            tracer.communicate(timeout=private_server.SECONDS)
        trace = self.check(Trace(path))
        self.assertEqual(trace.about["mode"], "concurrent")
        self.assertEqual([event["name"] for event in trace.events if event.get("cat") == "mode"], ["mode turns"])
        self.assertTrue(trace.leases())

    def test_borrowed_multiprocessors_show(self):
        with self.server.work("owner", 2000, 0.4, GPUSHARE_THREADS_REQUEST="50%", threads="50") as owner, \
                self.server.work("borrower", 2000, 1.5, "--in-flight", 4) as borrower:
            trace, rows = self.run_traced(self.server, owner, borrower)
        whole = max(value for _, value in trace.counters(rows[1]["client"] + 1, "multiprocessors"))
        had = [value for _, value in trace.counters(rows[1]["client"] + 1, "multiprocessors")]
        self.assertTrue(any(value < whole for value in had), f"the borrower never had fewer multiprocessors: {had}")
        self.assertEqual(had[-1], whole, "the borrower must have all while the owner is idle")
        for track in trace.spans(rows[0]["client"]).values():
            self.assertTrue(all(event["args"]["multiprocessors"] <= whole // 2 for event in track))


def kill_worker(server):
    worker = json.loads(server.ctl("--json", "status").stdout)["devices"][0]["worker_pid"]
    os.kill(worker, signal.SIGKILL)


@CHANGES
class Faults(Traces):
    def recoveries(self, trace, process):
        found = [event for event in trace.events if event.get("cat") == "recovery" and event["pid"] == process]
        self.assertTrue(all(trace.threads[process, event["tid"]] == "recovery" for event in found))
        self.assertEqual({event["name"] for event in found}, {"recovers"} if found else set())
        return [(event["ts"], event["ts"] + event["dur"]) for event in found]

    def test_a_trace_goes_on_with_the_next_worker(self):
        with private_server.Server() as server, server.work("busy", 2000, 2.5, "--in-flight", 4) as busy, \
                server.work("pauses", 2000, 2.5, "--busy", 50, "--idle", 50) as pauses:
            idle = RawClient(server.client)
            idle.attach(name="does nothing")
            path = server.file("both.json")
            tracer = server.start_ctl("--json", "trace", "-o", path, "--seconds", "4")
            server.wait_log("a trace of 4.000 s")
            for work in (busy, pauses):
                work.go()
            time.sleep(0.5)
            kill_worker(server)
            rows = [work.row() for work in (busy, pauses)]
            late = RawClient(server.client)
            late.attach(name="came later")
            out, err = tracer.communicate(timeout=private_server.SECONDS)
            late.close()
            idle.close()
            self.assertEqual((tracer.returncode, err), (0, ""))
            answer = json.loads(out)
            self.assertIsNone(answer["trouble"])
            names = {row["name"]: row["client"] for row in answer["clients"]}
            self.assertEqual((len(answer["clients"]), set(names)), (4, {"busy", "pauses", "does nothing", "came later"}))
            trace = self.check(Trace(path))
            self.assertGreaterEqual(trace.about["seconds"], 3.99)
            ((lost, served),) = self.recoveries(trace, GPU)
            self.assertLess(lost, served)
            self.assertEqual(self.recoveries(trace, names["came later"] + 1), [])
            for name in ("busy", "pauses", "does nothing"):
                ((start, end),) = self.recoveries(trace, names[name] + 1)
                self.assertAlmostEqual(start, lost, delta=SLACK_US)
                self.assertGreaterEqual(end, served, "a worker serves before it reads rings")
            for row in rows:
                ((start, end),) = self.recoveries(trace, row["client"] + 1)
                (spans,) = trace.spans(row["client"]).values()
                self.assertTrue(any(span["ts"] + span["dur"] <= start + SLACK_US for span in spans), "none before")
                self.assertTrue(any(span["ts"] + SLACK_US >= end for span in spans), "none after")
                for span in spans:
                    self.assertFalse(start + SLACK_US < span["ts"] < end - SLACK_US, f"{span} without a worker")

    def test_without_another_worker_a_trace_has_what_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "worker")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n[ -e {folder}/broken ] && exit 1\n"
                           f"exec {private_server.BUILD}/libexec/gpushare-worker \"$@\"\n")
            os.chmod(folder, 0o755)
            os.chmod(script, 0o755)
            server = private_server.Server("--worker", script)
            try:
                path = server.file("cut.json")
                tracer = server.start_ctl("trace", "-o", path, "--seconds", "2")
                server.wait_log("a trace of 2.000 s")
                client = RawClient(server.client)
                client.attach(name="survives in the trace")
                with open(os.path.join(folder, "broken"), "w", encoding="utf-8"):
                    kill_worker(server)
                _, err = tracer.communicate(timeout=private_server.SECONDS)
                client.close()
                self.assertEqual(tracer.returncode, 0, err)
                self.assertRegex(err, r"cut short: the worker ended after \d\.\d+ of 2\.000 s, and no other served")
                trace = self.check(Trace(path))
                self.assertIn("no other served", trace.about["trouble"])
                self.assertEqual(self.recoveries(trace, GPU), [], "there was none")
                self.assertTrue(any(name.startswith("survives in the trace") for name in trace.processes.values()))
            finally:
                server.stop()


if __name__ == "__main__":
    unittest.main()
