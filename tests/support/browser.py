# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A headless Chromium that is driven by its DevTools protocol through two pipes. It has a profile of its own, and no network but what
a page asks for.

Why our own: a driver for browsers is a package of another language. A message is JSON and a NUL byte."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from private_server import ENV, SECONDS

PROGRAMS = ("chromium-headless-shell", "chromium")
INSTALL = "apt-get install --no-install-recommends chromium-headless-shell"
# The descriptors on which Chromium reads commands and writes answers.
START = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'


def program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page of one width. `requests` are the addresses that it asked for, `errors` what its console and scripts complained of."""

    def __init__(self, width, height, dark=False):
        self.width = width
        self.profile = tempfile.mkdtemp(prefix="gpushare-test-", dir="/tmp")
        self.serial, self.rest, self.requests, self.errors, self.session = 0, b"", [], [], None
        theirs, self.to = os.pipe()
        self.source, answers = os.pipe()
        command = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={self.profile}", "about:blank"]
        self.log = open(os.path.join(self.profile, "log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(["bash", "-c", START, "start", str(theirs), str(answers), *command], pass_fds=(theirs, answers),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env={**ENV, "HOME": self.profile},
                                        start_new_session=True)
        os.close(theirs)
        os.close(answers)
        try:
            target = next(each for each in self.ask("Target.getTargets")["targetInfos"] if each["type"] == "page")
            self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.ask(domain + ".enable")
            self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
            self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        except BaseException:
            self.close()
            raise

    def _receive(self, end):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.source], [], [], left)[0]:
                raise AssertionError("the browser does not answer: " + self._said())
            data = os.read(self.source, 1 << 20)
            if not data:
                raise AssertionError("the browser has ended: " + self._said())
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\0")
        return json.loads(line)

    def _said(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def _note(self, event):
        of = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(of["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(of["exceptionDetails"])[:400])
        elif event["method"] == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.errors.append(f'{of["entry"]["text"]} {of["entry"].get("url", "")}')

    def ask(self, method, **params):
        self.serial += 1
        message = {"id": self.serial, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        end = time.monotonic() + SECONDS
        while (answer := self._receive(end)).get("id") != self.serial:
            if "method" in answer:
                self._note(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, address):
        self.ask("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"])[:600])
        return answer["result"].get("value")

    def until(self, script):
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + SECONDS
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"never: {script}: {self.run('document.body.innerText')[:2000]} {self.errors}")
            time.sleep(0.05)
        return value

    def screenshot(self, path, whole=True):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.source)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
