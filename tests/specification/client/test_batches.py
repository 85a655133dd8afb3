"""Batches, of which there are some in one revision."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import HANDSHAKES, spec
from tests.specification.client.scripted_server import on_both_loops, opened

pytestmark = pytest.mark.anyio

SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 10}


def sample(*_: Any) -> models.CreateMessageResult:
    return models.CreateMessageResult(role="assistant", content=models.TextContent(text="Because."), model="m")


def batch(*parts: tuple[Any, str, Any]) -> list[Any]:
    def member(identity: Any, method: str, params: Any) -> dict[str, Any]:
        found = {"jsonrpc": "2.0", "method": method}
        return {**found, **({} if identity is None else {"id": identity}), **({"params": params} if params else {})}

    return [member(*each) for each in parts]


@spec("2025-03-26", "basic/index#batching", "c3f107eb")
@on_both_loops
async def test_a_batch_of_requests_is_answered_as_a_batch_when_all_are_answered() -> None:
    gate = anyio.Event()

    async def slow(params: Any, context: Any) -> Any:
        await gate.wait()
        return sample(params, context)

    async with opened("2025-03-26", roots=[], sample=slow) as own:
        own.wire.say(
            batch(
                (1, "sampling/createMessage", SAMPLE),
                (2, "roots/list", None),
                (None, "notifications/message", {"level": "info", "data": 1}),
                (3, "ping", None),
                (4, "no/such", None),
            )
        )
        assert [] == await own.wire.rest()

        gate.set()
        said = await own.wire.hear()

    assert {1: "result", 2: "result", 3: "result", 4: "error"} == {
        each["id"]: "error" if "error" in each else "result" for each in said
    }


@spec("2025-03-26", "basic/index#batching")
async def test_what_can_be_answered_at_once_waits_for_the_rest_of_its_batch() -> None:
    async with opened("2025-03-26") as own:
        own.wire.say(batch((1, "ping", None), (2, "no/such", None), (3, "ping", None)))
        (said,) = await own.wire.rest()

    assert [1, 2, 3] == [each["id"] for each in said]


@spec("2025-03-26", "basic/index#batching")
async def test_what_cannot_be_read_of_a_batch_is_refused_in_its_answer() -> None:
    async with opened("2025-03-26", roots=[]) as own:
        own.wire.say(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "ping"},
                {"jsonrpc": "2.0", "id": 2, "method": "roots/list", "params": []},
            ]
        )
        (said,) = await own.wire.rest()

    assert [(1, None), (2, -32600)] == [(each["id"], each.get("error", {}).get("code")) for each in said]


@spec("2025-03-26", "basic/index#batching")
async def test_a_batch_of_notifications_is_not_answered() -> None:
    async with opened("2025-03-26") as own:
        own.wire.say(batch((None, "notifications/message", {"level": "info", "data": 1})))

        assert [] == await own.wire.rest()


@spec("2025-03-26", "basic/index#batching")
async def test_what_is_cancelled_of_a_batch_is_left_out_of_its_answer() -> None:
    async def wait(*_: Any) -> Any:
        await anyio.sleep_forever()

    async with opened("2025-03-26", roots=[], sample=wait) as own:
        own.wire.say(batch((1, "sampling/createMessage", SAMPLE), (2, "roots/list", None)))
        assert [] == await own.wire.rest()

        own.wire.tell("notifications/cancelled", requestId=1)
        said = await own.wire.hear()

    assert [{"jsonrpc": "2.0", "id": 2, "result": {"roots": []}}] == said


@spec("2025-03-26", "basic/index#batching")
@on_both_loops
async def test_answers_that_come_as_a_batch_are_taken() -> None:
    async with opened("2025-03-26") as own:
        first, one = await own.asked(own.client.call_tool("x"))
        second, two = await own.asked(own.client.ping())
        own.wire.say(
            [
                {"jsonrpc": "2.0", "id": two["id"], "result": {}},
                {"jsonrpc": "2.0", "id": one["id"], "result": {"content": []}},
            ]
        )
        await second.outcome()

        assert [] == (await first.outcome()).content


@spec("2025-06-18", "changelog#major-changes")
@pytest.mark.parametrize("revision", [each for each in HANDSHAKES if each != "2025-03-26"])
async def test_a_batch_of_any_other_revision_is_ignored(revision: str) -> None:
    async with opened(revision) as own:
        own.wire.say(batch((1, "ping", None)))

        assert [] == await own.wire.rest()
        assert {} == (await own.wire.ask(2, "ping"))["result"]


@spec("2025-03-26", "basic/index#batching")
@on_both_loops
async def test_the_results_in_the_response_to_a_batch_are_bounded() -> None:
    def long(*_: Any) -> models.CreateMessageResult:
        return models.CreateMessageResult(role="assistant", content=models.TextContent(text="x" * 400), model="m")

    async with opened("2025-03-26", sample=long, limits=ClientLimits(max_batch_bytes=1200)) as own:
        own.wire.say(batch(*((each, "sampling/createMessage", SAMPLE) for each in range(1, 5)), (5, "ping", None)))
        said = {each["id"]: each for each in await own.wire.hear()}

    refused = [each["error"] for each in said.values() if "error" in each]
    assert {1, 2, 3, 4, 5} == set(said)
    assert [-32603, -32603] == [each["code"] for each in refused]
    assert all("(max_batch_bytes)" in each["message"] for each in refused)
