"""The library that speaks HTTP for us: it is loaded where a server has a URL, and comes with an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["import_httpx"]


def import_httpx() -> ModuleType:
    """Return httpx.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import httpx  # noqa: PLC0415 (most clients never need it, and it takes long to load)
    except ImportError:
        raise UsageError('a server at a URL is reached with httpx: pip install "mcpgen[http]"') from None
    return httpx
