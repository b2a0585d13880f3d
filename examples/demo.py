#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""make demo: six processes share one GPU at the same time within their limits; a seventh follows.
Then a neighbour's kernels fault three times beside two programs that compute on, and the server is
replaced by the next one under them. At the end three programs that know only CUDA share the GPU.

Starts a private server on the GPU if one works, else on the software GPU, and says which.
Nothing is left behind: no process, no socket, no file.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from fd_store import FdStore  # noqa: E402

MIB = 1 << 20


class Failure(Exception):
    """Something keeps the demo from showing what it promises."""


class Server(FdStore):
    """The demo plays the service manager, so that a server can be replaced as systemd would."""

    def __init__(self, build, folder):
        super().__init__(folder)
        self.program, self.log, self.driver = os.path.join(build, "bin/gpushared"), os.path.join(folder, "server.log"), None

    def begin(self, driver):
        """Returns None when the server serves, else the sentence with which it refused."""
        self.driver = driver
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUSHARE_", "CUDA_"))}
        with open(self.log, "a", encoding="utf-8") as log:
            self.start([self.program, "--driver", driver], environment, log.fileno())
        if self.heard_state("READY=1"):
            return None
        if self.process.poll() is None:
            self.process.kill()
            return "it did not get ready within a minute"
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in log if line.strip()]
        return lines[-1] if lines else f"exit status {self.process.returncode}"

    def replace(self):
        """The server hands over to the next one, as in an upgrade. Returns the seconds from its end until that one serves."""
        self.process.send_signal(signal.SIGUSR2)
        status = self.process.wait(30)
        begun = time.monotonic()
        self.settle()
        if status != 0:
            raise Failure(f"the server ended with status {status} when it should hand over")
        refusal = self.begin(self.driver)
        if refusal is not None:
            raise Failure(f"the next server does not start: {refusal}")
        return time.monotonic() - begun

    def worker(self):
        return self.ask("status")["devices"][0]["worker_pid"]

    def ask(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as admin:
            admin.settimeout(10)
            admin.connect(self.admin)
            admin.sendall(json.dumps({"request": request}).encode() + b"\n")
            with admin.makefile("r", encoding="utf-8") as answers:
                answer = json.loads(answers.readline())
        if not answer.get("ok"):
            raise Failure(f"{request}: {answer.get('text')}")
        return answer

    def grants(self):
        """Returns each client's grant by name: multiprocessors and bytes of device memory."""
        pattern = re.compile(r"client \d+ '([^']*)' .* has device \d+: (\d+) multiprocessors.*?, ([\d.]+) ([KMGT]?)i?B of device")
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return {m.group(1): (int(m.group(2)), round(float(m.group(3)) * 1024 ** " KMGT".index(m.group(4) or " ")))
                    for m in map(pattern.search, log) if m}

    def bills(self):
        """Returns each client's use by name. The server writes it to its log when a client has gone."""
        pattern = re.compile(r"client \d+ '([^']*)' .* used ([0-9.]+) GPU seconds; launches: (\d+)")
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return {m.group(1): (float(m.group(2)), int(m.group(3))) for m in map(pattern.search, log) if m}

    def wait_for_bills(self):
        """Returns the bills when no client is left. A client that never used the GPU has none."""
        end = time.monotonic() + 10
        while left := [entry["name"] for entry in self.ask("clients")["clients"]]:
            if time.monotonic() > end:
                raise Failure(f"these clients do not leave: {left}")
            time.sleep(0.05)
        return self.bills()

    def stop(self):
        worker = self.worker()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(30)
        end = time.monotonic() + 10
        # It is a child of the demo if a server before this one started it.
        while os.path.exists(f"/proc/{worker}"):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(worker, os.WNOHANG)
            if time.monotonic() > end:
                raise Failure(f"worker {worker} outlived the server")
            time.sleep(0.01)
        self.settle()
        if self.stored:
            raise Failure(f"the server left {len(self.stored)} descriptors with the service manager")
        if status != 0:
            raise Failure(f"the server ended with status {status}")


class Client:
    """One example program as a client, with the limits that its environment asks for."""

    def __init__(self, title, command, expect="verified", **limits):
        self.title, self.command, self.expect, self.limits = title, command, expect, limits
        self.lines, self.rounds, self.of = [], 0, 0
        self.seen = {}  # the server's latest row about it
        self.killed = False
        self.process = self.reader = None

    def start(self, server, stdin=subprocess.DEVNULL):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUSHARE_", "CUDA_"))}
        environment.update(GPUSHARE_SOCKET=server.client, GPUSHARE_CLIENT_NAME=self.title)
        if "threads" in self.limits:
            environment["GPUSHARE_ACTIVE_THREAD_PERCENTAGE"] = str(self.limits["threads"])
        if "memory" in self.limits:
            environment["GPUSHARE_PINNED_DEVICE_MEM_LIMIT"] = f"0={self.limits['memory']}"
        if "priority" in self.limits:
            environment["GPUSHARE_CLIENT_PRIORITY"] = str(self.limits["priority"])
        self.process = subprocess.Popen(self.command, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            match = re.match(r"round (\d+) of (\d+)", line)
            if match:
                self.rounds, self.of = int(match.group(1)), int(match.group(2))
            if self.expect == "killed" and self.rounds >= 8 and not self.killed:
                self.killed = True
                self.process.kill()

    @property
    def running(self):
        return self.process.poll() is None

    def progress(self):
        if self.running:
            return f"{self.title} {self.rounds}/{self.of or '?'}"
        return f"{self.title} {'killed' if self.killed else 'done'}"

    def verdict(self):
        """Returns whether the client did as expected, and a text that says what it did."""
        self.process.wait()
        self.reader.join()
        last = self.lines[-1] if self.lines else "no word"
        if self.expect == "killed":
            return self.killed and self.process.returncode == -signal.SIGKILL, \
                f"killed after round {self.rounds}"
        if self.expect == "out_of_memory":
            refused = any("out_of_memory" in line for line in self.lines)
            return self.process.returncode != 0 and refused, "refused: out of memory" if refused else last
        return self.process.returncode == 0 and "verified" in last, last.split(": ", 1)[-1].split(", drawn to ")[0]


def watch(server, clients):
    """Asks the server for its clients' use, and keeps each client's latest row."""
    for entry in server.ask("clients")["clients"]:
        for client in clients:
            if entry.get("name") == client.title and entry.get("state") == "attached":
                client.seen = entry


def mib(value):
    return f"{value / MIB:.0f}"


def table(clients, grants, bills):
    rows = [("client", "work", "threads asked/granted", "memory MiB used/limit", "GPU seconds", "launches")]
    for client in clients:
        good, did = client.verdict()
        seen = client.seen
        asked = client.limits.get("threads")
        # The log says nothing of a client that asked for nothing.
        multiprocessors, limit = grants.get(client.title, ("no", 0))
        seconds, launches = bills.get(client.title, (0.0, 0))
        rows.append((client.title, ("" if good else "WRONG: ") + did,
                     f"{f'{asked} %' if asked else '-'} / {multiprocessors} SMs",
                     f"{mib((seen.get('memory') or {}).get('used_bytes', 0))} / {mib(limit)}",
                     f"{seconds:.3f}", str(launches)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def six(build, folder):
    example = lambda name: os.path.join(build, "examples", name)
    iris = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "iris.csv")
    return [
        Client("vector-add", [example("vector-add"), "-n", "262144", "-r", "150"], threads=25, memory="64M"),
        Client("sgemm", [example("sgemm"), "-n", "192", "-r", "20"], threads=50, memory="256M"),
        Client("kmeans", [example("kmeans"), "-k", "3", "-r", "120", iris], threads=10, memory="32M", priority=1),
        Client("mandelbrot", [example("mandelbrot"), "-s", "480x320", "-r", "20", "-o", os.path.join(folder, "set.png")],
               memory="128M"),
        Client("greedy", [example("vector-add"), "-n", "16777216"], expect="out_of_memory", memory="48M"),
        # More rounds than any GPU can finish before it is killed.
        Client("doomed", [example("sgemm"), "-n", "192", "-r", "1000000"], expect="killed", threads=30, memory="64M"),
    ]


class Stray(Client):
    """The program whose kernel faults. Its user has faulted before, so the server may let it wait."""

    def verdict(self):
        self.process.wait()
        self.reader.join()
        last = self.lines[-1] if self.lines else "no word"
        told = re.search(r"illegal_address after (\d+): .*unfinished: (.+?)\): ", last)
        if self.process.returncode or not told:
            return False, last
        return True, f"illegal_address, fault {told.group(1)}, by {told.group(2)}"

    @property
    def has_to_wait(self):
        return any("device_not_ready" in line for line in self.lines)


def fault(server, build, number):
    """Runs the faulting program until it has faulted. Returns it."""
    end = time.monotonic() + 30
    while True:
        stray = Stray(f"stray-{number}", [os.path.join(build, "examples", "stray")])
        stray.start(server)
        stray.verdict()
        if not stray.has_to_wait or time.monotonic() > end:
            return stray
        time.sleep(0.1)


def replace_under(server, clients):
    """Replaces the server while these clients compute, and waits until each has computed on. Returns a line that says so."""
    before, worker = server.process.pid, server.worker()
    seconds = server.replace()
    rounds = {client: client.rounds for client in clients}
    while any(client.rounds == rounds[client] and client.running for client in clients):
        time.sleep(0.02)
    if server.worker() != worker or not all(client.running for client in clients):
        raise Failure("the clients did not go on with the same worker when the server was replaced")
    return (f"  server {before} handed over to server {server.process.pid}, which served after {seconds * 1000:.0f} ms; "
            f"worker {worker} ran on")


def beside_faults(server, build):
    """Returns the clients that computed on beside three faults and the server's replacement, and those whose kernels
    faulted."""
    resilient = [Client(f"resilient-{i}", [os.path.join(build, "examples", "resilient"), "-s", "100000000"]) for i in (1, 2)]
    strays = []
    print("\nTwo programs compute while a neighbour's kernels fault, three times, and while the server is replaced:")
    for client in resilient:
        client.start(server)
    try:
        while any(not client.rounds for client in resilient) and any(client.running for client in resilient):
            time.sleep(0.02)
        for number in (1, 2, 3):
            strays.append(fault(server, build, number))
            if not all(client.running for client in resilient):
                raise Failure("the programs were done before the neighbour had faulted three times")
        handed_over = replace_under(server, resilient)
    finally:
        for client in resilient:
            client.process.terminate()
    verdict = lambda client: ("" if client.verdict()[0] else "WRONG: ") + client.verdict()[1]
    print("\n".join([f"  {client.title}: {verdict(client)}" for client in strays] + [handed_over] +
                    [f"  {client.title}: {verdict(client)}" for client in resilient]))
    return resilient, strays


class Unmodified(Client):
    """A program that knows only CUDA (examples/unmodified), executed by `gpushare run` with its limits as options."""

    def __init__(self, title, build, options, command, **how):
        super().__init__(title, [os.path.join(build, "bin/gpushare"), "run", *options, *command], **how)

    def begin(self, server):
        """Starts it, again while the server lets its user wait, whose programs have faulted. Returns when it pauses or has ended."""
        end = time.monotonic() + 60
        while True:
            self.start(server, subprocess.PIPE)
            while self.running and not self.pauses:
                time.sleep(0.02)
            if self.pauses:
                return
            self.reader.join()
            if not any(word in line for line in self.lines for word in ("cudaErrorMpsServerNotReady", "CUDA_ERROR_MPS_SERVER_NOT_READY")) or time.monotonic() > end:
                return
            self.lines.clear()
            time.sleep(0.1)

    @property
    def pauses(self):
        return any("half of the steps" in line for line in self.lines)

    def go_on(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.close()

    def verdict(self):
        self.process.wait()
        self.reader.join()
        last = self.lines[-1] if self.lines else "no word"
        if self.expect == "fault":
            return self.process.returncode == 1 and ("cudaErrorIllegalAddress" in last or "CUDA_ERROR_ILLEGAL_ADDRESS" in last), last
        return self.process.returncode == 0 and "verified" in last, last


def three(server, build, title, command, steps):
    """Returns three processes of a program: one faulted between two steps of the two others, which finished."""
    pausing = [*command, str(steps), "0", "pause"]
    first = Unmodified(f"{title}-1", build, ("--threads", "50%", "--memory", "512M"), pausing)
    second = Unmodified(f"{title}-2", build, ("--threads", "25%", "--memory", "256M"), pausing)
    third = Unmodified(f"{title}-3", build, ("--memory", "128M"), [*command, str(steps), str(steps // 2)], expect="fault")
    for client in (first, second, third):
        client.begin(server)
    for client in (first, second):
        client.go_on()
    for client in (third, first, second):
        good, did = client.verdict()
        print(f"  {client.title}: {'' if good else 'WRONG: '}{did.split(': ', 1)[-1]}", flush=True)
    return [first, second, third]


def unmodified(server, build):
    """Returns the programs that know only CUDA: three that nvcc built, and three in Python."""
    clients = []
    built, script = (os.path.join(build, "examples/unmodified", name) for name in ("heat", "heat.py"))
    if os.path.exists(built):
        print("\nThree programs that know only CUDA, built by nvcc and executed by gpushare run. One faults while the others pause:")
        clients += three(server, build, "heat", [built], 400)
    else:
        print("\nNo program that nvcc built is linked for this machine, so none is shown.")
    if os.path.exists(script):
        print("\nThe same in Python:")
        clients += three(server, build, "heat.py", [sys.executable, script], 40)
    return clients


def run(build, folder, seconds):
    server = Server(build, folder)
    refusal = server.begin("nvidia")
    if refusal is None:
        print("Server: on this machine's NVIDIA GPU.")
    else:
        print(f"Server: no GPU works here ({refusal}).")
        refusal = server.begin("softgpu")
        if refusal is not None:
            raise Failure(f"the server does not start on the software GPU either: {refusal}")
        print("Server: on the software GPU, which runs the same kernels on the CPU.")
    clients = six(build, folder)
    try:
        began = time.monotonic()
        print("\nSix clients at once, each within its own limits:")
        for client in clients:
            client.start(server)
        shown = 0.0
        while any(client.running for client in clients):
            watch(server, clients)
            if time.monotonic() - began > seconds:
                raise Failure("the six did not finish in time")
            if time.monotonic() - shown >= 1.0:
                shown = time.monotonic()
                print(f"  {shown - began:5.1f} s  " + "  ".join(client.progress() for client in clients), flush=True)
            time.sleep(0.02)
        print(f"  {time.monotonic() - began:5.1f} s  all done\n")
        table(clients, server.grants(), server.wait_for_bills())
        print("\nThe server still serves. A seventh client:")
        seventh = Client("seventh", [os.path.join(build, "examples", "nbody"), "-d", "60", "-s", "0.5"], threads=100)
        seventh.start(server)
        while seventh.running:
            watch(server, [seventh])
            time.sleep(0.02)
        good, did = seventh.verdict()
        clients.append(seventh)
        print(f"  {did}")
        for others in beside_faults(server, build):
            clients += others
        clients += unmodified(server, build)
        left = [entry for entry in server.ask("clients")["clients"] if entry.get("state") == "attached"]
        wrong = [client for client in clients if not client.verdict()[0]]
        for client in wrong:
            print(f"\n{client.title} did not do as it should:\n  " + "\n  ".join(client.lines[-5:]))
        if left:
            raise Failure(f"{len(left)} clients are still attached")
        return not wrong and good
    finally:
        for client in clients:
            if client.process and client.running:
                client.process.kill()
            if client.process:
                client.process.wait()
                client.reader.join()
        if server.process.poll() is None:
            server.stop()
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=110, help="how long the six may take")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="gpushare-demo-")
    try:
        good = run(os.path.abspath(args.build), folder, args.seconds)
    except Failure as failure:
        print(f"demo: {failure}", file=sys.stderr)
        good = False
    finally:
        shutil.rmtree(folder)
    print("\nEverything was verified, and nothing is left behind." if good else "\nThe demo FAILED.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
