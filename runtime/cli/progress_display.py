"""What is told while a server works: how far it has come, and the entries of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.cli.terminal_text import as_json, display_width, escaped_line
from mcpgen.runtime.protocol.log_levels import LEVELS

if TYPE_CHECKING:
    from mcpgen.runtime.cli.screen import Screen
    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models

__all__ = ["ProgressDisplay"]

_BAR: Final = 20  # columns
_MOST_HELD: Final = 1000  # lines, while somebody is asked
_LONGEST_ENTRY: Final = 4000

_LOOKS: Final = {"warning": "odd", "debug": "dim", "info": "plain", "notice": "plain"}


class ProgressDisplay:
    """Writes to a screen what is told, unless somebody is being asked something there.

    Args:
        screen: Where.

    Attributes:
        level: The least severe entries of the log that are wanted.
        is_held: Whether nothing may be written now.
    """

    def __init__(self, screen: Screen) -> None:
        self.level: Level = "warning"
        self.is_held: bool = False
        self._screen = screen
        self._held: list[str] = []

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show how far a request has come."""
        if self.is_held or not self._screen.is_terminal:
            return
        width = (self._screen.width or 80) - 1
        how_far = f"{progress:g}"
        if total is not None and total > 0:
            share = min(max(progress / total, 0.0), 1.0)
            full = round(share * _BAR)
            how_far = f"{'█' * full}{'░' * (_BAR - full)} {share:4.0%}" if share == share else how_far  # noqa: PLR0124 (nan is not itself)
        text = f"{how_far}  {escaped_line(message)}" if message else how_far
        while display_width(text) > width:
            text = text[:-1]
        self._screen.status(text)

    def log(self, params: models.LoggingMessageNotificationParams, context: object) -> None:
        """Write an entry of the log."""
        del context
        level = params.level
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        data: Any = params.data
        text = escaped_line(data) if isinstance(data, str) else as_json(data, is_pretty=False)
        logger = f"{escaped_line(params.logger)}: " if isinstance(params.logger, str) else ""
        entry = f"{self._screen.paint(f'[{level}]', _LOOKS.get(level, 'bad'))} {logger}{text[:_LONGEST_ENTRY]}"
        self._tell(entry)

    def note(self, text: str) -> None:
        """Write what the client has noticed."""
        self._tell(f"{self._screen.paint('Note:', 'odd')} {escaped_line(text)}")

    def _tell(self, line: str) -> None:
        if not self.is_held:
            self._screen.line(line)
        elif len(self._held) < _MOST_HELD:
            self._held.append(line)

    def hold(self) -> None:
        """Write nothing until it is released."""
        self._screen.clear_status()
        self.is_held = True

    def release(self) -> None:
        """Write what had to wait."""
        self.is_held = False
        held, self._held = self._held, []
        self._screen.lines(held)
