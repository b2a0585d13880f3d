#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The service under the filter of system calls that its unit states: it serves clients, is replaced, and misses nothing. The filter
is the one that systemd would load: the sets are systemd's own, and each call outside of them fails with EPERM."""
import ctypes
import errno
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import sanitizer  # noqa: E402
from private_server import BUILD, GPUSHARECTL, Server, Work, run  # noqa: E402

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../systemd/gpushared.service.in")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of the kernel's linux/filter.h
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# What execs the filtered process: systemd allows it to itself.
BEFORE = {"execve"}


def members(name):
    """The calls of a set, and of the sets in it."""
    if not name.startswith("@"):
        return {name}
    said = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in said.splitlines()[1:]]
    return set().union(*(members(word) for word in words if word and not word.startswith("#")))


def allowed():
    with open(UNIT, encoding="utf-8") as file:
        lines = re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.M)
    calls = members("@default")
    for line in lines:
        taken = set().union(*(members(word) for word in line.lstrip("~").split()))
        calls = calls - taken if line.startswith("~") else calls | taken
    return calls


def numbers():
    said = subprocess.run(["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-"], input="", check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", said, re.M)}


def program(calls):
    """A filter for prctl(2): loads the call's number, compares it with each allowed one."""
    known = numbers()
    rows = [(LOAD_WORD, 0, 0, 0)]
    for number in sorted({known[name] for name in calls if name in known}):
        rows += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    return rows + [(RETURN, 0, 0, ERRNO | errno.EPERM)]


class Filter:
    def __init__(self, calls):
        rows = program(calls)
        self.code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
        self.described = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(self.code))
        self.libc = ctypes.CDLL(None, use_errno=True)

    def load(self):
        for words in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self.described, 0, 0)):
            if self.libc.prctl(*words):
                raise OSError(ctypes.get_errno(), "prctl")


@unittest.skipUnless(shutil.which("systemd-analyze") and platform.machine() == "x86_64", "systemd-analyze is not installed, or this is no x86-64")
class SyscallFilter(unittest.TestCase):
    def test_the_filter_refuses(self):
        """mincore is such a call that no set has: without the unit's word for it the kernel refuses it."""
        self.assertIn("mincore", allowed())
        self.assertNotIn("mincore", members("@system-service"))
        code = "import ctypes,mmap; m=mmap.mmap(-1,4096); l=ctypes.CDLL(None,use_errno=True); " \
               "print(l.mincore(ctypes.byref(ctypes.c_char.from_buffer(m)),4096,ctypes.create_string_buffer(1)),ctypes.get_errno())"
        for calls, expected in ((allowed() | BEFORE, "0 0"), ((allowed() | BEFORE) - {"mincore"}, f"-1 {errno.EPERM}")):
            said = subprocess.run([sys.executable, "-c", code], preexec_fn=Filter(calls).load, check=True, capture_output=True, text=True).stdout
            self.assertEqual(said.strip(), expected)

    @unittest.skipIf(sanitizer.is_there("asan|tsan"), "a sanitizer makes calls of its own, which the filter refuses")
    def test_the_service_misses_nothing_under_its_filter(self):
        with Server(preexec=Filter(allowed() | BEFORE).load) as server:
            with Work(server, "work", 100, 1) as work:
                work.go()
                row = work.row()
            self.assertGreater(work.launches, 0)
            self.assertEqual(row["name"], "work")
            for name, expected in (("unmodified/heat", "verified"), ("vector-add", "verified")):
                ended = run(os.path.join(BUILD, "bin/gpushare"), "run", "--socket", server.client, "--", os.path.join(BUILD, "examples", name))
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn(expected, ended.stdout)
            ended = run(GPUSHARECTL, "--socket", server.admin, "reload")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            text = server.text()
        for word in ("refuses", "could not", "EPERM", os.strerror(errno.EPERM)):
            self.assertNotIn(word, text)


if __name__ == "__main__":
    unittest.main()
