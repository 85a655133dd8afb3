"""The scopes that the requests in a message need, which are known before a handler starts.

Theory of operation. The name of the tool is read from the params before they are decoded as their revision says. If
they are invalid in another place, `read_meta` finds no name, so the name is then read alone: a request must not get
around its scopes because a later, more tolerant reader understands it. For the same reason, each member is decoded
alone: a later reader skips members that its type does not know, whatever they hold.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from anyio.lowlevel import checkpoint
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server import responses
from mcpgen.runtime.protocol.messages import Batch, Request
from mcpgen.runtime.protocol.negotiation import read_meta
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.access import NO_SCOPES
from mcpgen.runtime.server.fair_turns import REQUEST_COST_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.responses import Send
    from mcpgen.runtime.protocol.messages import Malformed, Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.fair_turns import FairTurns

__all__ = ["refuse_scopes", "required_scopes"]

_LOG = logging.getLogger("mcpgen.http.auth")

_T = TypeVar("_T")

_NO_TOKENS: Final = "the request needs scopes, but this server takes no access tokens"

_LISTEN: Final = "subscriptions/listen"
_NAMED: Final = frozenset({"prompts/get", "tools/call"})


# To match a URI against a template takes 10 µs, or 10 ms if it is long, and a client may name a thousand of them, on
# each of many connections at once. So those share the turns of the event loop.
_SOME_NAMES: Final = 4


class _Params(Struct):
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    ref: Raw | UnsetType = UNSET
    task_id: Raw | UnsetType = field(name="taskId", default=UNSET)
    notifications: Raw | UnsetType = UNSET


_INVALID: Final = (msgspec.DecodeError, UnicodeDecodeError)

_decode: Final = msgspec.json.Decoder(_Params).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_text: Final = msgspec.json.Decoder(str).decode


async def refuse_scopes(  # noqa: PLR0913 (a message, and where it comes from)
    state: AppState,
    client: Client,
    send: Send,
    message: Message | Batch | Malformed,
    meta: RequestMeta | None = None,
    *,
    is_sse: bool = False,
) -> bool:
    """Refuse a message if its token lacks a scope that a request in it needs; return whether it was refused.

    Args:
        state: The state of the application.
        client: The client that sends it.
        send: Of ASGI.
        message: What a POST brings.
        meta: What `read_meta` read of it, if it is a request.
        is_sse: Whether it comes by HTTP+SSE.
    """
    find = state.engine.handlers.scopes
    needed = NO_SCOPES
    request_id = message.id if isinstance(message, Request) else UNSET
    if find is not None:
        scopes = partial(_with_tasks, state, client, find)
        try:
            turn = partial(_next_turn, state.engine.turns, client.owner)
            max_uris = state.engine.limits.max_subscriptions
            needed = await required_scopes(scopes, message, meta, max_uris=max_uris, turn=turn)
        except RequestError as error:
            await responses.send_error(send, 400, error.message, code=error.code, request_id=request_id)
            return True
    if state.tokens is not None and client.access is not None:
        return await state.tokens.refuse_scopes(send, client.access, needed, request_id=request_id, is_sse=is_sse)
    if needed:  # what its author protects must not be open because a server was started without `auth`
        _LOG.error("a request was refused: it needs scopes, but the server has no `auth` (--auth-issuer)")
        await responses.send_error(send, 403, _NO_TOKENS, request_id=request_id)
    return bool(needed)


async def _next_turn(turns: FairTurns, owner: str) -> None:
    """Return when some further names may be looked at."""
    turns.spend(REQUEST_COST_BYTES)
    await checkpoint()
    await turns.wait_to_work(owner, "")


def _with_tasks(
    state: AppState, client: Client, find: Callable[[str, str], Iterable[str] | None], method: str, name: str
) -> Iterable[str]:
    """Return the scopes that a method needs for a name or URI; those of its tool for a task."""
    tasks = state.engine.tasks
    found = find(method, name) or ()
    return found if tasks is None or not method.startswith("tasks/") else [*found, *tasks.scopes(name, client.access)]


async def required_scopes(
    scopes: Callable[[str, str], Iterable[str] | None],
    message: Message | Batch | Malformed,
    meta: RequestMeta | None = None,
    *,
    max_uris: int,
    turn: Callable[[], Awaitable[None]] = checkpoint,
) -> frozenset[str]:
    """Return the scopes that all requests in *message* need together; several turns of the event loop find many.

    Args:
        scopes: Returns the scopes that a method needs for a name or URI.
        message: What a POST brings.
        meta: What `read_meta` read of it, if it is a request.
        max_uris: A subscription to more is refused later, whatever its token allows.
        turn: Waits until some further names may be looked at.

    Raises:
        RequestError: The names in the params cannot be found, because they are nested too deeply.
    """
    needed: set[str] = set()
    for number, (method, name) in enumerate(_needs(message, meta, max_uris), start=1):
        if number % _SOME_NAMES == 0:
            await turn()
        needed.update(scopes(method, name) or ())
    return frozenset(needed)


def _needs(message: Message | Batch | Malformed, meta: RequestMeta | None, max_uris: int) -> Iterator[tuple[str, str]]:
    """Yield each method in *message*, with each of the names in its params."""
    if isinstance(message, Batch):
        for each in message.items:
            yield from _needs(each, None, max_uris)
    elif isinstance(message, Request):
        meta = read_meta(message.params) if meta is None else meta
        is_named = message.method in _NAMED and isinstance(meta.name, str)
        names = [str(meta.name)] if is_named else _names(message, max_uris)
        yield from ((message.method, each) for each in names or [""])


def _names(request: Request, max_uris: int) -> list[str]:
    """Return all that the params name: a tool or prompt, a URI, a reference, a task, or URIs to be subscribed to."""
    if request.params is UNSET:
        return []
    try:
        found = _decode(request.params)
        ref, notifications = _read(_decode_members, found.ref), _read(_decode_members, found.notifications)
        named = [found.name, found.uri, found.task_id, *_members(ref, "name", "uri")]
        texts = [_read(_decode_text, each) for each in named]
        for each in _members(notifications, "resourceSubscriptions") if request.method == _LISTEN else ():
            uris = dict.fromkeys(_read(_decode_text, uri) for uri in _read(_decode_items, each) or ())
            uris.pop(None, None)  # invalid items
            texts += uris if len(uris) <= max_uris else ()
    except (*_INVALID, RecursionError):
        raise RequestError(ErrorCode.INVALID_PARAMS, "the params cannot be read: they are nested too deeply") from None
    return [each for each in texts if each is not None]


def _members(value: dict[str, Raw] | None, *names: str) -> Iterator[Raw | UnsetType]:
    if value is not None:
        for name in names:
            yield value.get(name, UNSET)


def _read(decode: Callable[[Raw], _T], value: Raw | UnsetType) -> _T | None:
    """Return what *decode* returns; None for a value of another type. One that is nested too deeply raises."""
    try:
        return None if value is UNSET else decode(value)
    except _INVALID:
        return None
