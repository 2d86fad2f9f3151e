"""Matplotlib figures as SVG to be put into a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

# Drawn in this colour, shown in the colour of the text around it, light or dark.
INK = "#010203"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "prudent",
    # Rasters go into the page as they are, not resampled to the size of the figure.
    "image.interpolation": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "savefig.transparent": True,
}
NO_METADATA: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def figure_style() -> Iterator[None]:
    """Settings under which the figures of a report are drawn and saved."""
    with rc_context(STYLE):
        yield


def to_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an inline SVG element with a text alternative.

    The same figure gives the same bytes. Identifiers get the prefix `name`, so
    that several figures fit in one page; those that nothing refers to go.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=NO_METADATA, bbox_inches="tight")
    return _for_page(buffer.getvalue(), name, description)


def _for_page(document: str, name: str, description: str) -> str:
    """Turn a stand-alone SVG document into a small element of an HTML page."""
    svg = document[document.index("<svg") :].strip()
    # The style sheet of the page says this for all figures; here it would leak.
    svg = re.sub(r"<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"', "", svg)
    svg = svg.replace("xlink:href", "href").replace(INK, "currentColor")
    svg = svg.replace("font-family: 'DejaVu Sans'; ", "")
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"',
        lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "",
        svg,
    )
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"<[^>]+>", _shorter_tag, svg)
    svg = re.sub(r">\s+<", "><", svg).replace("<defs></defs>", "")
    svg = _without_bare_groups(svg)
    label = escape(description, quote=True)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _shorter_tag(tag: re.Match[str]) -> str:
    """Cut coordinates to hundredths of a point, and rotations by nothing."""
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag[0])
    if "data:" in text:  # a picture
        return text
    text = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", text)
    return re.sub(r"\s+", " ", text)


def _without_bare_groups(svg: str) -> str:
    """Unwrap groups without attributes, which change nothing."""
    bare: list[bool] = []

    def kept(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return "" if bare.pop() else tag[0]
        bare.append(tag[0] == "<g>")
        return "" if bare[-1] else tag[0]

    return re.sub(r"<g(?: [^>]*)?>|</g>", kept, svg)
