#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""NVIDIA's public cuda-samples as unmodified programs: built by nvcc, executed on the software GPU and as clients of a server.

  samples.py build FOLDER                   FOLDER: the repository's. Builds what samples.txt names into $BUILD/samples/ARCH
  samples.py run [NAME...]                  each one straight on the software GPU
  samples.py run --server [NAME...]         each one as a client of a server of its own
  samples.py run --server --four [NAME...]  four at a time, each with other limits
  samples.py wall [NAME...]                 the wall time as a client against straight, three runs each
  samples.py table RESULTS.json...          the tables of docs/compatibility.md, of what run --json wrote in each way

--arch ARCH is the compute capability of the PTX that is built or run (75). Nothing of the repository is kept in the
tree. --limit S is the time that one may take (600 s). A program is right if it prints the verdict that samples.txt
names and no word of a failure; its exit status alone says too little. The exit status is 0 if all that ran were right or
waived; of table, if each has the same outcome in each way.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
from private_server import BUILD, ENV, GPUSHARE, Server  # noqa: E402

OUT = os.path.join(BUILD, "samples")
SOFTGPU = os.path.join(BUILD, "bin/softgpu")
# Words of a failure; "0 Failures" is none, nor is the error that simpleAssert provokes.
WRONG = re.compile(r"(?i)\b(?:test failed|failed!|= fail\b|mismatch|corrupted|don't match|do not match|not ok\b|[1-9]\d* failures)")
WAIVED = re.compile(r"(?i)waiv")
# The name of the error, as programs print it, and the library's own sentence.
REFUSED = re.compile("(?i)NotSupported|NOT_SUPPORTED|not supported|gpushare does not have")
LIMITS = (("--threads", "25%", "--memory", "1G"), ("--threads", "50%", "--memory", "2G"), ("--memory", "3G"), ("--threads", "40%", "--memory", "2G", "--priority", "1"))
# These load a kernel from a file beside them.
LOADED = {"vectorAddDrv", "vectorAddMMAP", "threadMigration", "ptxjit", "simpleDrvRuntime", "matrixMulDrv"}

Sample = collections.namedtuple("Sample", "name verdict arch", defaults=["75"])
Result = collections.namedtuple("Result", "name outcome seconds last")


def listed(names, arch="75"):
    """The samples that are to be run, of these names or all."""
    samples = []
    with open(os.path.join(HERE, "samples.txt"), encoding="utf-8") as file:
        for line in file:
            words = line.split(None, 2)
            if words and words[0] != "#" and words[1] == "run":
                samples.append(Sample(words[0], words[2].strip(), arch))
    return [sample for sample in samples if not names or any(name in sample.name for name in names)]


def program_of(sample):
    return os.path.join(OUT, sample.arch, sample.name.replace("/", "_"), "program")


def build(folder, sample):
    """Builds one; returns what nvcc said if it could not."""
    source, out = os.path.join(folder, "Samples", sample.name), os.path.dirname(program_of(sample))
    common, arch = os.path.join(folder, "Common"), "compute_" + sample.arch
    if os.path.exists(program_of(sample)):
        return ""
    os.makedirs(out, exist_ok=True)
    sources = sorted(path for kind in ("cu", "cpp", "c") for path in glob.glob(f"{source}/*.{kind}") + glob.glob(f"{source}/src/*.{kind}"))
    include = [f"-I{common}", f"-I{source}", f"-I{source}/inc"]
    if os.path.basename(sample.name) in LOADED:
        for kernel in [path for path in sources if path.endswith("_kernel.cu")]:
            sources.remove(kernel)
            stem = os.path.join(out, os.path.basename(kernel)[:-3])
            for end, kind in ((".fatbin", "-fatbin"), ("64.fatbin", "-fatbin"), (".ptx", "-ptx"), ("64.ptx", "-ptx")):
                subprocess.run(["nvcc", kind, f"-arch={arch}", *include, "-o", stem + end, kernel], check=True, capture_output=True)
    for separate in ("false", "true"):
        made = subprocess.run(["nvcc", "-std=c++17", "-O2", "-w", "-cudart", "shared", "-gencode", f"arch={arch},code={arch}", "--extended-lambda",
                               f"-rdc={separate}", *include, "-o", program_of(sample), *sources, "-lcuda"], cwd=source, capture_output=True, text=True,
                              check=False)
        if made.returncode == 0:
            # What it reads lies beside its source.
            for data in glob.glob(f"{source}/data") + glob.glob(f"{source}/*.p[gp]m") + glob.glob(f"{source}/*.bmp"):
                os.symlink(data, os.path.join(out, os.path.basename(data)))
            return ""
    return made.stderr[-400:]


def execute(sample, prefix, limit, env):
    """One run, judged by what it printed."""
    began = time.monotonic()
    try:
        ended = subprocess.run([*prefix, program_of(sample)], cwd=os.path.dirname(program_of(sample)), env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        return Result(sample.name, "late", limit, (late.stdout or b"")[-200:].decode(errors="replace"))
    seconds, text = time.monotonic() - began, ended.stdout.decode(errors="replace")
    shown = sample.verdict == "status" or re.search(sample.verdict, text)
    if ended.returncode == 0 and shown and not WRONG.search(text):
        outcome = "waived" if WAIVED.search(text) else "right"
    elif WAIVED.search(text) or ended.returncode == 2:
        outcome = "waived"
    elif REFUSED.search(text):
        outcome = "refused"
    else:
        outcome = f"status {ended.returncode}" if ended.returncode else "wrong"
    return Result(sample.name, outcome, seconds, text.strip()[-300:])


def show(result):
    last = "" if result.outcome == "right" else "  " + result.last.replace("\n", " | ")
    print(f"{result.name:55} {result.outcome:10} {result.seconds:7.1f} s{last}", flush=True)
    return result


def run(samples, options):
    """All of them; returns the results."""
    env = dict(ENV)
    if not options.server:
        return [show(execute(sample, [SOFTGPU, "run"], options.limit, env)) for sample in samples]
    server = Server()
    try:
        client = [GPUSHARE, "run", "--socket", server.client]
        if not options.four:
            return [show(execute(sample, client, options.limit, env)) for sample in samples]
        with concurrent.futures.ThreadPoolExecutor(len(LIMITS)) as four:
            return [show(result) for result in four.map(
                lambda pair: execute(pair[1], [*client, *LIMITS[pair[0] % len(LIMITS)]], options.limit, env), enumerate(samples))]
    finally:
        server.stop_well()


def wall(samples, options):
    """The median over samples of the wall time as a client against straight."""
    ratios, env = [], dict(ENV)
    server = Server()
    try:
        for sample in samples:
            times = {"straight": [], "client": []}
            for _ in range(3):
                for way, prefix in (("straight", [SOFTGPU, "run"]), ("client", [GPUSHARE, "run", "--socket", server.client])):
                    result = execute(sample, prefix, options.limit, env)
                    if result.outcome != "right":
                        break
                    times[way].append(result.seconds)
            if min(len(times["straight"]), len(times["client"])) < 3:
                print(f"{sample.name:55} not right both ways")
                continue
            straight, client = (statistics.median(times[way]) for way in ("straight", "client"))
            ratios.append(client / straight)
            print(f"{sample.name:55} {straight:7.2f} s straight, {client:7.2f} s as a client: {client / straight:.3f}", flush=True)
    finally:
        server.stop_well()
    if ratios:
        print(f"dropin_samples_wall: {statistics.median(ratios):.3f} (median of {len(ratios)})")
    return ratios


def table(paths):
    """Prints the outcomes in each way, and the samples that are not right in all. Returns whether any differs."""
    ways = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            ways[os.path.splitext(os.path.basename(path))[0]] = {row["name"]: Result(**row) for row in json.load(file)}
    kinds = ("right", "waived", "refused", "late")
    print("| way | samples | %s | others | right within 60 s |\n|---|---|%s" % (" | ".join(kinds), "---|" * (len(kinds) + 2)))
    for way, results in ways.items():
        counted = collections.Counter(result.outcome for result in results.values())
        soon = sum(result.outcome == "right" and result.seconds <= 60 for result in results.values())
        cells = [len(results), *(counted[kind] for kind in kinds), len(results) - sum(counted[kind] for kind in kinds), soon]
        print("| %s | %s |" % (way, " | ".join(map(str, cells))))
    print("\n| sample | %s |\n|---|%s" % (" | ".join(ways), "---|" * len(ways)))
    names = sorted({name for results in ways.values() for name in results})
    outcomes = {name: [results[name].outcome if name in results else "-" for results in ways.values()] for name in names}
    for name in names:
        if set(outcomes[name]) != {"right"}:
            print("| %s | %s |" % (name, " | ".join(outcomes[name])))
    return any(len(set(of_all)) > 1 for of_all in outcomes.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "run", "wall", "table"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--four", action="store_true")
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--arch", default="75")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_intermixed_args()
    if options.what == "build":
        if len(options.names) != 1:
            parser.error("build takes the folder of the samples' repository")
        failed = False
        for sample in listed([], options.arch):
            said = build(options.names[0], sample)
            failed = failed or bool(said)
            print(f"{sample.name:55} {'NOT BUILT: ' + said if said else 'built'}", flush=True)
        return failed
    if options.what == "table":
        return table(options.names)
    samples = [sample for sample in listed(options.names, options.arch) if os.path.exists(program_of(sample))]
    if not samples:
        parser.error("none of them is built: samples.py build FOLDER")
    if options.what == "wall":
        return not wall(samples, options)
    results = run(samples, options)
    counted = collections.Counter(result.outcome for result in results)
    print("; ".join(f"{count} {outcome}" for outcome, count in counted.most_common()),
          f"({sum(result.outcome == 'right' and result.seconds <= 60 for result in results)} right within 60 s, of {len(results)})")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([result._asdict() for result in results], file, indent=1)
    return any(outcome not in ("right", "waived") for outcome in counted)


if __name__ == "__main__":
    # Programs are started in a folder of their own, and none of the tests' settings is theirs.
    with tempfile.TemporaryDirectory(prefix="gpushare-samples-") as folder_of_runs:
        os.environ.setdefault("TMPDIR", folder_of_runs)
        sys.exit(main())
