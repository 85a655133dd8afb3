"""A request of a stateless revision: its connection, the check of its headers, and the HTTP status of its answer.

Spec:
    2026-07-28, basic/transports/streamable-http, "Sending Messages", "Receiving Messages", "Cancellation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.errors import RequestError, UnknownRevision
from mcpgen.runtime.http.server.open_requests import CountedConnection
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.negotiation import missing_fields
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.param_headers import NAMED_BY, header_mismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.open_requests import Ticket
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import OpenRequest
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.quota import Quota
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["StatelessConnection", "header_problem", "has_required_metadata", "http_status"]

T = TypeVar("T")

# 2026-07-28, basic/transports/streamable-http, "Protocol Version Header" and "Server Validation"; basic/index, "_meta"
# and "Error Codes". Errors that a handler raises have the status 200.
_STATUS: Final[dict[int, int]] = {
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}


class _Code(Struct):
    code: int


class _Answer(Struct):
    error: _Code | UnsetType = UNSET


class _Named(Struct):
    uri: str | UnsetType = UNSET
    task_id: str | UnsetType = field(name="taskId", default=UNSET)


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode
_decode_named: Final = msgspec.json.Decoder(_Named).decode
_decode_arguments: Final = msgspec.json.Decoder(dict[str, object]).decode


class StatelessConnection(CountedConnection):
    """The connection of one request, which ends with the answer or when the client disconnects."""

    __slots__ = ("_response",)

    ticket: Ticket | None

    def __init__(
        self, engine: Engine, response: ResponseBuffer, spawner: Spawner, quota: Quota, client: Client
    ) -> None:
        super().__init__(engine, response, spawner, quota, client)
        self._response = response

    def open(self, ticket: Ticket, on_abort: Callable[[], object] | None) -> ResponseBuffer:
        """Count the request by its *ticket* from now on; return what its messages are written to."""
        self.ticket = ticket
        ticket.on_give_way = self.give_way
        self._response.on_abort = on_abort
        return self._response

    def give_way(self) -> None:
        """End the request early, with an error; a subscription ends as at a shutdown."""
        if self._response.has_ended:  # its client does not read the answer
            self._response.abort()
            return
        self._response.status = 503
        self.end_of_input()
        for each in list(self.session.exchanges.values()):
            self.refuse_one(each)
        self._response.end()

    def respond(self, message: bytes, _request: OpenRequest | None, /) -> None:
        """Write the answer, which is the last message."""
        self._response.write(message)
        self._response.end(has_answer=True)

    def drop(self, _request: OpenRequest | None, /) -> None:
        """End the response without an answer."""
        self._response.end()

    def close(self) -> None:
        """Cancel the handler, and forget the request."""
        self.release_parked()
        super().close()


def header_problem(
    handlers: HandlerTable, headers: Mapping[str, str], request: Request, meta: RequestMeta, reading: ReadingPolicy
) -> str | None:
    """Return why the headers of a request do not match its body; None if they do.

    The task extension demands `Mcp-Name` of clients only. FastMCP 4 does not send it, so *reading* decides.

    Spec:
        2026-07-28, basic/transports/streamable-http, "Server Validation"; ext-tasks,
        specification/draft/tasks, "Streamable HTTP: Routing Headers".
    """
    method = request.method
    params: dict[str, object] = {}
    param_headers = None
    if not isinstance(meta.name, UnsetType):
        params["name"] = meta.name
    if NAMED_BY.get(method) in {"uri", "taskId"} and not isinstance(request.params, UnsetType):
        named = _read(_decode_named, request.params)
        params |= {} if named is None else msgspec.to_builtins(named)
    elif method == "tools/call" and not isinstance(meta.name, UnsetType):
        param_headers = handlers.tool_headers.of(meta.name)
        if param_headers is not None and not isinstance(meta.arguments, UnsetType):
            params["arguments"] = _read(_decode_arguments, meta.arguments)
    revision = None if isinstance(meta.revision, UnsetType) else meta.revision
    needs_name = reading.is_strict or NAMED_BY.get(method) != "taskId"
    problem = header_mismatch(headers, method, params, revision, param_headers, needs_name=needs_name)
    if problem is None and not needs_name and http.NAME not in headers:
        reading.note(f"a {method} request", "the Mcp-Name header is missing")
    return problem


def _read(decode: Callable[[Raw], T], value: Raw) -> T | None:
    try:
        return decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # decoding the params reports the error


def has_required_metadata(meta: RequestMeta, limits: Limits) -> bool:
    """Return whether a request has the metadata that every request must have.

    Spec:
        2026-07-28, basic/index, "_meta": without it, the answer is -32602 with the status 400.
    """
    if missing_fields(meta) is not None:
        return False
    try:
        client_peer(str(meta.revision), meta.client_capabilities, meta.client_info, limits)
    except (RequestError, UnknownRevision):
        return False
    return True


def http_status(message: bytes, *, is_complete: bool) -> int:
    """Return the HTTP status of an answer.

    Args:
        message: The answer.
        is_complete: Whether the request had the required metadata; if not, -32602 is about the metadata.
    """
    error = _decode_answer(message).error
    if isinstance(error, UnsetType):
        return 200
    if error.code == ErrorCode.INVALID_PARAMS and not is_complete:
        return 400
    return _STATUS.get(error.code, 200)
