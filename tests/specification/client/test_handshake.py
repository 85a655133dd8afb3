"""The handshake: what is offered, what is agreed on, and what is said before that."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from mcpgen import ClientLimits, InvalidPayload, NoCommonRevision, RequestRefused, RequestTimedOut
from tests.specification.citation import HANDSHAKES, STATELESS, spec, with_handshakes
from tests.specification.client.scripted_server import initialized, on_both_loops, opened, scripted

pytestmark = pytest.mark.anyio

PAIRS = [list(each) for each in combinations(HANDSHAKES, 2)]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@spec("2025-11-25", "basic/lifecycle#version-negotiation", "7e2d9b63", "de30caac")
@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization", "5dcfc85e", "83bdd6e7", "4bfe9e80", "b2c87217", "0fb08d6c")
@with_handshakes
@on_both_loops
async def test_a_client_that_shakes_hands_says_so_first_and_nothing_else(revision: str) -> None:
    async with scripted(revisions=[revision], name="tests", version="7") as (_, wire):
        (asked,) = await wire.rest()

    assert {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "7"},
        },
    } == asked


@spec("2024-11-05", "basic/lifecycle#version-negotiation", "de30caac")
@spec("2025-11-25", "basic/lifecycle#version-negotiation", "de30caac")
@pytest.mark.parametrize("revisions", PAIRS, ids=" ".join)
async def test_the_newest_of_what_the_client_speaks_is_offered(revisions: list[str]) -> None:
    async with scripted(revisions=revisions) as (_, wire):
        asked = await wire.hear("initialize")

    assert revisions[1] == asked["params"]["protocolVersion"]


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@with_handshakes
async def test_what_the_server_answers_is_spoken_if_the_client_speaks_it(revision: str) -> None:
    async with scripted(revisions=HANDSHAKES) as (connecting, wire):
        await wire.greeted(revision)
        client = await connecting.outcome()

        assert (revision, "handshake") == (client.revision, client.era)


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("revisions", PAIRS, ids=" ".join)
async def test_an_older_one_of_two_is_taken(revisions: list[str]) -> None:
    async with scripted(revisions=revisions) as (connecting, wire):
        await wire.greeted(revisions[0])

        assert revisions[0] == (await connecting.outcome()).revision


@spec("2024-11-05", "basic/lifecycle#error-handling", "686fae35")
@spec("2025-03-26", "basic/lifecycle#error-handling", "686fae35")
@spec("2025-06-18", "basic/lifecycle#error-handling", "686fae35")
@spec("2025-11-25", "basic/lifecycle#error-handling", "686fae35")
@spec("2025-03-26", "basic/lifecycle#version-negotiation", "e870e577")
@spec("2025-06-18", "basic/lifecycle#version-negotiation", "e870e577")
@spec("2025-06-18", "schema#initializeresult", "b67bfaf1")
@spec("2025-11-25", "schema#initializeresult", "b67bfaf1")
@spec("2024-11-05", "basic/lifecycle#version-negotiation", "e870e577")
@spec("2025-11-25", "basic/lifecycle#version-negotiation", "e870e577")
@pytest.mark.parametrize("answered", ["1999-01-01", "2099-01-01", "draft", "", *STATELESS])
@on_both_loops
async def test_the_client_disconnects_from_a_server_of_a_version_that_it_does_not_speak(answered: str) -> None:
    async with scripted(revisions=HANDSHAKES) as (connecting, wire):
        wire.result(await wire.hear("initialize"), initialized(answered))
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()
        await wire.left()

        assert [] == await wire.rest()

    assert (tuple(HANDSHAKES), (answered,)) == (failure.value.offered, failure.value.supported)


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("revisions", PAIRS, ids=" ".join)
async def test_a_version_that_the_client_was_told_not_to_speak_is_not_agreed_on(revisions: list[str]) -> None:
    own, other = revisions
    async with scripted(revisions=[own]) as (connecting, wire):
        wire.result(await wire.hear("initialize"), initialized(other))
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()
        await wire.left()

    assert ((own,), (other,)) == (failure.value.offered, failure.value.supported)


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization", "f071756d")
@with_handshakes
async def test_that_it_is_initialized_is_said_after_the_result_and_before_all_else(revision: str) -> None:
    async with scripted(revisions=[revision]) as (connecting, wire):
        asked = await wire.hear("initialize")
        assert [] == await wire.rest()

        wire.result(asked, initialized(revision))
        client = await connecting.outcome()
        with pytest.raises(RequestTimedOut):
            await client.list_tools(timeout_seconds=0.01)

        assert INITIALIZED == await wire.hear()
        assert "tools/list" == (await wire.hear())["method"]


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
async def test_what_the_server_says_of_itself_is_kept(revision: str) -> None:
    can = {"tools": {"listChanged": True}, "experimental": {"x": {"y": 1}}}
    async with opened(revision, can=can, more={"instructions": "Be kind."}) as own:
        client = own.client

        assert ("played", "1") == (client.server.name, client.server.version)
        assert client.capabilities.tools.list_changed
        assert {"x": {"y": 1}} == client.capabilities.experimental
        assert "Be kind." == client.instructions


@spec("2024-11-05", "basic/lifecycle#error-handling")
@spec("2025-11-25", "basic/lifecycle#error-handling", "5549ed72")
@with_handshakes
async def test_a_server_that_refuses_the_handshake_is_left_and_its_error_raised(revision: str) -> None:
    async with scripted(revisions=[revision]) as (connecting, wire):
        wire.error(await wire.hear("initialize"), -32603, "not today", data={"why": "closed"})
        with pytest.raises(RequestRefused) as failure:
            await connecting.outcome()
        await wire.left()

    error = failure.value
    assert ("initialize", -32603, "not today", {"why": "closed"}) == (
        error.method,
        error.code,
        error.message,
        error.data,
    )


@spec("2024-11-05", "basic/lifecycle#error-handling")
@spec("2025-11-25", "basic/lifecycle#error-handling")
@pytest.mark.parametrize("code", [-32602, -32022])
async def test_a_server_that_lists_other_versions_with_its_error_has_none_in_common(code: int) -> None:
    async with scripted(revisions=HANDSHAKES[:1]) as (connecting, wire):
        data = {"supported": ["2099-01-01"], "requested": HANDSHAKES[0]}
        wire.error(await wire.hear("initialize"), code, "Unsupported protocol version", data=data)
        with pytest.raises(NoCommonRevision) as failure:
            await connecting.outcome()

    assert (tuple(HANDSHAKES[:1]), ("2099-01-01",)) == (failure.value.offered, failure.value.supported)


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization")
@pytest.mark.parametrize(
    "broken",
    [
        {"protocolVersion": 20251125},
        {"protocolVersion": None},
        {"capabilities": None},
        {"capabilities": []},
        {"capabilities": {"tools": True}},
        {"serverInfo": None},
        {"serverInfo": {"name": "played"}},
        {"instructions": 5},
    ],
    ids=str,
)
async def test_a_handshake_that_the_revision_does_not_allow_is_no_agreement(broken: dict[str, Any]) -> None:
    async with scripted(revisions=HANDSHAKES) as (connecting, wire):
        result = {**initialized(HANDSHAKES[-1]), **broken}
        wire.result(await wire.hear("initialize"), {key: each for key, each in result.items() if each is not None})
        with pytest.raises(InvalidPayload, match="initialize"):
            await connecting.outcome()
        await wire.left()

        assert [] == await wire.rest()


@spec("2024-11-05", "basic/lifecycle#error-handling", "b97c22e8")
@spec("2025-11-25", "schema#cancellednotification", "1031ad40")
@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "851edeaa")
@spec("2025-11-25", "basic/lifecycle#timeouts")
@with_handshakes
@on_both_loops
async def test_a_handshake_that_takes_too_long_is_given_up_but_not_cancelled(revision: str) -> None:
    async with scripted(revisions=[revision], limits=ClientLimits(connect_seconds=0.05)) as (connecting, wire):
        with pytest.raises(RequestTimedOut):
            await connecting.outcome()
        await wire.left()

        assert ["initialize"] == [each["method"] for each in await wire.rest()]


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "851edeaa")
@with_handshakes
@on_both_loops
async def test_a_handshake_whose_task_is_cancelled_is_not_cancelled_itself(revision: str) -> None:
    async with scripted(revisions=[revision]) as (connecting, wire):
        await wire.hear("initialize")
        await connecting.cancel()

        assert wire.is_left
        assert [] == await wire.rest()


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/utilities/ping#behavior-requirements", "efd69d27")
@with_handshakes
async def test_a_ping_is_answered_during_the_handshake(revision: str) -> None:
    async with scripted(revisions=[revision]) as (connecting, wire):
        asked = await wire.hear("initialize")
        assert {"jsonrpc": "2.0", "id": "early", "result": {}} == await wire.ask("early", "ping")

        wire.result(asked, initialized(revision))

        assert revision == (await connecting.outcome()).revision


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
async def test_what_a_server_may_not_ask_during_the_handshake_is_refused(revision: str) -> None:
    async with scripted(revisions=[revision], roots=[]) as (_, wire):
        await wire.hear("initialize")
        said = await wire.ask(1, "roots/list")

    assert (1, -32601) == (said["id"], said["error"]["code"])


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization")
@with_handshakes
@on_both_loops
async def test_what_comes_with_the_result_of_the_handshake_is_heard(revision: str) -> None:
    entries: list[Any] = []
    async with scripted(revisions=[revision], log=lambda params, _: entries.append(params.data)) as (connecting, wire):
        asked = await wire.hear("initialize")
        wire.say(
            {"jsonrpc": "2.0", "id": asked["id"], "result": initialized(revision)},
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "up"}},
            {"jsonrpc": "2.0", "id": "s", "method": "ping"},
        )
        await connecting.outcome()
        said = await wire.rest()

    assert ["up"] == entries
    assert {"jsonrpc": "2.0", "id": "s", "result": {}} in said
    assert INITIALIZED in said


@spec("2025-03-26", "basic/index#batching", "c3f107eb")
async def test_a_batch_that_comes_with_the_result_of_the_handshake_is_heard() -> None:
    entries: list[Any] = []
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "up"}}
    ping = {"jsonrpc": "2.0", "id": "s", "method": "ping"}
    async with scripted(revisions=["2025-03-26"], log=lambda params, _: entries.append(params.data)) as (
        connecting,
        wire,
    ):
        asked = await wire.hear("initialize")
        wire.say({"jsonrpc": "2.0", "id": asked["id"], "result": initialized("2025-03-26")}, [ping, log])
        await connecting.outcome()
        said = await wire.rest()

    assert ["up"] == entries
    assert [{"jsonrpc": "2.0", "id": "s", "result": {}}] in said


@spec("2025-03-26", "basic/lifecycle#initialization", "5374125b")
async def test_the_handshake_is_part_of_no_batch_and_is_not_answered_by_one() -> None:
    async with scripted(revisions=["2025-03-26"], limits=ClientLimits(connect_seconds=0.05)) as (connecting, wire):
        asked = await wire.hear("initialize")
        wire.say([{"jsonrpc": "2.0", "id": asked["id"], "result": initialized("2025-03-26")}])
        with pytest.raises(RequestTimedOut):
            await connecting.outcome()
