#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The JSON Schemas have a row for each resource of the protocol's layout `allowance`, in the form of its unit, wherever
they speak of a client's limits. So a resource that is added is missed nowhere."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
WORDS = {"share_range": "percent", "size_range": "bytes"}
# The schemas that show or take limits, and in how many places each has the rows of a client and those of totals.
PLACES = {"admin-clients": (1, 0), "admin-get": (1, 3), "admin-set": (1, 3), "admin-request": (2, 3),
          "gpushare-info": (1, 0), "gpushared-config": (4, 3)}
# `$comment` of an object of totals: the resources in it.
TOTALS = {"total": {"threads", "time", "memory", "host_memory"}, "total of shares": {"threads", "time"}}


def resources():
    """{name: its word for a value}, from the layout itself."""
    root = ElementTree.parse(os.path.join(ROOT, "schemas/protocol.xml")).getroot()
    layout, = [node for node in root.findall("layout") if node.get("name") == "allowance"]
    return {field.get("name"): WORDS[field.get("type")] for field in layout.findall("field") if field.get("type") in WORDS}


def resolved(document, node):
    while "$ref" in node:
        found = document
        for step in node["$ref"].split("#/")[1].split("/"):
            found = found[step]
        node = found
    return node


def objects(node):
    """Every object of a schema that has properties."""
    if isinstance(node, list):
        for child in node:
            yield from objects(child)
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            yield node
        for child in node.values():
            yield from objects(child)


class LimitRows(unittest.TestCase):
    RESOURCES = resources()

    def of_a_client(self, document, place, where):
        for name, word in self.RESOURCES.items():
            self.assertIn(name, list(place["properties"]), f"{where}: no row of {name}")
            row = resolved(document, place["properties"][name])
            for bound in ("request", "limit"):
                self.assertIn(bound, row["properties"], f"{where}: {name}")
                value = resolved(document, row["properties"][bound])
                if value.get("properties"):
                    self.assertIn(f"granted_{word}", value["properties"], f"{where}: {name}.{bound}")
                    self.assertIn(f"asked_{word}", value["properties"], f"{where}: {name}.{bound}")
        required = set(place.get("required", [])) & set(self.RESOURCES)
        self.assertIn(required, (set(), set(self.RESOURCES)), f"{where}: all are always there, or none")

    def of_totals(self, place, where):
        self.assertEqual(set(place["properties"]) & set(self.RESOURCES), TOTALS[place["$comment"]], where)

    def test_every_schema_has_every_resource(self):
        self.assertGreaterEqual(len(self.RESOURCES), 4)
        found = {}
        for path in sorted(glob.glob(os.path.join(ROOT, "schemas/*.schema.json"))):
            where = os.path.basename(path).split(".")[0]
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            clients = totals = 0
            for place in objects(document):
                named = set(place["properties"]) & set(self.RESOURCES)
                if len(named) < 2:
                    continue  # one alone is something else, as the seconds that a client was held back
                if place.get("$comment") not in TOTALS:
                    clients += 1
                    self.of_a_client(document, place, where)
                else:
                    totals += 1
                    self.of_totals(place, where)
            if clients or totals:
                found[where] = (clients, totals)
        self.assertEqual(found, PLACES)


def written_out(node, modes, where=""):
    """The places that spell what generate_json.py writes, other than below $defs."""
    if isinstance(node, list):
        for i, child in enumerate(node):
            yield from written_out(child, modes, f"{where}/{i}")
    if isinstance(node, dict):
        names = set(node.get("properties", {}))
        if any({f"asked_{word}", f"granted_{word}"} & names for word in WORDS.values()) or modes & set(node.get("enum", ())) or \
                {"lease", "duty", "priority"} <= names:
            yield where
        for name, child in node.items():
            yield from written_out(child, modes, f"{where}/{name}")


def add_limit(folder, behind, field, grown):
    """Puts the schemas into a folder, with a protocol whose allowance has a field more. behind: the field before it; grown: the
    bytes of the new one."""
    for path in glob.glob(os.path.join(ROOT, "schemas/*.schema.json")):
        shutil.copy(path, folder)
    with open(os.path.join(ROOT, "schemas/protocol.xml"), encoding="utf-8") as file:
        text = file.read()
    text, count = re.subn(rf'( *<field name="{behind}" [^\n]*\n)(?=(?:(?!</layout>).)*</layout>\s*<layout name="range_source")',
                          lambda found: found[1] + field + "\n", text, flags=re.DOTALL)
    assert count == 1, behind
    for layout in ("allowance", "grant"):
        text, count = re.subn(rf'(<layout name="{layout}" size=")(\d+)', lambda found: found[1] + str(int(found[2]) + grown), text)
        assert count == 1, layout
    with open(os.path.join(folder, "protocol.xml"), "w", encoding="utf-8") as file:
        file.write(text)


def client_limits(folder, member):
    """(name of a schema, its document, an object in it that has a client's limits), after the generator's second run, which finds
    its own rows. member: in no other object."""
    for _ in range(2):
        subprocess.run([sys.executable, os.path.join(ROOT, "schemas/generate_json.py"),
                        os.path.join(folder, "protocol.xml"), folder], check=True)
    for name in PLACES:
        with open(os.path.join(folder, f"{name}.schema.json"), encoding="utf-8") as file:
            document = json.load(file)
        for place in objects(document):
            if {"threads", "memory"} <= set(place["properties"]) and place.get("$comment") not in TOTALS:
                yield name, document, place
            else:
                assert member not in place["properties"], (name, place)


class Made(unittest.TestCase):
    def test_what_follows_from_the_protocol_is_current(self):
        paths = glob.glob(os.path.join(ROOT, "schemas/*.schema.json"))
        self.assertGreater(len(paths), 10)
        with tempfile.TemporaryDirectory() as folder:
            for path in paths:
                shutil.copy(path, folder)
            subprocess.run([sys.executable, os.path.join(ROOT, "schemas/generate_json.py"),
                            os.path.join(ROOT, "schemas/protocol.xml"), folder], check=True)
            for path in paths:
                with open(path, encoding="utf-8") as old, \
                        open(os.path.join(folder, os.path.basename(path)), encoding="utf-8") as new:
                    self.assertEqual(old.read(), new.read(), f"{path}: run make protocol-reference")

    def test_a_new_resource_gets_its_rows(self):
        """One that no word of the generator is about; how a worker enforces it stands in the protocol alone."""
        with tempfile.TemporaryDirectory() as folder:
            add_limit(folder, "host_memory", '    <field name="copying" type="size_range">bytes a second that it copies</field>', 16)
            places = list(client_limits(folder, "copying"))
            self.assertEqual(len(places), sum(clients for clients, _ in PLACES.values()))
            for name, document, place in places:
                row = resolved(document, place["properties"]["copying"])
                self.assertEqual(set(row["properties"]), {"request", "limit"}, name)
                self.assertIn("copies", row["description"], name)

    def test_a_new_scalar_gets_its_members(self):
        shown = {"idle_time_limit_seconds", "idle_time_limited_by"}
        with tempfile.TemporaryDirectory() as folder:
            add_limit(folder, "kernel_time", '    <field name="idle_time" type="u64" unit="ns">how long it idles; 0: ever</field>', 8)
            places = list(client_limits(folder, "idle_time_limit"))
            self.assertEqual(len(places), sum(clients for clients, _ in PLACES.values()))
            for name, _, place in places:
                members = {member for member in place["properties"] if member.startswith("idle")}
                of_answer = name in ("admin-clients", "admin-get", "admin-set")
                self.assertEqual(members, shown if of_answer else {"idle_time_limit"}, name)
                self.assertIn("idles", place["properties"][min(members)].get("description", "idles"), name)
                self.assertEqual(set(place.get("required", ())) & members,
                                 members if of_answer or name == "gpushare-info" else set(), name)

    def test_it_is_written_nowhere_by_hand(self):
        modes, made = {"concurrent", "strict", "fair", "turns"}, set()
        for path in sorted(glob.glob(os.path.join(ROOT, "schemas/*.schema.json"))):
            with open(path, encoding="utf-8") as file:
                places = list(written_out(json.load(file), modes))
            self.assertEqual([place for place in places if not place.startswith("/$defs/")], [], path)
            made.update(places)
        self.assertEqual(made, {"/$defs/percent_bound", "/$defs/bytes_bound", "/$defs/percent_bound_of_client",
                                "/$defs/bytes_bound_of_client", "/$defs/mode", "/$defs/throttled_seconds"})


if __name__ == "__main__":
    unittest.main()
