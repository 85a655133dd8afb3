"""The official Python SDK, 2.x, as a client.

``mode="auto"`` probes with ``server/discover`` and so reaches 2026-07-28; ``mode="legacy"`` makes the handshake. What
that offers is a constant, ``mcp.client.session.LATEST_HANDSHAKE_VERSION``, read when it is made: another value makes it
offer another revision, and nothing else about the client changes.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from client_driver import CLIENT, STATELESS, Seen, Wire, url_in
from conversation import converse
from mcp import Client, ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from sdk_v2 import SessionHands, keep_notices, mode, refusals, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COMMAND = sys.argv[2:]


class PythonV2(SessionHands):
    def __init__(self, seen: Seen, client: Client) -> None:
        super().__init__(seen)
        self._client = client

    @property
    def session(self) -> ClientSession:
        return self._client.session

    async def page(self, kind: str, cursor: str | None) -> Wire:
        lists = {
            "tools": self._client.list_tools,
            "resources": self._client.list_resources,
            "resourceTemplates": self._client.list_resource_templates,
            "prompts": self._client.list_prompts,
        }
        return wire(await lists[kind](cursor=cursor))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False, meta: Wire | None = None) -> Wire:
        report = self.seen.report if with_progress else None
        async with refusals():
            return wire(await self._client.call_tool(name, arguments, progress_callback=report, meta=meta))

    async def read(self, uri: str) -> Wire:
        async with refusals():
            return wire(await self._client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        return wire(await self._client.get_prompt(name, arguments))

    async def complete(self, ref: Wire, argument: dict[str, str], known: dict[str, str] | None) -> Wire:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return wire(await self._client.complete(kind.model_validate(ref), argument, known))

    async def ping(self) -> Wire:
        return wire(await self._client.send_ping())

    async def set_level(self, level: str) -> None:
        await self._client.set_logging_level(level)


def target(revision: str, *, insists: bool) -> Any:
    """Return what the client takes for a server."""
    url = url_in(COMMAND, insists=insists)
    if url is None:
        environment = {} if insists else {"INTEROP_REVISIONS": revision}
        return StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment)
    return sse_client(url) if url.endswith("/sse") else url


@asynccontextmanager
async def connection(revision: str, *, insists: bool) -> AsyncIterator[PythonV2]:
    seen = Seen()

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        seen.add(seen.logs, wire(params))

    async def on_elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(seen.answer("elicitation/create", wire(params)))

    async def on_sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(seen.answer("sampling/createMessage", wire(params)))

    async def on_roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(seen.answer("roots/list", None))

    async with Client(
        target(revision, insists=insists),
        mode=mode(revision, insists=insists),
        client_info=types.Implementation(**CLIENT),
        logging_callback=on_log,
        elicitation_callback=on_elicit,
        sampling_callback=on_sample,
        list_roots_callback=on_roots,
        # A stream of changes hands its notifications to this one, too.
        message_handler=None if revision == STATELESS else keep_notices(seen),
    ) as client:
        yield PythonV2(seen, client)


anyio.run(converse, sys.argv[1], connection)
