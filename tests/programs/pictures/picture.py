#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Draws a trace of `gpusharectl trace` as an SVG.

A row is a client over time: its batches on the device, its leases behind them, below them when it was
held back, and across the row when it recovered from the loss of the worker. With --sm-groups there are N rows, each an SM group, in the colour of the client whose
work ran there."""
import argparse
import json
import math
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../support")))
import svg  # noqa: E402

LEFT, RIGHT, WIDTH, TOP, ROW, BAR = 130, 110, 720, 56, 40, 18
SM_GROUP_HEIGHT, SM_GROUPS_MAX, CLIENTS_MAX = 11, 64, 8
BATCH, LEASE, HELD, RECOVERY = "batch", "lease", "held", "recovery"  # the categories of a trace's events
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8a00", "#555555")
PALE, GREY, RED = "#f4f4f4", "#999999", "#f2b8b5"
OPACITY = 0.85 # of work on an SM group: where two clients overlap, both colours show


class Part:
    """A stretch of time of one client, in ms."""
    def __init__(self, event, client, start, end):
        self.kind, self.client, self.start, self.end = event["cat"], client, start, end
        self.sm_groups = sm_groups_of(event.get("args", {}).get("sm_groups", ""))


def sm_groups_of(text):
    """The numbers of "0-3, 7"."""
    found = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


class Trace:
    def __init__(self, path, start, end):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.start, self.end = start, end
        named = [event for event in events if event.get("name") == "process_name" and event["pid"] != 1][:CLIENTS_MAX]
        self.names = [event["args"]["name"].split(" (client ")[0] for event in named]
        self.numbers = {event["pid"]: i for i, event in enumerate(named)}
        self.parts = sorted(self.read_parts(events), key=lambda part: (part.client, part.start))

    def read_parts(self, events):
        for event in events:
            if event.get("cat") not in (BATCH, LEASE, HELD, RECOVERY):
                continue
            # A lease is an event of the GPU; its client's process has the client's number + 1.
            process = event["args"]["client"] + 1 if event["cat"] == LEASE else event["pid"]
            start = max(event["ts"] / 1e3, self.start)
            end = min((event["ts"] + event["dur"]) / 1e3, self.end)
            if process in self.numbers and end > start:
                yield Part(event, self.numbers[process], start, end)

    def of(self, client, kind):
        return [part for part in self.parts if (part.client, part.kind) == (client, kind)]

    def busy(self, client):
        """The part of the time in which the client had work on the device."""
        total, end = 0, self.start
        for part in self.of(client, BATCH):
            total += max(0, part.end - max(part.start, end))
            end = max(part.end, end)
        return total / (self.end - self.start)

    def merged(self, parts):
        """Starts and ends; parts that follow closer than the eye can see are one."""
        closest, found = (self.end - self.start) / WIDTH * 0.35, []
        for part in parts:
            if found and part.start - found[-1][1] < closest:
                found[-1][1] = max(found[-1][1], part.end)
            else:
                found.append([part.start, part.end])
        return found


def step_of(span):
    """One, two or five times a power of ten, for about eight steps."""
    power = 10 ** math.floor(math.log10(span / 8))
    return next(power * times for times in (1, 2, 5, 10) if span / 8 / power <= times)


class Picture:
    def __init__(self, trace, title, command, sm_groups):
        self.trace, self.sm_groups = trace, sm_groups
        bottom = TOP + sm_groups * SM_GROUP_HEIGHT if sm_groups else TOP + len(trace.names) * ROW - 8
        self.drawing = svg.Drawing(LEFT + WIDTH + RIGHT, bottom + 70, 13, command)
        self.drawing.text(LEFT, 24, title, font_size=16, font_weight="bold")
        self.draw_axis(bottom)
        if sm_groups:
            shared = self.draw_sm_groups()
            self.draw_legend_of_clients(bottom + 42, shared)
        else:
            self.draw_clients()
            self.draw_legend_of_kinds(bottom + 42)
        self.drawing.text(LEFT, bottom + 62, command, font_size=10, fill="#666666")

    def x_of(self, ms):
        return LEFT + (ms - self.trace.start) / (self.trace.end - self.trace.start) * WIDTH

    def bar(self, start, end, y, height, colour, opacity=1, gap=0):
        self.drawing.box(self.x_of(start), y, self.x_of(end) - self.x_of(start) - gap, height, colour, opacity)

    def draw_axis(self, bottom):
        span = self.trace.end - self.trace.start
        step = step_of(span)
        for i in range(int(span / step + 1e-3) + 1):
            x = self.x_of(self.trace.start + i * step)
            self.drawing.add("line", x1=x, y1=TOP - 4, x2=x, y2=bottom + 4, stroke="#cccccc")
            self.drawing.text(x, bottom + 18, f"{i * step:.0f}", text_anchor="middle", font_size=11)
        self.drawing.text(LEFT + WIDTH + 16, bottom + 18, "ms", font_size=11)

    def draw_clients(self):
        for i, name in enumerate(self.trace.names):
            y = TOP + i * ROW
            self.drawing.box(LEFT, y, WIDTH, ROW - 8, PALE)
            for part in self.trace.of(i, RECOVERY):
                self.bar(part.start, part.end, y, ROW - 8, RED)
            # Leases of one client that follow each other stay apart.
            for part in self.trace.of(i, LEASE):
                self.bar(part.start, part.end, y, ROW - 8, COLOURS[i], 0.25, gap=0.6)
            for start, end in self.trace.merged(self.trace.of(i, BATCH)):
                self.bar(start, end, y + 4, BAR, COLOURS[i])
            for start, end in self.trace.merged(self.trace.of(i, HELD)):
                self.bar(start, end, y + ROW - 14, 4, GREY)
            self.drawing.text(LEFT - 8, y + 19, name, text_anchor="end")
            self.drawing.text(LEFT + WIDTH + 10, y + 19, f"busy {self.trace.busy(i) * 100:.0f} %", font_size=12)

    def draw_sm_groups(self):
        shared = None # two clients that were seen on one SM group at once
        for sm_group in range(self.sm_groups):
            y = TOP + sm_group * SM_GROUP_HEIGHT
            self.drawing.box(LEFT, y, WIDTH, SM_GROUP_HEIGHT - 1, PALE)
            drawn = []
            for i in range(len(self.trace.names)):
                for start, end in self.trace.merged(part for part in self.trace.of(i, BATCH) if sm_group in part.sm_groups):
                    self.bar(start, end, y, SM_GROUP_HEIGHT - 1, COLOURS[i], OPACITY)
                    drawn.append((i, start, end))
            shared = shared or self.seen_at_once(drawn)
        for line, text in enumerate(("multiprocessors", "a row: one group")):
            self.drawing.text(LEFT - 8, TOP + 9 + 14 * line, text, text_anchor="end", font_size=11)
        return shared

    def seen_at_once(self, drawn):
        """Two clients whose bars in a row overlap by a pixel or more; None: there are none."""
        for i, start, end in drawn:
            for other, begins, ends in drawn:
                if i < other and self.x_of(min(end, ends)) - self.x_of(max(start, begins)) >= 1:
                    return i, other
        return None

    def draw_legend_of_clients(self, y, shared):
        swatches = [((i,), name) for i, name in enumerate(self.trace.names)]
        if shared:
            swatches.append((shared, "darker: both at once"))
        x = LEFT
        for clients, text in swatches:
            for i in clients:
                self.drawing.box(x, y - 10, 12, 12, COLOURS[i], OPACITY)
            self.drawing.text(x + 18, y, text, font_size=12)
            x += 24 + 7.5 * len(text) + 24

    def draw_legend_of_kinds(self, y):
        x, kinds = LEFT, {part.kind for part in self.trace.parts}
        for kind, text, height, colour, opacity in ((BATCH, "work on the device", 12, COLOURS[0], 1),
                                                    (LEASE, "its lease", 12, COLOURS[0], 0.25),
                                                    (HELD, "held: it has work and must wait", 4, GREY, 1),
                                                    (RECOVERY, "recovers: no worker reads its commands", 12, RED, 1)):
            if kind in kinds:
                self.drawing.box(x, y - 10, 22, height, colour, opacity)
                self.drawing.text(x + 28, y, text, font_size=12)
                x += 52 + 6.5 * len(text)


def draw(trace, out, title, command, start, end, sm_groups=0):
    """start, end: in ms. Ends the program with a sentence if nothing ran between them."""
    read = Trace(trace, start, end)
    if not read.parts:
        raise SystemExit(f"picture: nothing ran in that time of {trace}")
    Picture(read, title, command, sm_groups).drawing.write(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--title", required=True)
    parser.add_argument("--command", required=True, help="the command that is named in the picture")
    parser.add_argument("--from", type=float, dest="start", required=True, metavar="MS")
    parser.add_argument("--until", type=float, dest="end", required=True, metavar="MS")
    parser.add_argument("--sm-groups", type=int, default=0, metavar="N", help="draw N SM groups instead of clients")
    arguments = parser.parse_args()
    if arguments.start < 0 or arguments.end <= arguments.start or not 0 <= arguments.sm_groups <= SM_GROUPS_MAX:
        parser.error("--from is 0 or more, --until is after it, and --sm-groups is 0 to 64")
    try:
        draw(**vars(arguments))
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"picture: {arguments.trace}: {error}") from error


if __name__ == "__main__":
    main()
