# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Reads metrics as text, strictly: what Prometheus would only skip fails here."""
import re

LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|\+?Inf|NaN))$')
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",), "info": ("_info",)}


def unescape(value):
    return re.sub(r"\\(.)", lambda match: "\n" if match.group(1) == "n" else match.group(1), value)


class Exposition:
    """types: {family: type}. samples: {(sample's name, ((label, value), ...)): value}, with labels in order of their names."""

    def __init__(self, text, openmetrics=False):
        self.types, self.samples, self.units = {}, {}, {}
        assert text.endswith("\n"), "the last line has no end"
        lines = text[:-1].split("\n")
        assert (lines[-1] == "# EOF") == openmetrics, lines[-1]
        family = None
        for line in lines[:-1] if openmetrics else lines:
            if line.startswith("# "):
                kind, name, rest = line[2:].split(" ", 2)
                if kind == "HELP":
                    assert name not in self.types and rest.endswith("."), line
                elif kind == "TYPE":
                    assert name not in self.types, f"{name} has two parts"
                    self.types[name], family = rest, name
                else:
                    assert (kind, name) == ("UNIT", family) and openmetrics and name.endswith("_" + rest), line
                    self.units[name] = rest
            else:
                self._sample(line, family, openmetrics)

    def _sample(self, line, family, openmetrics):
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        of = self.types[family]
        assert name in ([family + suffix for suffix in SUFFIXES[of]] if openmetrics or of == "histogram" else [family]), line
        found, at = [], 0
        while labels and at < len(labels):
            label = LABEL.match(labels, at)
            assert label, line
            found.append((label.group(1), unescape(label.group(2))))
            at = label.end()
        key = name, tuple(sorted(found))
        assert key not in self.samples and len(dict(found)) == len(found), f"twice: {line}"
        self.samples[key] = float(value)

    def of(self, name, /, **labels):
        """{labels: value} of the samples of this name that have these labels."""
        return {key[1]: value for key, value in self.samples.items()
                if key[0] == name and set(labels.items()) <= set(key[1])}

    def one(self, name, /, **labels):
        found = list(self.of(name, **labels).values())
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0]
