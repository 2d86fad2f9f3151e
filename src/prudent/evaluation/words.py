"""The words of a comparison: one wording for terminal, report and notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from prudent.certification.planning import queue_in_words, share_of_people
from prudent.core.assumptions import PLUG_IN
from prudent.core.binomial import fewest_rows
from prudent.core.checks import PromiseCheck
from prudent.core.guarantee import Guarantee
from prudent.evaluation.records import (
    Findings,
    Frontier,
    MethodRow,
    Needs,
    RequestedPromise,
)
from prudent.io.errors import LONGEST_VALUE, cut, percent, shown, thousands

# Of the verdicts, the one that says least by itself.
CONSISTENT = (
    "consistent: not contradicted; the rows neither prove nor refute the promise."
)
TIME_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
QUANTITY = {
    "error rate": "error",
    "class error rate": "error",
    "selective error rate": "error of the answered rows",
}
NONE = "–"
NO_BETTER = "no better than always the most frequent class"
# A bound that is this many times what was measured is kept with room.
ROOM = 3.0
# Less than this share of the rows is no help to anybody.
FEW = 0.05
# Sets of at most so many classes, or of this share of them, are a short list: of use
# even where few rows get one answer.
SHORT_LIST, SHORT_SHARE = 2.0, 0.25
# A promise that can be had should answer this share of the rows, in this share of the
# folds: where a fit answered nothing, one more may answer nothing, too.
ENOUGH = 0.2
MOST_FOLDS, HALF_OF_FOLDS = 0.8, 0.5
# Answers of which this many times the promised share of misses are wrong, or this share
# of what the most frequent class errs in, are no answers to rely on.
MANY_WRONG, HARDLY_BETTER = 2.0, 0.75
# An error is hopeless to ask for of answers where every method errs in more than this
# many times of it.
MOST_OVER = 3.0
# Coverages of sets that are named where nothing else can be had.
COVERAGES = (0.9, 0.95, 0.98, 0.99)
# Of two classes, the rarer needs so many rows that, of a fit that holds half of all
# rows out, it keeps two in 99 of 100 draws.
FEWEST_OF_CLASS = 10
# Rows of a fit for each one that it holds out to prove an error.
ROWS_PER_HELD_OUT = 3.25
# Digits of a confidence that is to be typed.
DIGITS = 6
# Most limits in the line of costs.
MOST_COSTS = 4


def asked_for(findings: Findings) -> str:
    """The promise asked for, with what its probability is over."""
    promise = findings.settings.promise.replace(">=", "≥").replace("<=", "≤")
    promises = [item.guarantee for each in _asked(findings) for item in each.items]
    if promises and promises[0].average_over is not None:
        return f"{promise} (on average over {promises[0].average_over})"
    curve = findings.frontier
    confident = curve is not None and curve.kind != "coverage"
    if confident or (promises and promises[0].confidence is not None):
        choice = row_that_chooses(findings)
        whose = (
            "all methods" if choice is None else f"{choice.method}, and for all others"
        )
        return (
            f"{promise}, with confidence {findings.settings.confidence:g} for {whose} "
            "together"
        )
    return promise


def row_that_chooses(findings: Findings) -> MethodRow | None:
    """The row that chooses in its training part; it has the confidence to itself."""
    return next((row for row in findings.ran if row.chooses), None)


def promise_text(promise: PromiseCheck) -> str:
    """Say such as "error ≤ 0.142 (plug-in)"."""
    guarantee = promise.guarantee
    side = "≤" if guarantee.sense == "<=" else "≥"
    name = QUANTITY.get(guarantee.quantity, guarantee.quantity)
    text = f"{name} {side} {guarantee.bound:.3f}"
    return f"{text} (plug-in)" if _is_plug_in(guarantee) else text


def seconds(value: float | None, per: str = "") -> str:
    """Say a time with two digits, in the largest unit that makes it one or more.

    Examples
    --------
    >>> seconds(0.0042), seconds(3.1e-7, "/row"), seconds(125.0), seconds(None)
    ('4.2 ms', '0.31 µs/row', '125 s', '–')
    """
    if value is None:
        return NONE
    unit, factor = next(
        (unit for unit in TIME_UNITS if value * unit[1] >= 1), TIME_UNITS[-1]
    )
    scaled = value * factor
    digits = 0 if scaled >= 10 else 1 if scaled >= 1 else 2
    return f"{scaled:.{digits}f} {unit}{per}"


def verdict(findings: Findings) -> tuple[str, ...]:
    """Sentences made of figures: what to use, who errs least, what is promised."""
    if not findings.ran:
        return ("No method finished; the lines above say why.",)
    sentences = [_most_useful(findings), _costs(findings), _least_errors(findings)]
    if findings.settings.promise == "none":
        sentences.append(_undecided(findings))
    else:
        sentences += [
            f"{row.method}: {'; '.join(row.notes)}."
            for row in findings.ran
            if row.notes
        ]
    sentences += [_in_some_folds(findings), queues(findings)]
    sentences += _own_promises(findings)
    sentences += advice(findings)
    return tuple(sentence for sentence in sentences if sentence)


def failures(findings: Findings) -> tuple[str, ...]:
    """One line for each method that failed."""
    return tuple(
        f"{row.method}: {row.failure.text}"
        for row in findings.rows
        if row.failure is not None
    )


def _most_useful(findings: Findings) -> str:
    """What to use, and how useful it is."""
    if findings.settings.promise == "none":
        return _least_error(findings)
    used = recommended(findings)
    if used is None:
        return _none_useful(findings)
    asked = used.asked
    assert asked is not None
    doubts = _doubts(asked, findings)
    care = " with care" if doubts else ""
    sentences = [f"Use {used.method}{care}: {_usefulness(asked, findings)}.", *doubts]
    if not asked.is_inside:
        sentences.append(
            "What was measured lies outside the limit, by no more than chance allows."
        )
    first = next(row for row in findings.ran if can_be_used(row))
    same = [row for row in findings.ran if row.no_difference_from == first.method]
    # Each was tested against the first: another row that is used against that alone.
    others = [row.method for row in (same if used is first else [first])]
    if 0 < asked.folds_decided < asked.n_folds:
        does = "decided" if _with_sets(findings) else "answered"
        sentences.append(
            f"It {does} rows in {asked.folds_decided} of {asked.n_folds} folds and "
            "none in the others: a fit may answer nothing."
        )
    if used.less_useful_than == first.method:
        is_certain = any(item.guarantee.confidence is not None for item in asked.items)
        again = f" ({_among(findings)})" if is_certain else ""
        sentences.append(
            f"A paired test shows {first.method} to be of more use here: --method "
            f"{first.method} instead, as another row picked from this table"
            f"{again}."
        )
    elif used in (first, *same) and others:
        sentences.append(f"No paired test tells {_listed(others)} from it.")
    if share_helped(asked) < ENOUGH and not narrows(asked):
        nearest = reachable(findings)
        if nearest is not None and nearest.decided > share_helped(asked):
            more = "More is answered under another promise"
            sentences.append(_instead(findings, more))
    return " ".join(filter(None, sentences))


def _least_error(findings: Findings) -> str:
    """Who errs least, where no promise was asked for."""
    first, *others = findings.ran
    same = [row.method for row in others if row.no_difference_from is not None]
    low, high = first.error_interval
    least = f"{first.error:.3f} ({low:.3f}–{high:.3f}), by {first.method}"
    rest = f"; no difference from it is shown for {_listed(same)}" if same else ""
    return f"The least out-of-fold error is {least}{rest}."


def _usefulness(asked: RequestedPromise, findings: Findings) -> str:
    """What a method does under the promise asked for."""
    items = [item for item in asked.items if not is_capacity(item)]
    queues = [_capacity(item) for item in asked.items if is_capacity(item)]
    if asked.others_error is not None:
        items = worst_of_each_class(items)
        missed = _listed(
            [
                f"{percent(item.check.measured, 1)} of {shown(item.guarantee.scope)}"
                for item in items
            ]
        )
        limits = ", ".join(percent(item.guarantee.bound, None) for item in items)
        return (
            f"it answers {percent(1 - asked.others_error)} of the rows of other "
            f"classes rightly, and {missed} wrongly (limit {limits}){''.join(queues)}"
        )
    share, wrong = percent(asked.decided), percent(asked.wrong_when_decided, 1)
    if not _with_sets(findings):
        limit = f" (limit {percent(items[0].guarantee.bound, None)})"
        rest = limit if len(items) == 1 else ""
        if asked.worst_subgroup is not None:
            worst = asked.worst_subgroup
            rest = f", most with {worst.label}: {percent(worst.rate, 1)}{limit}"
        errors = f"{wrong} of the answers are wrong{rest}"
        return f"it answers {share} of the rows, and {errors}{''.join(queues)}"
    assert asked.sets is not None
    n_classes = len(asked.sets.class_mean_size)
    held = f"its sets hold {asked.sets.mean_size:.2f} of {n_classes} classes on average"
    if asked.decided < FEW:
        return f"{held} ({share} of the rows have one answer)"
    more = f"; {held}" if n_classes > 2 else ""
    return f"it decides {share} of the rows, {wrong} of them wrongly{more}"


def is_capacity(item: PromiseCheck) -> bool:
    """Whether a promise is about how many rows go to people, not how many are right."""
    return share_of_people(item.guarantee) is not None


def _capacity(item: PromiseCheck) -> str:
    """What a capacity says, behind a method's other figures."""
    share, bound = item.check.measured, item.guarantee.bound
    limit = percent(bound, None)
    if item.guarantee.quantity == "flagged share":
        return f"; it flags {percent(share, 1)} of all rows (limit {limit})"
    return f"; at least {limit} answered are promised"


def queues(findings: Findings) -> str:
    """What the share asked for means for the queue of a day; "" without one."""
    promises = [item.guarantee for each in _asked(findings) for item in each.items]
    shares = [p for p in promises if share_of_people(p) is not None]
    return f"{queue_in_words(shares[0])}." if shares else ""


def worst_of_each_class(items: Sequence[PromiseCheck]) -> list[PromiseCheck]:
    """The subgroup in which each class fares worst; without subgroups all promises."""
    worst: dict[object, PromiseCheck] = {}
    for item in items:
        scope = item.guarantee.scope
        before = worst.get(scope, item)
        more = item.violations / item.n > before.violations / before.n
        worst[scope] = item if more else before
    return list(worst.values())


def _doubts(asked: RequestedPromise, findings: Findings) -> list[str]:
    """Why single answers under a promise of coverage are not to be relied on."""
    curve, wrong = findings.frontier, asked.wrong_when_decided
    if curve is None or curve.kind != "coverage" or wrong is None:
        return []
    allowed = _allowed(curve, curve.asked)
    # Of a rare class the most frequent one misses all, a promise for each class few: so
    # few wrong answers are no doubt.
    if asked.decided < FEW or wrong <= allowed:
        return []
    doubts = []
    frequent, trivial = _most_frequent(findings)
    if wrong >= HARDLY_BETTER * trivial:
        how = "worse" if wrong > trivial else "hardly better"
        if percent(wrong, 1) == percent(trivial, 1):
            how = "no better"
        doubts.append(
            f"That is {how} than always answering {frequent}, which errs in "
            f"{percent(trivial, 1)} of {_whose(findings)}."
        )
    if wrong > MANY_WRONG * allowed:
        doubt = "The promise is about sets, of which many hold several labels"
        # Where rows are too few the advice would only lead back here.
        confidence = findings.settings.confidence
        if row_that_chooses(findings) is None:
            confidence = 1 - (1 - confidence) / len(findings.rows)
        held_out = fewest_rows(allowed, confidence)
        least = min(row.error for row in findings.ran if row.error is not None)
        is_near = least <= MOST_OVER * allowed  # else hardly a row could be answered
        if _most_held_out(findings) >= held_out and allowed < trivial and is_near:
            rate = percent(allowed, None).replace(" ", "")
            doubt += f"; for one about single answers: --promise 'error <= {rate}'"
        doubts.append(f"{doubt}.")
    return doubts


def counted_rows(findings: Findings) -> tuple[float, ...]:
    """Rows of each class that promises are counted by, shape (K,).

    Of each group that is one row, and of rows in time order those that are tested.
    """
    tested = next((row.confusion for row in findings.ran if row.confusion), None)
    if tested is None:
        return tuple(map(float, findings.data.class_counts))
    return tuple(map(sum, tested))


def _tests_all(findings: Findings) -> bool:
    """Whether every row is tested: without groups, and not in time order."""
    return sum(counted_rows(findings)) > findings.data.n_rows - 0.5


def _most_held_out(findings: Findings) -> float:
    """Rows that a fit holds out to prove a promise, about; with groups or times a fold.

    Of a whole table `prudent fit` can prove what a fold of it cannot.
    """
    n_rows = float(findings.data.n_rows)
    if not _tests_all(findings):
        n_rows = sum(counted_rows(findings)) * (1 - 1 / findings.settings.n_folds)
    return n_rows / ROWS_PER_HELD_OUT


def _whose(findings: Findings) -> str:
    """What the rows are called that a promise is counted by."""
    return "all rows" if _tests_all(findings) else "the rows tested"


def _most_frequent(findings: Findings) -> tuple[str, float]:
    """The most frequent class, and the error of always answering it."""
    counts = counted_rows(findings)
    frequent = _place_of_most_frequent(findings)
    error = 1 - counts[frequent] / sum(counts)
    return shown(findings.data.classes[frequent]), error


def _place_of_most_frequent(findings: Findings) -> int:
    """Place of the most frequent class; of equals the one with the last name."""
    counts, classes = counted_rows(findings), findings.data.classes
    return max(range(len(classes)), key=lambda k: (counts[k], classes[k]))


def _none_useful(findings: Findings) -> str:
    """Why no method is recommended, and what can be had instead."""
    asked = _asked(findings)
    decided = [each for each in asked if each.decided]
    trivial = trivial_error(findings)
    frequent, error = _most_frequent(findings)
    if any(each.kept == NO_BETTER for each in asked):
        why = f"This promise says nothing on this table: {_always_does(findings)}."
    elif all(each.kept == "broken" for each in asked):
        why = "On this table every method breaks this promise."
    elif any(each.kept == "share not proved" for each in asked):
        why = "On this table no method proves the share that was asked for."
        if reachable(findings) is None:
            why += f" {_without_share(findings)}"
    elif not any(each.useful for each in asked):
        why = "On this table no method can both keep this promise and decide."
        if trivial is not None and reachable(findings) is None:
            least = min(row.error for row in findings.ran if row.error is not None)
            why += (
                f" Without any promise the least error is {percent(least, 1)}, and "
                f"always answering {frequent} errs in {percent(error, 1)}: more rows "
                "or other columns may help."
            )
    elif decided and all(map(is_mostly_wrong, decided)):
        why = (
            "On this table, with this promise, no method decides more rows rightly "
            "than wrongly."
        )
    else:
        most = max(share_helped(each) for each in asked if each.kept != "broken")
        does = "answers" if not _with_sets(findings) else "decides"
        whose = " of other classes rightly" if _about_others(findings) else ""
        share = f"more than {math.ceil(100 * most)} % of the rows" if most else "a row"
        why = f"On this table, with this promise, no method {does} {share}{whose}."
        broken = [row.method for row in findings.ran if _is_broken(row)]
        if broken:
            verb = "breaks" if len(broken) == 1 else "break"
            why = (
                f"On this table no method that keeps this promise {does} {share}"
                f"{whose}; {_listed(broken)} {verb} it."
            )
    instead = _instead(findings, "Reachable on this table")
    if not instead:
        instead = _smallest_sets(findings)
    return f"{why} {instead}".rstrip()


def _smallest_sets(findings: Findings) -> str:
    """How large the sets are where single answers are hardly given; "" of two classes.

    Of two classes a set that is no answer holds both.
    """
    smallest = _of_smallest_sets(findings)
    if smallest is None:
        return ""
    method, size = smallest
    return (
        f"Sets alone can be had: those of {method} hold {size:.2f} of "
        f"{len(findings.data.classes)} classes on average (--method {method})."
    )


def _of_smallest_sets(findings: Findings) -> tuple[str, float] | None:
    """The method whose sets are smallest, and their mean size; None of two classes."""
    n_classes = len(findings.data.classes)
    sizes = {
        row.method: row.asked.sets.mean_size
        for row in findings.ran
        if row.asked is not None
        and row.asked.sets is not None
        and row.asked.kept in ("kept", "consistent")
    }
    if n_classes == 2 or not sizes or not _with_sets(findings):
        return None
    return min(sizes.items(), key=itemgetter(1))


def _is_broken(row: MethodRow) -> bool:
    return row.asked is not None and row.asked.kept == "broken"


def _without_share(findings: Findings) -> str:
    """What can be had where no limit goes with the share of rows that was asked for."""
    trivial, curve = trivial_error(findings), findings.frontier
    if trivial is not None and curve is not None and curve.asked >= trivial:
        does = _always_does(findings)
        return f"{does[0].upper()}{does[1:]}, less than the limit."
    shares = {
        row.method: share_helped(row.asked)
        for row in findings.ran
        if row.asked is not None and row.asked.useful
    }
    if not shares:
        return ""
    best = max(shares, key=lambda name: shares[name])
    share = percent(shares[best])
    whose = "of the rows of other classes rightly" if _about_others(findings) else ""
    return (
        f"Reachable on this table: the same limit without a share ({best} "
        f"answers {share} {whose or 'of the rows'})."
    )


def _instead(findings: Findings, start: str) -> str:
    """A promise that can be had, "" where none is known."""
    nearest, curve = reachable(findings), findings.frontier
    if nearest is None or curve is None:
        return ""
    share = percent(nearest.decided)
    right = "of the others right" if _about_others(findings) else "with one answer"
    does = {
        "coverage": f"{nearest.method} decides {share}",
        "error": f"{nearest.method} answers {share}",
        "missed": f"{nearest.method}: {share} {right}",
    }[curve.kind]
    if curve.kind == "coverage" and nearest.wrong > MANY_WRONG * nearest.allowed:
        does += f", {percent(nearest.wrong)} of them wrongly"
    if nearest.in_folds < 1:
        does += ", and none in some folds: a fit may answer nothing"
    if nearest.decided < ENOUGH:
        start = "The most that any promise of this kind gets here"
        does += "; more rows or other columns may help"
    return f"{start}: {nearest.promise} ({does})."


def _in_some_folds(findings: Findings) -> str:
    """Methods that decide rows in some folds and none in others, "" where none does.

    Their share of rows in the table is a mean of folds that differ that much.
    """
    curve = findings.frontier
    if curve is None or curve.asked not in curve.levels:
        return ""
    # With a share the curve has the folds that prove it, not those that answer rows.
    promised = [row.asked for row in findings.ran if row.asked is not None]
    items = [item for each in promised for item in each.items]
    if any(map(is_capacity, items)) or not all(each.has_share for each in promised):
        return ""
    asked = curve.levels.index(curve.asked)
    n_folds = findings.settings.n_folds * findings.settings.n_repeats
    listed = [
        f"{name} ({n_folds - round(shares[asked] * n_folds)} of {n_folds})"
        for name, shares in curve.in_folds.items()
        if 0 < shares[asked] < 1
    ]
    if not listed:
        return ""
    decided = "decided" if curve.kind == "coverage" else "answered"
    return (
        f"In some folds no row is {decided} by {_listed(listed)}; a new fit may leave "
        "all rows open, too."
    )


def _costs(findings: Findings) -> str:
    """What limits on the errors of classes cost, "" of other promises."""
    costly = costs(findings)
    curve = findings.frontier
    if costly is None or curve is None:
        return ""
    name, limits = costly
    whose = "of the others right" if _about_others(findings) else "with one answer"
    (limit, share), *others = limits
    start = curve.promises[curve.levels.index(limit)]
    listed = "".join(f", {percent(q, None)}: {percent(s)}" for q, s in others)
    return f"What limits cost ({name}): {start}: {percent(share)} {whose}{listed}."


def _least_errors(findings: Findings) -> str:
    best = min(findings.ran, key=lambda row: row.error or 0.0)
    low, high = best.error_interval
    sentences = []
    if findings.settings.promise != "none":
        figures = f"{best.error:.3f} ({low:.3f}–{high:.3f})"
        sentences.append(f"Least error: {best.method} {figures}.")
    worst = [(r.worst_class, r.method) for r in findings.ran if r.worst_class]
    if worst:
        least, method = min(worst, key=lambda pair: pair[0].rate)
        sentences.append(
            f"Least error of the worst class: {method} {least.rate:.3f} "
            f"{label_of(least.label)}."
        )
    return " ".join(sentences)


def _undecided(findings: Findings) -> str:
    caught = [
        (row, row.sets) for row in findings.ran if row.sets and row.sets.undecided > 0
    ]
    if not caught:
        return ""
    listed = "; ".join(
        f"{row.method} leaves {100 * sets.undecided:.0f} % of the rows undecided "
        f"(its sets hold the true class in {100 * sets.coverage:.1f} %)"
        for row, sets in caught
    )
    reasons = [
        f" {row.method} decides nothing: {row.why_undecided}."
        for row, sets in caught
        if sets.undecided == 1 and row.why_undecided is not None
    ]
    return f"Of the methods that may say they do not know, {listed}." + "".join(reasons)


def _own_promises(findings: Findings) -> list[str]:
    """What methods promise without being asked, the worst class of each."""
    sentences = []
    for row in findings.ran:
        # The weakest: what it says holds for the other classes, too, unless one broke.
        broken = [item for item in row.own if item.check.verdict == "broken"]
        worst = max(broken or row.own, key=lambda item: item.allowed, default=None)
        if worst is None or row.own_kept is None:
            continue
        asked = () if row.asked is None else row.asked.items
        guarantee, measured = worst.guarantee, worst.check.measured
        if any(item.guarantee.quantity == guarantee.quantity for item in asked):
            continue  # that was asked for
        if row.own_kept in ("nothing answered", NO_BETTER) or worst.allowed >= 1:
            continue  # it says nothing
        name = QUANTITY.get(guarantee.quantity, guarantee.quantity)
        scope = "" if guarantee.scope is None else f" of {shown(guarantee.scope)}"
        side = "at most" if guarantee.sense == "<=" else "at least"
        given = ""
        if guarantee.average_over is not None:
            given = f" on average over {guarantee.average_over}"
        elif _is_plug_in(guarantee):
            given = ", if means and covariances are as estimated"
        elif guarantee.confidence is not None:
            given = f" with confidence {guarantee.confidence:g}"
        rare = measured if guarantee.sense == "<=" else 1 - measured
        has_room = row.own_kept == "kept" and worst.allowed > ROOM * rare
        room = ", with room" if has_room else ""
        word = str(row.own_kept)
        if word == "consistent":
            word = "not contradicted"
            if rare > worst.allowed:
                beyond = "exceeded" if guarantee.sense == "<=" else "not reached"
                word = f"{beyond}, by no more than chance allows"
        bound, seen = _told_apart(guarantee.bound, measured)
        sentences.append(
            f"{row.method} – {name}{scope} {side} {bound}{given}: {word}{room} ({seen})"
        )
    if not sentences:
        return []
    return [f"Promises these methods make by themselves: {'; '.join(sentences)}."]


def _told_apart(bound: float, measured: float) -> tuple[str, str]:
    """Two rates with two digits, or as many more as show which one is larger.

    Examples
    --------
    >>> _told_apart(0.9, 0.81), _told_apart(0.91268, 0.91241), _told_apart(0.5, 0.5)
    (('0.9', '0.81'), ('0.913', '0.912'), ('0.5', '0.5'))
    """
    for digits in range(2, DIGITS):
        texts = f"{bound:.{digits}g}", f"{measured:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return f"{bound:.2g}", f"{measured:.2g}"


def advice(findings: Findings) -> list[str]:
    """What to do where rows are too few, and before a choice is relied on."""
    return [*_too_few(findings), *_before_a_choice(findings)]


def _too_few(findings: Findings) -> list[str]:
    """What is lacking where rows are too few for the promise, and what could help."""
    asked = _asked(findings)
    needs = [each.needs for each in asked if each.needs is not None]
    items = [item for each in asked for item in each.items]
    averaged = any(item.guarantee.average_over is not None for item in items)
    least = min(needs, key=lambda need: need.rows, default=None)
    rare = "" if least is None else _without_rare(findings, least)
    curve, sentences = findings.frontier, []
    # Rows are what is short also where the others have enough, but decide nothing.
    all_need = len(needs) == len(asked) or (
        recommended(findings) is None
        and all(each.needs is not None or not each.decided for each in asked)
    )
    if least is not None and all_need:
        weaker = "a weaker promise"
        of_use = _sets_of_use(findings)
        by_class = _with_sets(findings) and least.label is not None
        if by_class and curve is not None and of_use is not None:
            rate = percent(max(curve.asked, of_use), None).replace(" ", "")
            weaker = f"one for all classes together (--promise 'coverage >= {rate}')"
        help_ = [
            *([] if averaged or len(findings.rows) == 1 else ["fewer methods"]),
            weaker,
            *([f"the table without rarer classes ({rare})"] if rare else []),
            "or more rows (prudent plan)",
        ]
        what = "for this promise"
        if _with_sets(findings) and least.label is not None:
            what = f"to rule out {shown(least.label)}"  # it is in every set
        choice = row_that_chooses(findings)
        # What is picked from a table shares the level with all others of it.
        is_shared = curve is not None and curve.kind != "coverage"
        is_shared |= any(item.guarantee.confidence is not None for item in items)
        among = len(findings.rows) if is_shared else 1
        if choice is not None and choice.asked is not None:
            if choice.asked.needs is not None:
                among = 1
            else:
                what += (
                    f" by methods other than {choice.method}, which has enough and "
                    "decides nothing"
                )
        sentences.append(
            f"Too few rows {what}: {needed(least, among)}. What could help: "
            f"{', '.join(help_)}."
        )
    elif least is not None and rare:
        sentences.append(
            f"{len(needs)} of {len(asked)} methods cannot rule out "
            f"{shown(least.label)}, of which there are too few rows: {rare} leaves "
            "such classes out."
        )
    return sentences


def _before_a_choice(findings: Findings) -> list[str]:
    """What makes a promise of the table one of a model that is taken from it."""
    asked = _asked(findings)
    items = [item for each in asked for item in each.items]
    averaged = any(item.guarantee.average_over is not None for item in items)
    sentences = []
    choice, used = row_that_chooses(findings), recommended(findings)
    if findings.settings.promise != "none" and used is None:
        if reachable(findings) is not None:
            sentences.append(
                "A promise taken from this table after a look is certified by fresh "
                "rows (prudent certify)."
            )
        elif asked and not _with_sets(findings):
            coverage = _sets_of_use(findings)
            if coverage is not None:
                rate = f"{100 * coverage:.0f}%"
                sentences.append(
                    f"Sets of labels can be had: ask for 'coverage >= {rate}'."
                )
    elif items and choice is not None:
        typed = _to_type(findings, choice) if used is choice else ""
        sentences.append(
            f"{choice.method} chooses inside its training part: its promise needs no "
            f"fresh rows.{typed}"
        )
        sentences.append(
            "Another row picked from this table is certified by fresh rows (prudent "
            "certify)."
            if averaged
            else f"Another row picked from this table: {_among(findings)}."
        )
    elif averaged:
        sentences.append(
            "A method chosen by looking at this table is certified by fresh rows "
            "(prudent certify)."
        )
    if items and used is not None and used is not choice:
        sentences.append(_to_type(findings, used).strip())
    if used is None and findings.settings.promise != "none":
        sentences.append(_to_try(findings))
    return sentences


def _to_try(findings: Findings) -> str:
    """What makes a model that can be had instead, where nothing else is known."""
    settings = findings.settings
    had = to_be_had(findings, settings.promise)
    if had is None or settings.next_command is not None or settings.call is not None:
        return ""
    if settings.own:
        return _prepared_by_oneself(findings)
    row, promise = had
    items = [] if row.asked is None else row.asked.items
    averaged = findings.frontier is not None and findings.frontier.kind == "coverage"
    averaged &= all(item.guarantee.confidence is None for item in items)
    return (
        f"To try it: prudent fit ... --method {row.method} --promise '{promise}'"
        f"{' --average' if averaged else ''}."
    )


def _to_type(findings: Findings, used: MethodRow) -> str:
    """What makes a model of a row, where its command is not known, nor its call.

    Of a row that chooses a call is a few words more, and its command is as short.
    """
    settings = findings.settings
    is_called = settings.call is not None and not used.chooses
    if settings.next_command is not None or is_called:
        return ""
    if not settings.own:
        what = "it" if used.chooses else used.method
        typed = f"To use {what}: prudent fit ... --method {used.method}"
        items = [] if used.asked is None else used.asked.items
        is_certain = any(item.guarantee.confidence is not None for item in items)
        if is_certain and not used.chooses and len(findings.rows) > 1:
            typed += f" --among {len(findings.rows)}"
        elif items and not is_certain and not used.chooses:
            typed += " --average"
        return f" {typed}."
    return f" {_prepared_by_oneself(findings)}".rstrip()


def _prepared_by_oneself(findings: Findings) -> str:
    """What gives a call for estimators whose rows the comparison has prepared."""
    if findings.data.subgroup_counts:  # that new rows may not tell
        return ""
    return (
        "For a call that makes a model of it, compare pipelines that prepare words and "
        "gaps themselves (scikit-learn's ColumnTransformer)."
    )


def _among(findings: Findings) -> str:
    """What makes the promise of a row hold though it was picked from the table."""
    settings = findings.settings
    if not settings.own:
        return f"add --among {len(findings.rows)}"
    looked_at = sum(not row.chooses for row in findings.rows)
    confidence = enough(1 - (1 - settings.confidence) / looked_at)
    return (
        f"fit it with confidence={confidence:g}, for {looked_at} methods were looked at"
    )


def enough(confidence: float) -> float:
    """A confidence in few digits, not below the one that is asked."""
    return math.ceil(confidence * 10**DIGITS - 1e-6) / 10**DIGITS


def _sets_of_use(findings: Findings) -> float | None:
    """A coverage of sets that says more than always naming the most frequent class."""
    error, _ = _worst_of_most_frequent(findings)
    most = float(findings.data.n_rows)
    if not _tests_all(findings):  # only rows held out can rank others
        most = _most_held_out(findings)
    return next(
        (
            rate
            for rate in COVERAGES
            if round(1 - rate, 12) < error and most >= rate / (1 - rate)
        ),
        None,
    )


def needed(needs: Needs, among: int = 1) -> str:
    """How many rows a promise needs, here and for a model of all rows.

    `among` are the methods of the table that share the level with the one that needs
    them.
    """
    part = [name for name in (needs.label, needs.subgroup) if name is not None]
    whose = f" of {shown(' with '.join(part))}" if part else ""
    table = ""
    if needs.of_table is not None:
        table = (
            f", in about {thousands(needs.of_table)} {needs.unit} of a table like this"
        )
    is_held_out = needs.to_fit > needs.held_out  # or all that is learned from ranks
    return (
        f"that needs {thousands(needs.rows)} {needs.unit}{whose} "
        f"({needs.held_out} {'held out' if is_held_out else 'to learn from'})"
        f"{table}; prudent fit, which trains on all of them, needs "
        f"{thousands(needs.to_fit)}{f' with --among {among}' if among > 1 else ''}"
    )


def _without_rare(findings: Findings, least: Needs) -> str:
    """The option that leaves rarer classes out; "" where two would not be left."""
    in_sets = findings.frontier is not None and findings.frontier.kind == "coverage"
    enough = sum(count >= least.rows for count in findings.data.class_counts)
    of_class = least.label is not None and least.subgroup is None
    if not of_class or not in_sets or enough < 2:
        return ""
    return f"--min-class-rows {least.rows}"


def notes(row: MethodRow) -> list[str]:
    notes = [*row.notes]
    if row.no_difference_from is not None:
        notes.insert(0, f"no difference from {row.no_difference_from} shown")
    if row.warnings:
        notes.append(f"{len(row.warnings)} warning{'s'[: len(row.warnings) > 1]}")
    return notes


def _asked(findings: Findings) -> list[RequestedPromise]:
    """How the promise asked for fared, by each method that finished."""
    return [row.asked for row in findings.ran if row.asked is not None]


def _about_others(findings: Findings) -> bool:
    """Whether the promise names classes that may be missed."""
    return any(asked.others_error is not None for asked in _asked(findings))


def _with_sets(findings: Findings) -> bool:
    return any(asked.worst_covered is not None for asked in _asked(findings))


def _is_plug_in(guarantee: Guarantee) -> bool:
    return not PLUG_IN.isdisjoint(guarantee.assumptions)


def of_the_plain_method(names: Sequence[str]) -> str:
    """Say which columns do not describe the method that makes the promise."""
    verb = "describes" if len(names) == 1 else "describe"
    return f"{_listed(names)} {verb} the plain method, answering every row."


def fit_of_choice(findings: Findings) -> str:
    """Say what else the time of a row that chooses counts; "" without one."""
    choice = row_that_chooses(findings)
    if choice is None or choice.asked is None or choice.fit_seconds is None:
        return ""
    return f"fit of {choice.method} also counts its choice and its promise."


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def label_of(label: object, longest: int = LONGEST_VALUE) -> str:
    """A label in a cell: quoted where it could be taken for a figure.

    Examples
    --------
    >>> label_of("malignant", 6), label_of(1, 6), label_of("2e3", 6)
    ('malig…', "'1'", "'2e3'")
    """
    text = cut(label, longest)
    try:
        float(text)
    except ValueError:
        return text
    return f"'{text}'"


def recommended(findings: Findings) -> MethodRow | None:
    """The row to use: the most useful one that keeps the promise; None without any.

    Methods that had rows enough for all that was asked go first; among them one that
    chooses inside its training part, for its promise needs no fresh rows; then, among
    methods that no test tells apart, one whose measured rates lie inside their limits.
    """
    able = [row for row in findings.ran if can_be_used(row)]
    if not able:
        return None
    able = [row for row in able if row.asked is None or row.asked.needs is None] or able
    choices = [row for row in able if row.chooses and row.asked is not None]
    if choices:
        return choices[0]
    best = able[0]
    same = [best, *(r for r in able if r.no_difference_from == best.method)]
    inside = (row for row in same if row.asked is None or row.asked.is_inside)
    return next(inside, best)


def in_detail(findings: Findings) -> MethodRow | None:
    """The row that a reader is told more of: that to use, or else the first."""
    return recommended(findings) or next(iter(findings.ran), None)


def can_be_used(row: MethodRow) -> bool:
    """Whether a row keeps the promise and is of use to anybody."""
    asked = row.asked
    if asked is None:
        return True
    keeps = asked.kept in ("kept", "consistent")
    # What answers in fewer than half of the folds will rather answer nothing when it is
    # fitted once more.
    if 2 * asked.folds_decided < asked.n_folds and not narrows(asked):
        return False
    if is_mostly_wrong(asked) and not narrows(asked):
        return False
    # Few answers, more of them wrong than was asked for, are no answer to anybody.
    least = FEW if asked.is_inside else ENOUGH
    return keeps and asked.useful and (share_helped(asked) >= least or narrows(asked))


def is_mostly_wrong(asked: RequestedPromise) -> bool:
    """Whether rows are decided, and more of them wrongly than rightly.

    Of promises about classes a row of another class that is answered wrongly is the
    price.
    """
    return asked.others_error is None and asked.net < 0


def share_helped(asked: RequestedPromise) -> float:
    """Share of rows decided; for promises about classes, of the others right."""
    if asked.others_error is not None:
        return 1 - asked.others_error
    return asked.decided


def narrows(asked: RequestedPromise) -> bool:
    """Whether the sets are of use although few of them hold one class."""
    sets = asked.sets
    if asked.worst_covered is None or sets is None:
        return False
    n_classes = len(sets.class_mean_size)
    return n_classes > 2 and sets.mean_size <= max(SHORT_LIST, SHORT_SHARE * n_classes)


def to_be_had(findings: Findings, promise: str) -> tuple[MethodRow, str] | None:
    """The row to use with the `promise` that was asked for, or what can be had instead.

    That is the nearest promise that answers rows, or else the smallest sets; None where
    there is neither.
    """
    used = recommended(findings)
    if used is None and (nearest := reachable(findings)) is not None:
        promise, method = nearest.promise, nearest.method
    elif used is None and (smallest := _of_smallest_sets(findings)) is not None:
        method = smallest[0]
    else:
        return None if used is None else (used, promise)
    row = next((row for row in findings.rows if row.method == method), None)
    return None if row is None else (row, promise)


class Reachable(NamedTuple):
    """A promise that can be had, and the method that makes it."""

    promise: str
    method: str
    decided: float  # share of rows, or of those of other classes answered rightly
    in_folds: float  # share of the folds in which any row is decided
    wrong: float  # share of the rows decided
    allowed: float  # rate that the promise allows

    @property
    def net(self) -> float:
        """Share of rows decided rightly less the share decided wrongly."""
        return self.decided * (1 - 2 * self.wrong)


def reachable(findings: Findings) -> Reachable | None:
    """The promise nearest to the one asked for that answers enough rows, by the curve.

    A weaker one; or, where the one asked for is kept by always answering the most
    frequent class, a stricter one. One that decides rows in four of five folds goes
    before one that does so in half of them.
    """
    curve = findings.frontier
    if curve is None or not curve.decided:
        return None
    counts = findings.data.class_counts
    if curve.kind == "missed" and len(counts) == 2 and min(counts) < FEWEST_OF_CLASS:
        return None
    trivial = trivial_error(findings)
    allowed = [_allowed(curve, level) for level in curve.levels]
    asked = _allowed(curve, curve.asked)
    if trivial is not None and asked >= trivial:
        near = [i for i, rate in enumerate(allowed) if rate < trivial]
        near.sort(key=lambda i: -allowed[i])
    else:
        limit = 1.0 if trivial is None else trivial
        near = [i for i, rate in enumerate(allowed) if asked < rate < limit]
        near.sort(key=lambda i: allowed[i])
    often = _best_at(curve, near, MOST_FOLDS)
    at_times = _best_at(curve, near, HALF_OF_FOLDS)
    for possible in (often, at_times):
        enough = [p for p in possible if p.decided >= max(ENOUGH, curve.least)]
        if enough:
            return enough[0]
    some = [p for p in at_times if p.decided >= max(FEW, curve.least)]
    return max(some, key=lambda promise: promise.decided, default=None)


def _best_at(curve: Frontier, places: list[int], in_folds: float) -> list[Reachable]:
    """At each place of the curve the method that decides most, in that many folds.

    Promises about sets limit no wrong answers: there most must be right, and those that
    are wrong are taken off.
    """
    of_sets = curve.kind == "coverage"
    possible = []
    for i in places:
        reachable = [
            Reachable(
                promise=curve.promises[i],
                method=name,
                decided=shares[i],
                in_folds=curve.in_folds[name][i],
                wrong=curve.wrong[name][i] or 0.0,
                allowed=_allowed(curve, curve.levels[i]),
            )
            for name, shares in curve.decided.items()
        ]
        often = [promise for promise in reachable if promise.in_folds >= in_folds]
        if of_sets:
            often = [promise for promise in often if promise.net > 0]
        often.sort(key=lambda p: -(p.net if of_sets else p.decided))
        possible += often[:1]
    return possible


def trivial_error(findings: Findings) -> float | None:
    """Error of always answering the most frequent class, if rows are promised about.

    Where subgroups are promised, the largest of theirs.
    """
    curve = findings.frontier
    if curve is None or not curve.about_rows:
        return None
    error, _ = _worst_of_most_frequent(findings)
    return error


def _worst_of_most_frequent(findings: Findings) -> tuple[float, str]:
    """Largest error of always answering the most frequent class, and of which rows."""
    frequent = _place_of_most_frequent(findings)
    parts = {"": counted_rows(findings), **findings.data.subgroup_counts}
    errors = [
        (1 - counts[frequent] / sum(counts), f" with {name}" if name else "")
        for name, counts in parts.items()
        if sum(counts)
    ]
    error, whose = max(errors, key=itemgetter(0))
    return error, f"of the rows{whose}"


def _always_does(findings: Findings) -> str:
    """What always answering the most frequent class does of what is promised."""
    frequent, _ = _most_frequent(findings)
    curve = findings.frontier
    if curve is None or not curve.about_rows:
        return f"always answering {frequent} does as well on average over the classes"
    error, whose = _worst_of_most_frequent(findings)
    return f"always answering {frequent} errs in {percent(error, 1)} {whose}"


def costs(findings: Findings) -> tuple[str, list[tuple[float, float]]] | None:
    """Limits around the one asked for, and what is answered at each; by one method.

    For promises about errors of classes: the method that is recommended, else the one
    that answers most at these limits.
    """
    curve = findings.frontier
    if curve is None or curve.kind != "missed" or not curve.decided:
        return None
    here = curve.levels.index(curve.asked)
    around = range(max(here - 1, 0), len(curve.levels))[: MOST_COSTS + 1]
    used = recommended(findings)
    name = max(curve.decided, key=lambda m: sum(curve.decided[m][i] for i in around))
    if used is not None and used.method in curve.decided:
        name = used.method
    shares = curve.decided[name]
    limits = [(curve.levels[i], shares[i]) for i in around]
    while len(limits) > 1 and limits[0][1] == 0 and limits[1][0] <= curve.asked:
        limits = limits[1:]
    return (name, limits[:MOST_COSTS]) if max(shares) > 0 else None


def _allowed(curve: Frontier, level: float) -> float:
    return round(1 - level if curve.kind == "coverage" else level, 12)
