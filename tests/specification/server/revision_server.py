"""A server with handlers of any home: one of each kind of tool, resource and prompt that the rules speak of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen.generated import registry
from mcpgen.runtime.api.server import Server
from mcpgen.runtime.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CAPABILITIES = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

Tool = Any


class Behaviour:
    """What the handlers do, in the terms of no revision: results are JSON that home decodes.

    Attributes:
        gate: Opened by a test that lets the tool `wait` go on.
        waiting: Opened by the tool `wait` once it waits.
        given_up: How often it was cancelled meanwhile.
        seen: What handlers were given, by method.
    """

    native_revision: str
    models: Any

    def __init__(self, capabilities: dict[str, Any], tools: dict[str, Callable[..., Awaitable[Any]]]) -> None:
        self.gate = anyio.Event()
        self.waiting = anyio.Event()
        self.given_up = 0
        self.seen: dict[str, Any] = {}
        self._capabilities = capabilities
        self._tools = tools

    def made(self, name: str, value: dict[str, Any]) -> Any:
        """Return the result *name* of home that the wire value *value* stands for."""
        if registry.revision(self.native_revision).era == "stateless":
            lists = {"ttlMs": 0, "cacheScope": "private"} if name.startswith(("List", "Read")) else {}
            value = {"resultType": "complete", **lists, **value}
        return self.models.decode(json.dumps(value).encode(), getattr(self.models, name))

    def text(self, text: str) -> Any:
        """Return the result of a tool that says *text*."""
        return self.made("CallToolResult", {"content": [{"type": "text", "text": text}]})

    def capabilities(self) -> Any:
        return self.models.decode(json.dumps(self._capabilities).encode(), self.models.ServerCapabilities)

    async def call_tool(self, params: Any, context: Any) -> Any:
        self.seen["tools/call"] = params
        arguments = {} if not isinstance(params.arguments, dict) else params.arguments
        if params.name in self._tools:
            return await self._tools[params.name](self, arguments, context)
        if params.name not in TOOLS:
            raise RequestError(-32602, f"Unknown tool: {params.name}")
        return await TOOLS[params.name](self, arguments, context)

    async def list_tools(self, params: Any, context: Any) -> Any:
        del context
        first = {"name": "echo", "inputSchema": {"type": "object"}}
        second = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}
        if params.cursor == "second":
            return self.made("ListToolsResult", {"tools": [second]})
        if isinstance(params.cursor, str):
            raise RequestError(-32602, "there is no such page")
        return self.made("ListToolsResult", {"tools": [first], "nextCursor": "second"})

    async def list_resources(self, params: Any, context: Any) -> Any:
        del params, context
        return self.made("ListResourcesResult", {"resources": [{"uri": "note://a", "name": "a"}]})

    async def list_resource_templates(self, params: Any, context: Any) -> Any:
        del params, context
        return self.made(
            "ListResourceTemplatesResult", {"resourceTemplates": [{"uriTemplate": "n://{x}", "name": "n"}]}
        )

    async def read_resource(self, params: Any, context: Any) -> Any:
        if params.uri == "note://ask":
            return self.made("ReadResourceResult", {"contents": [{"uri": params.uri, "text": await _asked(context)}]})
        if params.uri == "note://binary":
            return self.made("ReadResourceResult", {"contents": [{"uri": params.uri, "blob": "AAEC"}]})
        if params.uri != "note://a":
            newest = registry.revision(self.native_revision).era == "stateless"
            raise RequestError(-32602 if newest else -32002, "Resource not found", {"uri": params.uri})
        return self.made(
            "ReadResourceResult", {"contents": [{"uri": params.uri, "mimeType": "text/plain", "text": "A"}]}
        )

    async def list_prompts(self, params: Any, context: Any) -> Any:
        del params, context
        prompt = {"name": "review", "arguments": [{"name": "code", "required": True}]}
        return self.made("ListPromptsResult", {"prompts": [prompt]})

    async def get_prompt(self, params: Any, context: Any) -> Any:
        if params.name == "ask":
            text = await _asked(context)
        elif params.name == "review":
            text = f"Review {params.arguments['code']}"
        else:
            raise RequestError(-32602, f"Unknown prompt: {params.name}")
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return self.made("GetPromptResult", {"messages": [message]})

    async def complete(self, params: Any, context: Any) -> Any:
        del context
        self.seen["completion/complete"] = params
        values = [each for each in ("python", "pytorch", "rust") if each.startswith(params.argument.value)]
        return self.made("CompleteResult", {"completion": {"values": values, "total": len(values), "hasMore": False}})


async def _asked(context: Any) -> str:
    answer = await context.elicit("Who are you?", FORM)
    return f"{answer.action} {answer.content}"


async def _echo(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del context
    return own.text(str(arguments.get("text", "")))


async def _wait(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments, context
    own.waiting.set()
    try:
        await own.gate.wait()
    except BaseException:
        own.given_up += 1
        raise
    return own.text("waited")


async def _crash(_own: Behaviour, _arguments: dict[str, Any], _context: Any) -> Any:
    raise ValueError("the password is hunter2")


async def _refuse(_own: Behaviour, _arguments: dict[str, Any], _context: Any) -> Any:
    raise RequestError(4711, "not today", {"why": "closed"})


async def _progress(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments
    await context.progress(1, 4, "one")
    await context.progress(1, 4, "one again")
    await context.progress(0.5, 4, "back")
    await context.progress(2.5)
    return own.text("done")


async def _log(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    for level in arguments.get("levels", ["debug", "info", "error", "emergency"]):
        await context.log(level, {"said": level}, logger="tests")
    return own.text("logged")


async def _ask(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments
    return own.text(await _asked(context))


async def _ask_url(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments
    return own.text(await context.elicit_url("Please sign in.", "https://example.com/in"))


async def _sample(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    result = await context.sample("Why?", max_tokens=10, **arguments)
    return own.text(f"{result.model}: {result.content.text}")


async def _sample_with_tools(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments
    newest = registry.REVISIONS[-1].bindings().models
    tool = newest.Tool(name="add", input_schema={"type": "object"})
    result = await context.sample("Why?", max_tokens=10, tools=[tool])
    return own.text(f"{result.model}: {result.stop_reason}")


async def _roots(own: Behaviour, arguments: dict[str, Any], context: Any) -> Any:
    del arguments
    return own.text(" ".join(each.uri for each in await context.roots()))


TOOLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "ask": _ask,
    "ask_url": _ask_url,
    "crash": _crash,
    "echo": _echo,
    "log": _log,
    "progress": _progress,
    "refuse": _refuse,
    "roots": _roots,
    "sample": _sample,
    "sample_with_tools": _sample_with_tools,
    "wait": _wait,
}


def handlers(
    native_revision: str,
    *,
    capabilities: dict[str, Any] | None = None,
    tools: dict[str, Callable[..., Awaitable[Any]]] | None = None,
    overrides: dict[str, Any] | None = None,
    **named: Any,
) -> Any:
    """Return handlers of *home*.

    Args:
        home: A revision.
        capabilities: What they declare.
        tools: More tools, which are called with the handlers, the arguments and the context.
        overrides: Handlers instead of those of `Behaviour`, by name.
        named: The same.
    """
    bindings = registry.revision(native_revision).bindings()
    members = {"native_revision": native_revision, "models": bindings.models, **named, **(overrides or {})}
    made = type("Handlers", (Behaviour, bindings.server.ServerHandlers), members)
    return made(CAPABILITIES if capabilities is None else capabilities, tools or {})


def server(native_revision: str, *, revisions: list[str] | None = None, own: Any = None, **more: Any) -> Server:
    """Return a server of *home*, whose handlers are *own*, or made as *more* says."""
    return Server("demo", version="1", handlers=own or handlers(native_revision, **more), revisions=revisions)
