"""The official Python SDK, 1.x, as a server: its low-level ``Server``, which can do all that the protocol has.

It agrees to any handshake revision, and then sends the same to everybody: what a revision has not is sent all the same.
"""

from __future__ import annotations

from typing import Any

import anyio
from listening import RETRY_MS, TRANSPORT, Events, endpoint, listen, pair
from mcp import McpError, types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyUrl
from repertoire import LEVELS, OFFERED, Caller, Repertoire, Wire, page

server: Server[Any, Any] = Server("interop", version="4.2", instructions="Ask for one thing of everything.")
repertoire = Repertoire()
wanted = {"level": "debug"}


class PythonV1(Caller):
    @property
    def _context(self) -> Any:
        return server.request_context

    def introduction(self) -> Wire:
        client = self._context.session.client_params
        about = {"name": client.clientInfo.name, "version": client.clientInfo.version}
        return {"revision": client.protocolVersion, "era": "handshake", **about}

    async def progress(self, step: float, total: float, message: str | None) -> None:
        context = self._context
        if context.meta is not None and context.meta.progressToken is not None:
            token = context.meta.progressToken
            await context.session.send_progress_notification(token, step, total, message, str(context.request_id))

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        if LEVELS.index(level) >= LEVELS.index(wanted["level"]):
            await self._context.session.send_log_message(level, data, logger, self._context.request_id)

    async def ask(self, key: str) -> Wire:
        session, request = self._context.session, self._context.request_id
        params = OFFERED["questions"][key].get("params", {})
        if key == "roots":
            answer = await session.list_roots()
        elif key == "model":
            messages = [types.SamplingMessage.model_validate(each) for each in params["messages"]]
            answer = await session.create_message(messages, max_tokens=params["maxTokens"], related_request_id=request)
        elif key == "page":
            answer = await session.elicit_url(params["message"], params["url"], f"page-{request}", request)
        else:
            answer = await session.elicit_form(params["message"], params["requestedSchema"], request)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def let_go(self) -> None:
        if self._context.close_sse_stream is not None:
            await self._context.close_sse_stream()

    async def updated(self, uri: str) -> None:
        if uri in repertoire.watched:
            await self._context.session.send_resource_updated(AnyUrl(uri))

    async def changed(self) -> None:
        session = self._context.session
        await session.send_tool_list_changed()
        await session.send_prompt_list_changed()
        await session.send_resource_list_changed()


def a_page(kind: str, request: Any) -> Wire:
    if request is None:  # the SDK itself, which looks for a tool's schema
        return {kind: repertoire.lists[kind]}
    found, following = page(repertoire.lists[kind], request.params.cursor if request.params else None)
    return {kind: found, "nextCursor": following}


@server.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    return types.ListToolsResult.model_validate(a_page("tools", request))


@server.list_resources()
async def list_resources(request: types.ListResourcesRequest) -> types.ListResourcesResult:
    return types.ListResourcesResult.model_validate(a_page("resources", request))


@server.list_prompts()
async def list_prompts(request: types.ListPromptsRequest) -> types.ListPromptsResult:
    return types.ListPromptsResult.model_validate(a_page("prompts", request))


async def list_templates(request: types.ListResourceTemplatesRequest) -> types.ServerResult:
    found = types.ListResourceTemplatesResult.model_validate(a_page("resourceTemplates", request))
    return types.ServerResult(found)


# The decorator for templates has no pages.
server.request_handlers[types.ListResourceTemplatesRequest] = list_templates


@server.call_tool()
async def call_tool(name: str, arguments: Wire) -> types.CallToolResult:
    return types.CallToolResult.model_validate(await repertoire.call(name, arguments, PythonV1()))


async def read_resource(request: types.ReadResourceRequest) -> types.ServerResult:
    contents = repertoire.read(str(request.params.uri))
    if contents is None:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found"))
    return types.ServerResult(types.ReadResourceResult.model_validate({"contents": contents}))


# The decorator for reading makes text/plain of what has no type.
server.request_handlers[types.ReadResourceRequest] = read_resource


@server.get_prompt()
async def get_prompt(name: str, arguments: dict[str, str] | None) -> types.GetPromptResult:
    return types.GetPromptResult.model_validate({"messages": repertoire.prompt(name, arguments or {})})


@server.completion()
async def complete(ref: Any, argument: types.CompletionArgument, context: Any) -> types.Completion:
    known = (context.arguments if context else None) or {}
    return types.Completion(values=repertoire.complete(getattr(ref, "name", ""), argument.value, known))


@server.set_logging_level()
async def set_level(level: types.LoggingLevel) -> None:
    wanted["level"] = level


@server.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    repertoire.watched.add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    repertoire.watched.discard(str(uri))


options = server.create_initialization_options(NotificationOptions(True, True, True))  # noqa: FBT003 - all lists
assert options.capabilities.resources is not None
options.capabilities.resources.subscribe = True  # the SDK says no, whether there is a handler or not


async def run(read: Any, write: Any) -> None:
    await server.run(read, write, options)


async def main() -> None:
    async with stdio_server() as streams:
        await run(*streams)


match TRANSPORT:
    case "stdio":
        anyio.run(main)
    case "sse":
        listen(pair(SseServerTransport("/messages/"), run))
    case _:
        keeps = {} if TRANSPORT == "sessionless" else {"event_store": Events(), "retry_interval": RETRY_MS}
        # The manager asks the server itself for its options.
        server.create_initialization_options = lambda *_: options  # type: ignore[method-assign]
        listen(endpoint(StreamableHTTPSessionManager(server, stateless=not keeps, **keeps)))
