"""Load a server in a process of its own, as ``mcpgen serve`` does, to see whether a host can start it.

The file of a server can do anything when it is loaded: end the process, for example, or print. So this process does not
load it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import click

from mcpgen.runtime.cli.terminal_text import escaped_line, escaped_text
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_server"]

# Our choice: a server that imports large libraries needs some seconds, and a busy machine several times as many.
_LOAD_SECONDS: Final = 30.0


def check_server(target: str, environment: Mapping[str, str], *, seconds: float = _LOAD_SECONDS) -> None:
    """Check that ``mcpgen serve`` finds a server in *target*.

    If it does not, show its error as well as all that the file wrote to standard error.

    Args:
        target: ``FILE.py`` or ``FILE.py:OBJECT``.
        environment: Variables that the server gets in addition to those of this process.
        seconds: The time limit.

    Raises:
        SystemExit: ``mcpgen serve`` refuses it, and has said why.
        UsageError: The file takes too long, or ends the process.
    """
    command = [sys.executable, "-P", "-m", "mcpgen", "serve", "--load-only", "--", target]
    shown = escaped_line(target)
    # A file, not a pipe: a process that the server starts could keep a pipe open.
    with tempfile.TemporaryFile() as written:
        try:
            status = subprocess.run(  # noqa: S603 (the user asks for this file)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=written,
                env={**os.environ, **environment},
                timeout=seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise UsageError(f"{shown} was not loaded within {seconds:g} seconds, so nothing was changed") from None
        if status == 0:
            return
        written.seek(0)
        text = escaped_text(written.read().decode("utf-8", "replace"))
    click.echo(text, err=True, nl=False)
    if text and status == click.UsageError.exit_code:  # the error of `serve` is the last line
        raise SystemExit(1)
    raise UsageError(f"{shown} ended its process with status {status} when it was loaded, so nothing was changed")
