#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: generate_messages.py OUTPUT

Write docs/messages.md: each message of the table in common/messages.h, below the symptom of docs/troubleshooting.md to which it
belongs. A symptom says so in a comment, <!-- messages: NAME... -->, whose names may have a * in the place of any letters. Of
several that fit, the one with the most letters counts."""
import collections
import fnmatch
import glob
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
SYMPTOMS = "docs/troubleshooting.md"
HEAD = """<!-- Made by common/generate_messages.py from common/messages.h and docs/troubleshooting.md; do not edit. -->
# Messages

Each message that gpushare's programs and library print or log, below the symptom that
[troubleshooting.md](troubleshooting.md) explains. `N` stands for a number, and `…` for words. In front of a message there may be a file and a
line, a device or a client.

The names stay when the words change; `gpushared --list-messages` prints them. The middle column is the error that a program
gets with the message; `-` means that the cause decides, or that the message is no error.

The software GPU's own sentences are not here, nor those about single fields of a message that breaks the protocol.
"""
Message = collections.namedtuple("Message", "name error text")
Symptom = collections.namedtuple("Symptom", "title patterns")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def messages():
    """The rows of all tables, by file and place in it."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "common/messages*.h"))):
        for name, error, parts in re.findall(r'^ {4}X\((\w+), ([A-Z_]+),\s*\\?\s*((?:"(?:[^"\\\n]|\\.)*"\s*\\?\s*)+)\)', text_of(path), re.M):
            text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', parts))
            found.append(Message(name, error.lower(), re.sub(r"\\(.)", r"\1", text)))
    return found


def symptoms():
    """The headings of the page, each with the names in its comment."""
    return [Symptom(title, names.split()) for title, names in
            re.findall(r"^##+ (.*)\n(?:(?!##).*\n)*?<!-- messages:((?:(?!-->)[\s\S])*)-->", text_of(SYMPTOMS), re.M)]


def symptom_of(name, known):
    """The symptom to which the message belongs, or None."""
    fitting = [(len(pattern.replace("*", "")), symptom) for symptom in known for pattern in symptom.patterns if fnmatch.fnmatchcase(name, pattern)]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def cell(text):
    """A format of printf as a reader sees it, in a table of Markdown."""
    def value(found):
        return "%" if found[0] == "%%" else "…" if found[0][-1] in "sc" else "N"

    text = re.sub(r"%%|%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z)?[a-zA-Z]", value, text)
    return re.sub(r"([|<*\[\]])", r"\\\1", text).replace("\\<", "&lt;").strip()


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def page():
    known, rows = symptoms(), collections.OrderedDict()
    for symptom in known:
        rows[symptom.title] = []
    for message in messages():
        symptom = symptom_of(message.name, known)
        if not symptom:
            sys.exit(f"common/generate_messages.py: {message.name} is below no symptom of {SYMPTOMS}: add its name to a comment there")
        rows[symptom.title].append(message)
    parts = [HEAD]
    for title, found in rows.items():
        parts.append(f"\n## {title}\n\n[What it means, and what to do](troubleshooting.md#{anchor(title)}).\n\n| name | error | message |\n|---|---|---|\n")
        parts += [f"| `{message.name}` | {'-' if message.error == 'success' else message.error} | {cell(message.text)} |\n" for message in found]
    return "".join(parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n", 1)[0])
    text = page()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
