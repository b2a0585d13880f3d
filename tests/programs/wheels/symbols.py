#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""Which of CUDA's symbols a wheel on PyPI leaves undefined, with the version nodes that its libraries ask for.

    symbols.py PACKAGE VERSION      the symbols, a line each, on standard output; needs the network, binutils and some minutes

Only the bytes of the wheel's libraries are fetched, and nothing of them is kept. tests/integration/test_wheels.py holds the
libraries that gpushare builds against the lists in this folder.
"""
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

PIECE = 16 << 20
# Of the driver and of the runtime; neither of the libraries above them nor of NVIDIA's file library.
SYMBOL = re.compile(r"(__cuda|cuda|cu)[A-Z]\w*(@libcudart\.so\.\d+)?$")
OTHERS = re.compile(r"cu(File|pti|blas|dnn|fft|rand|sparse|solver)")


class Remote:
    """A file that a server hands out in pieces, as zipfile reads it."""

    def __init__(self, url, size):
        self.url, self.size, self.at = url, size, 0
        self.piece, self.piece_at = b"", 0

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def read(self, count=-1):
        end = self.size if count < 0 else min(self.size, self.at + count)
        found = []
        while self.at < end:
            if not self.piece_at <= self.at < self.piece_at + len(self.piece):
                self.piece_at = self.at
                last = min(self.size, self.at + PIECE) - 1
                request = urllib.request.Request(self.url, headers={"Range": f"bytes={self.at}-{last}"})
                with urllib.request.urlopen(request, timeout=300) as answer:
                    if answer.status != 206:
                        sys.exit(f"symbols.py: {self.url} is not handed out in pieces")
                    self.piece = answer.read()
            found.append(self.piece[self.at - self.piece_at:end - self.piece_at])
            self.at += len(found[-1])
        return b"".join(found)


def find_wheel(package, version):
    request = urllib.request.Request(f"https://pypi.org/simple/{package}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        files = json.load(answer)["files"]
    fits = re.compile(rf"{re.escape(package)}-{re.escape(version)}-cp312-cp312-manylinux.*x86_64\.whl$")
    for file in files:
        if fits.match(file["filename"]):
            return file
    sys.exit(f"symbols.py: PyPI has no wheel of {package} {version} for CPython 3.12 and x86-64")


def undefined(library):
    said = subprocess.run(["nm", "-D", "-u", "--with-symbol-versions", library], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in said.splitlines()}
    return {name for name in names if SYMBOL.match(name) and not OTHERS.match(name)}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel = find_wheel(*sys.argv[1:])
    names = set()
    with zipfile.ZipFile(Remote(wheel["url"], wheel["size"])) as archive:
        for member in archive.infolist():
            if not re.search(r"\.so(\.\d+)*$", member.filename):
                continue
            with tempfile.NamedTemporaryFile() as out, archive.open(member) as library:
                while piece := library.read(PIECE):
                    out.write(piece)
                out.flush()
                names |= undefined(out.name)
    print(f"# {wheel['filename']}", *sorted(names), sep="\n")


if __name__ == "__main__":
    main()
