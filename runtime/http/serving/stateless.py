"""One request of a stateless client: a connection of its own, which ends with its answer, or when the client hangs up.

Spec:
    2026-07-28, basic/transports/streamable-http, "Sending Messages", "Receiving Messages", "Cancellation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.engine.connection import Connection
from mcpgen.runtime.http.mirroring import mismatch
from mcpgen.runtime.wire.messages import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.engine.exchange import Exchange, Origin
    from mcpgen.runtime.engine.service import Service
    from mcpgen.runtime.http.serving.outlet import Outlet
    from mcpgen.runtime.peers.negotiation import RequestMeta
    from mcpgen.runtime.server import Server
    from mcpgen.runtime.transports.spawning import Spawner
    from mcpgen.runtime.wire.messages import Request

__all__ = ["HEADER_MISMATCH", "StatelessPost", "disagreement", "status_of"]

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


class StatelessPost(Connection):
    """The connection of one request."""

    def __init__(self, server: Server, outlet: Outlet, spawner: Spawner, user: str) -> None:
        super().__init__(server, outlet, spawner)
        self.session.user = user
        self._outlet = outlet

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Write the answer, which is the last message."""
        del origin
        self._outlet.write(message)
        self._outlet.end()

    def dropped(self, origin: Origin | None) -> None:
        """Take it that there will be no answer."""
        del origin
        self._outlet.end()

    async def drain(self, about: Exchange | None) -> None:
        """Wait until the client has read most of what was written."""
        del about
        if self._outlet.is_full:
            await self._outlet.drain()


def disagreement(service: Service, headers: Mapping[str, str], request: Request, meta: RequestMeta) -> str | None:
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
    return mismatch(headers, method, params, revision, mirror)


def _read(decode: Callable[[Raw], T], value: Raw) -> T | None:
    try:
        return decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # what is wrong with it is found when the params are checked


def status_of(message: bytes, *, is_complete: bool) -> int:
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
