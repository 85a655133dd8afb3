"""Tracebacks in logs, without control characters of a peer.

The message of an exception can quote a peer: ``ValueError(f"unknown city {city}")``. Most programs write their log to a
terminal, which would do what control characters say.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import printable

if TYPE_CHECKING:
    import logging

__all__ = ["MAX_TRACEBACK_CHARS", "escape_traceback"]

# Enough for any traceback. A message can have millions of characters, and to escape them would stop the event loop.
MAX_TRACEBACK_CHARS: Final = 65_536


def escape_traceback(record: logging.LogRecord) -> bool:
    """Escape the control characters in the traceback of *record*: a filter for a logger, which lets all records pass.

    Formatters of `logging` use the text that is here. Other handlers still get the exception itself.
    """
    if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        shown = text if len(text) <= MAX_TRACEBACK_CHARS else f"{text[:MAX_TRACEBACK_CHARS]}…"
        record.exc_text = printable(shown, kept="\n\t")
    return True
