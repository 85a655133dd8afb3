"""Showing diagnostics to people and to machines, in one way for every command."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING

import click
import msgspec

from mcpgen.codegen.diagnostics import Refused

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from mcpgen.codegen.diagnostics import Diagnostic

__all__ = ["echo_diagnostics", "echo_json", "exit_status", "printable", "refusals_reported"]

# The first findings are what one reads and corrects; a hostile document can have a hundred thousand. JSON has all.
MOST_SHOWN = 50

# What was asked for does not exist or cannot be a name: the caller's command is wrong, not a document.
_USAGE = frozenset({"MG303", "MG304", "MG404"})


def echo_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool, option: str = "--json") -> None:
    """Write *diagnostics* to stderr, a line each and hints, or all of them as one JSON object to stdout.

    Args:
        diagnostics: What was found.
        as_json: Whether machines read it.
        option: What a command is given so that it lists all of them; empty where nothing does.
    """
    if as_json:
        echo_json({"diagnostics": msgspec.to_builtins(diagnostics)})
        return
    shown = diagnostics[:MOST_SHOWN]
    for finding, following in zip_longest(shown, shown[1:]):
        click.echo(printable(str(finding)), err=True)
        # One hint for a run of findings of one kind.
        if finding.hint and (following is None or following.hint != finding.hint):
            first, *more = finding.hint.split("\n")  # what can be pasted stays as it is
            click.echo(f"  hint: {printable(first)}", err=True)
            for line in more:
                click.echo(f"    {printable(line)}".rstrip(), err=True)
    if len(diagnostics) > MOST_SHOWN:
        others = f"and {len(diagnostics) - MOST_SHOWN} more"
        click.echo(f"{others}; {option} lists them all" if option else others, err=True)


def echo_json(value: object) -> None:
    """Write *value* to stdout as JSON, in ASCII so that no terminal's encoding can refuse it."""
    click.echo(json.dumps(value, indent=2))


def exit_status(diagnostics: Sequence[Diagnostic]) -> int:
    """Return 2 where the command was wrong, 1 where anything else is an error, 0 for warnings alone."""
    errors = [finding.code for finding in diagnostics if finding.severity == "error"]
    if not errors:
        return 0
    return 2 if _USAGE.issuperset(errors) else 1


@contextmanager
def refusals_reported(*, as_json: bool, option: str = "--json") -> Generator[None, None, None]:
    """Report what is refused inside, as `echo_diagnostics` does, and exit as it deserves."""
    try:
        yield
    except Refused as refused:
        echo_diagnostics(refused.diagnostics, as_json=as_json, option=option)
        raise SystemExit(exit_status(refused.diagnostics)) from None


def printable(text: str) -> str:
    """Return *text* on one line, with what could steer a terminal (names come from documents) written as an escape."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
