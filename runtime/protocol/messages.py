"""What a frame can be: one of four kinds of message, a batch of them, or malformed.

The values that `mcpgen.runtime.protocol.envelope` makes of bytes. Params, results and errors in them are JSON still;
each is a view that keeps the whole frame alive.

Spec:
    2024-11-05, basic/messages; 2025-03-26 and later, basic/index, "Messages".
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

__all__ = [
    "Batch",
    "Code",
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
"""What a malformed message was meant to be."""


class Code(IntEnum):
    """The error codes of JSON-RPC itself, the same in every revision; those of MCP are in its ``ErrorCode``."""

    PARSE_ERROR = -32700
    INTERNAL_ERROR = -32603
    INVALID_PARAMS = -32602
    METHOD_NOT_FOUND = -32601
    INVALID_REQUEST = -32600


class Fault(Enum):
    """Why a frame is no message: the one table of which code answers what.

    JSON-RPC, "Error object": -32700 for "invalid JSON" and errors "while parsing the JSON text", -32600 where "the JSON
    sent is not a valid Request object"; 2026-07-28, schema#parseerror and schema#invalidrequesterror, say the same.
    """

    code: Code
    reason: str

    TOO_LONG = Code.PARSE_ERROR, "the message is longer than this peer accepts"
    NOT_UTF8 = Code.PARSE_ERROR, "the message is not UTF-8"
    NOT_JSON = Code.PARSE_ERROR, "the message is not JSON"
    TOO_DEEP = Code.PARSE_ERROR, "the message is nested too deeply"
    NOT_AN_OBJECT = Code.INVALID_REQUEST, "the message is not an object"
    WRONG_JSONRPC = Code.INVALID_REQUEST, 'jsonrpc is not "2.0"'
    WRONG_ID = Code.INVALID_REQUEST, "id is neither a string nor an integer"
    WRONG_METHOD = Code.INVALID_REQUEST, "method is not a string"
    WRONG_PARAMS = Code.INVALID_REQUEST, "params is not an object"
    WRONG_RESULT = Code.INVALID_REQUEST, "result is not an object"
    WRONG_ERROR = Code.INVALID_REQUEST, "error is not an object with an integer code and a string message"
    NO_METHOD = Code.INVALID_REQUEST, "there is neither a method nor a result nor an error"
    NO_ID = Code.INVALID_REQUEST, "the result names no request"
    TWO_KINDS = Code.INVALID_REQUEST, "there is a method beside a result or an error"
    TWO_OUTCOMES = Code.INVALID_REQUEST, "there is a result beside an error"
    EMPTY_BATCH = Code.INVALID_REQUEST, "the batch is empty"
    LONG_BATCH = Code.INVALID_REQUEST, "the batch holds more messages than this peer accepts"
    NO_BATCHES = Code.INVALID_REQUEST, "this protocol revision has no batches"

    def __init__(self, code: Code, reason: str) -> None:
        self.code = code
        self.reason = reason


class Request(Struct, frozen=True, gc=False):
    """A message that has to be answered."""

    id: RequestId
    method: str
    params: Raw | UnsetType = UNSET


class Notification(Struct, frozen=True, gc=False):
    """A message that must not be answered."""

    method: str
    params: Raw | UnsetType = UNSET


class Response(Struct, frozen=True, gc=False):
    """The result of a request."""

    id: RequestId
    result: Raw


class ErrorResponse(Struct, frozen=True, gc=False):
    """The failure of a request.

    Attributes:
        id: The request; None if the peer could not tell which.
        code: ``error.code``.
        message: ``error.message``.
        error: The whole of ``error``, undecoded.
    """

    id: RequestId | None
    code: int
    message: str
    error: Raw


class Malformed(Struct, frozen=True, gc=False):
    """What a frame held instead of a message.

    Attributes:
        fault: What is wrong; it has the code and the sentence that answer it.
        id: The id that it bears, if it could be read.
        kind: What it was meant to be. A notification or a response must not be answered, however wrong it is; the id of
            a response is that of a request of ours.
    """

    fault: Fault
    id: RequestId | None = None
    kind: Kind = "unknown"


Message: TypeAlias = Request | Notification | Response | ErrorResponse


class Batch(Struct, frozen=True, gc=False):
    """Several messages in one frame, each judged by itself; one at least."""

    items: tuple[Message | Malformed, ...]


class Error(Struct, frozen=True, gc=False):
    """The error object of a response that we write; the ``Error`` of each revision's bindings does as well."""

    code: int
    message: str
    data: Any = UNSET
