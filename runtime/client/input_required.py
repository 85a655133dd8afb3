"""Input that a server requires before it completes a request: the client collects it, and sends the request again.

A stateless server answers with `input_required`. A server of 2025-11-25 answers with an error that lists URLs.

Spec:
    2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation, "URL Elicitation Required Error".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.adapt.json_pointer import is_object, pointer_to
from mcpgen.runtime.client.incoming_requests import find_handler
from mcpgen.runtime.client.pending_request import fresh_error
from mcpgen.runtime.errors import InvalidPayload, RequestError, RequestRefused, TransportClosed
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mcpgen.runtime.client.client_features import RequestHandler
    from mcpgen.runtime.client.client_session import ClientSession

__all__ = [
    "INPUT_REQUIRED_METHODS",
    "InputRequired",
    "all_accepted",
    "as_input_required",
    "collect_input",
    "invalid_result",
    "read_input_required",
    "refused_result",
    "retry_params",
    "too_many_rounds",
    "url_elicitation_required",
]

# 2026-07-28, basic/patterns/mrtr, "Supported Requests".
INPUT_REQUIRED_METHODS: Final = frozenset({"prompts/get", "resources/read", "tools/call"})


_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class _InputRequest(Struct):
    method: str
    params: Raw | UnsetType = UNSET


_decode_request: Final = msgspec.json.Decoder(_InputRequest).decode


class InputRequired(Struct, rename="camel"):
    """A result that requires input.

    Attributes:
        result_type: ``input_required``.
        input_requests: The requests of the server, by the keys that it chose.
        request_state: Opaque state of the server. The retry must return it.
    """

    result_type: str = field(name="resultType")
    input_requests: dict[str, _InputRequest] = {}
    request_state: str | UnsetType = UNSET


class _ResultType(Struct, rename="camel"):
    result_type: str | UnsetType = UNSET


class _ElicitAction(Struct):
    action: str


class _UrlElicitations(Struct):
    elicitations: list[dict[str, Any]]


_decode_action: Final = msgspec.json.Decoder(_ElicitAction).decode
_decode_input_required: Final = msgspec.json.Decoder(InputRequired).decode
_decode_result_type: Final = msgspec.json.Decoder(_ResultType).decode


def read_input_required(
    session: ClientSession, method: str, raw: Raw, *, is_extended: bool = False
) -> Raw | InputRequired:
    """Return an `InputRequired` if the stateless server's result *raw* is one, otherwise the final result.

    A result may have any type if an extension adds results to *method* (*is_extended*).

    Raises:
        InvalidPayload: The revision does not allow this `InputRequired`, or the type of the result is unknown.

    Spec:
        2026-07-28, basic/index, "ResultType": an unknown one is invalid, and an absent one means complete.
    """
    try:
        result_type = _decode_result_type(raw).result_type
    except (msgspec.DecodeError, RecursionError):
        return raw  # decoding it as the result explains the error
    if result_type == "complete":
        return raw
    if isinstance(result_type, UnsetType):
        return with_result_type(raw)
    if result_type != "input_required":
        if is_extended:
            return raw
        raise invalid_result(session, method, f"the result type {result_type[:100]!r} is unknown", "/resultType")
    if method not in INPUT_REQUIRED_METHODS:
        reason = "the server requires input, but the protocol does not allow that for this request"
        raise invalid_result(session, method, reason)
    try:
        required = _decode_input_required(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        normalized = session.reading.payload(session.revision, method, "result", "client", raw)
        if normalized is None:
            raise invalid_result(session, method, str(error)[:500]) from None
        required = _decode_input_required(normalized)
    _detach(required)
    if not required.input_requests and isinstance(required.request_state, UnsetType):
        raise invalid_result(session, method, "it must have `inputRequests` or `requestState`, and has neither")
    return required


def _detach(required: InputRequired) -> None:
    """Copy the params of the requests: the views would keep the whole frame alive while the handlers run."""
    for each in required.input_requests.values():
        if not isinstance(each.params, UnsetType):
            each.params = each.params.copy()


def with_result_type(raw: Raw) -> Raw:
    """Return a stateless server's result with the ``resultType`` that an absent one means.

    Spec:
        2026-07-28, basic/index, "ResultType": clients "MUST treat an absent `resultType` as "complete"".
    """
    members = _decode_members(raw)
    return raw if "resultType" in members else Raw(msgspec.json.encode({**members, "resultType": "complete"}))


async def collect_input(
    session: ClientSession,
    method: str,
    required: InputRequired,
    make_context: Callable[[str], Any],
    *,
    kept_bytes: int = 0,
) -> dict[str, Raw]:
    """Return the responses to the requests of *required*, by key. The handlers run at the same time.

    Args:
        session: The session with the server.
        method: The method that requires the input.
        required: The requests.
        make_context: Makes the context of a handler.
        kept_bytes: The memory that the caller keeps besides *required*.

    Raises:
        InvalidPayload: A request needs a capability that the client has not declared, or its params are invalid; or
            the client handles too many requests already.
        TransportClosed: The connection ended, which cancels the handlers: their responses cannot be sent.
        Exception: A handler raised it. A stateless server cannot be told about a failure.
    """
    limits, count, size = session.limits, len(required.input_requests), kept_bytes + _held_bytes(required)
    if count > limits.max_in_flight:
        reason = f"it has {count} requests, more than `max_in_flight` ({limits.max_in_flight})"
        raise refused_result(session, method, reason, "/inputRequests")
    if session.input_count + count > limits.max_in_flight:
        reason = f"its requests and those of other open calls are more than `max_in_flight` ({limits.max_in_flight})"
        raise refused_result(session, method, reason, "/inputRequests")
    if session.input_bytes + size > limits.max_in_flight_bytes:
        most = limits.max_in_flight_bytes
        reason = f"its requests and those of other open calls take more than `max_in_flight_bytes` ({most})"
        raise refused_result(session, method, reason, "/inputRequests")
    session.input_count += count
    session.input_bytes += size
    scope = anyio.CancelScope()
    session.input_scopes.add(scope)
    try:
        with scope:
            if session.failure is None:
                return await _responses(session, method, required, make_context)
        raise fresh_error(session.failure or TransportClosed(f"the connection ended before {method} was answered"))
    finally:
        session.input_scopes.discard(scope)
        session.input_count -= count
        session.input_bytes -= size


def _held_bytes(required: InputRequired) -> int:
    """Return the memory that *required* takes while its handlers run."""
    size = 0 if isinstance(required.request_state, UnsetType) else sys.getsizeof(required.request_state)
    for key, each in required.input_requests.items():
        size += sys.getsizeof(key) + (0 if isinstance(each.params, UnsetType) else decoded_bytes(each.params))
    return size


async def _responses(
    session: ClientSession, method: str, required: InputRequired, make_context: Callable[[str], Any]
) -> dict[str, Raw]:
    handlers: dict[str, tuple[RequestHandler, Any, str]] = {}
    for key, each in required.input_requests.items():
        try:
            handler, params = find_handler(session, each.method, each.params)
        except RequestError as error:
            raise refused_result(session, method, error.message, pointer_to(("inputRequests", key[:100]))) from None
        handlers[key] = handler, params, each.method
        await checkpoint()  # each can be a long form
    responses: dict[str, Raw] = {}
    failures: list[BaseException] = []

    async def respond(key: str) -> None:
        handler, params, asked = handlers[key]
        try:
            responses[key] = Raw(handler.codec.result(await handler.call(params, make_context(asked))))
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as failure:  # noqa: BLE001 (raised below; the task group would wrap it in a group)
            failures.append(failure)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for key in handlers:
            group.start_soon(respond, key)
    if failures:
        raise failures[0]
    if len(responses) < len(handlers):  # on asyncio, a handler can raise CancelledError by itself
        asked = next(each for key, (_, _, each) in handlers.items() if key not in responses)
        reason = f"the handler of {asked} raised a cancellation exception, but nothing cancelled the handler"
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
    return {key: responses[key] for key in handlers}


def as_input_required(requests: Mapping[str, Raw]) -> InputRequired | None:
    """Return *requests*, undecoded, as those of a result that requires input; None if one is not a request."""
    try:
        return InputRequired("input_required", {key: _decode_request(each) for key, each in requests.items()})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def all_accepted(responses: Mapping[str, Raw]) -> bool:
    """Return whether the user has accepted every elicitation."""
    return all(_decode_action(each).action == "accept" for each in responses.values())


def retry_params(params: bytes, required: InputRequired, responses: Mapping[str, Raw]) -> bytes:
    """Return the params of the retry.

    Spec:
        2026-07-28, basic/patterns/mrtr, "Client Requirements": the state is returned exactly, or not at all.
    """
    members = _decode_members(params)
    members.pop("inputResponses", None)
    members.pop("requestState", None)
    if responses:
        members["inputResponses"] = Raw(msgspec.json.encode(responses))
    if not isinstance(required.request_state, UnsetType):
        members["requestState"] = Raw(msgspec.json.encode(required.request_state))
    return msgspec.json.encode(members)


def url_elicitation_required(
    session: ClientSession, failure: RequestRefused, visited: Collection[int]
) -> InputRequired | None:
    """Return the URL elicitations that an error of 2025-11-25 lists; None if it is another error.

    None, too, if the hashes of all ids are in *visited*: a user who has accepted a URL may not have finished there, and
    to show the same one again would not help.

    Spec:
        2025-11-25, client/elicitation, "URL Elicitation Required Error".
    """
    from mcpgen.generated.v2025_11_25.methods import ErrorCode  # noqa: PLC0415 (few servers refuse a request)

    if failure.code != ErrorCode.URL_ELICITATION_REQUIRED or not is_object(failure.data):
        return None
    try:
        elicitations = msgspec.convert(failure.data, _UrlElicitations).elicitations
    except msgspec.ValidationError:
        return None
    if not elicitations or any(each.get("mode") != "url" for each in elicitations):
        return None
    for each in elicitations:  # also if the client cannot show URLs: the caller, who gets the error, may
        session.url_elicitations.add(each.get("elicitationId"))
    wanted = {
        elicitation_id: _InputRequest("elicitation/create", Raw(msgspec.json.encode(each)))
        for each in elicitations
        if hash(elicitation_id := str(each.get("elicitationId"))) not in visited
    }
    return InputRequired("input_required", wanted) if wanted else None


def invalid_result(session: ClientSession, method: str, reason: str, pointer: str = "") -> InvalidPayload:
    """Return the error for a result of *method* that is invalid at *pointer*."""
    what = f"the result of {method}"
    return InvalidPayload(revision=session.revision or "", pointer=pointer, what=what, reason=reason)


def refused_result(session: ClientSession, method: str, reason: str, pointer: str = "") -> InvalidPayload:
    """Return the error for a result of *method* that the client refuses, although the revision may allow it."""
    what, revision = f"the result of {method}", session.revision or ""
    return InvalidPayload(revision=revision, pointer=pointer, what=what, reason=reason, is_refused=True)


def too_many_rounds(session: ClientSession, method: str) -> InvalidPayload:
    """Return the error for a server that requires input again and again."""
    reason = f"the server required input more than `max_rounds` times ({session.limits.max_rounds})"
    return refused_result(session, method, reason)
