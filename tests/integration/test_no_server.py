#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl and gpushare without a server, and with wrong arguments: each message names the cause
and the remedy."""
import contextlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import json_check  # noqa: E402
from private_server import BUILD, ENV, FOR_OTHER_USERS, GPUSHARE, GPUSHARECTL, GPUSHARED, SECONDS, run  # noqa: E402
from server_case import NOBODY  # noqa: E402


class NoServer(unittest.TestCase):
    def test_each_command_names_socket_and_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "admin.sock")
            for command in ("ping", "status", "clients", "version", "kill 1"):
                result = run(GPUSHARECTL, "--socket", path, *command.split())
                self.assertEqual(result.returncode, 3, command)
                self.assertIn(path, result.stderr)
                self.assertIn("start gpushared", result.stderr)
                result = run(GPUSHARECTL, "--json", "--socket", path, *command.split())
                self.assertEqual(result.returncode, 3, command)
                json_check.check("admin-error", json.loads(result.stdout))
            result = run(GPUSHARE, "--socket", path, "info")
            self.assertEqual(result.returncode, 3)
            self.assertIn(path, result.stderr)

    def test_a_connection_that_is_reset_names_where_the_reason_is(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as admin, \
             socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as clients:
            def reset(listener, asked):
                with contextlib.suppress(OSError):  # the test has ended
                    while True:
                        with listener.accept()[0] as connection:
                            if asked:  # closed with a request in its queue, as systemd does when it gives a service up
                                select.select([connection], [], [], SECONDS)

            for path, listener, asked in (("admin", admin, True), ("clients", clients, False)):
                listener.bind(os.path.join(folder, path))
                listener.listen()
                threading.Thread(target=reset, args=(listener, asked), daemon=True).start()
            for status, command in ((3, (GPUSHARECTL, "--socket", os.path.join(folder, "admin"), "status")),
                                    (1, (GPUSHARE, "--socket", os.path.join(folder, "clients"), "info"))):
                ended = run(*command)
                self.assertEqual(ended.returncode, status, ended.stderr)
                self.assertIn("journalctl -u gpushared", ended.stderr)
                self.assertIn("gpushare doctor", ended.stderr)

    def test_a_trace_that_cannot_be_written_has_the_status_that_help_says(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run(GPUSHARECTL, "--socket", f"{folder}/s", "trace", "-o", f"{folder}/none/trace")
            self.assertEqual((result.returncode, f"cannot write {folder}/none/trace" in result.stderr), (1, True), result.stderr)
            result = run(GPUSHARECTL, "--socket", f"{folder}/s", "trace", "-o", f"{folder}/trace")
            self.assertEqual((result.returncode, os.listdir(folder)), (3, []), result.stderr)
        self.assertIn("1 the server refused, or a file can't be written,", run(GPUSHARECTL, "--help").stdout)

    def test_a_refused_socket_names_the_users_it_is_open_to(self):
        if os.getuid():
            self.skipTest("needs root to become another user")
        # The other user must be able to reach the tool: $TMPDIR and the build folder may be closed to that user.
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as closed:
            inner, tool = os.path.join(folder, "inner"), shutil.copy(GPUSHARECTL, folder)
            path = os.path.join(inner, "admin.sock")
            os.mkdir(inner, 0o700)
            os.chmod(folder, 0o755)
            closed.bind(path)
            closed.listen()
            os.chmod(path, 0o660)

            def refusal():
                done = subprocess.run([tool, "--socket", path, "ping"], stderr=subprocess.PIPE, text=True, env={**ENV, **FOR_OTHER_USERS},
                                      user=NOBODY, group=NOBODY, extra_groups=[], timeout=SECONDS)
                self.assertEqual(done.returncode, 3)
                return done.stderr

            self.assertIn("a folder above it is closed to this user", refusal())
            os.chmod(inner, 0o755)
            self.assertIn("members of its group root may: use sudo", refusal())
            os.chown(path, 0, 54321)
            self.assertIn("members of its group 54321 may: use sudo", refusal())

    def test_a_missing_target_is_named_by_its_kind(self):
        for words, sentence in (("get gpu GPU-1", '"GPU-1" is not the index of a GPU, as `gpusharectl status` shows it\n'),
                                ("set gpu", "set: this command needs the index of a GPU, as `gpusharectl status` shows it\n"),
                                ("get user no-such", 'there is no user "no-such" on this machine: correct the name, or give the uid\n'),
                                ("set gpu:x", '"x" is not the index of a GPU, as `gpusharectl status` shows it\n'),
                                ("get client:", '"" is not the number of a client, as `gpusharectl clients` shows it\n'),
                                ("set group:no-such", 'there is no group "no-such" on this machine: correct the name, or give the gid\n'),
                                ("set user:9-9", '"9-9" is neither a uid nor the name of a user\n'),
                                ("get cgroup", "get: this command needs the path of a control group, such as /batch.slice\n"),
                                ("set cgroup:a", '"a" is not the path of a control group, such as /batch.slice\n'),
                                ("kill cgroup /a", '"cgroup" is not the number or the name of a client'),
                                ("get seven", "group and a gid or name, or cgroup and a path, or gpu and an index\n"),
                                ("kill group 3", '"group" is not the number or the name of a client, as `gpusharectl clients` shows them, or user and a uid or name\n'),
                                ("kill user", "kill: this command needs a uid, or the name of a user\n"),
                                ("kill", "kill: this command needs the number or the name of a client, as `gpusharectl clients` shows them, or user and a uid or name\n"),
                                ("kill client x", '"x" is not the number of a client')):
            result = run(GPUSHARECTL, *words.split())
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(sentence, result.stderr)

    def test_another_program_on_the_socket_is_recognised(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as other, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as clients:
            path = os.path.join(folder, "s")
            other.bind(path)
            self.assertIn("has ended", run(GPUSHARECTL, "--socket", path, "ping").stderr)
            other.listen()
            asking = subprocess.Popen([GPUSHARECTL, "--socket", path, "ping"], stderr=subprocess.PIPE, text=True, env=ENV)
            peer, _ = other.accept()
            peer.recv(100)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n")
            self.assertIn("is not in gpushared's format", asking.communicate(timeout=SECONDS)[1])
            self.assertEqual(asking.returncode, 3)
            peer.close()
            clients.bind(path + "2")
            clients.listen()
            self.assertIn("that is not an admin socket", run(GPUSHARECTL, "--socket", path + "2", "ping").stderr)
            result = run(GPUSHARECTL, "--socket", "/" + "x" * 200, "ping")
            self.assertEqual(result.returncode, 3)

    def test_the_users_own_server_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "gpushare"))
            path = os.path.join(folder, "gpushare/admin.sock")
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(path)
                self.assertIn(path, run(GPUSHARECTL, "ping", XDG_RUNTIME_DIR=folder).stderr)
            self.assertIn("/run/gpushare/admin.sock", run(GPUSHARECTL, "ping", XDG_RUNTIME_DIR="/nonexistent").stderr)

    def test_usage(self):
        for tool, arguments in ((GPUSHARECTL, ("",)), (GPUSHARECTL, ("reboot",)), (GPUSHARECTL, ("ping", "1")),
                                (GPUSHARECTL, ("kill",)), (GPUSHARECTL, ("kill", "-1")),
                                (GPUSHARECTL, ("kill", "4294967296")), (GPUSHARECTL, ("kill", "1", "2")),
                                (GPUSHARECTL, ("--nonsense",)), (GPUSHARECTL, ("--socket",)), (GPUSHARE, ()),
                                (GPUSHARE, ("run",)), (GPUSHARE, ("info", "x")), (GPUSHARE, ("--device", "x", "info"))):
            result = run(tool, *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("--help", result.stderr)
        for tool in (GPUSHARECTL, GPUSHARE):
            result = run(tool, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith("usage: "))
            self.assertEqual(run(tool, "--version").returncode, 0)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([GPUSHARECTL, "--help"], stdout=full, stderr=subprocess.PIPE, env=ENV, check=False)
            self.assertEqual(result.returncode, 1)


class Help(unittest.TestCase):
    def test_each_command_has_a_page(self):
        whole = run(GPUSHARECTL, "--help").stdout
        self.assertEqual(whole, run(GPUSHARECTL, "help").stdout)
        commands = re.findall(r"^  ([a-z]+) ", whole.split("commands:\n")[1].split("\noptions:")[0], re.M)
        self.assertIn("set", commands)
        for command in commands:
            page = run(GPUSHARECTL, "help", command).stdout
            for words in ((command, "--help"), (command, "-h"), ("--help", command)):
                self.assertEqual(run(GPUSHARECTL, *words).stdout, page, words)
            text = page.split("\n\n")[1]
            self.assertIn(text, whole)
            self.assertEqual(set(re.findall(r"^  ([a-z]+) ", text, re.M)), {command})

    def test_every_program_takes_the_same_two_letters(self):
        worker, softgpu = (os.path.join(BUILD, path) for path in ("libexec/gpushare-worker", "bin/softgpu"))
        for program in (GPUSHARED, GPUSHARE, GPUSHARECTL, worker, softgpu):
            for letter, word, says in (("-V", "--version", rf"{os.path.basename(program)} \d+\.\d+"), ("-h", "--help", "usage: ")):
                with self.subTest(program=program, letter=letter):
                    done = run(program, letter)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, run(program, word).stdout, ""))
                    self.assertRegex(done.stdout, "^" + says)

    def test_a_misspelt_command_is_answered_with_the_one_that_it_resembles(self):
        for words in (("statsu",), ("help", "statsu"), ("statsu", "--help")):
            done = run(GPUSHARECTL, *words)
            self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                             (2, 'gpusharectl: there is no command "statsu": perhaps status was meant'))
        done = run(GPUSHARECTL, "xyzzy")
        self.assertEqual(done.returncode, 2)
        self.assertIn('there is no command "xyzzy": there are ping, status,', done.stderr)
        self.assertIn("no command: one of ping, status,", run(GPUSHARECTL, "--wide").stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
