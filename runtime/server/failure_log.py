"""Log the failures of handlers, with a traceback each as long as few fail together.

Thousands of calls can fail in one turn of the event loop, such as those of a session that ends, and a traceback takes
some milliseconds to write.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.functions.results import exception_text
from mcpgen.runtime.transports.event_loops import EventLoop, call_soon, running_loop

if TYPE_CHECKING:
    import logging

__all__ = ["MAX_TRACEBACKS", "log_failure"]

# How many one turn of the event loop writes.
MAX_TRACEBACKS: Final = 10

_COUNTS: Final[dict[EventLoop, int]] = {}  # of the tracebacks of this turn


def log_failure(log: logging.Logger, failure: BaseException, message: str, *arguments: object) -> None:
    """Log *failure* as an error, with the *message* that *arguments* are formatted into."""
    loop = running_loop()
    count = _COUNTS.get(loop, 0)
    if count >= MAX_TRACEBACKS:
        brief = f"{message}: %s (without a traceback, because many failed together)"
        log.error(brief, *arguments, exception_text(failure))
        return
    _COUNTS[loop] = count + 1
    log.error(message, *arguments, exc_info=failure)
    if not count and not call_soon(loop, partial(_COUNTS.pop, loop, None)):
        del _COUNTS[loop]
