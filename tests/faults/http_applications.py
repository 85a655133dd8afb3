"""Applications in this process, of which nothing is left at the end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from tests.faults import hostile_server_clients
from tests.faults.event_loop_turns import PATIENCE_SECONDS, until
from tests.specification.http_server.http_site import site

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.api.server import Server
    from mcpgen.runtime.http.server.application import Application
    from tests.specification.http_server.http_site import Site


def held(app: Application) -> dict[str, Any]:
    """Return what an application holds for requests that are open, by kind; it is empty when that is nothing."""
    state = app._state
    found = {
        "responses": len(state.open_responses),
        "connections": len(state.connections),
        "tickets": state.open_quota.count + state.open_quota.leaving_count,
        "bytes": state.open_quota.kept_bytes,
        "old sessions": len(app._legacy_sse._sessions),
        "open": sum(each.open_requests for each in state.sessions),
        "streams": sum(len(each.streams) for each in state.sessions),
        "running": sum(each._running for each in state.sessions),
    }
    return {name: value for name, value in found.items() if value}


async def released(app: Application) -> None:
    """Return when an application holds nothing for open requests; fail if that does not come to be."""
    with anyio.move_on_after(PATIENCE_SECONDS / 4):
        await until(lambda: not held(app))

    assert {} == held(app)


@asynccontextmanager
async def attacked_site(server: Server, *, fails: bool = False, **options: Any) -> AsyncGenerator[Site]:
    """Run a server over HTTP within the block, judge all that it says, and see that nothing is left.

    Args:
        server: It.
        fails: Whether it may say that it failed.
        options: Of the application.
    """
    before = hostile_server_clients.standing()
    async with site(server, **options) as web:
        web.overseer.expects_failure = fails
        yield web
        await web.leave_all()
    state = web.app._state
    after = await hostile_server_clients.settled(before)

    assert {} == held(web.app)
    assert 0 == len(state.sessions)
    assert [] == list(server._engine.connections)
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
