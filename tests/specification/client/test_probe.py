"""Finding out the era of a server: the question that is put first, and everything that a server may make of it."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import ClientLimits, NoCommonRevision, RequestRefused, RequestTimedOut, TransportClosed
from tests.specification.citation import HANDSHAKES, LABELS, STATELESS, spec
from tests.specification.client.scripted_server import META, discovered, initialized, on_both_loops, scripted, stage

pytestmark = pytest.mark.anyio

NEWEST = STATELESS[-1]
SOON = ClientLimits(probe_seconds=0.02)
# Of JSON-RPC, of servers before there was a rule, of MCP before, of nobody.
CODES = [-32601, -32602, -32600, -32603, -32700, -32000, -32001, -32002, -32019, -32023, -32042, -32099, -1, 0, 1, 400]


# --- answers of today


@spec("2026-07-28", "server/discover#when-to-call", "29c90859")
@spec("2026-07-28", "basic/transports/stdio#backward-compatibility", "7e9402c3")
@spec("2026-07-28", "server/discover#request")
@spec("2026-07-28", "basic/index#meta")
@on_both_loops
async def test_a_client_of_both_eras_first_asks_which_one_it_is() -> None:
    async with scripted(name="tests", version="7") as (_, wire):
        (asked,) = await wire.rest()

    assert {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/discover",
        "params": {
            "_meta": {
                META + "protocolVersion": NEWEST,
                META + "clientInfo": {"name": "tests", "version": "7"},
                META + "clientCapabilities": {},
            }
        },
    } == asked


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@spec("2026-07-28", "server/discover#when-to-call")
@pytest.mark.parametrize("handshake", HANDSHAKES)
async def test_a_client_of_one_version_of_each_era_asks_too(handshake: str) -> None:
    async with scripted(revisions=[handshake, NEWEST]) as (connecting, wire):
        wire.error(await wire.hear("server/discover"), -32601)
        greeting = await wire.greeted(handshake)

        assert handshake == (await connecting.outcome()).revision
        assert handshake == greeting["params"]["protocolVersion"]


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility", "87fb4d22")
@on_both_loops
async def test_a_client_of_today_alone_asks_all_the_same() -> None:
    async with scripted(revisions=[NEWEST]) as (connecting, wire):
        await wire.discovered()

        assert NEWEST == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/transports/stdio#sending-messages", "b2f3502d")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "d5bcfc3f")
@pytest.mark.parametrize("method", ["ping", "roots/list", "server/discover", "no/such"])
@on_both_loops
async def test_a_client_of_today_alone_does_not_answer_requests_that_come_before_the_response(method: str) -> None:
    async with scripted(revisions=[NEWEST]) as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.say({"jsonrpc": "2.0", "id": 1, "method": method}, [{"jsonrpc": "2.0", "id": 2, "method": method}])

        assert [] == await wire.rest()

        wire.result(asked, discovered())
        await connecting.outcome()


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@spec("2026-07-28", "server/discover#discoverresult")
@on_both_loops
async def test_a_server_that_says_what_it_has_is_spoken_with_in_the_newest_of_it() -> None:
    async with scripted() as (connecting, wire):
        await wire.discovered(supportedVersions=[*LABELS, "2099-01-01"], instructions="Be kind.")
        client = await connecting.outcome()

        assert (NEWEST, "stateless") == (client.revision, client.era)
        assert ("played", "1", "Be kind.") == (client.server.name, client.server.version, client.instructions)
        assert [] == await wire.rest()


@spec("2026-07-28", "server/discover#discoverresult")
@pytest.mark.parametrize("meta", [None, {}, {"com.example/x": 1}], ids=str)
async def test_a_server_need_not_say_who_it_is(meta: Any) -> None:
    async with scripted() as (connecting, wire):
        asked = await wire.hear("server/discover")
        result = {**discovered(), "_meta": meta}
        wire.result(asked, {key: each for key, each in result.items() if each is not None})
        client = await connecting.outcome()

        assert client.server is None


@spec("2026-07-28", "server/discover#discoverresult")
@spec("2026-07-28", "basic/versioning#protocol-version-negotiation", "0466717b")
async def test_a_server_that_has_nothing_in_common_is_left() -> None:
    async with scripted() as (connecting, wire):
        await wire.discovered(supportedVersions=["2099-01-01", "draft"])
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()
        await wire.left()

        assert [] == await wire.rest()

    assert (tuple(LABELS), ("2099-01-01", "draft")) == (failure.value.offered, failure.value.supported)


@spec("2026-07-28", "server/discover#discoverresult")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_server_that_has_only_a_handshake_in_common_is_greeted_with_what_it_has(revision: str) -> None:
    async with scripted() as (connecting, wire):
        await wire.discovered(supportedVersions=[revision])
        greeting = await wire.greeted(revision)

        assert revision == greeting["params"]["protocolVersion"]
        assert revision == (await connecting.outcome()).revision


# --- refusals of today


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@pytest.mark.parametrize("revisions", [LABELS, STATELESS], ids=["both eras", "today"])
@on_both_loops
async def test_a_server_that_lists_what_it_refuses_is_asked_once_more_and_not_for_ever(revisions: list[str]) -> None:
    async with scripted(revisions=revisions) as (connecting, wire):
        for _ in range(2):
            asked = await wire.hear("server/discover")
            wire.error(asked, -32022, "not that one", data={"supported": [NEWEST], "requested": NEWEST})
        with pytest.raises(NoCommonRevision, match="not that one"):
            await connecting.outcome()
        await wire.left()

        assert [] == await wire.rest()


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@pytest.mark.parametrize("revisions", [LABELS, STATELESS], ids=["both eras", "today"])
@on_both_loops
async def test_a_server_that_lists_what_it_refused_may_accept_it_then(revisions: list[str]) -> None:
    async with scripted(revisions=revisions) as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.error(asked, -32022, "not that one", data={"supported": [NEWEST], "requested": NEWEST})
        await wire.discovered(supportedVersions=[NEWEST])

        assert NEWEST == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation", "0466717b")
async def test_a_server_that_lists_what_it_refuses_is_greeted_with_what_else_it_lists() -> None:
    async with scripted() as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.error(asked, -32022, data={"supported": [HANDSHAKES[0], NEWEST], "requested": NEWEST})
        wire.recorder.may_cross = True  # a judge cannot know which of two contradictions to believe
        await wire.greeted(HANDSHAKES[0])

        assert HANDSHAKES[0] == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@on_both_loops
async def test_a_server_that_lists_nothing_in_common_is_not_greeted() -> None:
    async with scripted() as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.error(asked, -32022, data={"supported": ["2099-01-01"], "requested": NEWEST})
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()
        await wire.left()

        assert [] == await wire.rest()

    assert ("2099-01-01",) == failure.value.supported


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_server_that_lists_a_handshake_is_greeted_with_it(revision: str) -> None:
    async with scripted() as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.error(asked, -32022, data={"supported": [revision], "requested": NEWEST})
        greeting = await wire.greeted(revision)

        assert revision == greeting["params"]["protocolVersion"]
        assert revision == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
async def test_a_client_of_today_alone_does_not_greet_whoever_lists_a_handshake() -> None:
    async with scripted(revisions=STATELESS) as (connecting, wire):
        asked = await wire.hear("server/discover")
        wire.error(asked, -32022, data={"supported": HANDSHAKES, "requested": NEWEST})
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()

        assert [] == await wire.rest()

    assert tuple(HANDSHAKES) == failure.value.supported


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_another_refusal_of_today_is_not_followed_by_a_handshake(code: int) -> None:
    data = {"requiredCapabilities": {"sampling": {}}}
    async with scripted() as (connecting, wire):
        wire.error(await wire.hear("server/discover"), code, "no", data=data)
        with pytest.raises(RequestRefused) as failure:
            await connecting.outcome()

        assert [] == await wire.rest()

    assert ("server/discover", code, data) == (failure.value.method, failure.value.code, failure.value.data)


# --- servers of before


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility", "9d01c6d5")
@pytest.mark.parametrize("code", CODES)
async def test_a_server_that_answers_with_any_other_error_is_greeted(code: int) -> None:
    async with scripted() as (connecting, wire):
        wire.error(await wire.hear("server/discover"), code, data={"supported": ["2099-01-01"]})
        greeting = await wire.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == greeting["params"]["protocolVersion"]
        assert HANDSHAKES[-1] == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility", "9d01c6d5")
@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"result":5}',
        b'{"jsonrpc":"2.0","id":1,"error":5}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"no","message":"no"}}',
        b'{"id":1,"error":{"code":-32601,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":"2026-07-28","capabilities":{}}}',
    ],
    ids=bytes.decode,
)
async def test_a_server_that_answers_with_what_nobody_says_today_is_greeted(answer: bytes) -> None:
    async with scripted() as (connecting, wire):  # with time enough: the answer itself decides
        await wire.hear("server/discover")
        wire.say(answer)
        await wire.greeted(HANDSHAKES[0])

        assert HANDSHAKES[0] == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility", "9d01c6d5")
@pytest.mark.parametrize(
    "frame",
    [None, b"Listening.", b"{", b'{"jsonrpc":"2.0","id":1}', b"[]", b'"x"', b'{"jsonrpc":"2.0","id":99,"result":{}}'],
)
@on_both_loops
async def test_a_server_that_is_silent_or_talks_of_something_else_is_greeted_soon(frame: bytes | None) -> None:
    async with scripted(limits=SOON) as (connecting, wire):
        await wire.hear("server/discover")
        if frame is not None:
            wire.say(frame)
        await wire.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@on_both_loops
async def test_a_server_that_exits_when_it_is_asked_is_started_anew_and_greeted_at_once() -> None:
    async with stage() as own:
        connecting = own.connect()
        first = await own.wire()
        await first.hear("server/discover")
        first.hang_up()
        second = await own.wire()
        await second.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == (await connecting.outcome()).revision
        assert first.is_left
        assert 2 == len(own.wires)

        await connecting.value.close()


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@on_both_loops
async def test_a_server_that_is_never_heard_of_again_is_replaced_by_a_fresh_one_that_is_greeted() -> None:
    async with stage() as own:
        connecting = own.connect(limits=SOON)
        first = await own.wire()
        await first.hear("server/discover")
        await first.hear("initialize")
        second = await own.wire()
        assert first.is_left

        await second.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == (await connecting.outcome()).revision
        assert 2 == len(own.wires)

        await connecting.value.close()


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
async def test_a_server_that_exits_when_it_is_greeted_after_the_question_is_started_anew() -> None:
    async with stage() as own:
        connecting = own.connect()
        first = await own.wire()
        first.error(await first.hear("server/discover"), -32601)
        await first.hear("initialize")
        first.hang_up()
        second = await own.wire()
        await second.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == (await connecting.outcome()).revision

        await connecting.value.close()


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
async def test_a_server_that_holds_the_question_against_the_greeting_is_started_anew() -> None:
    """It takes the first message for an attempt to initialize."""
    async with stage() as own:
        connecting = own.connect()
        first = await own.wire()
        first.error(await first.hear("server/discover"), -32600)
        first.error(await first.hear("initialize"), -32600, "the first message was no initialize")
        second = await own.wire()
        await second.greeted(HANDSHAKES[-1])

        assert HANDSHAKES[-1] == (await connecting.outcome()).revision

        await connecting.value.close()


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@on_both_loops
async def test_a_server_that_is_gone_each_time_is_started_twice_and_no_more() -> None:
    async with stage() as own:
        connecting = own.connect()
        for _ in range(2):
            wire = await own.wire()
            await wire.hear()
            wire.hang_up()
        with pytest.raises(TransportClosed):
            await connecting.outcome()

        assert 2 == len(own.wires)


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
async def test_a_server_that_refuses_everything_is_left_with_its_last_word() -> None:
    async with stage() as own:
        connecting = own.connect()
        first = await own.wire()
        first.error(await first.hear("server/discover"), -32601)
        first.error(await first.hear("initialize"), -32601)
        second = await own.wire()
        second.error(await second.hear("initialize"), -32603, "no licence")
        with pytest.raises(RequestRefused, match="no licence"):
            await connecting.outcome()

        assert 2 == len(own.wires)


@spec("2025-11-25", "basic/lifecycle#timeouts")
@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@on_both_loops
async def test_a_server_that_never_says_anything_is_given_up_in_the_end() -> None:
    async with stage() as own:
        connecting = own.connect(limits=ClientLimits(probe_seconds=0.01, connect_seconds=3))
        with pytest.raises(RequestTimedOut):
            await connecting.outcome()

        said = [[each["method"] for each in await wire.rest()] for wire in own.wires]
        assert [["server/discover", "initialize"], ["initialize"]] == said
        assert all(wire.is_left for wire in own.wires)


@spec("2026-07-28", "basic/versioning#compatibility-matrix", "72a12ea7")
@pytest.mark.parametrize("code", CODES)
async def test_a_client_of_today_alone_has_nothing_in_common_with_a_server_of_before(code: int) -> None:
    async with scripted(revisions=STATELESS) as (connecting, wire):
        wire.error(await wire.hear("server/discover"), code, "what is that?")
        with pytest.raises(NoCommonRevision, match="what is that"):
            await connecting.outcome()

        assert [] == await wire.rest()


# --- answers that come late


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@on_both_loops
async def test_an_answer_to_the_question_that_comes_after_the_greeting_counts_less_than_that_to_the_greeting() -> None:
    async with scripted(limits=ClientLimits(probe_seconds=0.05)) as (connecting, wire):
        question = await wire.hear("server/discover")
        greeting = await wire.hear("initialize")
        wire.result(question, discovered())
        assert [] == await wire.rest()

        wire.result(greeting, initialized(HANDSHAKES[1]))

        assert HANDSHAKES[1] == (await connecting.outcome()).revision
        assert ["notifications/initialized"] == [each["method"] for each in await wire.rest()]


@spec("2026-07-28", "basic/transports/stdio#backward-compatibility")
@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@on_both_loops
async def test_a_slow_server_of_today_that_refuses_the_greeting_is_taken_at_its_late_word() -> None:
    async with scripted(limits=ClientLimits(probe_seconds=0.05)) as (connecting, wire):
        question = await wire.hear("server/discover")
        greeting = await wire.hear("initialize")
        wire.result(question, discovered())
        wire.error(greeting, -32601)
        client = await connecting.outcome()

        assert (NEWEST, "stateless") == (client.revision, client.era)
        assert [] == await wire.rest()


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_slow_server_of_today_that_names_its_versions_when_greeted_is_asked_again() -> None:
    async with scripted(limits=ClientLimits(probe_seconds=0.05)) as (connecting, wire):
        await wire.hear("server/discover")
        greeting = await wire.hear("initialize")
        wire.error(greeting, -32022, data={"supported": [NEWEST], "requested": HANDSHAKES[-1]})
        await wire.discovered()

        assert NEWEST == (await connecting.outcome()).revision


@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
async def test_a_late_error_that_answers_the_question_is_nobodys_answer() -> None:
    async with scripted(limits=ClientLimits(probe_seconds=0.05)) as (connecting, wire):
        question = await wire.hear("server/discover")
        greeting = await wire.hear("initialize")
        wire.error(question, -32601)
        wire.result(greeting, initialized(HANDSHAKES[-1]))
        client = await connecting.outcome()

        assert HANDSHAKES[-1] == client.revision


@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
async def test_the_question_is_never_cancelled() -> None:
    """Nobody knows what a server of before makes of a notification that comes before the handshake."""
    async with scripted(limits=SOON) as (connecting, wire):
        await wire.hear("server/discover")
        await wire.greeted(HANDSHAKES[-1])
        await connecting.outcome()

        assert [] == await wire.rest()
