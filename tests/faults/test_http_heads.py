"""Heads of requests that are slow, long, ambiguous or no heads at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.http_raw_client import (
    BOTH,
    ECHO,
    SAID,
    Line,
    called,
    head,
    initialize,
    joined,
    mirrored,
    posted,
)
from tests.faults.http_server_process import MEGABYTE, House

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds"),
]


# --- slow


@pytest.mark.slow
def test_a_connection_on_which_nothing_is_said_is_given_up(house: House) -> None:
    line = house.line()

    assert 408 == line.reply().status
    assert line.is_closed()


@pytest.mark.slow
def test_a_head_that_never_ends_is_given_up_however_steadily_it_comes(house: House) -> None:
    line = house.line()
    line.send(b"GET /mcp HTTP/1.1\r\nX: ")

    assert 408 == line.trickle(b"a").status
    assert line.is_closed()


@pytest.mark.slow
def test_the_second_head_on_a_connection_is_given_up_like_the_first(house: House) -> None:
    line = house.line()
    line.send(called("echo", text="hi") + b"GET /mc")

    assert 200 == line.reply().status
    assert 408 == line.reply().status
    assert line.is_closed()


@pytest.mark.slow
def test_a_head_that_comes_byte_by_byte_in_time_is_served(house: House) -> None:
    line = house.line()
    for each in head("GET", "/nowhere"):
        line.send(bytes([each]))

    assert 404 == line.reply().status


# --- long


@pytest.mark.parametrize("piece", [1000, 300_000], ids=["in pieces", "at once"])
@pytest.mark.parametrize(
    "begin",
    ["GET /mcp?", "GET /mcp HTTP/1.1\r\nX: ", "GET /mcp HTTP/1.1\r\n", "G"],
    ids=["target", "value", "name", "method"],
)
def test_a_head_over_its_bound_is_refused_and_its_connection_closed(house: House, begin: str, piece: int) -> None:
    before = house.held()
    line = house.line()
    line.send(begin.encode())
    line.flood(b"a" * piece, 300_000 // piece)

    assert line.rest()[:13] in (b"HTTP/1.1 431 ", b"HTTP/1.1 400 ", b"")
    assert house.held() - before < 8 * MEGABYTE


def test_a_head_of_many_lines_over_the_bound_is_refused(house: House) -> None:
    line = house.line()
    line.send(b"GET /mcp HTTP/1.1\r\n")
    sent = line.flood(b"A: b\r\n" * 100, 10_000)

    assert sent < 10_000
    assert line.rest()[:13] in (b"HTTP/1.1 431 ", b"")


@pytest.mark.parametrize("is_second", [False, True], ids=["first", "behind another"])
@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("/mcp", ["X: " + "a" * 70_000]),
        ("/mcp", [f"X-{each}: {'a' * 60}" for each in range(1000)]),
        ("/mcp?" + "a" * 70_000, []),
    ],
    ids=["one header", "many headers", "target"],
)
def test_a_whole_head_over_the_bound_is_refused(
    house: House, target: str, lines: list[str], *, is_second: bool
) -> None:
    line = house.line()
    data = posted(ECHO, *mirrored("tools/call", "echo"), *lines, target=target)
    if is_second:
        line.send(called("echo"))
        assert 200 == line.reply().status
    line.send(data)

    assert 431 == line.reply().status
    assert line.is_closed()


def test_a_head_just_below_the_bound_is_served(house: House) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo"), "X: " + "a" * 60_000))

    assert SAID in line.reply().body


# --- ambiguous

POST = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"
SECOND = "GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"
LENGTH = f"Content-Length: {len(ECHO)}\r\n"
MIRRORED = "".join(f"{each}\r\n" for each in mirrored("tools/call", "echo"))

AMBIGUOUS = {
    "length and chunks": f"{POST}{LENGTH}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "chunks and length": f"{POST}Transfer-Encoding: chunked\r\n{LENGTH}\r\n0\r\n\r\n{SECOND}",
    "two lengths": f"{POST}Content-Length: 0\r\n{LENGTH}\r\n{SECOND}",
    "one length twice": f"{POST}Content-Length: 0\r\nContent-Length: 0\r\n\r\n{SECOND}",
    "a list of lengths": f"{POST}Content-Length: 0, 0\r\n\r\n{SECOND}",
    "a signed length": f"{POST}Content-Length: +0\r\n\r\n{SECOND}",
    "a negative length": f"{POST}Content-Length: -1\r\n\r\n{SECOND}",
    "a length in hexadecimal": f"{POST}Content-Length: 0x10\r\n\r\n{SECOND}",
    "an endless length": f"{POST}Content-Length: {'9' * 40}\r\n\r\n{SECOND}",
    "chunks, but not at the end": f"{POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{SECOND}",
    "nearly chunks": f"{POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{SECOND}",
    "chunks twice": f"{POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}",
    "a chunk of negative size": f"{POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n{SECOND}",
    "a chunk of endless size": f"{POST}Transfer-Encoding: chunked\r\n\r\n{'f' * 40}\r\nx\r\n0\r\n\r\n{SECOND}",
    "a chunk without its end": f"{POST}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n{SECOND}",
    "a chunk after a bare line feed": f"{POST}Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n{SECOND}",
    "whitespace before the colon": f"{POST}Content-Length : {len(ECHO)}\r\n\r\n{SECOND}",
    "whitespace before the name": f"{POST} Content-Length: 0\r\n\r\n{SECOND}",
    "a folded line": f"{POST}X: a\r\n b\r\n{LENGTH}\r\n{SECOND}",
    "a folded name": f"{POST}X\r\n : b\r\n\r\n{SECOND}",
    "NUL in a value": f"{POST}Mcp-Name: a\0b\r\n\r\n{SECOND}",
    "NUL in a name": f"{POST}Mcp\0-Name: a\r\n\r\n{SECOND}",
    "CR in a value": f"{POST}Mcp-Name: a\rb\r\n\r\n{SECOND}",
    "a bare line feed": f"{POST}Mcp-Name: a\nX: b\r\n\r\n{SECOND}",
    "bare line feeds alone": f"{POST}{LENGTH}\r\n{SECOND}".replace("\r\n", "\n"),
    "a control character": f"{POST}Mcp-Name: a\x01b\r\n\r\n{SECOND}",
    "no name": f"{POST}: a\r\n\r\n{SECOND}",
    "no colon": f"{POST}Mcp-Name\r\n\r\n{SECOND}",
    "brackets in a name": f"{POST}Mcp[Name]: a\r\n\r\n{SECOND}",
    "no target": f"POST HTTP/1.1\r\n\r\n{SECOND}",
    "two targets": f"POST /mcp /x HTTP/1.1\r\nHost: a\r\n\r\n{SECOND}",
    "another version": f"POST /mcp HTTP/9.9\r\nHost: a\r\n\r\n{SECOND}",
    "an unknown method": f"MCP /mcp HTTP/1.1\r\nHost: a\r\n\r\n{SECOND}",
    "a tunnel": f"CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n\r\n{SECOND}",
    "TLS": "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + SECOND,
    "HTTP/2": f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{SECOND}",
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_not_read_at_all_and_nothing_behind_it_is(house: House, text: str) -> None:
    line = house.line()
    line.send(text.encode("latin-1"))
    found = line.rest()

    assert found.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ", b"HTTP/1.1 405 "))
    assert 1 == found.count(b"HTTP/1.1 ")
    assert b"endpoint is" not in found  # what is said at another path


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: localhost", "Host: localhost"],
        ["Host: localhost", "Host: evil.example"],
        ["Host: evil.example", "Host: localhost"],
        ["Host: localhost, evil.example"],
        ["Host: localhost\t,"],
    ],
)
@pytest.mark.parametrize("target", ["/mcp", "/sse", "/messages"])
def test_two_hosts_are_refused(house: House, lines: list[str], target: str) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo"), *lines, target=target, host=None))

    assert 400 == line.reply().status


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize("value", ["echo", "tools/call", "2026-07-28", "other", ""])
def test_a_header_of_mcp_that_is_there_twice_is_refused_whatever_it_says(house: House, name: str, value: str) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo"), f"{name.lower()}: {value}"))
    found = line.reply()

    assert (400, True) == (found.status, b"-32020" in found.body or b"-32022" in found.body)


@pytest.mark.parametrize(
    "lines",
    [
        ["Mcp-Session-Id: {0}", "Mcp-Session-Id: {0}"],
        ["Mcp-Session-Id: {0}", "Mcp-Session-Id: x"],
        ["Mcp-Session-Id: {0}, {0}"],
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_two_session_ids_are_the_id_of_no_session(house: House, lines: list[str], method: str) -> None:
    line = house.line()
    own = joined(line)[0].partition(": ")[2]
    twice = [each.format(own) for each in lines]
    if method == "POST":
        line.send(posted(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', *twice))
    else:
        line.send(head(method, "/mcp", "Accept: text/event-stream", *twice))

    assert 404 == line.reply().status


# --- elsewhere


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/mcp", 200),
        ("/mcp/", 200),
        ("/%6dcp", 200),
        ("/mcp?x=/mcp", 200),
        ("http://localhost/mcp", 200),
        ("/mcp%2f", 200),
        ("//mcp", 404),
        ("/mcp/../mcp", 404),
        ("/x/../mcp", 404),
        ("/mcp/.", 404),
        ("/mcp%00", 404),
        ("/mcp%0d%0a", 404),
        ("/mcp;x", 404),
        ("/MCP", 404),
        ("/mcp\\", 404),
        ("/%2e%2e/mcp", 404),
        ("/%256dcp", 404),
        ("/%c0%afmcp", 404),
        ("/%ff", 404),
        ("/mcp/x", 404),
        ("http://localhost", 400),
        ("*", 404),
        ("mcp", 400),
        ("?/mcp", 400),
    ],
)
def test_one_path_is_the_endpoint_however_it_is_written_and_no_other_is(house: House, target: str, status: int) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo"), target=target))
    found = line.reply()

    assert (status, status == 200) == (found.status, SAID in found.body)


def test_an_absolute_target_does_not_stand_for_the_host(house: House) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo"), target="http://localhost/mcp", host="evil.example"))

    assert 403 == line.reply().status


def test_a_client_of_http_1_0_is_served_and_hung_up_on(house: House) -> None:
    line = house.line()
    line.send(posted(ECHO, *mirrored("tools/call", "echo")).replace(b"HTTP/1.1", b"HTTP/1.0", 1))

    assert SAID in line.reply().body
    assert line.is_closed()


@pytest.mark.parametrize(
    "lines",
    [
        [
            "Connection: Upgrade, HTTP2-Settings",
            "Upgrade: h2c",
            "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
        ],
        ["Upgrade: websocket", "Connection: keep-alive, upgrade"],
        ["Connection: upgrade", "Upgrade: x"],
    ],
)
def test_another_protocol_is_declined_by_an_answer_in_this_one(house: House, lines: list[str]) -> None:
    line = house.line()
    whole = posted(ECHO, *mirrored("tools/call", "echo"), *lines)
    for each in (whole, whole):
        line.send(each)
        assert SAID in line.reply().body
    line.send(whole[:-10])
    line.send(whole[-10:] + whole)

    assert SAID in line.reply().body
    assert SAID in line.reply().body


def test_another_protocol_is_declined_however_often_it_is_asked_for_at_once(house: House) -> None:
    line = house.line()
    line.flood(posted(ECHO, *mirrored("tools/call", "echo"), "Connection: upgrade", "Upgrade: x") * 1000, 1)

    assert line.rest().count(b"HTTP/1.1 ") <= 200


# --- many, and before a body


def test_empty_lines_before_a_request_are_ignored(house: House) -> None:
    line = house.line()
    line.send(b"\r\n" * 3)
    other = house.line()
    other.send(called("echo", text="said"))
    assert 200 == other.reply().status  # so the empty lines have been read by themselves
    line.send(called("echo", text="said"))

    assert 200 == line.reply().status


def test_whoever_asks_for_permission_to_send_a_body_learns_first_that_it_is_refused(house: House) -> None:
    line = house.line()
    line.send(head("POST", "/mcp", "Content-Type: text/plain", "Content-Length: 1000000", "Expect: 100-continue"))
    assert line._until(b"\r\n").startswith(b"HTTP/1.1 415 ")

    line = house.line()
    own = ["Content-Type: application/json", f"Accept: {BOTH}", f"Content-Length: {len(ECHO)}"]
    line.send(head("POST", "/mcp", *own, *mirrored("tools/call", "echo"), "Expect: 100-continue"))
    assert line._until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
    line.send(ECHO)
    assert SAID in line.reply().body


@pytest.mark.slow
def test_hundreds_of_half_heads_keep_nobody_from_being_served(house: House) -> None:
    lines = [Line(house.port) for _ in range(300)]
    for each in lines:
        each.send(b"POST /mcp HTTP/1.1\r\nHost: loc")
    line = house.line()
    line.send(posted(initialize()))

    assert 200 == line.reply().status
    assert {408} == {each.reply().status for each in lines}
    for each in lines:
        each.close()
