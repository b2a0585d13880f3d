#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""schemas/generate.py: malformed schemas fail naming their line; what it makes compiles
and says what the schema says, judged by an own reading of the XML."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
GENERATE = os.path.join(ROOT, "schemas/generate.py")
SCHEMA = os.path.join(ROOT, "schemas/protocol.xml")
CC = os.environ.get("CC", "cc").split()

GOOD = """<?xml version="1.0"?>
<protocol name="p" major="1" minor="2">
  About it.
  <constant name="c" value="7">a constant</constant>
  <error name="bad" number="3">it is bad</error>
  <layout name="l" size="16">
    A layout.
    <field name="a" type="u32">first</field>
    <field name="b" type="u32" reserved="1"/>
    <field name="d" type="u64">third</field>
  </layout>
  <command name="go" number="1" since="1.0">
    A command.
    <field name="opcode" type="u16">1</field>
    <field name="flags" type="u16" reserved="1"/>
    <field name="pad0" type="u32" count="15" reserved="1"/>
  </command>
  <message name="ask" number="1" since="1.1" from="client" to="supervisor" reply="said" errors="bad">
    A question.
    <field name="size" type="u64" min="1" max="100">how much</field>
  </message><command name="later" number="9" since="1.2" reserved="1">Not yet.</command>
  <message name="said" number="2" since="1.2" from="any" to="any" tail="10" fds="1">
    An answer.
    <field name="text" type="char" count="8">words</field>
    <field name="sign" type="i32" min="-5" max="5">signed</field>
    <field name="few" type="u8" count="4" max="9">array</field>
  </message>
</protocol>
"""

# GOOD has none of these: a schema of its own, so that the lines above stay where they are.
NESTED = """<?xml version="1.0"?>
<protocol name="p" major="1" minor="0">
  About it.
  <enum name="mode">
    How.
    <value name="slow" number="0">at leisure</value>
    <value name="fast" number="7">at once</value>
  </enum>
  <layout name="range" size="16">
    From and to.
    <field name="from" type="u64" max="9" unset="1">first</field>
    <field name="to" type="u64" min="1" max="9" unset="1">last</field>
  </layout>
  <layout name="ranges" size="40">
    Some.
    <field name="pair" type="range" count="2">two of them</field>
    <field name="mode" type="u32" enum="mode">how</field>
    <field name="pad0" type="u32" reserved="1"/>
  </layout>
  <message name="asked" number="1" since="1.0" from="any" to="any">
    What may be unset.
    <field name="ranges" type="ranges">some</field>
  </message>
  <message name="granted" number="2" since="1.0" from="any" to="any">
    What may not.
    <field name="ranges" type="ranges" whole="1">all</field>
    <field name="mode" type="u32" enum="mode">how</field>
    <field name="small" type="u32" reserved="1"/>
  </message>
  <error name="bad" number="3">it is bad</error>
  <command name="go" number="1" since="1.0">
    A command.
    <field name="opcode" type="u16">1</field>
    <field name="flags" type="u16" reserved="1"/>
    <field name="pad0" type="u32" count="15" reserved="1"/>
  </command>
  <enum name="connection_state">
    How far it is.
    <value name="fresh" number="0">not long</value>
    <value name="open" number="2">for use</value>
  </enum>
  <message name="ask" number="3" since="1.0" from="client" to="supervisor" reply="granted" states="fresh open">
    A request of a client.
  </message>
</protocol>
"""

NESTED_MALFORMED = [
    (' states="fresh open"', '', 42, 'is a request of a client and lacks states'),
    ('states="fresh open"', 'states=""', 42, 'is a request of a client and lacks states'),
    ('states="fresh open"', 'states="fresh shut"', 42, 'states names "shut"'),
    ('<value name="open" number="2">', '<value name="open" number="32">', 2, 'is above 31'),
    ('<value name="slow"', '<field name="slow"', 6, 'has no place in <enum>'),
    ('number="7">', 'number="0">', 7, 'number 0, as slow on line 6'),
    ('name="fast"', 'name="slow"', 7, 'two values named slow'),
    ('number="7">', 'number="65536">', 7, 'outside'),
    ('>at once<', '><', 7, 'no description'),
    ('    <value name="slow" number="0">at leisure</value>\n    <value name="fast" number="7">at once</value>\n', '', 4,
     'has no value'),
    ('type="range" count="2"', 'type="span" count="2"', 16, 'unknown type "span"'),
    ('type="range" count="2"', 'type="ranges" count="2"', 16, 'unknown type "ranges"'),
    ('type="range" count="2"', 'type="range" count="2" max="3"', 16, 'max has no meaning for a layout'),
    ('type="range" count="2"', 'type="range" count="2" unset="1"', 16, 'unset has no meaning for a layout'),
    ('type="range" count="2"', 'type="range" count="3"', 14, 'says size 40, its fields take 56'),
    ('<field name="mode" type="u32" enum="mode">', '<field name="mode" type="u32" enum="mood">', 17, 'is no enumeration'),
    ('<field name="mode" type="u32" enum="mode">', '<field name="mode" type="u32" enum="mode" max="7">', 17, 'without min and max'),
    ('<field name="mode" type="u32" enum="mode">', '<field name="mode" type="u32" unset="1">', 17, 'only a u64 can be unset'),
    ('<field name="mode" type="u32" enum="mode">', '<field name="mode" type="u32" whole="1">', 17, 'whole is for layouts'),
    ('max="9" unset="1">first', 'max="9" unset="yes">first', 11, 'unset="yes" is not 1'),
    ('<field name="ranges" type="ranges">', '<field name="early" type="u32" reserved="1"/><field name="ranges" type="ranges">',
     22, 'not aligned to 8'),
]

# (what to replace, with what, line that must be named, words of the sentence)
MALFORMED = [
    ('name="p" major', 'major', 2, 'lacks name='),
    ('<constant name="c" value="7">', '<constant name="c">', 4, 'lacks value='),
    ('<constant name="c" value="7">a constant</constant>', '<constant name="c" value="7"/>', 4, 'no description'),
    ('<constant name="c" value="7">', '<constant name="C" value="7">', 4, 'not lower_case'),
    ('<constant name="c" value="7">', '<constant name="c" value="seven">', 4, 'not a number'),
    ('<constant name="c" value="7">', '<constant name="c" value="0x10000000000000000">', 4, 'outside'),
    ('<error name="bad" number="3">', '<error name="bad" number="three">', 5, 'not a number'),
    ('<error name="bad" number="3">', '<error name="bad" number="65536">', 5, 'outside'),
    ('<error name="bad" number="3">', '<error name="bad" number="-1">', 5, 'outside'),
    ('<error name="bad" number="3">', '<error name="1bad" number="3">', 5, 'not lower_case'),
    ('<error name="bad" number="3">it is bad</error>',
     '<error name="bad" number="3">it "is" bad</error>', 5, 'would not be C'),
    ('<error name="bad" number="3">it is bad</error>',
     '<error name="bad" number="3">it is */ bad</error>', 5, 'would not be C'),
    ('<constant name="c" value="7">', '<error name="worse" number="3">x</error><constant name="c" value="7">', 5,
     'number 3, as worse on line 4'),
    ('size="16"', 'size="20"', 6, 'says size 20, its fields take 16'),
    ('<field name="a" type="u32">', '<field name="a" type="u33">', 8, 'unknown type "u33"'),
    ('<field name="a" type="u32">first</field>', '<message name="m"/>', 8, 'has no place in <layout>'),
    ('<field name="a" type="u32">', '<field name="a" type="u32" colour="red">', 8, 'unknown attribute colour'),
    ('<field name="b" type="u32" reserved="1"/>', '<field name="a" type="u32" reserved="1"/>', 9, 'two fields named a'),
    ('<field name="b" type="u32" reserved="1"/>', '<field name="b" type="u32" reserved="yes"/>', 9, 'reserved'),
    ('    <field name="b" type="u32" reserved="1"/>\n', '', 9, 'd at offset 4 is not aligned to 8'),
    ('<field name="d" type="u64">third</field>', '<field name="d" type="u32">third</field>', 6, 'says size 16'),
    ('count="15"', 'count="14"', 12, 'takes 60 bytes'),
    ('name="later" number="9" since="1.2" reserved="1">', 'name="later" number="9" since="1.2">', 21, 'takes 0 bytes'),
    ('reserved="1">Not yet.', 'reserved="1">Not yet.<field name="opcode" type="u16">9</field>', 21, 'is reserved, and has fields'),
    ('reserved="1">Not yet.', 'reserved="1">', 21, 'has no description'),
    ('count="15"', 'count="0"', 16, 'outside'),
    ('count="15"', 'count="65537"', 16, 'outside'),
    ('<command name="go" number="1" since="1.0">', '<command name="go" number="1" since="1">', 12, 'not MAJOR.MINOR'),
    ('<command name="go" number="1" since="1.0">', '<command name="go" number="1" since="1.3">', 12,
     'newer than the protocol'),
    ('from="client"', 'from="nobody"', 18, 'is none of'),
    ('to="supervisor"', 'to="all"', 18, 'is none of'),
    ('reply="said"', 'reply="spoke"', 18, 'is no message'),
    ('errors="bad"', 'errors="bad worse"', 18, '"worse", which is no error'),
    ('min="1" max="100"', 'min="101" max="100"', 20, 'min is above max'),
    ('min="1" max="100"', 'min="-1" max="100"', 20, 'outside'),
    ('type="u64" min="1" max="100"', 'type="u8" min="1" max="256"', 20, 'outside'),
    ('name="said" number="2"', 'name="said" number="1"', 22, 'number 1, as ask on line 18'),
    ('name="said" number="2"', 'name="ask" number="2"', 22, 'stands on line 18 already'),
    ('tail="10"', 'tail="99999999"', 22, 'outside'),
    ('fds="1"', 'fds="9"', 22, 'outside'),
    ('<field name="text" type="char" count="8">', '<field name="text" type="char">', 24, 'needs count'),
    ('<field name="text" type="char" count="8">', '<field name="text" type="char" count="8" max="3">', 24,
     'no min or max'),
    ('<field name="few" type="u8" count="4" max="9">', '<field name="few" type="u8" count="3" max="9">', 22,
     'not a multiple of 4'),
    ('<field name="few" type="u8" count="4" max="9">', '<field name="int" type="u8" count="4" max="9">', 26,
     'keyword'),
    ('reply="said"', 'reply="said" states="open"', 18, 'states names "open"'),
    ('tail="10"', 'states="open"', 22, 'states are for the requests of a client'),
    ('</protocol>', '', 29, 'not well-formed XML'),
    ('<protocol name', '<protocoll name', 2, 'has no place in the document'),
    ('</message>\n</protocol>', '</mesage>\n</protocol>', 27, 'not well-formed XML'),
]


def generate(schema_text, folder, *options):
    path = os.path.join(folder, "schema.xml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(schema_text)
    return subprocess.run([sys.executable, GENERATE, *options, path], capture_output=True, text=True, check=False)


class Malformed(unittest.TestCase):
    def test_the_base_is_well_formed(self):
        for good in (GOOD, NESTED):
            with tempfile.TemporaryDirectory() as folder:
                result = generate(good, folder)
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_each_fails_naming_its_line(self):
        for good, (old, new, line, words) in [(GOOD, row) for row in MALFORMED] + [(NESTED, row) for row in NESTED_MALFORMED]:
            with self.subTest(new or f"without {old}"), tempfile.TemporaryDirectory() as folder:
                self.assertIn(old, good)
                header = os.path.join(folder, "made.h")
                result = generate(good.replace(old, new, 1), folder, "--header", header)
                self.assertEqual(result.returncode, 1, result.stderr)
                lines = result.stderr.splitlines()
                self.assertEqual(len(lines), 1, "one line, no traceback: " + result.stderr)
                self.assertRegex(lines[0], rf"^{re.escape(folder)}/schema\.xml:{line}: ")
                self.assertIn(words, lines[0])
                self.assertFalse(os.path.exists(header), "nothing is written from a malformed schema")

    def test_a_file_that_is_not_there(self):
        result = subprocess.run([sys.executable, GENERATE, "/nonexistent/schema.xml"], capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("/nonexistent/schema.xml", result.stderr)


class Golden(unittest.TestCase):
    def test_the_reference_is_what_the_schema_says(self):
        with tempfile.TemporaryDirectory() as folder:
            fresh = os.path.join(folder, "protocol.md")
            subprocess.run([sys.executable, GENERATE, "--reference", fresh, SCHEMA], check=True)
            with open(fresh, encoding="utf-8") as new, open(os.path.join(ROOT, "docs/protocol.md"), encoding="utf-8") as old:
                self.assertEqual(new.read(), old.read(), "run: make protocol-reference")

    def test_generating_twice_gives_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = []
            for i in range(2):
                files = [os.path.join(folder, f"{i}{kind}") for kind in (".h", ".c")]
                subprocess.run([sys.executable, GENERATE, "--header", files[0], "--source", files[1], SCHEMA], check=True)
                texts.append([])
                for name in files:
                    with open(name, encoding="utf-8") as file:
                        texts[-1].append(file.read())
            self.assertEqual(texts[0], texts[1])


class Compiled(unittest.TestCase):
    """The generated C, called from a program that is written from an own reading of the XML."""

    def build(self, folder, program, schema, libraries=()):
        header, source = os.path.join(folder, "protocol.h"), os.path.join(folder, "protocol.c")
        subprocess.run([sys.executable, GENERATE, "--header", header, "--source", source, schema], check=True)
        main = os.path.join(folder, "main.c")
        with open(main, "w", encoding="utf-8") as file:
            file.write(program)
        flags = "-std=c17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror".split()
        binary = os.path.join(folder, "main")
        subprocess.run([*CC, *flags, "-I", folder, "-o", binary, main, source, *libraries], check=True)
        return binary

    def test_the_header_stands_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            header = os.path.join(folder, "protocol.h")
            subprocess.run([sys.executable, GENERATE, "--header", header, SCHEMA], check=True)
            result = subprocess.run([*CC, "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", header],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_offsets_and_constants(self):
        """Every field's offset as Python's struct module lays it out."""
        codes = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "u64": "Q", "char": "s"}
        lines, layouts = [], {}
        root = ElementTree.parse(SCHEMA).getroot()
        for node in root:
            if node.tag == "constant":
                lines.append(f"    check({int(node.get('value'), 0)}ull, PROTO_{node.get('name').upper()}, "
                             f"\"{node.get('name')}\");")
            if node.tag == "error":
                lines.append(f"    check({node.get('number')}, PROTO_ERROR_{node.get('name').upper()}, "
                             f"\"{node.get('name')}\");")
            for value in node.findall("value"):
                lines.append(f"    check({value.get('number')}, PROTO_{node.get('name').upper()}_{value.get('name').upper()}, "
                             f"\"{node.get('name')}.{value.get('name')}\");")
            if node.tag not in ("layout", "command", "message") or (node.tag == "command" and node.get("reserved")):
                continue
            name = ("proto_command_" if node.tag == "command" else "proto_") + node.get("name")
            layout = "<"
            for field in node.findall("field"):
                lines.append(f"    check({struct.calcsize(layout)}, offsetof(struct {name}, {field.get('name')}), "
                             f"\"{name}.{field.get('name')}\");")
                for end in ("min", "max") if node.tag == "message" else ():
                    if field.get(end):
                        lines.append(f"    check((unsigned long long){field.get(end)}ll, PROTO_{node.get('name').upper()}_"
                                     f"{field.get('name').upper()}_{end.upper()}, \"{name}.{field.get('name')}: {end}\");")
                count, kind = int(field.get("count", "1")), field.get("type")
                layout += f"{count * layouts[kind]}s" if kind in layouts else f"{count}{codes[kind]}"
            lines.append(f"    check({struct.calcsize(layout)}, sizeof(struct {name}), \"{name}\");")
            if node.tag == "layout":
                layouts[node.get("name")] = struct.calcsize(layout)
        program = ("#include <stdio.h>\n#include \"protocol.h\"\nstatic int failed;\n"
                   "static void check(unsigned long long want, unsigned long long got, const char *what)\n"
                   "{\n    if (want != got) {\n        printf(\"%s: %llu, not %llu\\n\", what, got, want);\n"
                   "        failed = 1;\n    }\n}\n"
                   "int main(void)\n{\n" + "\n".join(lines) + "\n    return failed;\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([self.build(folder, program, SCHEMA)], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertGreater(len(lines), 300)

    def test_checks_at_their_edges(self):
        program = r"""
#include <stdio.h>
#include <string.h>
#include "protocol.h"
#define EXPECT(want) do { const char *why = type->check(&m); int ok = (want) ? why && strstr(why, (want)) != NULL : !why; \
    if (!ok) { printf("line %d: %s\n", __LINE__, why ? why : "accepted"); failed = 1; } } while (0)
static int failed;
static void ask(void)
{
    const struct proto_message *type = proto_message_find(1);
    struct proto_ask m = {1};
    const char *none = NULL;
    EXPECT(none);
    m.size = 100; EXPECT(none);
    m.size = 0; EXPECT("ask.size is below 1");
    m.size = 101; EXPECT("ask.size is above 100");
    m.size = ~0ull; EXPECT("ask.size is above 100");
}
static void said(void)
{
    const struct proto_message *type = proto_message_find(2);
    struct proto_said m = {.text = "1234567"};
    const char *none = NULL;
    EXPECT(none);
    m.text[7] = 'x'; EXPECT("said.text is not");
    m.text[7] = 0; m.text[2] = '\n'; EXPECT("said.text is not");
    m.text[2] = 0; m.text[3] = '\n'; EXPECT(none);
    m.text[0] = 0x7f; EXPECT("said.text is not");
    m.text[0] = 0;
    m.sign = -5; EXPECT(none);
    m.sign = 5; EXPECT(none);
    m.sign = -6; EXPECT("said.sign is below -5");
    m.sign = 6; EXPECT("said.sign is above 5");
    m.sign = 0;
    m.few[3] = 9; EXPECT(none);
    m.few[3] = 10; EXPECT("said.few is above 9");
}
int main(void)
{
    uint16_t descriptor[32] = {1};
    ask();
    said();
    if (proto_message_find(1)->from != PROTO_PEER_CLIENT || proto_message_find(1)->to != PROTO_PEER_SUPERVISOR ||
        proto_message_find(2)->tail != 10 || proto_message_find(2)->fds != 1 || proto_message_find(3) || proto_message_find(0) ||
        proto_message_find(1)->reply != 2 || proto_message_find(2)->reply != 0)
        failed = 2;
    if (proto_command_check(descriptor) || strcmp(proto_command_name(1), "go") || proto_command_name(2))
        failed = 3;
    descriptor[31] = 1;
    if (!proto_command_check(descriptor))
        failed = 4;
    descriptor[31] = 0; descriptor[1] = 1;
    if (!proto_command_check(descriptor))
        failed = 5;
    descriptor[0] = 2;
    if (strcmp(proto_command_check(descriptor), "unknown command"))
        failed = 6;
    descriptor[0] = PROTO_COMMAND_LATER;
    if (PROTO_COMMAND_LATER != 9 || strcmp(proto_command_check(descriptor), "later is reserved"))
        failed = 7;
    return failed;
}
"""
        with tempfile.TemporaryDirectory() as folder:
            schema = os.path.join(folder, "good.xml")
            with open(schema, "w", encoding="utf-8") as file:
                file.write(GOOD)
            result = subprocess.run([self.build(folder, program, schema)], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_checks_of_layouts_within_messages(self):
        program = r"""
#include <stdio.h>
#include <string.h>
#include "protocol.h"
static int failed;
static void expect(int line, uint16_t opcode, const struct proto_ranges *ranges, const char *want)
{
    struct proto_asked asked = {*ranges};
    struct proto_granted granted = {.ranges = *ranges, .mode = PROTO_MODE_FAST};
    const void *body = opcode == 1 ? (const void *)&asked : &granted;
    const char *why = proto_message_find(opcode)->check(body);
    if (want ? !why || strcmp(why, want) != 0 : why != NULL) {
        printf("line %d: %s\n", line, why ? why : "accepted");
        failed = 1;
    }
}
#define EXPECT(opcode, want) expect(__LINE__, opcode, &m, want)
int main(void)
{
    struct proto_ranges m = {.pair = {{0, 1}, {9, 9}}};
    const char *none = NULL;
    EXPECT(1, none); EXPECT(2, none);
    m.pair[1].to = 10; EXPECT(1, "asked.ranges.pair.to is above 9"); EXPECT(2, "granted.ranges.pair.to is above 9");
    m.pair[1].to = 0; EXPECT(1, "asked.ranges.pair.to is below 1");
    m.pair[1].to = UINT64_MAX; EXPECT(1, none); EXPECT(2, "granted.ranges.pair.to is unset");
    m.pair[1].to = 9; m.pair[0].from = UINT64_MAX; EXPECT(1, none); EXPECT(2, "granted.ranges.pair.from is unset");
    m.pair[0].from = UINT64_MAX - 1; EXPECT(1, "asked.ranges.pair.from is above 9");
    m.pair[0].from = 0; m.mode = 7; EXPECT(1, none);
    m.mode = 1; EXPECT(1, "asked.ranges.mode is no mode");
    m.mode = 0; m.pad0 = 1; EXPECT(1, "asked.ranges.pad0 must be zero");
    if (proto_message_find(3)->states != 5 || proto_message_find(2)->states)
        failed = 1;
    if (strcmp(proto_mode_name(7), "fast") || proto_mode_name(1) || PROTO_MODE_COUNT != 2 || PROTO_MODE_SLOW != 0)
        failed = 2;
    return failed;
}
"""
        with tempfile.TemporaryDirectory() as folder:
            schema = os.path.join(folder, "nested.xml")
            with open(schema, "w", encoding="utf-8") as file:
                file.write(NESTED)
            result = subprocess.run([self.build(folder, program, schema)], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
