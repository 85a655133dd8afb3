"""Bodies of requests that are slow, long, not as long as they say, or without an end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpgen import RequestRefused, connect_sync
from tests.faults.http_raw_client import BOTH, ECHO, SAID, Line, called, head, mirrored, posted
from tests.faults.http_server_process import MEGABYTE, House
from tests.faults.shared_http_servers import SHORT, opened, unharmed

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds"),
]

JSON = ("Content-Type: application/json", f"Accept: {BOTH}")
CHUNKED = "Transfer-Encoding: chunked"
MIRRORED = mirrored("tools/call", "echo")
HELD = 16 * MEGABYTE  # what may be held of bodies that are not complete


@pytest.fixture(scope="module")
def running() -> Generator[House]:
    given = {**SHORT, "http": {**SHORT["http"], "max_open_bytes": HELD}}
    with opened(**given) as made:
        yield made


@pytest.fixture(scope="module")
def patient() -> Generator[House]:
    """A server with the usual times, for bodies that a busy machine may not bring within those of `running`."""
    with opened() as made:
        yield made


@pytest.fixture
def patient_house(patient: House) -> Generator[House]:
    with unharmed(patient):
        yield patient


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """Return one chunk of a body."""
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


# --- slow


@pytest.mark.parametrize("begin", [b"", b"{", ECHO[:-1]], ids=["nothing", "one byte", "all but one"])
@pytest.mark.parametrize("framing", [f"Content-Length: {len(ECHO)}", CHUNKED])
@pytest.mark.parametrize("target", ["/mcp", "/messages"])
@pytest.mark.slow
def test_a_body_that_does_not_come_is_given_up(house: House, target: str, framing: str, begin: bytes) -> None:
    line = house.line()
    data = chunk(begin) if framing == CHUNKED and begin else begin
    line.send(head("POST", target, *JSON, *MIRRORED, framing) + data)

    assert 408 == line.reply().status
    assert line.is_closed()


@pytest.mark.slow
def test_a_body_that_never_ends_is_given_up_however_steadily_it_comes(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, "Content-Length: 4000000"))

    assert 408 == line.trickle(b" " * 256).status  # shorter chunks are refused for another reason


@pytest.mark.slow
def test_a_body_that_comes_byte_by_byte_in_time_is_served(patient_house: House) -> None:
    line = patient_house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED))
    for each in ECHO:
        line.send(chunk(bytes([each])))
    line.send(b"0\r\n\r\n")

    assert SAID in line.reply().body


# --- long


@pytest.mark.parametrize("target", ["/mcp", "/messages"])
@pytest.mark.parametrize("length", [4 * MEGABYTE + 1, 10**12, 10**18])
def test_a_body_that_says_that_it_is_too_long_is_refused_before_it_comes(
    house: House, target: str, length: int
) -> None:
    line = house.line()
    line.send(head("POST", target, *JSON, *MIRRORED, f"Content-Length: {length}"))

    assert 413 == line.reply().status
    assert line.is_closed()


def test_whoever_sends_all_of_a_body_that_is_too_long_still_learns_why_it_was_refused(patient_house: House) -> None:
    line = patient_house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, "Content-Length: 8000000"))
    line.flood(b" " * 80_000, 100)

    assert 413 == line.reply().status


def test_a_client_learns_that_its_arguments_are_too_long(patient_house: House) -> None:
    url = f"http://127.0.0.1:{patient_house.port}/mcp"
    with connect_sync(url) as client:
        for size in (4 * MEGABYTE, 5 * MEGABYTE, 20 * MEGABYTE):
            with pytest.raises(RequestRefused, match="the body is longer than"):
                client.call_tool("echo", {"text": "x" * size})


@pytest.mark.parametrize("size", [400, 1_000_000], ids=["small chunks", "large chunks"])
def test_a_body_without_a_length_is_refused_when_it_is_too_long_and_takes_bounded_memory(
    patient_house: House, size: int
) -> None:
    before = patient_house.held("VmHWM")
    line = patient_house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED))
    sent = line.flood(chunk(b" " * size) * (100_000 // size + 1), 1000)

    assert sent < 1000
    assert 413 == line.reply().status
    assert patient_house.held("VmHWM") - before < 24 * MEGABYTE


@pytest.mark.slow
def test_incomplete_bodies_hold_no_more_than_requests_may(house: House) -> None:
    before = house.held("VmHWM")
    lines = [Line(house.port) for _ in range(100)]
    for each in lines:
        each.send(head("POST", "/mcp", *JSON, *MIRRORED, "Content-Length: 3000000"))
    for each in lines:
        each.flood(b" " * 2_900_000, 1)
    found = [each.reply().status for each in lines]
    for each in lines:
        each.close()

    # On a busy machine, each makes room for a later one before its time is over.
    assert {503} <= set(found) <= {408, 503}
    assert house.held("VmHWM") - before < HELD + 32 * MEGABYTE


# --- not as long as they say


def test_what_comes_behind_a_body_is_no_part_of_it(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, "Content-Length: 2") + b"{}" + ECHO)
    found = line.rest()

    assert 1 <= found.count(b"HTTP/1.1 400 ") <= 2
    assert SAID not in found


@pytest.mark.slow
def test_a_body_that_is_shorter_than_it_says_is_no_request(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, f"Content-Length: {len(ECHO) + 1}") + ECHO)

    assert 408 == line.reply().status


def test_a_body_that_ends_with_its_connection_is_no_request(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, f"Content-Length: {len(ECHO) + 1}") + ECHO)
    line.close()
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED) + chunk(ECHO))
    line.reset()


def test_a_chunk_that_is_longer_than_it_says_ends_the_connection(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED) + b"1\r\n" + ECHO + b"\r\n0\r\n\r\n")
    found = line.rest()

    assert found.startswith(b"HTTP/1.1 400 ")
    assert SAID not in found


# --- beside the body


@pytest.mark.parametrize("target", ["/mcp", "/nowhere"], ids=["awaited", "refused"])
@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"0\r\n", b"Mcp-Name: other\r\n" * 1000),
        (b"0\r\nMcp-Name: ", b"x" * 10_000),
        (b"1;", b"x" * 10_000),
        (b"1;a=", b"x;a=" * 3000),
        (b"0" * 1000, b"0" * 10_000),
    ],
    ids=["trailers", "a trailer", "an extension", "extensions", "zeros"],
)
def test_what_is_neither_head_nor_body_is_bounded(house: House, target: str, begin: bytes, more: bytes) -> None:
    before = house.held("VmHWM")
    line = house.line()
    line.send(head("POST", target, *JSON, *MIRRORED, CHUNKED))
    sent = line.flood(begin, 1)
    sent = line.flood(more, 3000)

    assert sent < 3000
    assert house.held("VmHWM") - before < 8 * MEGABYTE


def test_the_refusal_of_long_trailers_names_them(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED) + b"0\r\nX: " + b"x" * 400_000)
    reply = line.reply()

    assert 431 == reply.status
    assert b"the trailers or the chunk extensions of the body have more than 64 KiB" in reply.body


@pytest.mark.parametrize("count", [150, 5000])
def test_a_body_has_few_trailers(house: House, count: int) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED) + chunk(ECHO) + b"0\r\n" + b"x:y\r\n" * count)
    if count < 200:
        line.send(b"\r\n")
        assert SAID in line.reply().body
    else:  # they have 25 kB, which would become a megabyte in memory
        reply = line.reply()
        assert (reply.status, bytes(reply.body)) == (431, b"the request has more than 200 headers and trailers")


def test_a_trailer_is_no_header(house: House) -> None:
    line = house.line()
    trailers = b"Mcp-Name: echo\r\nHost: evil.example\r\n\r\n"
    line.send(head("POST", "/mcp", *JSON, *MIRRORED, CHUNKED) + chunk(ECHO) + b"0\r\n" + trailers)
    assert SAID in line.reply().body
    line.send(head("POST", "/mcp", *JSON, *MIRRORED[:-1], CHUNKED) + chunk(ECHO) + b"0\r\n" + trailers)

    assert 400 == line.reply().status


# --- behind the answer


def test_a_small_body_behind_a_refusal_costs_the_connection_nothing(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/nowhere", f"Content-Length: {len(ECHO)}"))
    assert 404 == line.reply().status
    line.send(ECHO + called("echo", text="hi"))

    assert SAID in line.reply().body


@pytest.mark.parametrize("framing", ["Content-Length: 1000000000", CHUNKED])
def test_a_body_without_an_end_behind_a_refusal_is_not_read_for_long(house: House, framing: str) -> None:
    line = house.line()
    line.send(head("POST", "/nowhere", framing))
    assert 404 == line.reply().status
    sent = line.flood(chunk(b"x" * 100_000), 5000)

    assert sent < 5000


@pytest.mark.parametrize("more", [b"", b"x"])
@pytest.mark.slow
def test_a_body_that_does_not_come_behind_a_refusal_is_not_waited_for(house: House, more: bytes) -> None:
    line = house.line()
    line.send(head("POST", "/nowhere", "Content-Length: 1000"))
    assert 404 == line.reply().status
    line.send(more)

    assert line.is_closed()


def test_a_get_with_a_body_is_answered_like_one_without(house: House) -> None:
    line = house.line()
    line.send(
        head("GET", "/mcp", "Accept: text/event-stream", "Content-Length: 5") + b"12345" + posted(ECHO, *MIRRORED)
    )

    assert 400 == line.reply().status
    assert SAID in line.reply().body
