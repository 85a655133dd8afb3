"""The eras of the servers that this process has connected to, and the first step of a connection that follows from it.

Spec:
    2026-07-28, basic/versioning, "Backward Compatibility": clients SHOULD cache the result for the lifetime of the
    server process. They MAY keep it longer, if they probe again once it turns out to be wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mcpgen.runtime.protocol.negotiation import revisions_of_era

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

__all__ = ["Era", "EraCache", "Plan"]

Era: TypeAlias = Literal["handshake", "stateless"]

Plan: TypeAlias = Literal["probe", "initialize", "discover"]
"""The first request of a connection.

``initialize`` or ``discover`` if the era of the server is known from an earlier connection, or if the client has
revisions of one era only. Otherwise ``probe``: `server/discover` with a short time limit.
"""

# A gateway has hundreds of servers. One entry takes about a hundred bytes.
_MAX_SERVERS: Final = 10_000


class EraCache:
    """Remembers the eras of the servers that were used last."""

    def __init__(self) -> None:
        self._eras: OrderedDict[Hashable, Era] = OrderedDict()

    def first_plan(self, identity: Hashable | None, offered: Sequence[str]) -> Plan:
        """Return the first step of a connection.

        Args:
            identity: The key of the server; None if its era is not remembered.
            offered: The revisions that the client can speak.
        """
        if not revisions_of_era(offered, "stateless"):
            return "initialize"
        if not revisions_of_era(offered, "handshake"):
            return "discover"
        era = self.get(identity)
        return "probe" if era is None else "initialize" if era == "handshake" else "discover"

    def get(self, identity: Hashable | None) -> Era | None:
        """Return the era of a server, if it is known."""
        return None if identity is None else self._eras.get(identity)

    def remember(self, identity: Hashable | None, era: Era) -> None:
        """Store the era of a server."""
        if identity is None:
            return
        self._eras[identity] = era
        self._eras.move_to_end(identity)
        if len(self._eras) > _MAX_SERVERS:
            self._eras.popitem(last=False)

    def forget(self, identity: Hashable | None) -> None:
        """Remove the era of a server."""
        if identity is not None:
            self._eras.pop(identity, None)
