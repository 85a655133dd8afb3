"""Requests of the native revision that the server's revision does not have, and that the client serves in another way.

A caller may write in a revision that has `ping`, log levels of a session, or subscriptions to one resource, while the
server's revision has another way to the same end. The client takes that way, and the caller does not notice.

Spec:
    2026-07-28, changelog: the handshake, sessions, `ping`, `logging/setLevel` and `resources/subscribe` are gone;
    `server/discover` and `subscriptions/listen` are new.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.adapt.payloads import message_payload
from mcpgen.runtime.client.changes import LISTEN, SUBSCRIBE, UNSUBSCRIBE, Changes
from mcpgen.runtime.client.extensions import check_result_type
from mcpgen.runtime.client.pending_request import fresh_error
from mcpgen.runtime.client.subscriptions import CHANGE_KINDS
from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.protocol.newest import MetaKey
from mcpgen.runtime.protocol.subscriptions import LIST_CHANGES, SubscriptionFilter, supported_filter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.client.client_session import ClientSession

__all__ = ["DISCOVER", "PING", "SET_LEVEL", "TranslatedMethods"]

DISCOVER: Final = "server/discover"
PING: Final = "ping"
SET_LEVEL: Final = "logging/setLevel"

_TRANSLATED: Final = frozenset({PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})

_NOTIFICATIONS: Final = {kind: method for method, kind in CHANGE_KINDS.items()}

_LOG = logging.getLogger("mcpgen.client")


class TranslatedMethods:
    """Serves the requests that the server's revision does not have.

    Args:
        session: The session with the server.
        ask_json: Sends a request in the server's revision, and returns its result, undecoded.
        require: Raises `UnsupportedByPeer` if the server has not declared a method.
        subscribe: Sends `resources/subscribe` to a server of a handshake revision.
    """

    def __init__(
        self,
        session: ClientSession,
        *,
        ask_json: Callable[[str, dict[str, Any]], Awaitable[msgspec.Raw]],
        require: Callable[[str], None],
        subscribe: Callable[[str], Awaitable[object]],
    ) -> None:
        self._session = session
        self._ask_json = ask_json
        self._require = require
        self._subscribe = subscribe
        self._watched: dict[str, Changes] = {}
        self._lists: Changes | None = None

    async def serve(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of *method* in the native revision; None if the request is to be sent.

        Raises:
            UsageError: Callers may not send this request.
            InvalidPayload: The native revision does not allow the params.
            UnsupportedByPeer: The server has not declared the capability.
        """
        if method == "initialize":
            raise UsageError(
                "`initialize` cannot be sent: connect() has agreed on the revision already; read what the server has "
                "declared from `client.server` and `client.capabilities`"
            )
        if method == LISTEN:
            raise UsageError("`subscriptions/listen` cannot be sent; call client.listen(…) instead")
        if self._session.is_stateless:
            return await self._serve_stateless(method, params)
        return self._discover_result() if method == DISCOVER else None

    async def subscribe_to_lists(self) -> None:
        """Listen for changed lists if a handler takes their notifications: a stateless server sends no others."""
        server = self._session.server
        if server is None or server.era != "stateless":
            return
        handles = self._session.features.handles_notification
        handled: dict[str, Any] = {name: handles(method) for method, name in LIST_CHANGES.items()}
        wanted = supported_filter(SubscriptionFilter(**handled), server.declared, server.revision)
        if wanted != SubscriptionFilter():
            self._lists = Changes(self._session, wanted, self._subscribe, on_break=self._listen_soon)
            await self._lists.__aenter__()

    async def listen_again(self) -> None:
        """Open what a new process of the server does not know of: the streams of the program and of handlers."""
        for renew in self._session.subscriptions.renewals:
            self._session.output.start(renew)
        for each in self._streams():
            await self._renew(each)

    def _streams(self) -> list[Changes]:
        return [*([] if self._lists is None else [self._lists]), *self._watched.values()]

    def _listen_soon(self, broken: Changes) -> None:
        self._session.output.start(partial(self._renew, broken))

    async def _renew(self, changes: Changes) -> None:
        """Open a stream of handlers again if it has broken, and report to them what may have changed meanwhile."""
        session = self._session
        try:
            missed = await changes.renew()
        except McpgenError as failure:
            _LOG.warning("changes are not reported any more: %s", failure)
            return
        if changes not in self._streams():  # the caller has unsubscribed in the meantime
            await changes.__aexit__(None, None, None)
            return
        for each in missed:
            method = _NOTIFICATIONS[each.kind]
            handler = session.features.notification_handler(session.revision or "", method)
            if handler is not None:
                params: dict[str, object] = {"_meta": {MetaKey.SUBSCRIPTION_ID: changes.stream_id}}
                if each.uri is not None:
                    params["uri"] = each.uri
                session.output.queue_notification(handler, msgspec.Raw(msgspec.json.encode(params)))

    async def set_log_level(self, level: str) -> None:
        """Set the least severe log entries that the server sends."""
        if self._session.is_stateless:
            if self._session.failure is not None:
                raise fresh_error(self._session.failure)
            self._require("notifications/message")
            self._session.log_level = level
        else:
            self._require(SET_LEVEL)
            await self._ask_json(SET_LEVEL, {"level": level})

    async def ping(self) -> None:
        """Send a request that has no effect, and return when the server has answered it.

        Raises:
            InvalidPayload: The result has the type of another result, such as that of a task.
        """
        session = self._session
        method = DISCOVER if session.is_stateless else PING
        result = await self._ask_json(method, {})
        if session.server is not None:
            check_result_type(result, method, session.server)

    async def _serve_stateless(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method not in _TRANSLATED:
            return None
        message_payload(self._session.features.native_revision, method, "params", "client").check(params)
        if method == PING:
            await self.ping()
        elif method == SET_LEVEL:
            await self.set_log_level(params["level"])
        elif method == SUBSCRIBE:
            await self._watch(params["uri"])
        else:
            changes = self._watched.pop(params["uri"], None)
            if changes is not None:
                await changes.__aexit__(None, None, None)
        return {}

    async def _watch(self, uri: str) -> None:
        known = self._watched.get(uri)
        if known is not None and not known.is_closed:
            return
        wanted = SubscriptionFilter(resource_subscriptions=[uri])
        changes = Changes(self._session, wanted, self._subscribe, on_break=self._listen_soon)
        await changes.__aenter__()
        older = self._watched.get(uri)  # another task may have subscribed in the meantime
        self._watched[uri] = changes
        if older is not None:
            await older.__aexit__(None, None, None)

    def _discover_result(self) -> dict[str, Any]:
        """Return the result of `server/discover` for a server of a handshake revision, which has no such request."""
        server = self._session.server
        if server is None:
            raise UsageError("the client is not connected")
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": [server.revision],
            "capabilities": server.capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        if server.instructions is not None:
            result["instructions"] = server.instructions
        if server.info is not None:
            result["_meta"] = {MetaKey.SERVER_INFO: server.info}
        return result
