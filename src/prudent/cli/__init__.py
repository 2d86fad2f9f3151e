"""The command line; each command imports what it needs when it runs."""

from prudent.cli.app import main

__all__ = ["main"]
