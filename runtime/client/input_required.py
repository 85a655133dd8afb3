"""What a server without sessions asks: it answers a request with a demand for input, and the request is put again.

Spec:
    2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation, "URL Elicitation Required Error".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.adapt.json_pointer import is_object, pointer_to
from mcpgen.runtime.client.incoming_requests import permitted
from mcpgen.runtime.errors import InvalidPayload, RequestError, RequestRefused
from mcpgen.runtime.protocol.messages import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mcpgen.runtime.client.client_features import RequestHandler
    from mcpgen.runtime.client.client_session import ClientSession

__all__ = ["InputDemand", "MAY_DEMAND", "are_accepted", "input_demand", "answer_demand", "url_demand", "retry_params"]

# 2026-07-28, basic/patterns/mrtr, "Supported Requests".
MAY_DEMAND: Final = frozenset({"prompts/get", "resources/read", "tools/call"})

_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class _Wish(Struct):
    method: str
    params: Raw | UnsetType = UNSET


class InputDemand(Struct, rename="camel"):
    """What a server wants to know before it goes on.

    Attributes:
        result_type: Says that it is one.
        input_requests: Its questions, by the names that it gave them.
        request_state: What it wants to have back; it is nobody else's business.
    """

    result_type: str = field(name="resultType")
    input_requests: dict[str, _Wish] = {}
    request_state: str | UnsetType = UNSET


class _Kind(Struct, rename="camel"):
    result_type: str | UnsetType = UNSET


class _Action(Struct):
    action: str


_decode_action: Final = msgspec.json.Decoder(_Action).decode
_decode_demand: Final = msgspec.json.Decoder(InputDemand).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode


def input_demand(session: ClientSession, method: str, raw: Raw) -> Raw | InputDemand:
    """Return the demand that a stateless server's result *raw* is, or else the final result.

    Raises:
        InvalidPayload: It is a demand, but not one that its revision allows; or nobody knows what it is.

    Spec:
        2026-07-28, basic/index, "ResultType": an unknown one is invalid, and an absent one means complete.
    """
    try:
        kind = _decode_kind(raw).result_type
    except (msgspec.DecodeError, RecursionError):
        return raw  # what is wrong is found when it is read as the result
    if kind == "complete":
        return raw
    if isinstance(kind, UnsetType):
        return _completed(raw)
    revision = session.revision or ""
    if kind != "input_required":
        raise _invalid(revision, method, "/resultType", f"{kind[:100]!r} is no type of result that we know")
    if method not in MAY_DEMAND:
        raise _invalid(revision, method, "", "this request may not be answered with a demand for input")
    try:
        demand = _decode_demand(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(revision, method, "", str(error)[:500]) from None
    if not demand.input_requests and isinstance(demand.request_state, UnsetType):
        raise _invalid(revision, method, "", "it demands nothing: there are neither inputRequests nor a requestState")
    return demand


async def answer_demand(
    session: ClientSession, method: str, demand: InputDemand, context: Callable[[str], Any]
) -> dict[str, Raw]:
    """Return the answers to *demand*, by name; its questions are answered at the same time.

    Args:
        session: Of the server.
        method: What was asked when it came back.
        demand: What it wants.
        context: Makes what a handler is told beside the params.

    Raises:
        InvalidPayload: It asks what we have not declared, or what its revision does not allow.
        Exception: A handler has raised it; there is no way to tell a server without sessions of a failure.
    """
    most = session.limits.max_in_flight
    if len(demand.input_requests) > most:
        reason = f"it asks {len(demand.input_requests)} questions at once, and {most} are answered"
        raise _invalid(session.revision or "", method, "/inputRequests", reason)
    wanted: dict[str, tuple[RequestHandler, Any, str]] = {}
    for key, wish in demand.input_requests.items():
        try:
            handling, params = permitted(session, wish.method, wish.params)
        except RequestError as error:
            pointer = pointer_to(("inputRequests", key[:100]))
            raise _invalid(session.revision or "", method, pointer, error.message) from None
        wanted[key] = handling, params, wish.method
    answers: dict[str, Raw] = {}
    failures: list[BaseException] = []

    async def answer(key: str) -> None:
        handling, params, asked = wanted[key]
        try:
            answers[key] = Raw(handling.codec.result(await handling.call(params, context(asked))))
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as failure:  # noqa: BLE001 (raised below, alone: a task group would wrap it in a group)
            failures.append(failure)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for key in wanted:
            group.start_soon(answer, key)
    if failures:
        raise failures[0]
    if len(answers) < len(wanted):  # asyncio lets anything raise what a cancellation raises, and says nothing of it
        raise RequestError(Code.INTERNAL_ERROR, "a handler was cancelled, but not by us")
    return {key: answers[key] for key in wanted}


def are_accepted(answers: Mapping[str, Raw]) -> bool:
    """Return whether the user has agreed to all that *answers* answer."""
    return all(_decode_action(each).action == "accept" for each in answers.values())


def retry_params(params: bytes, demand: InputDemand, answers: Mapping[str, Raw]) -> bytes:
    """Return the params of a request that is put again.

    Spec:
        2026-07-28, basic/patterns/mrtr, "Client Requirements": the state comes back exactly, or not at all.
    """
    members = _decode_members(params)
    members.pop("inputResponses", None)
    members.pop("requestState", None)
    if answers:
        members["inputResponses"] = Raw(msgspec.json.encode(answers))
    if not isinstance(demand.request_state, UnsetType):
        members["requestState"] = Raw(msgspec.json.encode(demand.request_state))
    return msgspec.json.encode(members)


def url_demand(failure: RequestRefused, visited: Collection[str]) -> InputDemand | None:
    """Return the demand that an error of 2025-11-25 is, which wants the user to visit a page first; None if it is not.

    Nor is it one if it only names pages that were *visited*. A user who has agreed to visit a page may not be through
    with it; to ask again for the same one would not help.

    Spec:
        2025-11-25, client/elicitation, "URL Elicitation Required Error".
    """
    if failure.code != _PAGES_FIRST or not is_object(failure.data):
        return None
    try:
        found = msgspec.convert(failure.data, _Pages).elicitations
    except msgspec.ValidationError:
        return None
    if not found or any(each.get("mode") != "url" for each in found):
        return None  # nothing that would have to be done first
    wanted = {
        named: _Wish("elicitation/create", Raw(msgspec.json.encode(each)))
        for each in found
        if (named := str(each.get("elicitationId"))) not in visited
    }
    return InputDemand("input_required", wanted) if wanted else None


_PAGES_FIRST: Final = -32042


def _completed(raw: Raw) -> Raw:
    members = _decode_members(raw)
    return Raw(msgspec.json.encode({**members, "resultType": "complete"}))


class _Pages(Struct):
    elicitations: list[dict[str, Any]]


def _invalid(revision: str, method: str, pointer: str, reason: str) -> InvalidPayload:
    return InvalidPayload(revision=revision, pointer=pointer, what=f"the result of {method}", reason=reason)
