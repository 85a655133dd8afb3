"""Lines out of bytes: whatever way they arrive, however long they are, whatever is between them."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import END_BYTES, LineFramer, OversizedLine, frame

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
CHUNK = b"x" * 65536


@pytest.mark.spec("2024-11-05", "basic/transports#stdio")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio")
def test_messages_are_delimited_by_newlines() -> None:
    framer = LineFramer()

    assert [PING, PONG] == framer.feed(PING + b"\n" + PONG + b"\n")
    assert [] == framer.finish()


@pytest.mark.spec("2024-11-05", "basic/transports#stdio")
def test_a_frame_comes_with_the_newline_that_ends_it() -> None:
    framer = LineFramer()

    assert [] == framer.feed(PING)
    assert [PING] == framer.feed(b"\n" + PONG)
    assert [PONG] == framer.feed(b"\n")


def test_a_carriage_return_before_the_newline_goes_with_it() -> None:
    framer = LineFramer()

    assert [PING, PONG] == framer.feed(PING + b"\r\n" + PONG + b"\r\n")
    assert [] == framer.feed(PING + b"\r")
    assert [PING] == framer.feed(b"\n")
    assert [] == framer.feed(PONG + b"\r")
    assert [PONG] == framer.finish()


def test_a_carriage_return_inside_a_line_stays() -> None:
    assert [b"{}\r{}"] == LineFramer().feed(b"{}\r{}\r\n")


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \n", b"\t\r\n", b"\n\n\r\n"])
def test_blank_lines_are_skipped(blank: bytes) -> None:
    framer = LineFramer()

    assert [PING, PONG] == framer.feed(blank + PING + b"\n" + blank + PONG + b"\n" + blank)
    assert [] == [event for byte in blank for event in framer.feed(bytes([byte]))]
    assert [] == framer.feed(b" \r")
    assert [] == framer.finish()


def test_the_end_of_input_ends_a_line_too() -> None:
    framer = LineFramer()

    assert [PING] == framer.feed(PING + b"\n" + PONG)
    assert [PONG] == framer.finish()
    assert [] == framer.finish()


def test_a_framer_begins_anew_after_the_end_of_input() -> None:
    framer = LineFramer()
    framer.feed(b'{"half":')
    framer.finish()

    assert [PING] == framer.feed(PING + b"\n")


def test_nothing_is_no_line() -> None:
    framer = LineFramer()

    assert [] == framer.feed(b"")
    assert [] == framer.finish()


def test_what_is_no_utf8_is_left_to_the_envelope() -> None:
    assert [b"\xff\xfe", b"\x00"] == LineFramer().feed(b"\xff\xfe\n\x00\n")


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(size: int) -> None:
    fits, wide = b"a" * 40, b"b" * 41
    framer = LineFramer(max_frame_bytes=40)
    wire = fits + b"\n" + wide + b"\n" + fits + b"\n" + wide
    events = [event for at in range(0, len(wire), size) for event in framer.feed(wire[at : at + size])]

    oversized = OversizedLine(size_bytes=41, limit_bytes=40, head=wide, tail=wide)
    assert [fits, oversized, fits] == events
    assert [oversized] == framer.finish()
    assert [fits] == framer.feed(fits + b"\n")


def test_of_an_oversized_line_both_ends_are_kept() -> None:
    line = b"<" + b"x" * 10_000_000 + b">"
    framer = LineFramer()
    for at in range(0, len(line), 60_000):
        assert [] == framer.feed(line[at : at + 60_000])
    (event,) = framer.feed(b"\n")

    assert isinstance(event, OversizedLine)
    assert (len(line), MAX_FRAME_BYTES) == (event.size_bytes, event.limit_bytes)
    assert (line[:END_BYTES], line[-END_BYTES:]) == (event.head, event.tail)


def test_a_line_that_is_too_long_already_can_be_seen_before_it_ends() -> None:
    framer = LineFramer(max_frame_bytes=10)
    seen = []
    for piece in (b"x" * 10, b"x", b"x" * 5, b"\nx"):
        framer.feed(piece)
        seen.append(framer.discarded_bytes)

    assert [0, 11, 16, 0] == seen


def seconds_for(chunks: int) -> float:
    framer = LineFramer()
    begin = time.perf_counter()
    for _ in range(chunks):
        framer.feed(CHUNK)
    framer.feed(b"\n")
    return time.perf_counter() - begin


def test_a_line_of_100_megabytes_takes_bounded_memory_and_the_stream_goes_on() -> None:
    framer = LineFramer()
    tracemalloc.start()
    try:
        events = [event for _ in range(1600) for event in framer.feed(CHUNK)]
        events += framer.feed(b"\n" + PING + b"\n")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [1600 * len(CHUNK), PING] == [
        each.size_bytes if isinstance(each, OversizedLine) else each for each in events
    ]
    assert peak_bytes < 1.5 * MAX_FRAME_BYTES  # a bytearray grows by an eighth more than it needs


@pytest.mark.slow
def test_a_line_takes_time_in_proportion_to_its_length() -> None:
    short, long = (min(seconds_for(chunks) for _ in range(5)) for chunks in (800, 6400))

    assert long < 8 * 4 * short  # quadratic would be 64 times; the rest is for a busy machine


@pytest.mark.slow
def test_a_long_line_that_is_allowed_takes_linear_time_too() -> None:
    framer = LineFramer(max_frame_bytes=200_000_000)
    events = [event for _ in range(1600) for event in framer.feed(CHUNK)]

    assert [] == events
    assert [1600 * len(CHUNK)] == [len(each) for each in framer.feed(b"\n") if isinstance(each, bytes)]


lines = st.lists(st.one_of(st.binary(max_size=12), st.sampled_from([b"", b" ", b"\r", b"{}", b"{}\r", b"x" * 30])))


@given(lines=lines, cuts=st.lists(st.integers(0, 300)), limit=st.integers(1, 16))
def test_framing_does_not_depend_on_how_bytes_arrive(lines: list[bytes], cuts: list[int], limit: int) -> None:
    wire = b"\n".join(lines)
    whole, pieces = LineFramer(max_frame_bytes=limit), LineFramer(max_frame_bytes=limit)
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    arrived = [event for at, to in pairwise(edges) for event in pieces.feed(wire[at:to])]

    assert whole.feed(wire) == arrived
    assert whole.finish() == pieces.finish()


@given(lines=lines)
def test_a_framer_yields_the_lines_that_are_not_blank(lines: list[bytes]) -> None:
    framer = LineFramer()
    events = framer.feed(b"\n".join(lines)) + framer.finish()

    expected = [line.removesuffix(b"\r") for each in lines for line in each.split(b"\n") if line.strip(b" \t\r\v\f")]
    assert expected == events


@pytest.mark.spec("2024-11-05", "basic/transports#stdio")
def test_a_message_is_written_as_one_line() -> None:
    assert PING + b"\n" == frame(PING)


@pytest.mark.spec("2025-03-26", "basic/transports#stdio", "2c2fa24f")
@pytest.mark.spec("2025-06-18", "basic/transports#stdio", "2c2fa24f")
@pytest.mark.spec("2025-11-25", "basic/transports#stdio", "2c2fa24f")
@pytest.mark.spec("2024-11-05", "basic/transports#stdio", "2c2fa24f")
@pytest.mark.spec("2026-07-28", "basic/transports/stdio", "dbea3aa0")
def test_a_message_never_contains_embedded_newlines() -> None:
    indented = b'{\r\n  "jsonrpc": "2.0",\n\t"method": "a\\nb"\r}'

    assert b'{    "jsonrpc": "2.0", \t"method": "a\\nb" }\n' == frame(indented)


@given(lines=st.lists(st.binary(min_size=1).filter(lambda line: bool(line.strip()) and line[-1:] != b"\r")))
def test_what_was_framed_is_found_again(lines: list[bytes]) -> None:
    single = [line for line in lines if b"\n" not in line and b"\r" not in line]

    assert single == LineFramer().feed(b"".join(frame(line) for line in single))
