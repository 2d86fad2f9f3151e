"""The page that sets other libraries beside ours."""

from __future__ import annotations

HEAD = """\
Other libraries, side by side
=============================

Written by ``python -m experiments --peers`` after ``pip install 'prudent[peers]'``, on
four bundled data sets and, where ``PRUDENT_DATA`` names their folder, on stored ones.
Every method sees the same folds.
"""

GROUPS = {
    "peers": (
        "What was measured",
        "Read the columns of promises before those of scores: a method that promises "
        "more has less to spend on being right.",
    ),
}
