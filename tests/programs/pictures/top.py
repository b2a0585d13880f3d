#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make top-picture: runs clients with kernels of modelled time through the real server on a software GPU with two devices,
runs gpusharectl top on a pseudo terminal, and draws its screen as docs/pictures/top.svg.

As root the clients are of three users, whose names only top's own view of /etc/passwd has. Anybody else has all clients
of one user, and the program says so."""
import argparse
import contextlib
import itertools
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import private_server  # noqa: E402
import svg  # noqa: E402
import terminal  # noqa: E402

ROWS, COLUMNS = 15, 100
USERS = {"alice": 61001, "bob": 61002, "carol": 61003}
MODES = ("mode=fair lease=50ms", "mode=concurrent")
SECONDS_LEAST = 5  # of the server, until what a start causes is over
# name, user, kernel in us, device, MiB of device memory, options of `work`, environment
CLIENTS = (
    ("train-resnet", "alice", 4000, 0, 2600, ("--in-flight", 8), {"GPUSHARE_TIME_REQUEST": "30%", "GPUSHARE_MEMORY_LIMIT": "4G"}),
    ("notebook", "bob", 2000, 0, 700, ("--in-flight", 4, "--busy", 150, "--idle", 350),
     {"GPUSHARE_TIME_REQUEST": "10%", "GPUSHARE_TIME_LIMIT": "30%", "GPUSHARE_MEMORY_LIMIT": "1G"}),
    ("batch-embeddings", "carol", 4000, 0, 1100, ("--in-flight", 8), {"GPUSHARE_TIME_LIMIT": "20%", "GPUSHARE_MEMORY_LIMIT": "2G"}),
    ("serve-search", "alice", 1000, 1, 1500, ("--in-flight", 4, "--busy", 300, "--idle", 200),
     {"GPUSHARE_THREADS_REQUEST": "30%", "GPUSHARE_MEMORY_LIMIT": "3G"}),
    ("tokenize", "bob", 1000, 0, 64, ("--in-flight", 2), {"GPUSHARE_TIME_LIMIT": "10%", "GPUSHARE_MEMORY_LIMIT": "256M"}),
    ("render", "bob", 8000, 1, 900, ("--in-flight", 4), {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "25", "GPUSHARE_MEMORY_LIMIT": "2G"}),
    ("sweep-lr-3e-4", "alice", 2000, 1, 450, ("--in-flight", 2), {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "10", "GPUSHARE_MEMORY_LIMIT": "1G"}),
    ("evaluate", "carol", 2000, 1, 300, ("--in-flight", 2, "--busy", 100, "--idle", 400),
     {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "25", "GPUSHARE_MEMORY_LIMIT": "512M"}),
)
CELL, LINE, BORDER, FONT = 8.43, 19, 14, 14
# A terminal of its own colours is legible on a light page and on a dark one.
DARK, LIGHT, BRIGHT = "#1e2430", "#d5dbe6", "#ffffff"


def inside(server):
    """Words that run a command in a place whose /etc/passwd has the users; none where this user can't make one."""
    if os.getuid():
        return ()
    path = server.file("passwd")
    with open("/etc/passwd", encoding="utf-8") as real, open(path, "w", encoding="utf-8") as file:
        file.write(real.read())
        file.writelines(f"{name}:x:{uid}:{uid}::/nonexistent:/usr/sbin/nologin\n" for name, uid in USERS.items())
    words = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', path)
    return words if private_server.run(*words, "true").returncode == 0 else ()


def got_of(row):
    """The share that the client of this line got, 0 to 100; None: it is not known yet."""
    word = next((word for word in row[2][5:] if word.endswith("%")), "-")
    return float(word[:-1]) if word[:-1].isdigit() else None


def is_seen(lines):
    """The server is up for some seconds, and all clients stand there, each with a share that it got."""
    rows, up = terminal.rows_of(lines), re.search(r"  up (\d+) s  ", lines[0])
    return up and int(up[1]) >= SECONDS_LEAST and len(rows) == len(CLIENTS) and all(got_of(row) for row in rows)


def screen_of(server):
    """The screen of top, once every client is seen at work on it: its lines, each with the looks of its characters."""
    place = inside(server)
    if not place:
        print("top: all clients are of one user: only root, where it may mount, can show three")
    with contextlib.ExitStack() as held:
        for device, mode in enumerate(MODES):
            changed = server.ctl("set", "gpu", str(device), *mode.split())
            if changed.returncode:
                raise SystemExit(f"top: {changed.stderr}")
        for name, user, kernel_us, device, mib, options, env in CLIENTS:
            work = held.enter_context(server.work(name, kernel_us, private_server.SECONDS, *options, "--memory", mib,
                                           user=USERS[user] if place else None, GPUSHARE_VISIBLE_DEVICES=str(device), **env))
            held.callback(work.process.kill)  # it would work until its time is over
            work.go()
        top = terminal.Top(server, "-d", "1", rows=ROWS, columns=COLUMNS, inside=place)
        held.callback(top.close)
        top.until(is_seen)
        top.press("q")
        screen = [("".join(cells), looks) for cells, looks in zip(top.screen.cells, top.screen.cell_looks)]
        if top.ended() != 0:
            raise SystemExit(f"top: {top.process.stderr.read()}")
        return screen


def draw(screen, out, command):
    """Each stretch of one look is a text that is as wide as its cells, whichever font the reader has."""
    drawing = svg.Drawing(COLUMNS * CELL + 2 * BORDER, len(screen) * LINE + 2 * BORDER, FONT, command, background=DARK)
    drawing.root.set("font-family", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")
    for at, (text, looks) in enumerate(screen):
        column = 0
        for look, cells in itertools.groupby(looks):
            width = len(list(cells))
            part, x, y = text[column:column + width], BORDER + column * CELL, BORDER + at * LINE
            if look == "7":
                drawing.box(x, y, width * CELL, LINE, LIGHT)
            column += width
            start = len(part) - len(part.lstrip())
            part = part.strip()
            if part:
                bold = {"font_weight": "bold"} if look == "1" else {}
                drawing.text(x + start * CELL, y + LINE - 5, part, textLength=len(part) * CELL, **{"xml:space": "preserve"},
                             fill={"": LIGHT, "1": BRIGHT, "7": DARK}[look], **bold)
    drawing.write(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the file of the picture")
    arguments = parser.parse_args()
    with private_server.Server(env={"SOFTGPU_DEVICES": "2"}) as server:
        screen = screen_of(server)
    draw(screen, arguments.out, "make top-picture: gpusharectl top, of eight clients on two software GPUs")
    print(arguments.out)


if __name__ == "__main__":
    main()
