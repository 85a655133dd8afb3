"""Results that a client keeps for as long as the server allows."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import ClientLimits, RequestRefused, UsageError, connect
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import META, complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object"}


def page(name: str, ttl_ms: float = 60_000, **more: Any) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": SCHEMA}]
    return {"resultType": "complete", "tools": tools, "ttlMs": ttl_ms, "cacheScope": "private", **more}


def contents(text: str) -> dict[str, Any]:
    found = [{"uri": "a:b", "text": text}]
    return {"resultType": "complete", "contents": found, "ttlMs": 60_000, "cacheScope": "public"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that stands still: a list with the time."""
    now = [1000.0]
    monkeypatch.setattr("mcpgen.runtime.client.result_cache._clock", lambda: now[0])
    return now


@spec("2026-07-28", "server/utilities/caching#time-to-live-ttl-field", "5251fa4b")
@spec("2026-07-28", "server/utilities/caching#freshness-calculation", "ac75e4a1")
@spec("2026-07-28", "schema#listpromptsresult", "72e400cb")
@without_handshakes
@on_both_loops
async def test_a_result_is_fresh_until_its_time_is_over(revision: str, clock: list[float]) -> None:
    async with opened(revision, cache_results=True) as own:
        await own.answered(own.client.list_tools(), page("one", 2000))
        clock[0] += 1.999

        assert "one" == (await own.client.list_tools()).tools[0].name
        assert [] == await own.wire.rest()

        clock[0] += 0.001

        assert "two" == (await own.answered(own.client.list_tools(), page("two", 0))).tools[0].name
        assert "three" == (await own.answered(own.client.list_tools(), page("three", -5))).tools[0].name
        assert "four" == (await own.answered(own.client.list_tools(), page("four"))).tools[0].name


@spec("2026-07-28", "server/utilities/caching#interaction-with-pagination", "3c9a141a")
@without_handshakes
async def test_each_page_is_fresh_by_itself_and_requested_again_with_its_cursor(
    revision: str, clock: list[float]
) -> None:
    async with opened(revision, cache_results=True) as own:
        await own.answered(own.client.list_tools(), page("one", 9000, nextCursor="c"))
        await own.answered(own.client.list_tools("c"), page("two", 1000))
        clock[0] += 2
        await own.client.list_tools()
        errand, asked = await own.asked(own.client.list_tools("c"))
        own.wire.result(asked, page("three"))
        await errand.outcome()

    assert "c" == asked["params"]["cursor"]


@spec("2026-07-28", "server/utilities/caching#interaction-with-pagination", "f24699a9")
@without_handshakes
async def test_a_cursor_that_is_refused_costs_all_pages(revision: str) -> None:
    async with opened(revision, cache_results=True) as own:
        await own.answered(own.client.list_tools(), page("one", nextCursor="c"))
        errand, asked = await own.asked(own.client.list_tools("c"))
        own.wire.error(asked, -32602, "no such cursor")
        with pytest.raises(RequestRefused):
            await errand.outcome()

        assert "two" == (await own.answered(own.client.list_tools(), page("two"))).tools[0].name


@spec("2026-07-28", "server/utilities/caching#interaction-with-notifications")
@without_handshakes
@pytest.mark.parametrize(
    "case",
    [
        ({"tools": True}, "notifications/tools/list_changed", {}, "list_tools", page("one"), page("two")),
        (
            {"uris": ["a:b"]},
            "notifications/resources/updated",
            {"uri": "a:b"},
            "read_resource",
            contents("one"),
            contents("two"),
        ),
    ],
)
async def test_a_change_that_is_reported_makes_results_stale(case: tuple[Any, ...], revision: str) -> None:
    wanted, method, params, call, first, second = case
    arguments = ["a:b"] if call == "read_resource" else []
    async with opened(revision, cache_results=True) as own:
        errand, asked = await own.asked(own.client.listen(**wanted).__aenter__())
        meta = {"_meta": {META + "subscriptionId": asked["id"]}}
        granted = asked["params"]["notifications"]
        own.wire.tell("notifications/subscriptions/acknowledged", **meta, notifications=granted)
        await errand.outcome()
        read = getattr(own.client, call)
        before = await own.answered(read(*arguments), first)
        assert before == await read(*arguments)

        own.wire.tell(method, **meta, **params)
        errand, asked = await own.asked(read(*arguments))
        own.wire.tell(method, **meta, **params)  # so that the result may be old when it comes
        own.wire.result(asked, second)

        assert before != await errand.outcome()
        assert before == await own.answered(read(*arguments), first)


@spec("2026-07-28", "server/utilities/caching#cacheable-results")
@spec("2026-07-28", "server/utilities/caching#cache-key", "129aa0bc")
@spec("2026-07-28", "server/utilities/caching#cache-key", "a4e185a1")
@without_handshakes
async def test_a_result_is_kept_for_its_own_params_only_and_not_after_input(revision: str) -> None:
    def accept(*_: Any) -> models.ElicitResult:
        return models.ElicitResult(action="accept")

    async with opened(revision, cache_results=True, elicit_url=accept) as own:
        await own.answered(own.client.read_resource("a:b"), contents("one"))
        await own.answered(own.client.read_resource("a:c"), contents("two"))
        await own.answered(own.client.read_resource("a:b", meta={"com.example/x": 1}), contents("three"))
        assert "one" == (await own.client.read_resource("a:b")).contents[0].text

        reading, asked = await own.asked(own.client.read_resource("a:d"))
        form = {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://example.com"}}
        own.wire.result(asked, {"resultType": "input_required", "inputRequests": {"k": form}})
        own.wire.result(await own.wire.hear("resources/read"), contents("four"))
        await reading.outcome()

        assert "five" == (await own.answered(own.client.read_resource("a:d"), contents("five"))).contents[0].text


@spec("2026-07-28", "server/utilities/caching#cache-scope-field", "ae5ddf4e")
@spec("2026-07-28", "schema#listpromptsresult", "16d987b1")
@without_handshakes
async def test_no_result_is_shared_between_clients_and_none_is_kept_by_default(revision: str) -> None:
    for options in ({"cache_results": True}, {"cache_results": True}, {}, {}):
        async with opened(revision, **options) as own:
            assert "a" == (await own.answered(own.client.read_resource("a:b"), contents("a"))).contents[0].text
            if not options:
                assert "b" == (await own.answered(own.client.read_resource("a:b"), contents("b"))).contents[0].text


@spec("2026-07-28", "server/utilities/caching#cache-scope-field")
@without_handshakes
async def test_the_cache_is_bounded_and_the_oldest_results_go_first(revision: str) -> None:
    async with opened(revision, cache_results=True, limits=ClientLimits(max_cached_bytes=2000)) as own:
        for uri in ("a:1", "a:2", "a:3"):
            await own.answered(own.client.read_resource(uri), contents("x"))
        await own.answered(own.client.read_resource("a:4"), contents("x" * 3000))
        await own.client.read_resource("a:3")
        assert [] == await own.wire.rest()

        for uri in ("a:4", "a:1"):
            await own.answered(own.client.read_resource(uri), contents("x"))


@spec("2025-11-25", "server/utilities/pagination#response-format")
@with_handshakes
async def test_results_of_sessions_have_no_lifetime(revision: str) -> None:
    async with opened(revision, cache_results=True) as own:
        for name in ("one", "two"):
            listed = complete(revision, tools=[{"name": name, "inputSchema": SCHEMA}])

            assert name == (await own.answered(own.client.list_tools(), listed)).tools[0].name


@spec("2026-07-28", "server/utilities/caching#cache-scope-field")
async def test_the_option_is_true_or_false() -> None:
    with pytest.raises(UsageError, match="`cache_results` must be True or False"):
        connect("server", cache_results="yes")  # type: ignore[arg-type]
