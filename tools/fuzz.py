"""Hand hostile files to the command line, and see that each is refused in one line.

``python tools/fuzz.py --inputs 100000`` makes tables (CSV, TSV, gzip, parquet), model
files, rule files, tables of scores, states of `prudent monitor`, certificates, texts of
owners and game files from a seed: valid ones, and mutations of bytes and of structure.
Worker processes read them under limits, 5 s of CPU time (30 for a model, whose loops
may have to be compiled) and 1 GB of memory above the start for each input, so that a
crash and a hang are seen. It prints how many were read
and refused, and every finding; the exit code is 1 if there is one.
``--only INPUT --seed SEED`` writes an input to a file and reads it again.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CPU_SECONDS = 5
# A stored array of another type has its loops compiled, once for all later inputs.
MODEL_CPU_SECONDS = 30
# A busy machine gives a process little of its time; starting takes some seconds of it.
WALL_SECONDS, START_SECONDS = 120, 900
MEMORY = 1 << 30
MB = 1 << 20
TABLES = ("csv", "csv", "csv", "csv", "tsv", "gzip", "parquet", "parquet")
JSON_KINDS = ("state", "rule", "certificate")
KINDS = (
    *(*TABLES, "fit", "compare", "scores", "apply", "game", "model", "model", "owner"),
    *JSON_KINDS,
)
CELLS = (
    *("1", "2.5", "-3", "0", "7e2", "+1", " 4 ", "1e999", "-inf", "NaN", "nan", "NA"),
    *("", "", "x", "red", "true", "false", "2020-01-01", "1,5", '"', '""', "\n", "\r"),
    *("0x1f", "1_0", "9" * 40, "é", "\ufeff", "\u2028", "=1+1", "'", "\\", "a" * 300),
)
NAMES = ("a", "b", "c", "y", "", " ", "1", "a", "probability", "y ", "é", '"', "n" * 90)
TOKENS = (
    *(b"\0", b'"', b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\x1f\x8b", b"PAR1"),
    *(b"\x89PNG", b",", b";", b"\t", b"\xc3", b"\xff\xff\xff\x7f", b"\xff" * 8),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        2**31,
        2**63,
        10**400,
        -1e308,
        1e308,
        float("nan"),
        "",
        "x",
    ),
    *("numpy.ndarray", "os.system", [], {}, [[]], {"a": 1}, "1" * 5000),
)
ROWS = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i * i % 7, i % 2) for i in range(40))
OWNER = b'purpose = "triage"\noversight = "a person reads all"\ncontact = "a@b.c"\n'
PROMISES = (
    *("error <= 40%", "error <= 40%", "error <= 40%", "missed v <= 40%", "error<=30%"),
    *("error <= 40% in every b", "error <= 30% and answered >= 20%", "answered >= 50%"),
    *("coverage >= 80%", "coverage >= 80% in every class", "missed u <= 20%"),
    *("missed u <= 20% and flagged <= 90%", "false alarm <= 10%", "handed over <= 50%"),
    *("error <= 10% in every a", "error", "", "error <= x", "coverage >= 200%"),
)
SCORE_OPTIONS = (
    ("--scores", "a,b", "--classes", "u,v"),
    ("--scores", "a,b,c"),
    ("--score", "a", "--predicted", "y"),
    ("--score", "a", "--positive", "u"),
    ("--anomaly", "a", "--normal", "u"),
)


# ---- inputs ----------------------------------------------------------------------


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Change bytes here and there."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        way = rng.randrange(6)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif way == 2:
            del data[at : at + rng.choice((1, 2, 8, 100))]
        elif way == 3:
            data[at:at] = rng.choice(TOKENS)
        elif way == 4:
            piece = data[at : at + rng.choice((1, 8, 64))]
            data[at:at] = piece * rng.choice((1, 3, 200))
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def table(rng: random.Random, delimiter: str) -> bytes:
    """Return delimited text, more or less of a table."""
    width, n_rows = rng.randint(1, 5), rng.choice((0, 1, 2, 3, 8, 40))
    lines: list[list[str]] = []
    if rng.random() < 0.6:  # a table, with now and then a cell that is none
        rare = rng.choice((0, 0.02))
        n_rows += 4
        for row in range(n_rows):
            cells = [rng.choice(("1", "2", "3.5", "-1e3", "7")) for _ in range(width)]
            if rng.random() < rare:
                cells[rng.randrange(width)] = rng.choice(CELLS)
            lines.append([*cells, "uv"[row % 2]])
        names = [*"abcde"[:width], "y"]
    else:
        names = rng.choices(NAMES, k=width)
        widths = [width + (rng.random() < 0.01) for _ in range(n_rows)]
        lines = [rng.choices(CELLS, k=k) for k in widths]
    lines.insert(0, names)
    newline = rng.choice(("\n", "\n", "\r\n", "\r"))
    text = newline.join(delimiter.join(line) for line in lines)
    encoding = rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1", "utf-32"))
    content = (text + rng.choice((newline, ""))).encode(encoding, "replace")
    return content if rng.random() < 0.6 else mutated(content, rng)


def labelled(rng: random.Random) -> bytes:
    """Return a table that can be learned from, with now and then an odd cell."""
    lines = ["a,b,c,y"]
    for _ in range(rng.choice((30, 100, 100))):
        label = rng.random() < 0.5
        a = round(rng.gauss(6 * label, rng.choice((1, 3))), rng.choice((0, 3)))
        cells = [str(a), str(rng.randrange(4)), str(rng.random()), "uv"[label]]
        if rng.random() < 0.002:
            cells[rng.randrange(4)] = rng.choice(CELLS)
        lines.append(",".join(cells))
    content = "\n".join(lines).encode()
    return content if rng.random() < 0.8 else mutated(content, rng)


def parquet(rng: random.Random) -> bytes:
    """Return a parquet file with columns of all sorts, then damaged."""
    import pyarrow as pa
    from pyarrow import parquet as writer

    n = rng.choice((0, 1, 3, 30))
    makers: tuple[Callable[[], Any], ...] = (
        lambda: pa.array([rng.random() for _ in range(n)]),
        lambda: pa.array([rng.choice((1, None, 2**62)) for _ in range(n)], pa.int64()),
        lambda: pa.array([rng.choice(("r", "g", None)) for _ in range(n)], pa.string()),
        lambda: pa.array(["u"] * n).dictionary_encode(),
        lambda: pa.array([[1.0]] * n, pa.list_(pa.float64())),
        lambda: pa.array([b"\xff"] * n, pa.binary()),
        lambda: pa.array([{"p": 1}] * n, pa.struct([("p", pa.int8())])),
        lambda: pa.array([None] * n),
        lambda: pa.array([rng.choice((True, None)) for _ in range(n)], pa.bool_()),
        lambda: pa.array([rng.randrange(10**9) for _ in range(n)], pa.timestamp("s")),
        lambda: pa.array([float("inf")] * n, pa.float32()),
    )
    names = rng.choice((*(("a", "b", "y"),) * 6, ("y", "a", "a"), ("a",), ("", "y")))
    tame = rng.random() < 0.5
    columns = [rng.choice(makers[:4] if tame else makers)() for _ in names]
    if tame:
        columns[-1] = pa.array(["uv"[row % 2] for row in range(n)])
    stream = io.BytesIO()
    compression = rng.choice(("none", "snappy", "gzip", "zstd"))
    writer.write_table(
        pa.table(columns, names=names),
        stream,
        compression=compression,
        row_group_size=8,
    )
    content = stream.getvalue()
    if rng.random() < 0.4:
        return content
    # The footer is where sizes are declared.
    cut = rng.choice((0, 4, max(0, len(content) - 300)))
    return content[:cut] + mutated(content[cut:], rng)


def changed(value: Any, rng: random.Random) -> Any:
    """Change one place of a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:at] + value[at + 1 :] * rng.choice((0, 1, 2))
        return [*value[:at], changed(value[at], rng), *value[at + 1 :]]
    return rng.choice(VALUES)


def json_file(kind: str, rng: random.Random, seeds: dict[str, list[bytes]]) -> bytes:
    """Return a state of `prudent monitor`, a rule or a certificate, changed."""
    content = rng.choice(seeds[kind])
    if rng.random() < 0.3:
        return mutated(content, rng)
    found = json.loads(content)
    if rng.random() < 0.1:
        return disordered(found, rng)
    for _ in range(rng.choice((1, 1, 3))):
        found = changed(found, rng)
    return json.dumps(found).encode()


def disordered(value: Any, rng: random.Random) -> bytes:
    """Return JSON text with what no value can hold: a key twice, nesting, digits."""
    mark = "a place of its own"
    return (
        json.dumps(marked(value, mark, rng))
        .replace(
            json.dumps(mark),
            rng.choice(
                (
                    "[" * 10**5,
                    '{"a":' * 10**5,
                    "[" * 900 + "]" * 900,
                    '{"a": 1, "a": 2}',
                    "1" * 5000,
                    "1e999",
                    "-Infinity",
                    "NaN",
                    '"\\ud800"',
                    '"' + "a" * 10**6 + '"',
                    "[" + "0," * 10**6 + "0]",
                )
            ),
        )
        .encode()
    )


def marked(value: Any, mark: str, rng: random.Random) -> Any:
    """Put a mark in one place of a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return value | {key: marked(value[key], mark, rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], marked(value[at], mark, rng), *value[at + 1 :]]
    return mark


def model(rng: random.Random, seeds: dict[str, list[bytes]]) -> bytes:
    """Return a model file whose members were changed, with checksums that fit."""
    content = rng.choice(seeds["model"])
    if rng.random() < 0.2:
        return mutated(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    for _ in range(rng.choice((1, 1, 3))):
        way = rng.random()
        name = rng.choice(arrays)
        if way < 0.5:
            name = "prudent.json" if way < 0.1 else "schema.json"
            found = changed(json.loads(members[name]), rng)
            members[name] = json.dumps(found).encode()
        elif way < 0.9:
            members[name] = another_array(members[name], rng)
        else:  # with the header, which tells the shape
            members[name] = mutated(members[name], rng)
    stream = io.BytesIO()
    packed = rng.random() < 0.05
    way = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", way) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def another_array(content: bytes, rng: random.Random) -> bytes:
    """Return a stored array with other numbers, of another shape or type."""
    import numpy as np

    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:  # changed before
        return content
    way = rng.randrange(5)
    if array.dtype.names and array.size and way > 1:  # the nodes of a tree
        array = array.copy()
        cells = array[rng.choice(array.dtype.names)].reshape(-1)
        cells[rng.randrange(cells.size)] = rng.choice((0, 1, 3, 200))
    elif way == 0:
        array = array[: len(array) // 2] if array.ndim else array
    elif way == 1:
        array = array.reshape(-1)
    elif way == 2:
        array = array.astype(rng.choice((np.float32, np.int8, np.float64, np.int64)))
    elif way == 3:
        array = np.concatenate([array, array]) if array.ndim else array
    elif array.size and array.dtype.kind in "if":
        array = array.copy()
        wild = (
            (-1, 0, 100, 2**30) if array.dtype.kind == "i" else (np.nan, np.inf, -1e300)
        )
        if array.dtype.itemsize == 1:
            wild = wild[:-1]
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice(wild)
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def game(rng: random.Random) -> bytes:
    """Return a table of probabilities."""
    n = rng.choice((0, 1, 2, 8, 50))
    wild = rng.random() < 0.3
    weights = [rng.choice((0, 1e-300, 1e300) if wild else (1, 2, 3)) for _ in range(n)]
    total = sum(weights) or 1
    share = [repr(w / total) for w in weights]
    if rng.random() < 0.3 and share:
        share[rng.randrange(n)] = rng.choice(CELLS)
    content = "\n".join(["probability", *share]).encode()
    return content if rng.random() < 0.5 else mutated(content, rng)


def made(index: int, seed: int, seeds: dict[str, list[bytes]]) -> tuple[str, bytes]:
    """Return the kind and the content of an input."""
    rng = random.Random(f"{seed}/{index}")
    kind = KINDS[index % len(KINDS)]
    if kind == "gzip":
        content = gzip.compress(table(rng, ","), 1)
        if rng.random() < 0.01:  # a small bomb; tests have a large one
            content = gzip.compress(b"a,b,y\n" + b"1,2,0\n" * 10**6, 6)
        return kind, content if rng.random() < 0.5 else mutated(content, rng)
    if kind in ("csv", "tsv"):
        return kind, table(rng, "\t" if kind == "tsv" else rng.choice(",,,;|"))
    if kind == "parquet":
        return kind, parquet(rng)
    if kind == "game":
        return kind, game(rng)
    if kind in ("fit", "compare", "scores", "apply"):
        return kind, table(rng, ",") if rng.random() < 0.5 else labelled(rng)
    if kind == "owner":
        return kind, mutated(OWNER, rng)
    if kind in JSON_KINDS:
        return kind, json_file(kind, rng, seeds)
    return kind, model(rng, seeds)


# ---- reading them ----------------------------------------------------------------


def arguments(kind: str, path: Path, folder: Path, rng: random.Random) -> list[str]:
    """Return a command that reads the input."""
    if kind == "game":
        return ["game", str(path)]
    watched, rows = str(folder / "watched.prudent"), str(folder / "rows.csv")
    if kind == "model":
        return rng.choice(
            (
                ["predict", rows, "-m", str(path)],
                ["certify", rows, "-m", str(path), "--target", "y"],
                ["monitor", str(path), "--data", rows, "--target", "y"],
                ["card", str(path), "-o", str(folder / "card.html")],
            )
        )
    if kind == "apply":
        rule = rng.choice(sorted(folder.glob("rule-*.json")))
        return ["apply", str(rule), str(path), *rng.choice(((), ("--keep", "y")))]
    if kind == "state":
        command = ["monitor", watched, "--data", rows, "--target", "y"]
        return [*command, "--state", str(path), "--again"]
    if kind == "rule":
        return rng.choice(
            (
                ["apply", str(path), rows],
                ["card", str(path), "-o", str(folder / "card.html")],
                ["certify", rows, "--truth", "y", "-m", str(path)],
            )
        )
    if kind in ("certificate", "owner"):
        target = folder / f"card.{rng.choice(('html', 'md', 'json'))}"
        return ["card", watched, f"--{kind}", str(path), "-o", str(target)]
    if kind in ("fit", "compare", "scores"):
        command = [str(path), "--target", "y", "--promise", rng.choice(PROMISES)]
        if kind == "scores":
            command += [*rng.choice(SCORE_OPTIONS), "--unseen", "drawn later"]
            return ["promise", *command, "-o", str(folder / "made.json")]
        if rng.random() < 0.5:
            command += [
                "--by",
                rng.choice(("a", "a,b", "a:2,5", "a*b", "y", "", "a:x")),
            ]
        if rng.random() < 0.3:
            command += ["--time", rng.choice("ab")]
        if rng.random() < 0.2:
            command += ["--groups", rng.choice("ab")]
        if kind == "compare":
            methods = ["--methods", rng.choice(("lda", "majority,lda")), "--cv", "2"]
            return ["compare", *command, *methods, "--no-best", "--quiet"]
        return ["fit", *command, "--method", "lda", "-o", str(folder / "made.prudent")]
    options = ["describe", str(path)]
    if rng.random() < 0.8:
        options += ["--target", "y"]
    for option, values in {
        "--missing": ("error", "drop-rows", "mean"),
        "--categorical": ("error", "drop"),
        "--delimiter": (",", ";"),
        "--decimal": (",",),
        "--encoding": ("latin-1", "utf-16", "cp037", "zlib"),
    }.items():
        if rng.random() < 0.15:
            options += [option, rng.choice(values)]
    return [*options, *(["--no-header"] if rng.random() < 0.1 else [])]


def outcome(kind: str, content: bytes, folder: Path, rng: random.Random) -> str:
    """Return "read", "refused", or what is wrong."""
    from prudent.cli.app import _run
    from prudent.io import iter_batches, open_table, training_data

    path = folder / f"input.{'parquet' if kind == 'parquet' else 'txt'}"
    path.write_bytes(content)
    if kind in TABLES and rng.random() < 0.6:
        try:
            if rng.random() < 0.3:
                for _ in iter_batches(path, "y"):
                    pass
            else:
                source = open_table(str(path), text_columns=["y"])
                training_data(source.whole() if rng.random() < 0.5 else source, "y")
        except ValueError as error:
            said = str(error)
            return "refused" if "\n" not in said else f"more than one line: {said!r}"
        return "read"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _run(arguments(kind, path, folder, rng), debug=False)
    said_lines = err.getvalue().splitlines()
    errors = [line for line in said_lines if not line.startswith("note:")]
    # A game may have no intruder within the bound; else 6 says that memory ran out.
    # A promise that cannot be made ends `fit` and `promise` with 6, too.
    limit = code == 6 and kind not in ("game", "fit", "compare", "scores")
    if code == 5 or limit or "Traceback" in err.getvalue():
        return f"exit code {int(code)}: {' '.join(errors)[-300:]}"
    if code in (0, 7, 8):  # 7 and 8: a promise is broken, the rows drift
        return "read"
    if len(errors) == 1 and errors[0].startswith("prudent: error: "):
        return "refused"
    return f"exit code {int(code)}, said {errors[:3]}"


def seeded(folder: Path) -> dict[str, list[bytes]]:
    """Write the rows and models that are read, and return valid files to mutate."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    import prudent
    from prudent.cli.app import _run

    (folder / "rows.csv").write_bytes(ROWS)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    models = [
        prudent.MinimaxProbabilityClassifier(),
        prudent.OptimisticScoreClassifier(),
        prudent.RiskCalibratedClassifier(random_state=0),
        prudent.ConformalClassifier(random_state=0),
        prudent.MinimaxOutlierDetector(random_state=0),
        prudent.LowDensityRejector(random_state=0),
        prudent.SelectiveClassifier(LogisticRegression(), random_state=0),
        make_pipeline(StandardScaler(), SVC()),
        HistGradientBoostingClassifier(max_iter=2, categorical_features=[1]),
    ]
    found = []
    for estimator in models:
        rows = pd.DataFrame({"a": X[:, 0], "b": np.abs(X[:, 1].round())})
        path = folder / "seed.prudent"
        with contextlib.suppress(ValueError):
            prudent.save(estimator.fit(rows, y), path)
            found.append(path.read_bytes())
    watched = folder / "watched.prudent"
    classifier = prudent.ConformalClassifier(
        LogisticRegression(), method="split", random_state=0
    )
    prudent.save(classifier.fit(pd.DataFrame(X, columns=["a", "b"]), y), watched)
    rows, stored = str(folder / "rows.csv"), folder / "seed.json"
    command = ["monitor", str(watched), "--data", rows, "--target", "y"]
    _run([*command, "--state", str(stored)], debug=False)
    certificate, rule = folder / "certificate.json", folder / "rule.json"
    command = ["certify", rows, "-m", str(watched), "--target", "y"]
    _run([*command, "--json", str(certificate)], debug=False)
    rules = []
    for options, promise in (
        (["--scores", "a,b", "--classes", "0,1"], "coverage >= 80% in every class"),
        (["--score", "a", "--predicted", "y"], "error <= 20%"),
        (["--score", "a", "--positive", "1"], "missed 1 <= 30%"),
        (["--anomaly", "a", "--normal", "0"], "false alarm <= 20%"),
    ):
        command = ["promise", rows, "--target", "y", *options, "--promise", promise]
        code = _run([*command, "--unseen", "new", "-o", str(rule)], debug=False)
        if code:
            raise SystemExit(f"no rule for {promise!r}: exit code {int(code)}.")
        rules.append(rule.read_bytes())
        rule.rename(folder / f"rule-{len(rules)}.json")
    for text in rules_by_subgroup():
        rules.append(text)
        (folder / f"rule-{len(rules)}.json").write_bytes(text)
    return {
        "model": found,
        "state": [stored.read_bytes()],
        "rule": rules,
        "certificate": [certificate.read_bytes()],
    }


def rules_by_subgroup() -> Iterator[bytes]:
    """Rules of columns a and b by parts of column a, and of it crossed with c."""
    from dataclasses import replace

    import numpy as np
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import prudent

    rng = np.random.default_rng(1)
    y = np.arange(2000) % 2
    a, c = rng.normal(y), rng.choice(["1", "2", "7"], 2000)
    rows = pd.DataFrame({"a": a, "c": np.where(rng.random(2000) < 0.1, None, c)})
    taken = ColumnTransformer([("a", "passthrough", ["a"])])
    inside = make_pipeline(taken, LogisticRegression())
    by = {"subgroups": ["a:0,3", "c*a:1"], "random_state": 0}
    for model in (
        prudent.ConformalClassifier(inside, level=0.2, condition="class", **by),
        prudent.SelectiveClassifier(inside, error_rate=0.4, **by),
        prudent.NeymanPearsonClassifier(inside, max_class_error={1: 0.9}, **by),
    ):
        rule = model.fit(rows, y).rule_
        record = {**rule.record, "columns": ["a", "b"]}
        yield replace(rule, record=record).to_json().encode()


def work(start: int, end: int, seed: int, *, only: bool) -> None:
    """Read inputs, and report each on standard output: its number before, its fate."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.redirect_stdout(io.StringIO()):
            seeds = seeded(folder)
            # Imports and compilation come first.
            for kind in dict.fromkeys(KINDS):
                for content in seeds.get(kind, [ROWS]):
                    for i in range(5):
                        outcome(kind, content, folder, random.Random(i))
        begun = memory("VmSize")
        if not only:
            resource.setrlimit(resource.RLIMIT_AS, (begun + MEMORY,) * 2)
        for index in range(start, end):
            kind, content = made(index, seed, seeds)
            report.write(f"{index} begin {kind}\n")
            if only:
                Path(f"fuzz-{index}.{kind}").write_bytes(content)
            limit = MODEL_CPU_SECONDS if kind == "model" else CPU_SECONDS
            signal.setitimer(signal.ITIMER_PROF, limit)  # ends the process
            rng = random.Random(f"{seed}/{index}/options")
            try:
                said = outcome(kind, content, folder, rng)
            except MemoryError:
                said = "took more than 1 GB of memory"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            report.write(f"{index} end {' '.join(said.split())}\n")
    report.write("done\n")


def memory(name: str) -> int:
    """Bytes of this process, from /proc."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split(f"{name}:")[1].split()[0]) * 1024


# ---- the run ---------------------------------------------------------------------


def fates(inputs: int, seed: int) -> Iterator[tuple[int, str, str]]:
    """Yield number, kind and fate of every input; a worker that ends is replaced."""
    start = 0
    while start < inputs:
        command = [sys.executable, "-W", "ignore", __file__, "--seed", str(seed)]
        command += ["--worker", f"{start}:{inputs}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)
        assert process.stdout is not None
        watch = selectors.DefaultSelector()
        watch.register(process.stdout, selectors.EVENT_READ)
        running: tuple[int, str] | None = None
        ended = False
        while watch.select(WALL_SECONDS if running else START_SECONDS):
            line = process.stdout.readline().decode()
            if not line or line == "done\n":
                ended = line == "done\n"
                break
            index, what, rest = line.rstrip("\n").split(" ", 2)
            if what == "begin":
                running = int(index), rest
            elif running is not None:
                yield running[0], running[1], rest
                start, running = int(index) + 1, None
        process.kill()
        code = process.wait()
        if ended:
            return
        if running is None:
            raise SystemExit("a worker does not start: see above.")
        slow = code in (-signal.SIGPROF, -signal.SIGKILL)
        fate = "hangs" if slow else f"crash ({signal.Signals(-code).name})"
        yield running[0], running[1], fate
        start = running[0] + 1


def main() -> None:
    """Run the workers and print the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="read this input again, unlimited")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only is not None:
        return work(asked.only, asked.only + 1, asked.seed, only=True)
    if asked.worker is not None:
        start, end = map(int, asked.worker.split(":"))
        return work(start, end, asked.seed, only=False)
    counts: Counter[tuple[str, str]] = Counter()
    findings, begun = 0, time.monotonic()
    for index, kind, fate in fates(asked.inputs, asked.seed):
        if fate not in ("read", "refused"):
            findings += 1
            print(f"input {index} ({kind}): {fate}", flush=True)
            fate = "found"
        counts[kind, fate] += 1
    for kind in dict.fromkeys(KINDS):
        told = [f"{counts[kind, fate]} {fate}" for fate in ("read", "refused", "found")]
        print(f"{kind:8} {', '.join(told)}")
    print(
        f"{counts.total()} inputs, seed {asked.seed}: {findings} findings, "
        f"{time.monotonic() - begun:.0f} s"
    )
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
