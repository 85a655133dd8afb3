"""A message on its way to the server: its kind, its era, and the headers that repeat parts of it.

Spec:
    2026-07-28, basic/transports/streamable-http, "Request Metadata"; 2025-06-18 and 2025-11-25, basic/transports,
    "Protocol Version Header".
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated.registry import REVISIONS, Labels
from mcpgen.runtime.protocol import envelope, param_headers
from mcpgen.runtime.protocol.messages import ErrorResponse, Notification, Request, RequestId, Response
from mcpgen.runtime.protocol.newest import MetaKey

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.http_session import HttpSession  # noqa: TC004 (no message is decoded)
    from mcpgen.runtime.protocol.param_headers import ParamHeaders

__all__ = [
    "CALL",
    "INITIALIZE",
    "LISTEN",
    "LIST_TOOLS",
    "OutgoingMessage",
    "cancelled_id",
    "message_headers",
    "transport_request",
    "parse_message",
]

CALL: Final = "tools/call"
INITIALIZE: Final = "initialize"
LISTEN: Final = "subscriptions/listen"
LIST_TOOLS: Final = "tools/list"

_STATELESS: Final = Labels(each.label for each in REVISIONS if each.era == "stateless")

_REQUEST_NUMBERS: Final = count(1)

Kind: TypeAlias = Literal["request", "notification", "answer"]


class _Meta(Struct):
    revision: Any = field(name=MetaKey.PROTOCOL_VERSION, default=UNSET)


class _Params(Struct):
    name: Any = UNSET
    uri: Any = UNSET
    cursor: Any = None
    task_id: Any = field(name="taskId", default=None)
    meta: _Meta | UnsetType = field(name="_meta", default=UNSET)


class _Cancelled(Struct, rename="camel"):
    request_id: RequestId


class _Arguments(Struct):
    arguments: dict[str, Any] | UnsetType = UNSET


_decode_params: Final = msgspec.json.Decoder(_Params).decode


class OutgoingMessage(Struct, eq=False):
    """A message to the server; answers may be a batch.

    Attributes:
        body: The whole message, encoded.
        kind: A request, a notification, or answers to requests of the server.
        id: The id of the request, or of the request that it answers; None for other messages.
        method: Empty for answers.
        params: Not decoded.
        revision: The stateless revision that its metadata names; None if it names none.
        is_internal: Whether the transport itself sends the request, so that its answer is not delivered to the client.
        answer: The answer, if the request is internal.
        params_in_headers: The params that standard headers repeat, if they are there.
        cursor: The place in a list that it continues at; None for other requests.
        session: The session in which the request was sent; None if it was not sent yet, or in no session.
        is_cancelled: Whether the client has cancelled the request, so that it must not be sent any more.
    """

    body: bytes
    kind: Kind
    id: RequestId | None
    method: str
    params: Raw | UnsetType
    revision: str | None = None
    is_internal: bool = False
    answer: Response | ErrorResponse | None = None
    params_in_headers: dict[str, Any] = {}
    cursor: str | None = None
    session: HttpSession | None = None
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.params, UnsetType):
            return
        try:
            found = _decode_params(self.params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # the server reports the error
        self.params_in_headers = {"name": found.name, "uri": found.uri, "taskId": found.task_id}
        self.cursor = found.cursor if isinstance(found.cursor, str) else None
        if not isinstance(found.meta, UnsetType) and found.meta.revision in _STATELESS:
            self.revision = found.meta.revision

    @property
    def tool(self) -> str | None:
        """The name of the tool that it calls; None if it is not a tool call."""
        name = self.params_in_headers.get("name") if self.method == CALL else None
        return name if isinstance(name, str) else None


def parse_message(message: bytes) -> OutgoingMessage:
    """Return *message*, which the client has encoded, as an `OutgoingMessage`."""
    found = envelope.decode(message)
    if isinstance(found, Request):
        return OutgoingMessage(message, "request", found.id, found.method, found.params)
    if isinstance(found, Notification):
        return OutgoingMessage(message, "notification", None, found.method, found.params)
    answered = found.id if isinstance(found, Response | ErrorResponse) else None
    return OutgoingMessage(message, "answer", answered, "", UNSET)


def transport_request(method: str, params: envelope.Payload) -> OutgoingMessage:
    """Return an internal request, with an id that no request of the client has."""
    request = parse_message(envelope.encode_request(f"mcpgen-http-{next(_REQUEST_NUMBERS)}", method, params))
    request.is_internal = True
    return request


def cancelled_id(message: OutgoingMessage) -> RequestId | None:
    """Return the id of the request that a message cancels; None if it cancels none."""
    if message.method != "notifications/cancelled" or isinstance(message.params, UnsetType):
        return None
    try:
        return msgspec.json.decode(message.params, type=_Cancelled).request_id
    except msgspec.DecodeError:
        return None


def message_headers(message: OutgoingMessage, tool_headers: ParamHeaders | None) -> dict[str, str]:
    """Return the headers of a message of a stateless revision; none for other messages.

    Args:
        message: The message.
        tool_headers: The param headers of the tool that it calls, if known.

    Raises:
        UsageError: A header cannot carry a value that it must repeat.
    """
    if message.revision is None:
        return {}
    found = param_headers.standard_headers(message.method, message.params_in_headers, message.revision)
    if tool_headers is not None and not isinstance(message.params, UnsetType):
        arguments = msgspec.json.decode(message.params, type=_Arguments).arguments
        if not isinstance(arguments, UnsetType):
            found |= param_headers.param_header_values(tool_headers, arguments)
    return found
