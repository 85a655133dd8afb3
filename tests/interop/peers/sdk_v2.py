"""What the two clients that stand on the official Python SDK 2.x have in common: the session, and how to read it."""

from __future__ import annotations

import warnings
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp.client.session
import mcp_types as types
from client_driver import STATELESS, ClientDriver, Missing, Refused, Seen, Wire
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import listen
from mcp.shared.subscriptions import event_to_notification
from mcp_types.version import LATEST_HANDSHAKE_VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["SessionHands", "keep_notices", "mode", "refusals", "wire"]

CHANGES = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}

warnings.simplefilter("ignore")  # what the newest revision deprecates is here on purpose


def wire(model: Any) -> Any:
    """Return a model as the wire has it."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def mode(revision: str, *, insists: bool) -> str:
    """Make handshakes offer *revision*, if it has one, and return the mode for a client that is to speak it.

    ``auto`` probes with ``server/discover``; ``legacy`` makes the handshake, which offers a constant; a stateless
    revision is spoken from the first request on.
    """
    if not insists or revision == STATELESS:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = LATEST_HANDSHAKE_VERSION
        return "auto" if insists or revision != STATELESS else STATELESS
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    return "legacy"


@asynccontextmanager
async def refusals() -> AsyncIterator[None]:
    """Turn the SDK's error into ours."""
    try:
        yield
    except MCPError as error:
        raise Refused(error.error.code) from error


def keep_notices(seen: Seen) -> Any:
    """Return a handler of messages that keeps what changed."""

    async def on_message(message: Any) -> None:
        method = getattr(message, "method", "")
        if "changed" in method or "updated" in method:
            _keep(seen, message)

    return on_message


def _keep(seen: Seen, notification: Any) -> None:
    sent = wire(notification)
    params = {key: value for key, value in sent.get("params", {}).items() if key != "_meta"}
    seen.add(seen.notices, {"method": sent["method"], **params})


class SessionHands(ClientDriver):
    """ClientDriver on a session; what a client has better methods for, it does with those."""

    @property
    def session(self) -> ClientSession:
        raise NotImplementedError

    def greeting(self) -> Wire:
        session = self.session
        discovered = session.discover_result
        return {
            "revision": session.protocol_version,
            "server": wire(session.server_info) if session.server_info else None,
            "capabilities": wire(session.server_capabilities),
            "instructions": session.instructions,
            **({"supported": discovered.supported_versions} if discovered else {}),
        }

    async def cancel(self, name: str, arguments: Wire) -> None:
        self.seen.progress.clear()
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await self.call(name, arguments, with_progress=True)

            tasks.start_soon(wait)
            await self.seen.until(lambda: bool(self.seen.progress))
            tasks.cancel_scope.cancel()  # the client tells the server

    @asynccontextmanager
    async def listen(self, uris: list[str]) -> AsyncIterator[Wire]:
        if self.session.protocol_version != STATELESS:
            for uri in uris:
                await self.session.subscribe_resource(uri)
            yield {}
            for uri in uris:
                await self.session.unsubscribe_resource(uri)
            return
        wanted: Any = {"resource_subscriptions": uris} if uris else CHANGES
        async with listen(self.session, **wanted) as subscription, anyio.create_task_group() as tasks:

            async def hear() -> None:
                async for event in subscription:
                    _keep(self.seen, event_to_notification(event, {}))

            tasks.start_soon(hear)
            yield wire(subscription.honored)
            tasks.cancel_scope.cancel()

    async def demand(self, name: str, arguments: Wire, answers: Wire | None, state: str | None) -> Wire:
        if self.session.protocol_version != STATELESS:
            raise Missing("the revision asks with requests of its own")
        responses = answers and {key: types.ElicitResult.model_validate(value) for key, value in answers.items()}
        async with refusals():
            result = await self.session.call_tool(
                name, arguments, input_responses=responses, request_state=state, allow_input_required=True
            )
        return wire(result)
