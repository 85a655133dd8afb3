"""A change that goes to thousands of connections lets other work run in between."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Server
from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
from mcpgen.runtime.server.change_delivery import MAX_OF_WORKERS, MAX_PER_TURN, ChangeDelivery
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller
from mcpgen.runtime.transports.event_loops import running_loop
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.engine import Engine

MANY = 4 * MAX_PER_TURN

pytestmark = pytest.mark.anyio

in_order = pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio runs the tasks of a turn in a random order


class Sent:
    """What many connections have been sent: the URIs in their order, and how many connections each turn has served.

    Attributes:
        uris: One for each connection that was sent it.
        of_turn: How many connections were notified since `count_turns` looked.
        most: The largest of these numbers.
    """

    def __init__(self) -> None:
        self.uris: list[str | None] = []
        self.of_turn = 0
        self.most = 0

    async def count_turns(self) -> None:
        """Look in each turn of the event loop."""
        while True:
            self.most = max(self.most, self.of_turn)
            self.of_turn = 0
            await anyio.lowlevel.checkpoint()


class Output:
    """A connection that notes what it is sent."""

    def __init__(self, sent: Sent) -> None:
        self.sent = sent

    def notify_change(self, method: str, uri: str | None) -> None:
        if uri == "bad":
            raise ValueError(method)
        self.sent.uris.append(uri)
        self.sent.of_turn += 1

    def notify_extension(self, _notification: ExtensionNotification) -> None:
        self.notify_change("changed", None)


def change(uri: str | None) -> tuple[Callable[[Any], None], str | None]:
    """Return the first arguments of `deliver` for a change of *uri*."""
    return (lambda connection: connection.notify_change("changed", uri)), uri


def connections(sent: Sent, number: int) -> dict[Any, Any]:
    return {Output(sent): running_loop() for _ in range(number)}


@in_order
async def test_no_turn_serves_more_than_its_part() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    async with anyio.create_task_group() as group:
        group.start_soon(sent.count_turns)
        await anyio.lowlevel.checkpoint()
        async with anyio.create_task_group() as callers:
            for number in range(3):
                callers.start_soon(delivery.deliver, *change(f"x:{number}"))
        group.cancel_scope.cancel()
    assert len(sent.uris) == 3 * MANY
    assert 0 < sent.most <= MAX_PER_TURN


async def test_equal_changes_that_wait_are_sent_once() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    async with anyio.create_task_group() as callers:
        callers.start_soon(delivery.deliver, *change("first"))
        for _ in range(40):
            callers.start_soon(delivery.deliver, *change("x:1"))
    assert Counter(sent.uris) == {"first": MANY, "x:1": MANY}


async def test_a_change_that_has_begun_is_sent_again() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    async with anyio.create_task_group() as callers:
        callers.start_soon(delivery.deliver, *change(None))
        while not sent.uris:
            await anyio.lowlevel.checkpoint()
        await delivery.deliver(*change(None))
    assert len(sent.uris) == 2 * MANY


async def test_owners_take_turns() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))

    async def made(owner: str, uri: str) -> None:
        CALLER.set(Caller(owner, FairTurns()))
        await delivery.deliver(*change(uri))

    async with anyio.create_task_group() as callers:
        for number in range(20):
            callers.start_soon(made, "greedy", f"greedy:{number}")
        callers.start_soon(made, "honest", "honest")
    assert len(sent.uris) == 21 * MANY
    last = len(sent.uris) - 1 - sent.uris[::-1].index("honest")
    assert last < 3 * MANY


@in_order
async def test_a_cancelled_caller_does_not_keep_the_change_from_others() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    async with anyio.create_task_group() as callers:
        callers.start_soon(delivery.deliver, *change(None))
        while not sent.uris:
            await anyio.lowlevel.checkpoint()
        callers.cancel_scope.cancel()
    assert len(sent.uris) < MANY
    for _ in range(2 * MANY // MAX_PER_TURN):
        await anyio.lowlevel.checkpoint()
    assert len(sent.uris) == MANY


async def test_a_failure_reaches_its_caller_alone() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))

    async def bad() -> None:
        with pytest.raises(ValueError, match="changed"):
            await delivery.deliver(*change("bad"))

    async with anyio.create_task_group() as callers:
        callers.start_soon(bad)
        callers.start_soon(delivery.deliver, *change("good"))
    assert sent.uris == ["good"] * MANY


async def test_a_connection_that_has_ended_is_left_out() -> None:
    sent = Sent()
    table = connections(sent, MANY)
    delivery = ChangeDelivery(table)
    async with anyio.create_task_group() as callers:
        callers.start_soon(delivery.deliver, *change(None))
        while not sent.uris:
            await anyio.lowlevel.checkpoint()
        del table[list(table)[-1]]
    assert len(sent.uris) == MANY - 1


@in_order
async def test_changes_of_another_worker_are_sent_in_parts_and_equal_ones_once() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    async with anyio.create_task_group() as group:
        group.start_soon(sent.count_turns)
        await anyio.lowlevel.checkpoint()
        for uri in ("a", "b", "a", "b"):
            delivery.deliver_soon(*change(uri), "client", is_of_worker=True)
        assert not sent.uris
        await delivery.deliver(*change("last"))
        while len(sent.uris) < 3 * MANY:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert Counter(sent.uris) == {"a": MANY, "b": MANY, "last": MANY}
    assert 0 < sent.most <= MAX_PER_TURN


async def test_the_client_with_the_most_changes_of_other_workers_loses_its_oldest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "mcpgen.cluster")
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, 32))
    delivery.deliver_soon(*change("honest"), "honest", is_of_worker=True)
    for number in range(2 * MAX_OF_WORKERS):
        delivery.deliver_soon(*change(f"x:{number}"), "greedy", is_of_worker=True)
    await delivery.deliver(*change("own"))
    while len(sent.uris) < 32 * (MAX_OF_WORKERS + 1):
        await anyio.lowlevel.checkpoint()
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    last = f"x:{2 * MAX_OF_WORKERS - 1}"
    assert len(sent.uris) == 32 * (MAX_OF_WORKERS + 1)
    assert {"honest", "own", last} <= set(sent.uris)
    assert "x:0" not in sent.uris
    reason = "another worker reported it, and too many such changes wait"
    assert f"the change 'x:0' is not sent to clients: {reason}" in caplog.messages


async def test_other_workers_are_told_once_of_equal_changes_that_wait() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, MANY))
    told: list[str] = []
    async with anyio.create_task_group() as callers:
        for _ in range(40):
            callers.start_soon(delivery.deliver, *change("x:1"), lambda: told.append("x:1"))
    assert told == ["x:1"]


def is_told_by_a_worker(engine: Engine) -> None:
    engine.deliver_change("changed", "x", "client")


def is_about_functions(engine: Engine) -> None:
    engine.functions_changed(("notifications/tools/list_changed",))


def is_of_an_extension(engine: Engine) -> None:
    engine.send_extension(ExtensionNotification(extension="x", encode=lambda _: b"", to=None), "x", "client")


@in_order
@pytest.mark.parametrize("make", [is_told_by_a_worker, is_about_functions, is_of_an_extension])
async def test_a_server_sends_each_change_in_parts(make: Callable[[Engine], None]) -> None:
    sent, engine = Sent(), Server("s", version="1")._engine
    engine.connections.update(connections(sent, MANY))
    async with anyio.create_task_group() as group:
        group.start_soon(sent.count_turns)
        await anyio.lowlevel.checkpoint()
        make(engine)
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(sent.uris) < MANY:
                await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert 0 < sent.most <= MAX_PER_TURN


@in_order
async def test_a_turn_sends_few_large_changes() -> None:
    sent = Sent()
    delivery = ChangeDelivery(connections(sent, 100))
    large = 100_000

    def send(output: Any) -> int:
        output.notify_change("m", "a")
        return large

    async with anyio.create_task_group() as group:
        group.start_soon(sent.count_turns)
        delivery.deliver_soon(send, "a")
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(sent.uris) < 100:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert sent.most == 3  # 256 KiB, and the rest of one
