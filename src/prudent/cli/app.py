"""The entry point: commands, version, and errors as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from prudent.cli import compare, datasets, describe, detect, fit, game, predict
from prudent.cli.exits import CommandError, ExitCode
from prudent.io.errors import TableError

__all__ = ["app", "main"]

app = typer.Typer(
    name="prudent",
    help="Robust classification that states its promises and keeps them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: rich alone would take half of the start-up.
    rich_markup_mode=None,
)
app.command(name="compare")(compare.compare)
app.command(name="fit")(fit.fit)
app.command(name="predict")(predict.predict)
app.command(name="detect")(detect.detect)
app.command(name="game")(game.game)
app.command(name="describe")(describe.describe)
app.command(name="datasets")(datasets.datasets)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # a third of the start-up

        for package in ("prudent", "numpy", "scipy", "scikit-learn"):
            typer.echo(f"{package} {version(package)}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions of prudent and what it computes with.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Hold options that stand before the command; each acts through its callback."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code.

    Every error is one line on stderr: what is wrong, where, and what to try.

    Parameters
    ----------
    arguments : sequence of str, default=None
        None takes those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # `--debug` is taken here too, so that it may stand behind the command.
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    sys.exit(_run(arguments, debug=debug))


def _run(arguments: list[str], *, debug: bool) -> int:
    try:
        ended = app(args=arguments, prog_name="prudent", standalone_mode=False)
        sys.stdout.flush()
        code = ExitCode(ended or ExitCode.SUCCESS)
        if code is not ExitCode.INTERRUPTED:
            return code
        sentence = "interrupted"
    except typer.Abort:  # Ctrl-C, in versions of typer that give it no code
        sentence, code = "interrupted", ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left; leave nothing for Python to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PARTIAL
    except MemoryError:
        sentence = "out of memory. Try --sample, fewer --jobs or a larger machine"
        code = ExitCode.LIMIT
    except Exception as error:
        if debug:
            raise
        sentence, code = _explained(error)
    print(f"prudent: error: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _explained(error: Exception) -> tuple[str, ExitCode]:
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, TableError):
        return str(error), ExitCode.DATA
    usage = getattr(error, "format_message", None)  # errors that typer raises itself
    if usage is not None:
        return f"{usage().rstrip('.')}. Try prudent --help", ExitCode.USAGE
    what = f"{type(error).__name__}: {str(error).rstrip('.')}"
    return f"{what}. Run again with --debug", ExitCode.ALL_FAILED
