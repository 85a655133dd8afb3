"""Tracebacks in logs, without control characters of a peer.

The message of an exception can quote a peer: ``ValueError(f"unknown city {city}")``. Most programs write their log to a
terminal, which would do what control characters say.
"""

from __future__ import annotations

import logging
import traceback
from typing import Final

from mcpgen.runtime.errors import printable

__all__ = ["MAX_TRACEBACK_CHARS", "traceback_logger"]

# Enough for any traceback. A message can have millions of characters, and to escape them would stop the event loop.
# What is left out is in the middle: the last lines are the exception that was raised last, and where.
MAX_TRACEBACK_CHARS: Final = 65_536


def traceback_logger(name: str) -> logging.Logger:
    """Return the logger *name*, which writes tracebacks with control characters as escapes, and bounds them."""
    logger = logging.getLogger(name)
    logger.addFilter(_escape_traceback)  # once only, however often this is called
    return logger


def _escape_traceback(record: logging.LogRecord) -> bool:
    # Formatters of `logging` use the text that is here. Other handlers still get the exception itself.
    if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if len(text) > MAX_TRACEBACK_CHARS:
            text = f"{text[: MAX_TRACEBACK_CHARS // 2]}…{text[-MAX_TRACEBACK_CHARS // 2 :]}"
        record.exc_text = printable(text, kept="\n\t")
    return True
