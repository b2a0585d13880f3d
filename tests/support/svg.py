# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
"""A drawing of boxes, lines and texts as an SVG file.

Why our own: the standard library's XML writer does the writing. matplotlib would bring numpy and some
twenty packages more for bars and labels."""
from xml.etree import ElementTree

SPACE = "http://www.w3.org/2000/svg"


def printable(text):
    """XML has no control characters, and names in a trace are clients' own."""
    return "".join(c if c >= " " else " " for c in text)


class Drawing:
    def __init__(self, width, height, font_size, description=None, background="white"):
        self.root = ElementTree.Element("svg", {"xmlns": SPACE, "width": str(width), "height": str(height),
                                                "viewBox": f"0 0 {width} {height}", "font-family": "sans-serif",
                                                "font-size": str(font_size)})
        if description:
            self.add("desc").text = printable(description)
        self.add("rect", width="100%", height="100%", fill=background)

    def add(self, kind, **attributes):
        """Numbers are rounded to a tenth, names of attributes written with _ for -."""
        values = {name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
                  for name, value in attributes.items()}
        child = ElementTree.SubElement(self.root, kind, values)
        child.tail = "\n"
        return child

    def text(self, x, y, text, **attributes):
        self.add("text", x=x, y=y, **attributes).text = printable(text)

    def box(self, x, y, width, height, colour, opacity=1):
        """A box of no width is still seen. Places along the axis are to a hundredth: many boxes touch."""
        shade = {"fill_opacity": f"{opacity:.2f}"} if opacity < 1 else {}
        self.add("rect", x=f"{x:.2f}", y=y, width=f"{max(width, 0.25):.2f}", height=height, fill=colour, **shade)

    def write(self, path):
        ElementTree.ElementTree(self.root).write(path, encoding="unicode")
