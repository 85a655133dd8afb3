"""The contents of a frame: one of four kinds of message, a batch of them, or a malformed message.

`mcpgen.runtime.protocol.envelope` decodes frames to these types. Params, results and errors in them stay undecoded, as
views that keep the whole frame in memory.

Spec:
    2024-11-05, basic/messages; 2025-03-26 and later, basic/index, "Messages".
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.protocol.newest import ErrorCode

__all__ = [
    "Batch",
    "Error",
    "ErrorResponse",
    "Fault",
    "Kind",
    "Malformed",
    "Message",
    "Notification",
    "Request",
    "RequestId",
    "Response",
]

RequestId: TypeAlias = str | int

Kind: TypeAlias = Literal["request", "notification", "response", "unknown"]
"""The kind of message that a malformed message was meant to be."""


class Fault(Enum):
    """The reasons why a frame is not a message, each with the code of its error response.

    A reason that names ``{limit}`` is completed by `Malformed.reason`.

    JSON-RPC, "Error object": -32700 for "invalid JSON" and errors "while parsing the JSON text", -32600 where "the JSON
    sent is not a valid Request object"; 2026-07-28, schema#parseerror and schema#invalidrequesterror, say the same.
    """

    code: ErrorCode
    reason: str

    TOO_LONG = ErrorCode.PARSE_ERROR, "the message is longer than {limit} bytes (max_frame_bytes)"
    NOT_UTF8 = ErrorCode.PARSE_ERROR, "the message is not UTF-8"
    NOT_JSON = ErrorCode.PARSE_ERROR, "the message is not JSON"
    HALF_PAIR = ErrorCode.PARSE_ERROR, "a string in the message has half of a surrogate pair"
    TOO_DEEP = ErrorCode.PARSE_ERROR, "the message is nested too deeply"
    TOO_MANY_VALUES = ErrorCode.INVALID_REQUEST, "the message has more than {limit} values (max_values)"
    NOT_AN_OBJECT = ErrorCode.INVALID_REQUEST, "the message is not an object"
    WRONG_JSONRPC = ErrorCode.INVALID_REQUEST, 'jsonrpc is not "2.0"'
    WRONG_ID = ErrorCode.INVALID_REQUEST, "id is neither a string nor an integer"
    WRONG_METHOD = ErrorCode.INVALID_REQUEST, "method is not a string"
    WRONG_PARAMS = ErrorCode.INVALID_REQUEST, "params is not an object"
    WRONG_RESULT = ErrorCode.INVALID_REQUEST, "result is not an object"
    WRONG_ERROR = ErrorCode.INVALID_REQUEST, "error is not an object with an integer code and a string message"
    NO_METHOD = ErrorCode.INVALID_REQUEST, "the message has no method, result or error"
    NO_ID = ErrorCode.INVALID_REQUEST, "the result has no id"
    TWO_KINDS = ErrorCode.INVALID_REQUEST, "the message has both a method and a result or an error"
    TWO_OUTCOMES = ErrorCode.INVALID_REQUEST, "the message has both a result and an error"
    EMPTY_BATCH = ErrorCode.INVALID_REQUEST, "the batch is empty"
    LONG_BATCH = ErrorCode.INVALID_REQUEST, "the batch has more than {limit} messages (max_batch_length)"
    NO_BATCHES = ErrorCode.INVALID_REQUEST, "only 2025-03-26 has batches; send each message alone"

    def __init__(self, code: ErrorCode, reason: str) -> None:
        self.code = code
        self.reason = reason


class Request(Struct, frozen=True, gc=False):
    """A message that expects a response."""

    id: RequestId
    method: str
    params: Raw | UnsetType = UNSET


class Notification(Struct, frozen=True, gc=False):
    """A message that gets no response."""

    method: str
    params: Raw | UnsetType = UNSET


class Response(Struct, frozen=True, gc=False):
    """The result of a request."""

    id: RequestId
    result: Raw


class ErrorResponse(Struct, frozen=True, gc=False):
    """The error of a request.

    Attributes:
        id: The id of the request; None if the peer could not read it.
        code: ``error.code``.
        message: ``error.message``.
        error: The whole of ``error``, undecoded.
    """

    id: RequestId | None
    code: int
    message: str
    error: Raw


class Malformed(Struct, frozen=True, gc=False):
    """A frame, or an item of a batch, that is not a message.

    Attributes:
        fault: What is wrong, with the code and the text of the error response.
        id: Its id, if it could be read.
        kind: The kind that it was meant to be. A notification or a response gets no answer, however wrong it is; the
            id of a response is that of our request.
        limit: The limit that it exceeds, if the fault is one of size.
    """

    fault: Fault
    id: RequestId | None = None
    kind: Kind = "unknown"
    limit: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether it answers our request that has its id, if there is one: it may be a response without its result."""
        return self.id is not None and (self.kind == "response" or self.fault is Fault.NO_METHOD)

    @property
    def reason(self) -> str:
        """What is wrong."""
        return self.fault.reason.replace("{limit}", str(self.limit))


Message: TypeAlias = Request | Notification | Response | ErrorResponse


class Batch(Struct, frozen=True, gc=False):
    """The messages of one frame, at least one; each may be malformed."""

    items: tuple[Message | Malformed, ...]


class Error(Struct, frozen=True, gc=False):
    """The error object of our responses; the ``Error`` of each revision's bindings encodes to the same JSON."""

    code: int
    message: str
    data: Any = UNSET
