"""Asking a client's model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgen.runtime.errors import RequestError
from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    everywhere,
    from_every_home,
    since,
    spec,
    with_handshakes,
    without_handshakes,
)
from tests.specification.server.revision_client import client, lack
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio

ANSWER = '{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m-1","stopReason":"endTurn"}'
TOOL_USE = (
    '{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"add","input":{"a":1}}],'
    '"model":"m-1","stopReason":"toolUse"}'
)
USER = [{"role": "user", "content": {"type": "text", "text": "Why?"}}]
with_tools = pytest.mark.parametrize("revision", [each for each in since("2025-11-25") if each in HANDSHAKES])


@spec("2024-11-05", "client/sampling#creating-messages")
@spec("2025-03-26", "client/sampling#creating-messages")
@spec("2025-06-18", "client/sampling#creating-messages")
@spec("2025-11-25", "client/sampling#creating-messages")
@with_handshakes
@from_every_home
async def test_a_session_is_asked_to_sample_by_a_request(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{}}') as peer:
        (asked,) = await peer.call("sample", '{"system_prompt":"Be brief.","temperature":0.5,"stop_sequences":["."]}')
        (said,) = await peer.answer(asked, ANSWER)

    assert {
        "jsonrpc": "2.0",
        "id": asked["id"],
        "method": "sampling/createMessage",
        "params": {
            "messages": USER,
            "maxTokens": 10,
            "systemPrompt": "Be brief.",
            "temperature": 0.5,
            "stopSequences": ["."],
        },
    } == asked
    assert [{"type": "text", "text": "m-1: Paris"}] == said["result"]["content"]


@spec("2026-07-28", "client/sampling#creating-messages")
@without_handshakes
@from_every_home
async def test_a_stateless_client_is_asked_to_sample_by_a_demand(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{}}') as peer:
        (demand,) = await peer.call("sample")
        ((key, asked),) = demand["result"]["inputRequests"].items()
        state = demand["result"]["requestState"]
        (said,) = await peer.ask(
            "tools/call",
            f'"name":"sample","arguments":{{}},"requestState":"{state}","inputResponses":{{"{key}":{ANSWER}}}',
        )

    assert {"method": "sampling/createMessage", "params": {"messages": USER, "maxTokens": 10}} == asked
    assert [{"type": "text", "text": "m-1: Paris"}] == said["result"]["content"]


@spec("2024-11-05", "client/sampling#capabilities")
@spec("2025-11-25", "client/sampling#capabilities")
@spec("2026-07-28", "client/sampling#capabilities")
@everywhere
@from_every_home
async def test_a_client_that_does_not_sample_is_not_asked(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"roots":{}}') as peer:
        (said,) = await peer.call("sample")

    assert (-32021 if peer.is_stateless else True) == lack(said)


@spec("2025-11-25", "client/sampling#sampling-with-tools")
@with_tools
@from_every_home
async def test_a_session_that_samples_with_tools_is_sent_them(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{"tools":{}}}') as peer:
        (asked,) = await peer.call("sample_with_tools")
        (said,) = await peer.answer(asked, TOOL_USE)

    assert [{"name": "add", "inputSchema": {"type": "object"}}] == asked["params"]["tools"]
    assert [{"type": "text", "text": "m-1: toolUse"}] == said["result"]["content"]


@spec("2026-07-28", "client/sampling#sampling-with-tools")
@without_handshakes
@from_every_home
async def test_a_stateless_client_that_samples_with_tools_is_sent_them(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision, '{"sampling":{"tools":{}}}') as peer:
        (demand,) = await peer.call("sample_with_tools")
        ((key, asked),) = demand["result"]["inputRequests"].items()
        state = demand["result"]["requestState"]
        (said,) = await peer.ask(
            "tools/call",
            f'"name":"sample_with_tools","arguments":{{}},"requestState":"{state}",'
            f'"inputResponses":{{"{key}":{TOOL_USE}}}',
        )

    assert [{"name": "add", "inputSchema": {"type": "object"}}] == asked["params"]["tools"]
    assert [{"type": "text", "text": "m-1: toolUse"}] == said["result"]["content"]


@spec("2025-11-25", "client/sampling#sampling-with-tools")
@spec("2026-07-28", "client/sampling#sampling-with-tools")
@everywhere
@from_every_home
@pytest.mark.parametrize("declared", ['{"sampling":{}}', '{"sampling":{"context":{}}}'])
async def test_tools_are_not_sent_to_a_client_that_has_not_declared_them(
    declared: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision, declared) as peer:
        (said,) = await peer.call("sample_with_tools")

    assert (-32021 if peer.is_stateless else True) == lack(said)
    if peer.is_stateless:
        assert {"requiredCapabilities": {"sampling": {"tools": {}}}} == said["error"]["data"]


@spec("2026-07-28", "schema#clientcapabilities", "950af54b")
@spec("2025-11-25", "schema#createmessagerequestparams", "6816486e")
@spec("2026-07-28", "schema#createmessagerequestparams", "0566fc76")
@spec("2025-11-25", "client/sampling#capabilities")
@spec("2026-07-28", "client/sampling#capabilities", "f64f1aa7")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize("context", ["thisServer", "allServers"])
async def test_context_is_not_asked_of_a_client_that_has_not_declared_it(context: str, revision: str) -> None:
    """Servers SHOULD NOT; the engine does not."""
    async with client(server(LABELS[-1]), revision, '{"sampling":{}}') as peer:
        (said,) = await peer.call("sample", f'{{"include_context":"{context}"}}')

    assert (-32021 if peer.is_stateless else True) == lack(said)


@spec("2024-11-05", "client/sampling#creating-messages")
@pytest.mark.parametrize("revision", since("2024-11-05", "2025-11-25"))
async def test_context_may_be_asked_of_any_client_that_samples_before_there_was_a_capability(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, '{"sampling":{}}') as peer:
        (asked,) = await peer.call("sample", '{"include_context":"thisServer"}')
        await peer.answer(asked, ANSWER)

    assert "thisServer" == asked["params"]["includeContext"]


@spec("2024-11-05", "client/sampling#error-handling")
@spec("2025-11-25", "client/sampling#error-handling")
@with_handshakes
@from_every_home
async def test_a_refusal_of_the_user_reaches_the_handler(native_revision: str, revision: str) -> None:
    caught: list[Any] = []

    async def sample(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        try:
            await context.sample("Why?", max_tokens=1)
        except Exception as error:  # noqa: BLE001 (which it is is tested)
            caught.append(error)
        return own.text("no")

    async with client(server(native_revision, tools={"sample": sample}), revision, '{"sampling":{}}') as peer:
        (asked,) = await peer.call("sample")
        await peer.wire.say(
            b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"User rejected sampling request"}}' % asked["id"]
        )

    assert [(True, -1)] == [(isinstance(each, RequestError), each.code) for each in caught]


@spec("2025-03-26", "client/sampling#audio-content")
@spec("2024-11-05", "client/sampling#image-content")
@with_handshakes
@pytest.mark.parametrize("kind", ["image", "audio"])
async def test_messages_hold_what_the_revision_knows(kind: str, revision: str) -> None:
    """The recorder judges it; a revision without audio gets something else, or is not asked."""
    from mcpgen.runtime.protocol.newest import models

    block = {"image": models.ImageContent, "audio": models.AudioContent}[kind](data="AAEC", mime_type=f"{kind}/x")

    async def sample(_own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.sample([models.SamplingMessage(role="user", content=block)], max_tokens=1)

    async with client(server(LABELS[-1], tools={"sample": sample}), revision, '{"sampling":{}}') as peer:
        (said,) = await peer.call("sample")
        if "method" in said:
            await peer.answer(said, ANSWER)

    assert "method" in said or "audio" == kind
    assert '"type": "audio"' not in json.dumps(said) or "2024-11-05" != revision


@spec("2025-11-25", "client/sampling#multi-turn-tool-loop")
@with_tools
async def test_a_conversation_with_tools_goes_on_with_their_results(revision: str) -> None:
    from mcpgen.runtime.protocol.newest import models

    async def loop(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        messages = [models.SamplingMessage(role="user", content=models.TextContent(text="1+1?"))]
        tools = [models.Tool(name="add", input_schema={"type": "object"})]
        first = await context.sample(messages, max_tokens=1, tools=tools)
        messages.append(models.SamplingMessage(role="assistant", content=first.content))
        result = models.ToolResultContent(tool_use_id="call_1", content=[models.TextContent(text="2")])
        messages.append(models.SamplingMessage(role="user", content=[result]))
        second = await context.sample(messages, max_tokens=1, tools=tools)
        return own.text(second.content.text)

    async with client(server(LABELS[-1], tools={"loop": loop}), revision, '{"sampling":{"tools":{}}}') as peer:
        (first,) = await peer.call("loop")
        (second,) = await peer.answer(first, TOOL_USE)
        (said,) = await peer.answer(second, ANSWER)

    assert ["text", "tool_use", "tool_result"] == [
        (each["content"] if isinstance(each["content"], dict) else each["content"][0])["type"]
        for each in second["params"]["messages"]
    ]
    assert "Paris" == said["result"]["content"][0]["text"]
