#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The pictures of docs/pictures: each is well-formed, says which command draws it, and shows its
scene's clients at work; and the programs that draw them."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path[:0] = [os.path.join(ROOT, "tests/support"), os.path.join(ROOT, "tests/programs/pictures")]
import private_server  # noqa: E402
import sharing  # noqa: E402
import terminal  # noqa: E402
import top  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
FOLDER = os.path.join(ROOT, "docs/pictures")
PICTURE = os.path.join(ROOT, "tests/programs/pictures/picture.py")
COLOURS = ["#0072b2", "#e69f00", "#009e73"]


def texts(svg):
    return [node.text for node in svg.iter(SVG + "text")]


def boxes(svg, colour):
    return [{key: float(node.get(key)) for key in ("x", "y", "width", "height")}
            for node in svg.iter(SVG + "rect") if node.get("fill") == colour]


class Committed(unittest.TestCase):
    def test_each_scene_has_its_picture_and_no_other_is_there(self):
        self.assertEqual(sorted(os.listdir(FOLDER)), sorted([*(f"{name}.svg" for name in sharing.SCENES), "top.svg"]))

    def test_each_is_well_formed_and_names_its_command(self):
        for name, scene in sharing.SCENES.items():
            with self.subTest(name):
                path = os.path.join(FOLDER, f"{name}.svg")
                self.assertLess(os.path.getsize(path), 100000)
                svg = ElementTree.parse(path).getroot()
                self.assertEqual(svg.tag, SVG + "svg")
                command = svg.find(SVG + "desc").text
                self.assertTrue(command.startswith("make sharing-pictures: "), command)
                self.assertIn(f"gpusharectl set gpu 0 {scene['gpu']}; gpusharectl trace", command)
                self.assertIn(command, texts(svg))
                self.assertIn(scene["title"], texts(svg))
                width, height = float(svg.get("width")), float(svg.get("height"))
                for i, client in enumerate(scene["clients"]):
                    self.assertIn(client[0], texts(svg))
                    drawn = boxes(svg, COLOURS[i])
                    self.assertGreater(len(drawn), 1 if name != "concurrent" else 0, f"{client[0]} is not seen at work")
                    for box in drawn:
                        self.assertGreaterEqual(min(box["x"], box["y"]), 0)
                        self.assertLessEqual(box["x"] + box["width"], width)
                        self.assertLessEqual(box["y"] + box["height"], height)


class Top(unittest.TestCase):
    """The screen of gpusharectl top."""

    def shows_the_clients(self, path, users):
        self.assertLess(os.path.getsize(path), 60000)
        picture = ElementTree.parse(path).getroot()
        words = [re.split(r"  +", text.lstrip("> ")) for text in texts(picture)]
        self.assertIn("make top-picture: ", picture.find(SVG + "desc").text)
        for name, user, _, device, *_ in top.CLIENTS:
            row, = (row for row in words if row[0].endswith(f" {name}"))
            self.assertEqual(row[1:3], [user if users else row[1], str(device)])
            self.assertRegex(" ".join(row), r" [1-9]\d*% ")
            self.assertEqual(row[-1].split()[-1], "attached")
        self.assertEqual(sum("[|" in text for text in texts(picture)), len(top.MODES), "a bar of each GPU")

    def test_the_committed_one_is_shown_by_the_pages(self):
        self.shows_the_clients(os.path.join(FOLDER, "top.svg"), users=True)
        for page, link in (("README.md", "docs/pictures/top.svg"), ("docs/gpusharectl.md", "pictures/top.svg")):
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                self.assertRegex(file.read(), rf"(?m)^!\[.+\]\({link}\)$")

    def test_the_program_draws_a_real_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "top.svg")
            result = subprocess.run([sys.executable, os.path.join(ROOT, "tests/programs/pictures/top.py"), path], capture_output=True,
                                    text=True, timeout=2 * private_server.SECONDS, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            self.shows_the_clients(path, users="of one user" not in result.stdout)

    def test_a_sequence_that_the_model_does_not_know_is_told(self):
        for strange in ("\x1b[2J", "\x1b[31m", "\x1b[5;1H", "\x1b[?7l"):
            screen = terminal.Screen(2, 10)
            screen.take("\x1b[H\x1b[K\x1b[1mbold\x1b[0m")
            self.assertEqual((screen.strange, screen.cell_looks[0]), ([], ["1"] * 4 + [""] * 6))
            screen.take(strange)
            self.assertTrue(screen.strange, repr(strange))


class Drawing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "out.svg")

    def tearDown(self):
        self.folder.cleanup()

    def draw(self, trace, *options, status=0):
        path = os.path.join(self.folder.name, "trace.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(trace if isinstance(trace, str) else json.dumps({"traceEvents": trace}))
        result = subprocess.run([sys.executable, PICTURE, path, self.out, "--title", "a <b> & c", "--command", "make it", *options],
                                capture_output=True, text=True, timeout=private_server.SECONDS, check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return ElementTree.parse(self.out).getroot() if status == 0 else result.stderr

    @staticmethod
    def client(process, name):
        return {"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": f"{name} (client {process - 1}, pid 1, uid 2)"}}

    @staticmethod
    def batch(process, start_ms, end_ms, sm_groups="0-3"):
        return {"ph": "X", "pid": process, "tid": 1, "name": "batch", "cat": "batch", "ts": start_ms * 1e3,
                "dur": (end_ms - start_ms) * 1e3, "args": {"commands": 1, "sm_groups": sm_groups, "multiprocessors": 32}}

    def test_bars_stand_where_the_batches_were(self):
        svg = self.draw([self.client(2, "x < y & z"), self.client(3, "other"), self.batch(2, 10, 20), self.batch(2, 60, 110),
                         self.batch(3, 5, 10)], "--from", "10", "--until", "110")
        self.assertIn("a <b> & c", texts(svg))
        self.assertIn("x < y & z", texts(svg))
        bars = [box for box in boxes(svg, COLOURS[0]) if box["y"] < 90]
        self.assertEqual([(round(box["x"]), round(box["width"])) for box in bars], [(130, 72), (130 + 360, 360)])
        self.assertIn("busy 60 %", texts(svg))
        self.assertIn("busy 0 %", texts(svg), "a batch that ends where the picture begins is not in it")

    def test_overlapping_batches_count_once(self):
        svg = self.draw([self.client(2, "a"), self.batch(2, 0, 50), {**self.batch(2, 25, 75), "tid": 2}], "--from", "0", "--until", "100")
        self.assertIn("busy 75 %", texts(svg))

    def test_sm_groups_are_rows(self):
        svg = self.draw([self.client(2, "a"), self.batch(2, 0, 50, "0, 2-3"), self.batch(2, 70, 80, "1")],
                        "--from", "0", "--until", "100", "--sm-groups", "4")
        rows = sorted((box["y"], round(box["x"]), round(box["width"])) for box in boxes(svg, COLOURS[0]) if box["y"] < 100)
        self.assertEqual([row[1:] for row in rows], [(130, 360), (130 + 504, 72), (130, 360), (130, 360)])

    def test_two_clients_on_one_group_are_explained(self):
        names = [self.client(2, "a"), self.client(3, "b")]
        options = ("--from", "0", "--until", "100", "--sm-groups", "4")
        both = [*names, self.batch(2, 0, 50, "0-1"), self.batch(3, 40, 90, "1-2")]
        self.assertIn("darker: both at once", texts(self.draw(both, *options)))
        for beside in (self.batch(3, 40, 90, "2"), self.batch(3, 50, 90, "1")):
            self.assertNotIn("darker: both at once", texts(self.draw([*names, self.batch(2, 0, 50, "0-1"), beside], *options)))

    def test_the_committed_picture_of_threads_explains_its_darker_strips(self):
        self.assertIn("darker: both at once", texts(ElementTree.parse(os.path.join(FOLDER, "threads.svg")).getroot()))

    def test_leases_and_holds(self):
        lease = {"ph": "X", "pid": 1, "tid": 1, "name": "a", "cat": "lease", "ts": 20000, "dur": 30000, "args": {"client": 1}}
        held = {"ph": "X", "pid": 2, "tid": 10001, "name": "lease", "cat": "held", "ts": 50000, "dur": 50000}
        svg = self.draw([self.client(2, "a"), lease, held], "--from", "0", "--until", "100")
        self.assertEqual([round(box["x"]) for box in boxes(svg, COLOURS[0])][0], 130 + 144)
        self.assertEqual([round(box["x"]) for box in boxes(svg, "#999999")][0], 130 + 360)

    def test_recoveries_of_clients(self):
        def recovery(process, start_ms, end_ms):
            return {"ph": "X", "pid": process, "tid": 20001, "name": "recovers", "cat": "recovery", "ts": start_ms * 1e3,
                    "dur": (end_ms - start_ms) * 1e3}
        svg = self.draw([self.client(2, "a"), recovery(1, 20, 40), recovery(2, 20, 50)], "--from", "0", "--until", "100")
        bar, legend = boxes(svg, sharing.picture.RED)
        self.assertEqual((round(bar["x"]), round(bar["width"])), (130 + 144, 216), "the client's, not the GPU's")
        self.assertGreater(legend["y"], bar["y"])
        self.assertTrue(any(text.startswith("recovers") for text in texts(svg)))

    def test_the_committed_picture_of_a_recovery_has_one_of_each_client(self):
        svg = ElementTree.parse(os.path.join(FOLDER, "recovery.svg")).getroot()
        *bars, _ = boxes(svg, sharing.picture.RED)
        self.assertEqual(len({bar["y"] for bar in bars}), len(sharing.SCENES["recovery"]["clients"]))
        for bar in bars:
            row = [box for colour in COLOURS for box in boxes(svg, colour) if bar["y"] <= box["y"] < bar["y"] + bar["height"]]
            self.assertTrue(any(box["x"] + box["width"] <= bar["x"] for box in row), "no work before")
            self.assertTrue(any(box["x"] >= bar["x"] + bar["width"] - 0.01 for box in row), "no work after")

    def test_a_file_that_is_no_trace_is_refused(self):
        self.draw("{", "--from", "0", "--until", "1", status=1)
        self.draw("{}", "--from", "0", "--until", "1", status=1)
        self.assertIn("nothing ran", self.draw([self.client(2, "a"), self.batch(2, 5, 6)], "--from", "0", "--until", "1", status=1))
        self.draw([], "--from", "1", "--until", "1", status=2)


if __name__ == "__main__":
    unittest.main()
