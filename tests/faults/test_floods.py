"""Floods, and what is left behind by them: nothing."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path

import pytest

from mcpgen import Context, Limits
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.server import input_required
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.exchange import Exchange, InputRound, OpenRequest, ServerRequest
from mcpgen.runtime.server.server_session import ServerSession
from mcpgen.runtime.server.subscription_state import SubscriptionStream
from mcpgen.runtime.transports import spawner
from tests.faults.event_loop_turns import unjudged, until
from tests.faults.faulty_handlers import Guest
from tests.specification.server.revision_client import client

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEPT = (
    ServerRequest,
    Connection,
    Context,
    Exchange,
    OpenRequest,
    InputRound,
    ServerSession,
    SubscriptionStream,
    spawner._Task,
)


@pytest.fixture(params=["2025-11-25", NEWEST])
def revision(request: pytest.FixtureRequest) -> str:
    """Return a revision with and one without sessions: what is left behind does not depend on more."""
    return str(request.param)


def kept() -> dict[str, int]:
    """Return how many objects of the engine are alive, by their type."""
    gc.collect()
    found: dict[str, int] = {}
    for each in gc.get_objects():
        if type(each) in KEPT:
            name = type(each).__name__
            found[name] = found.get(name, 0) + 1
    return found


def descriptors() -> int:
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


def cancelled(identity: int | str) -> bytes:
    text = json.dumps(identity)
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{text}}}}}'.encode()


async def test_ten_thousand_requests_leave_nothing_behind(revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        await peer.call("echo")
        before, tasks, files = kept(), len(asyncio.all_tasks()), descriptors()
        for first in range(1, 10_001, 100):
            peer.wire.send(
                *(
                    peer.request(each, "tools/call", '"name":"echo"' if each % 3 else '"name":"nothing"')
                    for each in range(first, first + 100)
                )
            )
            assert 100 == len(await peer.wire.rest())
            peer.wire.raw.clear()
            peer.wire._read = 0

        assert (before, tasks, files) == (kept(), len(asyncio.all_tasks()), descriptors())


async def test_ten_thousand_cancelled_requests_leave_nothing_behind(revision: str) -> None:
    guest = Guest()
    async with unjudged(guest.server, revision, '{"elicitation":{}}') as peer:
        await peer.call("wait")
        before, tasks = kept(), len(asyncio.all_tasks())
        for each in range(2, 10_002):
            tool = "ask" if each % 2 and peer.revision not in ("2024-11-05", "2025-03-26", NEWEST) else "wait"
            peer.wire.send(peer.request(each, "tools/call", f'"name":"{tool}"'), cancelled(each))
            if not each % 500:
                await peer.wire.rest()
        await until(lambda: len(asyncio.all_tasks()) == tasks)

        assert before == kept()
        assert 1 == guest.waiting


async def test_a_thousand_connections_leave_nothing_behind(revision: str) -> None:
    guest = Guest()

    async def converse() -> None:
        async with client(guest.server, revision, '{"elicitation":{}}') as peer:
            await peer.call("echo")
            await peer.call("wait")
            if peer.is_stateless:
                await peer.call("slow")

    await converse()
    before, tasks, files = kept(), len(asyncio.all_tasks()), descriptors()
    for _ in range(100 if revision != NEWEST else 1000):
        await converse()

    assert (tasks, files) == (len(asyncio.all_tasks()), descriptors())
    assert before == kept()
    assert 0 == len(guest.server._engine.parked)


async def test_a_demand_that_nobody_answers_is_forgotten_with_all_that_it_held() -> None:
    now = 1000.0
    guest = Guest(limits=Limits(waiting_seconds=5))
    guest.server._engine.clock = guest.server._engine.parked._clock = lambda: now
    async with unjudged(guest.server, NEWEST, '{"elicitation":{}}') as peer:
        await peer.call("echo")
        for _ in range(200):
            await peer.call("ask")
        assert 200 == len(guest.server._engine.parked)
        now += 6
        input_required.expire_parked(guest.server._engine)
        await peer.wire.rest()

        assert not {"ServerRequest", "Exchange", "OpenRequest", "InputRound"} & set(kept())
        assert 0 == guest.server._engine.ledger.by_kind()["parked requests"]


async def test_a_flood_of_progress_and_log_entries_arrives_whole_and_in_order(revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        said = await peer.call("progress", '{"count":2000}', '"progressToken":"t"')
        assert list(range(2000)) == [each["params"]["progress"] for each in said[:-1]]
        meta = '"io.modelcontextprotocol/logLevel":"debug"' if peer.is_stateless else ""
        said = await peer.call("log", '{"count":2000}', meta)

        assert [f"{each} of 2000" for each in range(2000)] == [each["params"]["data"] for each in said[:-1]]


async def test_a_flood_of_cancellations_answers_and_notifications_is_not_answered(revision: str) -> None:
    async with unjudged(Guest().server, revision) as peer:
        flood = [cancelled(each) for each in range(5000)]
        flood += [cancelled(str(each)) for each in range(5000)]
        flood += [f'{{"jsonrpc":"2.0","id":{each},"result":{{}}}}'.encode() for each in range(5000)]
        flood += [b'{"jsonrpc":"2.0","method":"notifications/initialized"}'] * 2000
        flood += [b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'] * 2000
        flood += [f'{{"jsonrpc":"2.0","method":"notifications/{each}"}}'.encode() for each in range(5000)]
        before = kept()

        assert [] == await peer.wire.say(*flood)
        assert before == kept()
        assert [1] == [each["id"] for each in await peer.call("echo")]


async def test_no_more_is_watched_than_may_be(revision: str) -> None:
    guest = Guest(limits=Limits(max_subscriptions=10))
    async with client(guest.server, revision) as peer:
        for each in range(30):
            if peer.is_stateless:
                said = await peer.ask("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
            else:
                said = await peer.ask("resources/subscribe", f'"uri":"note://{each}/text"')
            assert ("error" in said[-1]) == (each >= 10)
        listening = peer.wire.connection.session.subscriptions

        assert 10 == len(listening.streams if peer.is_stateless else listening.uris)


async def test_a_stream_that_is_opened_and_cancelled_ten_thousand_times_leaves_nothing_behind() -> None:
    async with unjudged(Guest().server, NEWEST) as peer:
        before = kept()
        listen = peer.request("s", "subscriptions/listen", '"notifications":{"toolsListChanged":true}')
        for _ in range(10_000):
            peer.wire.send(listen, cancelled("s"))

        assert before == kept()
        assert {} == peer.wire.connection.session.subscriptions.streams
        assert {} == dict(peer.wire.connection.session.exchanges)
