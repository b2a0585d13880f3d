#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Make C declarations, bounds-checking decoders and the reference from protocol.xml.

A malformed schema ends with exit status 1 and one line: FILE:LINE: what is wrong.
Only Python's standard library is used. The idea of one XML source with a small
scanner is Wayland's.

Why our own: Protocol Buffers, FlatBuffers and Cap'n Proto describe bytes that are sent. Half of this
schema describes memory that two processes and a device write in place, with every offset asserted.
"""
import argparse
import re
import sys
import xml.parsers.expat

SIZES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "char": 1}
C_TYPES = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "i32": "int32_t", "u64": "uint64_t", "char": "char"}
LIMITS = {"u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1),
          "i32": (-2**31, 2**31 - 1)}
CHILDREN = {
    None: {"protocol"},
    "protocol": {"constant", "error", "enum", "layout", "command", "message"},
    "enum": {"value"},
    "layout": {"field"}, "command": {"field"}, "message": {"field"},
    "constant": set(), "error": set(), "value": set(), "field": set(),
}
ATTRIBUTES = {
    "protocol": ({"name", "major", "minor"}, set()),
    "constant": ({"name", "value"}, set()),
    "error": ({"name", "number"}, set()),
    "enum": ({"name"}, set()),
    "value": ({"name", "number"}, set()),
    "layout": ({"name", "size"}, set()),
    "command": ({"name", "number", "since"}, {"reserved"}),
    "message": ({"name", "number", "since", "from", "to"}, {"reply", "fds", "tail", "errors", "states"}),
    "field": ({"name", "type"}, {"count", "min", "max", "unit", "reserved", "enum", "unset", "whole"}),
}
STATES = "connection_state"  # the enumeration that the attribute states is of
PEERS = {"client", "supervisor", "worker", "any"}
KEYWORDS = set("""alignas alignof asm auto bool break case catch char class const constexpr continue default delete do
double else enum explicit export extern false float for friend goto if inline int long mutable namespace new nullptr
operator private protected public register restrict return short signed sizeof static struct switch template this throw
true try typedef typeid typename typeof union unsigned using virtual void volatile while""".split())


class SchemaError(Exception):
    def __init__(self, line, text):
        super().__init__(text)
        self.line = line


class Node:
    def __init__(self, kind, attributes, line):
        self.kind, self.attributes, self.line = kind, attributes, line
        self.children, self.text = [], ""

    def __getitem__(self, key):
        return self.attributes[key]

    def get(self, key, default=None):
        return self.attributes.get(key, default)

    def number(self, key, low, high, default=None):
        value = self.get(key)
        if value is None:
            return default
        try:
            result = int(value, 0)
        except ValueError:
            raise SchemaError(self.line, f"{key}=\"{value}\" is not a number") from None
        if not low <= result <= high:
            raise SchemaError(self.line, f"{key}=\"{value}\" is outside {low}..{high}")
        return result

    def of(self, kind):
        return [child for child in self.children if child.kind == kind]


def parse(text):
    parser = xml.parsers.expat.ParserCreate()
    root, stack = [], []

    def start(kind, attributes):
        line = parser.CurrentLineNumber
        parent = stack[-1].kind if stack else None
        if kind not in CHILDREN[parent]:
            raise SchemaError(line, f"<{kind}> has no place in " + (f"<{parent}>" if parent else "the document"))
        required, optional = ATTRIBUTES[kind]
        for key in sorted(required - attributes.keys()):
            raise SchemaError(line, f"<{kind}> lacks {key}=\"...\"")
        for key in sorted(attributes.keys() - required - optional):
            raise SchemaError(line, f"<{kind}> has an unknown attribute {key}")
        node = Node(kind, attributes, line)
        if "name" in attributes and not re.fullmatch(r"[a-z][a-z0-9_]*", attributes["name"]):
            raise SchemaError(line, f"name=\"{attributes['name']}\" is not lower_case_with_underscores")
        if attributes.get("name") in KEYWORDS:
            raise SchemaError(line, f"name=\"{attributes['name']}\" is a keyword of C or C++")
        for key in ("reserved", "unset", "whole"):
            if attributes.get(key, "1") != "1":
                raise SchemaError(line, f"{key}=\"{attributes[key]}\" is not 1")
        if stack:
            stack[-1].children.append(node)
        else:
            root.append(node)
        stack.append(node)

    def end(_kind):
        node = stack.pop()
        paragraphs = (" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", node.text))
        # Only the protocol's own description is a page; the others become comments and cells of tables.
        node.text = ("\n\n" if node.kind == "protocol" else " ").join(part for part in paragraphs if part)
        if node.kind != "protocol" and not node.text and not (node.kind == "field" and node.get("reserved")):
            raise SchemaError(node.line, f"<{node.kind}> has no description")
        # Descriptions become comments, those of errors string literals too.
        if re.search(r"\*/|/\*", node.text) or (node.kind == "error" and re.search(r'["\\]', node.text)):
            raise SchemaError(node.line, f"the description of <{node.kind}> would not be C")

    def characters(data):
        if stack:
            stack[-1].text += data

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    try:
        parser.Parse(text, True)
    except xml.parsers.expat.ExpatError as error:
        raise SchemaError(error.lineno, f"not well-formed XML ({xml.parsers.expat.ErrorString(error.code)})") from None
    return root[0]


def check_nested(field):
    """A field of a layout's type: what only numbers have does not fit it."""
    for key in ("min", "max", "unit", "reserved", "enum", "unset"):
        if key in field.attributes:
            raise SchemaError(field.line, f"{field['name']}: {key} has no meaning for a layout")


def check_number(field, enums):
    """A field of numbers: its range, or the enumeration that it is of. Returns both ends."""
    kind, name = field["type"], field["name"]
    low, high = LIMITS[kind]
    if "whole" in field.attributes:
        raise SchemaError(field.line, f"{name}: whole is for layouts")
    if "unset" in field.attributes and kind != "u64":
        raise SchemaError(field.line, f"{name}: only a u64 can be unset")
    if "enum" in field.attributes:
        if field["enum"] not in enums:
            raise SchemaError(field.line, f"{name}: enum=\"{field['enum']}\" is no enumeration")
        if kind not in ("u16", "u32") or "min" in field.attributes or "max" in field.attributes:
            raise SchemaError(field.line, f"{name}: a field of an enumeration is u16 or u32, without min and max")
    low, high = field.number("min", low, high, low), field.number("max", low, high, high)
    if low > high:
        raise SchemaError(field.line, f"{name}: min is above max")
    return low, high


def lay_out(node, layouts, enums):
    """Give every field its offset; refuse holes, so that no byte is unnamed. Sets the size and the alignment.

    layouts: those that stand before, by name, which may be types of fields."""
    offset, widest, seen = 0, 1, set()
    for field in node.of("field"):
        kind = field["type"]
        nested = field.layout = layouts.get(kind)
        if kind not in SIZES and not nested:
            known = ", ".join(sorted(SIZES))
            raise SchemaError(field.line, f"unknown type \"{kind}\" (known: {known}, and the layouts above)")
        if field["name"] in seen:
            raise SchemaError(field.line, f"{node['name']} has two fields named {field['name']}")
        seen.add(field["name"])
        size = nested.bytes if nested else SIZES[kind]
        aligned = nested.aligned if nested else size
        count = field.number("count", 1, 65536, 1)
        if kind == "char" and "count" not in field.attributes:
            raise SchemaError(field.line, f"{field['name']}: type char needs count")
        if offset % aligned:
            raise SchemaError(field.line, f"{field['name']} at offset {offset} is not aligned to {aligned}: "
                              "put a reserved field before it")
        if nested:
            check_nested(field)
        elif kind != "char":
            field.low, field.high = check_number(field, enums)
        elif field.attributes.keys() & {"min", "max", "enum", "unset", "whole"}:
            raise SchemaError(field.line, f"{field['name']}: a text has no min or max")
        field.offset, field.count, field.size = offset, count, size
        offset += size * count
        widest = max(widest, aligned)
    if offset % widest:
        raise SchemaError(node.line, f"{node['name']} is {offset} bytes, not a multiple of {widest}: add a reserved field")
    node.bytes, node.aligned = offset, widest


def check_enum(node):
    values, numbers = set(), {}
    for value in node.of("value"):
        if value["name"] in values:
            raise SchemaError(value.line, f"{node['name']} has two values named {value['name']}")
        values.add(value["name"])
        other = numbers.setdefault(value.number("number", 0, 65535), value)
        if other is not value:
            raise SchemaError(value.line, f"{value['name']} has number {value['number']}, as {other['name']} "
                              f"on line {other.line} has")
    if not values:
        raise SchemaError(node.line, f"enum {node['name']} has no value")


def check_states(root):
    """The states of a connection in which a client may send a message: of each request of a client, once the schema
    has the enumeration of states."""
    states = {value["name"]: int(value["number"], 0) for node in root.of("enum") if node["name"] == STATES
              for value in node.of("value")}
    for number in states.values():
        if number > 31:
            raise SchemaError(root.line, f"a value of {STATES} is above 31, and is no bit of a word")
    for node in root.of("message"):
        request = node.get("reply") and node["from"] in ("client", "any") and node["to"] in ("supervisor", "any")
        if "states" in node.attributes and not request:
            raise SchemaError(node.line, f"{node['name']}: states are for the requests of a client")
        if states and request and not node.get("states", "").split():
            raise SchemaError(node.line, f"{node['name']} is a request of a client and lacks states=\"...\"")
        node.states = 0
        for name in node.get("states", "").split():
            if name not in states:
                raise SchemaError(node.line, f"{node['name']}: states names \"{name}\", which is no value of {STATES}")
            node.states |= 1 << states[name]


def check(root):
    numbers, layouts = {}, {}
    enums = {node["name"] for node in root.of("enum")}
    for node in root.children:
        if node.kind == "enum":
            check_enum(node)
        if node.kind in ("layout", "command", "message"):
            lay_out(node, layouts, enums)
        if node.kind == "layout":
            layouts[node["name"]] = node
        if node.kind == "layout" and node.number("size", 1, 1 << 20) != node.bytes:
            raise SchemaError(node.line, f"{node['name']} says size {node['size']}, its fields take {node.bytes}")
        if node.kind == "command" and node.get("reserved") and node.of("field"):
            raise SchemaError(node.line, f"command {node['name']} is reserved, and has fields")
        if node.kind == "command" and not node.get("reserved") and node.bytes != 64:
            raise SchemaError(node.line, f"command {node['name']} takes {node.bytes} bytes, a descriptor has 64")
        if node.kind == "message":
            for side in ("from", "to"):
                if node[side] not in PEERS:
                    raise SchemaError(node.line, f"{side}=\"{node[side]}\" is none of {', '.join(sorted(PEERS))}")
            node.tail = node.number("tail", 0, 65536, 0)
            node.fds = node.number("fds", 0, 8, 0)
        if node.kind == "constant":
            node.number("value", 0, 2**64 - 1)
        key = "number" if node.kind in ("error", "command", "message") else None
        if key:
            number = node.number(key, 0, 65535)
            other = numbers.setdefault((node.kind, number), node)
            if other is not node:
                raise SchemaError(node.line, f"{node.kind} {node['name']} has number {number}, as {other['name']} "
                                  f"on line {other.line} has")
        other = numbers.setdefault((node.kind, node["name"]), node)
        if other is not node:
            raise SchemaError(node.line, f"{node.kind} {node['name']} stands on line {other.line} already")
        if node.kind in ("command", "message"):
            since = node["since"].split(".")
            if len(since) != 2 or not all(part.isdigit() for part in since):
                raise SchemaError(node.line, f"since=\"{node['since']}\" is not MAJOR.MINOR")
            if (int(since[0]), int(since[1])) > (root.number("major", 0, 999), root.number("minor", 0, 999)):
                raise SchemaError(node.line, f"{node['name']} is newer than the protocol itself")
    check_states(root)
    messages = {node["name"]: node for node in root.of("message")}
    errors = {node["name"] for node in root.of("error")}
    for node in messages.values():
        if "reply" in node.attributes and node["reply"] not in messages:
            raise SchemaError(node.line, f"{node['name']}: reply=\"{node['reply']}\" is no message")
        for name in node.get("errors", "").split():
            if name not in errors:
                raise SchemaError(node.line, f"{node['name']}: errors names \"{name}\", which is no error")


BANNER = """/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Made by schemas/generate.py from schemas/protocol.xml; do not edit. */
"""


def c_struct(node, prefix):
    out = [f"/* {node.text} */", f"struct {prefix}{node['name']} {{"]
    for field in node.of("field"):
        array = f"[{field.count}]" if field.count > 1 or field["type"] == "char" else ""
        note = f" /* {field.text}{', ' + field['unit'] if field.get('unit') else ''} */" if field.text else ""
        kind = f"struct proto_{field['type']}" if field.layout else C_TYPES[field["type"]]
        out.append(f"    {kind} {field['name']}{array};{note}")
    if not node.of("field"):
        out.append("    uint8_t nothing[0];")
    out.append("};")
    out.append(f"_Static_assert(sizeof(struct {prefix}{node['name']}) == {node.bytes}, \"{node['name']}\");")
    for field in node.of("field"):
        out.append(f"_Static_assert(offsetof(struct {prefix}{node['name']}, {field['name']}) == {field.offset}, "
                   f"\"{node['name']}.{field['name']}\");")
    return out + [""]


def ranges(node):
    """The ends that the schema gives to the fields of a message, for those who set or read the values."""
    out = []
    for field in node.of("field"):
        form = {"u64": "UINT64_C({})", "i32": "{}"}.get(field["type"], "{}u")
        out += [f"#define PROTO_{node['name'].upper()}_{field['name'].upper()}_{end.upper()} {form.format(field[end])}"
                for end in ("min", "max") if end in field.attributes]
    return out + [""] if out else []


def unset_members(layout):
    """The designated initialisers of everything in a layout that can be unset."""
    found = []
    for field in layout.of("field"):
        if field.layout:
            inner = unset_members(field.layout)
            found += [f".{field['name']} = {{{', '.join(inner)}}}"] if inner else []
        elif field.get("unset"):
            found.append(f".{field['name']} = UINT64_MAX")
    return found


def header(root):
    out = [BANNER, "#ifndef GPUSHARE_GENERATED_PROTOCOL_H", "#define GPUSHARE_GENERATED_PROTOCOL_H", "",
           "#include <stddef.h>", "#include <stdint.h>", "",
           f"#define PROTO_MAJOR {root['major']}", f"#define PROTO_MINOR {root['minor']}", ""]
    for node in root.of("constant"):
        out.append(f"#define PROTO_{node['name'].upper()} {node['value']} /* {node.text} */")
    out += ["", "enum proto_error {"]
    out += [f"    PROTO_ERROR_{n['name'].upper()} = {n['number']}, /* {n.text} */" for n in root.of("error")]
    out += ["};", "", "/* X(NUMBER, name, \"sentence\") for every error. */", "#define PROTO_ERRORS(X) \\"]
    out.append(" \\\n".join(f"    X({n['number']}, {n['name']}, \"{n.text}\")" for n in root.of("error")))
    out += ["", "/* X(NAME, number), the names as enumerators are written. */", "#define PROTO_ERROR_NUMBERS(X) \\"]
    out.append(" \\\n".join(f"    X({n['name'].upper()}, {n['number']})" for n in root.of("error")))
    out += ["", "enum proto_opcode {"]
    out += [f"    PROTO_{n['name'].upper()} = {n['number']}," for n in root.of("message")]
    out += ["};", "", "enum proto_command {"]
    out += [f"    PROTO_COMMAND_{n['name'].upper()} = {n['number']}," for n in root.of("command")]
    out += ["};", ""]
    for node in root.of("enum"):
        name = node["name"].upper()
        out += [f"/* {node.text} */", f"enum proto_{node['name']} {{"]
        out += [f"    PROTO_{name}_{n['name'].upper()} = {n['number']}, /* {n.text} */" for n in node.of("value")]
        out += ["};", f"#define PROTO_{name}_COUNT {len(node.of('value'))} /* values */", "",
                "/* A value's name, or NULL for a number that is none. Static. */",
                f"const char *proto_{node['name']}_name(uint32_t number);", ""]
    for node in root.of("layout") + root.of("message"):
        out += c_struct(node, "proto_")
        out += ranges(node) if node.kind == "message" else []
        unset = unset_members(node) if node.kind == "layout" else []
        if unset:
            members = ", \\\n    ".join(unset)
            out += ["/* Initialises it with everything unset that can be. */",
                    f"#define PROTO_{node['name'].upper()}_UNSET {{ \\\n    {members}}}", ""]
    for node in carried(root):
        out += c_struct(node, "proto_command_")
    out.append("""enum proto_peer { PROTO_PEER_CLIENT = 1, PROTO_PEER_SUPERVISOR = 2, PROTO_PEER_WORKER = 4, PROTO_PEER_ANY = 7 };

/* One row a message: what a receiver checks before it looks at a field. */
struct proto_message {
    uint16_t opcode;
    uint16_t reply;      /* the message that answers it, unless that is `failed`; 0: none does */
    uint8_t from, to;    /* enum proto_peer */
    uint8_t fds;         /* file descriptors that come with it */
    uint32_t bytes;      /* of the fixed part, without the message header */
    uint32_t tail;       /* most bytes that may follow the fixed part */
    uint32_t states;     /* of a connection, in which a client may send it: bits by number; 0: never */
    const char *name;
    /* Checks ranges, texts and reserved fields. NULL, or a static sentence that names the bad field. */
    const char *(*check)(const void *body);
};

/* NULL for an unknown opcode. */
const struct proto_message *proto_message_find(uint16_t opcode);

/* The same check for a ring descriptor that was copied to private memory. */
const char *proto_command_check(const void *descriptor);

/* "launch" for PROTO_COMMAND_LAUNCH; NULL if unknown. */
const char *proto_command_name(uint16_t number);

#endif""")
    return "\n".join(out) + "\n"


def conditions(field, value, label, whole):
    """The errors of a number: pairs of a C condition and its sentence. whole: it may not be unset."""
    if field.get("reserved"):
        return [(f"{value} != 0", f"{label} must be zero")]
    if field.get("enum"):
        return [(f"!proto_{field['enum']}_name({value})", f"{label} is no {field['enum']}")]
    low, high = LIMITS[field["type"]]
    suffix = {"u64": "ull", "i32": ""}.get(field["type"], "u")
    found = []
    unset = f"{value} != UINT64_MAX && " if field.get("unset") and not whole else ""
    if field.get("unset") and whole:
        found.append((f"{value} == UINT64_MAX", f"{label} is unset"))
    if field.low != low:
        found.append((f"{unset}{value} < {field.low}{suffix}", f"{label} is below {field.low}"))
    if field.high != high:
        found.append((f"{unset}{value} > {field.high}{suffix}", f"{label} is above {field.high}"))
    return found


def field_checks(field, struct, label, depth, whole):
    """The lines that check one field of a struct, and the fields of its layout."""
    pad = "    " * (depth + 1)
    value, label = struct + field["name"], f"{label}.{field['name']}"
    if field["type"] == "char":
        return [f"{pad}if (!text_is_clean({value}, sizeof {value}))",
                f"{pad}    return \"{label} is not a NUL-terminated printable text\";"]
    array, inner = field.count > 1, []
    index = "ijkl"[depth] if array else ""
    within = f"{value}[{index}]" if array else value
    if field.layout:
        for part in field.layout.of("field"):
            inner += field_checks(part, within + ".", label, depth + array, whole or bool(field.get("whole")))
    else:
        step = "    " * (depth + array + 1)
        for condition, sentence in conditions(field, within, label, whole):
            inner += [f"{step}if ({condition})", f"{step}    return \"{sentence}\";"]
    if array and inner:
        inner = [f"{pad}for (size_t {index} = 0; {index} < {field.count}; {index}++) {{"] + inner + [f"{pad}}}"]
    return inner


def carried(root):
    """The commands that a server carries out: the others have a number alone."""
    return [node for node in root.of("command") if not node.get("reserved")]


def checker(node, prefix, function):
    out = [f"static const char *{function}(const void *body)", "{",
           f"    const struct {prefix}{node['name']} *m = body;", "    (void)m;"]
    for field in node.of("field"):
        out += field_checks(field, "m->", node["name"], 0, False)
    return out + ["    return NULL;", "}", ""]


def source(root):
    out = [BANNER, "#include \"protocol.h\"", "", "#include <stdbool.h>", "",
           "static bool __attribute__((unused)) text_is_clean(const char *text, size_t size)", "{",
           "    for (size_t i = 0; i < size; i++) {", "        unsigned char c = (unsigned char)text[i];",
           "        if (c == 0)", "            return true;", "        if (c < 0x20 || c == 0x7f)",
           "            return false;", "    }", "    return false;", "}", ""]
    for node in root.of("enum"):
        out += [f"const char *proto_{node['name']}_name(uint32_t number)", "{", "    switch (number) {"]
        for value in node.of("value"):
            out += [f"    case {value['number']}:", f"        return \"{value['name']}\";"]
        out += ["    default:", "        return NULL;", "    }", "}", ""]
    for node in root.of("message"):
        out += checker(node, "proto_", f"check_{node['name']}")
    for node in carried(root):
        out += checker(node, "proto_command_", f"check_command_{node['name']}")
    out += ["static const struct proto_message messages[] = {"]
    for node in sorted(root.of("message"), key=lambda n: int(n["number"])):
        reply = f"PROTO_{node['reply'].upper()}" if node.get("reply") else "0"
        out.append(f"    {{{node['number']}, {reply}, PROTO_PEER_{node['from'].upper()}, PROTO_PEER_{node['to'].upper()}, "
                   f"{node.fds}, {node.bytes}, {node.tail}, 0x{node.states:x}, \"{node['name']}\", check_{node['name']}}},")
    out += ["};", "", "const struct proto_message *proto_message_find(uint16_t opcode)", "{",
            "    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)",
            "        if (messages[i].opcode == opcode)", "            return &messages[i];", "    return NULL;", "}", "",
            "const char *proto_command_check(const void *descriptor)", "{",
            "    switch (*(const uint16_t *)descriptor) {"]
    for node in root.of("command"):
        call = f"\"{node['name']} is reserved\"" if node.get("reserved") else f"check_command_{node['name']}(descriptor)"
        out += [f"    case {node['number']}:", f"        return {call};"]
    out += ["    default:", "        return \"unknown command\";", "    }", "}", "",
            "const char *proto_command_name(uint16_t number)", "{", "    switch (number) {"]
    for node in root.of("command"):
        out += [f"    case {node['number']}:", f"        return \"{node['name']}\";"]
    out += ["    default:", "        return NULL;", "    }", "}"]
    return "\n".join(out) + "\n"


def field_rows(node):
    out = ["", "| offset | field | type | range, unit | meaning |", "|---|---|---|---|---|"]
    for field in node.of("field"):
        kind = field["type"] + (f"[{field.count}]" if field.count > 1 else "")
        limits = ""
        if field.get("enum"):
            limits = f"`{field['enum']}`"
        elif field["type"] in LIMITS and not field.get("reserved"):
            if (field.low, field.high) != LIMITS[field["type"]]:
                limits = f"{field.low}..{field.high}"
        if field.get("unset"):
            limits = ", ".join(filter(None, [limits, "or unset"]))
        if field.get("whole"):
            limits = "nothing unset"
        what = "zero" if field.get("reserved") else field.text
        unit = field.get("unit", "")
        out.append(f"| {field.offset} | `{field['name']}` | {kind} | {', '.join(filter(None, [limits, unit]))} | {what} |")
    return out + [""]


def reference(root):
    out = ["<!-- Made by schemas/generate.py from schemas/protocol.xml; do not edit. -->",
           f"# The gpushare protocol, version {root['major']}.{root['minor']}", "", root.text, "", "## Messages", ""]
    for node in root.of("message"):
        out += [f"### {node['name']} ({node['number']}), {node['from']} → {node['to']}", "", node.text, ""]
        facts = [f"since {node['since']}"]
        if node.get("reply"):
            facts.append(f"reply `{node['reply']}`")
        if node.fds:
            facts.append(f"{node.fds} file descriptor{'s' if node.fds > 1 else ''}")
        if node.tail:
            facts.append(f"up to {node.tail} bytes follow")
        if node.get("states"):
            facts.append("allowed while " + ", ".join(f"`{name}`" for name in node["states"].split()))
        if node.get("errors"):
            facts.append("errors " + ", ".join(f"`{name}`" for name in node["errors"].split()))
        out.append("; ".join(facts) + ".")
        out += field_rows(node) if node.of("field") else [""]
    out += ["## Ring commands", "", "A descriptor has 64 bytes; see the layout `ring_header` for the ring itself.", ""]
    for node in root.of("command"):
        out += [f"### {node['name']} ({node['number']})", "", node.text] + ([""] if node.get("reserved") else field_rows(node))
    out += ["## Shared layouts", ""]
    for node in root.of("layout"):
        out += [f"### {node['name']}, {node['size']} bytes", "", node.text] + field_rows(node)
    out += ["## Enumerations", ""] if root.of("enum") else []
    for node in root.of("enum"):
        out += [f"### {node['name']}", "", node.text, "", "| number | name | meaning |", "|---|---|---|"]
        out += [f"| {n['number']} | `{n['name']}` | {n.text} |" for n in node.of("value")] + [""]
    out += ["## Constants", "", "| name | value | meaning |", "|---|---|---|"]
    out += [f"| `{n['name']}` | {n['value']} | {n.text} |" for n in root.of("constant")]
    out += ["", "## Errors", "", "| number | name | sentence |", "|---|---|---|"]
    out += [f"| {n['number']} | `{n['name']}` | {n.text} |" for n in root.of("error")]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header")
    parser.add_argument("--source")
    parser.add_argument("--reference")
    parser.add_argument("schema")
    args = parser.parse_args()
    try:
        with open(args.schema, "rb") as file:
            root = parse(file.read())
        check(root)
    except SchemaError as error:
        print(f"{args.schema}:{error.line}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{args.schema}: {error.strerror}", file=sys.stderr)
        return 1
    for path, make in ((args.header, header), (args.source, source), (args.reference, reference)):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
