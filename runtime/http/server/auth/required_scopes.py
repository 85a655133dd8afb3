"""The scopes that the requests in a message need, which are known before a handler starts.

Theory of operation. The name of the tool is read from the params before they are decoded as their revision says. If
they are invalid in another place, `read_meta` finds no name, so the name is then read alone: a request must not get
around its scopes because a later, more tolerant reader understands it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.protocol.messages import Batch, Request
from mcpgen.runtime.protocol.negotiation import read_meta
from mcpgen.runtime.server.access import NO_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from msgspec import Raw

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.responses import Send
    from mcpgen.runtime.protocol.messages import Malformed, Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta

__all__ = ["refuse_scopes", "required_scopes"]

_LOG = logging.getLogger("mcpgen.http.auth")

_NO_TOKENS: Final = "the request needs scopes, but this server takes no access tokens"

_NAMED: Final = frozenset({"prompts/get", "tools/call"})


class _Params(Struct):
    name: Any = None
    uri: Any = None
    ref: Any = None
    task_id: Any = field(name="taskId", default=None)
    notifications: Any = None


_decode: Final = msgspec.json.Decoder(_Params).decode


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
    needed = NO_SCOPES if find is None else required_scopes(partial(_with_tasks, state, client, find), message, meta)
    request_id = message.id if isinstance(message, Request) else UNSET
    if state.tokens is not None and client.access is not None:
        return await state.tokens.refuse_scopes(send, client.access, needed, request_id=request_id, is_sse=is_sse)
    if needed:  # what its author protects must not be open because a server was started without `auth`
        _LOG.error("a request was refused: it needs scopes, but asgi() has no `auth`")
        await responses.send_error(send, 403, _NO_TOKENS, request_id=request_id)
    return bool(needed)


def _with_tasks(
    state: AppState, client: Client, find: Callable[[str, str], Iterable[str] | None], method: str, name: str
) -> Iterable[str]:
    """Return the scopes that a method needs for a name or URI; those of its tool for a task."""
    tasks = state.engine.tasks
    found = find(method, name) or ()
    return found if tasks is None or not method.startswith("tasks/") else [*found, *tasks.scopes(name, client.access)]


def required_scopes(
    scopes: Callable[[str, str], Iterable[str] | None],
    message: Message | Batch | Malformed,
    meta: RequestMeta | None = None,
) -> frozenset[str]:
    """Return the scopes that all requests in *message* need together.

    Args:
        scopes: Returns the scopes that a method needs for a name or URI.
        message: What a POST brings.
        meta: What `read_meta` read of it, if it is a request.
    """
    if isinstance(message, Request):
        return _of_request(scopes, message, read_meta(message.params) if meta is None else meta)
    if isinstance(message, Batch):
        return NO_SCOPES.union(*(required_scopes(scopes, each) for each in message.items))
    return NO_SCOPES


def _of_request(
    scopes: Callable[[str, str], Iterable[str] | None], request: Request, meta: RequestMeta
) -> frozenset[str]:
    names = [meta.name] if request.method in _NAMED and isinstance(meta.name, str) else _names(request.params)
    return NO_SCOPES.union(*(scopes(request.method, each) or () for each in names or [""]))


def _names(params: Raw | UnsetType) -> list[str]:
    """Return all that *params* name: a tool or prompt, a URI, a reference, a task, or URIs to be subscribed to."""
    if params is UNSET:
        return []
    try:
        found = _decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    named = [found.name, found.uri, found.task_id, *_members(found.ref, "name", "uri")]
    for each in _members(found.notifications, "resourceSubscriptions"):
        named += each if isinstance(each, list) else []
    return [each for each in named if isinstance(each, str)]


def _members(value: object, *names: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for name in names:
            yield cast("dict[str, Any]", value).get(name)
