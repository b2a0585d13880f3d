#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: chart.py FOLDER: draws simulate's FOLDER/table.txt as FOLDER/table.svg, a panel for each of
four columns and in it a bar for each mode."""
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../support")))
import svg  # noqa: E402

PANEL, HEIGHT, BAR, GAP, LEFT, TOP = 200, 150, 34, 10, 20, 50
COLOURS = ("#8899aa", "#2f6db5", "#2e9e5b", "#c98a1b")
# Title, column of the table, and the ends of the axis; two panels span orders of magnitude.
PANELS = (("busy, of the time promised", 1, None), ("share error, p99, points (log)", 3, (0.01, 100)),
          ("wait, p99, ms (log)", 6, (1, 1e6)), ("Jain's index", 9, None))
WORDS = 12  # of a row: the mode and eleven numbers


def read_rows(table):
    rows = [line.replace("|", " ").split() for line in table.splitlines()]
    return [row for row in rows if len(row) == WORDS and row[0] != "mode"]


def part_of(value, ends):
    """0 to 1: how much of the panel's height a value takes."""
    if ends:
        value = math.log(max(value, ends[0]) / ends[0]) / math.log(ends[1] / ends[0])
    return min(max(value, 0.01), 1)


def draw(rows):
    drawing = svg.Drawing(LEFT + len(PANELS) * (PANEL + GAP) + LEFT, TOP + HEIGHT + 60, 12)
    for panel, (title, column, ends) in enumerate(PANELS):
        x = LEFT + panel * (PANEL + GAP)
        drawing.text(x, TOP - 22, title, font_weight="bold")
        for i, row in enumerate(rows):
            at, value = x + i * (BAR + GAP), float(row[column])
            tall = round(part_of(value, ends) * HEIGHT)
            drawing.box(at, TOP + HEIGHT - tall, BAR, tall, COLOURS[i])
            drawing.text(at, TOP + HEIGHT - tall - 4, f"{value:.{3 if value < 10 else 0}f}", font_size=10,
                         data_mode=row[0], data_column=column)
            low = TOP + HEIGHT + 14
            drawing.text(at, low, row[0], font_size=10, transform=f"rotate(30 {at} {low})")
    return drawing


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with open(os.path.join(sys.argv[1], "table.txt"), encoding="utf-8") as file:
        rows = read_rows(file.read())
    draw(rows).write(os.path.join(sys.argv[1], "table.svg"))


if __name__ == "__main__":
    main()
