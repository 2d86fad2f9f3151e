"""Rule files on the command line: how rows of a table reach a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.cli.loading import columns_of_model, fingerprint, require_columns
from prudent.cli.models import LoadedModel, load_model, read_rows
from prudent.cli.output import ExitCode, ending
from prudent.io.errors import TableError, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from prudent import Rule
    from prudent.core.types import FloatArray
    from prudent.estimator_tools import GivenAlarms, GivenAnswers
    from prudent.estimator_tools.subgroups import Subgroups
    from prudent.io import TableSource
    from prudent.io.table import Table


@dataclass(frozen=True)
class LoadedRule:
    """A rule from a file, and how its scores come out of a table.

    It stands where a `LoadedModel` does, its frames where those of features do.
    """

    path: Path
    rule: Rule

    @property
    def features(self) -> list[str]:
        """Columns of numbers that the rule reads."""
        return [str(name) for name in self.rule.record["columns"]]

    @property
    def label(self) -> str | None:
        """Column of the label that one score is about."""
        return self.rule.record.get("label")

    @property
    def group(self) -> str | None:
        """Column of the groups that have thresholds."""
        return self.rule.record.get("group")

    @property
    def row_id(self) -> str | None:
        """Column of the names of rows that throw coins."""
        smoothed = self.rule.smoothed_rate is not None
        return self.rule.record.get("id") if smoothed else None

    @property
    def _subgroups(self) -> Subgroups | None:
        """Parts of the rows by columns that have promises; None without."""
        from prudent.estimator_tools.subgroups import Subgroups

        rule = self.rule
        return (
            Subgroups(rule.crossings, None, rule.subgroups) if rule.crossings else None
        )

    @property
    def text_columns(self) -> list[str]:
        """Columns to be read as the file spells them."""
        words = [name for name, known in columns_of_model(self).items() if known]
        return [name for name in (self.label, self.group, self.row_id, *words) if name]

    @property
    def names(self) -> list[str]:
        """All columns that the rule reads, each once."""
        parts = columns_of_model(self)
        return list(dict.fromkeys([*self.features, *self.text_columns, *parts]))

    @property
    def ordinary(self) -> str | None:
        """Truth of the ordinary rows that made the rule."""
        return self.rule.record.get("ordinary")

    @property
    def last(self) -> LoadedRule:
        """What answers."""
        return self

    @property
    def estimator(self) -> LoadedRule:
        """What answers to frames."""
        return self

    @property
    def rule_(self) -> Rule:
        """The rule, by the name that it has in an estimator."""
        return self.rule

    @property
    def guarantees_(self) -> tuple[Any, ...]:
        """What the rule promises."""
        return self.rule.guarantees

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels that the rule names."""
        return np.array(self.rule.classes)

    @property
    def calibration_scores_(self) -> FloatArray | None:
        """Scores that a rule about alarms has kept, low where strange."""
        kept = getattr(self.rule.calibration, "scores", None)
        if self.rule.kind != "alarms" or kept is None:
            return None
        from prudent.cli.watching import for_ranks

        return for_ranks(kept.sorted[0])

    def has_seen(self, data: str) -> bool:
        """Whether DATA is the very table that made the rule."""
        made_by = self.rule.record.get("data")
        stored = made_by.get("sha256") if isinstance(made_by, dict) else None
        return stored is not None and stored == fingerprint(data)

    def check(self, source: TableSource) -> None:
        """Refuse a table without a column of the rule, or with words for its bands."""
        from prudent.io.preparation import Column, look_through
        from prudent.io.table import check_column

        parts = columns_of_model(self)
        require_columns(parts, source)
        for name in self.names:
            check_column(name, source.names)
        numbers = [Column(name) for name, words in parts.items() if not words]
        for cells in look_through(source, numbers)[0] if numbers else ():
            if cells.text is not None:
                raise TableError(
                    f"the rule parts {shown(cells.column.name)} by numbers, and the "
                    f"table holds words there, such as {shown(cells.text.levels[0])}"
                )

    def frame(self, part: Table) -> pa.Table:
        """Scores as numbers, NaN for none, and the other columns as text.

        Words that part the rows are null where they are missing.
        """
        import pyarrow as pa

        columns: dict[str, Any] = {name: part.text(name) for name in self.text_columns}
        for name, words in columns_of_model(self).items():
            columns[name] = (
                part.words_or_null(name, words) if words else part.numbers_or_nan(name)
            )
        columns |= {name: part.numbers_or_nan(name) for name in self.features}
        return pa.table({name: columns[name] for name in self.names})

    def read(
        self, source: TableSource, target: str | None, groups: str | None = None
    ) -> tuple[pa.Table, NDArray[Any], NDArray[Any] | None]:
        """Columns of the rule, and labels as text, None for none.

        Last the groups as text, if a column of them is named.
        """
        return read_rows(source, self.names, self.check, self.frame, target, groups)

    def answers_nothing(self) -> bool:
        """Never: all of a rule is checked when it is read."""
        return False

    def codes(self, frame: pa.Table) -> FloatArray:
        """Scores of all rows, (n, n_columns), NaN where there is none."""
        columns = [frame[name].to_numpy() for name in self.features]
        return np.column_stack(columns).astype(np.float64, copy=False)

    def rows(self, frame: pa.Table) -> pa.Table:
        """Rows as `given` takes them."""
        return frame

    def before_last(self, X: Any) -> Any:
        """Rows as they are: nothing stands before a rule."""
        return X

    def given(self, frame: pa.Table) -> GivenAnswers | GivenAlarms:
        """What the rule answers; to rows without a score what is on the safe side.

        These get the full set, no answer, the first label of the priority, or an alarm.
        """
        from prudent.estimator_tools import rule_answers

        scores = self.codes(frame)
        lacking = np.asarray(np.isnan(scores).any(axis=1))
        if lacking.any():
            scores = np.where(lacking[:, None], 0.0, scores)
        coins = None
        if self.row_id is not None:
            key = str(self.rule.record["key"])
            coins = _coins(key, frame[self.row_id].to_pylist())
        return rule_answers(
            self.rule,
            scores,
            predicted=self._words(frame, self.label),
            by=frame if self.rule.subgroups else self._words(frame, self.group),
            coins=coins,
            lacking=lacking,
        )

    def calibrated_scores(self, frame: pa.Table) -> FloatArray:
        """Scores on the scale of `calibration_scores_`, all of them finite.

        A row without a score, which is an alarm, is as strange as can be.
        """
        from prudent.cli.watching import for_ranks

        scores = self.codes(frame)[:, 0]
        return for_ranks(-scores if self.rule.strange == "high" else scores)

    def _words(self, frame: pa.Table, name: str | None) -> NDArray[Any] | None:
        """A column of text; each distinct word is made once."""
        if name is None:
            return None
        encoded = frame[name].fill_null("").combine_chunks().dictionary_encode()
        words = np.array(encoded.dictionary.to_pylist(), dtype=str)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return words[codes] if len(words) else np.empty(0, dtype=str)


def load(path: Path, trusted: Sequence[str] | None = None) -> LoadedModel | LoadedRule:
    """The model in a file, or the rule: a text that begins with a brace."""
    return load_rule(path) if _is_text_of_rule(path) else load_model(path, trusted)


def load_rule(path: Path) -> LoadedRule:
    """The rule in a file; exit code 4 where there is none."""
    from prudent import Rule

    with ending(f"no rule in {path}: {{}}", ExitCode.MODEL, OSError):
        content = path.read_bytes()
    with ending(f"no rule in {path}: it is no text", ExitCode.MODEL, UnicodeError):
        text = content.decode()
    with ending(f"{path}: {{}}", ExitCode.MODEL):
        rule = Rule.from_json(text)
        _check_columns(rule)
    # The cells of a table are text, whatever the groups were.
    return LoadedRule(path, replace(rule, groups=tuple(map(str, rule.groups))))


def _check_columns(rule: Rule) -> None:
    """Refuse a rule whose record does not say which columns of a table it reads."""
    record = rule.record
    columns = record.get("columns")
    if not isinstance(columns, list) or not columns:
        raise ValueError("the rule names no columns; make it with prudent promise")
    others = [record.get(key) for key in ("label", "group", "id", "ordinary", "key")]
    for name in [*columns, *(name for name in others if name is not None)]:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the rule names a column {name!r:.40}, which is no text")
    for crossing in rule.crossings:
        for factor in crossing.factors:
            if factor.name in columns and not factor.holds_numbers:
                raise ValueError(
                    f"the rule reads {factor.name!r:.40} as a score and as words"
                )
    if rule.kind == "answers" and not rule.classes and others[0] is None:
        raise ValueError("the rule names no column of the labels that it is about")


def _is_text_of_rule(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(1) == b"{"
    except OSError:  # said where a model is read
        return False


def _coins(key: str, ids: Sequence[str]) -> NDArray[np.float64]:
    """Uniform numbers: the 53 leading bits of HMAC-SHA-256 of the key and each id."""
    import hmac

    secret = bytes.fromhex(key)
    digests = b"".join(hmac.digest(secret, i.encode(), "sha256")[:8] for i in ids)
    leading = np.frombuffer(digests, dtype=">u8") >> np.uint64(11)
    return leading.astype(np.float64) * 2.0**-53
