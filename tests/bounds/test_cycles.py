"""What has ended is freed at once: the garbage collector, which comes late, finds nothing of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.bounds.attacked_processes import HONEST
from tests.bounds.hostile_messages import ELICITATION, call
from tests.bounds.raw_sessions import joined, stateless
from tests.faults.http_raw_client import OLD, called, head, listened, message, posted
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

TEXT = "x" * 100_000
TIMES = 10
TOOLS = ["wait", "wait_with_context"]


def until_none_waits(http: Http) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while http.alive(None):
        assert time.monotonic() < deadline, "the handlers do not end"


def hang_up(http: Http, tool: str) -> None:
    """Hang up while stateless calls run, which cancels them."""
    for _ in range(TIMES):
        http.abandon(stateless(call(tool, f'{{"text":"{TEXT}"}}')))


def cancel(http: Http, tool: str) -> None:
    """Cancel calls in a session by notifications."""
    line, own, _ = joined(http)
    for number in range(1, TIMES + 1):
        running = http.line()
        running.send(posted(call(tool, f'{{"text":"{TEXT}"}}', revision=OLD, identity=f"{number}"), *own))
        while not http.alive(None):
            pass
        line.send(posted(message("notifications/cancelled", requestId=number), *own))
        assert 202 == line.reply().status
        until_none_waits(http)


def end_session(http: Http, tool: str) -> None:
    """End sessions whose calls run."""
    for _ in range(TIMES):
        line, own, _ = joined(http)
        http.line().send(posted(call(tool, f'{{"text":"{TEXT}"}}', revision=OLD), *own))
        while not http.alive(None):
            pass
        line.send(head("DELETE", "/mcp", *own))
        line.reply()


def give_way(http: Http, tool: str) -> None:
    """Let calls in one session give way to those of another; then end both."""
    sessions = [joined(http) for _ in range(8)]
    for _, own, _ in sessions:
        for number in range(2):
            body = call(tool, f'{{"text":"{TEXT}"}}', revision=OLD, identity=f"{number}")
            http.abandon(posted(body, *own))
    for line, own, _ in sessions:
        line.send(head("DELETE", "/mcp", *own))
        line.reply()


def fail(http: Http, _tool: str) -> None:
    """Call a function that raises: at once, or later."""
    for when in ("at once", "later"):
        for _ in range(TIMES):
            http.ask(called("fail", when=when, text=TEXT))


def ask(http: Http, _tool: str) -> None:
    """Call functions that ask stateless clients, which never answer; they expire."""
    for _ in range(TIMES):
        http.ask(stateless(call("ask", f'{{"text":"{TEXT}"}}', meta=ELICITATION)))
    time.sleep(1)  # longer than `waiting_seconds`


def break_off(http: Http, tool: str) -> None:
    """Hang up in the middle of a body."""
    for _ in range(TIMES):
        http.abandon(stateless(call(tool, f'{{"text":"{TEXT}"}}'))[:-1000])


def be_refused(http: Http, _tool: str) -> None:
    """Send what is refused: no JSON, too long an id, and invalid arguments and params."""
    for body in (
        f"{TEXT}".encode(),
        call("wait", identity=f'"{TEXT}"'),
        call("wait", f'{{"text":["{TEXT}"]}}'),
        call("wait", f'"{TEXT}"'),
    ):
        for _ in range(TIMES):
            assert http.ask(stateless(body, name="wait")).body


def pipeline(http: Http, tool: str) -> None:
    """Send more requests behind one that runs, and hang up."""
    for _ in range(TIMES):
        http.abandon(stateless(call(tool, '{"text":"x"}')) * 5)


def listen(http: Http, _tool: str) -> None:
    """Open streams of changes, and hang up."""
    lines = [http.line() for _ in range(TIMES)]
    for number, line in enumerate(lines):
        line.send(listened(number))
        line.head()
    http.close_lines()
    http.until(lambda: int(http.call("standing", HONEST).split()[1]) < TIMES)


WAYS: list[Callable[[Http, str], None]] = [
    hang_up,
    cancel,
    end_session,
    give_way,
    fail,
    ask,
    break_off,
    be_refused,
    pipeline,
    listen,
]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("way", WAYS, ids=lambda each: each.__name__)
def test_what_has_ended_leaves_nothing_to_the_garbage_collector(
    victims: Victims, way: Callable[[Http, str], None], tool: str
) -> None:
    http = victims.http(
        collects=False, limits={"waiting_seconds": 0.2}, http={"max_open_bytes": 2_000_000, "rate_limit": None}
    )
    http.call("garbage", HONEST)  # that of the start
    way(http, tool)
    until_none_waits(http)

    assert {} == json.loads(http.call("garbage", HONEST))
