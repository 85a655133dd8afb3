"""What the person at the terminal types, line by line, while the event loop goes on."""

from __future__ import annotations

import os
import sys
from typing import Final

import anyio

__all__ = ["Keyboard"]

_READ_BYTES: Final = 4096  # a terminal hands over a line at a time, and none that is longer


class Keyboard:
    """Standard input, which is a terminal."""

    def __init__(self) -> None:
        self._rest = b""
        self._has_ended = False

    @staticmethod
    def is_there() -> bool:
        """Whether somebody can type, and sees what they are asked."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()

    def forget(self) -> None:
        """Forget what was typed before: it was no answer to what is asked now."""
        self._rest = b""
        self._has_ended = False
        if sys.platform != "win32":
            import termios  # noqa: PLC0415 (there is none on Windows)

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def line(self) -> str | None:
        """Return the next line without its end; None for Ctrl-D on an empty one, or when the terminal is gone."""
        if sys.platform == "win32":
            text = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            return text.rstrip("\r\n") if text else None
        while b"\n" not in self._rest:
            if self._has_ended:
                return None
            await anyio.wait_readable(sys.stdin)
            try:
                data = os.read(sys.stdin.fileno(), _READ_BYTES)
            except OSError:  # the terminal was closed
                data = b""
            if not data:  # Ctrl-D behind some text only hands that over
                self._rest = b""
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace")
