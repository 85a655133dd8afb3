"""The servers that turned out to be of HTTP+SSE: they are never again asked anything that such a server does not know.

Spec:
    2025-11-25, basic/transports, "Backwards Compatibility"; 2026-07-28, basic/versioning, "Backward Compatibility".
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["LegacyServers"]

_MOST: Final = 10_000


class LegacyServers:
    """Remembers servers, those that were met last."""

    def __init__(self) -> None:
        self._servers: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, server: Hashable) -> bool:
        return server in self._servers

    def add(self, server: Hashable) -> None:
        """Remember *server*."""
        self._servers[server] = None
        self._servers.move_to_end(server)
        if len(self._servers) > _MOST:
            self._servers.popitem(last=False)

    def discard(self, server: Hashable) -> None:
        """Forget *server*."""
        self._servers.pop(server, None)
