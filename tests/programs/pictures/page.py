#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make page-picture: the exporter's page after a minute of work on the software GPU, as a headless Chromium shows it."""
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import browser  # noqa: E402
import exporter  # noqa: E402
import private_server  # noqa: E402
import raw_client  # noqa: E402

# Name, request of the GPU's time, options of `work`.
CLIENTS = [("training", "50%", ("--busy", 22000, "--idle", 12000)), ("batch job", "20%", ()), ("service", "10%", ("--busy", 900, "--idle", 2100)),
           ("notebook", None, ("--busy", 5000, "--idle", 9000)), ("render", None, ("--after", 18000,))]
IDLE = ["notebook 2", "dashboard", "shell"]
SECONDS, BYTES_MAX = 61, 150000


def main(path):
    if not browser.program():
        sys.exit(f"no Chromium is installed: {browser.INSTALL}")
    with contextlib.ExitStack() as held:
        server = held.enter_context(private_server.Server())
        server.ctl("set", "gpu", "0", "mode=fair", "lease=100ms", "precision=5%")
        for name, request, options in CLIENTS:
            env = {"GPUSHARE_TIME_REQUEST": request} if request else {}
            work = held.enter_context(server.work(name, 10000, 2 * SECONDS, "--in-flight", 8, *options, **env))
            held.callback(work.process.kill)
            work.go()
        for i, name in enumerate(IDLE):
            client = raw_client.RawClient(server.client)
            held.callback(client.close)
            client.attach(name=name, memory_limit=2 << 30)
            client.ask("memory_alloc", count=(3 * i + 1) * (192 << 20))
        page = held.enter_context(browser.Browser(1100, 790))
        served = held.enter_context(exporter.Exporter(server.admin))
        page.open(f"http://127.0.0.1:{served.port}/")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            page.run("new Promise((done) => setTimeout(done, 1000))")
        page.screenshot(path, whole=False)
    if os.path.getsize(path) > BYTES_MAX:
        sys.exit(f"{path} has {os.path.getsize(path)} bytes, and {BYTES_MAX} are the most")
    print(path)


if __name__ == "__main__":
    main(sys.argv[1])
