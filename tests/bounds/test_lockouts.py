"""One client takes all that there is; an honest client from another address is admitted nevertheless."""

from __future__ import annotations

import json
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.bounds.attacked_processes import HONEST, MIB, WORKERS, Http, names_a_limit, split
from tests.bounds.hostile_messages import ELICITATION, call
from tests.bounds.raw_sessions import joined, post_all, stateless
from tests.faults.http_raw_client import (
    Closed,
    Line,
    called,
    calling,
    head,
    initialize,
    listened,
    message,
    posted,
)
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow


def is_admitted(http: Http) -> str:
    """Start a session as an honest client, and use it; return what it was refused, if it was."""
    line = Line(http.port, source=HONEST)
    try:
        line.send(posted(initialize()))
        begun = line.reply()
        if begun.status != 200:
            return f"{begun.status} {begun.body!r}"
        own = (f"Mcp-Session-Id: {begun.headers['mcp-session-id']}", "MCP-Protocol-Version: 2025-11-25")
        for body, status in ((message("notifications/initialized"), 202), (calling("echo", 1, text="hi"), 200)):
            line.send(posted(body, *own))
            said = line.reply()
            if said.status != status or b"error" in said.body:
                return f"{said.status} {said.body!r}"
        return ""
    finally:
        line.close()


def test_ten_thousand_sessions_in_use_do_not_keep_another_client_out(victims: Victims) -> None:
    http = victims.http(**split("http", max_sessions=10_000))
    replies, used = [], []
    with victims.watch(http) as seen:
        for _ in range(20):
            begun = post_all(http, [posted(initialize())] * 500)
            ids = [each.headers["mcp-session-id"] for each in begun if "mcp-session-id" in each.headers]
            replies += begun
            used += post_all(http, [posted(message("ping", 1), f"Mcp-Session-Id: {each}") for each in ids])

        assert "" == is_admitted(http)
    assert all(names_a_limit(each.body) for each in replies if each.status != 200)
    assert seen.kept < 256 * MIB
    assert [] == seen.losses


def test_a_session_that_an_honest_client_uses_survives_ten_thousand_others(victims: Victims) -> None:
    http = victims.http(**split("http", max_sessions=10_000))
    line, own, _ = joined(http, source=HONEST)
    with victims.watch(http) as seen:
        for number in range(24):
            post_all(http, [posted(initialize())] * 500)
            line.send(posted(message("ping", number), *own))

            assert 200 == line.reply().status
    assert [] == seen.losses


def test_a_thousand_parked_calls_do_not_keep_another_client_out(victims: Victims) -> None:
    http = victims.http(**split("limits", max_waiting=1000))
    asking = stateless(call("ask", meta=ELICITATION))
    with victims.watch(http) as seen:
        replies = post_all(http, [asking] * 1100)
        honest = http.ask(asking, HONEST)

    assert b"input_required" in honest.body, honest.body
    assert all(names_a_limit(each.body) for each in replies if b"input_required" not in each.body)
    assert [] == seen.losses


def test_an_honest_parked_call_survives_a_thousand_others(victims: Victims) -> None:
    http = victims.http(**split("limits", max_waiting=1000))
    asked = http.ask(stateless(call("ask", meta=ELICITATION)), HONEST).json["result"]
    post_all(http, [stateless(call("ask", meta=ELICITATION))] * 1100)
    (name,) = asked["inputRequests"]
    answers = json.dumps({name: {"action": "accept", "content": {"name": "Ann"}}})
    params = f',"requestState":"{asked["requestState"]}","inputResponses":{answers}'
    with victims.watch(http):
        done = http.ask(stateless(call("ask", meta=ELICITATION, params=params)), HONEST)

    assert "accept" == done.json["result"]["content"][0]["text"]


def test_unanswered_questions_of_plain_functions_leave_a_thread_for_another_client(victims: Victims) -> None:
    http = victims.http()
    lines = [http.line() for _ in range(50 * WORKERS)]  # some wait for a thread, at each worker
    for each in lines:
        each.send(stateless(call("ask_plainly", meta=ELICITATION)))
    waiting = {each.socket: each for each in lines}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(waiting) > 10 * WORKERS and time.monotonic() < deadline:
        for ready in select.select([*waiting], [], [], 1)[0]:
            assert b"input_required" in waiting.pop(ready).reply().body

    assert 10 * WORKERS == len(waiting)
    assert "awake" == http.call("drowse", HONEST, seconds=0)


def test_stalled_uploads_do_not_keep_another_client_out(victims: Victims) -> None:
    http = victims.http(**split("http", max_open_bytes=256 * MIB))
    data = posted(b"x" * 4 * MIB)
    room = len(data) - 4 * MIB - 1
    with victims.watch(http) as seen:
        for size in [4 * MIB] * 80 + [2**each for each in range(21, 3, -1)]:  # the last ones fill the gap
            line = http.line()
            with suppress(OSError):  # refused early
                line.send(data[: room + size])

        assert "" == is_admitted(http)
        assert "x" * 100 == http.call("echo", HONEST, text="x" * 100)
    assert seen.grown < 512 * MIB
    assert [] == seen.losses


@pytest.mark.parametrize("what", ["streams", "calls", "sse"])
def test_open_requests_of_one_client_do_not_keep_another_client_out(victims: Victims, what: str) -> None:
    http = victims.http(http={"max_open": 500 // WORKERS})
    data = {
        "streams": listened(),
        "calls": stateless(call("wait")),
        "sse": head("GET", "/sse", "Accept: text/event-stream"),
    }[what]
    with victims.watch(http) as seen:
        for _ in range(600):
            with suppress(OSError):
                http.line().send(data)
        http.until(lambda: http.holds(*http._lines) or not http._lines)

        assert "" == is_admitted(http)
    assert [] == seen.losses


def test_connections_of_one_client_leave_descriptors_for_another_client(victims: Victims) -> None:
    http = victims.http(descriptors=256)
    with victims.watch(http) as seen:
        for _ in range(max(400, 270 * WORKERS)):  # more than each worker has descriptors for
            with suppress(OSError):
                http.line().send(called("echo", text="there"))

        assert "" == is_admitted(http)
        assert "x" == http.call("echo", HONEST, text="x")
    assert [] == seen.losses
    assert 150 < seen.descriptors < 256


def test_events_of_one_client_do_not_push_out_those_of_another(victims: Victims) -> None:
    http = victims.http(http={"stream_after_seconds": 0.05})
    honest, own, _ = joined(http, source=HONEST)
    honest.send(posted(calling("fill", 1, "p", count=5, size=10), *own))
    honest.head()
    first = honest.events()[0]
    honest.close()
    attacker, others, _ = joined(http)
    with victims.watch(http) as seen:
        for number in range(80):
            attacker.send(posted(calling("fill", number, "p", count=10, size=MIB // 8), *others))
            with suppress(Closed):
                attacker.reply()
    line = http.line(source=HONEST)
    line.send(head("GET", "/mcp", "Accept: text/event-stream", f"Last-Event-ID: {first['id']}", *own))

    assert 200 == line.head().status
    assert seen.kept < 256 * MIB
    assert [] == seen.losses
