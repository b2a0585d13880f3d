#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""What clients use is in the accounting's file once, whatever happens to the server and to the file meanwhile, and
`gpusharectl report` adds it up. What is right is known from the clients' own counts, from the memory that they hold between
two looks at the clock, and from what the worker says of them."""
import collections
import csv
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import ENV, FOR_OTHER_USERS, GPUSHARECTL, SECONDS, Server, Work, run  # noqa: E402
from raw_client import RawClient  # noqa: E402
from service_manager import Manager  # noqa: E402
from survive_case import await_true, draw_seed  # noqa: E402

USERS = (4101, 4102, 4103)
MIB = 1 << 20


class UserWork(Work):
    """A client of another user, or of this one where only root may start such a client."""

    def __init__(self, server, name, uid, kernel_us, seconds):
        self.uid = uid if os.getuid() == 0 else os.getuid()
        super().__init__(server, name, kernel_us, seconds, "--in-flight", "1", user=uid if os.getuid() == 0 else None)


class Accounting(unittest.TestCase):
    def lines(self, *paths):
        """All lines, each as its schema says. A killed server's latest lines may be in a moved file and, as they were, in
        the next one, which a report counts once."""
        found, copies = {}, 0
        for path in paths:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text == "" or text.endswith("\n"), path)
            lines = [json.loads(line) for line in text.splitlines()]
            self.assertEqual(len({line["id"] for line in lines}), len(lines), "a line twice in a file")
            for line in lines:
                json_check.check("accounting-line", line)
                copies += line["id"] in found
                self.assertEqual(found.setdefault(line["id"], line), line)
        return list(found.values()), copies

    def report(self, *words, status=0):
        done = run(GPUSHARECTL, "--json", "report", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        report = json.loads(done.stdout)
        json_check.check("gpusharectl-report", report)
        return report, done.stderr

    def await_last(self, path, names):
        """Until each of these clients has its last line."""
        def all_there():
            if not os.path.exists(path):
                return False
            with open(path, encoding="utf-8") as file:
                return names <= {line["name"] for line in map(json.loads, file.read().splitlines()) if line["last"]}
        await_true(all_there, lambda: f"not all of {names} are in {path}")

    def begin(self, manager, interval):
        """Gives the server an accounting file, by a reload. Returns its path."""
        path = os.path.join(manager.folder, "use", "accounting.jsonl")
        manager.configure(f"{{accounting: {{file: {path}, interval: {interval}}}}}\n")
        self.assertEqual(manager.ctl("reload").returncode, 0, manager.text())
        os.chmod(manager.folder, 0o755)
        os.chmod(manager.client, 0o666)
        return path

    def test_three_users_a_killed_server_and_a_moved_file(self):
        with Manager() as manager:
            path = self.begin(manager, "1s")
            works = [UserWork(manager, f"work{uid}", uid, 3000 + 1000 * at, 2.6) for at, uid in enumerate(USERS)]
            for work in works:
                work.go()
            await_true(lambda: os.path.exists(path) and os.path.getsize(path), manager.text)
            os.rename(path, path + ".1")  # as logrotate does, without a word to the server
            manager.kill()
            manager.start()
            rows = [work.row() for work in works]
            for work in works:
                work.__exit__()
            self.await_last(path, {f"work{uid}" for uid in USERS})
            lines, copies = self.lines(path + ".1", path)
            for work, row in zip(works, rows):
                self.check_client([line for line in lines if line["pid"] == work.pid], work, row)
            with open(path + ".1", "rb") as moved, gzip.open(path + ".1.gz", "wb") as packed:
                packed.write(moved.read())
            os.unlink(path + ".1")
            self.check_reports(path, lines, copies, works)

    def check_client(self, lines, work, row):
        """Its lines join without a gap, and their sums are what the program and the worker say."""
        lines.sort(key=lambda line: line["begin_seconds"])
        self.assertGreaterEqual(len(lines), 3, "a line a second")
        self.assertEqual([line["last"] for line in lines], [False] * (len(lines) - 1) + [True])
        for before, after in zip(lines, lines[1:]):
            self.assertEqual(before["end_seconds"], after["begin_seconds"])
        self.assertEqual({line["uid"] for line in lines}, {work.uid})
        self.assertEqual({line["program"] for line in lines}, {"work"})
        self.assertEqual(sum(line["launches"] for line in lines), work.launches)
        self.assertAlmostEqual(sum(line["gpu_seconds"] for line in lines), row["gpu_time_seconds"], places=6)
        self.assertAlmostEqual(sum(line["multiprocessor_seconds"] for line in lines),
                               row["gpu_time_seconds"] * row["multiprocessors_now"], places=4)
        connected = sum(line["connected_seconds"] for line in lines)
        self.assertAlmostEqual(connected, lines[-1]["end_seconds"] - lines[0]["begin_seconds"], delta=0.05)
        self.assertGreaterEqual(connected, row["connected_seconds"] - 0.5)
        self.assertEqual(lines[-1]["ended"]["error"], "success")

    def check_reports(self, path, lines, copies, works):
        report, said = self.report("--by", "user", path)
        self.assertEqual((said, report["lines"], report["copies"], report["damaged"]), ("", len(lines), copies, 0))
        launches = collections.Counter()
        for work in works:
            launches[work.uid] += work.launches
        self.assertEqual({group["uid"]: group["launches"] for group in report["groups"]}, launches)
        self.assertEqual(report["total"]["launches"], sum(launches.values()))
        self.assertEqual(report["total"]["clients"], len(works))
        self.assertAlmostEqual(report["total"]["gpu_seconds"], sum(line["gpu_seconds"] for line in lines), places=6)
        by_name, _ = self.report("--by", "name,gpu", path, path)
        self.assertEqual({group["name"]: group["launches"] for group in by_name["groups"]},
                         {f"work{uid}": work.launches for uid, work in zip(USERS, works)})
        # A copy of the moved file, and a line that is none.
        with gzip.open(path + ".1.gz", "rb") as packed, open(path + "-20000101", "wb") as copy:
            copied = packed.read()
            copy.write(copied + b'{"schema_version": 1, "launches"\n')
        report, said = self.report("--by", "day", path, status=1)
        self.assertIn(f"{path}-20000101:{copied.count(10) + 1}: line left out: no JSON", said)
        self.assertEqual((report["copies"], report["damaged"], report["total"]["launches"]),
                         (copies + copied.count(10), 1, sum(launches.values())))
        done = run(GPUSHARECTL, "report", "--csv", "--by", "user", path)
        rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
        self.assertEqual({int(row["uid"]): int(row["launches"]) for row in rows}, launches)
        self.assertEqual(self.report("--until", "yesterday", path, status=1)[0]["lines"], 0)

    def test_each_client_counts_once_however_often_the_server_is_killed(self):
        chance = random.Random(draw_seed())
        with Manager() as manager:
            path = self.begin(manager, "1h")
            launches = {}
            for at in range(8):
                with UserWork(manager, f"short{at}", USERS[at % 3], 1000, 0.05) as work:
                    work.go()
                    launches[f"short{at}"] = int(work.process.stdout.readline())
                time.sleep(chance.choice((0, chance.random() * 0.02)))
                manager.kill()
                manager.start()
            self.await_last(path, set(launches))
            lines, _ = self.lines(path)
            self.assertEqual({line["name"]: line["launches"] for line in lines}, launches)
            self.assertEqual(len(lines), len(launches))

    def test_memory_over_time(self):
        size, held = 64 * MIB, 0.4
        with Server("--accounting", "/nonexistent/folder/use.jsonl") as server:
            server.wait_log("accounting: /nonexistent/folder/use.jsonl can't be written")
            path = server.file("use.jsonl")
            with open(server.file("none.yaml"), "w", encoding="utf-8") as file:
                file.write(f"{{accounting: {{file: {path}}}}}\n")
            self.assertEqual(server.ctl("reload").returncode, 0, server.text())
            client = RawClient(server.client)
            client.attach(name="holder")
            outer = time.monotonic()
            memory = client.ask("memory_alloc", count=size)
            inner = time.monotonic()
            time.sleep(held)
            inside = time.monotonic() - inner
            client.ask("memory_free", address=memory["address"])
            client.ask("memory_query")
            client.close()
            self.await_last(path, {"holder"})
            outside = time.monotonic() - outer
            (line,), _ = self.lines(path)
            self.assertEqual(line["memory_peak_bytes"], size)
            self.assertGreaterEqual(line["memory_byte_seconds"], int(size * inside) - 1000)
            self.assertLessEqual(line["memory_byte_seconds"], size * outside)
            self.assertEqual((line["launches"], line["granted"]["threads_percent"]), (0, 100))
            # A program that only asks leaves no line.
            self.assertEqual(server.info().returncode, 0)
            server.work("only-connects", 1000, 0.01).__exit__()
            killed = RawClient(server.client)
            number = killed.attach(name="killed")["client"]
            killed.ask("memory_alloc", count=MIB)
            self.assertEqual(server.ctl("kill", str(number)).returncode, 0)
            self.await_last(path, {"killed"})
            killed.close()
            lines = {line["name"]: line for line in self.lines(path)[0]}
            self.assertEqual(set(lines), {"holder", "killed"})
            self.assertEqual(lines["killed"]["ended"]["error"], "killed")

    def test_each_file_that_can_not_be_written_is_named_with_the_reason(self):
        with Server() as server:
            good, link, pipe = server.file("use.jsonl"), server.file("link.jsonl"), server.file("pipe.jsonl")
            os.symlink(good, link)
            os.mkfifo(pipe)

            def name(path):
                with open(server.file("none.yaml"), "w", encoding="utf-8") as file:
                    file.write(f"{{accounting: {{file: {path}}}}}\n")
                self.assertEqual(server.ctl("reload").returncode, 0, server.text())

            name(pipe)
            server.wait_log(f"accounting: {pipe} can't be written: it is no regular file: lines wait")
            client = RawClient(server.client)
            client.attach(name="patient")
            client.ask("memory_alloc", count=MIB)
            client.close()
            # The second mistake is told as soon as the first one, whose next attempt would be seconds away.
            name(link)
            server.wait_log(f"accounting: {link} can't be written: it is a symbolic link")
            self.assertFalse(os.path.exists(good), "the link was followed")
            name(good)
            self.await_last(good, {"patient"})
            self.assertEqual(run(GPUSHARECTL, "report", pipe).stderr, f"gpusharectl: can't read {pipe}: it is no regular file\n")
            self.assertNotIn("lost", server.text())

    def test_a_report_of_a_closed_file_says_who_may_read_it(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            path = os.path.join(folder, "use.jsonl")
            with open(path, "w", encoding="utf-8"):
                pass
            os.chmod(path, 0)
            os.chmod(folder, 0o755)
            program = shutil.copy(GPUSHARECTL, folder)  # the build folder may be closed to the other user
            other = {"user": USERS[0], "group": USERS[0], "extra_groups": []} if os.getuid() == 0 else {}
            ended = subprocess.run([program, "report", path], env={**ENV, **FOR_OTHER_USERS}, capture_output=True, text=True,
                                   check=False, timeout=SECONDS, **other)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(f"can't read {path}: Permission denied: run this as root, or as a member of the group", ended.stderr)

    def test_a_file_that_may_not_grow_ends_no_server(self):
        limit = 9 << 30  # the server's shared memory is smaller
        with Server() as server:
            path = server.file("use.jsonl")
            with open(path, "wb"):
                pass
            os.truncate(path, limit - 100)
            unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            if unlimited[0] != resource.RLIM_INFINITY and unlimited[0] <= limit:
                self.skipTest("files may not be so long here")
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, unlimited[1]))
            with open(server.file("none.yaml"), "w", encoding="utf-8") as file:
                file.write(f"{{accounting: {{file: {path}}}}}\n")
            self.assertEqual(server.ctl("reload").returncode, 0, server.text())
            client = RawClient(server.client)
            client.attach(name="long")
            client.ask("memory_alloc", count=MIB)
            client.close()
            server.wait_log(f"accounting: {path} can't be written: File too large")
            self.assertLess(os.path.getsize(path), limit)
            os.truncate(path, 0)
            self.await_last(path, {"long"})

    def made_line(self, **members):
        """A line as the server writes it, in which nothing was used."""
        sums = ("connected_seconds", "gpu_seconds", "multiprocessor_seconds", "launches", "copies", "copied_bytes", "memory_byte_seconds",
                "memory_peak_bytes", "host_memory_byte_seconds", "host_memory_peak_bytes")
        granted = ("multiprocessors", "threads_percent", "time_percent", "memory_bytes", "host_memory_bytes")
        line = {"schema_version": 1, "id": "1-1-1", "day": "2026-11-01", "begin_seconds": 1793491200.0, "end_seconds": 1793491201.0,
                "client": 1, "name": None, "uid": 7, "pid": 1, "program": "made", "cgroup": None, "gpu": f"GPU-{'0' * 8}-0000-0000-0000-{'0' * 12}",
                "device": 0, "granted": dict.fromkeys(granted, 1), **dict.fromkeys(sums, 0), "last": False, "ended": None, **members}
        json_check.check("accounting-line", line)
        return json.dumps(line) + "\n"

    def test_a_report_that_lacks_a_file_says_so(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            path = os.path.join(folder, "use.jsonl")
            self.assertFalse(self.report(path, status=1)[0]["ok"], "the file is not there")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.made_line(launches=3))
            self.assertEqual([self.report(path)[0][member] for member in ("ok", "lines")], [True, 1])
            # logrotate may compress in ways that this program can't read.
            with open(path + ".1.xz", "wb"):
                pass
            report, said = self.report(path, status=1)
            self.assertEqual((report["ok"], report["damaged"], report["total"]["launches"]), (False, 0, 3))
            self.assertIn(f"{path}.1.xz is left out", said)
            os.unlink(path + ".1.xz")
            # Others can read the file, and can't list its folder.
            stranger, program = 4712 if os.getuid() == 0 else None, os.path.join(folder, "gpusharectl")
            shutil.copy(GPUSHARECTL, program)
            os.chmod(path, 0o644)
            os.chmod(folder, 0o311)
            try:
                done = subprocess.run([program, "--json", "report", path], user=stranger, group=stranger, capture_output=True, text=True,
                                      extra_groups=None if stranger is None else (), env={**ENV, **FOR_OTHER_USERS}, timeout=SECONDS, check=False)
            finally:
                os.chmod(folder, 0o700)
            self.assertEqual((done.returncode, json.loads(done.stdout)["ok"], json.loads(done.stdout)["lines"]), (1, False, 1), done.stderr)
            self.assertIn(f"can't look in {folder}/", done.stderr)

    def test_no_name_is_a_formula_in_csv(self):
        names = ('=HYPERLINK("http://x","y")', "+1", "-bash", "@a", "plain", 'a"=1', "")
        with tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp") as folder:
            path = os.path.join(folder, "use.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for at, name in enumerate(names):
                    file.write(self.made_line(id=f"{at}-1-1", name=name or None))
            done = run(GPUSHARECTL, "report", "--csv", "--by", "name", path)
            found = [row["name"] for row in csv.DictReader(io.StringIO(done.stdout, newline=""))]
            self.assertEqual(sorted(found), sorted("'" + name if name[:1] in tuple("=+-@") else name for name in names))
            self.assertEqual({group["name"] for group in self.report("--by", "name", path)[0]["groups"]}, {name or None for name in names})

    def test_what_waits_is_written_when_the_file_can_be(self):
        with Manager() as manager:
            path = self.begin(manager, "1h")
            folder = os.path.dirname(path)
            await_true(lambda: os.path.exists(path), manager.text)
            os.rename(path, path + ".1")
            os.mkdir(path)  # nothing can be appended to it
            with UserWork(manager, "waits", USERS[0], 1000, 0.02) as work:
                work.go()
                launched = int(work.process.stdout.readline())
            await_true(lambda: "can't be written" in manager.text(), manager.text)
            manager.kill()  # the line outlives the server
            manager.start()
            os.rmdir(path)
            self.await_last(path, {"waits"})
            self.assertEqual([line["launches"] for line in self.lines(path)[0]], [launched])
            # A line that the machine's end tore is ended, and the next one is whole.
            with open(path, "a", encoding="utf-8") as file:
                file.write('{"schema_version": 1, "torn')
            with UserWork(manager, "later", USERS[1], 1000, 0.01) as work:
                work.go()
                work.process.stdout.readline()
            manager.kill(signal.SIGTERM)
            with open(path, encoding="utf-8") as file:
                self.assertIn('"torn\n{', file.read())
            report, said = self.report("--by", "name", path, status=1)
            self.assertIn(":2: line left out", said)
            self.assertEqual([group["name"] for group in report["groups"]], ["later", "waits"])
            self.assertEqual(sorted(os.listdir(folder)), [os.path.basename(path), os.path.basename(path) + ".1"])


if __name__ == "__main__":
    unittest.main()
