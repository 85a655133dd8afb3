"""What is charged to clients over HTTP agrees with the resident memory of the process, and both fall afterwards."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.bounds.attacked_processes import HONEST, MIB, kept_bytes
from tests.bounds.hostile_messages import call
from tests.bounds.raw_sessions import joined, post_all, stateless
from tests.faults.http_raw_client import OLD, called, head, initialize, posted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

ROWS = json.dumps([{"id": each, "name": f"row {each}", "tags": ["a", "b"]} for each in range(1000)])


def sessions(http: Http, count: int) -> None:
    """Open sessions whose clients declare little."""
    assert all(each.status == 200 for each in post_all(http, [posted(initialize())] * count))


def declared(http: Http, count: int) -> None:
    """Open sessions whose clients declare a lot."""
    capabilities = {"experimental": {f"{each}": {"a": "x" * 100} for each in range(50)}}
    assert all(each.status == 200 for each in post_all(http, [posted(initialize(OLD, capabilities))] * count))


def calls(http: Http, count: int) -> None:
    """Let small stateless calls wait."""
    for _ in range(count):
        http.line().send(called("wait", text="hi"))


def abandoned_calls(http: Http, count: int) -> None:
    """Let small calls in a session wait, and hang up."""
    _, own, _ = joined(http)
    for number in range(count):
        http.abandon(posted(call("wait", revision=OLD, identity=f"{number}"), *own))


def large_calls(http: Http, count: int) -> None:
    """Let calls with a large table wait."""
    for _ in range(count // 20):
        http.line().send(stateless(call("wait_for", f'{{"value":{ROWS}}}')))


def streams(http: Http, count: int) -> None:
    """Open the GET stream of sessions."""
    for _ in range(count):
        line, own, _ = joined(http)
        line.send(head("GET", "/mcp", "Accept: text/event-stream", *own))
        assert line.head().status == 200


def uploads(http: Http, count: int) -> None:
    """Send most of a body."""
    data = stateless(call("wait", json.dumps({"text": "x" * 100_000})))
    for _ in range(count):
        http.line().send(data[:-100])


WHAT: dict[Callable[[Http, int], None], str] = {
    sessions: "max_sessions_bytes",
    declared: "max_sessions_bytes",
    calls: "max_open_bytes",
    abandoned_calls: "max_open_bytes",
    large_calls: "max_open_bytes",
    streams: "max_open_bytes",
    uploads: "max_open_bytes",
}


@pytest.mark.parametrize("what", WHAT, ids=lambda each: each.__name__)
def test_what_is_charged_over_http_agrees_with_resident_memory(
    victims: Victims, what: Callable[[Http, int], None]
) -> None:
    http = victims.http(http={"rate_limit": None})
    what(http, 100)  # what the first ones take once
    _let_start(http)
    before = json.loads(http.call("charged", HONEST)), kept_bytes(http)
    what(http, 3000 if what is sessions else 600)  # small ones fit into memory that is free already
    _let_start(http)
    after = json.loads(http.call("charged", HONEST)), kept_bytes(http)
    charged, resident = after[0][WHAT[what]] - before[0][WHAT[what]], after[1] - before[1]
    victims.note(charged=charged, resident=resident)

    assert charged / 2 <= resident <= 2 * charged, f"{charged / MIB:.1f} MiB charged, {resident / MIB:.1f} MiB resident"


def _let_start(http: Http) -> None:
    """Return when no more calls of `wait` begin; a busy machine may not have read all of them."""
    before = -1
    while before != (alive := http.alive()):
        before = alive
        time.sleep(0.2)


def test_memory_that_is_free_returns_to_the_system(victims: Victims) -> None:
    http = victims.http(http={"rate_limit": None})
    uploads(http, 10)
    sessions(http, 10)
    before = kept_bytes(http)
    for _ in range(20):  # small objects between large ones keep the allocator's memory from shrinking
        uploads(http, 60)
        sessions(http, 10)
    held = kept_bytes(http) - before
    http.close_lines()
    victims.note(resident=held)

    assert held > 64 * MIB
    http.until(lambda: kept_bytes(http) - before < held / 2)
