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
from mcpgen.runtime.adapt.json_pointer import is_array, is_object, pointer_to
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    RequestError,
    RequestRefused,
    UnsupportedByPeer,
)
from mcpgen.runtime.protocol.envelope import error_json
from mcpgen.runtime.protocol.exception_groups import sole_exception
from mcpgen.runtime.protocol.newest import ErrorCode, methods
from mcpgen.runtime.protocol.sent_values import sent_value_fault
from mcpgen.runtime.server.exchange import RequestEnded
from mcpgen.runtime.server.failure_log import log_failure
from mcpgen.runtime.server.functions.results import exception_text
from mcpgen.runtime.server.functions.tools import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.exchange import Exchange, ResponseBody

__all__ = [
    "as_request_error",
    "error_body",
    "lacks_capability",
    "unsupported_error",
    "unsupported_tool_result",
    "url_elicitations_fault",
]

_INTERNAL = RequestError(ErrorCode.INTERNAL_ERROR, "the server failed to handle this request")

_LOG = logging.getLogger("mcpgen.handlers")

# JSON-RPC 2.0, "Error object"; 2026-07-28, basic/index, "Error Codes".
_JSON_RPC_RESERVED = range(-32768, -31999)
_LATER_CODES = frozenset(code for code in methods.ErrorCode if code in methods.RESERVED_ERRORS)
MISSING_CLIENT_CAPABILITY = methods.ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY


def as_request_error(failure: BaseException, what: str, *, debug: bool) -> RequestError:
    """Return the error that a peer gets for *failure*.

    Args:
        failure: What the handler raised.
        what: The name of the request in the log.
        debug: Whether the error says what *failure* is, although the author did not raise it for the client.
    """
    match failure:
        # They are about a request of the handler, to its client or to another server, so their code is not passed on.
        case RequestRefused() | UnsupportedByPeer(peer="server"):
            return RequestError(ErrorCode.INTERNAL_ERROR, str(failure))
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
        case RequestEnded():
            _LOG.info("%s was not finished: %s", what, failure)
            return _INTERNAL
        case _:
            log_failure(_LOG, failure, "%s failed", what)
            return _internal(failure) if debug else _INTERNAL


def error_body(exchange: Exchange, failure: BaseException, *, debug: bool) -> bytes:
    """Return the error that the client of *exchange* gets for *failure*, as its revision writes it.

    *debug* is that of `as_request_error`.
    """
    failure = sole_exception(failure)
    if isinstance(failure, UnsupportedByPeer) and failure.peer == "client":
        return error_json(unsupported_error(exchange.peer, failure))
    if isinstance(failure, InvalidPayload):  # the request was valid, so the handler's own result or request is not
        log_failure(_LOG, failure, "%s failed", _name(exchange))
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
    sent = msgspec.json.decode(body, type=_Error)
    reason = _misuse(exchange.peer, sent)
    if reason is not None:
        _LOG.error(
            "%s raised a RequestError with the code %d, %s; an internal error was sent instead",
            exchange.handler.method,
            sent.code,
            reason,
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


class _Error(Struct):
    code: int
    data: Any = UNSET


def _misuse(peer: Peer, error: _Error) -> str | None:
    """Return why the error of a handler must not be sent to *peer*; None if it may.

    Spec:
        2026-07-28, basic/index, "Error Codes": MUST NOT emit undefined codes of the reserved range, nor codes of
        earlier revisions; MUST use defined codes only with their meanings; new codes SHOULD be outside the range that
        JSON-RPC reserves. 2025-11-25, client/elicitation, "URL Elicitation Required Error".
    """
    codes = bindings(peer.revision).methods.ErrorCode
    known = frozenset(codes)
    if peer.era == "handshake":
        if error.code == getattr(codes, "URL_ELICITATION_REQUIRED", None):
            reason = url_elicitations_fault(peer.revision, error.data)
            return None if reason is None else f"but {reason}"
        return "which is of a later revision" if error.code in _LATER_CODES else None
    if error.code == MISSING_CLIENT_CAPABILITY:
        return None if _names_missing(peer, error.data) else "but its data names no capability that the client lacks"
    if error.code in methods.RESERVED_ERRORS and error.code in known:
        return "which mcpgen sends itself"
    if error.code in known:
        return None
    if error.code in _JSON_RPC_RESERVED:
        return "which is reserved; use one outside of -32768 to -32000"
    return "which earlier revisions define; use another one" if error.code in _codes_of_all_revisions() else None


def _names_missing(peer: Peer, data: object) -> bool:
    """Whether the *data* of the error -32021 names a capability that *peer* has not declared."""
    required = data.get("requiredCapabilities") if is_object(data) else None
    return is_object(required) and _lacks(peer.declared, required)


def _lacks(declared: Mapping[str, object], required: Mapping[str, object]) -> bool:
    for key, each in required.items():
        own = declared.get(key)
        if own is None or (is_object(own) and is_object(each) and _lacks(own, each)):
            return True
    return False


def url_elicitations_fault(revision: str, data: object) -> str | None:
    """Return why *data* is not that of the error -32042 in *revision*.

    Spec:
        2025-11-25, client/elicitation, "URL Elicitation Required Error": a list of elicitations in URL mode, which have
        an `elicitationId`.
    """
    try:
        members = msgspec.json.decode(msgspec.json.encode(data))
    except (msgspec.DecodeError, TypeError, ValueError):
        return "its data is not JSON"
    pages = members.get("elicitations") if is_object(members) else None
    if not is_array(pages) or not pages:
        return "its data has no list `elicitations` with at least one item"
    door = bindings(revision)
    decode = door.decoder(door.models.ElicitRequestURLParams)
    for index, each in enumerate(pages):
        try:
            fault = sent_value_fault(decode(msgspec.json.encode(each)))
        except msgspec.DecodeError as error:
            return f"/elicitations/{index} of its data is not valid: {error}"
        if fault is not None:
            return f"/elicitations/{index}{pointer_to(fault[0])} of its data is not valid: {fault[1]}"
    return None


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
    if not isinstance(failure, UnsupportedByPeer) or failure.peer != "client":
        return None
    if exchange.handler.method != "tools/call" or exchange.peer.era == "stateless":
        return None
    text = f"The tool needs {failure.what}, which cannot be sent to this client: {failure.reason}"
    return msgspec.json.encode({"content": [{"type": "text", "text": text}], "isError": True})


def unsupported_error(peer: Peer, failure: UnsupportedByPeer) -> RequestError:
    """Return the error for a request that needs a capability which its client lacks.

    Spec:
        2026-07-28, basic/index, "Per-request protocol fields": MUST return MissingRequiredClientCapability.
    """
    reason = f"{failure.what} cannot be sent to this client: {failure.reason}"
    if peer.era == "stateless" and failure.required is not None:
        return RequestError(MISSING_CLIENT_CAPABILITY, reason, {"requiredCapabilities": failure.required})
    # Earlier revisions have no code for this. The request was valid, so it is the server that failed.
    return RequestError(ErrorCode.INTERNAL_ERROR, reason)


def lacks_capability(body: ResponseBody) -> bool:
    """Whether *body* is the error for a client that lacks a capability, which another request may declare."""
    return body.is_error and msgspec.json.decode(body.json, type=_Error).code == MISSING_CLIENT_CAPABILITY


def _is_unhandled(failure: BaseException) -> bool:
    """Whether *failure* is ``Unhandled``, of which the bindings of each revision have their own."""
    return type(failure).__name__ == "Unhandled" and type(failure).__module__.endswith("._support.methods")
