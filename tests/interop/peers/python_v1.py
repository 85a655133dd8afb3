"""The official Python SDK, 1.x, as a client. It offers the newest revision that it knows, without a choice.

What it offers is a constant, ``mcp.types.LATEST_PROTOCOL_VERSION``, read when the handshake is made: another value
makes it offer an older revision, and nothing else about it changes.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from client_driver import CLIENT, ClientDriver, Missing, Refused, Seen, Wire, url_in
from conversation import converse
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COMMAND = sys.argv[2:]


def wire(model: Any) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@asynccontextmanager
async def refusals() -> AsyncIterator[None]:
    try:
        yield
    except McpError as error:
        raise Refused(error.error.code) from error


class PythonV1(ClientDriver):
    def __init__(self, seen: Seen, session: ClientSession, result: types.InitializeResult) -> None:
        super().__init__(seen)
        self._session = session
        self._result = result

    def greeting(self) -> Wire:
        result = wire(self._result)
        return {
            "revision": result["protocolVersion"],
            "server": result["serverInfo"],
            "capabilities": result["capabilities"],
            "instructions": result["instructions"],
        }

    async def page(self, kind: str, cursor: str | None) -> Wire:
        lists = {
            "tools": self._session.list_tools,
            "resources": self._session.list_resources,
            "resourceTemplates": self._session.list_resource_templates,
            "prompts": self._session.list_prompts,
        }
        return wire(await lists[kind](params=types.PaginatedRequestParams(cursor=cursor)))

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False, meta: Wire | None = None) -> Wire:
        report = self.seen.report if with_progress else None
        async with refusals():
            return wire(await self._session.call_tool(name, arguments, progress_callback=report, meta=meta))

    async def cancel(self, name: str, arguments: Wire) -> None:
        """The client has no call for it: the notification names the id that the request after this one will get."""
        request_id = self._session._request_id
        self.seen.progress.clear()
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await self.call(name, arguments, with_progress=True)

            tasks.start_soon(wait)
            await self.seen.until(lambda: bool(self.seen.progress))
            params = types.CancelledNotificationParams(requestId=request_id, reason="no longer wanted")
            await self._session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
            tasks.cancel_scope.cancel()  # a cancelled request is not answered, and this client would wait for it

    async def read(self, uri: str) -> Wire:
        async with refusals():
            return wire(await self._session.read_resource(AnyUrl(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        return wire(await self._session.get_prompt(name, arguments))

    async def complete(self, ref: Wire, argument: dict[str, str], known: dict[str, str] | None) -> Wire:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return wire(await self._session.complete(kind.model_validate(ref), argument, known))

    async def ping(self) -> Wire:
        return wire(await self._session.send_ping())

    async def set_level(self, level: str) -> None:
        await self._session.set_logging_level(level)

    @asynccontextmanager
    async def listen(self, uris: list[str]) -> AsyncIterator[Wire]:
        for uri in uris:
            await self._session.subscribe_resource(AnyUrl(uri))
        yield {}
        for uri in uris:
            await self._session.unsubscribe_resource(AnyUrl(uri))

    async def demand(self, *_: Any) -> Wire:
        raise Missing("the client knows no revision that has it")


@asynccontextmanager
async def streams(revision: str, *, insists: bool) -> AsyncIterator[Any]:
    """Reach the server, by whichever transport it has."""
    url = url_in(COMMAND, insists=insists)
    if url is None:
        environment = {} if insists else {"INTEROP_REVISIONS": revision}
        async with stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment)) as (
            read,
            write,
        ):
            yield read, write
    elif url.endswith("/sse"):
        async with sse_client(url) as (read, write):
            yield read, write
    else:
        async with streamable_http_client(url) as (read, write, _):
            yield read, write


@asynccontextmanager
async def connection(revision: str, *, insists: bool) -> AsyncIterator[PythonV1]:
    types.LATEST_PROTOCOL_VERSION = revision if insists else "2025-11-25"
    seen = Seen()

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        seen.add(seen.logs, wire(params))

    async def on_elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(seen.answer("elicitation/create", wire(params)))

    async def on_sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(seen.answer("sampling/createMessage", wire(params)))

    async def on_roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(seen.answer("roots/list", None))

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            notice = wire(message)
            if "changed" in notice["method"] or "updated" in notice["method"]:
                params = {key: value for key, value in notice.get("params", {}).items() if key != "_meta"}
                seen.add(seen.notices, {"method": notice["method"], **params})

    async with (
        streams(revision, insists=insists) as (read, write),
        ClientSession(
            read,
            write,
            client_info=types.Implementation(**CLIENT),
            logging_callback=on_log,
            elicitation_callback=on_elicit,
            sampling_callback=on_sample,
            list_roots_callback=on_roots,
            message_handler=on_message,
        ) as session,
    ):
        yield PythonV1(seen, session, await session.initialize())


anyio.run(converse, sys.argv[1], connection)
