"""`prudent game`: the best rejection rule against an intruder who knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prudent.cli import options
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.output import UsageError, print_table, write_report
from prudent.io.errors import TableError, counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEMO = (0.01, 0.015, 0.02, 0.025, 0.03, 0.3, 0.3, 0.3)
PROBABILITY = "probability"
MOST_EVENTS = 20
# Share by which a rule has to be better than a coin, beyond rounding.
GAIN = 1e-6


@options.grouped
def game(
    *,
    game_file: Annotated[
        str | None,
        typer.Argument(
            metavar="GAMEFILE", help="CSV with a column probability; - for stdin."
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Play eight events.")] = False,
    false_alarm: Annotated[
        float,
        typer.Option(
            "--false-alarm",
            "--delta",
            min=0,
            max=1,
            help="Probability of rejecting an ordinary event.",
        ),
    ] = 0.05,
    divergence: Annotated[
        float, typer.Option(help="Least divergence of the intruder, in bits.")
    ] = 2.0,
    strategy: Annotated[
        Literal["soft", "hard"],
        typer.Option(help="Randomised rule, or deterministic one."),
    ] = "soft",
    page: options.Page,
    quiet: options.Quiet = False,
) -> None:
    """Solve a finite rejection game: its value, a best rule, and the certificate."""
    if (game_file is None) != demo:
        raise UsageError("give a GAMEFILE or --demo, one of the two.")
    p = DEMO if game_file is None else _probabilities(game_file)
    from prudent.adversarial import RejectionGame
    from prudent.exceptions import InfeasibleError

    game = RejectionGame(
        false_alarm_rate=false_alarm, divergence_bound=divergence, strategy=strategy
    )
    with failing_as_data():
        try:
            solved = game.fit(p)
        except InfeasibleError as error:  # no promise lacks rows: the table says it
            raise TableError(str(error).rstrip(".")) from error
    summary = _summary(solved, len(p))
    columns, rules = _rules(solved, p)
    for sentence in summary:
        print(sentence)
    print_table(columns, rules[:MOST_EVENTS])
    if len(p) > MOST_EVENTS:
        print(f"and {counted(len(p) - MOST_EVENTS, 'event')} more")
    if page.report is not None:
        from prudent.report.pages import game_page

        text = game_page(solved, summary, columns, rules, print_all=page.print_all)
        write_report(text, page.report)


def _probabilities(game_file: str) -> NDArray[Any]:
    from prudent.io import Column, Preparation

    source, _ = open_data(game_file, None, options.Reading(), one_column=True)
    # A missing probability is refused below.
    p = Preparation((Column(PROBABILITY),), gaps=True).transform(source.whole())[:, 0]
    if (p != p).any():
        raise TableError(f"column {PROBABILITY!r} of {game_file} has missing values.")
    return p


def _summary(solved: Any, n_events: int) -> list[str]:
    bits = f"{solved.divergence_bound:g} bit{'s' * (solved.divergence_bound != 1)}"
    value, rate = solved.rejection_rate_, solved.false_alarm_rate
    gained = (
        f"{value / rate:.3g} times as often as ordinary events"
        if value > (1 + GAIN) * rate
        else "no more than a coin does without a look at the event: a larger "
        "--divergence leaves the intruder less"
    )
    return [
        f"{counted(n_events, 'event')}, {counted(solved.n_levels_, 'level')}, "
        f"{solved.strategy} rule at false alarm rate {solved.false_alarm_rate:g}, "
        f"intruder at least {bits} away",
        f"value: every such intruder is rejected with probability at least "
        f"{value:.6f}, {gained}",
        f"certificate: no {solved.strategy} rule gets more than "
        f"{solved.upper_bound_:.6f} (gap {solved.gap_:.1e})",
        *map(str, solved.guarantees_),
    ]


def _rules(solved: Any, p: Any) -> tuple[list[str], list[list[str]]]:
    """Events with their rule and the worst intruder, the least probable first."""
    order = sorted(range(len(p)), key=lambda event: float(p[event]))
    columns = ["event", PROBABILITY, "rejection", "worst intruder"]
    return columns, [
        [
            str(event + 1),
            f"{p[event]:.6g}",
            f"{solved.rejection_[event]:.6f}",
            f"{solved.adversary_[event]:.6f}",
        ]
        for event in order
    ]
