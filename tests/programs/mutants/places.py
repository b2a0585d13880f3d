# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Where a mutant's lines stand in the sources today, after renames, moves and new line breaks.

Lines are compared token by token. White space and comments do not count. A name in the lines
may be another name in the source, as long as it is the same one each time and at least half of
all names are unchanged.
"""
import collections
import glob
import os
import re

TOKEN = re.compile(r"""(?P<skip>\s+|\\\n|//[^\n]*|/\*.*?\*/)
                     | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
                     | (?P<name>[A-Za-z_]\w*)
                     | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
                     | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)""", re.X | re.S)
# Words of the language and of its library, which no rename touches.
FIXED = frozenset("""auto bool break case char const continue default define do double else endif enum extern false
    float for goto if ifdef ifndef include inline int long NULL register restrict return short signed sizeof static
    struct switch true typedef undef union unsigned void volatile while errno EINVAL ENOMEM EPERM EAGAIN memcpy memset
    memmove memcmp strcmp strncmp strlen snprintf""".split()) | frozenset(
        [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["size_t", "ssize_t", "__int128"] +
        [f"{sign}INT{bits}_{end}" for sign in ("", "U") for bits in (8, 16, 32, 64) for end in ("MAX", "MIN")])
ENOUGH = 0.5  # of the names

Token = collections.namedtuple("Token", "text name start end")
Place = collections.namedtuple("Place", "file start end names score")


class Lost(Exception):
    """The lines are not in the sources, or at several places; the text says so."""


def tokens(text):
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup != "skip":
            name = match.lastgroup == "name" and match.group() not in FIXED
            found.append(Token(match.group(), name, match.start(), match.end()))
    return found


def match_at(wanted, source, at):
    """Returns the names in the source by the names in the lines, or None if they don't match."""
    names, back = {}, {}
    for one, other in zip(wanted, source[at:at + len(wanted)]):
        if one.name != other.name or (not one.name and one.text != other.text):
            return None
        if one.name and (names.setdefault(one.text, other.text) != other.text or
                         back.setdefault(other.text, one.text) != one.text):
            return None
    return names


class Sources:
    """The production code of a tree; each file is read once."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def read(self, path):
        if path not in self.known:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                text = file.read()
            self.known[path] = (text, tokens(text))
        return self.known[path]

    def files(self):
        found = glob.glob(os.path.join(self.root, "**/*.[ch]"), recursive=True)
        paths = sorted(os.path.relpath(path, self.root) for path in found)
        return [path for path in paths if not path.startswith(("build", "tests/"))]

    def matches(self, path, wanted):
        source, found = self.read(path)[1], []
        for at in range(len(source) - len(wanted) + 1):
            names = match_at(wanted, source, at)
            if names is not None:
                same = sum(old == new for old, new in names.items())
                score = same / len(names) if names else 1.0
                found.append(Place(path, source[at].start, source[at + len(wanted) - 1].end, names, score))
        return found

    def find(self, path, lines):
        """Finds the one place: first as written, in the named file or in any other; then renamed, likewise."""
        wanted = tokens(lines)
        here = self.matches(path, wanted) if os.path.exists(os.path.join(self.root, path)) else []
        exact = [place for place in here if place.score == 1]
        if len(exact) > 1:
            raise Lost(f"its original text is {len(exact)} times in {path}: add lines that stay")
        if exact:
            return exact[0]
        elsewhere = [place for other in self.files() if other != path for place in self.matches(other, wanted)]
        for places in ([place for place in elsewhere if place.score == 1], here, elsewhere):
            places = [place for place in places if place.score >= ENOUGH]
            best = max((place.score for place in places), default=0)
            places = [place for place in places if place.score == best]
            if len(places) == 1:
                return places[0]
            if places:
                where = ", ".join(sorted({place.file for place in places}))
                raise Lost(f"its original text is {len(places)} times in {where}: add lines that stay, or name the file\n{lines}")
        raise Lost(f"its original text is no longer in {path}, nor renamed anywhere:\n{lines}")

    def changed(self, place, new):
        """Returns the file's text with the new lines at the place, in the names that the source has there."""
        text = self.read(place.file)[0]
        made, at = [], 0
        for token in tokens(new):
            made += [new[at:token.start], place.names.get(token.text, token.text) if token.name else token.text]
            at = token.end
        return text[:place.start] + ("".join(made) + new[at:]).strip() + text[place.end:]


def renames(place):
    """Says which names differ at the place."""
    return ", ".join(f"{old} is {new}" for old, new in sorted(place.names.items()) if old != new)
