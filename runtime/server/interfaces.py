"""What a session tells the shell that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.exchange import Exchange, Origin
    from mcpgen.runtime.server.service import Call

__all__ = ["SessionOutput"]


class SessionOutput(Protocol):
    """What a session tells the shell that runs it."""

    def send(self, message: bytes, about: Exchange | Origin | None) -> None:
        """Write a request or a notification, which belongs to the request *about*, or to none."""
        ...

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Write the answer to *origin*, or to all of its batch; None: to what is being taken and never became one."""
        ...

    def dropped(self, origin: Origin | None) -> None:
        """Note that *origin*, and what came in one batch with it, will not be answered; None as for `answer`."""
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

    async def drain(self, about: Exchange | None) -> None:
        """Wait until the peer has read most of what was sent about the request *about*, or about none."""
        ...

    def disconnect(self, exchange: Exchange, retry_ms: int | None) -> bool:
        """Close what the answer to *exchange* would go over, if its client can come back for it; return whether."""
        ...

    def expire_later(self) -> None:
        """Call `demands.expire` from now on, whenever it says that there is something to do."""
        ...
