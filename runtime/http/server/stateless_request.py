"""One request of a stateless client: a connection of its own, which ends with its answer, or when the client hangs up.

Spec:
    2026-07-28, basic/transports/streamable-http, "Sending Messages", "Receiving Messages", "Cancellation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestError, UnknownRevision
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.negotiation import missing_fields
from mcpgen.runtime.protocol.param_headers import header_mismatch
from mcpgen.runtime.server.builtin_methods import stream_closed_notification
from mcpgen.runtime.server.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange, Origin
    from mcpgen.runtime.server.service import Call, HandlerTable
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["HEADER_MISMATCH", "StatelessConnection", "header_problem", "has_required_metadata", "http_status"]

T = TypeVar("T")

HEADER_MISMATCH: Final = -32020

# 2026-07-28, basic/transports/streamable-http, "Protocol Version Header" and "Server Validation"; basic/index, "_meta"
# and "Error Codes". What a handler refuses is no matter of HTTP.
_STATUS: Final[dict[int, int]] = {
    Code.PARSE_ERROR: 400,
    Code.INVALID_REQUEST: 400,
    Code.METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    -32021: 400,
    -32022: 400,
}


class _Code(Struct):
    code: int


class _Answer(Struct):
    error: _Code | UnsetType = UNSET


class _Uri(Struct):
    uri: str | UnsetType = UNSET


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode
_decode_uri: Final = msgspec.json.Decoder(_Uri).decode
_decode_arguments: Final = msgspec.json.Decoder(dict[str, object]).decode


class StatelessConnection(Connection):
    """The connection of one request."""

    def __init__(self, engine: Engine, outlet: ResponseBuffer, spawner: Spawner, user: str) -> None:
        super().__init__(engine, outlet, spawner)
        self.session.user = user
        self._outlet = outlet

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Write the answer, which is the last message."""
        del origin
        self._outlet.write(message)
        self._outlet.end(has_answer=True)

    def dropped(self, origin: Origin | None) -> None:
        """Take it that there will be no answer."""
        del origin
        self._outlet.end()

    def end_of_input(self) -> None:
        """Take it that the application ends: a stream of changes is over with its answer, behind which nothing comes.

        Spec:
            2026-07-28, basic/patterns/cancellation: the server MUST also send `notifications/cancelled` then.
        """
        for each in self.session.listening.streams.values():
            self._outlet.write(stream_closed_notification(each.origin))
        super().end_of_input()

    def close(self) -> None:
        """Cancel the handler, and forget the request."""
        super().close()
        self.session.sink = _NOWHERE  # or the two would keep each other, until the garbage collector comes

    async def drain(self, about: Exchange | None) -> None:
        """Wait until the client has read most of what was written."""
        del about
        if self._outlet.is_full:
            await self._outlet.drain()


class _Nowhere:
    """The sink of a request that is over, for a handler that waits for its client to come back with another."""

    def send(self, message: bytes, about: Exchange | Origin | None) -> None:
        """Drop a message: nobody is there."""

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Drop an answer."""

    def dropped(self, origin: Origin | None) -> None:
        """Note nothing."""

    def start(self, exchange: Exchange) -> None:
        """Start nothing."""

    def tell(self, call: Call, params: object, peer: Peer) -> None:
        """Run nothing."""

    def flush_soon(self, exchange: Exchange) -> None:
        """Ask nothing: what is asked meanwhile is asked when the client comes back."""

    async def drain(self, about: Exchange | None) -> None:
        """Return: nothing waits."""

    def disconnect(self, exchange: Exchange, retry_ms: int | None) -> bool:
        """Return False: there is no connection."""
        del exchange, retry_ms
        return False

    def expire_later(self) -> None:
        """Nothing of it expires."""


_NOWHERE: Final = _Nowhere()


def header_problem(
    service: HandlerTable, headers: Mapping[str, str], request: Request, meta: RequestMeta
) -> str | None:
    """Return what is wrong with the headers of a request, if they do not say what its body says.

    Spec:
        2026-07-28, basic/transports/streamable-http, "Server Validation".
    """
    method = request.method
    params: dict[str, object] = {}
    mirror = None
    if not isinstance(meta.name, UnsetType):
        params["name"] = meta.name
    if method == "resources/read" and not isinstance(request.params, UnsetType):
        uri = _read(_decode_uri, request.params)
        if uri is not None and not isinstance(uri.uri, UnsetType):
            params["uri"] = uri.uri
    elif method == "tools/call" and not isinstance(meta.name, UnsetType):
        mirror = service.mirror(meta.name)
        if mirror is not None and not isinstance(meta.arguments, UnsetType):
            params["arguments"] = _read(_decode_arguments, meta.arguments)
    revision = None if isinstance(meta.revision, UnsetType) else meta.revision
    return header_mismatch(headers, method, params, revision, mirror)


def _read(decode: Callable[[Raw], T], value: Raw) -> T | None:
    try:
        return decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # what is wrong with it is found when the params are checked


def has_required_metadata(meta: RequestMeta) -> bool:
    """Whether a request has all that each must have.

    Spec:
        2026-07-28, basic/index, "_meta": if not, it is answered with -32602 and the status 400.
    """
    if missing_fields(meta) is not None:
        return False
    try:
        client_peer(str(meta.revision), meta.client_capabilities, meta.client_info)
    except (RequestError, UnknownRevision):
        return False
    return True


def http_status(message: bytes, *, is_complete: bool) -> int:
    """Return the status that goes with an answer.

    Args:
        message: The answer.
        is_complete: Whether the request had all that each must have; if not, that is what was wrong with it.
    """
    error = _decode_answer(message).error
    if isinstance(error, UnsetType):
        return 200
    if error.code == Code.INVALID_PARAMS and not is_complete:
        return 400
    return _STATUS.get(error.code, 200)
