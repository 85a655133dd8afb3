"""Show what arrives while a server works: progress, log entries, and its standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.cli.terminal_text import clip, escaped_line, json_in_ascii
from mcpgen.runtime.protocol.log_levels import LEVELS

if TYPE_CHECKING:
    from mcpgen.runtime.cli.client.terminal import Screen
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models

__all__ = ["ProgressDisplay"]

_BAR_COLUMNS: Final = 20
_MAX_HELD_LINES: Final = 1000
_MAX_HELD_CHARS: Final = 1024 * 1024
_MAX_ENTRY: Final = 4000
_MAX_LOGGER: Final = 200

_STYLES: Final = {"warning": "warning", "debug": "dim", "info": "plain", "notice": "plain"}


class ProgressDisplay:
    """Write what arrives to a screen; hold it back while the user answers a question there.

    Args:
        screen: The screen.

    Attributes:
        level: The lowest level of log entries to show.
        is_held: Whether output is held back.
    """

    def __init__(self, screen: Screen) -> None:
        self.level: Level = "warning"
        self.is_held: bool = False
        self._screen = screen
        self._held: list[str] = []
        self._held_chars = 0

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the progress of a request in the status line."""
        if self.is_held or not self._screen.is_terminal:
            return
        progress = _in_range(progress)
        width = (self._screen.width or 80) - 1
        text = f"{progress:g}"
        if total is not None and total > 0:
            share = min(max(progress / _in_range(total), 0.0), 1.0)
            full = round(share * _BAR_COLUMNS)
            text = f"{'█' * full}{'░' * (_BAR_COLUMNS - full)} {share:4.0%}" if share == share else text  # noqa: PLR0124 (nan is not itself)
        text = f"{text}  {escaped_line(message[:width])}" if message else text  # it can have megabytes
        # A server can send thousands of messages, of which each character can become an escape of ten.
        self._screen.status(clip(text, width))

    def log(self, params: models.LoggingMessageNotificationParams, context: object) -> None:
        """Write a log entry of the server."""
        del context
        level = params.level
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        data: Any = params.data
        # Both can have megabytes, and to escape them takes a second.
        text = escaped_line(data[:_MAX_ENTRY]) if isinstance(data, str) else _start_of_json(data)
        logger = f"{escaped_line(params.logger[:_MAX_LOGGER])}: " if isinstance(params.logger, str) else ""
        self._write(f"{self._screen.paint(f'[{level}]', _STYLES.get(level, 'bad'))} {logger}{text[:_MAX_ENTRY]}")

    def note(self, text: str) -> None:
        """Write a warning of the client."""
        self._write(f"{self._screen.paint('Note:', 'warning')} {escaped_line(text)}")

    def server_line(self, line: str) -> None:
        """Write a line of the server's standard error."""
        self._write(self._screen.paint(escaped_line(line), "dim"))

    def _write(self, line: str) -> None:
        if not self.is_held:
            self._screen.line(line)
        elif len(self._held) < _MAX_HELD_LINES and self._held_chars + len(line) <= _MAX_HELD_CHARS:
            self._held.append(line)
            self._held_chars += len(line)

    def hold(self) -> None:
        """Hold output back until `release`."""
        self._screen.clear_status()
        self.is_held = True

    def release(self) -> None:
        """Write what was held back."""
        self.is_held = False
        held, self._held, self._held_chars = self._held, [], 0
        self._screen.lines(held)


def _in_range(number: float) -> float:
    """Return *number*, or the nearest float if it is an int of hundreds of digits: no float has a place for it."""
    return max(-sys.float_info.max, min(number, sys.float_info.max))


def _start_of_json(data: object) -> str:
    """Return the start of *data* as JSON in ASCII."""
    return json_in_ascii(msgspec.json.encode(data)[:_MAX_ENTRY].decode("utf-8", "ignore"))
