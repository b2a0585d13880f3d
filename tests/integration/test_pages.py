#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# timed: clients side by side must launch kernels of 2 ms fast enough to be held
# light: it waits for clients that are held
"""Claims of README.md and the pages of docs/ that no other test shows. Commands and answers are read
from the page, and tried."""
import contextlib
import fcntl
import glob
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_server import BUILD, ENV, SECONDS, Server  # noqa: E402
from raw_client import RawClient  # noqa: E402

GPUSHARED, GPUSHARECTL, GPUSHARE = (os.path.join(BUILD, "bin", name) for name in ("gpushared", "gpusharectl", "gpushare"))
BENCH = os.path.join(BUILD, "tests/programs/bench/bench")
STRANGER = 4712


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def section(page, heading):
    """The text between this heading and the next one of the same level or above."""
    level = heading.split(" ", 1)[0]
    return re.split(rf"^#{{1,{len(level)}}} ", page.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def run(*command, **options):
    env = {**ENV, **options.pop("env", {})}
    return subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=SECONDS,
                          check=False, **options)


class Case(unittest.TestCase):
    def served(self, *options, **env):
        server = Server(*options, env=env)
        self.addCleanup(server.stop_well)
        return server

    def attached(self, server, **wishes):
        client = RawClient(server.client)
        self.addCleanup(client.close)
        return client, client.attach(**wishes)

    def json(self, server, *words):
        done = server.ctl("--json", *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def info(self, server, *options, **env):
        return run(GPUSHARE, "--socket", server.client, "--json", *options, "info", env=env)

    def folder(self):
        made = tempfile.TemporaryDirectory(prefix="gpushare-pages-", dir="/tmp")
        self.addCleanup(made.cleanup)
        return made.name


class Readme(Case):
    PAGE = read("README.md")

    def test_a_server_by_hand(self):
        block = next(block for block in re.findall(r"^```\n(.*?)^```$", section(self.PAGE, "## A server"), re.M | re.S)
                     if block.startswith("make\n"))
        lines = [line.split(" #", 1)[0].strip() for line in block.splitlines()[1:]]
        self.assertTrue(lines[0].endswith(" &"), lines)
        folder = self.folder()
        env = {"XDG_RUNTIME_DIR": folder}
        lines = [line.replace("build/", BUILD + "/") for line in lines]
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
            server = subprocess.Popen(lines[0][:-2].split(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**ENV, **env})
            try:
                end = time.monotonic() + SECONDS
                while "ready: clients connect" not in read(log.name):
                    self.assertTrue(server.poll() is None and time.monotonic() < end, read(log.name))
                    time.sleep(0.01)
                said = {line: run("sh", "-c", line, env=env) for line in lines[1:]}
                for line, done in said.items():
                    self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
                self.assertIn("driver: softgpu (", said[lines[-1]].stdout)
                self.assertEqual(len(said), 3)
            finally:
                server.terminate()
                server.wait(SECONDS)

    def test_every_variable_is_on_a_page_and_every_limit_in_the_table(self):
        rows = [line.split(None, 1) for line in run(GPUSHARED, "--list-variables").stdout.splitlines()]
        limits = {name for name, readers in rows if readers == "client and gpushared"}
        clients = {name for name, readers in rows if readers == "client"}
        self.assertEqual(clients, {"GPUSHARE_CLIENT_NAME", "GPUSHARE_PROFILE", "GPUSHARE_WARNINGS"})
        self.assertEqual(len(rows), len({name for name, _ in rows}), rows)
        self.assertEqual(set(re.findall(r"\b(?:GPUSHARE|CUDA)_[A-Z_]+", section(self.PAGE, "## Limits"))), limits | clients - {"GPUSHARE_WARNINGS"})
        pages = self.PAGE + "".join(read(path) for path in glob.glob(os.path.join(ROOT, "docs/*.md")))
        for name, _ in rows:
            self.assertTrue(re.search(rf"`{name}\b", pages), f"{name} is on no page")

    def test_values_in_the_table_of_limits_are_taken(self):
        """Each value is tried with the variable of its row; a value in MPS's way with MPS's variable."""
        server, taken = self.served(SOFTGPU_DEVICES="2"), 0
        for row in re.findall(r"^\| `GPUSHARE_.*", section(self.PAGE, "## Limits"), re.M):
            names, what = row.strip("|").split("|")[:2]
            ways = list(zip(names.split("MPS's way:"), what.split("MPS's way ")))
            for names, what in ways:
                values = re.findall(r"`(\d[^`]*)`", what)
                for name in re.findall(r"`(\w+)`", names) if values else ():
                    for value in values:
                        done = self.info(server, **{name: value})
                        self.assertEqual(done.returncode, 0, f"{name}={value}: {done.stdout}")
                        self.assertIn(f'"asked_by": "{name}"', done.stdout, value)
                        taken += 1
        self.assertGreater(taken, 15)
        one = json.loads(self.info(server, "--device", "1", GPUSHARE_PINNED_DEVICE_MEM_LIMIT="0=1G,1=512MB").stdout)
        self.assertEqual(one["limits"]["memory"]["limit"]["granted_bytes"], 512 << 20)
        by_uuid = json.loads(self.info(server, GPUSHARE_PINNED_DEVICE_MEM_LIMIT=one["device"]["uuid"] + "=256M").stdout)
        self.assertIsNone(by_uuid["limits"]["memory"]["limit"]["asked_bytes"], "the limit is for the other device")

    def test_pinned_memory_is_a_quarter_of_a_quarter(self):
        self.assertTrue("a quarter of RAM in total, a quarter of that per client" in self.PAGE)
        server = self.served("--log-level", "debug")
        total = self.json(server, "status")["host_memory_limit_bytes"]
        ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertAlmostEqual(total, ram // 4, delta=1 << 20)
        granted = json.loads(self.info(server).stdout)["limits"]["host_memory"]["limit"]["granted_bytes"]
        self.assertAlmostEqual(granted, total // 4, delta=1 << 20)
        server.wait_log("'gpushare' (pid ")  # unset, the name is the program's

    def test_below_one_partition_one_is_granted(self):
        server = self.served()
        for asked, sms in (("1%", 8), ("12%", 12), ("25%", 32), ("100%", 132)):
            threads = json.loads(self.info(server, GPUSHARE_THREADS_LIMIT=asked).stdout)["limits"]["threads"]
            self.assertEqual(threads["multiprocessors"], sms, asked)


class Numbers(Case):
    @staticmethod
    def rows(page):
        """The cells of each row of a page's table of make bench."""
        return [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| `\w+` .*", page, re.M)]

    def test_readme_has_five_of_the_rows(self):
        """Readme's words for what is measured may be shorter; all else is as on the page."""
        page = {row[0]: row for row in self.rows(read("docs/numbers.md"))}
        some = self.rows(section(read("README.md"), "## Numbers"))
        self.assertEqual(len(some), 5)
        for row in some:
            self.assertEqual(row[2:], page[row[0]][2:], row[0])

    def test_numbers_are_of_the_rows_that_there_are(self):
        """Units, yardsticks and goals are those of make bench, and a row's ratio and verdict follow from its numbers."""
        rows = {row["name"]: row for row in json.loads(run(BENCH, "--list").stdout)}
        page = self.rows(section(read("docs/numbers.md"), "## Rows"))
        self.assertEqual(sorted(row[0].strip("`") for row in page), sorted(rows))
        for name, _, value, yardstick, ratio, reach, met in page:
            row = rows[name.strip("`")]
            met, _, why = met.partition(": ")
            if met == "not measured":
                self.assertEqual((value, yardstick, ratio), ("-", "-", "-"), name)
                self.assertTrue(why, name)
                continue
            number, _, said = value.partition(" ")
            self.assertEqual(said, row["unit"], name)
            number = float(number)
            if row["yardstick"]:
                against, words = re.fullmatch(r"([\d.e+]+) \((.*)\)", yardstick).groups()
                self.assertEqual(words, row["yardstick"], name)
                self.assertAlmostEqual(number / float(against), float(ratio), delta=0.15 * float(ratio) + 0.001, msg=name)  # medians of pairs, which neighbours disturb
                number = float(ratio)
            else:
                self.assertEqual((yardstick, ratio), ("-", "-"), name)
            if not row["aim"]:
                self.assertEqual((reach, met), ("stated", "met"))
                continue
            self.assertEqual(reach.startswith("ratio"), row["aim"]["of"] == "ratio", name)
            least, most = row["aim"]["at_least"], row["aim"]["at_most"]
            limits = [float(one.replace(",", "")) for one in re.findall(r"-?\d[\d.,e]*", reach)]
            self.assertEqual(limits, [bound for bound in (least, most) if bound is not None], name)
            if most is None or least is None:
                self.assertTrue(reach.endswith("at least" if most is None else "at most"), name)
            good = (least is None or number >= least) and (most is None or number <= most)
            self.assertEqual(met, "met" if good and not why else "not met", name)


class Gpusharectl(Case):
    PAGE = read("docs/gpusharectl.md")

    def test_permissions_are_those_of_the_page(self):
        if os.getuid():
            self.skipTest("needs root to become another user")
        server = self.served("--admin-uid", str(STRANGER + 1))
        os.chmod(server.folder, 0o755)
        os.chmod(server.admin, 0o666)
        tool = shutil.copy(GPUSHARECTL, server.folder)
        self.addCleanup(os.unlink, tool)
        _, told = self.attached(server)
        number = str(told["client"])
        words = {"status [--wide]": ("status",), "clients [--wide] [-o FORM]": ("clients",), "top [-b] [-n N] [-d SECONDS]": ("top", "-d", "0.1"),
                 "drain [--wait] [--timeout TIME] [gpu INDEX]": ("drain",), "config show": ("config", "show"), "resume [gpu INDEX]": ("resume",), "events [--follow]": ("events",), "log-level [LEVEL]": ("log-level",), "reload [--reset]": ("reload",), "get TARGET": ("get", number), "set [--save] TARGET NAME=VALUE...": ("set", number, "priority=1"), "kill [--force] TARGET": ("kill", number),
                 "trace -o FILE [--seconds N] [--gpu N]": ("trace", "-o", "/dev/null", "--seconds", "0.001")}
        looks, rest = set(), set()
        for row in re.findall(r"^\| `.*", section(self.PAGE, "## gpusharectl").split("\n### ", 1)[0], re.M):
            cells = [cell.strip() for cell in row.strip("|").split(" | ")]
            name = cells[0].strip("`")
            # One asks no server, and the other asks for what others of these ask for.
            if not re.match("[a-z]", name) or name.startswith(("config check", "mps")):
                continue
            may = cells[-1].startswith(("every user who", "the same as `ping`"))
            (looks if may else rest).add(name.split()[0])
            command = [tool, "--socket", server.admin, *words.get(name, (name,))]
            done = run(*command, user=STRANGER, group=STRANGER, extra_groups=[])
            self.assertEqual(done.returncode, 0 if may else 1, f"{command}: {done.stdout}{done.stderr}")
            if not may:
                self.assertIn("--admin-uid", done.stderr, name)
                done = run(*command[:3], *("get", number), user=STRANGER + 1, group=STRANGER, extra_groups=[])
                self.assertEqual(done.returncode, 0, "the client must still be attached")
        self.assertEqual((looks, rest), ({"ping", "status", "clients", "top", "get", "version", "metrics"}, {"set", "kill", "drain", "resume", "reload", "events", "log-level", "trace", "config"}))
        for command in (("set", number, "priority=1"), ("reload",), ("kill", number)):
            done = run(tool, "--socket", server.admin, *command, user=STRANGER + 1, group=STRANGER, extra_groups=[])
            # This server has no configuration file, and tells only a user who may reload.
            self.assertTrue(done.returncode == 0 or "no configuration file" in done.stderr, f"{command}: {done.stderr}")

    def on_a_terminal(self, server, columns, *words):
        main_end, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        tool = subprocess.Popen(server.command(*words), stdout=child_end, stdin=subprocess.DEVNULL, env={**ENV, "NO_COLOR": "1"})
        os.close(child_end)
        text = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(main_end, 65536):
                text += more
        os.close(main_end)
        self.assertEqual(tool.wait(SECONDS), 0)
        return [line for line in text.decode().replace("\r", "").splitlines() if line]

    def test_status_and_clients_fit_a_terminal(self):
        server = self.served()
        self.attached(server, name="a client with a long name", time_request=2500, time_limit=5000, memory_limit=64 << 20)
        for command in ("status", "clients"):
            lines = self.on_a_terminal(server, 80, command)
            headings = [line for line in lines if re.match(r" *(GPU|CLIENT) ", line)]
            self.assertEqual(len(headings), 1, lines)
            table = lines[lines.index(headings[0]):]
            self.assertEqual(len(table), 2, lines)
            self.assertLessEqual(max(map(len, table)), 80, table)
        self.assertRegex(table[1], r"^ +\d+  a client wit\+ .* 25 to 50 % .* 64 MiB .* 0 %$")

    def test_a_table_has_blocks_on_a_narrow_terminal_and_lines_elsewhere(self):
        server = self.served()
        told = [self.attached(server, name=name)[1]["client"] for name in ("first", "second")]
        narrow, wide = (self.on_a_terminal(server, columns, "clients", "--wide") for columns in (80, 1000))
        self.assertLessEqual(max(map(len, narrow)), 80)
        self.assertGreater(len(narrow), 6)
        for lines in (narrow, wide, server.ctl("clients", "--wide").stdout.splitlines()):
            blocks = sum(line.split()[:2] == ["CLIENT", "NAME"] for line in lines)
            self.assertEqual(blocks > 1, lines is narrow)
            for number, name in zip(told, ("first", "second")):
                self.assertEqual(sum(line.split()[:2] == [str(number), name] for line in lines), blocks, lines)
        heading = [word for line in narrow if line.split()[:2] == ["CLIENT", "NAME"] for word in re.split("  +", line.strip())]
        self.assertEqual([word for word in heading if word not in ("CLIENT", "NAME")],
                         [word for word in re.split("  +", wide[0].strip()) if word not in ("CLIENT", "NAME")])

    def test_requests_and_limits_in_words(self):
        server = self.served()
        _, told = self.attached(server, threads_request=3000)
        number = str(told["client"])
        for words, shown in ((("threads.limit=60%",), "30 % to any"),  # as it asked
                             (("threads.limit=50%",), "30 to 50 %"), (("threads.request=0",), "50 %"),
                             (("memory.request=1G", "memory.limit=4G"), "1 GiB to 4 GiB")):
            self.assertTrue(f"`{shown}`" in self.PAGE, shown)
            self.assertEqual(server.ctl("set", number, *words).returncode, 0)
            for command in (("get", number), ("clients", "--wide"), ("get", "user", str(os.getuid()))):
                self.assertIn(shown, re.split("  +", server.ctl(*command).stdout.strip()), f"{words} {command}")

    def test_commands_beside_nvidias_are_carried_out(self):
        server = self.served()
        _, told = self.attached(server)
        tried = set()
        for row in re.findall(r"^\| .*", section(self.PAGE, "### Coming from NVIDIA's commands"), re.M):
            for words in re.findall(r"`(?:watch -n 1 )?gpusharectl ([^`]*)`", row.strip("|").rsplit(" | ", 1)[1]):
                if words in tried or words == "kill 7":
                    continue
                tried.add(words)
                done = server.ctl(*words.replace("user 1000", f"user {os.getuid()}").replace(" 7", f" {told['client']}").split())
                self.assertEqual(done.returncode, 0, words + done.stderr)
        self.assertEqual({words.split()[0] for words in tried}, {"status", "--json", "clients", "top", "set"})
        self.assertGreater(len(tried), 6)
        self.assertEqual(server.ctl("kill", str(told["client"])).returncode, 0)

    def test_partitions_are_distinct_sets_of_multiprocessors(self):
        server = self.served()
        # The fifth client's quarter is a set that exists already; the last client has all SM groups.
        for clients, sets in enumerate((1, 2, 3, 4, 4, 5), 1):
            self.attached(server, threads_limit=2500 if clients < 6 else 10000)
            device = self.json(server, "status")["devices"][0]
            self.assertEqual((device["clients"], device["partitions"]), (clients, sets))

    def test_the_example_of_the_protocol(self):
        asked, answer = re.search(r"^    \$ printf '(.*)\\n' \| nc -NU .*\n    (.*)$", self.PAGE, re.M).groups()
        server = self.served()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(SECONDS)
            peer.connect(server.admin)
            peer.sendall(asked.encode() + b"\n")
            peer.shutdown(socket.SHUT_WR)  # nc -N
            said = b""
            while more := peer.recv(4096):
                said += more
        self.assertEqual(said.decode(), answer + "\n")

    def test_a_worker_that_hangs_leaves_null_after_a_second(self):
        server = self.served()
        _, told = self.attached(server)
        worker = self.json(server, "status")["devices"][0]["worker_pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            row = self.json(server, "clients")["clients"][0]
            self.assertGreaterEqual(time.monotonic() - begin, 0.9)
        finally:
            os.kill(worker, signal.SIGCONT)
        self.assertEqual((row["client"], row["gpu_time_seconds"], row["launches"]), (told["client"], None, None))
        self.assertEqual(self.json(server, "clients")["clients"][0]["launches"], 0)

    def test_a_trace_has_the_documented_defaults(self):
        self.assertTrue("(default 5; 0.001 to 600) what runs on GPU 0 (the default)" in self.PAGE)
        folder = self.folder()
        path = os.path.join(folder, "admin.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(SECONDS)
            for words, wanted in (((), (0, 5)), (("--seconds", "0.001", "--gpu", "3"), (3, 0.001)), (("--seconds", "600"), (0, 600))):
                tool = subprocess.Popen([GPUSHARECTL, "--socket", path, "trace", "-o", os.path.join(folder, "x"), *words],
                                        stderr=subprocess.DEVNULL, env=ENV)
                peer, _ = listener.accept()
                with peer, peer.makefile() as lines:
                    request = json.loads(lines.readline())
                    self.assertEqual((request["gpu"], request["seconds"]), wanted)
                self.assertEqual(tool.wait(SECONDS), 3, "no answer")
        for seconds in ("0.0009", "601", "0"):
            done = run(GPUSHARECTL, "--socket", path, "trace", "-o", os.path.join(folder, "x"), "--seconds", seconds)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_the_tool_waits_longer_than_the_server(self):
        """The page names the tool's time limit; common/admin_times.h asserts that it exceeds the server's."""
        said = re.search(r"within \d+ s \(.*\)", " ".join(run(GPUSHARECTL, "--help").stdout.split())).group()
        self.assertIn(said, self.PAGE.replace("`", ""))

    def test_a_trace_needs_the_documented_memory(self):
        self.assertTrue("A trace needs 64 MiB of the server's memory, room for a million records" in self.PAGE)
        server = self.served()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(SECONDS)
            peer.connect(server.admin)
            peer.sendall(b'{"request":"trace","gpu":0,"seconds":0.001}\n')
            _, (fd,), _, _ = socket.recv_fds(peer, 1 << 16, 4)
        with open(fd, "rb") as memory:
            version, _, capacity = struct.unpack("IIQ", memory.read(16))
            self.assertEqual((version, os.fstat(fd).st_size), (1, 64 << 20))
            self.assertGreaterEqual(capacity, 10**6)

    def test_why_a_client_was_not_let(self):
        self.assertTrue("`lease`, `duty`, `priority` or `threads` (no multiprocessor was free for it)" in self.PAGE)
        for reason, driver, guest, owner in (
                ("priority", {}, {"GPUSHARE_CLIENT_PRIORITY": "5"}, {}), ("threads", {"SOFTGPU_SMS": "128"}, {}, {"GPUSHARE_THREADS_REQUEST": "100%"}),
                ("lease", {"GPUSHARE_MODE": "strict", "GPUSHARE_LEASE": "5ms"}, {"GPUSHARE_TIME_REQUEST": "20%"}, {}),
                ("duty", {"SOFTGPU_NO_GREEN": "1"}, {"GPUSHARE_THREADS_LIMIT": "25%"}, {})):
            # A busy machine or a sanitizer leaves time for few kernels, and a client that launches few is not held back.
            for seconds in (0.15, 0.6, 2.4, 9.6):
                server = self.served(**driver)
                with server.work("owner", 2000, seconds, **owner) as first, server.work("guest", 2000, seconds, **guest) as second:
                    first.go()
                    second.go()
                    held = second.row()["throttled_seconds"]
                    line, = (line for line in server.ctl("clients", "--wide").stdout.splitlines() if " guest " in line)
                if held[reason] > 0.01:
                    break
            launches = f"{second.launches} kernels of 2 ms in {seconds} s: {held}"
            self.assertGreater(held[reason], 0.01, launches)
            self.assertEqual(max(held, key=held.get), reason, launches)
            self.assertRegex(line, rf"  \d+\.\d{{3}} s, {reason}  ")

    def test_the_smaller_group_is_nobodys_own(self):
        self.assertTrue("of 132 multiprocessors a request of\n  100 % is 128" in read("docs/sharing.md"))
        server = self.served()
        with server.work("owner", 2000, 0.3, GPUSHARE_THREADS_REQUEST="100%") as owner, server.work("guest", 2000, 0.1) as guest:
            owner.go()
            end = time.monotonic() + SECONDS
            while not (rows := {row["name"]: row for row in self.json(server, "clients")["clients"]})["owner"]["launches"]:
                self.assertLess(time.monotonic(), end)
            guest.go()
            while not rows["guest"]["launches"]:
                rows = {row["name"]: row for row in self.json(server, "clients")["clients"]}
                self.assertLess(time.monotonic(), end)
            self.assertEqual([rows[name]["multiprocessors_now"] for name in ("owner", "guest")], [132, 4])

    def test_info_of_another_device(self):
        server = self.served(SOFTGPU_DEVICES="2")
        uuids = []
        for number in (0, 1):
            told = json.loads(self.info(server, "--device", str(number)).stdout)["device"]
            self.assertEqual(told["device"], number)
            uuids.append(told["uuid"])
        # Both devices are ready now; the server started when one was.
        self.assertEqual([one["uuid"] for one in self.json(server, "status")["devices"]], uuids)
        self.assertEqual(self.info(server, "--device", "2").returncode, 1)

    def test_a_worker_that_cannot_start_again_is_waited_for(self):
        folder = self.folder()
        link = os.path.join(folder, "gpushare-worker")
        os.symlink(os.path.join(BUILD, "libexec/gpushare-worker"), link)
        server = self.served("--worker", link)
        device = self.json(server, "status")["devices"][0]
        self.assertEqual(device["state"], "ready")
        os.unlink(link)
        os.kill(device["worker_pid"], signal.SIGKILL)
        end = time.monotonic() + SECONDS
        while (state := self.json(server, "status")["devices"][0])["state"] != "waiting" or state["worker_pid"]:
            self.assertLess(time.monotonic(), end, state)
            time.sleep(0.01)
        self.assertIsNotNone(state["trouble"])
        self.assertLess(state["worker_ended_seconds"], SECONDS)
        self.assertRegex(server.ctl("status").stdout, r"(?m)^device 0: the latest worker ended \S+( \S+)? ago: (?!device 0:)")
        os.symlink(os.path.join(BUILD, "libexec/gpushare-worker"), link)
        while self.json(server, "status")["devices"][0]["state"] != "ready":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class Configuration(Case):
    PAGE = read("docs/configuration.md")

    def in_an_etc_of_its_own(self, files):
        """A private mount namespace in which /etc is a folder with these files."""
        if os.getuid() or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("needs root and mount namespaces")
        etc = self.folder()
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(etc, path)), exist_ok=True)
            with open(os.path.join(etc, path), "w", encoding="utf-8") as file:
                file.write(text)
        return ["unshare", "-m", "sh", "-c", f'mount --bind {etc} /etc && exec "$@"', "sh"]

    def test_the_files_own_place(self):
        self.assertTrue("by default `/etc/gpushare/gpushared.yaml` if that" in self.PAGE)
        for files, status, words in (({"gpushare/gpushared.yaml": "clients: {threads: 3}\n"}, 1, "/etc/gpushare/gpushared.yaml:1: threads"),
                                     ({"gpushare/gpushared.yaml": "clients: {priority: 3}\n"}, 0, "/etc/gpushare/gpushared.yaml: no mistake"),
                                     ({}, 0, "/etc/gpushare/gpushared.yaml: there is no such file")):
            done = run(*self.in_an_etc_of_its_own(files), GPUSHARED, "--check-config")
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(words, done.stdout + done.stderr)

    def test_the_admin_socket_is_the_groups(self):
        """docs/gpusharectl.md says so for systems that have the group."""
        folder = self.folder()
        path = os.path.join(folder, "admin.sock")
        for group, gid in (("gpushare:x:54321:\n", 54321), ("other:x:54321:\n", 0)):
            command = self.in_an_etc_of_its_own({"group": "root:x:0:\n" + group, "passwd": "root:x:0:0::/:/bin/sh\n"})
            server = subprocess.Popen([*command, GPUSHARED, "--driver", "softgpu", "--socket", os.path.join(folder, "s"),
                                       "--admin-socket", path], env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + SECONDS
                while run(GPUSHARECTL, "--socket", path, "ping").returncode:
                    self.assertTrue(server.poll() is None and time.monotonic() < end, "no server")
                    time.sleep(0.01)
                self.assertEqual((os.stat(path).st_gid, os.stat(path).st_mode & 0o7777), (gid, 0o660))
            finally:
                server.terminate()
                server.wait(SECONDS)

    def check(self, value):
        """The words of --check-config about this file. A dict is written as JSON, which is YAML."""
        path = os.path.join(self.folder(), "gpushared.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        done = run(GPUSHARED, "--check-config", "--config", path)
        self.assertIn(done.returncode, (0, 1))
        return done.stderr

    def test_how_much_may_be_in_a_file(self):
        depth, mebibytes = map(int, re.search(r"at most (\d+) deep, in at most (\d+) MiB", self.PAGE).groups())
        self.assertEqual(self.check("#" * (mebibytes << 20)), "")
        self.assertIn("more than", self.check("#" * ((mebibytes << 20) + 1)))
        for deep in (depth, depth + 1):
            said = self.check('{"rules": ' + "[" * (deep - 1) + "]" * (deep - 1) + "}")
            self.assertEqual("nested more than" in said, deep > depth, said)
        said = re.search(r"at most (\d+) profiles, (\d+) rules and (\d+) GPUs,\s+and a list in it at most (\d+) items", self.PAGE)
        profiles, rules, gpus, items = map(int, said.groups())
        for most, made in ((profiles, lambda n: {"profiles": {f"p{i}": {} for i in range(n)}}), (rules, lambda n: {"rules": [{}] * n}),
                           (gpus, lambda n: {"gpus": [{"gpu": i} for i in range(n)]}), (items, lambda n: {"users": [{}] * n}),
                           (items, lambda n: {"rules": [{"match": {"uid": list(range(n))}}]}),
                           (items, lambda n: {"rules": [{"match": {"name": ["a"] * n}}]})):
            self.assertEqual(self.check(made(most)), "")
            self.assertIn(f"more than {most} entries", self.check(made(most + 1)))

    def test_parts_of_a_byte_are_dropped_from_sizes(self):
        self.assertRegex(self.PAGE, r"Fractions of a byte are dropped, as in\s+`0.1G`")
        path = os.path.join(self.folder(), "gpushared.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("clients: {memory: {limit: 0.1G}, host_memory: {limit: 0.1M}}\n")
        _, told = self.attached(self.served("--config", path))
        self.assertEqual((told["memory_limit"], told["host_memory_limit"]), ((1 << 30) // 10, (1 << 20) // 10))

    def test_options_of_kubernetes_alone_are_refused(self):
        listed = self.PAGE.split("The server refuses the settings that only Kubernetes could carry out, and says why:", 1)[1].split("\n\n", 1)[0]
        one = {"name": "nvidia.com/gpu", "replicas": 2}
        self.assertEqual(self.check({"sharing": {"mps": {"resources": [one]}}}), "")
        for words, block in (("renameByDefault", {"mps": {"resources": [one], "renameByDefault": True}}),
                             ("rename", {"mps": {"resources": [{**one, "rename": "x"}]}}),
                             ("failRequestsGreaterThanOne", {"mps": {"resources": [one], "failRequestsGreaterThanOne": True}}),
                             ("nvidia.com/gpu", {"mps": {"resources": [{**one, "name": "nvidia.com/mig-1g.5gb"}]}}),
                             ("devices", {"mps": {"resources": [{**one, "devices": [0]}]}}),
                             ("both", {"mps": {"resources": [one]}, "timeSlicing": {"resources": [one]}})):
            self.assertIn({"both": "together"}.get(words, words), listed)
            said = self.check({"sharing": block})
            self.assertRegex(said, rf":1: .*{words}")

    def test_ranges_of_the_tables(self):
        least, most = re.search(r"\| `replicas` \| a number N, (\d+) to (\d+) \|", self.PAGE).groups()
        for key, bounds in (("replicas", (int(least), int(most))),
                            ("priority", map(int, re.search(r"\| `priority` \| (\d+) to (\d+) \|", self.PAGE).groups()))):
            low, high = bounds
            for value in (low, high):
                self.assertEqual(self.check({"clients": {key: value}}), "")
            for value in (low - 1, high + 1):
                self.assertIn(f"from {low} to {high}", self.check({"clients": {key: value}}))
        for name, right in (("a" * 63, True), ("a" * 64, False), ("A_0.-z", True), ("a b", False), ("a/b", False), ("", False)):
            self.assertEqual(self.check({"profiles": {name: {}}}) == "", right, name)

    def test_a_gpus_number_is_the_one_that_clients_see(self):
        path = os.path.join(self.folder(), "gpushared.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("gpus: [{gpu: 0, priority: 7}]\n")
        server = self.served("--config", path, SOFTGPU_DEVICES="2", GPUSHARE_VISIBLE_DEVICES="1")
        self.assertEqual(self.json(server, "status")["devices"][0]["driver_ordinal"], 1)
        self.assertEqual(self.attached(server)[1]["priority"], 7)
        with open(path, "w", encoding="utf-8") as file:
            file.write("gpus: [{gpu: 1, priority: 7}]\n")
        self.assertIn("there is no GPU", server.ctl("reload").stderr)

    def test_a_gpu_that_is_not_there_is_no_start_and_no_mistake_beforehand(self):
        folder = self.folder()
        path = os.path.join(folder, "gpushared.yaml")
        sockets = ("--socket", os.path.join(folder, "s"), "--admin-socket", os.path.join(folder, "a"))
        for which in ("7", "GPU-dead"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"gpus:\n  - {{gpu: {which}, mode: fair}}\n")
            done = run(GPUSHARED, "--driver", "softgpu", "--config", path, *sockets)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f'{path}:2: there is no GPU "{which}": this server has 1', done.stderr)
            done = run(GPUSHARED, "--check-config", "--config", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("whether its GPUs are there was not checked", done.stdout)

    def test_the_options_of_the_server_are_a_ceiling(self):
        path = os.path.join(self.folder(), "gpushared.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("clients: {host_memory: {limit: 4G}}\n")
        server = self.served("--config", path, "--host-memory-total", "64M")
        self.assertLessEqual(self.attached(server)[1]["host_memory_limit"], 64 << 20)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
