"""What a client does itself, because its server's revision has another way for it, or none.

Theory of operation. The types that a caller writes in may know requests that the server's revision does not: to ping,
to watch one resource, to set a log level for a session, to discover. Where there is another way to the same end, it is
taken here; the caller does not notice.

Spec:
    2026-07-28, changelog: the handshake, sessions, ping, log levels and subscriptions by request are gone;
    server/discover and subscriptions/listen are new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.adapt.payloads import message_payload
from mcpgen.runtime.client.subscriptions import LISTEN, SUBSCRIBE, UNSUBSCRIBE, Changes
from mcpgen.runtime.errors import UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol.capabilities import needed, offers
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter, supported_filter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.client.client_session import ClientSession

__all__ = ["TranslatedMethods"]

DISCOVER = "server/discover"
PING = "ping"
SET_LEVEL = "logging/setLevel"

_SERVED = frozenset({PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})


class TranslatedMethods:
    """Stands in for the requests that the server's revision does not have.

    Args:
        session: Of the server.
        ask: Sends a request in the server's own terms, and returns its result.
        subscribe: Sends `resources/subscribe` to a server with sessions.
    """

    def __init__(
        self,
        session: ClientSession,
        ask: Callable[[str, dict[str, Any]], Awaitable[Any]],
        subscribe: Callable[[str], Awaitable[object]],
    ) -> None:
        self._session = session
        self._ask = ask
        self._subscribe = subscribe
        self._watching: dict[str, Changes] = {}
        self._lists: Changes | None = None

    async def serve(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of *method*, in terms of home; None if it is to be sent as it is.

        Raises:
            UsageError: It is not for callers to send.
            InvalidPayload: Home does not allow its params; a mistake of ours.
            UnsupportedByPeer: The server has not declared it.
        """
        if method == "initialize":
            raise UsageError("connect() has shaken hands already; client.server says with whom")
        if method == LISTEN:
            raise UsageError("subscriptions/listen is opened by: async with client.listen(…) as changes")
        stateless = self._session.server is not None and self._session.server.era == "stateless"
        if stateless:
            return await self._for_stateless(method, params)
        return self._discovered() if method == DISCOVER else None

    async def _for_stateless(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method in _SERVED:
            message_payload(self._session.offering.native_revision, method, "params", "client").check(params)
        if method == PING:
            await self._ask(DISCOVER, {})
        elif method == SET_LEVEL:
            self._require("notifications/message")
            self._session.level = params["level"]
        elif method == SUBSCRIBE:
            await self._watch(params["uri"])
        elif method == UNSUBSCRIBE:
            watching = self._watching.pop(params["uri"], None)
            if watching is not None:
                await watching.__aexit__(None, None, None)
        else:
            return None
        return {}

    async def _watch(self, uri: str) -> None:
        known = self._watching.get(uri)
        if known is not None and not known.is_over:
            return
        changes = Changes(self._session, SubscriptionFilter(resource_subscriptions=[uri]), self._subscribe)
        await changes.__aenter__()
        older = self._watching.get(uri)  # somebody else may have been faster
        self._watching[uri] = changes
        if older is not None:
            await older.__aexit__(None, None, None)

    def _require(self, method: str) -> None:
        server = self._session.server
        if server is not None and not offers(server.declared, server.revision, method):
            raise UnsupportedByPeer(
                revision=server.revision, what=method, reason=f"it has not declared {needed(server.revision, method)}"
            )

    async def hear_lists(self) -> None:
        """Have the handlers told of changed lists that want to be, by a server which tells only who asks."""
        hears = self._session.offering.hears
        wanted = SubscriptionFilter(
            tools_list_changed=hears("notifications/tools/list_changed"),
            prompts_list_changed=hears("notifications/prompts/list_changed"),
            resources_list_changed=hears("notifications/resources/list_changed"),
        )
        server = self._session.server
        if server is None or server.era != "stateless":
            return
        wanted = supported_filter(wanted, server.declared, server.revision)
        if wanted != SubscriptionFilter():
            self._lists = Changes(self._session, wanted, self._subscribe)
            await self._lists.__aenter__()

    def _discovered(self) -> dict[str, Any]:
        """Return what a server that shakes hands would have said, had it been asked."""
        server = self._session.server
        if server is None:
            raise UsageError("the client is not connected")
        labels = [each.label for each in REVISIONS]
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": [label for label in labels if label == server.revision],
            "capabilities": server.capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        if server.instructions is not None:
            result["instructions"] = server.instructions
        if server.info is not None:
            result["_meta"] = {"io.modelcontextprotocol/serverInfo": server.info}
        return result
