"""The messages between the workers of one server.

A worker ignores a message that it cannot read, and a field that it does not know, so that workers of the next version
can be started while those of this one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from mcpgen.runtime.server.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Beat",
    "ChangeMade",
    "ElicitationAsked",
    "ForSession",
    "Piece",
    "PieceTaken",
    "RelayEnded",
    "RelayPart",
    "RelayWritten",
    "RelayedRequest",
    "SessionChanged",
    "SessionsUsed",
    "SharesKept",
    "WorkerMessage",
    "WrittenForSession",
    "decode_access",
    "decode_message",
    "encode_access",
    "encode_message",
]


class Beat(Struct, tag="beat"):
    """A worker's message to itself, which shows that messages arrive.

    Attributes:
        count: How many it has sent before.
    """

    count: int


class SessionChanged(Struct, tag="session"):
    """A session was changed, or has ended.

    Attributes:
        session: Its id.
        has_ended: Whether it has ended.
    """

    session: str
    has_ended: bool = False


class SessionsUsed(Struct, tag="used"):
    """Sessions are used at another worker; the receiver is their home, and counts them.

    Attributes:
        sessions: Their ids.
    """

    sessions: list[str]


class ChangeMade(Struct, tag="change"):
    """A resource or a list was changed.

    Attributes:
        method: The notification about it.
        uri: The resource.
        worker: The number of the worker that sends this, and notifies its own clients.
        owner: The client whose call has made the change.
    """

    method: str
    uri: str | None
    worker: int
    owner: str = ""


class ElicitationAsked(Struct, tag="elicitation"):
    """A client got the id of an elicitation by URL.

    Attributes:
        elicitation_id: The id.
        principal: The client.
    """

    elicitation_id: str
    principal: str


class SharesKept(Struct, tag="shares"):
    """What clients have at a worker; it holds until the next message, or for some seconds.

    Attributes:
        worker: The number of the worker that sends this.
        quota: What counts it.
        owners: The number of entries, and their bytes, of each owner that has a notable part.
    """

    worker: int
    quota: str
    owners: dict[str, tuple[int, int]]


class ForSession(Struct, tag="message"):
    """A message of a client: an answer for a handler of the receiver, or a cancellation of a request that it may serve.

    Attributes:
        session: The id of the session.
        user: The user that sent it.
        body: The message as it came.
        worker: The number of the worker that sends this, which has handled a cancellation already.
    """

    session: str
    user: str
    body: bytes
    worker: int


class WrittenForSession(Struct, tag="written"):
    """A message for the stream that a session opens with GET; the receiver is the home of the session.

    Attributes:
        session: The id of the session.
        message: The message to the client.
    """

    session: str
    message: bytes


class RelayedRequest(Struct, tag="request"):
    """An HTTP request that the receiver has to serve.

    Attributes:
        worker: The number of the worker that sends this, to which the response goes.
        relay: The number of the relay, among those of that worker.
        kind: How it is served: ``post``, ``get`` or ``message`` (of HTTP+SSE).
        headers: Its headers, without credentials.
        client: Its user, its owner, and whether the owner is known.
        body: Its body.
        query: Its query.
        access: What its access token allows, as `encode_access` writes it; empty if the server takes no tokens.
        hides: Whether lists omit what the token does not allow.
    """

    worker: int
    relay: int
    kind: str
    headers: dict[str, str]
    client: tuple[str, str, bool]
    body: bytes = b""
    query: bytes = b""
    access: bytes = b""
    hides: bool = False


class RelayPart(Struct, tag="part", omit_defaults=True):
    """A part of a response.

    Attributes:
        worker: The number of the worker that serves the request.
        relay: The number of the relay.
        body: A part of the body.
        more: Whether more parts follow.
        status: In the first part: the status.
        headers: Likewise: the headers.
    """

    worker: int
    relay: int
    body: bytes = b""
    more: bool = False
    status: int = 0
    headers: list[tuple[bytes, bytes]] = []


class RelayWritten(Struct, tag="written-part"):
    """The client has got the last part.

    Attributes:
        worker: The number of the worker that sends this.
        relay: The number of its relay.
    """

    worker: int
    relay: int


class RelayEnded(Struct, tag="left"):
    """The client of a relayed request has disconnected.

    Attributes:
        worker: The number of the worker that sends this.
        relay: The number of its relay.
    """

    worker: int
    relay: int


class Piece(Struct, tag="piece"):
    """A piece of a large message; the receiver sends `PieceTaken`.

    Attributes:
        worker: The number of the worker that sends this.
        message: The number of the message, among those of that worker.
        data: The piece.
        start: How many bytes came before.
        more: Whether more pieces follow.
    """

    worker: int
    message: int
    data: bytes
    start: int
    more: bool


class PieceTaken(Struct, tag="piece-taken"):
    """A piece has arrived.

    Attributes:
        message: The number of its message.
    """

    message: int


WorkerMessage: TypeAlias = (
    Beat
    | SessionChanged
    | SessionsUsed
    | SharesKept
    | ChangeMade
    | ElicitationAsked
    | ForSession
    | WrittenForSession
    | RelayedRequest
    | RelayPart
    | RelayWritten
    | RelayEnded
    | Piece
    | PieceTaken
)

encode_message: Callable[[WorkerMessage], bytes] = msgspec.msgpack.Encoder().encode

# A function of an author may put any object into the claims.
encode_access: Callable[[Access], bytes] = msgspec.msgpack.Encoder(enc_hook=str).encode

decode_access: Callable[[bytes], Access] = msgspec.msgpack.Decoder(Access).decode

_decode = msgspec.msgpack.Decoder(WorkerMessage).decode


def decode_message(data: bytes) -> WorkerMessage | None:
    """Return the message in *data*; None if it is of no kind that this worker knows."""
    try:
        message: WorkerMessage = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return message
