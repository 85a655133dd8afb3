"""The JSON-RPC envelope: decode the kind, id and method of a message; params, results and errors stay undecoded.

Theory of operation. One decoder reads every usual message. A frame that it refuses is read again, more slowly: first to
find out whether it is JSON at all, then member by member, so that the error response can say what is wrong and name the
request. Of a frame that is not JSON, only the members before the first and after the last inner bracket are read, where
SDKs write the id.

Decoding never raises: a frame that is not a message becomes a `Malformed`. Where JSON leaves a choice:

* Of two members with the same name the last counts, as in msgspec, Python and JavaScript.
* An id of ``1.0`` is the integer 1, as in JSON Schema; the schemas' ``RequestId`` is "string or integer".
* The whole frame must be UTF-8, including the undecoded parts, so that it can be forwarded.
* Half a surrogate pair in a string is refused, because UTF-8 cannot encode it.
* The depth of nesting is limited by the interpreter: about 1,000 levels in CPython 3.11.

Spec:
    2024-11-05, basic/messages; 2025-03-26 and later, basic/index, "Messages"; https://www.jsonrpc.org/specification
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated.registry import REVISIONS, Labels
from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.limits import MAX_BATCH_LENGTH
from mcpgen.runtime.protocol.framing import END_BYTES
from mcpgen.runtime.protocol.malformed import has_half_pair, id_in, integer, kind_and_id, malformed_message, text_in
from mcpgen.runtime.protocol.message_size import SMALL_FRAME_BYTES, detached, too_many_values
from mcpgen.runtime.protocol.messages import (
    Batch,
    Error,
    ErrorResponse,
    Fault,
    Kind,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.protocol.framing import OversizedLine

__all__ = [
    "Payload",
    "allows_batches",
    "decode",
    "decode_oversized",
    "encode_answer",
    "encode_batch",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "error_json",
    "refusal",
    "request_id_in",
    "unknown_id",
]

Payload: TypeAlias = bytes | Raw | Struct | dict[str, Any]
"""Params, a result or an error to send: JSON (bytes, Raw), which is copied, or a value, which is encoded here."""

_OPENING_BRACE: Final = ord("{")
_OPENING_BRACKET: Final = ord("[")


class _Wire(Struct, frozen=True, gc=False):
    """The members of the usual messages."""

    jsonrpc: Literal["2.0"]
    id: str | int | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _ErrorShape(Struct, frozen=True, gc=False):
    code: int | float
    message: str


_decode_wire: Final = msgspec.json.Decoder(_Wire).decode
_decode_any: Final = msgspec.json.Decoder(Raw).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_error: Final = msgspec.json.Decoder(_ErrorShape).decode


def decode(
    frame: bytes, *, max_batch_length: int = MAX_BATCH_LENGTH, max_values: int | None = None
) -> Message | Batch | Malformed:
    """Return the message in *frame*, or the messages of a batch.

    A batch is read in any revision; `allows_batches` tells whether the revision has batches.

    Args:
        frame: The bytes of a message.
        max_batch_length: The most messages in a batch.
        max_values: The most values in the frame, which are counted before they are decoded; None for no limit.

    Spec:
        2025-11-25, basic/index, "Messages"; JSON-RPC 2.0, "Request object", "Response object", "Batch".
    """
    if max_values is not None and too_many_values(frame, max_values):
        return _refused_for_values(frame, max_values)
    try:
        if not frame.isascii():
            frame.decode()
        wire = _decode_wire(frame)
        if len(frame) <= SMALL_FRAME_BYTES:
            return _classified(wire.id, wire.method, wire.params, wire.result, wire.error)
        return _message(wire, len(frame))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(frame, max_batch_length)


def decode_oversized(line: OversizedLine) -> Malformed:
    """Return a message that was too long to read, with its id and kind if they could be read."""
    found = malformed_message(Fault.TOO_LONG, line.head, line.tail)
    return Malformed(found.fault, found.id, found.kind, line.limit_bytes)


def request_id_in(frame: bytes) -> RequestId | UnsetType:
    """Return the id of the request in *frame*, which is refused before it is decoded; UNSET if it has none to be read.

    Nothing but the id and the method is decoded.

    Spec:
        2025-11-25, basic/index, "Error Responses": they MUST include the same ID as the request.
    """
    found = _refused_for_values(frame, 0)
    return UNSET if found.id is None or found.kind in ("notification", "response") else found.id


def _message(wire: _Wire, frame_bytes: int) -> Message | Malformed:
    """Return the message of *wire*; its parts do not keep a frame alive that is much larger."""
    params, result = detached(wire.params, frame_bytes), detached(wire.result, frame_bytes)
    return _classified(wire.id, wire.method, params, result, detached(wire.error, frame_bytes))


def _refused_for_values(frame: bytes, max_values: int) -> Malformed:
    """Return the message in *frame*, which has too many values, with its id and kind if they can be read."""
    try:
        wire = _decode_wire(frame)  # skips values without decoding them
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = malformed_message(Fault.TOO_MANY_VALUES, frame[:END_BYTES], frame[-END_BYTES:])
        return Malformed(found.fault, found.id, found.kind, max_values)
    known = None if isinstance(wire.id, UnsetType) else wire.id
    if wire.method is UNSET:
        kind: Kind = "response"
    else:
        kind = "notification" if known is None else "request"
    return Malformed(Fault.TOO_MANY_VALUES, known, kind, max_values)


def _classified(
    request_id: RequestId | UnsetType | None,
    method: str | UnsetType,
    params: Raw | UnsetType,
    result: Raw | UnsetType,
    error: Raw | UnsetType,
) -> Message | Malformed:
    """Return the message that consists of these members; an id of None is null."""
    if method is UNSET:
        return _response(None if request_id is UNSET else request_id, result, error)
    if result is not UNSET or error is not UNSET:
        fault = Fault.TWO_KINDS
    elif params is not UNSET and memoryview(params)[0] != _OPENING_BRACE:
        fault = Fault.WRONG_PARAMS
    elif request_id is UNSET:
        return Notification(method, params)
    elif request_id is None:
        fault = Fault.WRONG_ID
    else:
        return Request(request_id, method, params)
    if request_id is UNSET:
        return Malformed(fault, None, "notification")
    return Malformed(fault, request_id, "request")


def _response(
    request_id: RequestId | None, result: Raw | UnsetType, error: Raw | UnsetType
) -> Response | ErrorResponse | Malformed:
    if error is not UNSET:
        if result is not UNSET:
            return Malformed(Fault.TWO_OUTCOMES, request_id, "response")
        return _error_response(request_id, error)
    if result is UNSET:
        return Malformed(Fault.NO_METHOD, request_id, "unknown" if request_id is None else "request")
    if request_id is None:
        return Malformed(Fault.NO_ID, None, "response")
    if memoryview(result)[0] != _OPENING_BRACE:
        return Malformed(Fault.WRONG_RESULT, request_id, "response")
    return Response(request_id, result)


def _error_response(request_id: RequestId | None, error: Raw) -> ErrorResponse | Malformed:
    try:
        shape = _decode_error(error)
    except msgspec.DecodeError:
        return Malformed(Fault.WRONG_ERROR, request_id, "response")
    code = integer(shape.code)
    if code is None:
        return Malformed(Fault.WRONG_ERROR, request_id, "response")
    return ErrorResponse(request_id, code, shape.message, error)


def _decode_slowly(frame: bytes, max_batch_length: int) -> Message | Batch | Malformed:
    """Return the message in *frame* if it is valid but unusual, or what is wrong with it."""
    try:
        frame.decode()
        value = _decode_any(frame)  # raises unless the whole frame is JSON
        if memoryview(value)[0] != _OPENING_BRACKET:
            return _member_by_member(value, len(frame))
        items = _decode_items(value)
        if not items:
            return Malformed(Fault.EMPTY_BATCH)
        if len(items) > max_batch_length:
            return Malformed(Fault.LONG_BATCH, limit=max_batch_length)
        return Batch(tuple([_item(each, len(frame)) for each in items]))
    except UnicodeDecodeError:
        fault = Fault.NOT_UTF8
    except RecursionError:
        fault = Fault.TOO_DEEP
    except msgspec.DecodeError as error:
        fault = Fault.HALF_PAIR if has_half_pair(frame, error) else Fault.NOT_JSON
    return malformed_message(fault, frame[:END_BYTES], frame[-END_BYTES:])


def _item(value: Raw, frame_bytes: int) -> Message | Malformed:
    try:
        return _message(_decode_wire(value), frame_bytes)
    except msgspec.DecodeError:
        return _member_by_member(value, frame_bytes)


def _member_by_member(value: Raw, frame_bytes: int) -> Message | Malformed:
    if memoryview(value)[0] != _OPENING_BRACE:
        return Malformed(Fault.NOT_AN_OBJECT)
    members = _decode_members(value)
    request_id, method, jsonrpc = id_in(members), text_in(members, "method"), text_in(members, "jsonrpc")
    kind, known = kind_and_id(members)
    if jsonrpc != "2.0":
        return Malformed(Fault.WRONG_JSONRPC, known, kind)
    if isinstance(request_id, Fault):
        return Malformed(request_id, None, kind)
    if method is None:
        return Malformed(Fault.WRONG_METHOD, known, kind)
    params, result, error = (detached(members.get(each, UNSET), frame_bytes) for each in ("params", "result", "error"))
    return _classified(request_id, method, params, result, error)


def _labels(since: str, until: str | None = None) -> Labels:
    """Return the revisions from *since* to the one before *until*."""
    labels = [each.label for each in REVISIONS]
    return Labels(labels[labels.index(since) : labels.index(until) if until else None])


# 2025-03-26, basic/index, "Batching": "MUST support receiving"; 2025-06-18, changelog: "Remove support for batching".
_WITH_BATCHES: Final = _labels("2025-03-26", "2025-06-18")
# 2025-11-25, JSONRPCErrorResponse: the id is not required any more.
_WITH_ANONYMOUS_ERRORS: Final = _labels("2025-11-25")


def allows_batches(revision: str | None) -> bool:
    """Return whether a frame may hold a batch in *revision*; before negotiation (None) it may not.

    Spec:
        2025-03-26, basic/index, "Batching"; basic/lifecycle, "Initialization"; 2025-06-18, changelog.
    """
    return revision in _WITH_BATCHES


def unknown_id(revision: str | None) -> UnsetType | None:
    """Return the id of an error response to a request whose own id could not be read: absent or null.

    Since 2025-11-25, MCP omits it. In earlier revisions MCP allows no value, so it is null, as in JSON-RPC.

    Spec:
        2025-11-25, basic/index, "Error Responses"; JSON-RPC 2.0, "Response object".
    """
    return UNSET if revision in _WITH_ANONYMOUS_ERRORS else None


class _Call(Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    id: RequestId | UnsetType
    method: str
    params: Any


class _Answer(Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    id: RequestId | UnsetType | None
    result: Any = UNSET
    error: Any = UNSET


_encode: Final = msgspec.json.Encoder().encode


def encode_request(request_id: RequestId, method: str, params: Payload | UnsetType = UNSET) -> bytes:
    """Return the bytes of a request."""
    return _encode(_Call(request_id, method, Raw(params) if type(params) is bytes else params))


def encode_notification(method: str, params: Payload | UnsetType = UNSET) -> bytes:
    """Return the bytes of a notification."""
    return _encode(_Call(UNSET, method, Raw(params) if type(params) is bytes else params))


def encode_response(request_id: RequestId, result: Payload) -> bytes:
    """Return the bytes of a response."""
    if type(result) is bytes:  # two thirds of the cost of encoding an `_Answer`
        return b"".join((b'{"jsonrpc":"2.0","id":', _encode(request_id), b',"result":', result, b"}"))
    return _encode(_Answer(request_id, result))


def encode_error(request_id: RequestId | UnsetType | None, error: Payload) -> bytes:
    """Return the bytes of an error response; `unknown_id` returns the id for a request without a readable one."""
    return _encode(_Answer(request_id, UNSET, Raw(error) if type(error) is bytes else error))


def encode_answer(answer: Response | ErrorResponse | Malformed) -> bytes:
    """Return the bytes of an answer that was decoded. Of an invalid one, they have only the id, so they are invalid."""
    if isinstance(answer, Response):
        return encode_response(answer.id, answer.result)
    return _encode(_Answer(answer.id)) if isinstance(answer, Malformed) else encode_error(answer.id, answer.error)


def encode_batch(messages: Sequence[bytes]) -> bytes:
    """Return the bytes of a batch of encoded messages, at least one (JSON-RPC 2.0, "Batch")."""
    if not messages:
        raise UsageError("`messages` is empty, but a batch holds at least one message")
    return b"[" + b",".join(messages) + b"]"


def refusal(malformed: Malformed, revision: str | None) -> bytes | None:
    """Return the error response to *malformed* in *revision* (None: not negotiated yet); None if it gets none.

    Spec:
        2025-11-25, basic/index, "Notifications": "The receiver MUST NOT send a response."
    """
    if malformed.kind in ("notification", "response"):
        return None
    request_id = unknown_id(revision) if malformed.id is None else malformed.id
    return encode_error(request_id, Error(malformed.fault.code, malformed.reason))


def error_json(error: RequestError) -> bytes:
    """Return *error* as JSON, unadapted, for codes that are the same in every revision."""
    return msgspec.json.encode(Error(error.code, error.message, error.data))
