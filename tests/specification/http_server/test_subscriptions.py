"""`subscriptions/listen` over HTTP: the response to the request is the stream."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.specification.http_server.http_clients import META, STATELESS, Caller, caller
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import on_both_loops, spec
from tests.specification.http_server.stream_tools import demo

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange

pytestmark = pytest.mark.anyio

ID = META + "subscriptionId"
SERVED = pytest.mark.parametrize("revisions", [None, [STATELESS]], ids=["both eras", "stateless alone"])
ALL = (
    '"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["note://a"]'
)


def listen(peer: Caller, wanted: str, identity: int | str) -> Exchange:
    return peer.send("subscriptions/listen", f'"notifications":{{{wanted}}}', identity=identity)


def told(stream: Exchange) -> list[tuple[str, Any]]:
    found = [json.loads(each.data) for each in stream.pending if each.data]
    return [(each["method"].removeprefix("notifications/"), each["params"]["_meta"][ID]) for each in found]


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment", "08432294")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
@SERVED
@on_both_loops
async def test_the_stream_begins_with_the_acknowledgement(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        stream = listen(Caller(web, STATELESS), '"toolsListChanged":true,"resourceSubscriptions":["note://a"]', "s")
        first = await stream.message()
        await web.quiet()

    assert (200, "text/event-stream", "no") == (
        stream.status,
        stream.header("content-type"),
        stream.header("x-accel-buffering"),
    )
    assert {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": {ID: "s"},
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["note://a"]},
        },
    } == first
    assert not stream.is_ended


@spec("2026-07-28", "basic/index#meta", "85fd0c79")
@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
@SERVED
@on_both_loops
async def test_every_change_that_was_asked_for_comes_with_the_id_of_the_stream(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        stream = listen(Caller(web, STATELESS), ALL, 7)
        await stream.message()
        await web.server.tools_changed()
        await web.server.prompts_changed()
        await web.server.resources_changed()
        await web.server.resource_updated("note://a")
        await web.quiet()

        assert [
            ("tools/list_changed", 7),
            ("prompts/list_changed", 7),
            ("resources/list_changed", 7),
            ("resources/updated", 7),
        ] == told(stream)


@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream", "34969945")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", []),
        ('"toolsListChanged":true', ["tools/list_changed"]),
        ('"toolsListChanged":false,"promptsListChanged":true', ["prompts/list_changed"]),
        ('"resourcesListChanged":true', ["resources/list_changed"]),
        ('"resourceSubscriptions":["note://b"]', []),
        ('"resourceSubscriptions":["note://b","note://a"]', ["resources/updated"]),
    ],
)
async def test_nothing_comes_that_was_not_asked_for(wanted: str, expected: list[str]) -> None:
    async with caller(demo(), STATELESS) as peer:
        stream = listen(peer, wanted, 1)
        await stream.message()
        await peer.web.server.tools_changed()
        await peer.web.server.prompts_changed()
        await peer.web.server.resources_changed()
        await peer.web.server.resource_updated("note://a")
        await peer.web.quiet()

        assert expected == [name for name, _ in told(stream)]


@spec("2026-07-28", "basic/patterns/subscriptions#acknowledgment")
async def test_what_the_server_does_not_support_is_left_out() -> None:
    async with caller(demo(capabilities={"tools": {"listChanged": True}, "prompts": {}}), STATELESS) as peer:
        first = await listen(peer, ALL, 1).message()

    assert {"toolsListChanged": True} == first["params"]["notifications"]


@spec("2026-07-28", "basic/patterns/subscriptions#multiple-concurrent-subscriptions")
@on_both_loops
async def test_several_streams_each_get_their_own() -> None:
    async with caller(demo(), STATELESS) as peer:
        streams = [
            listen(peer, '"toolsListChanged":true', 1),
            listen(peer, '"toolsListChanged":true,"promptsListChanged":true', "1"),
            listen(peer, '"resourceSubscriptions":["note://a"]', 2),
        ]
        for each in streams:
            await each.message()
        await peer.web.server.tools_changed()
        await peer.web.server.prompts_changed()
        await peer.web.server.resource_updated("note://a")
        await peer.web.quiet()

        assert [
            [("tools/list_changed", 1)],
            [("tools/list_changed", "1"), ("prompts/list_changed", "1")],
            [("resources/updated", 2)],
        ] == [told(each) for each in streams]


@spec("2026-07-28", "basic/patterns/subscriptions#multiple-concurrent-subscriptions")
async def test_streams_of_several_clients_may_have_the_same_id() -> None:
    async with caller(demo(), STATELESS) as peer:
        streams = [listen(peer, '"toolsListChanged":true', 1) for _ in range(3)]
        for each in streams:
            await each.message()
        streams[0].leave()
        await streams[0].returned()
        await peer.web.server.tools_changed()
        await peer.web.quiet()

        assert [[], [("tools/list_changed", 1)], [("tools/list_changed", 1)]] == [told(each) for each in streams]


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation")
@on_both_loops
async def test_a_stream_ends_when_its_client_leaves_it() -> None:
    async with caller(demo(), STATELESS) as peer:
        stream = listen(peer, '"toolsListChanged":true', 1)
        await stream.message()
        stream.leave()
        await stream.returned()
        await peer.web.server.tools_changed()
        await peer.web.quiet()

    assert [] == stream.pending


@spec("2026-07-28", "basic/patterns/subscriptions#cancellation", "eeb00a43")
@spec("2026-07-28", "basic/patterns/subscriptions#graceful-closure", "8a3e54e0")
@SERVED
@on_both_loops
async def test_a_server_that_ends_answers_its_streams(revisions: list[str] | None) -> None:
    async with site(demo(revisions=revisions)) as web:
        peer = Caller(web, STATELESS)
        streams = [listen(peer, '"toolsListChanged":true', each) for each in ("a", 2)]
        for each in streams:
            await each.message()
        await web.shutdown()
        said = [(await each.messages())[-1] for each in streams]

    assert ["a", 2] == [each["id"] for each in said]
    assert ["complete", "complete"] == [each["result"]["resultType"] for each in said]
    assert ["a", 2] == [each["result"]["_meta"][ID] for each in said]


@spec("2026-07-28", "basic/patterns/cancellation", "6f10bbf7")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
async def test_a_stream_that_the_server_ends_is_cancelled_too_and_its_response_comes_last() -> None:
    """It MUST send a cancellation when it tears a stream down, and the final response ends the stream."""
    async with caller(demo(), STATELESS) as peer:
        stream = listen(peer, '"toolsListChanged":true', "s")
        await stream.message()
        await peer.web.shutdown()
        *before, last = await stream.messages()

    assert [("notifications/cancelled", "s")] == [(each["method"], each["params"]["requestId"]) for each in before]
    assert "s" == last["id"]


@spec("2026-07-28", "basic/patterns/cancellation", "6f10bbf7")
async def test_a_stream_that_the_asgi_server_cancels_ends_in_order() -> None:
    """Like uvicorn at its shutdown, which notifies the application only when all responses have ended."""
    async with caller(demo(), STATELESS) as peer:
        app, tasks = peer.web.app, list[asyncio.Future[None]]()

        async def run(*arguments: Any) -> None:
            tasks.append(asyncio.ensure_future(app(*arguments)))
            with suppress(asyncio.CancelledError):
                await tasks[-1]

        peer.web.app = run
        stream = listen(peer, '"toolsListChanged":true', "s")
        await stream.message()
        await peer.web.quiet()
        tasks[0].cancel()
        cancelled, result = await stream.messages()

    assert ("notifications/cancelled", "s") == (cancelled["method"], cancelled["params"]["requestId"])
    assert "s" == result["id"]
    assert tasks[0].cancelled()


@spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    async with caller(demo(), STATELESS, limits=HttpLimits(keep_alive_seconds=0.02)) as peer:
        stream = listen(peer, '"toolsListChanged":true', 1)
        await stream.message()
        await stream.commented(3)
        await peer.web.server.tools_changed()

        assert "notifications/tools/list_changed" == (await stream.message())["method"]


@spec("2026-07-28", "basic/patterns/subscriptions#notification-filter")
@pytest.mark.parametrize(
    "params",
    [
        "",
        '"notifications":null',
        '"notifications":[]',
        '"notifications":{"toolsListChanged":"yes"}',
        '"notifications":{"resourceSubscriptions":"note://a"}',
    ],
)
async def test_a_filter_that_is_none_opens_no_stream(params: str) -> None:
    async with caller(demo(), STATELESS) as peer:
        answer = await peer.send("subscriptions/listen", params).complete()

    assert -32602 == answer.json["error"]["code"]
    assert not answer.is_stream


@spec("2026-07-28", "basic/index#statelessness")
async def test_a_stream_is_its_own_connection_s_and_nobody_else_s() -> None:
    """Whoever posts a cancellation of its id ends nothing."""
    async with caller(demo(), STATELESS) as peer:
        stream = listen(peer, '"toolsListChanged":true', 1)
        await stream.message()
        lines = [*Caller(peer.web, STATELESS).lines(b"{}"), ("MCP-Protocol-Version", STATELESS)]
        await peer.post(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', lines
        ).complete()
        await peer.web.server.tools_changed()

        assert "notifications/tools/list_changed" == (await stream.message())["method"]


@spec("2026-07-28", "basic/patterns/subscriptions#receiving-notifications")
async def test_changes_come_in_the_order_in_which_they_were_told() -> None:
    async with caller(demo(), STATELESS) as peer:
        stream = listen(peer, '"resourceSubscriptions":["note://0","note://1","note://2"]', 1)
        await stream.message()
        for index in (2, 0, 1, 1, 0):
            await peer.web.server.resource_updated(f"note://{index}")
            await peer.web.quiet()
        found = [json.loads(each.data)["params"]["uri"][-1] for each in stream.pending if each.data]

    assert ["2", "0", "1", "1", "0"] == found
