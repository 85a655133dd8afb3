"""The levels of log messages, without the models of a revision, so that commands can import them fast."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["LEVELS", "Level"]

Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# Least severe first: 2025-11-25, server/utilities/logging, "Log Levels", after RFC 5424, section 6.2.1.
LEVELS: tuple[Level, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
