"""The official Python SDK, 2.x, as a server: its low-level ``Server``, which can do all that the protocol has.

One process serves both eras over stdio: what the client says first decides. To clients of 2026-07-28 a tool's question
is a demand for input; the SDK's ``RequestStateBoundary`` seals the state that goes with it.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import anyio
import mcp_types as types
from listening import RETRY_MS, TRANSPORT, Events, listen, pair
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from repertoire import LEVELS, OFFERED, Caller, Refusal, Repertoire, Wire, page

warnings.simplefilter("ignore")  # what the newest revision deprecates is here on purpose

repertoire = Repertoire()
bus = InMemorySubscriptionBus()
wanted = {"level": "debug"}


class Demand(Exception):  # noqa: N818 - no error: an outcome
    """A question that the client has not answered yet."""


def wire(model: Any) -> Wire:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class PythonV2(Caller):
    def __init__(self, context: Any, params: types.CallToolRequestParams) -> None:
        self._context = context
        self._is_stateless = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.answers: Wire = json.loads(params.request_state) if params.request_state else {}
        self.answers |= {key: wire(each) for key, each in (params.input_responses or {}).items()}

    def introduction(self) -> Wire:
        client = self._context.session.client_params
        about = {"name": client.client_info.name, "version": client.client_info.version}
        era = "stateless" if self._is_stateless else "handshake"
        return {"revision": self._context.protocol_version, "era": era, **about}

    async def progress(self, step: float, total: float, message: str | None) -> None:
        await self._context.session.report_progress(step, total, message)

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        if self._is_stateless or LEVELS.index(level) >= LEVELS.index(wanted["level"]):
            await self._context.session.send_log_message(level, data, logger, self._context.request_id)

    async def ask(self, key: str) -> Wire:
        if key in self.answers:
            return self.answers[key]
        if self._is_stateless:
            raise Demand(key)
        session, request = self._context.session, self._context.request_id
        params = OFFERED["questions"][key].get("params", {})
        if key == "roots":
            return wire(await session.list_roots())
        if key == "model":
            messages = [types.SamplingMessage.model_validate(each) for each in params["messages"]]
            options = {"max_tokens": params["maxTokens"], "related_request_id": request}
            return wire(await session.create_message(messages, **options))
        if key == "page":
            return wire(await session.elicit_url(params["message"], params["url"], f"page-{request}", request))
        return wire(await session.elicit_form(params["message"], params["requestedSchema"], request))

    async def let_go(self) -> None:
        if self._context.close_sse_stream is not None:
            await self._context.close_sse_stream()

    async def updated(self, uri: str) -> None:
        if self._is_stateless:
            await bus.publish(ResourceUpdated(uri=uri))
        elif uri in repertoire.watched:
            await self._context.session.send_resource_updated(uri)

    async def changed(self) -> None:
        session = self._context.session
        if self._is_stateless:
            for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
                await bus.publish(event)
            return
        await session.send_tool_list_changed()
        await session.send_prompt_list_changed()
        await session.send_resource_list_changed()


def a_page(kind: str, params: types.PaginatedRequestParams | None) -> Wire:
    found, following = page(repertoire.lists[kind], params.cursor if params else None)
    return {kind: found, "nextCursor": following}


async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult.model_validate(a_page("tools", params))


async def list_resources(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult.model_validate(a_page("resources", params))


async def list_templates(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult.model_validate(a_page("resourceTemplates", params))


async def list_prompts(_: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult.model_validate(a_page("prompts", params))


async def call_tool(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    caller = PythonV2(context, params)
    try:
        result = await repertoire.call(params.name, params.arguments or {}, caller)
    except Refusal as refusal:
        raise MCPError(refusal.code, refusal.message) from refusal
    except Demand as demand:
        [key] = demand.args
        requests = {key: OFFERED["questions"][key]}
        state = json.dumps(caller.answers)
        return types.InputRequiredResult.model_validate({"inputRequests": requests, "requestState": state})
    except (RuntimeError, TypeError) as error:  # the SDK makes an error of the protocol of it
        result = {"content": [{"type": "text", "text": type(error).__name__}], "isError": True}
    return types.CallToolResult.model_validate(result)


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    contents = repertoire.read(params.uri)
    if contents is None:
        is_stateless = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(-32602 if is_stateless else -32002, "Resource not found")
    return types.ReadResourceResult.model_validate({"contents": contents})


async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    messages = repertoire.prompt(params.name, params.arguments or {})
    return types.GetPromptResult.model_validate({"messages": messages})


async def complete(_: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    known = (params.context.arguments if params.context else None) or {}
    values = repertoire.complete(getattr(params.ref, "name", ""), params.argument.value, known)
    return types.CompleteResult(completion=types.Completion(values=values))


async def set_level(_: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
    wanted["level"] = params.level
    return types.EmptyResult()


async def subscribe(_: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    repertoire.watched.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(_: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    repertoire.watched.discard(params.uri)
    return types.EmptyResult()


server: Server[Any] = Server(
    "interop",
    version="4.2",
    title="Interoperability",
    instructions="Ask for one thing of everything.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="interop"))
options = server.create_initialization_options(NotificationOptions(True, True, True))  # noqa: FBT003 - all lists


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
        # The application asks the server itself for its options.
        server.create_initialization_options = lambda *_, **__: options  # type: ignore[method-assign]
        listen(server.streamable_http_app(stateless_http=not keeps, **keeps))
