"""Print diagnostics, as text or JSON, in the same way for every command."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING

import click
import msgspec

from mcpgen.codegen.diagnostics import Refused

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from mcpgen.codegen.diagnostics import Diagnostic

__all__ = ["echo_diagnostics", "echo_encoded", "echo_json", "exit_status", "printable", "refusals_reported"]

# A hostile document can have thousands of diagnostics. The text output shows the first ones, JSON shows all.
MOST_SHOWN = 50

# With these codes the command line is wrong, not a document.
_USAGE = frozenset({"MG303", "MG304", "MG318", "MG319", "MG404"})


def echo_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool, option: str = "--json") -> None:
    """Write *diagnostics* to stderr as lines with hints, or to stdout as one JSON object.

    Args:
        diagnostics: The diagnostics to show.
        as_json: Whether to write JSON.
        option: The option with which the command lists all diagnostics; empty if there is none.
    """
    if as_json:
        echo_json({"diagnostics": msgspec.to_builtins(diagnostics)})
        return
    shown = diagnostics[:MOST_SHOWN]
    for finding, following in zip_longest(shown, shown[1:]):
        click.echo(printable(str(finding)), err=True)
        # Consecutive diagnostics with the same hint show it once.
        if finding.hint and (following is None or following.hint != finding.hint):
            first, *more = finding.hint.split("\n")  # text to paste keeps its lines
            click.echo(f"  hint: {printable(first)}", err=True)
            for line in more:
                click.echo(f"    {printable(line)}".rstrip(), err=True)
    if len(diagnostics) > MOST_SHOWN:
        others = f"{len(diagnostics) - MOST_SHOWN} more diagnostics are not shown"
        click.echo(f"{others}; use {option} to list all" if option else others, err=True)


def echo_json(value: object) -> None:
    """Write *value* to stdout as JSON: indented at a terminal, on one line elsewhere.

    It is in ASCII, which every terminal encoding supports.
    """
    if sys.stdout.isatty():
        click.echo(json.dumps(value, indent=2))
    else:
        click.echo(json.dumps(value, separators=(",", ":")))


def echo_encoded(text: str) -> None:
    """Write *text* to stdout as a line, with an escape for each character that the encoding of stdout lacks.

    click alone would write UTF-8 if that encoding is ASCII.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def exit_status(diagnostics: Sequence[Diagnostic]) -> int:
    """Return 2 if the command line is wrong, 1 for any other error, and 0 for warnings only."""
    errors = [finding.code for finding in diagnostics if finding.severity == "error"]
    if not errors:
        return 0
    return 2 if _USAGE.issuperset(errors) else 1


@contextmanager
def refusals_reported(*, as_json: bool, option: str = "--json") -> Generator[None, None, None]:
    """Print the diagnostics of `Refused` and exit with their status."""
    try:
        yield
    except Refused as refused:
        echo_diagnostics(refused.diagnostics, as_json=as_json, option=option)
        raise SystemExit(exit_status(refused.diagnostics)) from None


def printable(text: str) -> str:
    """Return *text* with control characters escaped, because names from documents could control the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
