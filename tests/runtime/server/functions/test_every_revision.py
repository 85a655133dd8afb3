"""One server of functions, used by a peer of each revision; a recorder judges each message by the peer's document."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest

from mcpgen import Context, Server, ToolError
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import models
from tests.harness.server_wire import Wire, connected
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.anyio


@dataclass
class Weather:
    celsius: float
    sky: Literal["clear", "grey"] = "clear"


def server() -> Server:
    made = Server("functions", version="1", page_size=3)

    @made.tool(title="Adder", annotations=models.ToolAnnotations(read_only_hint=True))
    async def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @made.tool(icons=[models.Icon(src="https://x/i.png")])
    def weather(city: str, ctx: Context) -> Weather:
        if city == "nowhere":
            raise ToolError(f"{ctx.peer.revision} has no such place")
        return Weather(1.5)

    @made.tool
    async def media() -> list[models.ContentBlock]:
        return [
            models.TextContent(text="hi"),
            models.AudioContent(data="eA==", mime_type="audio/wav"),
            models.ResourceLink(uri="x:a", name="a"),
        ]

    @made.tool
    async def broken() -> list[int]:
        raise ValueError("secret")

    @made.resource("config:app", title="Config", mime_type="application/json")
    def config() -> dict[str, int]:
        """Say how it is set up."""
        return {"a": 1}

    @made.resource("file:///{+path}")
    async def read(path: str) -> bytes:
        return path.encode()

    @made.prompt(title="Reviewer")
    async def review(code: str, tone: Literal["kind", "harsh"] = "kind") -> str:
        """Review code."""
        return f"{code}, {tone}"

    @made.completion("review", "tone")
    async def tones(value: str, arguments: dict[str, str]) -> list[str]:
        return [each for each in ("kind", "harsh") if each.startswith(value)] + sorted(arguments)

    return made


def asking(wire: Wire, revision: str) -> Callable[..., Awaitable[Any]]:
    """Return what sends a request and returns the result, or the error."""
    stateless = registry.revision(revision).era == "stateless"
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    }
    ids = iter(range(1, 1000))

    async def ask(method: str, **params: Any) -> Any:
        if stateless:
            params["_meta"] = meta
        request = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
        with anyio.fail_after(PATIENCE_SECONDS):
            answers = await wire.say(json.dumps(request).encode())
            while not answers:  # a plain function takes a thread's time
                answers = await wire.rest()
        (answer,) = answers
        return answer.get("result", answer.get("error"))

    return ask


async def opened(wire: Wire, revision: str) -> Callable[..., Awaitable[Any]]:
    ask = asking(wire, revision)
    if registry.revision(revision).era == "handshake":
        info = {"name": "c", "version": "1"}
        await ask("initialize", protocolVersion=revision, capabilities={}, clientInfo=info)
        await wire.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return ask


async def test_a_peer_of_any_revision_can_use_everything_that_is_registered(revision: str) -> None:
    async with connected(server()) as wire:
        ask = await opened(wire, revision)
        first = await ask("tools/list")
        second = await ask("tools/list", cursor=first["nextCursor"])
        assert ["add", "weather", "media", "broken"] == [each["name"] for each in first["tools"] + second["tools"]]
        assert '{"result":3}' == (await ask("tools/call", name="add", arguments={"a": 2}))["content"][0]["text"]
        assert (await ask("tools/call", name="broken"))["isError"]
        assert "hi" == (await ask("tools/call", name="media"))["content"][0]["text"]
        assert ["config:app"] == [each["uri"] for each in (await ask("resources/list"))["resources"]]
        templates = (await ask("resources/templates/list"))["resourceTemplates"]
        assert ["file:///{+path}"] == [each["uriTemplate"] for each in templates]
        assert '{"a":1}' == (await ask("resources/read", uri="config:app"))["contents"][0]["text"]
        assert "YS9i" == (await ask("resources/read", uri="file:///a/b"))["contents"][0]["blob"]
        assert ["review"] == [each["name"] for each in (await ask("prompts/list"))["prompts"]]
        prompt = await ask("prompts/get", name="review", arguments={"code": "x", "tone": "harsh"})
        assert "x, harsh" == prompt["messages"][0]["content"]["text"]
        reference = {"type": "ref/prompt", "name": "review"}
        completed = await ask("completion/complete", ref=reference, argument={"name": "tone", "value": "k"})
        assert ["kind"] == completed["completion"]["values"]


async def test_failures_look_as_the_peers_revision_says(revision: str) -> None:
    in_results = revision in {"2025-11-25", "2026-07-28"}
    async with connected(server()) as wire:
        ask = await opened(wire, revision)
        failed = await ask("tools/call", name="weather", arguments={"city": "nowhere"})
        assert (True, f"{revision} has no such place") == (failed["isError"], failed["content"][0]["text"])
        wrong = await ask("tools/call", name="add", arguments={"a": "x"})
        assert in_results == wrong.get("isError", False)
        assert in_results or -32602 == wrong["code"]
        assert -32602 == (await ask("tools/call", name="nope"))["code"]
        assert -32602 == (await ask("tools/list", cursor="nope"))["code"]
        assert -32602 == (await ask("prompts/get", name="review"))["code"]
        missing = await ask("resources/read", uri="file:///../etc/passwd")
        assert (-32602 if revision == "2026-07-28" else -32002) == missing["code"]


async def test_structured_content_reaches_those_who_know_it(revision: str) -> None:
    async with connected(server()) as wire:
        ask = await opened(wire, revision)
        result = await ask("tools/call", name="weather", arguments={"city": "here"})

    structured = {"celsius": 1.5, "sky": "clear"}
    assert structured == json.loads(result["content"][0]["text"])
    assert (None if revision in {"2024-11-05", "2025-03-26"} else structured) == result.get("structuredContent")
    assert 1 == len(result["content"])
