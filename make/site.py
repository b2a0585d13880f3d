#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""usage: site.py prepare PAGES | check SITE

prepare  write the folder PAGES, from which mkdocs builds the site: the pages of docs/, README.md and HACKING.md, the files to which they
         lead, the manual pages, and mkdocs.yml beside the folder. PAGES/../man/man3 has the manual pages of the library
check    see that each link of the built site leads to a file, and to a place in it if it names one"""
import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
# Pages that stand elsewhere in the tree under another name.
RENAMED = {"README.md": "index.md", "HACKING.md": "hacking.md"}
LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\]\()([^)\s]+)(\))")
MARKER = re.compile(r"(?:[*-]|\d+\.) +")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- the pages ----------------------------------------------------------------------------------------
def sources():
    """{name in the site: path in the tree} of the pages."""
    found = {os.path.basename(path): os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs/*.md"))}
    return {**found, **{name: path for path, name in RENAMED.items()}}


def place_of(path):
    """Where a file of the tree stands in the site. A file outside of docs/ keeps its path, below files/."""
    if path in RENAMED:
        return RENAMED[path]
    return path[len("docs/"):] if path.startswith("docs/") else "files/" + path


def led(target, source, needed):
    """A link of a page as the site has it. The file to which it leads is added to `needed`."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(source), path))
    if os.path.isdir(os.path.join(ROOT, path)):
        return None
    if not os.path.exists(os.path.join(ROOT, path)):
        sys.exit(f"make/site.py: {source} leads to {path}, which is not there")
    needed.add(path)
    return place_of(path) + ("#" + anchor if anchor else "")


def spaced(lines):
    """Lists as Python's Markdown wants them: an empty line before, also behind an item of several paragraphs, and four columns
    for each level."""
    out, levels, code, apart = [], [], False, True
    for line in lines:
        bare = line.lstrip()
        indent = len(line) - len(bare)
        if bare.startswith("```"):
            code = not code
        marker = MARKER.match(bare) if not code else None
        apart = apart or not levels or not bare
        while levels and bare and not code and indent < levels[-1]:
            levels.pop()
        if marker and (levels or indent < 4):
            if apart and out and out[-1].strip():
                out.append("")
            apart = False
            out.append("    " * len(levels) + bare)
            levels.append(indent + len(marker[0]))
        elif levels and bare and (indent >= levels[-1] or code):
            out.append("    " * len(levels) + line[levels[-1]:])
        else:
            out.append(line)
    return out


def page_of(source, needed):
    """A page's text for the site."""
    parts = re.split(r"(^```.*?^```$)", text_of(os.path.join(ROOT, source)), flags=re.M | re.S)

    def link(found):
        target = led(found[2], source, needed)
        return found[1] + target + found[3] if target else re.sub(r"^!?\[|\]\($", "", found[1])

    for at in range(0, len(parts), 2):
        parts[at] = LINK.sub(link, parts[at])
    return "\n".join(spaced("".join(parts).split("\n")))


def manual(path):
    """A manual page as a page of the site, or None if it only leads to another one."""
    if text_of(path).startswith(".so "):
        return None
    made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", path], capture_output=True, text=True, check=True).stdout
    name, _, number = os.path.basename(path).rpartition(".")
    made = re.sub(r"<(/?)h([12])\b", lambda tag: f"<{tag[1]}h{int(tag[2]) + 1}", made)
    return f"# {name}({number})\n\n<div>\n{re.sub(chr(10) + '+', chr(10), made)}</div>\n"


def prepare(folder):
    shutil.rmtree(folder, ignore_errors=True)
    needed = set()
    for name, source in sources().items():
        write(os.path.join(folder, name), page_of(source, needed))
    for path in sorted(needed - set(sources().values())):
        to = os.path.join(folder, place_of(path))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, path), to)
    names, aliases = [], {}
    above = os.path.dirname(os.path.abspath(folder))
    for path in sorted(glob.glob(os.path.join(ROOT, "docs/man/*.[1-9]")) + glob.glob(os.path.join(above, "man/man3/*.3"))):
        text = manual(path)
        if text:
            names.append(os.path.basename(path))
            write(os.path.join(folder, "man", names[-1] + ".md"), text)
        else:
            aliases[os.path.basename(path)] = re.match(r"\.so man\d/(\S+)", text_of(path))[1]
    for name in names:  # a name that stands on another page leads there
        at = os.path.join(folder, "man", name + ".md")
        write(at, re.sub(r'href="([^"]+)\.html"', lambda link: f'href="{aliases.get(link[1], link[1])}.html"', text_of(at)))
    names.sort(key=lambda name: (name.endswith(".3"), name))
    rows = "".join(f"      - {name.rpartition('.')[0]}({name[-1]}): man/{name}.md\n" for name in names)
    write(os.path.join(above, "mkdocs.yml"), text_of(os.path.join(ROOT, "docs/mkdocs.yml")) +
          f"  - Manual pages:\n{rows}docs_dir: {os.path.abspath(folder)}\n")


# ---- the built site -----------------------------------------------------------------------------------
class Places(html.parser.HTMLParser):
    """The links of a page, and the places in it that have a name."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def check(site):
    pages = {path: Places(text_of(path)) for path in glob.glob(os.path.join(site, "**/*.html"), recursive=True)}
    wrong, seen = [], 0
    for path, page in pages.items():
        if os.path.basename(path) == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not os.path.exists(target) or (anchor and target in pages and anchor not in pages[target].names):
                wrong.append(f"{os.path.relpath(path, site)}: {link}")
    if wrong or not seen:
        sys.exit("\n".join(["make/site.py: links that lead nowhere:"] + sorted(set(wrong))))
    print(f"{len(pages)} pages, {seen} links")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "check"):
        sys.exit(__doc__)
    (prepare if sys.argv[1] == "prepare" else check)(sys.argv[2])
