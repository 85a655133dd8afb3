"""Requests and responses that their revision does not allow, as the client means them: see `ReadingPolicy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from mcpgen.runtime.errors import InvalidPayload, RequestError, printable
from mcpgen.runtime.protocol.messages import Request
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.reading_policy import TEXT_ID, meant_id
from mcpgen.runtime.server import builtin_methods

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.exchange import ServerRequest
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["meant_request", "normalized"]

# Of a name in the log.
_MAX_NAME_CHARS = 80


def normalized(
    session: ServerSession, message: Request, peer: Peer | None, meta: RequestMeta, error: InvalidPayload | RequestError
) -> Request:
    """Return *message*, which was refused with *error*, with params that its revision allows.

    Args:
        session: The session.
        message: The request.
        peer: The client; None if it could not be read.
        meta: The metadata of the request.
        error: Why it was refused.

    Raises:
        InvalidPayload: *error*; other params would not help, or no rule does.
        RequestError: Likewise.
    """
    if isinstance(error, InvalidPayload) or error.code == ErrorCode.INVALID_PARAMS:
        revision: str | None = None
        if peer is not None:
            revision = peer.revision
        elif meta.revision is not UNSET:
            revision = meta.revision
        elif message.method == "initialize":
            revision = builtin_methods.offered_revision(session, message)
        reading = session.engine.reading
        params = reading.payload(revision, message.method, "params", "client", message.params, peer=_name(peer))
        if params is not None:
            return Request(message.id, message.method, params)
    raise error


def _name(peer: Peer | None) -> str:
    """Return a client as the log of deviations names it; empty if its name is not known."""
    return "" if peer is None or peer.info is None else f"the client {printable(peer.info.name[:_MAX_NAME_CHARS])}"


def meant_request(session: ServerSession, response_id: str) -> ServerRequest | None:
    """Return the pending request whose integer id is written as a text."""
    meant, reading = meant_id(response_id), session.engine.reading
    if reading.is_strict or meant not in session.server_requests:
        return None
    reading.note("a response", TEXT_ID, peer=_name(session.peer))
    return session.take_server_request(meant)
