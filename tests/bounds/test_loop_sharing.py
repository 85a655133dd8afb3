"""One client with many connections, or a batch, does not keep the event loop to itself."""

from __future__ import annotations

import os
import select
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.bounds.attacked_processes import MIB
from tests.bounds.hostile_messages import batch
from tests.bounds.raw_sessions import joined
from tests.faults.http_raw_client import Line, called, calling, head, mirrored, posted, request
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims
    from tests.faults.http_raw_client import Reply

pytestmark = pytest.mark.slow

OTHER = "127.0.0.2"  # the address of another client
ENOUGH = 500  # calls of one client; the rate limit refuses more than 1,000 at once


def readable(*lines: Line) -> int:
    return len(select.select([each.socket for each in lines], [], [], 0)[0])


def test_a_batch_for_large_resources_lets_others_in_between(victims: Victims) -> None:
    http = victims.http()
    line, own, _ = joined(http, "2025-03-26")
    with victims.watch(http) as seen, ExitStack() as stack:
        honest = Line(http.port)
        stack.callback(honest.close)
        line.send(posted(batch(300, "resources/read", f'{{"uri":"big://{MIB}"}}'), *own))
        for number in range(10):
            honest.send(called("echo", number, text="there"))
            assert honest.reply().json["result"]["content"][0]["text"] == "there"
        assert not readable(line), "the batch was answered before the other client's calls"
        assert b'"id":299' in line.reply().body
    assert seen.grown < 64 * MIB


def test_many_connections_of_one_client_let_another_in_between(victims: Victims) -> None:
    http = victims.http()
    with ExitStack() as stack:
        honest = Line(http.port, source=OTHER)
        greedy = [Line(http.port) for _ in range(100)]
        for each in (honest, *greedy):
            stack.callback(each.close)
        for each in greedy:
            each.send(called("big", size=3 * MIB))
        before = readable(*greedy)
        honest.send(called("echo", text="there"))
        assert honest.reply().json["result"]["content"][0]["text"] == "there"
        answered = readable(*greedy) - before
    assert before < 80, "the server answered before all had asked; ask more often"
    assert answered < 10, f"{answered} of {100 - before} were answered first"


def test_functions_that_report_in_a_loop_let_another_in_between(victims: Victims) -> None:
    with asked_often(victims.http(), called("report", count=5000), 60) as (honest, greedy):
        assert replies_meanwhile(honest, greedy) > 200


def test_changes_that_many_sessions_hear_of_let_another_in_between(victims: Victims) -> None:
    http = victims.http()
    for _ in range(1500):
        joined(http)[0].close()
    with asked_often(http, called("change", count=100), 60) as (honest, greedy):
        assert replies_meanwhile(honest, greedy) > 100


def test_a_slow_plain_function_of_one_client_does_not_keep_another_from_threads(victims: Victims) -> None:
    with asked_often(victims.http(), called("drowse", seconds=0.2), 400) as (honest, greedy):
        honest.send(called("drowse", seconds=0))
        assert honest.reply().json["result"]["content"][0]["text"] == "awake"
        assert readable(*greedy) < 100


def test_many_busy_connections_of_one_client_let_a_new_one_of_another_in(victims: Victims) -> None:
    http = victims.http(http={"rate_limit": None})
    with ExitStack() as stack:
        os.kill(http.popen.pid, signal.SIGSTOP)  # so that all requests have arrived before the first is read
        for _ in range(600):
            greedy = Line(http.port)
            stack.callback(greedy.close)
            greedy.send(called("count") * 20)
        honest = Line(http.port, source=OTHER)
        stack.callback(honest.close)
        honest.send(called("count"))
        os.kill(http.popen.pid, signal.SIGCONT)
        answered = int(honest.reply().json["result"]["content"][0]["text"])
    assert answered < 1000, f"{answered} of 12,000 greedy requests were answered first"


def test_small_requests_of_many_values_let_another_in_between(victims: Victims) -> None:
    answers = {f"k{number}": {"action": "accept"} for number in range(500)}
    params = {"name": "echo", "arguments": {"text": "there"}, "requestState": "unknown", "inputResponses": answers}
    costly = posted(request(1, "tools/call", params), *mirrored("tools/call", "echo"))
    with asked_often(victims.http(), costly, 400) as (honest, greedy):
        assert replies_meanwhile(honest, greedy) > 30


def test_streams_that_are_resumed_let_another_in_between(victims: Victims) -> None:
    http = victims.http()
    line, own, _ = joined(http)
    line.send(posted(calling("fill", 1, "t", count=300, size=60_000), *own))
    line.head()
    first = line.events()[0]["id"]
    while b"said" not in line.chunk():
        pass
    resume = head("GET", "/mcp", "Accept: text/event-stream", f"Last-Event-ID: {first}", *own)
    with ExitStack() as stack:
        honest = Line(http.port, source=OTHER)
        greedy = [Line(http.port) for _ in range(100)]
        for each in (honest, *greedy):
            stack.callback(each.close)
        os.kill(http.popen.pid, signal.SIGSTOP)  # so that all requests have arrived before the first is read
        for each in greedy:
            each.send(resume)
        os.kill(http.popen.pid, signal.SIGCONT)
        for _ in range(5):
            honest.send(called("echo", text="there"))
            assert honest.reply().json["result"]["content"][0]["text"] == "there"
        assert readable(*greedy) < 60


@contextmanager
def asked_often(http: Http, request: bytes, times: int) -> Generator[tuple[Line, list[Line]]]:
    """Send *request* so many *times* at once; yield the connection of another client, and those of the requests."""
    with ExitStack() as stack:
        honest = Line(http.port, source=OTHER)
        greedy = [Line(http.port) for _ in range(times)]
        for each in (honest, *greedy):
            stack.callback(each.close)
        for each in greedy:
            each.send(request)
        yield honest, greedy


def replies_meanwhile(honest: Line, greedy: list[Line]) -> int:
    """Return how many calls of *honest*, one after the other, are answered before the last of *greedy*, up to 500."""
    count = 0
    while readable(*greedy) < len(greedy) and count < ENOUGH:
        honest.send(called("echo", text="there"))
        assert honest.reply().json["result"]["content"][0]["text"] == "there"
        count += 1
    return count


def test_heads_that_never_end_have_a_bound_which_addresses_share(victims: Victims) -> None:
    http = victims.http()
    unfinished = head("GET", "/mcp", *["X: " + "a" * 1000] * 48)[:-2]
    with victims.watch(http) as seen, ExitStack() as stack:
        greedy = [Line(http.port) for _ in range(800)]
        for each in greedy:
            stack.callback(each.close)
            each.send(unfinished)
        honest = Line(http.port, source=OTHER)
        stack.callback(honest.close)
        request = called("echo", text="there")
        honest.send(request[:20])
        honest.send(request[20:])
        assert honest.reply().json["result"]["content"][0]["text"] == "there"
        rest = {each.socket: each for each in greedy}
        refused: list[Reply] = []
        while len(refused) <= 100:  # a busy server has not read all heads yet
            ready = select.select(list(rest), [], [], PATIENCE_SECONDS)[0]
            assert ready, f"only {len(refused)} are refused"
            refused += [rest.pop(each).reply() for each in ready]
    assert {(each.status, bytes(each.body)) for each in refused} == {
        (503, b"too many request heads are incomplete or wait for an answer")
    }
    assert seen.grown < 64 * MIB


def test_a_head_has_few_headers(victims: Victims) -> None:
    http = victims.http()
    for count, is_complete in ((500, True), (500, False), (150, True)):
        request = called("echo", text="there")
        first, rest = request.split(b"\r\n", 1)
        line = Line(http.port)
        data = b"\r\n".join([first, *(b"x%d:" % each for each in range(count)), rest])
        line.send(data if is_complete else data.partition(b"\r\n\r\n")[0])
        reply = line.reply()
        assert reply.status == (200 if count < 200 else 431)
        assert count < 200 or reply.body == b"the request has more than 200 headers and trailers"
        line.close()


def test_requests_that_wait_behind_another_are_bounded_and_answered(victims: Victims) -> None:
    http = victims.http()
    slow, quick = called("drowse", seconds=0.5), called("echo", text="there")
    with victims.watch(http) as seen, ExitStack() as stack:
        for _ in range(600):
            line = Line(http.port)
            stack.callback(line.close)
            long = quick.replace(b"\r\n", b"\r\n" + b"".join(b"x%d: %060d\r\n" % (each, 0) for each in range(150)), 1)
            line.send(slow + long * 5)
        honest = Line(http.port, source=OTHER)
        stack.callback(honest.close)
        honest.send(quick * 5)
        assert ["there"] * 5 == [honest.reply().json["result"]["content"][0]["text"] for _ in range(5)]
    assert seen.grown < 128 * MIB


@pytest.mark.parametrize(("chunks", "status"), [(900, 200), (2000, 400)])
def test_a_body_of_tiny_chunks_is_refused(victims: Victims, chunks: int, status: int) -> None:
    http = victims.http()
    request = called("echo", text="a" * chunks)
    first, _, body = request.partition(b"\r\n\r\n")
    lines = [each for each in first.split(b"\r\n") if not each.startswith(b"Content-Length")]
    tiny, rest = body[:chunks], body[chunks:]
    framed = b"".join(b"1\r\n%c\r\n" % each for each in tiny) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest)
    line = Line(http.port)
    line.send(b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", framed]))
    reply = line.reply()
    assert reply.status == status
    if status == 400:
        assert b"chunks" in reply.body
    line.close()
