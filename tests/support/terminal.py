# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""gpusharectl top on a pseudo terminal, whose screen a small model keeps."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from private_server import ENV, SECONDS


class Screen:
    """What a terminal shows that was sent these bytes. A sequence that it does not know is an error.

    lines()  the characters
    cells    each line's characters; cell_looks: "" (usual), "1" (bold) or "7" (reverse) of each"""
    SEQUENCE = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])")

    def __init__(self, rows, columns):
        self.other, self.cursor, self.looks, self.strange = False, True, set(), []
        self.resize(rows, columns, 0)

    def resize(self, rows, columns, pages):
        """pages: so many may have been drawn for the size before, or are its rest."""
        self.foreign = pages
        self.rows, self.columns, self.row, self.column = rows, columns, 0, 0
        self.look = ""
        self.cells = [[" "] * columns for _ in range(rows)]
        self.cell_looks = [[""] * columns for _ in range(rows)]

    def take(self, text):
        at = 0
        while at < len(text):
            match = self.SEQUENCE.match(text, at)
            if match:
                self.sequence(*match.groups())
                at = match.end()
                continue
            if text[at] == "\x1b":
                return text[at:]  # the rest of it is still to come
            self.character(text[at])
            at += 1
        return ""

    def sequence(self, private, numbers, letter):
        if private and letter in "hl" and numbers == "1049":
            self.other = letter == "h"
        elif private and letter in "hl" and numbers == "25":
            self.cursor = letter == "h"
        elif not private and letter == "H" and not numbers:
            self.row = self.column = 0
            self.foreign = max(0, self.foreign - 1)
        elif not private and letter == "K" and not numbers:
            self.cells[self.row][self.column:] = [" "] * (self.columns - self.column)
            self.cell_looks[self.row][self.column:] = [""] * (self.columns - self.column)
        elif not private and letter == "m" and numbers in ("0", "1", "7"):
            self.looks.add(numbers)
            self.look = "" if numbers == "0" else numbers
        else:
            self.strange.append((private, numbers, letter))

    def character(self, one):
        if one == "\r":
            self.column = 0
        elif one == "\n":
            if self.row + 1 == self.rows and not self.foreign:
                self.strange.append("scrolls")
            self.row = min(self.row + 1, self.rows - 1)
        elif self.column == self.columns:
            self.strange += ["writes over the edge"] * (not self.foreign)
        else:
            self.cells[self.row][self.column] = one
            self.cell_looks[self.row][self.column] = self.look
            self.column += 1

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]


class Top:
    """gpusharectl top on a terminal of this size. inside: words before the command, which run it."""

    def __init__(self, server, *words, rows=24, columns=80, inside=(), **env):
        self.main, child = pty.openpty()
        self.screen, self.rest = Screen(rows, columns), ""
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.usual = termios.tcgetattr(child)
        self.child = child
        self.process = subprocess.Popen([*inside, *server.command("top", *words)], stdin=child, stdout=child, stderr=subprocess.PIPE, text=True,
                                        env={**ENV, "TERM": "vt100", **env}, start_new_session=True)

    def read(self, seconds):
        if select.select([self.main], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.rest = self.screen.take(self.rest + os.read(self.main, 65536).decode())

    def until(self, holds):
        """Reads until the screen is as it should be. Returns its lines."""
        end = time.monotonic() + SECONDS
        while True:
            lines = self.screen.lines()
            # A page ends in the last row, and comes in pieces.
            whole = not self.screen.foreign and self.screen.row + 1 == self.screen.rows and lines[-1] and not select.select([self.main], [], [], 0)[0]
            if whole and holds(lines):
                break
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError("\n".join(lines) + f"\nexit status {self.process.poll()}")
            self.read(0.05)
        if self.screen.strange:
            raise AssertionError(f"{self.screen.strange}: " + "\n".join(lines))
        return lines

    def press(self, keys):
        os.write(self.main, keys.encode())

    def resize(self, rows, columns):
        self.screen.resize(rows, columns, 3)
        fcntl.ioctl(self.child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def ended(self):
        """Waits for the end. Returns its exit status."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while select.select([self.main], [], [], 0)[0]:
            self.read(0)
        return self.process.wait(1)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.main)
        os.close(self.child)


def rows_of(lines):
    """The lines of clients: (selected, number, the other words)."""
    head = next((at for at, line in enumerate(lines) if " ID " in line), len(lines))
    found = [re.match(r"^([> ]) *(\d+) (\S.*)$", line) for line in lines[head + 1:]]
    return [(match[1] == ">", int(match[2]), match[3].split()) for match in found if match]
