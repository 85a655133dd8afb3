"""Tracebacks of the code that ``serve`` loads and runs, without the frames of mcpgen."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.api.server_runner import shown_path

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from mcpgen.runtime.errors import UsageError

__all__ = ["place_of", "print_traceback", "user_frames"]

_LIBRARIES: Final = frozenset({"anyio", "asyncio", "contextlib", "importlib", "mcpgen", "uvicorn", "uvloop"})


def place_of(error: UsageError) -> str:
    """Return the line of the user's code that called mcpgen, such as ``server.py:4: ``."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_library(frame)
    ]
    if not frames:
        return ""
    file, line = frames[-1]
    return f"{shown_path(file)}:{line}: "


def print_traceback(error: BaseException) -> None:
    """Print the traceback of *error* from the user's code on."""
    traceback.print_exception(type(error), error, user_frames(error))


def user_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback of *error* from the user's code on; None if that has no part in it."""
    entry = error.__traceback__
    while entry is not None and _is_library(entry.tb_frame):
        entry = entry.tb_next
    return entry


def _is_library(frame: FrameType) -> bool:
    """Whether *frame* is of mcpgen, or of what loads and runs the user's code for it."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES
