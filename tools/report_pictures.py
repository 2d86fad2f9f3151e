"""Photograph a report and an explorer with Chromium: docs/images/report.png, start.png.

The figures behind them are those of `breast_cancer`: of two methods and the baselines
under one promise, and of a model that is held against the rows that it has not seen.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

import prudent

FOLDER = Path(__file__).parents[1] / "docs" / "images"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-sync"),
    "--disable-component-update",
)
ASKED = ("--promise", "error <= 5%")
TARGET = ("--target", "diagnosis")
# The answer card of the one and the explorer of the other, as they are seen first.
BESIDE = """<!DOCTYPE html>
<style>
body { margin: 0; display: flex; gap: 16px; background: white; }
div { overflow: hidden; border: 1px solid #bbb; border-radius: 6px; height: 582px; }
iframe { border: 0; height: 624px; width: 700px; }
/* No taller than the explorer, so that nothing stands above its heading. */
div + div iframe { width: 560px; height: 500px; padding-top: 12px; }
</style>
<div><iframe src="report.html"></iframe></div>
<div><iframe src="certificate.html#explorer"></iframe></div>
"""


def run(folder, *arguments):
    """Run a command in the folder."""
    subprocess.run(
        [sys.executable, "-m", "prudent", *arguments], cwd=folder, check=True
    )


def write_pages(folder):
    """The report of a comparison, and the certificate of a model with its explorer."""
    run(
        *(folder, "compare", "breast_cancer", *ASKED),
        *("--methods", "minimax,calibrated", "--report", "report.html"),
    )
    bundled = Path(prudent.__file__).parent / "bundled" / "breast_cancer.csv.gz"
    table = pd.read_csv(bundled).sample(frac=1, random_state=0)
    table[:340].to_csv(folder / "table.csv", index=False)
    table[340:].to_csv(folder / "fresh.csv", index=False)
    run(
        *(folder, "fit", "table.csv", *TARGET, "--method", "logistic", *ASKED),
        *("-o", "model.prudent"),
    )
    run(
        *(folder, "certify", "fresh.csv", "-m", "model.prudent", *TARGET),
        *("--thresholds", "limits.json", "--report", "certificate.html"),
    )


def photograph(folder, page, size, name):
    """A page as Chromium shows it in a window of this size."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium is not installed: it takes the pictures.")
    subprocess.run(
        [
            *(browser, *FLAGS, f"--user-data-dir={folder / 'profile'}"),
            *(f"--window-size={size}", f"--screenshot={FOLDER / name}"),
            (folder / page).as_uri(),
        ],
        check=True,
        capture_output=True,
    )


def main():
    """Write the pages to a folder of their own, and photograph them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pages(folder)
        (folder / "beside.html").write_text(BESIDE, encoding="utf-8")
        photograph(folder, "report.html", "1280,1500", "report.png")
        photograph(folder, "beside.html", "1280,584", "start.png")


if __name__ == "__main__":
    main()
