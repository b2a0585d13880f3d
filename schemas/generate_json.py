#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: generate_json.py PROTOCOL FOLDER

Write the parts of the JSON Schemas in FOLDER that follow from protocol.xml: what stands below `$defs` and is named by
parts() here, in each schema that refers to it; the rows of the resources and the members of the scalars, wherever an object
has two of the resources; and admin-set, whose answer is that of admin-get under another name. Each schema stays whole in
itself, so that it can be handed to any checker. The rest of the schemas is written by hand, also what a row has beside its
request and its limit, and a scalar's description where there is one.
"""
import copy
import json
import os
import sys

sys.dont_write_bytecode = True  # the folder holds sources alone
import generate  # pylint: disable=wrong-import-position

# `$comment` of an object whose rows are totals: of all resources, or of those that a worker enforces.
TOTALS = ("total", "total of shares")
SHARES = ("threads", "time")
LAYOUT_WORDS = {"share_range": "percent", "size_range": "bytes"}
# The resources of which the supervisor has quotas, with totals: whether each device has its own, and how an amount is
# written. A worker enforces the others.
QUOTAS = {"memory": (True, "amount"), "host_memory": (False, "size")}
# How each kind of schema speaks of a resource, its request and its limit; None: of those not named, whose own words are
# the protocol's.
GUARANTEED = "guaranteed: nobody else can have it; 0: nothing is"
SHOWN = {
    "threads": ("its share of the multiprocessors", "its own while it has work, lent to others otherwise; 0: none",
                "what it never exceeds, before rounding down to partitions"),
    "time": ("its share of the device's time; binds in the modes strict and fair", "guaranteed; 0: none", "what it never exceeds"),
    "memory": ("device memory", GUARANTEED, "what it never exceeds"),
    "host_memory": ("pinned host memory", GUARANTEED, "what it never exceeds"),
    None: ("", "guaranteed; 0: none", "what it never exceeds")}
OWN = {
    "threads": ("Multiprocessors.", "Its own while it has work; 0: none.", "What is never exceeded, before rounding to partitions."),
    "time": ("The device's time.", "Guaranteed where enforced; 0: none.", "What is never exceeded where enforced."),
    "memory": ("Device memory.", f"What is {GUARANTEED}.", "What is never exceeded."),
    "host_memory": ("Pinned host memory.", f"What is {GUARANTEED}.", "What is never exceeded."),
    None: ("", "What is guaranteed; 0: nothing is.", "What is never exceeded.")}
ASKED = {
    "threads": ('shares of the multiprocessors, "25%" or "0.25"', 'its own while it has work; "0" for none', "what is never exceeded"),
    "time": ('shares of the device\'s time, "25%" or "0.25"', 'guaranteed in the modes strict and fair; "0" for none',
             "what is never exceeded in them"),
    "memory": ('device memory, "4G" or a share of the device\'s', 'guaranteed; "0" for none', "what is never exceeded"),
    "host_memory": ('pinned host memory, "512M"', 'guaranteed; "0" for none', "what is never exceeded"),
    None: ("", 'guaranteed; "0" for none', "what is never exceeded")}
CONFIGURED = {"threads": "share of the multiprocessors", "time": "share of the device's time, in modes strict and fair",
              "memory": "of the device", "host_memory": "pinned host memory"}


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


def closed(properties, description, **more):
    return {"type": "object", "description": description, "properties": properties, **more, "additionalProperties": False}


def row_shown(resource, old, words, suffix):
    """A resource of a client, as an answer shows it. old: the row as it is."""
    name, word, text = resource
    of_all, of_request, of_limit = words.get(name, words[None])
    beside = {key: value for key, value in old.get("properties", {}).items() if key not in ("request", "limit", "used_bytes")}
    members = {"request": {"$ref": f"#/$defs/{word}_bound{suffix}", "description": of_request},
               "limit": {"$ref": f"#/$defs/{word}_bound{suffix}", "description": of_limit}, **beside}
    if name in QUOTAS and not suffix:
        members["used_bytes"] = {"type": "integer", "description": "charged; above the limit where that was lowered", "minimum": 0}
    return closed(members, of_all or text, required=list(members))


def row_asked(resource):
    name, _, text = resource
    of_all, of_request, of_limit = ASKED.get(name, ASKED[None])
    return closed({"request": {"type": "string", "description": of_request},
                   "limit": {"type": "string", "description": of_limit}}, of_all or text, minProperties=1)


def row_configured(resource):
    name, word, text = resource
    form = QUOTAS[name][1] if name in QUOTAS else "share" if word == "percent" else "size"
    return closed({"request": {"$ref": f"#/$defs/{form}_request"}, "limit": {"$ref": f"#/$defs/{form}"}},
                  CONFIGURED.get(name, text))


SAVED = {"type": "boolean", "description": "some of it outlives the server: set --save"}


def share_shown(name):
    percent = {"type": ["number", "null"], "minimum": 0, "maximum": 100}
    members = {"gpu": {"type": "integer", "description": "index of the device", "minimum": 0, "maximum": 4294967295},
               "request_percent": {**percent, "description": "guaranteed to them together; null: nothing is said"},
               "limit_percent": {**percent, "description": "most that they may have; null: no limit"},
               "limited_by": {"enum": ["configuration", "administrator", None],
                              "description": "who said so: the configuration, or a set since; null: nobody"},
               "saved": SAVED,
               "clients": {"type": "integer", "description": "that are scheduled in this account", "minimum": 0},
               "clients_request_percent": {"type": "number", "description": "the sum of these clients' own requests", "minimum": 0}}
    if name == "time":
        members["one_client_at_a_time_seconds"] = {
            "type": "number", "minimum": 0,
            "description": "for which the device served one client at a time, since the server's start; promises of time had no effect then"}
    return {"type": "array", "description": f"{SHOWN[name][0]}, of each device",
            "items": closed(members, "one device", required=list(members))}


def total_shown(name):
    if name not in QUOTAS:
        return share_shown(name)
    members = {"limit_bytes": {"type": ["integer", "null"], "description": "most that they may have; null: no limit", "minimum": 0},
               "used_bytes": {"type": "integer", "description": "in use by them, or guaranteed to them", "minimum": 0},
               "limited_by": {"enum": ["configuration", "administrator", None],
                              "description": "who said so: the configuration, or a set since; null: no limit"},
               "saved": SAVED}
    if not QUOTAS[name][0]:
        return closed(members, SHOWN[name][0], required=list(members))
    members = {"gpu": {"type": "integer", "description": "index of the device", "minimum": 0, "maximum": 4294967295}, **members}
    return {"type": "array", "description": "of each device", "items": closed(members, "one device", required=list(members))}


def total_asked(name):
    if name not in QUOTAS:
        said = "\"25%\" or \"0.25\"; \"configured\": as the configuration says"
        return closed({"request": {"type": "string", "description": f"guaranteed to them together: {said}"},
                       "limit": {"type": "string", "description": f"what they never exceed together: {said}"}},
                      ASKED[name][0], minProperties=1)
    text = "of each device: \"4G\" or a share of it" if QUOTAS[name][0] else ASKED[name][0]
    return closed({"limit": {"type": "string",
                             "description": "what new allocations may not exceed; \"configured\": as the configuration says"}},
                  text, required=["limit"])


def total_configured(name):
    if name not in QUOTAS:
        return {"$ref": f"#/$defs/{name}"}
    text = "of each GPU" if QUOTAS[name][0] else CONFIGURED[name]
    return {"type": "object", "description": text, "properties": {"limit": {"$ref": f"#/$defs/{QUOTAS[name][1]}"}},
            "additionalProperties": False}


def nullable(row):
    return {**row, "type": ["object", "null"]}


# ---- scalars: (name of the protocol's field, the most that it can be or None, whether it is a time, the protocol's words)

LIMITERS = ["client", "server", "configuration", "administrator", None]


def scalar_number(scalar, null):
    _, most, _, text = scalar
    above = {} if most is None else {"maximum": most}
    return {"type": ["integer", "null"] if null else "integer", "description": text, "minimum": 0, **above}


def scalar_shown(scalar, null):
    """The members of an object that shows a client. null: also one that is not attached."""
    name, _, time, text = scalar
    if not time:
        return {name: scalar_number(scalar, null)}
    words = f"{text.split(';')[0]}; null: any time"
    return {f"{name}_limit_seconds": {"type": ["number", "null"], "description": words, "minimum": 0},
            f"{name}_limited_by": {"enum": LIMITERS, "description": f"who set the {name}_limit; null: there is none"}}


def scalar_said(scalar):
    """The member of an object that somebody writes."""
    name, _, time, text = scalar
    return {f"{name}_limit": {"type": "string", "description": text}} if time else {name: scalar_number(scalar, False)}


def scalar_asked(scalar):
    """The same where the configuration's value can be asked for."""
    (name, member), = scalar_said(scalar).items()
    return {name: {**member, "type": [member["type"], "string"], "pattern": "^configured$"} if member["type"] == "integer" else member}


def scalar_of_client(scalar):
    name, _, time, text = scalar
    suffix, number = ("_seconds", "number") if time else ("", "integer")
    members = {f"asked{suffix}": {"type": [number, "null"], "description": "null: not asked", "minimum": 0},
               "asked_by": {"type": ["string", "null"], "pattern": "^[A-Z_]+$",
                            "description": "the environment variable that asked for it; null where none did"},
               f"granted{suffix}": {"type": [number, "null"] if time else number,
                                    "description": "what the server grants" + ("; null: any time" if time else ""), "minimum": 0}}
    return {f"{name}_limit" if time else name: closed(members, text, required=list(members))}


def described(made, old):
    """made, with the words that a schema has already."""
    words = {"description": old["description"]} if "description" in old else {}
    inner = {"properties": {name: described(part, old.get("properties", {}).get(name, {}))
                            for name, part in made["properties"].items()}} if "properties" in made else {}
    return {**made, **words, **inner}


# {schema: (the row of a client's resource, given the resource and the row as it is; the row of a total, given its name; the
# members of a scalar)}
ROWS = {
    "admin-clients": (lambda resource, old: nullable(row_shown(resource, old, SHOWN, "")), None,
                      lambda scalar: scalar_shown(scalar, True)),
    "admin-get": (lambda resource, old: row_shown(resource, old, SHOWN, ""), total_shown, lambda scalar: scalar_shown(scalar, False)),
    "admin-request": (lambda resource, old: row_asked(resource), total_asked, scalar_asked),
    "gpushare-info": (lambda resource, old: row_shown(resource, old, OWN, "_of_client"), None, scalar_of_client),
    "gpushared-config": (lambda resource, old: {"$ref": f"#/$defs/{resource[0]}"}, total_configured, scalar_said),
}


def resources(root):
    """[(name, word for its values, the protocol's words for it)]"""
    layout, = [node for node in root.of("layout") if node["name"] == "allowance"]
    return [(field["name"], LAYOUT_WORDS[field["type"]], field.text) for field in layout.of("field") if field["type"] in LAYOUT_WORDS]


def scalars(root):
    layout, = [node for node in root.of("layout") if node["name"] == "allowance"]
    return [(field["name"], int(field["max"]) if "max" in field.attributes else None, field.attributes.get("unit") == "ns", field.text)
            for field in layout.of("field") if field["type"] not in LAYOUT_WORDS and "reserved" not in field.attributes]


def merged(old, rows):
    """The members of an object, or their names, with these rows: in their places, new ones behind the last."""
    last = max(i for i, name in enumerate(old) if name in rows)
    new = [name for name in rows if name not in old]
    return list(old)[:last + 1] + new + list(old)[last + 1:]


def fill_rows(node, found, single, rows):
    """Writes the rows into each object that has those of at least two resources. One alone is something else, as the seconds
    that a client was held back. found: the resources; single: the scalars."""
    if isinstance(node, list):
        for child in node:
            fill_rows(child, found, single, rows)
    if not isinstance(node, dict):
        return
    properties = node.get("properties", {})
    named = [resource for resource in found if resource[0] in properties]
    if len(named) >= 2:
        kind = node.get("$comment")
        if kind not in TOTALS:
            made = {resource[0]: rows[0](resource, properties.get(resource[0], {})) for resource in found}
            for scalar in single:
                made.update({name: described(part, properties.get(name, {})) for name, part in rows[2](scalar).items()})
        else:
            made = {name: rows[1](name) for name, _, _ in found if name in SHARES or (kind == "total" and name in QUOTAS)}
        node["properties"] = {name: made.get(name) or properties[name] for name in merged(properties, made)}
        if set(made) & set(node.get("required", ())):
            node["required"] = merged(node["required"], made)
    for child in node.values():
        fill_rows(child, found, single, rows)


def parts(root):
    """{name below $defs: what stands there}."""
    enums = {node["name"]: node.of("value") for node in root.of("enum")}
    found = {}
    for layout in root.of("layout"):
        if layout["name"] in LAYOUT_WORDS:
            word = LAYOUT_WORDS[layout["name"]]
            found[f"{word}_bound"] = bound(word, False)
            found[f"{word}_bound_of_client"] = bound(word, True)
    found.update({resource[0]: row_configured(resource) for resource in resources(root)})
    found["mode"] = {"enum": [value["name"] for value in enums["mode"]],
                     "description": ". ".join(f"{value['name']}: {value.text}" for value in enums["mode"])}
    message, = [node for node in root.of("message") if node["name"] == "worker_schedule"]
    fields = {field["name"]: field for field in message.of("field")}
    found["lease_seconds"] = scaled(fields["lease"], 10**9, fields["lease"].text)
    found["precision_percent"] = scaled(fields["precision"], 100, fields["precision"].text)
    found["quantum_seconds"] = scaled(fields["quantum"], 10**9, fields["quantum"].text)
    found["window_limit_seconds"] = scaled(fields["window_limit"], 10**9, fields["window_limit"].text)
    found["local_memory_bytes"] = scaled(fields["local_memory"], 1, fields["local_memory"].text)
    found["departed_time_limit_seconds"] = scaled(fields["departed_limit"], 10**9, fields["departed_limit"].text)
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
    made, found, single, documents = parts(root), resources(root), scalars(root), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".schema.json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                documents[name] = json.load(file)
            rows = ROWS.get(name.split(".", 1)[0])
            if rows:
                fill_rows(documents[name], found, single, rows)
            fill(documents[name], made)
    answer, old = renamed(copy.deepcopy(documents["admin-get.schema.json"]), "get", "set"), documents["admin-set.schema.json"]
    answer.update({key: old[key] for key in ("$id", "title", "description")})
    documents["admin-set.schema.json"] = answer
    for name, document in documents.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
