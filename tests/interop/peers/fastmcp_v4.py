"""FastMCP 4 as a client. It stands on the official SDK 2.x, whose session makes the handshake.

Its ``mode`` is the SDK's, and so is the constant that makes the handshake offer another revision: see ``python_v2.py``.
It has no methods for subscriptions; they are those of the SDK's session, which it hands out as ``client.session``.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from client_driver import CLIENT, ROOT, STATELESS, Seen, Wire, url_in
from conversation import converse
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from sdk_v2 import SessionHands, keep_notices, mode, refusals, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import ClientSession

COMMAND = sys.argv[2:]


class FastMCPV4(SessionHands):
    def __init__(self, seen: Seen, client: Client[Any]) -> None:
        super().__init__(seen)
        self._client = client

    @property
    def session(self) -> ClientSession:
        return self._client.session

    async def page(self, kind: str, cursor: str | None) -> Wire:
        lists: dict[str, Any] = {
            "tools": self._client.list_tools_mcp,
            "resources": self._client.list_resources_mcp,
            "resourceTemplates": self._client.list_resource_templates_mcp,
            "prompts": self._client.list_prompts_mcp,
        }
        return wire(await lists[kind](cursor=cursor))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False, meta: Wire | None = None) -> Wire:
        report = self.seen.report if with_progress else None
        async with refusals():
            return wire(await self._client.call_tool_mcp(name, arguments, progress_handler=report, meta=meta))

    async def read(self, uri: str) -> Wire:
        async with refusals():
            return wire(await self._client.read_resource_mcp(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        return wire(await self._client.get_prompt_mcp(name, arguments))

    async def complete(self, ref: Wire, argument: dict[str, str], known: dict[str, str] | None) -> Wire:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return wire(await self._client.complete_mcp(kind.model_validate(ref), argument, known))

    async def ping(self) -> Wire:
        return {} if await self._client.ping() else {"answered": False}

    async def set_level(self, level: str) -> None:
        await self._client.set_logging_level(level)


def transport(revision: str, *, insists: bool) -> Any:
    """Return how to reach the server."""
    url = url_in(COMMAND, insists=insists)
    if url is None:
        environment = {} if insists else {"INTEROP_REVISIONS": revision}
        return StdioTransport(COMMAND[0], COMMAND[1:], env=environment, keep_alive=False)
    return SSETransport(url) if url.endswith("/sse") else StreamableHttpTransport(url)


@asynccontextmanager
async def connection(revision: str, *, insists: bool) -> AsyncIterator[FastMCPV4]:
    seen = Seen()

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        seen.add(seen.logs, wire(params))

    async def on_elicit(message: str, kind: Any, params: Any, context: Any) -> Any:
        del message, kind, context
        return ElicitResult(**seen.answer("elicitation/create", wire(params)))

    async def on_sample(messages: Any, params: types.CreateMessageRequestParams, context: Any) -> Any:
        del messages, context
        return types.CreateMessageResult.model_validate(seen.answer("sampling/createMessage", wire(params)))

    async def on_roots(context: Any) -> Any:
        del context
        seen.answer("roots/list", None)
        return [types.Root.model_validate(ROOT)]

    async with Client(
        transport(revision, insists=insists),
        mode=mode(revision, insists=insists),
        client_info=types.Implementation(**CLIENT),
        log_handler=on_log,
        elicitation_handler=on_elicit,
        sampling_handler=on_sample,
        roots=on_roots,
        # A stream of changes hands its notifications to this one, too.
        message_handler=None if revision == STATELESS else keep_notices(seen),
    ) as client:
        yield FastMCPV4(seen, client)


anyio.run(converse, sys.argv[1], connection)
