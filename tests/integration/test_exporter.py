#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpushare-exporter and `gpusharectl metrics` against a server: what is exported, who may ask, and what happens when the
server is away."""
import base64
import contextlib
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import json_check  # noqa: E402
from exporter import EXPORTER, Exporter  # noqa: E402
from exposition import Exposition  # noqa: E402
from private_server import BUILD, ENV, FOR_OTHER_USERS, SECONDS, Server, run  # noqa: E402
from raw_client import RawClient  # noqa: E402

STRAY = os.path.join(BUILD, "examples/stray")
STRANGER = 4712
UID = str(os.getuid())


class Case(unittest.TestCase):
    def served(self, *options, **env):
        server = Server(*options, env=env)
        self.addCleanup(server.stop_well)
        return server

    def attached(self, server, **values):
        client = RawClient(server.client)
        self.addCleanup(client.close)
        return client.attach(**values)

    def once(self, server, *options):
        done = run(EXPORTER, "--once", "--socket", server.admin, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Exposition(done.stdout)

    def answer(self, server):
        done = server.ctl("--json", "metrics")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        json_check.check("admin-metrics", answer)
        return answer


class Content(Case):
    def test_work_is_counted_for_client_user_and_gpu(self):
        server = self.served()
        with server.work("trainer", 200, 0.3) as work:
            work.go()
            row = work.row()
            answer, seen = self.answer(server), self.once(server)
            launches = work.launches
        gpu = {"gpu": "0", "UUID": answer["devices"][0]["uuid"]}
        client = {**gpu, "client": str(row["client"]), "uid": UID, "name": "trainer"}
        self.assertEqual(seen.one("gpushare_up"), 1)
        self.assertEqual(seen.one("gpushare_clients"), 1)
        self.assertEqual(seen.one("gpushare_client_launches_total", **client), launches)
        self.assertEqual(seen.one("gpushare_user_launches_total", uid=UID, **gpu), launches)
        self.assertGreater(seen.one("gpushare_user_gpu_seconds_total", uid=UID, **gpu), 0)
        self.assertEqual(seen.one("gpushare_client_memory_limit_bytes", **client), row["memory"]["limit"]["granted_bytes"])
        self.assertEqual(seen.one("gpushare_client_threads_limit_ratio", **client), 1)
        self.assertEqual(seen.one("gpushare_queue_wait_seconds_count", uid=UID, **gpu), sum(row["waits"]))
        self.assertGreaterEqual(seen.one("gpushare_queue_wait_seconds_count", uid=UID, **gpu), launches)
        # One of sixteen batches is timed, and the first.
        timed = seen.one("gpushare_launch_latency_seconds_count", uid=UID, **gpu)
        self.assertTrue(1 <= timed <= launches / 16 + 1, (timed, launches))
        # No kernel of 200 us is done sooner.
        self.assertEqual(seen.one("gpushare_launch_latency_seconds_bucket", uid=UID, le="0.000128", **gpu), 0)
        self.assertEqual(seen.one("gpushare_gpu_ready", **gpu), 1)
        self.assertEqual(seen.one("gpushare_gpu_info", **gpu), 1)
        self.assertEqual(seen.one("gpushare_gpu_worker_starts_total", **gpu), 1)
        self.assertEqual({dict(labels)["reason"] for labels in seen.of("gpushare_user_throttled_seconds_total", uid=UID)},
                         {"lease", "duty", "priority", "threads"})

    def test_a_users_sums_outlive_its_clients(self):
        server = self.served()
        before = 0
        for _ in range(2):
            with server.work("short", 100, 0.05) as work:
                work.go()
                work.row()
            end = time.monotonic() + SECONDS
            while (answer := self.answer(server))["clients"]:
                self.assertLess(time.monotonic(), end)
            user, = answer["users"]
            self.assertEqual((user["clients"], user["memory_used_bytes"]), (0, 0))
            self.assertGreater(user["launches"], before)
            self.assertEqual(answer["client_rows"], [])
            before = user["launches"]

    def test_no_counter_falls_when_a_worker_is_lost_or_a_client_leaves(self):
        server = self.served()
        seen = [Exposition(server.ctl("metrics").stdout)]

        def look(holds):
            end = time.monotonic() + SECONDS
            while True:
                seen.append(Exposition(server.ctl("metrics").stdout))
                if holds(seen[-1]):
                    return
                self.assertLess(time.monotonic(), end)

        with server.work("one", 200, SECONDS) as one, server.work("other", 200, SECONDS) as other:
            one.go()
            other.go()
            look(lambda now: sum(now.of("gpushare_user_launches_total").values()) > 100)
            worker = json.loads(server.ctl("--json", "status").stdout)["devices"][0]["worker_pid"]
            os.kill(worker, signal.SIGKILL)
            look(lambda now: now.one("gpushare_gpu_recovery_seconds_count") == 1)
            before = sum(seen[-1].of("gpushare_user_launches_total").values())
            look(lambda now: sum(now.of("gpushare_user_launches_total").values()) > before + 100)
            one.process.kill()
            look(lambda now: now.one("gpushare_clients") == 1)
            other.process.kill()
            look(lambda now: now.one("gpushare_clients") == 0)
        self.assertEqual(seen[-1].one("gpushare_gpu_faults_total", kind="worker_lost", uid="unknown"), 1)
        self.assertEqual(seen[-1].one("gpushare_gpu_worker_starts_total"), 2)
        for earlier, later in zip(seen, seen[1:]):
            for (name, labels), value in earlier.samples.items():
                grows = name.endswith(("_total", "_bucket", "_sum", "_count"))
                if grows and not name.startswith("gpushare_client_"):
                    self.assertGreaterEqual(later.samples[(name, labels)], value, (name, labels))

    def test_hostile_names_stay_labels(self):
        server = self.served()
        names = ['a"} 1', "b\\", "# TYPE x counter", "\xe9\u4e2d", 'x",uid="0']
        for name in names:
            self.attached(server, name=name)
        seen = self.once(server)
        shown = {dict(labels)["name"] for labels in seen.of("gpushare_client_launches_total")}
        self.assertEqual(shown, {'a"} 1', "b\\", "# TYPE x counter", "\xe9\u4e2d", 'x",uid="0'})
        self.assertEqual({dict(labels)["uid"] for labels in seen.of("gpushare_client_launches_total")}, {UID})

    def test_series_of_clients_are_limited_and_sums_are_not(self):
        server = self.served()
        first = [self.attached(server)["client"] for _ in range(5)]
        seen = self.once(server, "--max-clients", "3")
        self.assertEqual({int(dict(labels)["client"]) for labels in seen.of("gpushare_client_launches_total")}, set(first[:3]))
        self.assertEqual(seen.one("gpushare_clients_left_out"), 2)
        self.assertEqual(seen.one("gpushare_user_clients", uid=UID), 5)
        none = self.once(server, "--max-clients", "0")
        self.assertEqual(none.of("gpushare_client_launches_total"), {})
        self.assertEqual(self.once(server).one("gpushare_clients_left_out"), 0)

    def test_a_fault_has_its_kind_its_author_and_its_recovery(self):
        server = self.served()
        self.assertEqual(self.once(server).of("gpushare_gpu_faults_total"), {})
        done = run(STRAY, GPUSHARE_SOCKET=server.client)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        end = time.monotonic() + SECONDS
        while not (seen := self.once(server)).one("gpushare_gpu_recovery_seconds_count", gpu="0"):
            self.assertLess(time.monotonic(), end)
        self.assertEqual(seen.one("gpushare_gpu_faults_total", gpu="0", kind="illegal_address", uid=UID), 1)
        self.assertEqual(len(seen.of("gpushare_gpu_faults_total")), 1)
        self.assertGreater(seen.one("gpushare_gpu_recovery_seconds_sum", gpu="0"), 0)

    def test_the_tool_prints_the_same_families(self):
        server = self.served()
        self.attached(server)
        done = server.ctl("metrics")
        self.assertEqual(done.returncode, 0, done.stderr)
        tool, exporter = Exposition(done.stdout).types, self.once(server).types
        self.assertEqual({name: of for name, of in exporter.items() if not name.startswith("gpushare_exporter_")}, tool)

    def test_every_metric_is_on_the_page_with_its_unit(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            _, _, text = exporter.ask(Accept="application/openmetrics-text")
        seen = Exposition(text, openmetrics=True)
        with open(os.path.join(ROOT, "docs/monitoring.md"), encoding="utf-8") as page:
            rows = re.findall(r"^\| `(gpushare_\w+)` \| (\w+) \| (\w*) \|", page.read(), re.M)
        suffix = {"counter": "_total", "info": "_info"}
        self.assertEqual({(name + suffix.get(of, ""), of, seen.units.get(name, "")) for name, of in seen.types.items()}, set(rows))


class Web(Case):
    def test_both_formats(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            status, headers, text = exporter.ask(Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
            self.assertEqual((status, headers["Content-Type"]), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
            Exposition(text, openmetrics=True)
            status, headers, text = exporter.ask(Accept="text/plain")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
            Exposition(text)

    def test_what_is_not_there_is_refused(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            for path in ("/metrics/../etc/passwd", "/status.json/", "/page.js", "/favicon.ico", "//"):
                self.assertEqual(exporter.ask(path=path)[0], 404, path)
            for path in ("/", "/metrics", "/status.json"):
                self.assertEqual(exporter.ask(path=path)[0], 200, path)
                for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                    status, headers, _ = exporter.ask(method=method, path=path, body="x" * 100000)
                    self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), (method, path))
                status, headers, text = exporter.ask(method="HEAD", path=path)
                self.assertEqual((status, text), (200, ""))
                self.assertGreater(int(headers["Content-Length"]), 1000)
            with socket.create_connection(("127.0.0.1", exporter.port)) as noise:
                noise.sendall(b"\0\xff" * 5000 + b"\r\n\r\n")
            self.assertEqual(exporter.get().one("gpushare_up"), 1)

    def test_a_name_that_was_made_to_mean_this_machine_reads_nothing(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            for path in ("/", "/metrics", "/status.json"):
                for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9408", "127.8.8.8", "[::1]:9408", "[::ffff:127.0.0.1]"):
                    self.assertEqual(exporter.ask(path=path, Host=host)[0], 200, (path, host))
                for host in ("evil.example", f"evil.example:{exporter.port}", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
                             "[::1", "[::2]", "localhost:80@evil.example", ""):
                    status, _, text = exporter.ask(path=path, Host=host)
                    self.assertEqual(status, 421, (path, host))
                    self.assertIn("--listen", text)
            with socket.create_connection(("127.0.0.1", exporter.port), timeout=SECONDS) as old:
                old.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                self.assertRegex(old.makefile("rb").read(), rb"^HTTP/1.[01] 200 ", "no browser leaves Host out")
        # An address that others reach has names that only they know.
        with Exporter(server.admin, address="0.0.0.0") as exporter:
            self.assertEqual(exporter.ask(Host="node1.example")[0], 200)

    def test_connections_that_never_ask_or_read_keep_no_scraper_out(self):
        server = self.served()
        with Exporter(server.admin) as exporter, contextlib.ExitStack() as held:
            def connect(said):
                client = held.enter_context(socket.create_connection(("127.0.0.1", exporter.port), timeout=SECONDS))
                client.sendall(said)
                return client

            slow = [connect(b"GET /metrics HTTP/1.1\r\n") for _ in range(8)]
            for at in range(100):
                slow.append(connect((b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)[at % 3]))
                if at % 10 == 0:
                    self.assertEqual(exporter.get().one("gpushare_up"), 1)
            # The oldest gave way, without a word.
            self.assertEqual([client.recv(1) for client in slow[:8]], [b""] * 8)

    def test_connections_that_break_off_do_not_fill_the_log(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            for _ in range(300):
                with socket.create_connection(("127.0.0.1", exporter.port)) as client:
                    client.sendall(b"G")
            self.assertEqual(exporter.get().one("gpushare_up"), 1)
            exporter.process.send_signal(signal.SIGTERM)
            said = exporter.process.stderr.read()
        # Ten a minute, and ten more if the minute ended meanwhile.
        self.assertLessEqual(said.count("\n"), 21, said)

    def test_the_page_is_whole_and_allows_itself_alone(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            status, headers, text = exporter.ask(path="/")
        self.assertEqual((status, headers["Content-Type"], headers["X-Content-Type-Options"], headers["Referrer-Policy"], headers["Cache-Control"]),
                         (200, "text/html; charset=utf-8", "nosniff", "no-referrer", "no-store"))
        self.assertIsNone(headers["Access-Control-Allow-Origin"])
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        hashes = {tag: "'sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() + "'"
                  for tag, body in re.findall(r"<(style|script)>(.*?)</\1>", text, re.S)}
        self.assertEqual(policy, {"default-src": "'none'", "script-src": hashes["script"], "style-src": hashes["style"], "connect-src": "'self'",
                                  "img-src": "data:", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"})
        self.assertEqual(re.findall(r"https?:|\bsrc=|@import|url\(|\bon\w+=|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), [])

    def test_what_the_page_shows_is_what_the_server_said(self):
        server = self.served()
        hostile = '"}],</script><b>'
        first = self.attached(server, name=hostile)["client"]
        with Exporter(server.admin) as exporter:
            status, headers, text = exporter.ask(path="/status.json")
        self.assertEqual((status, headers["Content-Type"], headers["X-Content-Type-Options"], headers["Cache-Control"],
                          headers["Cross-Origin-Resource-Policy"]), (200, "application/json", "nosniff", "no-store", "same-origin"))
        self.assertIsNone(headers["Access-Control-Allow-Origin"])
        answer = json.loads(text)
        json_check.check("gpushare-exporter-status", answer)
        json_check.check("admin-status", answer["status"])
        json_check.check("admin-clients", answer["clients"])
        row, = answer["clients"]["clients"]
        self.assertEqual((row["client"], row["name"], str(row["uid"])), (first, hostile, UID))
        self.assertEqual(answer["users"], {UID: pwd.getpwuid(os.getuid()).pw_name})
        self.assertEqual(answer["status"]["pid"], server.process.pid)

    def test_who_shows_the_page_asks_the_server_about_once_a_second(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            begun = time.monotonic()
            seen = {json.loads(exporter.ask(path="/status.json")[2])["status"]["uptime_seconds"] for _ in range(40)}
            self.assertLessEqual(len(seen), 1 + (time.monotonic() - begun) / 0.9 + 1)
            end = time.monotonic() + SECONDS
            while json.loads(exporter.ask(path="/status.json")[2])["status"]["uptime_seconds"] in seen:
                self.assertLess(time.monotonic(), end, "its answer never gets newer")
                time.sleep(0.05)

    def test_without_the_server_the_page_gets_an_error_and_no_old_numbers(self):
        server = Server()
        with Exporter(server.admin) as exporter:
            self.assertEqual(exporter.ask(path="/status.json")[0], 200)
            server.stop_well()
            end = time.monotonic() + SECONDS
            while (answer := exporter.ask(path="/status.json"))[0] == 200:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            self.assertEqual(answer[0], 503)
            json_check.check("admin-error", json.loads(answer[2]))
            self.assertIn(server.admin, json.loads(answer[2])["text"])
            self.assertEqual(exporter.ask(path="/")[0], 200)

    def test_many_questions_in_a_second_are_one_for_the_server(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            begun = time.monotonic()
            asked = {exporter.get().one("gpushare_uptime_seconds") for _ in range(20)}
            self.assertLessEqual(len(asked), 1 + time.monotonic() - begun + 1)

    def test_a_server_that_is_replaced_is_found_again(self):
        first = Server()
        folder, admin = first.folder, first.admin
        with contextlib.ExitStack() as stack:
            exporter = stack.enter_context(Exporter(admin))
            self.assertEqual(exporter.get().one("gpushare_up"), 1)
            first.stop_well()
            gone = exporter.await_up(0)
            self.assertEqual(gone.of("gpushare_clients"), {})
            self.assertGreaterEqual(gone.one("gpushare_exporter_failures_total"), 1)
            os.mkdir(folder, 0o755)
            self.addCleanup(shutil.rmtree, folder)
            second = Server()
            self.addCleanup(second.stop_well)
            os.symlink(second.admin, admin)
            self.assertIn("gpushare_build_info", {name for name, _ in exporter.await_up(1).samples})

    def test_a_server_that_hangs_keeps_nobody_waiting(self):
        server = self.served()
        with Exporter(server.admin) as exporter:
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                begun = time.monotonic()
                self.assertEqual(exporter.await_up(0).one("gpushare_up"), 0)
                # Its limit is five seconds. Prometheus would wait for ten.
                self.assertLess(time.monotonic() - begun, SECONDS)
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            exporter.await_up(1)


class Other(Case):
    def test_a_server_that_accepts_nothing_keeps_nobody_waiting(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder, contextlib.ExitStack() as held:
            path = os.path.join(folder, "admin.sock")
            silent = held.enter_context(socket.socket(socket.AF_UNIX))
            silent.bind(path)
            silent.listen(0)
            with contextlib.suppress(BlockingIOError):  # the queue is full then
                while True:
                    client = held.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(path)
            done = run(EXPORTER, "--once", "--socket", path)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(path, done.stderr)

    def test_a_file_is_whole_and_goes_at_the_end(self):
        server = self.served()
        path = server.file("gpushare.prom")
        server.file("gpushare.prom.new")
        process = subprocess.Popen([EXPORTER, "--textfile", path, "--interval", "1s", "--socket", server.admin],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)
        seen, end = set(), time.monotonic() + SECONDS
        while len(seen) < 2:
            self.assertLess(time.monotonic(), end)
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
                self.assertEqual(os.fstat(file.fileno()).st_mode & 0o777, 0o644)
                seen.add(Exposition(file.read()).one("gpushare_uptime_seconds"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate(timeout=SECONDS)[1], "")
        self.assertEqual(process.returncode, 0)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".new"))

    def test_no_file_of_others_in_the_folder_is_opened(self):
        server = self.served()
        path, other = server.file("gpushare.prom"), server.file("other")
        new = server.file("gpushare.prom.new")
        with open(other, "w", encoding="utf-8") as file:
            file.write("of others\n")
        for lay in (lambda: os.mkfifo(new), lambda: os.symlink(other, new), lambda: os.link(other, new)):
            lay()
            # With a reader, a pipe can be opened to write.
            reader = os.open(new, os.O_RDONLY | os.O_NONBLOCK)
            process = subprocess.Popen([EXPORTER, "--textfile", path, "--socket", server.admin],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)
            end = time.monotonic() + SECONDS
            while not os.path.exists(path):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            found = os.lstat(path)
            self.assertTrue(stat.S_ISREG(found.st_mode) and found.st_nlink == 1, found)
            self.assertNotEqual(found.st_ino, os.fstat(reader).st_ino)
            os.close(reader)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.communicate(timeout=SECONDS)[1], "")
        with open(other, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of others\n")

    def test_old_numbers_go_when_new_ones_can_not_be_written(self):
        server = self.served()
        path, new = server.file("gpushare.prom"), server.file("gpushare.prom.new")
        process = subprocess.Popen([EXPORTER, "--textfile", path, "--interval", "1s", "--socket", server.admin],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)

        def await_file(there):
            end = time.monotonic() + SECONDS
            while os.path.exists(path) != there:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)

        def make_folder():
            with contextlib.suppress(FileExistsError):
                os.mkdir(new)
            return os.path.isdir(new)

        await_file(True)
        end = time.monotonic() + SECONDS
        while not make_folder():  # the exporter may write just now
            self.assertLess(time.monotonic(), end)
        await_file(False)
        os.rmdir(new)
        await_file(True)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=SECONDS)[1]
        self.assertEqual((said.count("\n"), said.count(f"{path} can't be written")), (1, 1), said)

    def test_a_folder_that_is_not_there_is_named(self):
        server = self.served()
        done = run(EXPORTER, "--textfile", "/nonexistent/x.prom", "--socket", server.admin)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/x.prom", done.stderr)

    def test_an_address_in_use_is_named(self):
        server = self.served()
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            address = f"127.0.0.1:{other.getsockname()[1]}"
            done = run(EXPORTER, "--listen", address, "--socket", server.admin)
        self.assertEqual(done.returncode, 1)
        self.assertIn(address, done.stderr)

    def test_without_a_server_once_says_so(self):
        done = run(EXPORTER, "--once", "--socket", "/nonexistent/admin.sock")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(Exposition(done.stdout).one("gpushare_up"), 0)
        self.assertIn("/nonexistent/admin.sock", done.stderr)

    def test_wrong_usage(self):
        for words in ((), ("--once", "--listen", "127.0.0.1:0"), ("--listen", "9408"), ("--listen", "127.0.0.1:99999"), ("--listen", "::1:9408"),
                      ("--once", "--interval", "5s"), ("--textfile", "x", "--interval", "0s"), ("--once", "--max-clients", "-1"),
                      ("--once", "--max-clients", "10001"), ("--textfile", "--once"), ("--once", "more"), ("--twice",)):
            done = run(EXPORTER, "--socket", "/nonexistent/admin.sock", *words)
            self.assertEqual((done.returncode in (1, 2), done.stdout), (True, ""), words)
            self.assertTrue(done.stderr.strip(), words)

    def test_a_member_of_the_sockets_group_needs_no_more(self):
        if os.getuid():
            self.skipTest("needs root to become another user")
        server = self.served()
        os.chown(server.admin, 0, STRANGER + 1)
        os.chmod(server.admin, 0o660)
        tool = shutil.copy(EXPORTER, server.file("exporter"))
        self.addCleanup(os.unlink, tool)
        for groups, status in (([STRANGER + 1], 0), ([], 3)):
            done = subprocess.run([tool, "--once", "--socket", server.admin], user=STRANGER, group=STRANGER, extra_groups=groups,
                                  capture_output=True, text=True, env={**ENV, **FOR_OTHER_USERS}, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(Exposition(done.stdout).one("gpushare_up"), 0 if status else 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
