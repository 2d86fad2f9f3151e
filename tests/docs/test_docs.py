"""Every script and every code block of the documentation runs."""

import ast
import doctest
import gzip
import itertools
import random
import re
import runpy
import shlex
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits

import prudent
from prudent.certification import error_boundary
from prudent.cli.app import _run
from prudent.core.binomial import fewest_rows, most_wrong
from prudent.datasets import BUNDLED
from prudent.evaluation.promising import rows_needed
from prudent.io import read_table, training_data
from prudent.io.table import MISSING_WORDS
from prudent.plots.display import STYLE_FILE
from prudent.rules.wish import parse_promise

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


def _name(path):
    return path.stem


@pytest.fixture(autouse=True)
def headless():
    plt.switch_backend("agg")
    plt.close("all")
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example_runs_and_draws_one_figure(script, capsys):
    plt.style.use(STYLE_FILE)  # as the gallery does
    runpy.run_path(str(script))
    assert len(plt.get_fignums()) == 1
    figure = plt.gcf()
    figure.draw_without_rendering()
    for ax in figure.axes:
        bars = [patch.get_window_extent() for patch in ax.patches]
        for words in ax.texts:
            if words.get_text() and words.get_color() == "white":
                place = words.get_window_extent()
                inside = (
                    bar.containsx(place.x0) & bar.containsx(place.x1) for bar in bars
                )
                assert any(inside), words.get_text()


@pytest.mark.parametrize("script", TUTORIALS, ids=_name)
def test_tutorial_runs_and_draws(script, capsys):
    runpy.run_path(str(script))
    assert plt.get_fignums()


@pytest.mark.parametrize("script", [*EXAMPLES, *TUTORIALS], ids=_name)
def test_axes_are_drawn_on_in_the_cell_that_makes_them(script):
    """The gallery shows a figure as it is at the end of its cell."""
    before = set()
    for cell in script.read_text(encoding="utf-8").split("\n# %%\n"):
        tree = ast.parse(cell)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        made = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and "plt." in ast.unparse(node.value)
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        assert not used & before - made
        before |= made - {"_"}


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example_fits_on_one_screen(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 40


def test_gallery_has_a_dozen_examples():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize(
    "page",
    [page for page in DOCS.rglob("*.rst") if ">>> " in page.read_text("utf-8")],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_code_of_page_gives_the_output_shown(page):
    result = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert result.attempted > 0
    assert result.failed == 0


def test_readme_code_prints_what_the_readme_shows(capsys):
    """The guarantee, the certificate and the shares in the sentence below them."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, rest = readme.split("```python\n")[1].split("```", 1)
    names: dict = {}
    exec(code, names)
    quoted = rest.split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out.split() == quoted.split()

    model, X_new, y_new = (names[name] for name in ("model", "X_new", "y_new"))
    answered = names["answers"].sum(axis=1) == 1
    labels = model.classes_[names["answers"].argmax(axis=1)]
    wrong = (labels != y_new)[answered].mean()
    alone = 1 - names["mine"].fit(names["X"], names["y"]).score(X_new, y_new)
    shown = " ".join(rest.split("```", 2)[2].split("## ")[0].split())
    for share in (alone, answered.mean(), wrong):
        assert f"{100 * share:.1f} %" in shown
    assert f"{answered.sum()} answers are few" in shown

    # Rows in the order of the file are no draws from one population.
    X, y = load_digits(return_X_y=True)
    in_order = names["model"].fit(X / 16, y, time=np.arange(len(y)))
    assert "in the order of this file they change" in shown
    assert in_order.order_test_.p_value < 0.01

    # The picture of the start page shows the same model, of 100 rows.
    page = " ".join((DOCS / "index.rst").read_text(encoding="utf-8").split())
    wrong_of_all = wrong * answered.mean()
    right, left = answered.mean() - wrong_of_all, 1 - answered.mean()
    counts = [f"{100 * s:.0f}" for s in (1 - alone, alone, right, wrong_of_all, left)]
    alt = "Alone: {} right, {} wrong. With the promise: {} right, {} wrong, {} handed"
    assert alt.format(*counts) in page
    assert f"A model on {len(answered)} rows that are new to it" in page


def test_start_page_comes_to_its_first_output_in_150_words():
    page = (DOCS / "index.rst").read_text(encoding="utf-8")
    assert len(page.split("The selective error rate")[0].split()) <= 150


def test_start_page_shows_a_report_and_explains_its_words_at_their_first_use():
    page = (DOCS / "index.rst").read_text(encoding="utf-8")
    report = page.split(".. figure:: ")[2]
    assert (DOCS / report.split()[0]).is_file()
    assert report.split(":target: ")[1].split()[0] == "report.html"  # docs/conf.py
    words = " ".join(page.split(":width: 100%")[2].split())
    assert words.split("``best``")[1].startswith(" is the method that it picks")
    assert words.split("e-value")[1].startswith(" is the evidence against the promise")


def test_ten_minutes_quote_what_their_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # whatever the runner of the tests has
    with gzip.open(BUNDLED["breast_cancer"].path, "rt") as stream:
        head, *rows = stream.read().splitlines()
    random.Random(0).shuffle(rows)
    parts = {"table.csv": rows[:340], "fresh.csv": rows[340:460], "new.csv": rows[460:]}
    for name, part in parts.items():
        Path(name).write_text("\n".join([head, *part]))
    page = (DOCS / "index.rst").read_text(encoding="utf-8").replace("\\\n", " ")
    assert "breast_cancer``, its rows shuffled and cut into ``table.csv``" in page
    for word in ("fit", "certify", "monitor"):
        command, *shown = page.split(f"$ prudent {word} ")[1].split("\n")
        quoted = [line.strip() for line in itertools.takewhile(bool, shown)]
        quoted = list(itertools.takewhile(lambda line: line[0] != "$", quoted))
        assert quoted
        assert _run([word, *shlex.split(command)], debug=False) == 0
        printed = " ".join(capsys.readouterr().out.split())
        for line in quoted:
            assert " ".join(line.split()) in printed


def test_start_page_leads_to_other_libraries_and_to_what_is_better():
    page = (DOCS / "index.rst").read_text(encoding="utf-8")
    beside = page.split("Beside other libraries")[1].split("Ten minutes")[0]
    for picture in ("conformal_sizes.svg", "guide_alarms.svg"):
        assert f"images/{picture}" in beside
    for target in (":doc:`peers`", ":doc:`audit`", "<something_else>"):
        assert target in beside


def test_figures_of_the_advice_on_detectors_are_those_of_the_peers_page():
    peers = (DOCS / "peers.rst").read_text(encoding="utf-8")
    methods = (DOCS / "methods.rst").read_text(encoding="utf-8")
    peer, own = re.search(r"\((0\.\d+) for (0\.\d+): :doc:`peers`\)", methods).groups()
    assert f"a kernel density with a held-out cut: {peer}" in peers
    assert f"``LowDensityRejector``: {own}" in peers


def test_figures_about_peers_in_prose_are_those_of_the_peers_page():
    def words(name):
        return " ".join((DOCS / name).read_text(encoding="utf-8").split())

    peers, coming = words("peers.rst"), words("coming_from.rst")
    conformal = words("user_guide/conformal.rst")
    ours = re.search(r"promises them and missed (0\.\d+)", peers)[1]
    knn, knn_cut = re.search(
        r"KNN (0\.\d+) without a promise, (0\.\d+) with a held-out cut", peers
    ).groups()
    assert f"({ours}, ``KNN`` {knn})" in coming
    assert f"it missed {ours[1:]} of the strangers" in conformal
    assert f"misses {knn[1:]} without a promise and {knn_cut[1:]} with" in conformal
    own, own_size = re.search(r"covers (0\.\d+) with (1\.\d+) classes", peers).groups()
    other, other_size = re.search(
        r"around a quadratic rule: (0\.\d+) with (1\.\d+)", peers
    ).groups()
    assert (
        f"covered {100 * float(other):.0f} % with {other_size} classes, the "
        f"imprecise sets {100 * float(own):.0f} % with {own_size}."
    ) in coming


def test_every_public_name_is_in_the_reference():
    page = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = {line.strip() for line in page.splitlines() if line.startswith("   ")}
    assert set(prudent.__all__) - {"__version__"} <= listed


def test_one_sentence_says_everywhere_what_this_is():
    sentence = "Make any classifier keep a promise, and know when it stops"
    assert prudent.__doc__ == f"{sentence}."
    for name in ("README.md", "docs/index.rst", "pyproject.toml", "CITATION.cff"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert sentence[1:] in text, name


@pytest.mark.slow
def test_getting_started_quotes_the_table_of_iris():
    comparison = _compare_bundled("iris")
    page = (DOCS / "getting_started.rst").read_text(encoding="utf-8")
    table = page.split("$ prudent compare iris\n")[1].split("Use best")[0]
    lines = {line.split()[0]: line for line in table.splitlines() if line.strip()}
    for method, *cells, _time in comparison.leaderboard():
        shown = {"nothing answered": "nothing"}  # goes on in the next line
        assert all(shown.get(cell, cell) in lines[method] for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_page_of_methods_quotes_the_measured_errors(name):
    rows = _compare_bundled(name, promise="none").rows
    page = (DOCS / "methods.rst").read_text(encoding="utf-8")
    heads = page.split("   * - table\n")[1].split("\n   * - ")[0]
    quoted = page.split(f"   * - {name},")[1].split("\n   * - ")[0]
    columns = (re.findall(r"^     - (.*)$", part, re.M) for part in (heads, quoted))
    cells = dict(zip(*columns, strict=True))
    best = next(row for row in rows if row.is_baseline)
    assert cells.pop("best baseline") == f"{best.method} {best.error:.3f}"
    said = {row.method: row for row in rows if not row.is_baseline}
    assert said.keys() == cells.keys()
    for method, row in said.items():
        first, *more = re.split(", |: ", cells[method])
        assert first == f"{row.error:.3f}", method
        if method in ("imprecise", "optimistic", "minimax") and more:
            assert more[-1] == f"{100 * row.sets.undecided:.0f} % undecided", method
        if method == "minimax":
            assert more[0] == f"promised {row.worst_own.guarantee.bound:.3f}"
            assert more[1:-1] in ([row.own_kept], [])


def _compare_bundled(name, **options):
    table = BUNDLED[name]
    data = training_data(read_table(str(table.path)), target=table.target)
    return prudent.compare(data.X, data.y, **options)


GUIDE = sorted(
    page.stem
    for page in (DOCS / "user_guide").glob("*.rst")
    if page.stem != "shared"  # parameters that several families have
)


@pytest.mark.parametrize("page", GUIDE)
def test_guide_says_it_in_words_first(page):
    text = (DOCS / "user_guide" / f"{page}.rst").read_text(encoding="utf-8")
    _, words = re.split(r"\nIn words\n(?:========|--------)\n", text)
    assert len(re.split(r"\n[^\n]+\n(?:={3,}|-{3,})\n", words)[0].split()) <= 110


@pytest.mark.parametrize("page", GUIDE)
def test_guide_has_a_picture_before_its_words(page):
    text = (DOCS / "user_guide" / f"{page}.rst").read_text(encoding="utf-8")
    before = text.split("\nIn words\n")[0]
    (picture,) = [s for s in before.split() if s.endswith(".svg")]
    assert (DOCS / "user_guide" / picture).resolve().is_file()
    assert ":alt:" in before


def test_guide_says_how_many_answered_rows_certify_an_error():
    page = (DOCS / "user_guide" / "certification.rst").read_text(encoding="utf-8")
    words = " ".join(page.split())
    fewest = [
        error_boundary(n, rate).ranks[0]
        for n, rate in ((59, 0.05), (29, 0.1), (299, 0.01), (500, 0.05))
    ]
    assert f"At least {fewest[0]} answered rows" in words
    assert "{} for 10 %, {} for 1 %".format(*fewest[1:3]) in words
    assert f"({fewest[3]} of 500, as above)" in words
    for n, rate in ((58, 0.05), (28, 0.1), (298, 0.01)):
        assert len(error_boundary(n, rate).ranks) == 0


def test_start_page_says_how_many_rows_a_promise_needs():
    page = (DOCS / "index.rst").read_text(encoding="utf-8")
    words = " ".join(page.split("Which promise do I need?")[1].split())

    def rows(promise, label=None):
        wish = parse_promise(promise, ["malignant", "benign"])
        return rows_needed(wish, label, n_methods=1, n_folds=5)

    alone = fewest_rows(0.1)
    wrapped = rows("coverage >= 90% in every class", "benign").to_fit
    assert f"{alone} rows of each class, none held out; {wrapped} if it" in words
    error = rows("error <= 5%")
    assert f"{error.to_fit} rows. 30 % are held out" in words
    assert f"{error.held_out} of those must be answered" in words
    missed, half = (
        rows(f"missed malignant <= {rate}", "malignant").to_fit for rate in ("4%", "2%")
    )
    assert f"{missed} rows of the class" in words
    assert f"For 2 % it takes {half}." in words
    assert f"{fewest_rows(0.05)} rows on average over training samples" in words


def test_guide_says_how_many_alarms_a_scaler_in_front_costs():
    """Nearest neighbours among 20 rows, in units that 19 of them have learned."""
    page = (DOCS / "user_guide" / "conformal.rst").read_text(encoding="utf-8")
    words = " ".join(page.split())
    random = np.random.default_rng(0)

    def alarms(draw):
        strangest = []
        for _ in range(40):
            rows = draw((1000, 20, 10))
            rows /= rows[:, :19].std(axis=1, keepdims=True)
            square = (rows**2).sum(axis=2)
            distance = square[:, :, None] + square[:, None] - 2 * rows @ rows.mT
            distance[:, np.arange(20), np.arange(20)] = np.inf
            strangest.append(distance.min(axis=2).argmax(axis=1) == 19)
        return f"{np.mean(strangest):.2f}"[1:]

    heavy = alarms(lambda shape: random.standard_t(3, shape))
    assert f"came at {heavy} where .05 was promised, for 19 rows of 10 heavy" in words
    assert f"at {alarms(random.standard_normal)} for normal columns" in words


def test_the_guide_says_how_often_the_last_test_passed_is_false():
    """Exactly, of 500 rows that are wrong with probability .05 each."""
    law, false = np.zeros(501), 0.0
    law[0] = 1.0
    for n in range(1, 501):
        law[1:] = 0.95 * law[1:] + 0.05 * law[:-1]
        law[0] *= 0.95
        passed = most_wrong(n, 0.05, 0.05) + 1
        false += law[:passed].sum()
        law[:passed] = 0.0
    share = f"{100 * false:.0f} %"
    guide = (DOCS / "user_guide" / "certification.rst").read_text(encoding="utf-8")
    assert f"promise is false in up to {share} of cases" in " ".join(guide.split())


def test_pictures_of_the_guide_show_the_figures_of_its_sentences():
    audits = (DOCS / "user_guide" / "audits.rst").read_text(encoding="utf-8")
    assert "13.7 %" in audits
    drawn = (DOCS / "images" / "guide_audits.svg").read_text(encoding="utf-8")
    assert "true on average: 0.137" in drawn
    words = (DOCS / "user_guide" / "time.rst").read_text(encoding="utf-8").split()
    drawn = (DOCS / "images" / "guide_time.svg").read_text(encoding="utf-8")
    at_random, latest = re.findall(r"held out [a-z ]+: (\d+) of 100 false", drawn)
    assert f"is false in {at_random} where" in " ".join(words)
    assert f"in {latest} where the latest are" in " ".join(words)


def test_the_page_names_the_words_that_are_no_value():
    text = (DOCS / "getting_started.rst").read_text(encoding="utf-8")
    sentence = re.search(
        r"Missing are empty\s+cells(.*?), in text columns too", text, re.S
    )
    named = re.findall(r"``(.*?)``", sentence[1])
    assert sorted(["", *named]) == sorted(MISSING_WORDS)
