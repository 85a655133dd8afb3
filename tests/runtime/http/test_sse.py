"""Server-sent events: written as the standard reads them, and read as it says, however the bytes arrive."""

from __future__ import annotations

import re
import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.sse import KEEP_ALIVE, MAX_RETRY_MS, Event, EventReader, EventTooLarge, encode_event
from mcpgen.runtime.limits import MAX_FRAME_BYTES

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
TRANSPORTS = "basic/transports"


def read(wire: bytes) -> list[Event]:
    return EventReader().feed(wire)


def event(data: str, name: str = "message", event_id: str | None = None, retry_ms: int | None = None) -> Event:
    return Event(data.encode(), name, event_id, retry_ms)


def bytewise(wire: bytes) -> list[Event]:
    reader = EventReader()
    return [found for byte in wire for found in reader.feed(bytes([byte]))]


# --- writing


@pytest.mark.spec("2025-03-26", f"{TRANSPORTS}#sending-messages-to-the-server")
@pytest.mark.spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
def test_a_message_is_one_line_of_data_and_a_blank_one() -> None:
    assert b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n' == encode_event(PING)


@pytest.mark.spec("2025-11-25", f"{TRANSPORTS}#resumability-and-redelivery")
def test_an_event_has_an_id_before_its_data() -> None:
    assert b"id: a:1\ndata: {}\n\n" == encode_event(b"{}", event_id="a:1")


@pytest.mark.spec("2025-11-25", f"{TRANSPORTS}#sending-messages-to-the-server")
def test_an_event_without_data_tells_an_id_and_when_to_come_back() -> None:
    assert b"id: a:0\nretry: 500\ndata: \n\n" == encode_event(b"", event_id="a:0", retry_ms=500)


@pytest.mark.spec("2024-11-05", f"{TRANSPORTS}#http-with-sse")
def test_an_event_may_have_a_name() -> None:
    assert b"event: endpoint\ndata: /messages?session=1\n\n" == encode_event(b"/messages?session=1", name="endpoint")


def test_all_fields_come_in_one_order() -> None:
    assert b"id: \nevent: x\nretry: 0\ndata: {}\n\n" == encode_event(b"{}", event_id="", name="x", retry_ms=0)


def test_line_breaks_in_a_message_are_no_lines_of_the_stream() -> None:
    written = encode_event(b'{\r\n"a":1,\rid: 7\n}')

    assert b'data: {  "a":1, id: 7 }\n\n' == written


@pytest.mark.parametrize("breaking", ["a\nb", "a\rb", "a\r\nb", "\n"])
def test_no_line_breaks_get_into_a_stream_by_an_id_or_a_name(breaking: str) -> None:
    with pytest.raises(UsageError, match="`event_id` must not contain a line break"):
        encode_event(b"{}", event_id=breaking)
    with pytest.raises(UsageError, match="`name` must not contain a line break"):
        encode_event(b"{}", name=breaking)


def test_an_id_that_readers_would_ignore_is_not_written() -> None:
    with pytest.raises(UsageError, match="NUL"):
        encode_event(b"{}", event_id="a\0")


def test_nobody_is_told_to_wait_less_than_no_time() -> None:
    with pytest.raises(UsageError, match="`retry_ms` is -1; it must not be negative"):
        encode_event(b"{}", retry_ms=-1)


@pytest.mark.spec("2026-07-28", "basic/transports/streamable-http#receiving-messages")
def test_what_keeps_a_connection_alive_is_no_event() -> None:
    assert KEEP_ALIVE.startswith(b":")
    assert [event("a"), event("b")] == read(KEEP_ALIVE + encode_event(b"a") + KEEP_ALIVE * 2 + encode_event(b"b"))


# --- reading: lines


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_ends_with_any_of_three_ends(end: bytes) -> None:
    wire = end.join([b"id: 1", b"data: a", b"data: b", b"", b"data: c", b"", b""])

    expected = [event("a\nb", event_id="1"), event("c", event_id="1")]
    assert expected == read(wire)
    assert expected == bytewise(wire)


def test_a_carriage_return_ends_a_line_before_anything_follows() -> None:
    reader = EventReader()

    assert [event("a")] == reader.feed(b"data: a\r\r")
    assert [] == reader.feed(b"")
    assert [] == reader.feed(b"\ndata: b\r")
    assert [event("b")] == reader.feed(b"\n\r")
    assert [] == reader.feed(b"\n")
    assert [] == reader.feed(b"\n")


def test_only_one_newline_belongs_to_a_carriage_return() -> None:
    reader = EventReader()

    assert [] == reader.feed(b"data: a\r")
    assert [event("a")] == reader.feed(b"\n\n")


@pytest.mark.parametrize("other", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_nothing_else_ends_a_line(other: str) -> None:
    assert [event(f"a{other}b")] == read(f"data: a{other}b\n\n".encode())


@pytest.mark.parametrize(
    "wire", [b"\xef\xbb\xbfdata: a\n\n", b"\xef\xbb\xbf\ndata: a\n\n", b"\xef\xbb\xbf:\ndata: a\n\n"]
)
def test_a_byte_order_mark_at_the_beginning_is_skipped(wire: bytes) -> None:
    assert [event("a")] == read(wire)
    assert [event("a")] == bytewise(wire)


def test_a_byte_order_mark_anywhere_else_is_text() -> None:
    assert [] == read(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n")
    assert [] == read(b"\n\xef\xbb\xbfdata: a\n\n")
    assert [event("\ufeffa")] == read(b"data: \xef\xbb\xbfa\n\n")


def test_characters_may_be_cut_anywhere() -> None:
    wire = "data: Zoë 世界 🎈\nevent: ü\n\n".encode()

    assert [event("Zoë 世界 🎈", "ü")] == bytewise(wire)


def test_what_is_no_utf8_is_replaced() -> None:
    assert [event("a\ufffdb\ufffd"), event("c")] == read(b"data: a\xffb\xe4\xb8\n\ndata: c\n\n")


# --- reading: fields


def test_one_space_behind_the_colon_is_not_of_the_value() -> None:
    assert [event("a"), event("a"), event(" a"), event("\ta")] == read(b"data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n")


def test_a_value_may_hold_colons() -> None:
    assert [event("a: b: c", event_id="a:1")] == read(b"id:a:1\ndata: a: b: c\n\n")


def test_lines_of_data_are_joined_by_newlines() -> None:
    assert [event("a\n\n b\n")] == read(b"data: a\ndata\ndata:  b\ndata:\n\n")


@pytest.mark.parametrize("wire", [b"data\n\n", b"data:\n\n", b"data: \n\n"])
def test_empty_data_makes_an_event(wire: bytes) -> None:
    assert [event("")] == read(wire)


def test_without_data_there_is_no_event() -> None:
    assert [event("a")] == read(b"event: x\nid: 1\nretry: 5\n\n\n\nid:\ndata: a\n\n")


def test_a_name_holds_for_one_event_and_the_last_one_counts() -> None:
    assert [event("a", "y"), event("b"), event("c")] == read(
        b"event: x\nevent: y\ndata: a\n\ndata: b\n\nevent: x\nevent:\ndata: c\n\n"
    )


def test_the_name_of_an_event_that_is_none_is_forgotten() -> None:
    assert [event("a")] == read(b"event: x\n\ndata: a\n\n")


@pytest.mark.parametrize(
    "line", [b":", b": comment", b":data: x", b"dat: x", b"datax: x", b"Data: x", b" data: x", b"x"]
)
def test_comments_and_unknown_fields_are_skipped(line: bytes) -> None:
    assert [event("a")] == read(line + b"\ndata: a\n" + line + b"\n\n")


def test_an_id_holds_until_there_is_another() -> None:
    reader = EventReader()

    assert [event("a"), event("b", event_id="1"), event("c", event_id="1"), event("d", event_id="3")] == reader.feed(
        b"data: a\n\ndata: b\nid: 1\n\ndata: c\n\nid: 2\nid: 3\ndata: d\n\n"
    )
    assert "3" == reader.last_event_id


def test_an_empty_id_takes_back_those_before() -> None:
    reader = EventReader()

    assert [event("a", event_id="1"), event("b")] == reader.feed(b"id: 1\ndata: a\n\nid\ndata: b\n\n")
    assert reader.last_event_id is None


def test_a_long_id_takes_back_those_before() -> None:
    reader = EventReader()
    reader.feed(b"id: 1\ndata:\n\nid: " + b"x" * 8193 + b"\ndata:\n\n")

    assert reader.last_event_id is None


def test_an_id_with_a_nul_is_ignored() -> None:
    assert [event("a", event_id="1")] == read(b"id: 1\nid: 2\x00\ndata: a\n\n")


def test_an_id_counts_when_its_event_is_complete_even_without_data() -> None:
    reader = EventReader()
    seen = []
    for piece in (b"id: 1\n", b"\n", b"id: 2\n", b"data: a\n", b"\r"):
        reader.feed(piece)
        seen.append(reader.last_event_id)

    assert [None, "1", "1", "1", "2"] == seen


@pytest.mark.spec("2025-11-25", f"{TRANSPORTS}#sending-messages-to-the-server")
def test_the_time_to_wait_is_told_at_once_and_with_its_event() -> None:
    reader = EventReader()

    assert [] == reader.feed(b"retry: 500\n")
    assert 500 == reader.retry_ms
    assert [event("a", retry_ms=500), event("b")] == reader.feed(b"data: a\n\ndata: b\n\n")
    assert [] == reader.feed(b"retry: 007\n\n")
    assert [event("c")] == reader.feed(b"data: c\n\n")
    assert 7 == reader.retry_ms


@pytest.mark.parametrize("value", [b"", b"-1", b"+1", b"1.5", b"1e3", b" 1", b"1 ", b"1_0", "٣".encode(), "²".encode()])
def test_a_time_to_wait_of_anything_but_digits_is_ignored(value: bytes) -> None:
    reader = EventReader()

    assert [event("a", retry_ms=3)] == reader.feed(b"retry: 3\nretry: " + value + b"\ndata: a\n\n")
    assert 3 == reader.retry_ms


@pytest.mark.parametrize("digits", [b"9" * 16, b"9" * 1_000_000, b"1" + b"0" * 15])
def test_a_time_to_wait_has_an_end(digits: bytes) -> None:
    reader = EventReader()
    reader.feed(b"retry: " + digits + b"\n")

    assert MAX_RETRY_MS == reader.retry_ms


@pytest.mark.parametrize(("digits", "expected"), [(b"0" * 5000 + b"1", 1), (b"0" * 20, 0), (b"9" * 15, 10**15 - 1)])
def test_zeros_before_a_time_to_wait_mean_nothing(digits: bytes, expected: int) -> None:
    assert [event("a", retry_ms=expected)] == read(b"retry:" + digits + b"\ndata: a\n\n")


# --- the end of a stream


@pytest.mark.parametrize("left", [b"data: b", b"data: b\n", b"event: x\n", b"id: 9\n", b"x", b"data\n", b"id: \n"])
def test_an_event_that_the_end_cuts_off_is_dropped(left: bytes) -> None:
    reader = EventReader()

    assert [event("a", event_id="1")] == reader.feed(b"id: 1\ndata: a\n\n" + left)
    assert reader.finish()
    assert not reader.finish()
    assert [event("c", event_id="1")] == reader.feed(b"data: c\n\n")


@pytest.mark.parametrize("wire", [b"", b"\n", b"data: a\n\n", b"data: a\r\r", b"\xef\xbb\xbf\n", KEEP_ALIVE])
def test_nothing_is_cut_off_where_an_event_has_ended(wire: bytes) -> None:
    reader = EventReader()
    reader.feed(wire)

    assert not reader.finish()


@pytest.mark.spec("2025-11-25", f"{TRANSPORTS}#resumability-and-redelivery")
def test_a_stream_that_goes_on_elsewhere_begins_anew_with_the_same_id() -> None:
    reader = EventReader()
    reader.feed(b"retry: 500\nid: 1\ndata: a\n\nid: 2\nevent: x\nretry: 7\ndata: cut\r")
    reader.finish()

    assert ("1", 7) == (reader.last_event_id, reader.retry_ms)
    assert [event("b", event_id="1")] == reader.feed(b"\xef\xbb\xbfdata: b\n\n")


def test_a_newline_after_the_end_belongs_to_no_carriage_return_before_it() -> None:
    reader = EventReader()
    reader.feed(b"\r")
    reader.finish()

    assert [] == reader.feed(b"\n\xef\xbb\xbfdata: a\n\n")  # the mark is on the second line


# --- bounds


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "wire",
    [
        b"data: " + b"x" * 41 + b"\n\n",
        b"data:" + b"x" * 41 + b"\n\n",
        b"data: x\n" + b"data\n" * 40,
        b"x" * 50,
        b":" * 50,
    ],
)
def test_an_event_that_is_too_long_ends_the_reading(wire: bytes, size: int) -> None:
    reader = EventReader(max_event_bytes=40)
    whole = b"data: a\n\n" + wire
    events: list[Event] = []
    with pytest.raises(EventTooLarge, match="longer than the limit of 40 bytes") as raised:  # noqa: PT012 (in any of them)
        for at in range(0, len(whole), size):
            events += reader.feed(whole[at : at + size])

    assert [event("a")] == [*events, *raised.value.events]
    with pytest.raises(EventTooLarge) as again:
        reader.feed(b"\n\ndata: b\n\n")
    assert () == again.value.events
    reader.finish()
    assert [event("b")] == reader.feed(b"data: b\n\n")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_data_may_be_as_long_as_the_limit_whatever_is_beside_it(size: int) -> None:
    fits = b"x" * 40
    lines = [b"id: 12345", b"event: " + b"n" * 40, b":" * 49, b"data: " + fits, b"x" * 49, b"id: 6", b"", b""]
    wire = b"\xef\xbb\xbfdata: " + fits + b"\n\n" + b"\n".join(lines) + b"data: x\n" * 20 + b"data\n\n"
    reader = EventReader(max_event_bytes=40)
    events = [each for at in range(0, len(wire), size) for each in reader.feed(wire[at : at + size])]

    expected = [event(fits.decode()), event(fits.decode(), "n" * 40, "6"), event("x\n" * 20, event_id="6")]
    assert expected == events


@pytest.mark.parametrize(
    ("beside", "is_refused"),
    [(b"data: " + b"y" * 900_000, True), (b": " + b"y" * 900_000, False), (b"event: " + b"y" * 900_000, False)],
)
def test_an_unfinished_event_takes_no_more_than_the_limit(beside: bytes, *, is_refused: bool) -> None:
    reader = EventReader(max_event_bytes=1_000_000)
    wire = b"data: " + b"x" * 900_000 + b"\n" + beside
    tracemalloc.start()
    try:
        for at in range(0, len(wire), 64 * 1024):
            reader.feed(wire[at : at + 64 * 1024])
        kept = tracemalloc.get_traced_memory()[0]
    except EventTooLarge:
        kept = 0
    finally:
        tracemalloc.stop()

    assert kept < 1_200_000
    assert is_refused == (kept == 0)
    if not is_refused:
        (found,) = reader.feed(b"\n\n")
        assert b"x" * 900_000 == found.data
        assert len(found.name) < 20_000


@pytest.mark.parametrize("first", ["é".encode(), "🎈".encode(), b"\xff"])
def test_an_event_takes_as_much_as_its_bytes(first: bytes) -> None:
    reader = EventReader(max_event_bytes=1_000_000)
    reader.feed(b"data: " + first + b"x" * 900_000)
    tracemalloc.start()
    try:
        (found,) = reader.feed(b"\n\n")
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert 900_002 <= len(found.data) <= 900_004
    assert kept < 1_000_000


def test_replacement_characters_count_as_what_they_take() -> None:
    reader = EventReader(max_event_bytes=30)

    assert [event("\ufffd" * 10)] == reader.feed(b"data: " + b"\xff" * 10 + b"\n\n")
    with pytest.raises(EventTooLarge):
        reader.feed(b"data: " + b"\xff" * 11 + b"\n\n")


@pytest.mark.parametrize("line", [b": ", b"event: ", b"unknown: ", b"database: ", b"data "])
def test_a_line_that_is_not_kept_may_not_be_too_long_either(line: bytes) -> None:
    reader = EventReader(max_event_bytes=100_000)
    reader.feed(line)
    with pytest.raises(EventTooLarge):  # noqa: PT012 (in any of them)
        for _ in range(11):
            reader.feed(b"y" * 10_000)


def test_comments_without_end_are_no_long_event() -> None:
    reader = EventReader(max_event_bytes=10)
    for _ in range(1000):
        assert [] == reader.feed(b": alive\r\n")

    assert [event("a")] == reader.feed(b"data: a\n\n")


def test_the_longest_message_fits_by_default() -> None:
    (found,) = read(encode_event(b"x" * MAX_FRAME_BYTES, event_id="1"))

    assert MAX_FRAME_BYTES == len(found.data)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_reader_needs_room(limit: int) -> None:
    with pytest.raises(UsageError, match="max_event_bytes"):
        EventReader(max_event_bytes=limit)


@pytest.mark.parametrize("line", [b"event: ", b"database: "])
def test_of_a_line_that_is_no_data_the_beginning_is_kept(line: bytes) -> None:
    reader = EventReader(max_event_bytes=1_000_000)
    tracemalloc.start()
    try:
        reader.feed(line)
        for _ in range(90):
            reader.feed(b"y" * 10_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 50_000


@pytest.mark.parametrize("chunk", [b"x" * 65536, b"data\n" * 13000, b"event: " + b"x" * 60000 + b"\n"])
def test_a_stream_without_events_takes_bounded_memory(chunk: bytes) -> None:
    reader = EventReader(max_event_bytes=100_000)
    tracemalloc.start()
    try:
        for _ in range(200):
            try:
                reader.feed(chunk)
            except EventTooLarge:
                break
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 2_000_000


def seconds_for(chunks: int) -> float:
    reader = EventReader(max_event_bytes=10_000_000)
    begin = time.thread_time()  # time of its own: the clock also counts other processes
    reader.feed(b"data: ")
    for _ in range(chunks):
        reader.feed(b"x" * 100)
    reader.feed(b"\n\n")
    return time.thread_time() - begin


def test_a_line_takes_time_in_proportion_to_its_length() -> None:
    short, long = (min(seconds_for(chunks) for _ in range(5)) for chunks in (5000, 40_000))

    assert long < 8 * 4 * short  # quadratic would be 64 times; the rest is for a busy machine


# --- laws

pieces = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b":", b" ", b"\0", b"\xe4\xb8", b"\x96\n"]),
        st.sampled_from(
            [b"data: a\n", b"data:b\r", b"data", b"id: 1\n", b"id:", b"event: x\r\n", b"retry: 10\n", b"5"]
        ),
        st.binary(max_size=6),
    ),
    max_size=30,
)
cuts = st.lists(st.integers(0, 200))


def cut(wire: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(each, len(wire)) for each in places), len(wire)]
    return [wire[at:to] for at, to in pairwise(edges)]


def heard(arriving: list[bytes], limit: int) -> tuple[list[Event], bool, str | None, int | None, bool]:
    reader = EventReader(max_event_bytes=limit)
    events: list[Event] = []
    failed = False
    try:
        for each in arriving:
            events += reader.feed(each)
    except EventTooLarge as error:
        events += error.events
        failed = True
    return events, failed, reader.last_event_id, reader.retry_ms, reader.finish()


@given(pieces=pieces, places=cuts, limit=st.integers(1, 24))
@example(pieces=[b"\xef\xbb\xbfdata: a\n\n"], places=[1], limit=1)
@example(pieces=[b"\xef\xbb\xbfdata: ab"], places=[1], limit=1)
@example(pieces=[b"data: a\n", b"database: a\n"], places=[19], limit=2)
@example(pieces=[b"data: a\n", b"\xef\xbb\xbfdata: a\n"], places=[18], limit=1)
def test_reading_does_not_depend_on_how_bytes_arrive(pieces: list[bytes], places: list[int], limit: int) -> None:
    wire = b"".join(pieces)

    assert heard([wire], limit) == heard(cut(wire, places), limit)
    assert heard([wire], limit) == heard([bytes([each]) for each in wire], limit)


def by_the_standard(wire: bytes) -> list[Event]:
    """Read a whole stream step by step, as the standard is written."""
    text = wire.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, _unfinished = re.split("\r\n|\n|\r", text)
    events = []
    data = name = last_id = ""
    retry: int | None = None
    for line in lines:
        field, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append(event(data[:-1], name or "message", last_id or None, retry))
            data, name, retry = "", "", None
        elif colon and not field:
            continue
        elif field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and re.fullmatch("[0-9]+", value):
            retry = int(value)
    return events


@given(pieces=pieces)
def test_reading_follows_the_steps_of_the_standard(pieces: list[bytes]) -> None:
    wire = b"".join(pieces)

    assert by_the_standard(wire) == read(wire)


one_line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
written = st.lists(
    st.builds(
        event,
        data=one_line,
        name=one_line.filter(bool),
        event_id=st.none() | one_line.filter(lambda text: "\0" not in text),
        retry_ms=st.none() | st.integers(0, MAX_RETRY_MS),
    )
)


@pytest.mark.slow
@given(events=written, places=cuts)
def test_what_was_written_is_read_again(events: list[Event], places: list[int]) -> None:
    reader = EventReader()
    wire = b"".join(
        encode_event(each.data, event_id=each.event_id, name=each.name, retry_ms=each.retry_ms) for each in events
    )
    found = [each for piece in cut(wire, places) for each in reader.feed(piece)]

    expected = []
    last_id = None
    for each in events:
        last_id = last_id if each.event_id is None else each.event_id or None
        expected.append(Event(each.data, each.name, last_id, each.retry_ms))
    assert expected == found
    assert not reader.finish()
