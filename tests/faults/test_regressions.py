"""What attackers found: one client, or one message, that costs others or the server more than its share."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import Context, Limits, Server
from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.server import ServerHandlers
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
from tests.faults import faulty_handlers
from tests.faults.event_loop_turns import PATIENCE_SECONDS, unjudged
from tests.faults.faulty_handlers import FORM, Guest
from tests.faults.server_processes import Process
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.specification.server.revision_client import Client

pytestmark = pytest.mark.anyio

OLD = "2025-11-25"
CAN_ASK = '{"elicitation":{}}'


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


def cancelled(identity: int | str) -> bytes:
    text = json.dumps(identity)
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{text}}}}}'.encode()


def retry(tool: str, result: Any, name: str, arguments: str = "{}") -> str:
    """Return the params that bring *name* as the answer to what *result* demands."""
    (key,) = result["inputRequests"]
    answers = json.dumps({key: {"action": "accept", "content": {"name": name}}})
    state = result["requestState"]
    return f'"name":"{tool}","arguments":{arguments},"requestState":"{state}","inputResponses":{answers}'


def listen(peer: Client, identity: int | str, *uris: str) -> bytes:
    watched = json.dumps({"resourceSubscriptions": uris})
    return peer.request(identity, "subscriptions/listen", f'"notifications":{watched}')


# --- what one message may cost


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"deep":@}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"x":@}}}',
    ],
    ids=["cancelled", "initialize"],
)
async def test_a_frame_nested_just_below_what_can_be_read_costs_no_other_frame(frame: bytes) -> None:
    """How deep that is depends on the stack that it is read on, hence the many depths."""
    server = Guest().server
    lost = []
    for depth in range(850, 1000):
        async with unjudged(server, NEWEST) as peer:
            deep = frame.replace(b"@", b"[" * depth + b"]" * depth)
            said = await peer.wire.say(deep, peer.request(2, "tools/call", '"name":"echo"'))
            if [2] != [each["id"] for each in said if "result" in each and each["id"] == 2]:
                lost.append(depth)

    assert [] == lost


async def test_an_unknown_method_is_not_repeated_whole(revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        (said,) = await peer.ask("x" * 1_000_000)

        assert -32601 == said["error"]["code"]
        assert len(peer.wire.raw[-1]) < 10_000


# --- what is kept for clients that come back


async def test_retries_that_were_cancelled_are_not_kept() -> None:
    guest = Guest()
    async with unjudged(guest.server, NEWEST, CAN_ASK) as peer:
        params = retry("slow", (await peer.call("slow"))[-1]["result"], "Ada")
        peer.wire.send(peer.request(2, "tools/call", params))
        for _ in range(1000):
            peer.wire.send(peer.request(3, "tools/call", params), cancelled(3))
        (kept,) = guest.server._engine.parked._rounds.values()

        assert [] == kept.duplicates


async def test_the_same_retry_is_not_kept_without_bound() -> None:
    guest = Guest()
    async with unjudged(guest.server, NEWEST, CAN_ASK) as peer:
        params = retry("slow", (await peer.call("slow"))[-1]["result"], "Ada")
        said = await peer.wire.say(*(peer.request(each, "tools/call", params) for each in range(2, 1002)))

        assert {-32603} == {each["error"]["code"] for each in said}
        assert len(said) > 800
        guest.gate.set()
        assert 1000 - len(said) == len(await peer.wire.rest())


@pytest.mark.parametrize("may_replay", [False, True])
@pytest.mark.parametrize("length", [1000, 500_000])
async def test_what_clients_answered_is_held_within_max_waiting_bytes(length: int, *, may_replay: bool) -> None:
    """It is held for handlers that may be run anew with it."""
    guest = Guest(limits=Limits(max_waiting_bytes=10 * length))
    guest.server._engine.handlers._handlers.may_replay = lambda *_: may_replay
    waiting = guest.server._engine.parked
    async with unjudged(guest.server, NEWEST, CAN_ASK) as peer:
        (said,) = await peer.call("ask_often", '{"times":20}')
        while "requestState" in said.get("result", {}):
            params = retry("ask_often", said["result"], "a" * length, '{"times":20}')
            (said,) = await peer.ask("tools/call", params)
            exchanges = {id(each.exchange): each.exchange for each in waiting._rounds.values()}
            answers = [raw for each in exchanges.values() for raw in each.earlier_responses.values()]

            assert sum(len(memoryview(each)) for each in answers) <= 10 * length


@pytest.mark.slow
async def test_handlers_that_wait_are_given_up_though_the_connection_that_first_waited_has_gone() -> None:
    guest = Guest(limits=Limits(waiting_seconds=0.5))
    given_up = anyio.Event()

    @guest.server.tool
    async def ask_on(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?", FORM)
        finally:
            given_up.set()
        return "answered"

    async with unjudged(guest.server, NEWEST, CAN_ASK) as second:
        async with unjudged(guest.server, NEWEST, CAN_ASK) as first:
            await first.call("ask")
            await second.call("ask_on")
        with anyio.fail_after(PATIENCE_SECONDS):
            await given_up.wait()

        assert 0 == len(guest.server._engine.parked)


# --- what runs at once


async def test_a_handler_that_ignores_its_cancellation_counts_as_in_flight(revision: str) -> None:
    server = Server("stubborn", version="1", limits=Limits(max_in_flight=10))
    gate = anyio.Event()
    started: list[int] = []

    @server.tool
    async def stubborn() -> str:
        started.append(len(started))
        while not gate.is_set():
            with (
                suppress(asyncio.CancelledError),
                anyio.CancelScope(shield=True),
            ):  # asyncio's way to cancel, and trio's
                await gate.wait()
        return "waited"

    async with unjudged(server, revision) as peer:
        for each in range(50):
            peer.wire.send(peer.request(each, "tools/call", '"name":"stubborn"'))
            await checkpoint()
            peer.wire.send(cancelled(each))
        assert 10 == len(started)
        gate.set()
        await peer.wire.rest()

        assert "waited" == (await peer.call("stubborn"))[-1]["result"]["content"][0]["text"]


async def test_params_beyond_max_in_flight_bytes_refuse_the_next_request(revision: str) -> None:
    guest = Guest(limits=Limits(max_in_flight_bytes=10_000))
    async with client(guest.server, revision) as peer:
        assert [] == await peer.call("wait", meta=f'"padding":"{"x" * 10_000}"')
        (refused,) = await peer.call("echo")
        assert (2, -32603) == (refused["id"], refused["error"]["code"])
        guest.gate.set()

        assert [1] == [each["id"] for each in await peer.wire.rest()]
        assert "result" in (await peer.call("echo"))[-1]


async def test_no_more_notifications_are_handled_at_once_than_may() -> None:
    gate = anyio.Event()
    heard: list[Any] = []

    class Rooted(ServerHandlers[Any]):
        def capabilities(self) -> models.ServerCapabilities:
            return models.ServerCapabilities()

        async def roots_list_changed(self, params: Any, context: Context) -> None:
            del context
            heard.append(params)
            await gate.wait()

    server = Server("rooted", version="1", handlers=Rooted(), limits=Limits(max_in_flight=10))
    changed = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
    async with unjudged(server, OLD) as peer:
        assert [] == await peer.wire.say(*[changed] * 100)
        assert 10 == len(heard)
        gate.set()
        await peer.wire.rest()
        await peer.wire.say(changed)

        assert 11 == len(heard)


# --- what is watched


class Counted(str):
    """A URI that counts how often one is compared with another."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)


async def test_a_stream_that_ends_is_not_compared_with_all_that_others_watch() -> None:
    unwatched: list[Any] = []

    class Watched(ServerHandlers[Any]):
        def capabilities(self) -> models.ServerCapabilities:
            return models.decode(b'{"resources":{"subscribe":true}}', models.ServerCapabilities)

        async def subscribe(self, params: models.SubscribeRequestParams, context: Context) -> models.EmptyResult:
            del params, context
            return models.EmptyResult()

        async def unsubscribe(self, params: models.UnsubscribeRequestParams, context: Context) -> models.EmptyResult:
            del context
            unwatched.append(params.uri)
            return models.EmptyResult()

    async with unjudged(Server("watched", version="1", handlers=Watched()), NEWEST) as peer:
        await peer.wire.say(listen(peer, "a", "u:a"), listen(peer, "b", "u:b"))
        streams = peer.wire.connection.session.subscriptions.streams
        for name, stream in streams.items():
            stream.filter = SubscriptionFilter(
                resource_subscriptions=[Counted(f"u:{name}-{each}") for each in range(500)]
            )
        Counted.compared = 0
        peer.wire.send(cancelled("a"))
        compared = Counted.compared
        await peer.wire.rest()

        assert compared < 500
        assert 500 == len(unwatched)


async def test_all_streams_together_watch_no_more_resources_than_may_be() -> None:
    guest = Guest(limits=Limits(max_subscriptions=10))
    async with unjudged(guest.server, NEWEST) as peer:
        said = []
        for each in range(5):
            said += await peer.wire.say(listen(peer, each, *(f"u:{each}-{number}" for number in range(4))))
        (refused, *_) = refusals = [each for each in said if "error" in each]

        assert [2, 3, 4] == [each["id"] for each in refusals]
        assert -32603 == refused["error"]["code"]
        assert 8 == peer.wire.connection.session.subscriptions.size


# --- what one client costs another


async def test_a_client_that_does_not_read_stops_no_handler_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    reads = anyio.Event()

    @guest.server.tool
    async def change(ctx: Context) -> str:
        await ctx.tools_changed()
        return "changed"

    async with unjudged(guest.server, OLD) as stalled, unjudged(guest.server, OLD) as other:
        monkeypatch.setattr(stalled.wire, "is_full", True)
        monkeypatch.setattr(stalled.wire, "drain", reads.wait)
        said = await other.call("change")
        assert [1] == [each["id"] for each in said if "id" in each]
        assert [] == await stalled.wire.rest()
        monkeypatch.setattr(stalled.wire, "is_full", False)
        reads.set()

        assert ["notifications/tools/list_changed"] == [each["method"] for each in await stalled.wire.rest()]


# --- processes

SERVE = f"""
import sys
sys.path.insert(0, {str(Path(faulty_handlers.__file__).parent)!r})
from faulty_handlers import Guest
from mcpgen.runtime.transports import stdio_server
stdio_server.run(Guest().server, backend=sys.argv[1])
"""

on_posix = pytest.mark.skipif(os.name != "posix", reason="descriptors are POSIX's")


@pytest.fixture(params=["asyncio", "trio"])
def process(request: pytest.FixtureRequest) -> Generator[Process]:
    started = Process(OLD, ("-c", SERVE, request.param))
    try:
        started.open()
        yield started
    finally:
        started.kill()


@on_posix
@pytest.mark.parametrize("what", ["KeyboardInterrupt", "Own", "GeneratorExit", "CancelledError", "SystemExit"])
@pytest.mark.slow
def test_a_handler_that_raises_what_is_no_exception_ends_nothing_else(what: str, process: Process) -> None:
    process.call(1, "throw", what=what)
    said = process.receive()
    process.call(2, "echo")

    assert 1 == said["id"]
    assert "hunter2" not in json.dumps(said)
    assert 2 == process.receive()["id"]


@on_posix
@pytest.mark.slow
def test_a_host_that_does_not_read_the_standard_error_does_not_stop_a_server(process: Process) -> None:
    for _ in range(3000):
        process.write(b'{"jsonrpc":"2.0","id":1}\n')
    process.call(2, "echo")
    for _ in range(3000):
        assert "error" in process.receive()

    assert 2 == process.receive()["id"]
