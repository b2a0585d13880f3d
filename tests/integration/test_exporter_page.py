#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The exporter's page in a headless Chromium, at the widths of a phone and of a desktop, with one client and with 200. What
gpusharectl says is the oracle of the numbers that stand there."""
import contextlib
import json
import os
import re
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import browser  # noqa: E402
from exporter import Exporter  # noqa: E402
from private_server import SECONDS, Server  # noqa: E402
from raw_client import RawClient  # noqa: E402

# The narrowest window with a table is between the two.
PHONE, NARROW, DESKTOP = (360, 740), (1041, 800), (1440, 900)
MIB = 1 << 20
HOSTILE = ['<img src=x onerror="document.title=\'bad\'">', "</script><script>document.title='bad'</script>", "\u202egnp.exe\u202c", "a" * 31]
LIVE = "document.body?.className === 'live'"
# Each row that is shown, by the kind of its cells.
ROWS = """[...document.querySelectorAll('#rows > .row')].map((row) => ({
    client: Number(row.dataset.client), ...Object.fromEntries(["id", "name", "user", "gpu", "asked", "granted", "got", "memory", "state"]
        .map((kind) => [kind, row.querySelector('.c-' + kind).textContent]))}))"""
# The width of the page, that of the window, and what reaches beyond. A phone's window grows with a page that is too wide, so the
# browser's own width is what counts.
WIDE = """((width) => [document.documentElement.scrollWidth, innerWidth, ...[...document.querySelectorAll('body *')].filter((node) =>
    node.getClientRects().length && node.getBoundingClientRect().right > width + 0.5).map((node) => node.outerHTML.slice(0, 120))])(%d)"""
# Pixels of the plot in the first client's colour.
PAINTED = """(() => {
    const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');
    const want = getComputedStyle(document.documentElement).getPropertyValue('--c0').trim().match(/\\w\\w/g).map((two) => parseInt(two, 16));
    const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += want.every((part, j) => data[i + j] === part) && data[i + 3] === 255;
    return count;
})()"""


def number(text):
    return float(re.search(r"-?[\d.]+", text).group())


def gib(count):
    """Bytes of a whole number of MiB, as a person writes them."""
    return f"{count // MIB // 1024} GiB" if count >= 1024 * MIB and count % (1024 * MIB) == 0 else f"{count // MIB} MiB"


def span(resource, which):
    low, high = resource["request"][which], resource["limit"][which]
    if low and high is not None:
        return f"{low:g}\u2013{high:g} %"
    return f"{low:g} %+" if low else "\u2013" if high is None else f"{high:g} %"


class Page(unittest.TestCase):
    def setUp(self):
        self.held = contextlib.ExitStack()
        self.addCleanup(self.held.close)
        self.server = Server()
        self.held.callback(self.server.stop_well)

    def attached(self, name, **wishes):
        client = RawClient(self.server.client)
        self.held.callback(client.close)
        client.attach(name=name, **wishes)
        return client

    def worker(self, name, kernel_us=10000, **env):
        work = self.held.enter_context(self.server.work(name, kernel_us, SECONDS, "--in-flight", 8, **env))
        self.held.callback(work.process.kill)  # it would work on until its time is up
        work.go()
        return work

    def page(self, size, dark=False):
        if not hasattr(self, "exporter"):
            self.exporter = self.held.enter_context(Exporter(self.server.admin))
        page = self.held.enter_context(browser.Browser(*size, dark=dark))
        page.open(f"http://127.0.0.1:{self.exporter.port}/")
        page.until(LIVE)
        return page

    def told(self, what):
        done = self.server.ctl("--json", what)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def percent(counter, old, new):
        return 100 * (new[counter] - old[counter]) / (new["connected_seconds"] - old["connected_seconds"])

    def check_width(self, page):
        self.assertEqual(page.run(WIDE % page.width), [page.width, page.width])
        # The table hides what sticks out of it.
        self.assertEqual(page.run("[clients, ...document.querySelectorAll('#clients .row:not(.head)')].filter((node) => node.scrollWidth > node.clientWidth).length"), 0)

    def check_page(self, page):
        """What holds of each page at each width: nothing sticks out, nothing was loaded from elsewhere, nothing complained."""
        self.check_width(page)
        self.assertEqual(set(page.requests), {f"http://127.0.0.1:{self.exporter.port}/{name}" for name in ("", "status.json")})
        self.assertEqual(page.errors, [])
        self.assertEqual(page.run("document.title"), "gpushare")

    def check_rows(self, page, rows):
        """Rows of the page against those of gpusharectl, but for what a client got."""
        known = {row["client"]: row for row in self.told("clients")["clients"]}
        user = self.server.ctl("clients", "-o", "client,user").stdout.splitlines()
        users = {int(line.split()[0]): line.split()[1] for line in user[1:]}
        for row in rows:
            said = known[row["client"]]
            self.assertEqual((row["id"], row["user"], row["gpu"], row["state"]),
                             (str(said["client"]), users[said["client"]], str(said["device"]), said["state"]))
            self.assertEqual(row["memory"], f"{gib(said['memory']['used_bytes']) if said['memory']['used_bytes'] else '0 B'} of "
                             f"{gib(said['memory']['limit']['granted_bytes'])}")
            self.assertEqual((row["asked"], row["granted"]), (span(said["threads"], "asked_percent"), span(said["threads"], "granted_percent")))
            if said["name"].isascii():
                self.assertEqual(row["name"], said["name"])
        self.assertEqual(page.run("document.getElementById('count').textContent"), str(len(known)))

    def test_one_client_and_its_numbers(self):
        client = self.attached("trainer", threads_limit=5000, memory_limit=256 * MIB)
        client.ask("memory_alloc", count=96 * MIB)
        for size in (PHONE, NARROW, DESKTOP):
            page = self.page(size)
            page.until("document.getElementById('rows').children.length === 1")
            rows = page.run(ROWS)
            self.check_rows(page, rows)
            self.assertEqual((rows[0]["name"], rows[0]["memory"]), ("trainer", "96 MiB of 256 MiB"))
            gpu, status = page.run("document.querySelector('.gpu').innerText"), self.told("status")
            for text in (f"GPU 0: {status['devices'][0]['name']}", "ready", "mode concurrent", "1 client ",
                         f"{status['devices'][0]['multiprocessors']} multiprocessors",
                         f"96 MiB of {gib(status['devices'][0]['memory_bytes'])}"):
                self.assertIn(text, gpu.replace("1 client\n", "1 client "))
            self.assertIn(status["server_version"], page.run("document.getElementById('server').textContent"))
            self.check_page(page)

    def test_what_clients_got_and_the_plot_agree_with_the_counters(self):
        self.assertEqual(self.server.ctl("set", "gpu", "0", "mode=fair", "lease=100ms", "precision=10%").returncode, 0)
        self.worker("large", GPUSHARE_TIME_REQUEST="75%")
        self.worker("small", GPUSHARE_TIME_REQUEST="25%")
        pages, opened = [], []
        for size, dark in ((PHONE, False), (DESKTOP, True)):
            pages.append(self.page(size, dark))
            opened.append(self.told("clients")["clients"])
        plot = "document.querySelector('canvas').getAttribute('aria-label')"
        pages[0].until(f"Number({plot}.match(/last (\\d+) s/)[1]) >= 4")
        before = self.told("clients")["clients"]
        first = pages[0].run("state.document.status.uptime_seconds")
        for page in pages:
            page.until(f"state.document.status.uptime_seconds > {first} + 6")
        shown = [({row["name"]: number(row["got"]) for row in page.run(ROWS)}, page.run(plot)) for page in pages]
        after = self.told("clients")["clients"]
        # The page's seconds and the oracle's begin and end up to a second apart.
        for (got, said), begun in zip(shown, opened):
            for long_ago, old, new in zip(begun, before, after):
                self.assertLess(abs(got[new["name"]] - self.percent("gpu_time_seconds", old, new)), 20, (got, old, new))
                of_plot = int(re.search(rf"{new['name']} #{new['client']} (\d+) %", said).group(1))
                self.assertLess(abs(of_plot - self.percent("charged_seconds", long_ago, new)), 15, (said, long_ago, new))
        self.assertGreater(shown[0][0]["large"], shown[0][0]["small"] + 15)
        for page in pages:
            self.assertRegex(page.run(plot), r"^GPU 0, leases of the last \d+ s: ")
            self.assertGreater(page.run(PAINTED), 500)
            self.check_page(page)

    def test_two_hundred_clients(self):
        clients = [self.attached(f"client {i:03}") for i in range(199 - len(HOSTILE))]
        for name in HOSTILE:
            self.attached(name)
        clients[77].ask("memory_alloc", count=64 * MIB)
        worker = self.worker("worker")
        for size in (PHONE, DESKTOP):
            page = self.page(size)
            page.until("document.getElementById('count').textContent === '200'")
            self.assertEqual(page.run("document.getElementById('rows').children.length"), 25)
            self.check_page(page)
            page.until("document.querySelector('#rows .c-name').textContent === 'worker'")  # share got comes first
            page.run("sort.value = 'memory'; sort.dispatchEvent(new Event('input'))")
            self.assertEqual(page.run(ROWS)[0]["name"], "client 077")
            page.run("sort.value = 'name'; sort.dispatchEvent(new Event('input')); more.click()")
            rows = page.run(ROWS)
            self.assertEqual(len({row["client"] for row in rows}), 200)
            self.check_rows(page, rows)
            names = [row["name"] for row in rows]
            self.assertEqual([name for name in names if name.startswith("client ")], [f"client {i:03}" for i in range(len(clients))])
            # Hostile names are text. The server replaces what would turn the text round, and the page would, too.
            self.assertLessEqual({*HOSTILE[:2], HOSTILE[3]}, set(names))
            self.assertEqual([name for name in names if "gnp.exe" in name], ["???gnp.exe???"])
            self.assertEqual(page.run("clean('\u202egnp\\u0007.exe\u2069')"), "\ufffdgnp\ufffd.exe\ufffd")
            self.assertEqual(page.run("document.querySelectorAll('img, #rows script, #rows b').length"), 0)
            self.check_page(page)
            page.run("filter.value = 'CLIENT 07'; filter.dispatchEvent(new Event('input'))")
            self.assertEqual([row["name"] for row in page.run(ROWS)], [f"client 07{i}" for i in range(10)])
            page.run("reverse.click()")
            self.assertEqual([row["name"] for row in page.run(ROWS)], [f"client 07{i}" for i in range(9, -1, -1)])
            page.run("filter.value = 'no such thing'; filter.dispatchEvent(new Event('input'))")
            self.assertEqual((page.run(ROWS), page.run("document.getElementById('none').hidden")), ([], False))
            self.check_page(page)
        self.assertIsNone(worker.process.poll())

    def test_a_lost_server_is_shown_and_found_again(self):
        self.attached("trainer")
        page = self.page(PHONE)
        self.assertTrue(page.run("document.getElementById('lost').hidden"))
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            page.until("document.body.className === 'lost'")
            text = page.until("!document.getElementById('lost').hidden && document.getElementById('lost').textContent")
            self.assertEqual(page.run("document.getElementById('age').textContent"), "no answer")
            page.until("/numbers below are \\d+ s old/.test(document.getElementById('lost').textContent)")
            self.assertLess(page.run("Number(getComputedStyle(document.getElementById('numbers')).opacity)"), 0.6, text)
            self.check_width(page)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        page.until(LIVE)
        self.assertTrue(page.run("document.getElementById('lost').hidden"))
        self.server.process.terminate()
        page.until("document.body.className === 'lost' && document.getElementById('lost').textContent.includes('admin.sock')")
        self.assertEqual(page.run("document.title"), "gpushare")

    def test_a_page_that_nobody_sees_asks_nothing(self):
        page = self.page(DESKTOP)
        page.run("Object.defineProperty(document, 'hidden', {value: true})")
        page.run("new Promise((done) => { const wait = () => asking ? setTimeout(wait, 20) : done(); wait(); })")
        before = len(page.requests)
        end = time.monotonic() + 3
        while time.monotonic() < end:  # three periods of its clock, in which it would have asked three times
            page.run("new Promise((done) => setTimeout(done, 250))")
        self.assertEqual(len(page.requests), before)


if __name__ == "__main__":
    if not browser.program():
        print(f"no Chromium is installed: {browser.INSTALL}")
        sys.exit(77)
    unittest.main(verbosity=2)
