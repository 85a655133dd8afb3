"""What a client makes of results and errors, valid or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgen import InvalidPayload, PeerError, RequestRefused, UnexpectedResult
from mcpgen.runtime.errors import InvalidStructuredContent
from tests.specification.citation import HANDSHAKES, LABELS, STATELESS, everywhere, since, spec, without_handshakes
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

DONE = {"content": [{"type": "text", "text": "done"}]}


async def goes_on(own: Any, revision: str) -> None:
    """See that the connection is of use still."""
    assert "done" == (await own.answered(own.client.call_tool("y"), complete(revision, **DONE))).content[0].text


# --- results


@spec("2024-11-05", "basic/messages#responses")
@spec("2025-11-25", "basic/index#result-responses")
@spec("2026-07-28", "basic/index#result-responses")
@everywhere
@on_both_loops
async def test_a_raw_result_keeps_all_that_came(revision: str) -> None:
    result = {
        "resultType": "complete",
        "content": [{"type": "hologram", "x": 1}],
        "com.example/y": {"deep": [1, 2.5, None, 10**30]},
        "_meta": {"com.example/z": True},
    }
    async with opened(revision) as own:
        assert result == await own.answered(own.client.request_json("tools/call", {"name": "x"}), result)


@spec("2024-11-05", "basic/messages#responses")
@spec("2025-11-25", "basic/index#result-responses")
@everywhere
async def test_a_raw_request_is_sent_as_it_is(revision: str) -> None:
    params = {"name": "x", "arguments": {"a": [1, 2.5, None]}, "_meta": {"com.example/y": 1}}
    async with opened(revision) as own:
        _, asked = await own.asked(own.client.request_json("tools/call", params))

    meta = asked["params"].pop("_meta")
    assert {"name": "x", "arguments": {"a": [1, 2.5, None]}} == asked["params"]
    assert 1 == meta["com.example/y"]


@spec("2024-11-05", "server/tools#calling-tools")
@spec("2025-11-25", "server/tools#calling-tools")
@spec("2026-07-28", "server/tools#calling-tools")
@everywhere
@pytest.mark.parametrize(
    ("broken", "pointer"),
    [
        ({"content": 5}, "/content"),
        ({"content": [5]}, "/content/0"),
        ({"content": [{"type": "text", "text": 5}]}, "/content/0"),
        ({"content": [{"type": "text"}]}, "/content/0"),
        ({"content": [], "isError": "yes"}, "/isError"),
        ({"content": [], "_meta": 5}, "/_meta"),
    ],
    ids=str,
)
@on_both_loops
async def test_a_result_that_the_revision_does_not_allow_fails_its_call_alone(
    broken: Any, pointer: str, revision: str
) -> None:
    async with opened(revision) as own:
        other, kept = await own.asked(own.client.call_tool("z"))
        with pytest.raises(InvalidPayload, match="tools/call") as failure:
            await own.answered(own.client.call_tool("x"), complete(revision, **broken))
        own.wire.result(kept, complete(revision, **DONE))

        assert "done" == (await other.outcome()).content[0].text
        assert revision == failure.value.revision
        assert failure.value.pointer.startswith(pointer)
        await goes_on(own, revision)


@spec("2024-11-05", "server/tools#listing-tools")
@spec("2025-11-25", "server/tools#listing-tools")
@everywhere
@pytest.mark.parametrize(
    ("broken", "pointer"),
    [
        ({}, ""),
        ({"tools": [{"name": "x"}]}, "/tools/0"),
        ({"tools": [], "nextCursor": 5}, "/nextCursor"),
    ],
    ids=str,
)
async def test_a_list_that_the_revision_does_not_allow_fails_its_call_alone(
    broken: Any, pointer: str, revision: str
) -> None:
    async with opened(revision) as own:
        with pytest.raises(InvalidPayload) as failure:
            await own.answered(own.client.list_tools(), complete(revision, is_list=True, **broken))

        assert failure.value.pointer.startswith(pointer)
        await goes_on(own, revision)


@spec("2025-06-18", "basic/index#responses", "dcd34d18", "f10035f4")
@spec("2024-11-05", "basic/messages#responses", "51f9a177", "b5e6ac88")
@spec("2025-11-25", "basic/index#responses")
@spec("2026-07-28", "basic/index#responses")
@everywhere
@pytest.mark.parametrize(
    "members", ["", ',"result":5', ',"result":null', ',"error":5', ',"error":{"code":1.5,"message":"x"}']
)
async def test_a_response_that_is_none_fails_its_call_alone(members: str, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.say(f'{{"jsonrpc":"2.0","id":{asked["id"]}{members}}}'.encode())
        with pytest.raises(PeerError):
            await errand.outcome()

        await goes_on(own, revision)


@spec("2024-11-05", "basic/messages#responses")
@spec("2025-11-25", "basic/index#responses")
@spec("2026-07-28", "basic/index#responses")
@everywhere
@pytest.mark.parametrize(
    "frame",
    [
        b"Starting.",
        b"",
        b"{",
        b"[]",
        b"5",
        b"\xff\xfe",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":99,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"99","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"02","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"2.0","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}',
        b'{"jsonrpc":"1.0","id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
    ],
    ids=repr,
)
async def test_what_is_nobodys_answer_disturbs_nobody(frame: bytes, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.say(frame)
        assert [] == [each for each in await own.wire.rest() if "method" in each]

        own.wire.result(asked, complete(revision, **DONE))

        assert "done" == (await errand.outcome()).content[0].text


@spec("2025-11-25", "basic/index#responses")
@everywhere
async def test_of_two_answers_to_one_request_the_first_counts(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, complete(revision, **DONE))
        own.wire.error(asked, -32603)

        assert "done" == (await errand.outcome()).content[0].text


@spec("2024-11-05", "basic/messages#requests", "68440bbc")
@spec("2025-11-25", "basic/index#requests", "727cb8ce")
@spec("2026-07-28", "basic/index#requests", "8a599d52")
@everywhere
@on_both_loops
async def test_answers_may_come_in_any_order(revision: str) -> None:
    async with opened(revision) as own:
        errands = [await own.asked(own.client.call_tool(name)) for name in "abcdef"]
        for _, asked in reversed(errands):
            text = {"type": "text", "text": asked["params"]["name"]}
            own.wire.result(asked, complete(revision, content=[text]))
        found = [(await errand.outcome()).content[0].text for errand, _ in errands]
        ids = [asked["id"] for _, asked in errands]

    assert [*"abcdef"] == found
    assert len(set(ids)) == len(ids)


# --- errors


@spec("2024-11-05", "basic/messages#responses")
@spec("2025-11-25", "basic/index#error-responses")
@spec("2026-07-28", "basic/index#error-responses")
@everywhere
@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32000, -1, 4711])
@pytest.mark.parametrize("data", [{}, {"data": {"why": ["closed", 1]}}, {"data": "x"}], ids=str)
async def test_an_error_is_raised_with_all_that_it_says(code: int, data: Any, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, code, "not today", **data)
        with pytest.raises(RequestRefused) as failure:
            await errand.outcome()

        error = failure.value
        assert ("tools/call", code, "not today") == (error.method, error.code, error.message)
        assert not data or data["data"] == error.data
        await goes_on(own, revision)


@spec("2024-11-05", "server/tools#error-handling")
@spec("2025-11-25", "server/tools#error-handling")
@everywhere
async def test_a_tool_that_failed_is_a_result(revision: str) -> None:
    async with opened(revision) as own:
        result = await own.answered(own.client.call_tool("x"), complete(revision, **DONE, isError=True))

    assert result.is_error is True


@spec("2026-07-28", "server/resources#error-handling")
@spec("2025-11-25", "server/resources#error-handling")
@everywhere
async def test_that_a_resource_is_not_found_can_be_told(revision: str) -> None:
    code = -32602 if revision in STATELESS else -32002
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.read_resource("a:b"))
        own.wire.error(asked, code, "Resource not found", data={"uri": "a:b"})
        with pytest.raises(RequestRefused, match="Resource not found") as failure:
            await errand.outcome()

    assert {"uri": "a:b"} == failure.value.data
    assert failure.value.code in (-32602, -32002)


@spec("2025-11-25", "basic/index#error-responses")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_raw_error_keeps_its_code(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.request_json("resources/read", {"uri": "a:b"}))
        own.wire.error(asked, -32002, "Resource not found")
        with pytest.raises(RequestRefused) as failure:
            await errand.outcome()

    assert -32002 == failure.value.code


# --- results of extensions


@spec("2026-07-28", "basic/index#resulttype", "e5f5e7e3")
@without_handshakes
@pytest.mark.parametrize(
    "options",
    [{"extensions": ["com.example/x"]}, {"capabilities": {"extensions": {"com.example/x": {}}}}],
    ids=["identifier", "capability"],
)
async def test_a_result_of_an_extension_without_types_is_returned_as_it_came(options: Any, revision: str) -> None:
    found = {"resultType": "com.example/deferred", "ticket": 5}
    async with opened(revision, can={"tools": {}, "extensions": {"com.example/x": {}}}, **options) as own:
        assert found == await own.answered(own.client.list_tools(), found)
        assert found == await own.answered(own.client.call_tool("x"), found)
        with pytest.raises(UnexpectedResult, match="types the client does not have"):
            await own.answered(own.client.call_tool("x", returns=int), found)
        with pytest.raises(InvalidPayload):
            await own.answered(own.client.call_tool("x"), {"resultType": 5})
        assert [] == (await own.answered(own.client.call_tool("x"), complete(revision, content=[]))).content
    async with opened(revision, can={"tools": {}}, **options) as own:  # the server has not declared it
        with pytest.raises(InvalidPayload, match=r"the result type .* is unknown"):
            await own.answered(own.client.call_tool("x"), found)


# --- structured results


STRUCTURED = pytest.mark.parametrize("revision", since("2025-06-18"))
TOOL = {
    "name": "add",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
}


async def added(own: Any, revision: str, content: Any) -> Any:
    """List a tool that adds, and return what it results in."""
    await own.answered(own.client.list_tools(), complete(revision, is_list=True, tools=[TOOL]))
    text = [{"type": "text", "text": json.dumps(content)}]
    return await own.answered(own.client.call_tool("add"), complete(revision, content=text, structuredContent=content))


@spec("2025-06-18", "server/tools#output-schema")
@spec("2025-11-25", "server/tools#output-schema")
@spec("2026-07-28", "server/tools#output-schema")
@STRUCTURED
@pytest.mark.parametrize("policy", ["off", "warn", "strict"])
async def test_a_structured_result_that_fits_is_returned(policy: Any, revision: str) -> None:
    async with opened(revision, structured=policy) as own:
        assert {"sum": 3} == (await added(own, revision, {"sum": 3})).structured_content


@spec("2025-06-18", "server/tools#output-schema")
@spec("2025-11-25", "server/tools#output-schema")
@spec("2026-07-28", "server/tools#output-schema")
@STRUCTURED
@on_both_loops
async def test_a_structured_result_that_does_not_fit_is_an_error_if_the_user_is_strict(revision: str) -> None:
    async with opened(revision, structured="strict") as own:
        with pytest.raises(InvalidStructuredContent) as failure:
            await added(own, revision, {"sum": "three"})

        assert {"sum": "three"} == failure.value.result.structured_content
        await goes_on(own, revision)


@spec("2025-11-25", "server/tools#output-schema")
@STRUCTURED
@pytest.mark.parametrize(("policy", "count"), [("off", 0), ("warn", 1)])
async def test_a_structured_result_that_does_not_fit_is_returned_if_the_user_is_not(
    policy: Any, count: int, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(revision, structured=policy) as own:
        assert {"sum": "three"} == (await added(own, revision, {"sum": "three"})).structured_content

    assert count == len(caplog.records)


@spec("2025-11-25", "server/tools#output-schema")
@STRUCTURED
async def test_a_tool_whose_schema_is_not_known_is_not_checked(revision: str) -> None:
    async with opened(revision, structured="strict") as own:
        result = complete(revision, content=[], structuredContent={"sum": "three"})

        assert {"sum": "three"} == (await own.answered(own.client.call_tool("add"), result)).structured_content


@spec("2025-11-25", "server/tools#list-changed-notification")
@pytest.mark.parametrize("revision", since("2025-06-18", "2026-07-28"))
async def test_schemas_are_forgotten_when_the_tools_change(revision: str) -> None:
    async with opened(revision, structured="strict") as own:
        await added(own, revision, {"sum": 3})
        own.wire.tell("notifications/tools/list_changed")
        result = complete(revision, content=[], structuredContent={"sum": "three"})

        assert {"sum": "three"} == (await own.answered(own.client.call_tool("add"), result)).structured_content


@spec("2025-11-25", "server/tools#list-changed-notification")
@pytest.mark.parametrize("revision", since("2025-06-18", "2026-07-28"))
async def test_schemas_of_a_list_that_changes_as_soon_as_it_is_sent_are_not_kept(revision: str) -> None:
    async with opened(revision, structured="strict") as own:
        errand, asked = await own.asked(own.client.list_tools())
        own.wire.result(asked, complete(revision, is_list=True, tools=[TOOL]))
        own.wire.tell("notifications/tools/list_changed")
        await errand.outcome()
        result = complete(revision, content=[], structuredContent={"sum": "three"})

        assert {"sum": "three"} == (await own.answered(own.client.call_tool("add"), result)).structured_content


@spec("2026-07-28", "basic/index#error-codes", "31fe8a9d")
@pytest.mark.parametrize("code", [-32000, -32001, -32003, -32019])
async def test_a_code_that_earlier_implementations_chose_has_no_meaning(code: int) -> None:
    async with opened(STATELESS[-1]) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, code, "odd")
        with pytest.raises(RequestRefused) as caught:
            await errand.outcome()

        assert [] == await own.wire.rest()

    assert (RequestRefused, code, "odd") == (type(caught.value), caught.value.code, caught.value.message)


@spec("2026-07-28", "server/utilities/caching#time-to-live-ttl-field", "03295f38")
@without_handshakes
@on_both_loops
async def test_a_negative_lifetime_is_read_as_0(revision: str) -> None:
    async with opened(revision, more={"ttlMs": -1}, revisions=[LABELS[-2], revision]) as own:
        assert revision == own.client.revision
        listed = await own.answered(own.client.list_tools(), complete(revision, is_list=True, tools=[]) | {"ttlMs": -4})

    assert 0 == listed.ttl_ms


@spec("2026-07-28", "server/utilities/caching#time-to-live-ttl-field", "eef133ec")
async def test_a_list_without_a_lifetime_is_stale_at_once() -> None:
    async with opened(STATELESS[-1]) as own:
        listed = await own.answered(
            own.client.list_tools(), {"resultType": "complete", "tools": [], "cacheScope": "private"}
        )

    assert 0 == listed.ttl_ms


@spec("2026-07-28", "server/utilities/caching#time-to-live-ttl-field", "03295f38", "eef133ec")
@pytest.mark.parametrize(
    ("hint", "read"),
    [
        ({}, (0, "private")),
        ({"cacheScope": "public"}, (0, "public")),
        ({"ttlMs": 5}, (5, "private")),
        ({"ttlMs": -5, "cacheScope": "public"}, (0, "public")),
    ],
    ids=str,
)
async def test_a_resource_with_an_invalid_hint_is_read_as_a_list_is(hint: Any, read: Any) -> None:
    found = {"resultType": "complete", "contents": [{"uri": "a:b", "text": "one"}]}
    async with opened(STATELESS[-1]) as own:
        result = await own.answered(own.client.read_resource("a:b"), {**found, **hint})

    assert read == (result.ttl_ms, result.cache_scope)
