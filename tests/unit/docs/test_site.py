#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""The site of the documentation has every page, and its links lead to a heading in the tree and in the site, which name headings
differently. `make site` builds it with mkdocs, and looks at all links of what was built."""
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
# By its path, since Python has a module of the same name.
SPEC = importlib.util.spec_from_file_location("gpushare_site", os.path.join(ROOT, "make/site.py"))
SITE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SITE)


def headings(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)", text, re.M)]


def on_github(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def in_the_site(heading):
    """As Python's Markdown does it."""
    plain = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def links(text):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    return [link for _, link, _ in SITE.LINK.findall(text) if not re.match(r"[a-z]+:", link)]


class Site(unittest.TestCase):
    def test_every_page_stands_once_in_the_navigation(self):
        told = re.findall(r"^ +- [^:]+: ([\w.-]+\.md)$", SITE.text_of(os.path.join(ROOT, "docs/mkdocs.yml")), re.M)
        self.assertEqual(sorted(told), sorted(SITE.sources()), "docs/mkdocs.yml has the navigation")

    def test_links_of_the_tree_lead_to_a_heading(self):
        checked = 0
        for name, source in SITE.sources().items():
            for link in links(SITE.text_of(os.path.join(ROOT, source))):
                path, _, anchor = link.partition("#")
                target = os.path.join(ROOT, os.path.dirname(source), path) if path else os.path.join(ROOT, source)
                self.assertTrue(os.path.exists(target), f"{source}: {link}")
                if anchor:
                    found = headings(SITE.text_of(target))
                    self.assertIn(anchor, [on_github(heading) for heading in found], f"{source}: {link}")
                    self.assertIn(anchor, [in_the_site(heading) for heading in found], f"{name} in the site: {link}")
                    checked += 1
        self.assertGreater(checked, 100)

    def test_prepared_pages_have_all_that_they_lead_to(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
            subprocess.run([sys.executable, os.path.join(ROOT, "client/generate_man.py"), os.path.join(folder, "man/man3")], check=True)
            SITE.prepare(os.path.join(folder, "pages"))
            pages = glob.glob(os.path.join(folder, "pages/**/*.md"), recursive=True)
            self.assertGreater(len(pages), 60)
            for page in pages:
                text = SITE.text_of(page)
                found = links(text) + [link.replace(".html", ".md") for link in re.findall(r'href="([^"#]+)"', text)]
                for link in found:
                    path = link.partition("#")[0]
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), path)), f"{os.path.relpath(page, folder)}: {link}")
            configuration = SITE.text_of(os.path.join(folder, "mkdocs.yml"))
            for page in glob.glob(os.path.join(folder, "pages/man/*.md")):
                self.assertIn(f": man/{os.path.basename(page)}\n", configuration)

    def test_lists_are_written_as_the_site_needs_them(self):
        self.assertEqual(SITE.spaced(["words", "* one", "  more", "* two", "", "words"]), ["words", "", "* one", "    more", "* two", "", "words"])
        self.assertEqual(SITE.spaced(["1. one", "   * in it", "     more", "2. two"]), ["1. one", "    * in it", "        more", "2. two"])
        self.assertEqual(SITE.spaced(["* one", "", "  more", "* two", "* three"]), ["* one", "", "    more", "", "* two", "* three"])
        self.assertEqual(SITE.spaced(["```", "* no list", "  x", "```"]), ["```", "* no list", "  x", "```"])

    def test_a_link_that_leads_nowhere_is_found(self):
        with tempfile.TemporaryDirectory(prefix="gpushare-test-") as folder:
            for text, right in (('<h2 id="a">A</h2><a href="#a">', True), ('<h2 id="a">A</h2><a href="#b">', False), ('<a href="no.html">', False)):
                SITE.write(os.path.join(folder, "index.html"), text)
                done = subprocess.run([sys.executable, os.path.join(ROOT, "make/site.py"), "check", folder], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode == 0, right, done.stderr)


if __name__ == "__main__":
    unittest.main()
