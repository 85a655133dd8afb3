"""Clients that ask, and then read slowly or nothing of what they are told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.http_raw_client import (
    Line,
    called,
    calling,
    head,
    initialize,
    joined,
    listened,
    message,
    posted,
    wait,
)
from tests.faults.http_server_process import MEGABYTE, House
from tests.faults.shared_http_servers import SHORT, opened

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds"),
]


@pytest.fixture(scope="module")
def running() -> Generator[House]:
    with opened(**SHORT, limits={"max_buffered_bytes": 100_000}) as made:
        yield made


# Up to 4 MiB of an answer that nobody reads may leave the process (the most of net.ipv4.tcp_wmem): then it is given.
MORE_THAN_LINUX_TAKES = 6_000_000


def narrow(house: House) -> Line:
    """Return a connection whose client takes little at a time."""
    line = Line(house.port, 4096)
    house._lines.append(line)
    return line


@pytest.mark.slow
def test_whoever_does_not_read_a_long_answer_is_hung_up_on(house: House) -> None:
    before = house.held("VmHWM")
    lines = [narrow(house) for _ in range(10)]
    for each in lines:
        each.send(called("big", size=MORE_THAN_LINUX_TAKES))
    house.until(lambda: not house.holds(*lines))

    assert house.held("VmHWM") - before < 128 * MEGABYTE


@pytest.mark.slow
def test_whoever_asks_on_and_reads_nothing_is_hung_up_on(house: House) -> None:
    line = narrow(house)
    line.flood(called("big", size=300_000), 1000)
    house.until(lambda: not house.holds(line))


@pytest.mark.parametrize("era", ["stateless", "handshake"])
@pytest.mark.slow
def test_whoever_does_not_read_a_stream_is_hung_up_on_and_stops_its_handler(house: House, era: str) -> None:
    """What a handler of a session says without a reader goes where its client can have it later."""
    before = house.held("VmHWM")
    lines: list[Line] = []
    for _ in range(10):
        line = narrow(house)  # one after the other: on a busy machine, the time for a head is short
        lines.append(line)
        if era == "handshake":
            own = joined(line)
            line.send(posted(calling("fill", token="p", count=100, size=100_000), *own))  # noqa: S106 (of progress)
        else:
            line.send(called("fill", meta={"progressToken": "p"}, count=100, size=100_000))
    house.until(lambda: not house.holds(*lines))

    # Ten megabytes of each, of which the store keeps no more than 64 of all.
    assert house.held("VmHWM") - before < (32 if era == "stateless" else 160) * MEGABYTE


@pytest.mark.slow
def test_whoever_opens_streams_and_reads_none_of_them_keeps_nobody_from_being_told(house: House) -> None:
    """What the system holds for a client has room for more than these few changes."""
    lines: list[Line] = []
    for _ in range(20):
        lines.append(narrow(house))  # one after the other: on a busy machine, the time for a head is short
        lines[-1].send(listened())
        assert 200 == lines[-1].head().status
        assert lines[-1].events()
    other = house.line()
    for _ in range(50):
        other.send(called("grow"))
        assert "result" in other.reply().json
    for each in lines:
        assert "list_changed" in str(each.events())


@pytest.mark.slow
def test_the_client_of_a_stream_of_old_cannot_have_us_say_more_than_it_reads(house: House) -> None:
    before = house.held("VmHWM")
    stream = narrow(house)
    stream.send(head("GET", "/sse", "Accept: text/event-stream"))
    stream.head()
    (endpoint,) = stream.events()
    line = house.line()
    statuses = []
    for each in range(200):
        line.send(posted(message("ping", "x" * 300_000 + str(each)), target=endpoint["data"]))
        statuses.append(line.reply().status)

    assert {202, 503} <= set(statuses) <= {202, 404, 503}  # no such stream, once its client was hung up on
    assert house.held("VmHWM") - before < 16 * MEGABYTE
    stream.reset()


@pytest.mark.slow
def test_a_slow_reader_gets_all_of_it(house: House) -> None:
    """It takes several times as long as a client may read nothing."""
    line = house.line()
    line.send(called("big", size=24_000_000))  # more than the system holds for a client
    found = bytearray()
    for _ in range(40):
        wait(SHORT["http"]["write_seconds"] / 10)
        until = len(found) + 400_000
        while len(found) < until:
            data = line.socket.recv(400_000)
            assert data
            found += data
    while not found.endswith(b"}") and (data := line.socket.recv(1 << 20)):
        found += data

    assert 24_000_000 <= found.count(b"x")


def test_a_client_that_has_read_nothing_of_its_last_answer_does_not_keep_its_connection(house: House) -> None:
    """As much as it is, it fits into what the system holds for a client; then nothing waits here."""
    lines = [narrow(house) for _ in range(50)]
    for each in lines:
        each.send(called("big", size=60_000).replace(b"POST /mcp HTTP/1.1", b"POST /mcp HTTP/1.0", 1))
    house.until(lambda: not house.holds(*lines))


@pytest.mark.parametrize("begin", [b"", posted(initialize()), called("wait"), listened(), called("echo")[:-5]])
def test_a_client_that_crashes_leaves_nothing(house: House, begin: bytes) -> None:
    lines = [Line(house.port) for _ in range(50)]
    for each in lines:
        each.send(begin)
    for each in lines:
        each.reset()
    # that nothing is left is seen to for every test here
