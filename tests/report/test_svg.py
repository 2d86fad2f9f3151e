import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from prudent.report.page import INK, _shorter_tag, figure_style, to_svg


@pytest.fixture
def figure():
    with figure_style():
        figure = Figure(figsize=(3, 2))
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], marker="o", label="<b>&$x$")
        ax.imshow(np.eye(3), extent=(0, 1, 0, 1))
        ax.legend()
    return figure


@pytest.fixture
def svg(figure):
    with figure_style():
        return to_svg(figure, "one", 'a "quoted" <line>')


def test_element_is_well_formed(svg):
    assert ElementTree.fromstring(svg).tag == "svg"


def test_description_is_the_accessible_name(svg):
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "quoted" <line>'


def test_text_stays_text_and_is_not_typeset(svg):
    texts = [element.text for element in ElementTree.fromstring(svg).iter("text")]
    assert "<b>&$x$" in texts


def test_ink_takes_the_colour_of_the_page(svg):
    assert INK not in svg
    assert "currentColor" in svg


def test_identifiers_carry_the_name_and_are_all_used(svg):
    names = set(re.findall(r' id="([^"]+)"', svg))
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))
    assert names == used
    assert all(name.startswith("one-") for name in names)


def test_style_sheet_and_namespaces_are_gone(svg):
    assert "<style" not in svg
    assert "xmlns" not in svg


def test_pictures_are_embedded_unscaled(svg):
    (image,) = re.findall(r"<image [^>]*>", svg)
    assert 'width="3"' in image
    assert "data:image/png;base64" in image


def test_same_figure_gives_the_same_bytes(figure, svg):
    with figure_style():
        assert to_svg(figure, "one", 'a "quoted" <line>') == svg


def test_marks_leave_their_style_to_their_symbol(svg):
    """Ticks and points, of which there are many, say only where they are."""
    assert svg.count("<use ") > 10
    assert not re.search("<use [^>]*style=", svg)
    symbols = re.findall(r'<path id="[^"]*"[^>]*style="([^"]*)"', svg)
    assert any("fill: #" in style for style in symbols)


def test_neighbours_share_a_group(figure):
    with figure_style():
        ax = Figure(figsize=(3, 2)).subplots()
        ax.bar(range(9), range(1, 10), color="#aa4499")
        svg = to_svg(ax.figure, "one", "bars")
    assert svg.count("fill: #aa4499") == 1
    assert svg.count("<g") == svg.count("</g>")
    ElementTree.fromstring(svg)


@pytest.mark.parametrize(
    ("tag", "short"),
    [
        ('<path d="M 1.2345 250.126 L 3.0 4.0 L 5 6 "/>', "M 1.23 250.1 3 4 5 6 "),
        ('<path d="M 1 2 L 3 4 C 5 6 7 8 9 9 L 1 1 z "/>', " L 3 4 C "),
        ('<path d="M 0 -0.6666 L -12.3449 0.004 "/>', "M 0 -0.67 -12.34 0 "),
    ],
)
def test_paths_are_the_same_lines(tag, short):
    assert short in re.sub(r"<[^>]+>", _shorter_tag, tag)
