#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Write the numbers of make bench into the tables of pages.

usage: page.py RESULTS.json PAGE.md...

Names, what is measured and goals stay as they are; value, yardstick, ratio and verdict follow from the results. Rows that are
not among the results stay. A row that was not measured, or not in its scene, has the reason behind its verdict."""
import json
import re
import sys


def number(value):
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"


def cells(result, unjudged):
    yardstick = ratio = "-"
    fault = (result["fault"] or "").replace("|", "/")
    if result["value"] is None:
        return "-", yardstick, ratio, f"not measured: {fault}"
    if result["yardstick"] is not None:
        yardstick = f"{result['yardstick']:.4g} ({result['yardstick_is']})"
        ratio = f"{result['ratio']:.3f}"
    verdict = f"not met: {fault}" if fault else "met" if result["met"] or unjudged else "not met"
    return f"{number(result['value'])} {result['unit']}", yardstick, ratio, verdict


def write(path, results):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for at, line in enumerate(lines):
        name = re.match(r"\| `(\w+)` \|", line)
        if name and name.group(1) in results and line.count("|") == 8:
            row = [cell.strip() for cell in line.strip("|").split("|")]
            row[2], row[3], row[4], row[6] = cells(results[name.group(1)], row[5] == "stated")
            lines[at] = f"| {' | '.join(row)} |"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        results = {result["name"]: result for result in json.load(file)}
    for path in sys.argv[2:]:
        write(path, results)


if __name__ == "__main__":
    main()
