"""The user's terminal: `Screen` writes to it, and `Keyboard` reads from it without blocking the event loop."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio
import click

from mcpgen.runtime.cli.terminal_text import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

__all__ = ["Keyboard", "Screen", "encode_text", "on_signal", "wants_colours"]

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "heading": {"bold": True},
    "name": {"bold": True, "fg": "cyan"},
    "dim": {"dim": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "warning": {"fg": "yellow"},
    "strong": {"bold": True},
    "plain": {},
}

# Replacements of the same width for characters that the terminal's encoding lacks.
_ASCII: Final = str.maketrans("→←✗·…µ└—“”█░", '><x-~u+-""#.')

_CLEAR_LINE: Final = "\r\x1b[K"

_READ_BYTES: Final = 4096  # the longest line that a terminal returns at once

_BACKSPACE: Final = b"\x7f"
_CTRL_D: Final = b"\x04"


class Screen:
    """A text stream that may be a terminal.

    Attributes:
        is_terminal: Whether the stream is a terminal.
        width: The columns of a line; None for no limit.

    Args:
        stream: The stream to write to.
        is_terminal: Whether it is a terminal; None to detect.
        width: Its columns; None to detect.
        is_coloured: Whether to use colours; None to decide by the environment.
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
        self._is_coloured = self.is_terminal and wants_colours() if is_coloured is None else is_coloured
        self._status = ""

    def paint(self, text: str, style: str) -> str:
        """Return *text* in a style of `_STYLES`; unchanged without colours."""
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
        """Write *text*; escape characters that the encoding lacks."""
        self.clear_status()
        self._put(text)

    def write_bytes(self, data: bytes | bytearray) -> None:
        """Write *data* unchanged."""
        self._stream.flush()
        stream: Any = self._stream.buffer
        rest = memoryview(data)
        while rest:  # with PYTHONUNBUFFERED, a signal such as that of `fg` can end a write early
            written: int | None = stream.write(rest)
            if written is None:  # the stream does not say how much; an endless loop would be worse
                break
            rest = rest[written:]
        self._stream.flush()

    def fact(self, label: str, text: str, *, columns: int, indent: str) -> Iterator[str]:
        """Yield *text*, which is escaped, beside its label, in lines that fit the terminal."""
        margin = indent + " " * columns
        first, *rest = wrap(text, self.width, indent=margin) if text.strip() else [margin]
        yield f"{indent}{self.paint(f'{label:<{columns}}', 'dim')}{first[len(margin) :]}"
        yield from rest

    def status(self, text: str) -> None:
        """Show a status line, until something else is written; on terminals only. *text* must fit on the line."""
        if self.is_terminal and text != self._status:
            self._put(_CLEAR_LINE + text)
            self._status = text

    def clear_status(self) -> None:
        """Remove the status line."""
        if self._status:
            self._put(_CLEAR_LINE)
            self._status = ""

    def _put(self, text: str) -> None:
        self.write_bytes(encode_text(text, self._stream))


def encode_text(text: str, stream: TextIO | None) -> bytes:
    """Return *text* in the encoding of *stream*; escape or replace characters that the encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace")


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def wants_colours() -> bool:
    """Return whether the environment allows colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


async def on_signal(function: Callable[[], object], received: list[int]) -> None:
    """Call *function* at SIGINT, SIGTERM and SIGHUP, and add the number to *received*.

    Signals that are ignored stay so, as SIGINT in the background of a shell.
    """
    if sys.platform == "win32":  # there, Ctrl-C raises KeyboardInterrupt
        return
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in wanted if signal.getsignal(each) is not signal.SIG_IGN]
    if heeded:
        with anyio.open_signal_receiver(*heeded) as signals:
            async for each in signals:
                received.append(int(each))
                function()


class Keyboard:
    """Lines that the user types; standard input is a terminal."""

    def __init__(self) -> None:
        self._rest = b""
        self._edits = False  # whether Backspace and Ctrl-D come from the terminal as they are

    @staticmethod
    def is_there() -> bool:
        """Whether a user can type, and can see the questions."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()

    def discard_typed(self) -> None:
        """Discard what was typed before a question was shown: it is not an answer to it."""
        self._rest = b""
        if sys.platform != "win32":
            import termios  # noqa: PLC0415 (Windows has none)

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    @contextmanager
    def long_lines(self) -> Generator[None]:
        """Let the user paste lines of any length within the block.

        A terminal that edits lines takes no more than 1,024 bytes on macOS and 4,096 on Linux. So it does not edit
        them, and only Backspace works.
        """
        if sys.platform == "win32":
            yield
            return
        import termios  # noqa: PLC0415 (Windows has none)

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        unedited = [*before]
        unedited[3] &= ~termios.ICANON  # of the local modes
        termios.tcsetattr(terminal, termios.TCSANOW, unedited)
        self._edits = True
        try:
            yield
        finally:
            self._edits = False
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(terminal, termios.TCSANOW, before)

    async def line(self) -> str | None:
        """Return the next line without its end; None for Ctrl-D on an empty line, or if the terminal is gone."""
        if sys.platform == "win32":
            text = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            return text.rstrip("\r\n") if text else None
        while b"\n" not in self._rest:
            await anyio.wait_readable(sys.stdin)
            try:
                data = os.read(sys.stdin.fileno(), _READ_BYTES)
            except OSError:  # the terminal was closed
                data = b""
            if not data or (self._edits and data == _CTRL_D):  # after some text, the terminal only submits that text
                self._rest = b""
                return None
            self._rest = _edited(self._rest + data) if self._edits else self._rest + data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace")


def _edited(typed: bytes) -> bytes:
    """Return what is left of *typed* after each Backspace has removed the character before it."""
    while (at := typed.find(_BACKSPACE)) >= 0:
        typed = typed[: max(at - 1, 0)] + typed[at + 1 :]
    return typed
