"""What pages are made of, and from them to one HTML file without network."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prudent.evaluation.records import MethodRow, Sets
from prudent.io.errors import cut, unbroken
from prudent.plots.display import STYLE_FILE

# Drawn in this colour, shown in the colour of the text around it, light or dark.
INK = "#010203"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "prudent",
    # Rasters go into the page as they are, not resampled to the size of the figure.
    "image.interpolation": "none",
    "font.family": "DejaVu Sans",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
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
    with style.context(STYLE_FILE), rc_context(STYLE):
        yield


def on_axes(size: tuple[float, float], draw: Callable[[Axes], Any]) -> Figure:
    """A figure of so many inches with one pair of axes, on which is drawn."""
    figure = Figure(size, layout="constrained")
    draw(figure.subplots())
    return figure


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
    svg = _with_styled_marks(svg)
    svg = _with_short_identifiers(svg, name)
    svg = re.sub(r"<[^>]+>", _shorter_tag, svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = re.sub(r'<defs></defs>|<g/>|<path [^>]*style="fill: none"/>', "", svg)
    svg = _without_bare_groups(svg)
    svg = _with_groups(svg, "text", "style")
    svg = _with_groups(svg, "path", "clip-path")
    svg = _with_groups(svg, "path", "style")
    label = escape(description, quote=True)
    head = f'<svg role="img" aria-label="{label}" style="{TEXT_STYLE}"'
    return svg.replace("<svg", head, 1)


# What most texts of a figure look like: said once, for all of it.
TEXT_STYLE = "font-size: 9px; fill: currentColor"


def _with_styled_marks(svg: str) -> str:
    """Give each symbol the style that all its marks have, who then need none."""
    marks = r'(<use href="#([^"]+)"[^>]*?) style="([^"]*)"'
    styles: dict[str, set[str]] = {}
    for _, symbol, look in re.findall(marks, svg):
        styles.setdefault(symbol, set()).add(look)
    shared = {symbol: each.pop() for symbol, each in styles.items() if len(each) == 1}
    svg = re.sub(
        r'(<path id="([^"]+)"[^>]*?)(?: style="[^"]*")?/>',
        lambda path: (
            f'{path[1]} style="{shared[path[2]]}"/>' if path[2] in shared else path[0]
        ),
        svg,
    )
    return re.sub(marks, lambda use: use[1] if use[2] in shared else use[0], svg)


def _with_short_identifiers(svg: str, name: str) -> str:
    """Number what something refers to, after `name`; the other identifiers go."""
    used = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    short = {identifier: f"{name}-{n}" for n, identifier in enumerate(used)}
    svg = re.sub(
        r' id="([^"]+)"',
        lambda match: f' id="{short[match[1]]}"' if match[1] in short else "",
        svg,
    )
    return re.sub(
        r'(url\(#|href="#)([^)"]+)', lambda match: match[1] + short[match[2]], svg
    )


def _shorter_tag(tag: re.Match[str]) -> str:
    """Write an element with few letters.

    Coordinates keep hundredths of a point, from 100 points on tenths; lines follow
    lines without a letter; texts leave out what `TEXT_STYLE` says for all.
    """
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag[0])
    if "data:" in text:  # a picture
        return text
    text = re.sub(r"\d+\.\d+", lambda number: f"{round(float(number[0]), 2):.4g}", text)
    text = re.sub(r"\s+", " ", text)
    if text.startswith("<path") and not re.search(r" [CQ] ", text):
        text = text.replace(" L ", " ")
    if text.startswith("<text"):
        for part in TEXT_STYLE.split("; "):
            text = re.sub(rf'{part}(?:; |(?="))', "", text)
        text = re.sub(r'(?:; )?"', '"', text).replace(' style=""', "")
    return text


def _with_groups(svg: str, element: str, attribute: str) -> str:
    """Give an attribute that neighbours share to a group of them, which hands it on."""
    end = "[^>]*>(?:[^<]*</text>)?"
    first = rf'<{element}\b[^>]*?( {attribute}="[^"]*"){end}'
    others = rf"(?:<{element}\b[^>]*?\1{end})+"
    return re.sub(
        first + others, lambda run: f"<g{run[1]}>{run[0].replace(run[1], '')}</g>", svg
    )


def _without_bare_groups(svg: str) -> str:
    """Unwrap groups without attributes, which change nothing."""
    bare: list[bool] = []

    def kept(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return "" if bare.pop() else tag[0]
        bare.append(tag[0] == "<g>")
        return "" if bare[-1] else tag[0]

    return re.sub(r"<g(?: [^>]*)?>|</g>", kept, svg)


MOST_ROWS = 60
# Words of a verdict, and the colour that goes with them.
TONES = {"kept": "good", "broken": "bad", "drift": "bad"}


@dataclass(frozen=True)
class Answer:
    """What the page says first: the answer, what it rests on, and what to do."""

    verdict: str  # in one word or few
    tone: str  # "good", "bad" or "plain"
    sentences: Sequence[str]  # what to use, or what has happened
    assumption: str  # in everyday words
    not_promised: str
    command: str | None = None  # what to type next
    figures: str = ""  # as CSV, for the link that saves them


@dataclass(frozen=True)
class Table:
    """Cells of text under their columns."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of each names it
    omitted: int = 0  # rows left out of the page; they are in the data at its end
    note: str = ""  # how to read it


@dataclass(frozen=True)
class Section:
    """One section of the page; without rows in its first table it says `nothing`."""

    name: str  # anchor
    title: str
    sentences: Sequence[str]  # what there is to see, and how it was made
    draw: Callable[[], Figure] | None = None
    description: str = ""  # of the figure, for those who do not see it
    tables: Sequence[Table] = ()  # the numbers behind the figure
    nothing: str = ""
    sortable: bool = False  # the first table, by clicks on its headings
    explored: bool = False  # its table is shown, and a slider over the promise moves it
    folded: bool = False  # opened by a click, and left out of print until it is
    wide: bool = False  # takes the full width of the page

    @property
    def is_empty(self) -> bool:
        """Whether there are no numbers behind the figure."""
        return bool(self.draw and self.tables and not self.tables[0].rows)

    @cached_property
    def figure(self) -> str:
        """The figure as an SVG element, "" without one."""
        if self.draw is None:
            return ""
        with figure_style():
            return to_svg(self.draw(), self.name, self.description)


def first_rows(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int = MOST_ROWS,
) -> Table:
    """Return a table of at most `most` rows, which knows how many it leaves out."""
    return Table(caption, columns, rows[:most], omitted=max(0, len(rows) - most))


def shown_sets(row: MethodRow) -> Sets | None:
    """Sets of the wrapped method where a promise was asked for, else its own."""
    return row.sets if row.asked is None else row.asked.sets


LONGEST_NAME = 64

LONGEST_TEXT = 160


def page(
    title: str,
    answer: Answer,
    sections: Sequence[Section],
    data: dict[str, Any],
    *,
    print_all: bool = False,
) -> str:
    """Return one HTML document: the answer, then sections, and data for programs.

    With `print_all` nothing is folded, so that all of it is printed.
    """
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return rendered(
        "template.html",
        title=cut(title, LONGEST_NAME),
        answer=answer,
        tables_as_csv=Markup(answer.figures.replace("<", "\\u003c")),
        sections=sections,
        print_all=print_all,
        script=Markup(script),
        script_digest=digest,
        style=Markup(_resource("style.css")),
        data=Markup(_embedded(data)),
    )


def rendered(template: str, **values: Any) -> str:
    """A template of this folder with its values, text of which is escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("prudent.report", "."),
        autoescape=True,
        finalize=_on_one_line,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # As the standard library escapes, so that a card is the same byte by byte.
    environment.filters["escaped"] = lambda text: Markup(escape(text))
    return environment


def _on_one_line(value: Any) -> Any:
    """Text of the page with no line end inside a figure; markup as it is."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return unbroken(value) if is_text else value


def _resource(name: str) -> str:
    return (files("prudent.report") / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it is in; texts cut, figures to 6 digits."""
    text = json.dumps(_compact(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _compact(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    if isinstance(value, float):
        rounded = float(f"{value:.6g}")
        return int(rounded) if rounded.is_integer() else rounded
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
