"""Show what arrives while a server works: progress, log entries, and its standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.cli.terminal_text import as_json, display_width, escaped_line
from mcpgen.runtime.protocol.log_levels import LEVELS

if TYPE_CHECKING:
    from mcpgen.runtime.cli.client.terminal import Screen
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models

__all__ = ["ProgressDisplay"]

_BAR_COLUMNS: Final = 20
_MAX_HELD_LINES: Final = 1000
_MAX_ENTRY: Final = 4000

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

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the progress of a request in the status line."""
        if self.is_held or not self._screen.is_terminal:
            return
        width = (self._screen.width or 80) - 1
        text = f"{progress:g}"
        if total is not None and total > 0:
            share = min(max(progress / total, 0.0), 1.0)
            full = round(share * _BAR_COLUMNS)
            text = f"{'█' * full}{'░' * (_BAR_COLUMNS - full)} {share:4.0%}" if share == share else text  # noqa: PLR0124 (nan is not itself)
        text = f"{text}  {escaped_line(message[:width])}" if message else text  # it can have megabytes
        while display_width(text) > width:
            text = text[:-1]
        self._screen.status(text)

    def log(self, params: models.LoggingMessageNotificationParams, context: object) -> None:
        """Write a log entry of the server."""
        del context
        level = params.level
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        data: Any = params.data
        text = escaped_line(data) if isinstance(data, str) else as_json(data, is_pretty=False)
        logger = f"{escaped_line(params.logger)}: " if isinstance(params.logger, str) else ""
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
        elif len(self._held) < _MAX_HELD_LINES:
            self._held.append(line)

    def hold(self) -> None:
        """Hold output back until `release`."""
        self._screen.clear_status()
        self.is_held = True

    def release(self) -> None:
        """Write what was held back."""
        self.is_held = False
        held, self._held = self._held, []
        self._screen.lines(held)
