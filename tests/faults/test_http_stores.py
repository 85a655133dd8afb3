"""Clients that come back in storms and with ids of all kinds, and stores that fail, are slow, or lose things."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.server.event_store import MemoryEventStore
from tests.faults.event_loop_turns import until
from tests.faults.http_applications import attacked_site, held
from tests.faults.http_faulty_handlers import Guest
from tests.specification.http_server.http_clients import joined
from tests.specification.http_server.revision_sets import on_both_loops, polling, with_sessions

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Exchange
    from tests.specification.http_server.http_clients import Caller

pytestmark = pytest.mark.anyio

OLD = "2025-11-25"
PROGRESS = '"progressToken":"p"'


async def first_id(stream: Exchange) -> str:
    """Return the id of the first message of a stream."""
    event = await stream.event()
    while not event.data:
        event = await stream.event()
    return event.event_id or ""


async def lost(peer: Caller, identity: int = 5) -> tuple[str, Exchange]:
    """Ask for what waits, lose its stream behind the first message, and return where that was."""
    stream = peer.call("step", meta=PROGRESS, identity=identity)
    last = await first_id(stream)
    stream.leave()
    await peer.web.quiet()
    return last, stream


# --- storms


@with_sessions
@on_both_loops
async def test_no_id_but_an_own_and_known_one_opens_a_stream(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer, other = await joined(web, revision), await joined(web, revision)
        own, _ = await lost(peer)
        foreign, _ = await lost(other)
        name, _, number = own.rpartition(":")
        forged = [
            *(f"{name}:{each}" for each in (int(number) + 1, 10**14, 10**15, "-1", "01", "+1", "1.0", "x", "", "\xb9")),
            *(f"{name[:-1]}{each}:0" for each in (0, 3, 99)),
            *(each + own for each in (" x", "x", "\0", "..", "%20")),
            *(own + each for each in ("0", ",", ";", "\0", f", {own}")),
            own.upper(),
            name,
            ":",
            ":1",
            "null",
            "",
            " ",
            "x" * 100_000,
            foreign,
            foreign.rpartition(":")[0] + ":0",
        ]
        for _ in range(3):
            for each in forged:
                answer = await peer.listen(each).returned()
                assert 400 == answer.status, repr(each)
        again = peer.listen(own)
        guest.gate.set()
        assert 5 == (await again.messages())[-1]["id"]
        assert 5 == (await other.listen(foreign).messages())[-1]["id"]


async def test_an_id_behind_which_messages_are_gone_is_refused_and_the_stream_is_not_resumed_with_a_hole() -> None:
    store = MemoryEventStore(max_events_per_stream=5, clock=time.monotonic)
    async with attacked_site(Guest().server, events=store, limits=HttpLimits(stream_after_seconds=0.001)) as web:
        peer = await joined(web, OLD)
        stream = peer.call("tell", '{"mark":"m","count":20}', PROGRESS, identity=5)
        await stream.complete()
        ids = [each.event_id or "" for each in stream.pending]
        found = [(await peer.listen(each).returned()).status for each in ids]

    assert [400] * (len(ids) - 6) + [200] * 6 == found


@pytest.mark.slow
@with_sessions
async def test_of_many_who_come_back_at_once_one_goes_on_and_nobody_gets_a_message_twice(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer = await joined(web, revision)
        last, _ = await lost(peer)
        streams = [peer.listen(last) for _ in range(100)]
        await web.quiet()
        assert 99 == [each.has_returned for each in streams].count(True)
        guest.gate.set()
        await web.quiet()
        found = [len([one for one in each.pending if one.data]) for each in streams]

    assert (2, 98, 1) == (max(found), found.count(0) - 1, found.count(2))


@polling
@on_both_loops
@pytest.mark.slow
async def test_a_client_that_breaks_off_at_every_event_gets_all_of_them_once_and_in_order(revision: str) -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer = await joined(web, revision)
        stream = peer.call("tell", '{"mark":"m","count":50}', PROGRESS, identity=5)
        found: list[Any] = []
        for _ in range(200):
            event = await stream.event()
            if event.data:
                found.append(json.loads(event.data))
                if found[-1].get("id") == 5:
                    break
            stream.leave()
            await web.quiet()
            stream = peer.listen(event.event_id)
        numbers = [each["params"]["progress"] for each in found if each.get("method") == "notifications/progress"]

    assert list(range(50)) == numbers
    assert "m" == found[-1]["result"]["content"][0]["text"]


@pytest.mark.slow
async def test_a_storm_of_connections_that_come_and_go_leaves_nothing() -> None:
    guest = Guest()
    async with attacked_site(guest.server) as web:
        peer = await joined(web, OLD)
        last, _ = await lost(peer)
        for turn in range(300):
            stream = peer.listen(last if turn % 2 else None)
            if turn % 3:
                await stream.begun()
            stream.leave()
        await web.quiet()
        assert not {"responses", "open"} & set(held(web.app))
        assert 1 == guest.waiting
        again = peer.listen(last)
        guest.gate.set()
        assert 5 == (await again.messages())[-1]["id"]


@pytest.mark.slow
async def test_a_storm_of_requests_that_are_never_read_is_kept_within_the_bounds_of_the_store() -> None:
    store = MemoryEventStore(max_streams=100, max_bytes=1_000_000, clock=time.monotonic)
    guest = Guest()
    async with attacked_site(guest.server, events=store, limits=HttpLimits(stream_after_seconds=0.001)) as web:
        peer = await joined(web, OLD)
        for each in range(300):
            stream = peer.call("step", f'{{"text":"{"x" * 10_000}"}}', PROGRESS, identity=each)
            await stream.begun()
            stream.leave()
        guest.gate.set()
        await until(lambda: not guest.waiting)
        await web.quiet()

        assert store.stream_count <= 100
        assert store.held_bytes <= 1_000_000


# --- stores


class Store(MemoryEventStore):
    """A store that can be made to fail.

    Attributes:
        gate: Opened by whoever lets `after` go on.
        asked: How often it was.
    """

    def __init__(self, *, append: Exception | None = None, after: Exception | None = None, loses: bool = False) -> None:
        super().__init__(clock=time.monotonic)
        self.gate = anyio.Event()
        self.gate.set()
        self.asked = 0
        self._failure = append
        self._after_failure = after
        self._loses = loses

    def append(self, stream: str, number: int, message: bytes) -> None:
        if self._failure is not None and message:
            raise self._failure
        if not self._loses or not message:
            super().append(stream, number, message)

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        self.asked += 1
        await self.gate.wait()
        if self._after_failure is not None:
            raise self._after_failure
        return await super().after(stream, number)


@polling
@on_both_loops
@pytest.mark.parametrize("failure", [OSError("the disk is full"), ValueError("no"), TimeoutError("late")], ids=repr)
async def test_a_store_that_cannot_keep_a_message_costs_resuming_and_nothing_else(
    failure: Exception, revision: str
) -> None:
    guest = Guest()
    async with attacked_site(guest.server, events=Store(append=failure)) as web:
        peer = await joined(web, revision)
        own = peer.listen()
        priming = await own.event()
        await web.server.tools_changed()
        assert "notifications/tools/list_changed" == (await own.message())["method"]
        stream = peer.call("step", meta=PROGRESS, identity=5)
        last = await first_id(stream)
        guest.gate.set()
        assert "stepped" == (await stream.messages())[-1]["result"]["content"][0]["text"]
        assert 400 == (await peer.listen(priming.event_id).returned()).status
        assert (await peer.listen(last).returned()).status in (200, 400)
        assert "echo" in str(await peer.ask("tools/list"))


@polling
@on_both_loops
@pytest.mark.parametrize("failure", [OSError("no network"), KeyError("x"), TimeoutError("late")], ids=repr)
async def test_a_store_that_cannot_be_asked_fails_the_resuming_client_and_nobody_else(
    failure: Exception, revision: str
) -> None:
    guest = Guest()
    async with attacked_site(guest.server, fails=True, events=Store(after=failure)) as web:
        peer = await joined(web, revision)
        last, _ = await lost(peer)
        for _ in range(5):
            answer = await peer.listen(last).returned()
            assert 500 == answer.status
            assert not {"responses", "open"} & set(held(web.app))
        assert "echo" in str(await peer.ask("tools/list"))
        guest.gate.set()


@polling
async def test_a_store_that_has_lost_a_message_does_not_keep_us_asking_it_for_ever(revision: str) -> None:
    store, guest = Store(loses=True), Guest()
    async with attacked_site(guest.server, events=store) as web:
        peer = await joined(web, revision)
        last, _ = await lost(peer)
        name = last.rpartition(":")[0]
        answer = await peer.listen(f"{name}:1").returned()

        assert 400 == answer.status
        assert 1 == store.asked
        guest.gate.set()


@polling
@on_both_loops
async def test_what_is_said_while_a_slow_store_is_asked_is_not_lost(revision: str) -> None:
    store, guest = Store(), Guest()
    async with attacked_site(guest.server, events=store) as web:
        peer = await joined(web, revision)
        own = peer.listen()
        last = (await own.event()).event_id
        own.leave()
        await web.quiet()
        store.gate = anyio.Event()
        again = peer.listen(last)
        await until(lambda: store.asked)
        for _ in range(3):
            await web.server.tools_changed()
        store.gate.set()
        found = [(await again.message())["method"] for _ in range(3)]

    assert ["notifications/tools/list_changed"] * 3 == found


@polling
@on_both_loops
@pytest.mark.parametrize(
    "meanwhile", ["the client leaves", "the session ends", "the answer comes", "another comes back"]
)
async def test_whatever_happens_while_a_slow_store_is_asked_leaves_nothing(meanwhile: str, revision: str) -> None:
    store, guest = Store(), Guest()
    async with attacked_site(guest.server, events=store) as web:
        peer = await joined(web, revision)
        last, _ = await lost(peer)
        store.gate = anyio.Event()
        again = peer.listen(last)
        await until(lambda: store.asked)
        other = None
        if meanwhile == "the client leaves":
            again.leave()
        elif meanwhile == "the session ends":
            await peer.delete()
            web.overseer.violations.clear()
        elif meanwhile == "the answer comes":
            guest.gate.set()
            await web.quiet()
        else:
            other = peer.listen(last)
            await until(lambda: store.asked == 2)
        store.gate.set()
        await web.quiet()
        guest.gate.set()
        await again.returned()
        if other is not None:
            await other.returned()
            assert ['"id":5'] == [
                '"id":5' for one in (again, other) for each in one.pending if '"id":5' in str(each.data)
            ]
        if meanwhile == "the answer comes":
            assert [5] == [json.loads(each.data)["id"] for each in again.pending if each.data and '"id"' in each.data]
        if meanwhile == "the session ends":
            web.overseer.violations.clear()
