"""The limits of an application (docs/guide/limits.md), each made small, against a process that listens."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.attacked_processes import MIB, Http
from tests.bounds.raw_sessions import joined
from tests.faults.http_raw_client import Closed, Line, called, calling, head, initialize, listened, message, posted
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.conftest import Victims


def used(http: Http) -> Line:
    """Return the connection of a session that its client has come back to."""
    line, own, _ = joined(http)
    line.send(posted(message("ping", 1), *own))
    assert 200 == line.reply().status
    return line


def stream(http: Http, tool: str, **arguments: Any) -> tuple[Line, tuple[str, ...]]:
    """Call a tool in a session, and return the connection of the stream that answers it."""
    line, own, _ = joined(http)
    line.send(posted(calling(tool, 1, "p", **arguments), *own))
    assert "text/event-stream" in line.head().headers["content-type"]
    return line, own


def resumed(http: Http, own: tuple[str, ...], last: str) -> int:
    """Resume a stream behind an event; return the status."""
    line = http.line()
    line.send(head("GET", "/mcp", "Accept: text/event-stream", f"Last-Event-ID: {last}", *own))
    return line.head().status


@pytest.mark.slow
def test_more_sessions_than_allowed_displace_or_are_refused(victims: Victims) -> None:
    http = victims.http(http={"max_sessions": 3})
    statuses = []
    for _ in range(8):
        reply = http.ask(posted(initialize()))
        statuses.append(reply.status)
        if reply.status == 200:
            own = f"Mcp-Session-Id: {reply.headers['mcp-session-id']}"
            http.ask(posted(message("ping", 1), own))
        else:
            assert "max_sessions" in reply.json["error"]["message"]

    assert 200 in statuses


@pytest.mark.slow
def test_more_open_requests_than_allowed_are_refused(victims: Victims) -> None:
    http = victims.http(http={"max_open": 3})
    for _ in range(3):
        line = http.line()
        line.send(listened())
        line.head()
    refused = http.ask(called("echo"))

    assert refused.status in (429, 503)
    assert "max_open" in refused.json["error"]["message"]


@pytest.mark.parametrize("is_complete", [True, False], ids=["served", "arriving"])
@pytest.mark.slow
def test_more_bytes_than_allowed_are_refused(victims: Victims, *, is_complete: bool) -> None:
    http = victims.http(http={"max_open_bytes": 200_000})
    data = called("wait", text="x" * 60_000)
    http.line().send(data if is_complete else data[:-9000] if len(data) < 60_000 else data[:-1])
    if is_complete:
        http.until(lambda: http.alive(None) == 1)
    refused = http.ask(data)

    assert refused.status in (429, 503)
    assert "max_open_bytes" in refused.json["error"]["message"]


@pytest.mark.parametrize("limit", ["idle_seconds", "handshake_seconds"])
@pytest.mark.slow
def test_a_session_that_is_silent_for_too_long_ends(victims: Victims, limit: str) -> None:
    http = victims.http(http={limit: 0.3})
    reply = http.ask(posted(initialize()))
    own = f"Mcp-Session-Id: {reply.headers['mcp-session-id']}"
    if limit == "idle_seconds":
        http.ask(posted(message("ping", 1), own))
    time.sleep(1)

    assert 404 == http.ask(posted(message("ping", 2), own)).status


@pytest.mark.slow
def test_a_body_that_does_not_arrive_in_time_is_refused(victims: Victims) -> None:
    http = victims.http(http={"body_seconds": 0.3})
    refused = http.ask(called("echo")[:-1])

    assert 408 == refused.status
    assert "body_seconds" in refused.json["error"]["message"]


@pytest.mark.slow
def test_an_answer_that_takes_longer_becomes_a_stream(victims: Victims) -> None:
    http = victims.http(http={"stream_after_seconds": 0.1})
    line, _ = stream(http, "drowse", seconds=0.5)

    assert "awake" == line.messages()[-1]["result"]["content"][0]["text"]


@pytest.mark.slow
def test_a_silent_stream_gets_a_comment(victims: Victims) -> None:
    http = victims.http(http={"keep_alive_seconds": 0.1})
    line = http.line()
    line.send(listened())
    line.head()

    assert any(line.chunk().startswith(b":") for _ in range(3))


@pytest.mark.slow
def test_a_client_that_does_not_read_loses_its_connection(victims: Victims) -> None:
    http = victims.http(http={"write_seconds": 0.5})
    line = http.line(receive_bytes=4096)
    line.send(called("big", size=3 * MIB))
    with victims.watch(http) as seen:
        for _ in range(9):
            other = http.line(receive_bytes=4096)
            other.send(called("fill", meta={"progressToken": "p"}, count=1000, size=MIB // 10))
        http.until(lambda: http.holds(*http._lines) == 0)

    assert seen.grown < 64 * MIB
    assert [] == seen.losses


@pytest.mark.slow
def test_a_stream_says_when_to_come_back(victims: Victims) -> None:
    http = victims.http(http={"retry_seconds": 7})
    line, own, _ = joined(http)
    line.send(head("GET", "/mcp", "Accept: text/event-stream", *own))
    line.head()

    assert "7000" == line.events()[0]["retry"]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [({}, 20), ({"max_kept_messages": 5}, 5), ({"max_kept_bytes": 4000}, 4)],
    ids=["default", "max_kept_messages", "max_kept_bytes"],
)
@pytest.mark.slow
def test_a_session_without_a_stream_has_some_messages_kept_for_it(
    victims: Victims, limits: dict[str, int], kept: int
) -> None:
    http = victims.http(http=limits)
    line, own, _ = joined(http)
    for number in range(20):
        line.send(posted(message("resources/subscribe", number, uri=f"note://{number}{'u' * 600}"), *own))
        line.reply()
    for number in range(20):
        http.call("change", None, count=1, uri=f"note://{number}{'u' * 600}")
    listening = http.line()
    listening.send(head("GET", "/mcp", "Accept: text/event-stream", *own))
    listening.head()
    found, until = 0, time.monotonic() + PATIENCE_SECONDS
    listening.socket.settimeout(2)
    with suppress(TimeoutError):
        while time.monotonic() < until:
            found += len([each for each in listening.events() if each.get("data")])

    assert kept == found


def declared(size: int) -> bytes:
    """Return a request for a session whose client declares *size* bytes."""
    return posted(initialize(capabilities={"experimental": {"com.example/long": {"text": "x" * size}}}))


@pytest.mark.parametrize(("limits", "is_tight"), [({"max_sessions_bytes": 200_000}, True), ({}, False)])
@pytest.mark.slow
def test_sessions_in_use_that_cost_more_bytes_than_allowed_are_refused(
    victims: Victims, limits: dict[str, int], *, is_tight: bool
) -> None:
    http = victims.http(http=limits)
    refused, begun = [], 0
    for _ in range(20):
        reply = http.ask(declared(20_000))
        if reply.status != 200:
            refused.append(reply)
            continue
        begun += 1
        line = http.line()
        own = f"Mcp-Session-Id: {reply.headers['mcp-session-id']}"
        line.send(head("GET", "/mcp", "Accept: text/event-stream", own))  # it is not idle
        assert 200 == line.head().status
    charged = json.loads(http.call("charged", None))["max_sessions_bytes"]

    assert all(each.status == 503 and "max_sessions_bytes" in each.json["error"]["message"] for each in refused)
    assert is_tight == bool(refused)
    assert is_tight == (charged <= 200_000)
    assert begun * 20_000 <= charged


@pytest.mark.slow
def test_idle_sessions_make_room_for_the_bytes_of_others(victims: Victims) -> None:
    http = victims.http(http={"max_sessions_bytes": 200_000})
    replies = [http.ask(declared(20_000)) for _ in range(20)]
    last, first = (f"Mcp-Session-Id: {replies[each].headers['mcp-session-id']}" for each in (-1, 0))

    assert 404 == http.ask(posted(message("ping", 1), first)).status
    assert 200 == http.ask(posted(message("ping", 1), last)).status
    assert json.loads(http.call("charged", None))["max_sessions_bytes"] <= 200_000


@pytest.mark.parametrize(("limits", "is_tight"), [({"max_unread_bytes": 8 * MIB}, True), ({}, False)])
@pytest.mark.slow
def test_more_unread_bytes_than_allowed_are_refused(
    victims: Victims, limits: dict[str, int], *, is_tight: bool
) -> None:
    http = victims.http(http=limits)
    with victims.watch(http, honest=False) as seen:
        for _ in range(20):
            line = http.line(receive_bytes=4096)
            line.send(called("big", size=3 * MIB))
        least = 4 * MIB if is_tight else 40 * MIB
        http.until(lambda: json.loads(http.call("charged", None))["max_unread_bytes"] > least)
        reply = http.ask(called("big", size=3 * MIB))

    assert (503 if is_tight else 200) == reply.status
    assert is_tight == (b"max_unread_bytes" in reply.body)
    assert json.loads(http.call("charged", None))["max_unread_bytes"] <= (8 if is_tight else 128) * MIB
    assert seen.kept < (64 if is_tight else 256) * MIB


@pytest.mark.parametrize(
    ("limits", "statuses"),
    [({"rate_limit": {"per_second": 0.001, "burst": 3}}, [200, 200, 200, 429, 429]), ({}, [200] * 5)],
    ids=["rate_limit", "default"],
)
@pytest.mark.slow
def test_calls_above_the_rate_limit_are_refused(victims: Victims, limits: dict[str, Any], statuses: list[int]) -> None:
    http = victims.http(http=limits)
    replies = [http.ask(called("echo")) for _ in range(5)]

    assert statuses == [each.status for each in replies]
    assert all("rate_limit" in each.json["error"]["message"] for each in replies if each.status == 429)


# --- the store of events

EVENTS = {"max_streams": 2, "max_events_per_stream": 3, "max_bytes": 5000, "lifetime_seconds": 0.3}


@pytest.mark.parametrize("limit", EVENTS)
@pytest.mark.slow
def test_events_above_a_limit_of_the_store_are_forgotten(victims: Victims, limit: str) -> None:
    http = victims.http(http={"stream_after_seconds": 0.05}, events={limit: EVENTS[limit]})
    line, own = stream(http, "fill", count=10, size=1000)
    first = line.events()[0]["id"]
    line.messages()
    if limit == "max_streams":
        for _ in range(3):
            stream(http, "fill", count=2, size=10)[0].messages()
    elif limit == "lifetime_seconds":
        time.sleep(1)

    assert 400 == resumed(http, own, first)


@pytest.mark.slow
def test_events_within_the_limits_are_there(victims: Victims) -> None:
    http = victims.http(http={"stream_after_seconds": 0.05}, events={})
    line, own = stream(http, "fill", count=10, size=1000)
    first = line.events()[0]["id"]
    line.messages()

    assert 200 == resumed(http, own, first)


# --- of `mcpgen serve`


@pytest.mark.slow
def test_a_head_takes_ten_seconds_at_most(victims: Victims) -> None:
    http = victims.http()
    line = http.line()
    line.send(b"GET /mcp HTT")

    assert 408 == line.reply().status


@pytest.mark.slow
def test_a_connection_without_requests_is_closed_after_thirty_seconds(victims: Victims) -> None:
    http = victims.http()
    line = http.line()
    line.send(called("echo"))
    assert 200 == line.reply().status
    with pytest.raises(Closed):
        line.reply()

    assert json.loads(http.ask(called("echo")).body)["result"]
