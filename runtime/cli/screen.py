"""Where text goes: a stream, as wide as its terminal, in colours if it has them."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Screen", "stderr", "stdout"]

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "heading": {"bold": True},
    "name": {"bold": True, "fg": "cyan"},
    "dim": {"dim": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "odd": {"fg": "yellow"},
    "strong": {"bold": True},
    "plain": {},
}

# What is written where the encoding of a terminal lacks something.
_PLAIN: Final = str.maketrans({"→": ">", "·": "-", "…": "~", "—": "-", "“": '"', "”": '"', "█": "#", "░": "."})

_CLEAR_LINE: Final = "\r\x1b[K"


class Screen:
    """A stream for people.

    Attributes:
        is_terminal: Whether somebody looks at it.
        width: The columns of a line; None where there is no end of them.

    Args:
        stream: Where text goes.
        is_terminal: Whether that is a terminal; None to ask it.
        width: Its columns; None to ask it.
        is_coloured: Whether colours are used; None to ask the environment.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        is_terminal: bool | None = None,
        width: int | None = None,
        is_coloured: bool | None = None,
    ) -> None:
        self._stream = stream
        self.is_terminal: bool = stream.isatty() if is_terminal is None else is_terminal
        self.width: int | None = width if width is not None else _columns(stream) if self.is_terminal else None
        self._is_coloured = self.is_terminal and _wants_colours() if is_coloured is None else is_coloured
        self._status = ""

    def paint(self, text: str, style: str) -> str:
        """Return *text* in a style of `_STYLES`, if there are colours."""
        if not (self._is_coloured and text):
            return text
        return click.style(text, **_STYLES[style])

    def line(self, text: str = "") -> None:
        """Write one line."""
        self.write(f"{text}\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines."""
        self.write("".join(f"{line}\n" for line in lines))

    def write(self, text: str) -> None:
        """Write *text* as it is; what the encoding of the stream lacks is written as an escape."""
        self.clear_status()
        self._put(text)

    def write_bytes(self, data: bytes) -> None:
        """Write *data* exactly."""
        self._stream.flush()
        self._stream.buffer.write(data)
        self._stream.flush()

    def status(self, text: str) -> None:
        """Show *text*, which fits on the line, until something else is shown; on terminals only."""
        if self.is_terminal and text != self._status:
            self._put(_CLEAR_LINE + text)
            self._status = text

    def clear_status(self) -> None:
        """Take back what `status` has shown."""
        if self._status:
            self._put(_CLEAR_LINE)
            self._status = ""

    def _put(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            data = text.encode(encoding)
        except UnicodeEncodeError:
            data = text.translate(_PLAIN).encode(encoding, "backslashreplace")
        self._stream.flush()
        self._stream.buffer.write(data)
        self._stream.flush()


def stdout() -> Screen:
    """Return the standard output."""
    return Screen(sys.stdout)


def stderr() -> Screen:
    """Return the standard error."""
    return Screen(sys.stderr)


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def _wants_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
