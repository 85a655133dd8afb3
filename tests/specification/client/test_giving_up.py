"""Requests that take too long, or that nobody wants any more."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestTimedOut, TransportClosed, UsageError
from mcpgen.runtime.protocol.newest import models
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import HANDSHAKES, STATELESS, everywhere, spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

SOON = 0.05

of_each_era = pytest.mark.parametrize("revision", [HANDSHAKES[-1], STATELESS[-1]])


def cancelled(own: Any, asked: Any) -> bool:
    """Whether the last that the client said is that it gives up *asked*."""
    said = json.loads(own.wire.raw[-1])
    return ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])


# --- too long


@spec("2024-11-05", "basic/lifecycle#error-handling", "407d7786")
@spec("2025-11-25", "basic/lifecycle#error-handling", "dc5b3033")
@spec("2026-07-28", "server/tools#security-considerations", "92db96f6")
@spec("2025-03-26", "basic/lifecycle#timeouts")
@spec("2025-11-25", "basic/lifecycle#timeouts", "6f9efd84", "c7800ead")
@spec("2026-07-28", "basic/patterns/cancellation#timeouts", "3b66a21b", "e8b6a019")
@everywhere
@on_both_loops
async def test_what_takes_longer_than_the_client_waits_is_cancelled(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(call_seconds=SOON)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        with pytest.raises(RequestTimedOut, match="tools/call") as failure:
            await errand.outcome()

        assert ("tools/call", SOON) == (failure.value.method, failure.value.seconds)
        assert isinstance(failure.value, TimeoutError)
        assert cancelled(own, asked)


@spec("2025-11-25", "basic/lifecycle#timeouts", "a34c6a6e")
@spec("2026-07-28", "basic/patterns/cancellation#timeouts", "12c4d589")
@everywhere
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.call_tool("x", timeout_seconds=SOON),
        lambda client: client.read_resource("a:b", timeout_seconds=SOON),
        lambda client: client.get_prompt("p", timeout_seconds=SOON),
        lambda client: client.list_tools(timeout_seconds=SOON),
        lambda client: client.complete(models.PromptReference(name="p"), "a", "", timeout_seconds=SOON),
    ],
    ids=["tool", "resource", "prompt", "list", "complete"],
)
@pytest.mark.slow
async def test_how_long_is_waited_can_be_said_with_each_request(call: Any, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(call(own.client))
        with pytest.raises(RequestTimedOut):
            await errand.outcome()

        assert cancelled(own, asked)


@spec("2025-11-25", "basic/lifecycle#timeouts")
@everywhere
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
async def test_no_time_at_all_is_refused(seconds: float, revision: str) -> None:
    async with opened(revision) as own:
        with pytest.raises(UsageError):
            await own.client.call_tool("x", timeout_seconds=seconds)

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/lifecycle#timeouts")
@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@of_each_era
@on_both_loops
@pytest.mark.slow
async def test_progress_extends_the_time(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x", timeout_seconds=1, on_progress=lambda *_: None))
        token = asked["params"]["_meta"]["progressToken"]
        begun = time.monotonic()
        number = 0
        while time.monotonic() - begun < 1.5:
            number += 1
            own.wire.tell("notifications/progress", progressToken=token, progress=number)
            await anyio.sleep(0.02)
        own.wire.result(asked, complete(revision, content=[]))

        assert [] == (await errand.outcome()).content


@spec("2025-11-25", "basic/lifecycle#timeouts")
@spec("2026-07-28", "basic/patterns/cancellation#timeouts", "3a2ff20b")
@of_each_era
@on_both_loops
async def test_progress_extends_the_time_to_a_maximum(revision: str) -> None:
    async with opened(revision, limits=ClientLimits(call_seconds=0.1, max_call_seconds=0.2)) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *_: None))
        token, number = asked["params"]["_meta"]["progressToken"], 0
        begun = time.monotonic()
        while not errand.is_over:
            number += 1
            own.wire.tell("notifications/progress", progressToken=token, progress=number)
            await anyio.sleep(0.01)
            assert time.monotonic() - begun < PATIENCE_SECONDS
        with pytest.raises(RequestTimedOut):
            await errand.outcome()

        assert cancelled(own, asked)


@spec("2025-11-25", "basic/lifecycle#timeouts")
@with_handshakes
@on_both_loops
@pytest.mark.slow
async def test_the_clock_stands_still_while_the_user_is_asked(revision: str) -> None:
    gate = anyio.Event()

    async def think(_: Any) -> list[models.Root]:
        await gate.wait()
        return []

    async with opened(revision, roots=think, limits=ClientLimits(call_seconds=0.1)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await anyio.sleep(0.3)
        assert not errand.is_over

        gate.set()
        assert {"roots": []} == (await own.wire.hear())["result"]
        own.wire.result(asked, {"content": []})

        assert [] == (await errand.outcome()).content


@spec("2026-07-28", "basic/patterns/cancellation#timeouts")
@without_handshakes
@on_both_loops
@pytest.mark.slow
async def test_the_time_that_a_user_takes_for_a_demand_is_nobodys_fault(revision: str) -> None:
    async def think(_: Any) -> list[models.Root]:
        await anyio.sleep(0.3)
        return []

    async with opened(revision, roots=think, limits=ClientLimits(call_seconds=0.1)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}})
        own.wire.result(await own.wire.hear("tools/call"), complete(revision, content=[]))

        assert [] == (await errand.outcome()).content


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@everywhere
async def test_one_request_that_takes_too_long_costs_the_others_nothing(revision: str) -> None:
    async with opened(revision) as own:
        other, kept = await own.asked(own.client.call_tool("y"))
        slow, asked = await own.asked(own.client.call_tool("x", timeout_seconds=SOON))
        with pytest.raises(RequestTimedOut):
            await slow.outcome()
        own.wire.result(asked, complete(revision, content=[]))
        own.wire.result(kept, complete(revision, content=[]))

        assert [] == (await other.outcome()).content


# --- not wanted any more


@spec("2026-07-28", "basic/patterns/cancellation", "5be7a024")
@spec("2024-11-05", "basic/messages#notifications", "59d06bf6")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "46be44ab")
@spec("2026-07-28", "basic/index#notifications", "74a12ff4")
@spec("2025-11-25", "schema#cancellednotificationparams", "ef8a9f1a", "62ab3002")
@spec("2026-07-28", "schema#cancellednotificationparams", "92b20ec6")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "d47a1583")
@spec("2024-11-05", "basic/utilities/cancellation#cancellation-flow")
@spec("2025-11-25", "basic/utilities/cancellation#cancellation-flow")
@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation", "c2c9c15f")
@spec("2026-07-28", "basic/transports/stdio#cancellation", "32e2e896")
@everywhere
@on_both_loops
async def test_a_request_whose_task_is_cancelled_is_cancelled(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        await errand.cancel()
        (said,) = await own.wire.rest()

    assert ("notifications/cancelled", asked["id"]) == (said["method"], said["params"]["requestId"])
    assert "id" not in said


@spec("2025-11-25", "basic/utilities/cancellation#timing-considerations", "6738a282")
@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "3725535e")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "512159ae")
@everywhere
@on_both_loops
async def test_an_answer_to_what_was_cancelled_is_ignored(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        await errand.cancel()
        await own.wire.hear("notifications/cancelled")
        own.wire.result(asked, complete(revision, content=[]))
        own.wire.error(asked, -32800, "cancelled")

        assert [] == await own.wire.rest()
        assert [] == (await own.answered(own.client.call_tool("y"), complete(revision, content=[]))).content

    assert [] == caplog.records


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "bc1a3f4c")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements", "ebfdf332")
@spec("2024-11-05", "basic/utilities/cancellation#timing-considerations")
@spec("2025-11-25", "basic/utilities/cancellation#timing-considerations")
@spec("2026-07-28", "basic/patterns/cancellation#timing-considerations", "27c83eaf")
@everywhere
@on_both_loops
async def test_what_is_answered_already_is_not_cancelled(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, complete(revision, content=[]))
        await errand.cancel()

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/lifecycle#shutdown")
@spec("2026-07-28", "basic/transports/stdio#unexpected-termination")
@everywhere
@on_both_loops
async def test_when_the_server_is_gone_whoever_waits_is_told_and_nothing_more_is_sent(revision: str) -> None:
    async with opened(revision) as own:
        errands = [(await own.asked(own.client.call_tool(name)))[0] for name in "ab"]
        own.wire.hang_up()
        for each in errands:
            with pytest.raises(TransportClosed):
                await each.outcome()
        for again in (own.client.call_tool("x"), own.client.ping(), own.client.request_json("tools/list")):
            with pytest.raises(TransportClosed):
                await again

        assert [] == await own.wire.rest()


@spec("2025-11-25", "basic/lifecycle#shutdown")
@spec("2026-07-28", "basic/transports/stdio#shutdown")
@everywhere
@on_both_loops
async def test_closing_fails_whoever_waits_and_says_nothing(revision: str) -> None:
    async with opened(revision) as own:
        errand, _ = await own.asked(own.client.call_tool("x"))
        await own.client.close()
        with pytest.raises(TransportClosed):
            await errand.outcome()

        assert own.wire.is_left
        assert [] == await own.wire.rest()

        await own.client.close()
        with pytest.raises(TransportClosed):
            await own.client.call_tool("x")


@spec("2025-11-25", "basic/lifecycle#shutdown")
@with_handshakes
@on_both_loops
async def test_closing_gives_up_what_the_server_asks(revision: str) -> None:
    is_asked, is_cancelled = anyio.Event(), anyio.Event()

    async def wait(_: Any) -> Any:
        is_asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            is_cancelled.set()

    async with opened(revision, roots=wait) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        with anyio.fail_after(PATIENCE_SECONDS):
            await is_asked.wait()
            await own.client.close()

        assert is_cancelled.is_set()
        assert [] == await own.wire.rest()
