"""Which exception becomes which JSON-RPC error.

A message may name what the peer sent. It never says what failed inside a handler; that goes to the log.

Spec:
    2024-11-05, basic/messages, "Responses"; 2026-07-28, basic/index, "Error Codes"; JSON-RPC 2.0, "Error object".
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    RequestError,
    RequestRefused,
    TransportClosed,
    UnsupportedByPeer,
    sole_exception,
)
from mcpgen.runtime.protocol.envelope import error_json
from mcpgen.runtime.protocol.newest import ErrorCode, methods
from mcpgen.runtime.server.functions.results import exception_text
from mcpgen.runtime.server.functions.tools import ToolError

if TYPE_CHECKING:
    from mcpgen.runtime.server.exchange import Exchange

__all__ = ["as_request_error", "error_body", "forget_frames", "unsupported_tool_result"]

_INTERNAL = RequestError(ErrorCode.INTERNAL_ERROR, "the server failed to handle this request")

_LOG = logging.getLogger("mcpgen.handlers")

# 2026-07-28, basic/index, "Error Codes".
MISSING_CLIENT_CAPABILITY = methods.ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY


def as_request_error(failure: BaseException, what: str, *, debug: bool) -> RequestError:
    """Return the error that a peer gets for *failure*.

    Args:
        failure: What the handler raised.
        what: The name of the request in the log.
        debug: Whether the error says what *failure* is, although the author did not raise it for the client.
    """
    match failure:
        case RequestRefused():  # its code is about our request, and would mean something else for the client's
            return RequestError(ErrorCode.INTERNAL_ERROR, f"the client refused {failure.method}: {failure.message}")
        case RequestError():
            return failure
        case ToolError():  # in a prompt, a resource or a handler; a tool's becomes a result
            return RequestError(ErrorCode.INTERNAL_ERROR, str(failure))
        case InvalidPayload():
            data = {"pointer": failure.pointer} if failure.pointer else UNSET
            return RequestError(ErrorCode.INVALID_PARAMS, str(failure), data)
        case AdaptationError():
            _LOG.warning("%s", failure)
            return RequestError(
                ErrorCode.INVALID_PARAMS, f"the message cannot be adapted from {failure.step}: {failure.reason}"
            )
        case _ if _is_unhandled(failure):
            return RequestError(ErrorCode.METHOD_NOT_FOUND, f"this server does not support {failure}")
        case TransportClosed():
            _LOG.info("%s was not finished: %s", what, failure)
            return _INTERNAL
        case _:
            _LOG.error("%s failed", what, exc_info=failure)
            return _internal(failure) if debug else _INTERNAL


def error_body(exchange: Exchange, failure: BaseException, *, debug: bool) -> bytes:
    """Return the error that the client of *exchange* gets for *failure*, as its revision writes it.

    *debug* is that of `as_request_error`.
    """
    failure = sole_exception(failure)
    if isinstance(failure, UnsupportedByPeer):
        return _unsupported(exchange, failure)
    if isinstance(failure, InvalidPayload):  # the request was valid, so the handler's own result or request is not
        _LOG.error("%s failed", _name(exchange), exc_info=failure)
        return error_json(_internal(failure) if debug else _INTERNAL)
    error = as_request_error(failure, _name(exchange), debug=debug)
    try:
        body = exchange.handler.codec.error(error.code, error.message, error.data)
    except (AdaptationError, InvalidPayload, TypeError, ValueError) as problem:
        # The author's error is not valid in the native revision, or cannot be expressed in the peer's.
        _LOG.error(
            "the error of %s cannot be sent: %s; an internal error was sent instead", exchange.handler.method, problem
        )
        return error_json(_INTERNAL)
    code = msgspec.json.decode(body, type=_ErrorCode).code
    if exchange.peer.era == "stateless" and _is_reserved(exchange.peer.revision, code):
        _LOG.error(
            "%s raised a RequestError with the code %d, which is reserved; an internal error was sent instead",
            exchange.handler.method,
            code,
        )
        return error_json(_INTERNAL)
    return body


def _internal(failure: BaseException) -> RequestError:
    return RequestError(ErrorCode.INTERNAL_ERROR, f"{_INTERNAL.message}: {exception_text(failure)}")


def _name(exchange: Exchange) -> str:
    """Return the name of a request for the log: its method, and the tool, prompt or resource that it is about."""
    method = exchange.handler.method
    params: Any = exchange.params
    if exchange.handler.slow_path is not None:  # then those are the arguments of a tool
        params = exchange.handler.codec.params(exchange.raw)
    fields = [getattr(params, each, UNSET) for each in ("name", "uri")]
    named = [each for each in fields if isinstance(each, str)]
    return f"{method} {named[0]!r}" if named else method


class _ErrorCode(Struct):
    code: int


def _is_reserved(revision: str, code: int) -> bool:
    """Whether *code* must not be sent to a stateless peer of *revision*.

    Spec:
        2026-07-28, basic/index, "Error Codes": MUST NOT emit undefined codes of the reserved range, nor codes of
        earlier revisions.
    """
    if code in set(bindings(revision).methods.ErrorCode):
        return False
    return code in methods.RESERVED_ERRORS or code in _codes_of_all_revisions()


@cache
def _codes_of_all_revisions() -> frozenset[int]:
    return frozenset(code for each in registry.REVISIONS for code in bindings(each.label).methods.ErrorCode)


def unsupported_tool_result(exchange: Exchange, failure: BaseException) -> bytes | None:
    """Return the result of a tool that needs what its client does not support; None if the answer is an error.

    In handshake revisions, the model reads the reason in a result, and many clients raise an error out of the call
    instead. 2026-07-28 demands its own error.

    Spec:
        2025-11-25, server/tools, "Error Handling": errors of a tool are results with `isError`.
    """
    failure = sole_exception(failure)
    if not isinstance(failure, UnsupportedByPeer) or exchange.handler.method != "tools/call":
        return None
    if exchange.peer.era == "stateless":
        return None
    text = f"The client does not support {failure.what}, which this tool needs: {failure.reason}"
    return msgspec.json.encode({"content": [{"type": "text", "text": text}], "isError": True})


def _unsupported(exchange: Exchange, failure: UnsupportedByPeer) -> bytes:
    """Return the error for a handler that needs a capability which its client lacks.

    Spec:
        2026-07-28, basic/index, "Per-request protocol fields": MUST return MissingRequiredClientCapability.
    """
    if exchange.peer.era == "stateless" and failure.required is not None:
        data = {"requiredCapabilities": failure.required}
        return error_json(RequestError(MISSING_CLIENT_CAPABILITY, f"the client does not support {failure.what}", data))
    # Earlier revisions have no code for this. The request was valid, so it is the server that failed.
    return error_json(
        RequestError(ErrorCode.INTERNAL_ERROR, f"the client does not support {failure.what}: {failure.reason}")
    )


def _is_unhandled(failure: BaseException) -> bool:
    """Whether *failure* is ``Unhandled``, of which the bindings of each revision have their own."""
    return type(failure).__name__ == "Unhandled" and type(failure).__module__.endswith("._support.methods")


def forget_frames(failure: BaseException) -> None:
    """Drop the tracebacks of *failure*.

    One of their frames may refer to *failure*. Then the request, which may be large, would be kept until the next
    garbage collection, which comes late (`gc_tuning`).
    """
    each: BaseException | None = failure
    while each is not None and each.__traceback__ is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
