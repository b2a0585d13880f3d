#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: generate_json.py PROTOCOL FOLDER

Write the parts of the JSON Schemas in FOLDER that follow from protocol.xml: what stands below `$defs` and is named by
parts() here, in each schema that refers to it; and admin-set, whose answer is that of admin-get under another name.
Each schema stays whole in itself, so that it can be handed to any checker. The rest of the schemas is written by hand.
"""
import copy
import json
import os
import sys

sys.dont_write_bytecode = True  # the folder holds sources alone
import generate  # pylint: disable=wrong-import-position

LAYOUT_WORDS = {"share_range": "percent", "size_range": "bytes"}


def bound(word, by_client):
    """A value that somebody asked for, and what came of it. by_client: as the client's own process shows it."""
    number = "number" if word == "percent" else "integer"
    above = {"maximum": 100} if word == "percent" else {}
    asked = {"type": [number, "null"], "description": "by the client; null: not asked", "minimum": 0, **above}
    if by_client and word == "percent":
        del asked["minimum"], asked["maximum"]
        asked.update({"exclusiveMinimum": 0, **above})
    members = {f"asked_{word}": asked}
    if by_client:
        members["asked_by"] = {"type": ["string", "null"], "pattern": "^[A-Z_]+$",
                               "description": "the environment variable that asked for it; null where none did"}
    members[f"granted_{word}"] = {"type": number, "description": "in force", "minimum": 0, **above}
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def scaled(field, unit, description):
    """A field's range in a larger unit, so many of which are one of the field's."""
    low, high = field.low / unit, field.high / unit
    return {"type": "number", "description": description,
            "minimum": int(low) if low == int(low) else low, "maximum": int(high) if high == int(high) else high}


def parts(root):
    """{name below $defs: what stands there}."""
    enums = {node["name"]: node.of("value") for node in root.of("enum")}
    found = {}
    for layout in root.of("layout"):
        if layout["name"] in LAYOUT_WORDS:
            word = LAYOUT_WORDS[layout["name"]]
            found[f"{word}_bound"] = bound(word, False)
            found[f"{word}_bound_of_client"] = bound(word, True)
    found["mode"] = {"enum": [value["name"] for value in enums["mode"]],
                     "description": ". ".join(f"{value['name']}: {value.text}" for value in enums["mode"])}
    message, = [node for node in root.of("message") if node["name"] == "worker_schedule"]
    fields = {field["name"]: field for field in message.of("field")}
    found["lease_seconds"] = scaled(fields["lease"], 10**9, fields["lease"].text)
    found["precision_percent"] = scaled(fields["precision"], 100, fields["precision"].text)
    found["quantum_seconds"] = scaled(fields["quantum"], 10**9, fields["quantum"].text)
    holds = [value["name"] for value in enums["hold"]]
    found["throttled_seconds"] = {
        "type": ["object", "null"],
        "properties": {value["name"]: {"type": "number", "description": value.text, "minimum": 0} for value in enums["hold"]},
        "required": holds, "additionalProperties": False}
    return found


def referred(node):
    """The names below $defs to which a node refers."""
    if isinstance(node, list):
        return set().union(*map(referred, node))
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"][len("#/$defs/"):]} if "$ref" in node else set()
    return own.union(*map(referred, node.values()))


def fill(document, made):
    """Writes what is made below the document's $defs; keeps what is written by hand there."""
    defs = {name: part for name, part in document.pop("$defs", {}).items() if name not in made}
    used = referred([document, defs])
    defs.update({name: part for name, part in made.items() if name in used})
    if defs:
        document["$defs"] = defs


def renamed(node, old, new):
    """A copy of an answer's schema for the request of another name."""
    if isinstance(node, list):
        return [renamed(child, old, new) for child in node]
    if not isinstance(node, dict):
        return node
    return {name: ({**child, "const": new} if name == "request" and child.get("const") == old else renamed(child, old, new))
            for name, child in node.items()}


def main():
    protocol, folder = sys.argv[1:]
    with open(protocol, "rb") as file:
        root = generate.parse(file.read())
    generate.check(root)
    made, documents = parts(root), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".schema.json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                documents[name] = json.load(file)
            fill(documents[name], made)
    answer, old = renamed(copy.deepcopy(documents["admin-get.schema.json"]), "get", "set"), documents["admin-set.schema.json"]
    answer.update({key: old[key] for key in ("$id", "title", "description")})
    documents["admin-set.schema.json"] = answer
    for name, document in documents.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
