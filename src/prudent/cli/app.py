"""The entry point: commands, version, and errors as one line."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from prudent._version import __version__
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    forget_notes,
    note,
    set_quiet,
)
from prudent.io.errors import TableError

# Each is a function in the module of its name, or in that of a near relative.
MODULES = {
    "datasets": "describe",
    "export": "promise",
    "apply": "promise",
    "plan": "certify",
}
COMMANDS = {
    "compare": "Compare robust methods on a table and check their promises.",
    "fit": "Fit one method and write a model file.",
    "predict": "Predict the rows of a table with a model file.",
    "detect": "Learn one class and flag the rows unlike it.",
    "monitor": "Hold a deployed model to its promises, run after run.",
    "certify": "Certify a model, a rule or answers on new rows.",
    "promise": "Make a rule that keeps a promise from a file of scores.",
    "apply": "Apply a rule to the scores of new rows.",
    "export": "Write the rule of a model file, for scores computed elsewhere.",
    "card": "Write one page about a promise, for whoever has to rely on it.",
    "audit": "Hold a method's promise to account on laws of known truth.",
    "plan": "Say how many rows a promise needs.",
    "game": "Solve a finite rejection game.",
    "describe": "Check a table before it is compared.",
    "datasets": "List the bundled tables.",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"prudent {__version__}")
        for package in ("numpy", "scipy", "scikit-learn"):
            typer.echo(f"{package} {version(package)}")
        raise typer.Exit


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
    """Robust classification that states its promises and keeps them."""


class OnceOnly(typer.core.TyperCommand):
    """A command that refuses a value given twice: only the last would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command."""
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for place, option in enumerate(given):
            takes_one = isinstance(option, typer.core.TyperOption) and not (
                option.multiple or option.is_flag or option.count
            )
            if takes_one and option in given[:place]:
                how = "give it once"
                if (option.metavar or "").endswith(",.."):
                    how = "give what it takes in one, separated by commas"
                raise UsageError(f"{'/'.join(option.opts)} is given twice: {how}.")
        return super().parse_args(ctx, args)


def _application(named: str) -> typer.Typer:
    """Build the command that is named; the others are a line of help each.

    Building them all would take a third of the start-up.
    """
    app = typer.Typer(
        name="prudent",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Plain help: rich alone would take half of the start-up.
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name, summary in COMMANDS.items():
        if name == named:
            module = import_module(f"prudent.cli.{MODULES.get(name, name)}")
            app.command(name, cls=OnceOnly)(getattr(module, name))
        else:
            app.command(name, help=summary)(_not_named)
    return app


def _not_named() -> None:
    """Stand for a command that is only listed."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; errors are one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # `--debug` is taken here too, so that it may stand behind the command.
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    sys.exit(_run(arguments, debug=debug))


def _run(arguments: list[str], *, debug: bool) -> int:
    set_quiet(False)
    forget_notes()
    with _warnings_as_notes():
        return _code_of(arguments, debug=debug)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings of other libraries as notes, without paths of code."""

    def as_note(message: Warning | str, *_: object, **__: object) -> None:
        note(" ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.showwarning = as_note
        yield


def _code_of(arguments: list[str], *, debug: bool) -> int:
    try:
        # A shell that completes a command passes it in the environment.
        words = arguments or os.environ.get("COMP_WORDS", "").split()[1:]
        app = _application(next((w for w in words if not w.startswith("-")), ""))
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
            traceback.print_exc()
        named = next((word for word in arguments if word in COMMANDS), "")
        sentence, code = _explained(error, named)
    print(f"prudent: error: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _explained(error: Exception, command: str) -> tuple[str, ExitCode]:
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, TableError):
        return str(error), ExitCode.DATA
    usage = getattr(error, "format_message", None)  # errors that typer raises itself
    if usage is not None:
        words = " ".join(word for word in ("prudent", command, "--help") if word)
        sentence = usage()
        # Some versions of typer end with a question: "Did you mean".
        if not sentence.endswith((".", "?")):
            sentence += "."
        return f"{sentence} Try {words}", ExitCode.USAGE
    what = f"{type(error).__name__}: {str(error).rstrip('.')}"
    return f"{what}. Run again with --debug", ExitCode.ALL_FAILED
