#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A real Prometheus scrapes gpushare-exporter: its tools find nothing wrong with metrics, rules and alerts, and each query of
the dashboard and of the alerts has data."""
import contextlib
import json
import math
import os
import re
import signal
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from private_server import BUILD, ENV, SECONDS, Server, run  # noqa: E402

EXPORTER = os.path.join(BUILD, "bin/gpushare-exporter")
STRAY = os.path.join(BUILD, "examples/stray")
MONITORING = os.path.join(ROOT, "docs/monitoring")
FETCHED = os.path.join(BUILD, "prometheus/bin")
TOOLS = {name: shutil.which(name, path=os.pathsep.join((FETCHED, os.environ.get("PATH", "")))) for name in ("prometheus", "promtool")}
# It scrapes as often as the exporter asks the server.
CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: gpushare
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""


def tool(*words, text=None):
    return subprocess.run([TOOLS["promtool"], *words], input=text, capture_output=True, text=True, env=ENV, timeout=SECONDS, check=False)


def dashboard_queries():
    """{(title of the panel, query)}, as Grafana would send them for all instances."""
    with open(os.path.join(MONITORING, "dashboard.json"), encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    found = {(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]}
    return {(title, expr.replace("$instance", ".*").replace("$__rate_interval", "1m")) for title, expr in found}


class Prometheus:
    """A running one. ask() sends it a query."""

    def __init__(self, folder, target):
        config = os.path.join(folder, "prometheus.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG % (os.path.join(MONITORING, "alerts.yaml"), target))
        checked = tool("check", "config", config)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        # It can't say which port it found, so a free one is chosen here: another program may be quicker, which then shows.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(os.path.join(folder, "prometheus.log"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen([TOOLS["prometheus"], "--config.file", config, "--storage.tsdb.path", os.path.join(folder, "data"),
                                         "--web.listen-address", f"127.0.0.1:{self.port}", "--log.level", "warn"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=folder,
                                        env={**ENV, "GOMAXPROCS": "1"})

    def get(self, path, **values):
        address = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(values)}"
        try:
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts still
                raise
            raise AssertionError(f"{values}: {error.read().decode()}") from error

    def ask(self, query):
        """The values that a query has now."""
        return [float(row["value"][1]) for row in self.get("/api/v1/query", query=query)["result"]]

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def wait(self, holds, what):
        """Waits until holds() is true."""
        end = time.monotonic() + SECONDS
        while True:
            assert self.process.poll() is None, self.text()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                if holds():
                    return
            assert time.monotonic() < end, f"{what()}: {self.text()}"
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)
        self.log.close()


@unittest.skipUnless(all(TOOLS.values()), "there is no Prometheus: run make prometheus")
class Monitoring(unittest.TestCase):
    def setUp(self):
        self.held = contextlib.ExitStack()
        self.addCleanup(self.held.close)
        self.folder = self.held.enter_context(tempfile.TemporaryDirectory(prefix="gpushare-test-", dir="/tmp"))

    def exporter(self, server):
        process = subprocess.Popen([EXPORTER, "--listen", "127.0.0.1:0", "--socket", server.admin], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=ENV)
        self.held.callback(process.wait)
        self.held.callback(process.terminate)
        self.held.callback(process.stderr.close)
        return int(re.search(r":(\d+)/metrics", process.stderr.readline()).group(1))

    def test_the_rules_and_their_tests_pass(self):
        for words in (("check", "rules", os.path.join(MONITORING, "alerts.yaml")),
                      ("test", "rules", os.path.join(MONITORING, "alerts-test.yaml"))):
            done = tool(*words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_test_that_fires_it(self):
        with open(os.path.join(MONITORING, "alerts.yaml"), encoding="utf-8") as file:
            named = set(re.findall(r"alert: (\w+)", file.read()))
        with open(os.path.join(MONITORING, "alerts-test.yaml"), encoding="utf-8") as file:
            fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", file.read()))
        self.assertEqual(named, fired)
        self.assertGreater(len(named), 5)

    def test_the_metrics_keep_the_conventions(self):
        with Server() as server, server.work("checked", 200, 0.1) as work:
            work.go()
            work.row()
            text = run(EXPORTER, "--once", "--socket", server.admin).stdout
        done = tool("check", "metrics", text=text)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        broken = tool("check", "metrics", text="# TYPE some counter\nsome 1\n")
        self.assertNotEqual(broken.returncode, 0, "the tool notices nothing")

    def test_every_query_of_the_dashboard_has_data(self):
        server = self.held.enter_context(Server())
        prometheus = Prometheus(self.folder, self.exporter(server))
        self.held.callback(prometheus.stop)
        prometheus.wait(lambda: prometheus.ask("gpushare_up == 1") and prometheus.ask("gpushare_gpu_recovery_seconds_count == 0"),
                        lambda: "it never scraped the exporter")
        done = run(STRAY, GPUSHARE_SOCKET=server.client)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = server.ctl("set", "group", str(os.getgid()), "total.memory=1G")
        self.assertEqual(told.returncode, 0, told.stderr)
        missing = dashboard_queries()
        self.assertGreater(len(missing), 15)

        def all_have_data():
            for title, query in sorted(missing):
                if any(math.isfinite(value) for value in prometheus.ask(query)):
                    missing.discard((title, query))
            return not missing

        with server.work("works", 500, 600, GPUSHARE_MEMORY_LIMIT="64M") as work:
            work.go()
            prometheus.wait(all_have_data, lambda: f"no data: {sorted(missing)}")
            work.process.kill()
        prometheus.wait(lambda: [(target["health"], target["lastError"]) for target in prometheus.get("/api/v1/targets")["activeTargets"]]
                        == [("up", "")], lambda: prometheus.get("/api/v1/targets"))
        groups = prometheus.get("/api/v1/rules")["groups"]
        self.assertEqual({rule["health"] for group in groups for rule in group["rules"]}, {"ok"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
