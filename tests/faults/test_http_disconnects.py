"""Clients that go away: before the body is complete, while they wait, at each event, in the silence between."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.limits import HttpLimits
from tests.faults import hostile_server_clients
from tests.faults.event_loop_turns import PATIENCE_SECONDS, until
from tests.faults.http_applications import held, released
from tests.faults.http_faulty_handlers import Guest
from tests.faults.http_leaving_client import Leaver, quiet, settled
from tests.faults.http_raw_client import (
    BOTH,
    NEW,
    OLD,
    called,
    calling,
    head,
    initialize,
    joined,
    listened,
    message,
    posted,
    request,
)
from tests.faults.shared_http_servers import opened
from tests.specification.http_server.revision_sets import on_both_loops

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from anyio.abc import TaskGroup

    from mcpgen.runtime.http.server.application import Application

pytestmark = pytest.mark.anyio

JSON = [("Content-Type", "application/json"), ("Accept", BOTH)]
STREAM = [("Accept", "text/event-stream")]
LIMITS = HttpLimits(stream_after_seconds=0.001, keep_alive_seconds=0.001)
MOST_STEPS = 40

Lines = list[tuple[str, str]]


def mirrored(method: str, name: str | None = None) -> Lines:
    own = [*JSON, ("MCP-Protocol-Version", NEW), ("Mcp-Method", method)]
    return own if name is None else [*own, ("Mcp-Name", name)]


class Site:
    """An application, and clients that leave it."""

    def __init__(self, guest: Guest, app: Application, group: TaskGroup, *, is_told: bool) -> None:
        self.guest = guest
        self.app = app
        self.group = group
        self.is_told = is_told
        self.session: Lines = []

    def begin(
        self, method: str, target: str, lines: Lines, parts: Sequence[bytes] = (b"",), leaves_at: int | None = None
    ) -> Leaver:
        made = Leaver(self.app, method, target, lines, parts, leaves_at=leaves_at, is_told=self.is_told)
        self.group.start_soon(made.run)
        return made

    async def through(self, leaver: Leaver) -> Leaver:
        await until(lambda: leaver.has_returned)
        assert leaver.failure is None
        return leaver

    async def join(self, revision: str = OLD) -> None:
        """Shake hands."""
        begun = await self.through(self.begin("POST", "/mcp", JSON, [initialize(revision)]))
        self.session = [("Mcp-Session-Id", begun.headers["mcp-session-id"])]
        lines = [*JSON, *self.session]
        await self.through(self.begin("POST", "/mcp", lines, [message("notifications/initialized")]))


@asynccontextmanager
async def site(*, is_told: bool, limits: HttpLimits = LIMITS) -> AsyncGenerator[Site]:
    """Run a server within the block, and see that nothing is left of it."""
    guest = Guest()
    app = guest.server.asgi(limits=limits)
    before = hostile_server_clients.standing()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group, app.running():
            yield Site(guest, app, group, is_told=is_told)
            await released(app)
        after = await hostile_server_clients.settled(before)

    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
    assert 0 == len(app._state.sessions)


# --- stateless clients

ECHO = request(1, "tools/call", {"name": "echo", "arguments": {}})
PROGRESS = {"progressToken": "p"}
STEP = request(1, "tools/call", {"name": "step", "arguments": {}}, PROGRESS)
WAIT = request(1, "tools/call", {"name": "wait", "arguments": {}})
FILL = request(1, "tools/call", {"name": "fill", "arguments": {"count": 9, "size": 9}}, PROGRESS)
LISTEN = request(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
STATELESS: dict[str, tuple[Lines, bytes]] = {
    "echo": (mirrored("tools/call", "echo"), ECHO),
    "step": (mirrored("tools/call", "step"), STEP),
    "wait": (mirrored("tools/call", "wait"), WAIT),
    "fill": (mirrored("tools/call", "fill"), FILL),
    "listen": (mirrored("subscriptions/listen"), LISTEN),
    "refused": (mirrored("tools/call", "other"), ECHO),
    "unreadable": (JSON, b"{"),
    "begins a session": (JSON, initialize()),
}


@pytest.mark.parametrize("after", ["told", "not told"])
@pytest.mark.parametrize("kind", STATELESS)
@on_both_loops
@pytest.mark.slow
async def test_a_client_may_leave_at_every_step_and_a_stateless_one_cancels_what_it_asked_for(
    kind: str, after: str
) -> None:
    lines, body = STATELESS[kind]
    parts = [body[:10], body[10:20], body[20:]]
    for step in range(MOST_STEPS):
        async with site(is_told=after == "told") as own:
            leaver = own.begin("POST", "/mcp", lines, parts, step)
            await settled(leaver)
            is_last = not leaver.has_left
            leaver.leave()
            await own.through(leaver)
            await quiet(leaver)
            assert 0 == own.guest.waiting
        if is_last:
            return
    raise AssertionError("the application goes on for ever")


@pytest.mark.parametrize("tool", ["wait", "step"])
@on_both_loops
async def test_the_handler_of_a_stateless_client_that_left_is_cancelled_once(tool: str) -> None:
    lines, body = STATELESS[tool]
    async with site(is_told=False) as own:
        leavers = [own.begin("POST", "/mcp", lines, [body]) for _ in range(100)]
        await until(lambda: own.guest.waiting == 100)
        for each in leavers[::2]:
            each.leave()
        await until(lambda: own.guest.waiting == 50)
        assert 50 == own.guest.given_up
        own.guest.gate.set()
        for each in leavers:
            await own.through(each)

    assert 50 == own.guest.given_up


# --- sessions


@pytest.mark.parametrize("after", ["told", "not told"])
@pytest.mark.parametrize("tool", ["echo", "wait", "step", "fill", "hang_up"])
@on_both_loops
@pytest.mark.slow
async def test_the_client_of_a_session_may_leave_at_every_step_and_cancels_nothing(tool: str, after: str) -> None:
    arguments: dict[str, Any] = {"fill": {"count": 9, "size": 9}, "hang_up": {"mark": "m"}}.get(tool, {})
    body = calling(tool, 7, "p", **arguments)
    for step in range(MOST_STEPS):
        async with site(is_told=after == "told") as own:
            await own.join()
            leaver = own.begin("POST", "/mcp", [*JSON, *own.session], [body[:10], body[10:]], step)
            await settled(leaver)
            is_asked = step > 1 and tool in ("wait", "step")
            is_last = not leaver.has_left
            leaver.leave()
            await quiet(leaver)
            assert (is_asked, 0) == (bool(own.guest.waiting), own.guest.given_up)
            assert not {"responses", "open"} & set(held(own.app))
            assert int(is_asked) == held(own.app).get("tickets", 0)  # its handler runs on, and counts
            own.guest.gate.set()
            await own.through(leaver)
            await released(own.app)
            again = await own.through(own.begin("POST", "/mcp", [*JSON, *own.session], [calling("echo", 7)]))
            assert 200 == again.status
        if is_last:
            return
    raise AssertionError("the application goes on for ever")


@pytest.mark.slow
@pytest.mark.parametrize("after", ["told", "not told"])
@on_both_loops
async def test_whoever_leaves_the_own_stream_of_a_session_can_open_it_again(after: str) -> None:
    for step in range(12):
        async with site(is_told=after == "told") as own:
            await own.join()
            leaver = own.begin("GET", "/mcp", [*STREAM, *own.session], leaves_at=step)
            await quiet(leaver)
            await own.guest.server.tools_changed()
            await quiet(leaver)
            leaver.leave()
            await own.through(leaver)
            again = own.begin("GET", "/mcp", [*STREAM, *own.session])
            await quiet(again)
            await own.guest.server.tools_changed()
            await until(lambda: b"list_changed" in again.body)  # noqa: B023 (called before the next turn)
            again.leave()
            await own.through(again)


@on_both_loops
async def test_whoever_leaves_while_a_batch_is_answered_cancels_none_of_it() -> None:
    body = b"[" + b",".join(calling("wait", each) for each in range(5)) + b"]"
    async with site(is_told=True) as own:
        await own.join("2025-03-26")
        leaver = own.begin("POST", "/mcp", [*JSON, *own.session], [body])
        await until(lambda: own.guest.waiting == 5)
        leaver.leave()
        await own.through(leaver)
        assert (5, 0) == (own.guest.waiting, own.guest.given_up)
        own.guest.gate.set()


# --- HTTP+SSE


@pytest.mark.slow
@pytest.mark.parametrize("after", ["told", "not told"])
@on_both_loops
async def test_with_its_stream_a_client_of_old_ends_its_conversation(after: str) -> None:
    for step in range(12):
        async with site(is_told=after == "told") as own:
            stream = own.begin("GET", "/sse", STREAM, leaves_at=step)
            await quiet(stream)
            address = stream.body.decode().partition("data: ")[2].partition("\n")[0]
            if not stream.has_left and address:
                for each in (initialize("2024-11-05"), message("notifications/initialized"), calling("wait")):
                    await own.through(own.begin("POST", address, JSON, [each]))
                await quiet(stream)
            stream.leave()
            await own.through(stream)
            await until(lambda: not own.guest.waiting)
            if address:
                assert 404 == (await own.through(own.begin("POST", address, JSON, [message("ping", 1)]))).status


@on_both_loops
async def test_whoever_leaves_while_it_posts_harms_no_conversation_of_old() -> None:
    for step in range(8):
        async with site(is_told=True) as own:
            stream = own.begin("GET", "/sse", STREAM)
            await quiet(stream)
            address = stream.body.decode().partition("data: ")[2].partition("\n")[0]
            leaver = own.begin(
                "POST", address, JSON, [initialize("2024-11-05")[:9], initialize("2024-11-05")[9:]], step
            )
            await own.through(leaver)
            await own.through(own.begin("POST", address, JSON, [message("ping", "still")]))
            await until(lambda: b'"still"' in stream.body)  # noqa: B023 (called before the next turn)
            stream.leave()
            await own.through(stream)


# --- everything at once


@on_both_loops
@pytest.mark.slow
async def test_a_thousand_clients_that_leave_at_once_leave_nothing() -> None:
    # A thousand streams with a comment in each millisecond would occupy a busy machine.
    limits = HttpLimits(stream_after_seconds=0.001, keep_alive_seconds=1)
    async with site(is_told=False, limits=limits) as own:
        await own.join()
        lines, body = STATELESS["listen"]
        made = [own.begin("POST", "/mcp", lines, [body]) for _ in range(500)]
        lines, body = STATELESS["step"]
        made += [own.begin("POST", "/mcp", lines, [body]) for _ in range(400)]
        made += [own.begin("GET", "/sse", STREAM) for _ in range(100)]
        await until(lambda: own.guest.waiting == 400)
        assert 1000 == held(own.app)["responses"]
        for each in made:
            each.leave()
        for each in made:
            await own.through(each)
        await until(lambda: own.guest.given_up == 400)


# --- on sockets


@pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's")
@pytest.mark.parametrize("behind", [called("echo"), called("echo")[:30], head("GET", "/x") * 3])
@pytest.mark.slow
def test_whoever_has_sent_more_behind_its_request_is_noticed_to_leave_all_the_same(behind: bytes) -> None:
    """Of several requests on one connection, uvicorn tells the last that the client is gone."""
    with opened(http={"keep_alive_seconds": 3600}) as house:
        for body in (called("wait"), called("step", meta={"progressToken": 1}), listened()):
            line = house.line()
            line.send(body + behind)
            line.close()
        line = house.line()
        own = joined(line)
        line.send(posted(calling("ask"), *own))
        line.reply()
        line.close()
        line = house.line()

        def nobody_waits() -> bool:
            line.send(called("standing"))
            return b"waiting 0" in line.reply().body

        house.until(nobody_waits)
