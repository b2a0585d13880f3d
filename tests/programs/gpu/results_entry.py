#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Turn a results folder of run-checks.sh into an entry for docs/gpu-results.md, on standard output.

usage: results_entry.py FOLDER [--command TEXT]
"""
import argparse
import json
import os
import sys

ORDER = ["false", "failed", "not met", "unknown", "not run", "held", "passed", "measured"]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def row(*cells):
    return "| " + " | ".join(cell(c) for c in cells) + " |"


def load(folder):
    path = os.path.join(folder, "results.json")
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError as error:
        sys.exit(f"results_entry.py: {path}: {error.strerror}: name a folder that run-checks.sh has written")
    except ValueError as error:
        sys.exit(f"results_entry.py: {path}: not JSON: {error}")
    if not isinstance(results, dict) or not isinstance(results.get("steps"), list):
        sys.exit(f"results_entry.py: {path}: not what run-checks.sh writes")
    return results


def entry(results, command):
    steps = results["steps"]
    facts = {name: text for step in steps for name, text in step.get("facts", {}).items()}
    lines = [f"## {results['written'][:10]}: {facts.get('device', 'device unknown')}", ""]
    lines += [f"Driver: {facts.get('kernel-driver', 'kernel driver unknown')}; CUDA {facts.get('cuda', 'unknown')}; "
              f"library `{facts.get('library', results['driver'])}`; kernel {facts.get('kernel', 'unknown')}; "
              f"gpushare {results['gpushare']}.", "", f"Command: `{command}`", ""]
    counts = {}
    for step in steps:
        counts[step["outcome"]] = counts.get(step["outcome"], 0) + 1
    lines += ["Steps: " + ", ".join(f"{counts[o]} {o}" for o in ORDER if o in counts) + ".", ""]
    lines += ["| step | outcome | verdict |", "|---|---|---|"]
    for step in sorted(steps, key=lambda s: ORDER.index(s["outcome"])):
        lines.append(row(step["step"], step["outcome"], step["verdict"]))
    lines += ["", "| assumption | verdict | seen |", "|---|---|---|"]
    for verdict in ("false", "unknown", "held"):
        lines += [row(a["name"], verdict, a["text"]) for s in steps for a in s["assumptions"] if a["verdict"] == verdict]
    lines += ["", "| step | measure | value | unit |", "|---|---|---|---|"]
    lines += [row(s["step"], name, f"{m['value']:.6g}", m["unit"]) for s in steps for name, m in s["measures"].items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--command", default="./run-checks.sh --first", help="how the results were made")
    args = parser.parse_args()
    sys.stdout.write(entry(load(args.folder), args.command))


if __name__ == "__main__":
    main()
