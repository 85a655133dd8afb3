"""What a session tells the shell that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcpgen.runtime.engine.exchange import Exchange, Origin
    from mcpgen.runtime.engine.service import Call
    from mcpgen.runtime.peers.capabilities import Peer

__all__ = ["Sink"]


class Sink(Protocol):
    """What a session tells the shell that runs it."""

    def send(self, message: bytes, about: Exchange | Origin | None) -> None:
        """Write *message*, which belongs to the request *about*, or to none."""
        ...

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*, and call `complete` or `fail` with what comes out."""
        ...

    def tell(self, call: Call, params: object, peer: Peer) -> None:
        """Run the handler of something that *peer* is not waiting for."""
        ...

    def flush_soon(self, exchange: Exchange) -> None:
        """Call `demands.flush` with it once the handler had time to ask all it wants to ask now."""
        ...

    async def drain(self) -> None:
        """Wait until the peer has read most of what was sent."""
        ...

    def expire_later(self) -> None:
        """Call `demands.expire` from now on, whenever it says that there is something to do."""
        ...
