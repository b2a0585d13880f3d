#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make sharing-pictures: runs clients with kernels of modelled time through the real server on
the software GPU, one scene a mode and one in which the worker is killed, traces them with gpusharectl,
and draws docs/pictures/*.svg.

A busy machine spoils a picture: kernels sleep, but the client that submits them needs the CPU."""
import argparse
import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import picture  # noqa: E402
import private_server  # noqa: E402

SM_GROUPS = 17  # of the software GPU: sixteen of 8 multiprocessors and one of 4

# For each scene: its title, the GPU's schedule, its clients (name, kernel in us, options of
# `work`, environment), and the ms of the trace that are skipped and shown, from the first work on.
# Where the worker is killed: after how many ms, and how many ms before that are shown.
SCENES = {
    "concurrent": {
        "title": "concurrent: everybody at once",
        "gpu": "mode=concurrent",
        "clients": [("training", 20000, ("--in-flight", 8), {}),
                    ("batch job", 20000, ("--in-flight", 8, "--after", 500), {}),
                    ("notebook", 20000, ("--in-flight", 4, "--busy", 200, "--idle", 400), {})],
        "shown": 2400,
    },
    "strict": {
        "title": "strict: 50 %, 25 % and 10 % of the time, the rest stays idle",
        "gpu": "mode=strict lease=100ms precision=5%",
        "clients": [("50 %", 10000, ("--in-flight", 16), {"GPUSHARE_TIME_REQUEST": "50%"}),
                    ("25 %", 10000, ("--in-flight", 16), {"GPUSHARE_TIME_REQUEST": "25%"}),
                    ("10 %", 10000, ("--in-flight", 16), {"GPUSHARE_TIME_REQUEST": "10%"})],
        "shown": 4000,
    },
    "fair": {
        "title": "fair: at least 50 % and 25 %; idle time goes to those that want it",
        "gpu": "mode=fair lease=100ms precision=5%",
        "clients": [("50 %", 10000, ("--in-flight", 16, "--busy", 2000, "--idle", 2000), {"GPUSHARE_TIME_REQUEST": "50%"}),
                    ("25 %", 10000, ("--in-flight", 16), {"GPUSHARE_TIME_REQUEST": "25%"}),
                    ("no request", 10000, ("--in-flight", 16), {})],
        "shown": 6000,
    },
    "turns": {
        "title": "turns: the whole GPU for a quantum of 500 ms, first come first served",
        "gpu": "mode=turns quantum=500ms",
        "clients": [("first", 10000, ("--in-flight", 16), {}),
                    ("second", 10000, ("--in-flight", 16, "--after", 150), {}),
                    ("short job", 10000, ("--in-flight", 8, "--after", 300, "--busy", 100, "--idle", 1400), {})],
        "shown": 3000,
    },
    "threads": {
        "title": "threads: half of the multiprocessors are the service's own while it has work",
        "gpu": "mode=concurrent",
        "clients": [("service (request and limit 50 %)", 10000, ("--in-flight", 16, "--busy", 500, "--idle", 500),
                     {"GPUSHARE_THREADS_REQUEST": "50%", "GPUSHARE_ACTIVE_THREAD_PERCENTAGE": "50"}),
                    ("batch job (no limit)", 10000, ("--in-flight", 16), {})],
        "skipped": 600, # until the pace of both is known
        "shown": 2500,
        "sm_groups": SM_GROUPS,
    },
    "recovery": {
        "title": "recovery: the worker is killed, and the one that stands by takes over",
        "gpu": "mode=concurrent",
        "server": ("--standby", "driver"),
        "clients": [("training", 2000, ("--in-flight", 4), {}),
                    ("batch job", 5000, ("--in-flight", 2), {}),
                    ("notebook", 4000, ("--in-flight", 2, "--busy", 12, "--idle", 48), {})],
        "killed": 10 * 60 + 26, # while the notebook is idle
        "before": 100,
        "shown": 200,
    },
}


def gpu_of(server):
    return json.loads(server.ctl("--json", "status").stdout)["devices"][0]


def kill_worker(server, when):
    """Kills it at a time of time.monotonic()."""
    worker = gpu_of(server)["worker_pid"]
    time.sleep(max(0, when - time.monotonic()))
    os.kill(worker, signal.SIGKILL)


def wait_standby(server):
    end = time.monotonic() + private_server.SECONDS
    while gpu_of(server)["standby"]["state"] != "ready":
        if time.monotonic() > end:
            raise SystemExit("no process stands by")
        time.sleep(0.05)


def start_of(trace, scene):
    """Where the picture begins, in ms: some time after the first batch, or before the worker was lost."""
    kind, offset = ("recovery", -scene["before"]) if "killed" in scene else ("batch", scene.get("skipped", 0))
    with open(trace, encoding="utf-8") as file:
        return min(event["ts"] for event in json.load(file)["traceEvents"] if event.get("cat") == kind) / 1e3 + offset


def draw(name, folder, keep=None):
    scene = SCENES[name]
    seconds = (scene.get("skipped", scene.get("killed", 0)) + scene["shown"]) / 1e3 + 0.4
    options = scene.get("server", ())
    server = private_server.Server(*options)
    trace = server.file("trace.json")
    try:
        changed = server.ctl("set", "gpu", "0", *scene["gpu"].split())
        if changed.returncode:
            raise SystemExit(f"{name}: {changed.stderr}")
        works = [server.work(client, us, seconds, *options, **env) for client, us, options, env in scene["clients"]]
        if "killed" in scene:
            wait_standby(server)
        tracer = server.start_ctl("trace", "-o", trace, "--seconds", f"{seconds + 0.3:.1f}")
        server.wait_log("a trace of")
        began = time.monotonic()
        for work in works:
            work.go()
        if "killed" in scene:
            kill_worker(server, began + scene["killed"] / 1e3)
        out, err = tracer.communicate(timeout=private_server.SECONDS)
        for work in works:
            work.__exit__()
        if tracer.returncode or err:
            raise SystemExit(f"{name}: {out}{err}")
        start = start_of(trace, scene)
        command = f"make sharing-pictures: gpusharectl set gpu 0 {scene['gpu']}; gpusharectl trace -o {name}.json"
        if options:
            command += f"; gpushared {' '.join(options)}; kill -KILL, of the worker"
        picture.draw(trace, os.path.join(folder, f"{name}.svg"), scene["title"], command, start, start + scene["shown"],
                     scene.get("sm_groups", 0))
        if keep:
            os.replace(trace, os.path.join(keep, f"{name}.json"))
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="where the pictures go")
    parser.add_argument("scenes", nargs="*", default=list(SCENES))
    parser.add_argument("--keep", help="folder for the traces")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    for name in arguments.scenes:
        draw(name, arguments.folder, arguments.keep)
        print(f"{arguments.folder}/{name}.svg")


if __name__ == "__main__":
    main()
