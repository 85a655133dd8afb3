"""Middleware that is ready for use, and the types to write your own.

    server.middleware(TimingMiddleware())

The guide's chapter "Lifespan and middleware" explains it.
"""

from __future__ import annotations

from mcpgen.runtime.api.middleware import (
    CallNext,
    ErrorHandlingMiddleware,
    LoggingMiddleware,
    ResponseLimitingMiddleware,
    TimingMiddleware,
)

__all__ = [
    "CallNext",
    "ErrorHandlingMiddleware",
    "LoggingMiddleware",
    "ResponseLimitingMiddleware",
    "TimingMiddleware",
]
