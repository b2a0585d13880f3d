#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Comments of the C sources: none stands twice, and those of headers agree with code and pages."""
import os
import re
import textwrap
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
COMMENT = re.compile(r"(?<!\")/\*(?:(?!\*/).)*\*/", re.S)
# A comment with the function that it describes: the contract.
CONTRACT = re.compile(r"(" + COMMENT.pattern + r")[ \t]*\n((?:(?:static|inline|const|struct|enum|unsigned) )*"
                      r"(\w+) \**\w+\([^;{]*[;{])", re.S)
# Words in backticks that stand for keys, states and names of another place: not of the header itself.
ELSEWHERE = {"_", "clients", "ended", "environ", "size", "status"}
# Words before a colon that are values, and no parameters.
VALUES = {"false", "true", "invalid_value", "not_supported"}
# Comments that may be followed by another: the licence, what the runner of tests reads, and headings.
ALONE = re.compile(r"/\* (SPDX-|(timed|light|draining): |----)")


def sources():
    """The C files of the tree, as pairs of path and text."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name != "build" and not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".c", ".h", ".inc")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as text:
                    yield os.path.relpath(path, ROOT), text.read()


def words(comment):
    """A comment without the signs that frame it, and without its line breaks."""
    return " ".join(re.sub(r"^\s*/?\*+/?|\*/$", " ", comment, flags=re.M).split())


def place(path, text, at):
    return f"{path}:{text.count(chr(10), 0, at) + 1}"


def comment_pairs(text):
    """Comments that begin a line, each with the one on the very next line."""
    lines = list(re.finditer(r"^[ \t]*(" + COMMENT.pattern + r")[ \t]*\n", text, re.S | re.M))
    for first, second in zip(lines, lines[1:]):
        if first.end() == second.start() and not ALONE.match(first[1]):
            yield first, second


class Doubles(unittest.TestCase):
    def test_a_comment_does_not_follow_another_without_anything_between(self):
        found = [f"{place(path, text, second.start())}: {words(second[1])[:60]}"
                 for path, text in sources() for _, second in comment_pairs(text)]
        self.assertEqual(found, [], "two comments in a row: join them, or delete the older one")

    def test_a_comment_has_no_paragraph_twice(self):
        found = []
        for path, text in sources():
            for comment in COMMENT.finditer(text):
                paragraphs = [words(part) for part in re.split(r"\n\s*\*[ \t]*\n", comment[0])]
                for first, second in zip(paragraphs, paragraphs[1:]):
                    if first.split()[:5] == second.split()[:5] and len(second.split()) > 5:
                        found.append(f"{place(path, text, comment.start())}: {second[:60]}")
        self.assertEqual(found, [], "two wordings of one paragraph")

    def test_a_paragraph_of_a_comment_has_at_most_80_words(self):
        found = []
        for path, text in sources():
            for comment in COMMENT.finditer(text):
                for part in re.split(r"\n\s*\*?[ \t]*\n|\n\s*\*   +", comment[0]):
                    if len(words(part).split()) > 80:
                        found.append(f"{place(path, text, comment.start())}: {words(part)[:60]}")
        self.assertEqual(found, [], "long paragraphs")

    def test_no_comment_was_joined_with_its_frame(self):
        found = [f"{place(path, text, comment.start())}: {match[0]}"
                 for path, text in sources() for comment in COMMENT.finditer(text)
                 for match in re.finditer(r"\w+  \* \w+", comment[0])]
        self.assertEqual(found, [], "the star of a line's beginning stands within a line")


class Subjects(unittest.TestCase):
    """No sentence has a bare "what" or "who" as its subject: the reader has to guess the noun."""

    BARE = re.compile(r"(?:^|(?<=[.:] ))(?:What|Who|Whose|Whom|Which)\b[^.?]*[.?]?")

    def found(self, text):
        return [match[0] for match in self.BARE.finditer(text) if not match[0].endswith("?")]

    def test_comments_of_c_sources_name_their_subjects(self):
        self.assertEqual(len(self.found("Read. What it says is so. What is it? Which says: Who runs it.")), 2)
        bare = [f"{place(path, text, comment.start())}: {sentence}" for path, text in sources()
                for comment in COMMENT.finditer(text) for sentence in self.found(words(comment[0]))]
        self.assertEqual(bare, [], "begin the sentence with the noun")

    def test_pages_and_the_protocol_name_their_subjects(self):
        pages = ["README.md", "HACKING.md", "schemas/protocol.xml"]
        pages += sorted("docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))
        bare = []
        for page in pages:
            with open(os.path.join(ROOT, page), encoding="utf-8") as lines:
                bare += [f"{page}:{number}: {sentence}" for number, line in enumerate(lines, 1)
                         for sentence in self.found(line.strip(" |*-\n"))]
        self.assertEqual(bare, [], "begin the sentence with the noun")


class Contracts(unittest.TestCase):
    """A header's words on a function."""

    def contracts(self):
        for path, text in sources():
            if path.endswith(".h"):
                for match in CONTRACT.finditer(text):
                    yield place(path, text, match.start()), words(match[1]), match[3], text

    def test_a_contract_names_parameters_that_are_there(self):
        with open(os.path.join(ROOT, "schemas/protocol.xml"), encoding="utf-8") as schema:
            enumerations = set(re.findall(r'<enum name="(\w+)"', schema.read()))
        found, seen = [], 0
        for where, contract, _, text in self.contracts():
            names = set(re.findall(r"\w+", COMMENT.sub(" ", text)))
            said = set(re.findall(r"(?:^|[.;] )([a-z]\w*): ", contract)) - VALUES
            said |= set(re.findall(r"`([a-z_]\w*)`", contract)) - ELSEWHERE - enumerations
            said |= set(re.findall(r"(?<![\w*])\*([a-z]\w*)", contract))
            seen += len(said)
            found += [f"{where}: {name}" for name in sorted(said - names)]
        self.assertGreater(seen, 200, "the contracts were not found")
        self.assertEqual(found, [], "names that the header does not have")

    def test_a_function_that_returns_an_error_number_does_not_promise_an_errno(self):
        found = [f"{where}: {contract[-80:]}" for where, contract, kind, _ in self.contracts()
                 if kind == "uint32_t" and re.search(r"[Rr]eturns? [^.]*-(E[A-Z0-9]+|errno|1)\b|or -1 |or -E[A-Z]",
                                                     contract)
                 and not where.startswith("tests/")]
        self.assertEqual(found, [], "a uint32_t is 0 or an error number, never negative")


def drawing(path, frame):
    """The lines from the first state to the last word of the drawing, without their common indent."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        lines = [re.sub(frame, "", line.rstrip("\n")) for line in text]
    first = next(i for i, line in enumerate(lines) if line.strip() == "attached (control)")
    last = next(i for i, line in enumerate(lines) if line.strip() == "when nothing of it is in flight")
    return textwrap.dedent("\n".join(lines[first:last + 1])), " ".join(" ".join(lines[last + 1:]).split())


class ClientStates(unittest.TestCase):
    """The drawing of a client's states stands in a header and in a page."""

    def test_both_drawings_are_equal(self):
        header, _ = drawing("server/worker/client/client_state.h", r"^ \* ?")
        page, _ = drawing("docs/architecture.md", r"^")
        self.assertGreater(header.count("\n"), 20)
        self.assertEqual(header, page)

    def test_both_say_which_step_is_not_drawn(self):
        note = "One step is not drawn: HELD becomes ASLEEP if there is no memory for the scan set."
        for path, frame in ("server/worker/client/client_state.h", r"^ \* ?"), ("docs/architecture.md", r"`"):
            self.assertIn(note, drawing(path, frame)[1])


if __name__ == "__main__":
    unittest.main()
