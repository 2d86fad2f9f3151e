"""The report as a browser lays it out and prints it; Chromium alone is enough."""

import json
import re
import shutil
import subprocess

import pytest
from sklearn.datasets import load_breast_cancer

from prudent import compare

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Cells and verdicts that are cut, whether the page is too wide, rows that are shown.
MEASURE = """
<script>
addEventListener("load", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const button of document.querySelectorAll("button.more")) button.click();
  const cut = [...document.querySelectorAll("th, td, .verdict, .card p, .card dd")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
    .map((e) => e.textContent);
  const shown = (table) => [...table.tBodies[0].rows].filter((r) => r.offsetParent);
  const board = document.querySelector("table.shortened");
  const rows = shown(board).length;
  document.querySelector("button.more")?.click();
  parent.postMessage({
    cut, rows, folded: shown(board).length,
    wide: document.documentElement.scrollWidth - innerWidth,
    note: document.querySelector("caption .paper").textContent,
    saved: document.querySelectorAll("a.save:not([hidden])").length,
  }, "*");
});
</script>
"""
AROUND = """<!DOCTYPE html>
<iframe src="inside.html" width="{width}" height="900"></iframe>
<pre id="said"></pre>
<script>
addEventListener("message", (event) => {{
  document.getElementById("said").textContent = JSON.stringify(event.data);
}});
</script>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A comparison under a promise that not all methods keep, as a page."""
    X, y = load_breast_cancer(return_X_y=True)
    methods = ("minimax", "optimistic", "imprecise")
    found = compare(X, y, methods=methods, promise="error <= 5%")
    return found.save_report(tmp_path_factory.mktemp("page") / "report.html")


def chromium(folder, *arguments):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_on_a_screen(report, tmp_path, width):
    page = report.read_text(encoding="utf-8")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    (tmp_path / "inside.html").write_text(page + MEASURE, encoding="utf-8")
    around = tmp_path / "around.html"
    around.write_text(AROUND.format(width=width), encoding="utf-8")
    wait = "--virtual-time-budget=4000"
    shown = chromium(
        tmp_path, "--window-size=1400,1000", wait, "--dump-dom", around.as_uri()
    )
    said = json.loads(re.search(r'<pre id="said">(.*?)</pre>', shown, re.S)[1])
    assert said["cut"] == []
    assert said["wide"] <= 0
    assert (said["folded"], said["saved"]) == (3, 2)
    assert said["rows"] > 3
    assert said["note"] == f" (the first three of {said['rows']})"


def pages_of(report, folder):
    pdf = folder / "report.pdf"
    chromium(folder, f"--print-to-pdf={pdf}", report.as_uri())
    return len(re.findall(rb"/Type\s*/Page[^s]", pdf.read_bytes()))


def test_it_prints_on_two_or_three_pages(report, tmp_path):
    """What follows the answer begins on its page, and does not leave it half empty."""
    assert 2 <= pages_of(report, tmp_path) <= 3


def test_all_methods_print_on_four_pages_and_more_where_nothing_is_folded(
    comparison, tmp_path
):
    folded = comparison.save_report(tmp_path / "folded.html")
    assert 2 <= pages_of(folded, tmp_path) <= 4
    whole = comparison.save_report(tmp_path / "whole.html", print_all=True)
    assert pages_of(whole, tmp_path) > 6
