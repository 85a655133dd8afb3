"""What was learnt of a server's era: it saves the next client the question, and is forgotten once it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpgen import ClientLimits, McpgenError
from tests.specification.citation import HANDSHAKES, STATELESS, spec
from tests.specification.client.scripted_server import discovered, initialized, on_both_loops, stage

if TYPE_CHECKING:
    from tests.specification.client.scripted_server import Stage

pytestmark = pytest.mark.anyio

NEWEST, BEFORE = STATELESS[-1], HANDSHAKES[-1]
SOON = ClientLimits(probe_seconds=0.02, connect_seconds=0.2)


async def meet_old(own: Stage, *, is_asked: bool) -> None:
    """Let a client meet a server of before, and close it."""
    connecting = own.connect()
    wire = await own.wire()
    if is_asked:
        wire.error(await wire.hear("server/discover"), -32601)
    await wire.greeted(BEFORE)
    await (await connecting.outcome()).close()


async def meet_new(own: Stage) -> None:
    """Let a client meet a server of today, and close it."""
    connecting = own.connect()
    wire = await own.wire()
    await wire.discovered()
    await (await connecting.outcome()).close()


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions", "d882b8ce")
@on_both_loops
async def test_a_server_that_is_known_to_shake_hands_is_greeted_at_once() -> None:
    async with stage(identity=object()) as own:
        await meet_old(own, is_asked=True)
        await meet_old(own, is_asked=False)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_without_an_identity_is_asked_each_time() -> None:
    async with stage() as own:
        await meet_old(own, is_asked=True)
        await meet_old(own, is_asked=True)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_what_is_known_of_one_server_says_nothing_of_another() -> None:
    async with stage(identity=object()) as own, stage(identity=object()) as other:
        await meet_old(own, is_asked=True)
        await meet_old(other, is_asked=True)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@on_both_loops
async def test_a_server_of_today_that_was_one_of_before_is_started_anew_and_asked() -> None:
    async with stage(identity=object()) as own:
        await meet_old(own, is_asked=True)

        connecting = own.connect()
        wire = await own.wire()
        wire.error(await wire.hear("initialize"), -32601)
        wire = await own.wire()
        await wire.discovered()
        client = await connecting.outcome()
        assert NEWEST == client.revision

        await client.close()
        await meet_new(own)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_of_today_that_says_so_when_greeted_is_asked_without_another_start() -> None:
    async with stage(identity=object()) as own:
        await meet_old(own, is_asked=True)

        connecting = own.connect()
        wire = await own.wire()
        wire.error(await wire.hear("initialize"), -32022, data={"supported": [NEWEST], "requested": BEFORE})
        await wire.discovered()
        client = await connecting.outcome()

        assert NEWEST == client.revision
        assert 2 == len(own.wires)

        await client.close()


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@on_both_loops
async def test_a_server_of_before_that_was_one_of_today_is_started_anew_and_greeted() -> None:
    async with stage(identity=object()) as own:
        await meet_new(own)

        connecting = own.connect()
        wire = await own.wire()
        wire.error(await wire.hear("server/discover"), -32601)
        wire = await own.wire()
        await wire.greeted(BEFORE)
        client = await connecting.outcome()
        assert BEFORE == client.revision

        await client.close()
        await meet_old(own, is_asked=False)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_server_of_before_that_exits_when_asked_and_was_one_of_today_is_started_anew() -> None:
    async with stage(identity=object()) as own:
        await meet_new(own)

        connecting = own.connect()
        wire = await own.wire()
        await wire.hear("server/discover")
        wire.hang_up()
        wire = await own.wire()
        await wire.greeted(BEFORE)
        client = await connecting.outcome()

        assert BEFORE == client.revision

        await client.close()


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@pytest.mark.parametrize("is_old", [False, True])
async def test_what_was_known_of_a_server_is_forgotten_when_it_does_not_answer(*, is_old: bool) -> None:
    async with stage(identity=object()) as own:
        await (meet_old(own, is_asked=True) if is_old else meet_new(own))

        with pytest.raises(McpgenError):
            await own.connect(limits=SOON).outcome()
        while len(own.wires) > own.met:
            await own.wire()

        await meet_old(own, is_asked=True)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_client_of_one_era_does_not_rely_on_what_is_known() -> None:
    async with stage(identity=object()) as own:
        await meet_new(own)

        connecting = own.connect(revisions=HANDSHAKES)
        wire = await own.wire()
        await wire.greeted(BEFORE)
        await (await connecting.outcome()).close()


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@on_both_loops
async def test_a_server_that_answers_the_probe_late_gets_server_discover_first_at_the_next_connection() -> None:
    """It speaks both eras. Only its first start was slow, so the cache must not keep it at 2025-11-25."""
    async with stage(identity=object()) as own:
        connecting = own.connect(limits=ClientLimits(probe_seconds=0.05))
        wire = await own.wire()
        probe = await wire.hear("server/discover")
        initialize = await wire.hear("initialize")
        wire.result(probe, discovered())
        wire.result(initialize, initialized(BEFORE))
        client = await connecting.outcome()
        assert BEFORE == client.revision
        await client.close()

        await meet_new(own)


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@pytest.mark.parametrize("late", [{}, discovered(supportedVersions=["2099-01-01"])], ids=["invalid", "unknown"])
async def test_a_late_answer_that_lists_no_revision_of_the_client_says_nothing_about_the_era(late: object) -> None:
    async with stage(identity=object()) as own:
        connecting = own.connect(limits=ClientLimits(probe_seconds=0.05))
        wire = await own.wire()
        probe = await wire.hear("server/discover")
        initialize = await wire.hear("initialize")
        wire.result(probe, late)
        wire.result(initialize, initialized(BEFORE))
        await (await connecting.outcome()).close()

        await meet_old(own, is_asked=False)
