"""Messages kept for clients that come back: all that they missed or nothing, and never more than is allowed."""

from __future__ import annotations

import tracemalloc
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.earlier_streams import forget_streams
from mcpgen.runtime.http.sse import EventReader, encode_event
from mcpgen.runtime.server.event_store import (
    EVENT_OVERHEAD_BYTES,
    MAX_STREAM_NAME_CHARS,
    EventStore,
    MemoryEventStore,
    event_id,
    parse_event_id,
)
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

RESUMING = "basic/transports#resumability-and-redelivery"


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def store_of(**bounds: Any) -> MemoryEventStore:
    return MemoryEventStore(clock=Clock(), **bounds)


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    """Return what a call returns that waits for nothing."""
    with pytest.raises(StopIteration) as ended:
        call.send(None)
    return ended.value.value


def after(store: EventStore, stream: str, number: int) -> list[tuple[int, bytes]] | None:
    found: list[tuple[int, bytes]] | None = at_once(store.after(stream, number))
    return found


def filled(store: MemoryEventStore, stream: str, numbers: range, size: int = 1) -> MemoryEventStore:
    for number in numbers:
        store.append(stream, number, b"x" * size)
    return store


def numbers(store: EventStore, stream: str, number: int) -> list[int] | None:
    found = after(store, stream, number)
    return None if found is None else [each for each, _ in found]


# --- what is kept


@pytest.mark.spec("2025-03-26", RESUMING)
@pytest.mark.spec("2025-11-25", RESUMING)
def test_a_client_gets_what_came_behind_the_place_where_it_was() -> None:
    store = store_of()
    for number, message in enumerate([b"", b"one", b"two", b"three"]):
        store.append("a", number, message)

    assert [(1, b"one"), (2, b"two"), (3, b"three")] == after(store, "a", 0)
    assert [(3, b"three")] == after(store, "a", 2)
    assert [] == after(store, "a", 3)


@pytest.mark.spec("2025-03-26", RESUMING)
@pytest.mark.spec("2025-11-25", RESUMING)
def test_no_stream_gets_the_messages_of_another() -> None:
    store = store_of()
    for number in range(3):
        store.append("a", number, b"for a")
        store.append("b", number, b"for b")

    assert [(1, b"for a"), (2, b"for a")] == after(store, "a", 0)
    assert [(1, b"for b"), (2, b"for b")] == after(store, "b", 0)


def test_what_was_given_out_is_kept_for_the_next_time() -> None:
    store = filled(store_of(), "a", range(3))

    assert [1, 2] == numbers(store, "a", 0)
    assert [1, 2] == numbers(store, "a", 0)


def test_a_stream_that_is_not_known_is_not_answered() -> None:
    assert after(store_of(), "a", 0) is None


@pytest.mark.parametrize("number", [4, 10**14])
def test_a_number_that_there_never_was_is_not_answered(number: int) -> None:
    assert after(filled(store_of(), "a", range(4)), "a", number) is None


def test_a_stream_may_begin_anywhere_and_what_was_before_counts_as_lost() -> None:
    store = filled(store_of(), "a", range(7, 9))

    assert [7, 8] == numbers(store, "a", 6)
    assert numbers(store, "a", 5) is None


def test_numbers_may_be_left_out() -> None:
    store = store_of()
    for number in (0, 3, 9):
        store.append("a", number, b"")

    assert [3, 9] == numbers(store, "a", 1)
    assert [9] == numbers(store, "a", 3)


@pytest.mark.parametrize("number", [0, 1, -1])
def test_numbers_rise(number: int) -> None:
    store = filled(store_of(), "a", range(2))

    with pytest.raises(
        UsageError, match=f"`number` is {number}; it must be higher than 1, the last number of the stream"
    ):
        store.append("a", number, b"")
    assert [1] == numbers(store, "a", 0)


def test_a_stream_can_be_forgotten() -> None:
    store = filled(filled(store_of(), "a", range(3)), "b", range(3))
    at_once(store.forget("a"))
    at_once(store.forget("a"))

    assert numbers(store, "a", 0) is None
    assert [1, 2] == numbers(store, "b", 0)
    assert (1, 3, 3 * (EVENT_OVERHEAD_BYTES + 1)) == (store.stream_count, store.event_count, store.held_bytes)
    at_once(store.forget("b"))
    assert (0, 0, 0) == (store.stream_count, store.event_count, store.held_bytes)


# --- bounds


def test_of_a_long_stream_the_first_messages_go_first() -> None:
    store = filled(store_of(max_events_per_stream=3), "a", range(6))

    assert [3, 4, 5] == numbers(store, "a", 2)
    assert numbers(store, "a", 1) is None
    assert 3 == store.event_count


def test_of_a_full_store_the_oldest_message_goes_first_whosever_it_is() -> None:
    store = store_of(max_bytes=3 * (EVENT_OVERHEAD_BYTES + 1))
    filled(store, "a", range(2))
    filled(store, "b", range(2))

    assert numbers(store, "a", -1) is None
    assert [1] == numbers(store, "a", 0)
    assert [0, 1] == numbers(store, "b", -1)
    assert 3 * (EVENT_OVERHEAD_BYTES + 1) == store.held_bytes


def test_a_large_message_takes_the_place_of_many() -> None:
    store = filled(store_of(max_bytes=4 * EVENT_OVERHEAD_BYTES), "a", range(3))
    store.append("a", 3, b"x" * 2 * EVENT_OVERHEAD_BYTES)

    assert numbers(store, "a", 1) is None
    assert [3] == numbers(store, "a", 2)


def test_a_message_that_can_never_fit_is_lost_with_those_before_it_and_no_other() -> None:
    store = filled(filled(store_of(max_bytes=10 * EVENT_OVERHEAD_BYTES), "a", range(3)), "b", range(3))
    store.append("a", 3, b"x" * 10 * EVENT_OVERHEAD_BYTES)

    assert numbers(store, "a", 2) is None
    assert [] == numbers(store, "a", 3)
    assert [1, 2] == numbers(store, "b", 0)
    store.append("a", 4, b"")
    assert [4] == numbers(store, "a", 3)


def test_of_too_many_streams_the_one_goes_that_was_used_least_recently() -> None:
    store = store_of(max_streams=3)
    for stream in ("a", "b", "c"):
        filled(store, stream, range(2))
    store.append("a", 2, b"")
    assert [1] == numbers(store, "b", 0)
    store.append("d", 0, b"")

    assert [None, [1, 2], [1], []] == [numbers(store, "c", 0), *(numbers(store, each, 0) for each in ("a", "b", "d"))]
    assert 3 == store.stream_count


def test_a_stream_that_comes_back_after_it_had_to_go_does_not_hide_the_gap() -> None:
    store = store_of(max_streams=1)
    filled(store, "a", range(4))
    filled(store, "b", range(1))
    store.append("a", 4, b"")

    assert numbers(store, "a", 2) is None
    assert [4] == numbers(store, "a", 3)


def test_messages_are_kept_for_their_time_and_no_longer() -> None:
    clock = Clock()
    store = MemoryEventStore(lifetime_seconds=60, clock=clock)
    store.append("a", 0, b"")
    clock.now += 59
    store.append("a", 1, b"")

    assert [0, 1] == numbers(store, "a", -1)
    clock.now += 1
    assert numbers(store, "a", -1) is None
    assert [1] == numbers(store, "a", 0)
    assert 1 == store.event_count


def test_messages_that_expire_together_are_dropped_in_parts() -> None:
    """Otherwise 150,000 of them take 0.4 seconds in one turn of the event loop."""
    clock = Clock()
    store = MemoryEventStore(lifetime_seconds=60, clock=clock, max_events_per_stream=5000)
    filled(store, "a", range(2500))
    clock.now += 60
    counts: list[int] = []
    for number in range(3):
        store.append("b", number, b"x")
        counts.append(store.event_count)

    assert counts == [1501, 502, 3]


def test_streams_are_forgotten_one_in_a_turn() -> None:
    store = store_of()
    filled(store, "a", range(3))
    filled(store, "b", range(3))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(forget_streams, store, ["a", "b"])
            counts = [store.event_count]
            while store.event_count:
                await anyio.lowlevel.checkpoint()
                counts.append(store.event_count)
            assert sorted(set(counts)) == [0, 3, 6]

    anyio.run(main)


def test_a_client_that_has_seen_everything_can_come_back_at_any_time() -> None:
    """A tool may be silent for longer than messages are kept."""
    clock = Clock()
    store = filled(MemoryEventStore(lifetime_seconds=60, clock=clock), "a", range(2))
    clock.now += 1000

    assert [] == numbers(store, "a", 1)
    assert numbers(store, "a", 0) is None
    assert (0, 0) == (store.event_count, store.held_bytes)
    store.append("a", 2, b"")
    assert [2] == numbers(store, "a", 1)
    assert numbers(store, "a", 0) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: store_of(max_streams=0),
        lambda: store_of(max_events_per_stream=0),
        lambda: store_of(max_bytes=0),
        lambda: store_of(lifetime_seconds=0),
        lambda: store_of(lifetime_seconds=float("nan")),
    ],
)
def test_a_store_needs_room_and_time(make: Callable[[], MemoryEventStore]) -> None:
    with pytest.raises(UsageError, match="must all be greater than 0"):
        make()


@pytest.mark.slow
def test_what_a_store_holds_is_what_it_counts() -> None:
    tracemalloc.start()
    try:
        store = store_of(max_bytes=4_000_000, max_events_per_stream=100_000)
        for number in range(20_000):
            store.append("a", number, b"%d" % number)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 10_000 < store.event_count < 20_000
    assert held_bytes < 4_000_000 * 1.2  # containers grow ahead of what is put into them


@pytest.mark.slow
def test_dropped_messages_behind_an_old_one_keep_no_memory() -> None:
    store = filled(store_of(max_events_per_stream=10), "old", range(1))
    tracemalloc.start()
    try:
        filled(store, "new", range(100_000))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (store.event_count, after(store, "old", -1)) == (11, [(0, b"x")])
    assert held_bytes < 50_000


def test_the_default_store_serves_any_event_loop() -> None:
    async def resume() -> list[tuple[int, bytes]] | None:
        with anyio.fail_after(PATIENCE_SECONDS):
            return await filled(store_of(), "a", range(2)).after("a", 0)

    assert [[(1, b"x")]] * 2 == [anyio.run(resume, backend=each) for each in ("asyncio", "trio")]


operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("abcd"), st.integers(0, 2 * EVENT_OVERHEAD_BYTES)),
        st.tuples(st.just("append"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("after"), st.sampled_from("abcd"), st.integers(-1, 12)),
        st.tuples(st.just("forget"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(1, 6)),
    ),
    max_size=60,
)


@given(
    operations=operations,
    max_streams=st.integers(1, 5),
    max_events=st.integers(1, 6),
    max_messages=st.integers(1, 8),
)
@pytest.mark.slow
def test_bounds_hold_and_nobody_gets_a_part(
    operations: list[tuple[str, str, int]], max_streams: int, max_events: int, max_messages: int
) -> None:
    clock = Clock()
    max_bytes = max_messages * EVENT_OVERHEAD_BYTES
    store = MemoryEventStore(
        max_streams=max_streams,
        max_events_per_stream=max_events,
        max_bytes=max_bytes,
        lifetime_seconds=10,
        clock=clock,
    )
    sent: dict[str, list[tuple[int, bytes, float]]] = {each: [] for each in "abcd"}
    forgotten: set[str] = set()
    next_number = {each: count() for each in "abcd"}
    for what, stream, value in operations:
        if what == "append":
            number = next(next_number[stream])
            message = b"x" * value
            store.append(stream, number, message)
            sent[stream].append((number, message, clock.now))
            forgotten.discard(stream)
        elif what == "forget":
            at_once(store.forget(stream))
            forgotten.add(stream)
        elif what == "wait":
            clock.now += value
        else:
            found = after(store, stream, value)
            missed = [each for each in sent[stream] if each[0] > value]
            if found is not None:
                assert [(number, message) for number, message, _ in missed] == found
                assert stream not in forgotten
                assert all(clock.now - at < 10 for _, _, at in missed)
        assert store.stream_count <= max_streams
        assert store.event_count <= max_events * store.stream_count
        assert store.event_count * EVENT_OVERHEAD_BYTES <= store.held_bytes <= max_bytes
    for stream in "abcd":
        at_once(store.forget(stream))

    assert (0, 0, 0) == (store.stream_count, store.event_count, store.held_bytes)


@pytest.mark.slow
@given(operations=operations)
def test_a_store_with_room_forgets_nothing_by_itself(operations: list[tuple[str, str, int]]) -> None:
    store = MemoryEventStore(clock=Clock())
    sent: dict[str, list[tuple[int, bytes]]] = {}
    for what, stream, value in operations:
        if what == "append":
            messages = sent.setdefault(stream, [])
            messages.append((len(messages), b"x" * value))
            store.append(stream, *messages[-1])
        elif what == "forget":
            at_once(store.forget(stream))
            sent.pop(stream, None)
        elif what == "after":
            messages = sent.get(stream, [])
            expected = messages[value + 1 :] if stream in sent and value < len(messages) else None

            assert expected == after(store, stream, value)


# --- ids


@pytest.mark.spec("2025-11-25", RESUMING)
def test_an_id_says_which_stream_it_is_of_and_where() -> None:
    assert "session/2:17" == event_id("session/2", 17)
    assert ("session/2", 17) == parse_event_id("session/2:17")


def test_a_stream_may_have_colons_in_its_name() -> None:
    assert ("a:1", 2) == parse_event_id(event_id("a:1", 2))
    assert (":", 0) == parse_event_id(event_id(":", 0))


@pytest.mark.parametrize(
    "forged",
    [
        "",
        ":",
        ":1",
        "a",
        "a:",
        "a:-1",
        "a:+1",
        "a:01",
        "a:00",
        "a: 1",
        "a:1 ",
        " a:1",
        "a:1\n",
        "a\n:1",
        "a\r\nb:1",
        "a\0:1",
        "a b:1",
        "a:1_0",
        "a:1.0",
        "a:0x1",
        "a:\u0661",
        "a:1\u0661",
        "\u00e4:1",
        "\udc80:1",
        "a:1000000000000000",
        "a:" + "9" * 100_000,
        "a" * (MAX_STREAM_NAME_CHARS + 1) + ":1",
        ":" * 1_000_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_we_did_not_write_is_no_id(forged: str) -> None:
    assert parse_event_id(forged) is None


@pytest.mark.parametrize("stream", ["", "a b", "a\n", "a\r\nid: 1", "ä", "a\0", "a" * (MAX_STREAM_NAME_CHARS + 1)])
def test_a_stream_that_no_header_can_name_has_no_ids(stream: str) -> None:
    with pytest.raises(UsageError, match="`stream` must be 1 to 200 characters"):
        event_id(stream, 0)


@pytest.mark.parametrize("number", [-1, 10**15])
def test_a_number_that_would_not_be_read_again_is_not_written(number: int) -> None:
    with pytest.raises(UsageError, match="`stream` must be 1 to 200 characters"):
        event_id("a", number)


streams = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=MAX_STREAM_NAME_CHARS)


@given(stream=streams, number=st.integers(0, 10**15 - 1))
def test_an_id_that_was_written_is_read_again_and_survives_a_stream_of_events(stream: str, number: int) -> None:
    written = event_id(stream, number)
    (found,) = EventReader().feed(encode_event(b"{}", event_id=written))

    assert (stream, number) == parse_event_id(written)
    assert written == found.event_id
    assert written == written.strip()


@given(text=st.one_of(st.text(), st.from_regex(r"[!-~]{1,5}:[0-9]{1,16}", fullmatch=True)))
def test_an_id_is_written_in_one_way(text: str) -> None:
    parsed = parse_event_id(text)

    assert parsed is None or text == event_id(*parsed)


def test_the_messages_of_the_owner_that_has_the_most_go_first() -> None:
    store = store_of(max_bytes=10 * (EVENT_OVERHEAD_BYTES + 100))
    filled(store, "honest.s.1", range(2), 100)
    for each in range(20):
        filled(store, f"taker.s{each}.1", range(1), 100)

    assert [0, 1] == numbers(store, "honest.s.1", -1)
    assert numbers(store, "taker.s0.1", -1) is None
    assert [0] == numbers(store, "taker.s19.1", -1)


def test_a_large_message_does_not_look_at_all_owners_for_each_one_that_is_dropped() -> None:
    looked_at: list[str] = []

    class Noted(dict[str, int]):
        def __getitem__(self, owner: str) -> int:
            looked_at.append(owner)
            return super().__getitem__(owner)

    store = store_of(max_bytes=1000 * (EVENT_OVERHEAD_BYTES + 100))
    store._owned_bytes = Noted()
    for owner in range(500):
        filled(store, f"o{owner}.s.1", range(2), 100)
    looked_at.clear()
    filled(store, "large.s.1", range(1), 400 * (EVENT_OVERHEAD_BYTES + 100) - EVENT_OVERHEAD_BYTES)

    assert 601 == store.event_count
    assert 2000 > len(looked_at), "each owner is looked at once, and each that loses a message once more"
    assert 400 == [numbers(store, f"o{owner}.s.1", -1) for owner in range(500)].count(None)


def test_the_streams_of_the_owner_that_has_the_most_go_first() -> None:
    store = store_of(max_streams=4)
    filled(store, "honest.s.1", range(2))
    for each in range(20):
        filled(store, f"taker.s{each}.1", range(1))

    assert [0, 1] == numbers(store, "honest.s.1", -1)
    assert [0] == numbers(store, "taker.s19.1", -1)
