"""The error of a server whose process has ended."""

from __future__ import annotations

import signal

from mcpgen.runtime.errors import TransportClosed, printable

__all__ = ["ServerExited"]

_MAX_LINES = 12


class ServerExited(TransportClosed):
    """The connection is closed, because the process of the server has ended or has closed its output.

    Attributes:
        command: The command that started the process.
        status: The exit status; the negative number of a signal if a signal ended the process; None if it is unknown.
        stderr: The last part of the text that the process wrote to standard error.
    """

    def __init__(self, *, command: str, status: int | None, stderr: str) -> None:
        self.command = command
        self.status = status
        self.stderr = stderr
        super().__init__(command, status)

    @property
    def summary(self) -> str:
        """How the process has ended, without its standard error."""
        if self.status is None:
            how = "has closed its output"
        elif self.status < 0:
            how = f"was ended by {_signal_name(-self.status)}"
        else:
            how = f"has exited with status {self.status}"
        return f"the server {self.command!r} {how}"

    def __str__(self) -> str:
        lines = self.stderr.strip().splitlines()[-_MAX_LINES:]
        if lines:
            last = "; the last lines of its standard error:\n" + "\n".join(
                f"    {printable(line.expandtabs())}" for line in lines
            )
        else:
            hint = "; if it is a Python file, the file has to call server.run()" if self.status == 0 else ""
            last = f"; it wrote nothing to its standard error{hint}"
        return f"{self.summary}{last}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
