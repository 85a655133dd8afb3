"""A message on its way out: what it is, which era it belongs to, and the headers that repeat it.

Spec:
    2026-07-28, basic/transports/streamable-http, "Request Metadata"; 2025-06-18 and 2025-11-25, basic/transports,
    "Protocol Version Header".
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.protocol import envelope, param_headers
from mcpgen.runtime.protocol.messages import ErrorResponse, Notification, Request, RequestId, Response

if TYPE_CHECKING:
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

_STATELESS: Final = frozenset(each.label for each in REVISIONS if each.era == "stateless")

_NUMBERS: Final = count(1)

Kind: TypeAlias = Literal["request", "notification", "answer"]


class _Meta(Struct):
    revision: Any = field(name="io.modelcontextprotocol/protocolVersion", default=UNSET)


class _Params(Struct):
    name: Any = UNSET
    uri: Any = UNSET
    meta: _Meta | UnsetType = field(name="_meta", default=UNSET)


class _Cancelled(Struct, rename="camel"):
    request_id: RequestId


class _Arguments(Struct):
    arguments: dict[str, Any] | UnsetType = UNSET


_decode_params: Final = msgspec.json.Decoder(_Params).decode


class OutgoingMessage:
    """One message of ours, or an answer, or a batch of those.

    Attributes:
        body: All of it.
        kind: A request, a notification, or answers to the server's own requests.
        id: Of a request, or of the request that it answers; None for any other.
        method: Empty for answers.
        params: Undecoded.
        revision: That of the stateless era which it says it is of; None if it says none.
        is_own: Whether the transport asks for itself: its answer is nobody else's.
        answer: What came back, if it is our own.
    """

    __slots__ = ("_named", "answer", "body", "id", "is_own", "kind", "method", "params", "revision")

    def __init__(
        self, body: bytes, kind: Kind, request_id: RequestId | None, method: str, params: Raw | UnsetType
    ) -> None:
        self.body: bytes = body
        self.kind: Kind = kind
        self.id: RequestId | None = request_id
        self.method: str = method
        self.params: Raw | UnsetType = params
        self.revision: str | None = None
        self.is_own: bool = False
        self.answer: Response | ErrorResponse | None = None
        self._named: dict[str, Any] = {}
        if not isinstance(params, UnsetType):
            self._read(params)

    def _read(self, params: Raw) -> None:
        try:
            found = _decode_params(params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # metadata of no shape that anybody knows; what is wrong with it is for others to say
        self._named = {"name": found.name, "uri": found.uri}
        if not isinstance(found.meta, UnsetType) and found.meta.revision in _STATELESS:
            self.revision = found.meta.revision

    @property
    def named(self) -> dict[str, Any]:
        """The params that a header may repeat."""
        return self._named

    @property
    def tool(self) -> str | None:
        """The tool that it calls; None if it calls none."""
        name = self._named.get("name") if self.method == CALL else None
        return name if isinstance(name, str) else None


def parse_message(message: bytes) -> OutgoingMessage:
    """Return what *message*, which we have written, is."""
    found = envelope.decode(message)
    if isinstance(found, Request):
        return OutgoingMessage(message, "request", found.id, found.method, found.params)
    if isinstance(found, Notification):
        return OutgoingMessage(message, "notification", None, found.method, found.params)
    answered = found.id if isinstance(found, Response | ErrorResponse) else None
    return OutgoingMessage(message, "answer", answered, "", UNSET)


def transport_request(method: str, params: envelope.Payload) -> OutgoingMessage:
    """Return a request of the transport's own, with an id that no request of a client has."""
    made = parse_message(envelope.encode_request(f"mcpgen-http-{next(_NUMBERS)}", method, params))
    made.is_own = True
    return made


def cancelled_id(message: OutgoingMessage) -> RequestId | None:
    """Return the request that a notification cancels; None if it cancels none."""
    if message.method != "notifications/cancelled" or isinstance(message.params, UnsetType):
        return None
    try:
        return msgspec.json.decode(message.params, type=_Cancelled).request_id
    except msgspec.DecodeError:
        return None


def message_headers(message: OutgoingMessage, mirror: ParamHeaders | None) -> dict[str, str]:
    """Return the headers of a message of the stateless era, which it names itself.

    Raises:
        UsageError: A header cannot carry what it has to repeat.
    """
    if message.revision is None:
        return {}
    found = param_headers.standard_headers(message.method, message.named, message.revision)
    if mirror is not None and not isinstance(message.params, UnsetType):
        arguments = msgspec.json.decode(message.params, type=_Arguments).arguments
        if not isinstance(arguments, UnsetType):
            found |= param_headers.param_header_values(mirror, arguments)
    return found
