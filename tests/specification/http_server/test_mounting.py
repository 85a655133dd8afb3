"""An application within another one, and its lifespan."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen.runtime.api.server import Server
from mcpgen.runtime.server.context import Context  # noqa: TC001 (the server looks at it)
from mcpgen.runtime.transports.spawner import open_group
from tests.patience import BUSY_SECONDS
from tests.specification.http_server.asgi_exchange import PATIENCE_SECONDS, Lifespan
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, Caller, initialize, joined
from tests.specification.http_server.http_recorder import Overseer
from tests.specification.http_server.http_site import WORKERS, Site, site
from tests.specification.http_server.revision_sets import (
    SESSIONS,
    STREAMABLE,
    everywhere,
    on_both_loops,
    spec,
    with_sessions,
)
from tests.specification.http_server.stream_tools import behaviour, demo

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio

OLD = SESSIONS[-1]


class Lived:
    """A lifespan that counts."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.fails = False

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncGenerator[str]:
        if self.fails:
            raise RuntimeError("no database")
        self.begun += 1
        try:
            yield "state"
        finally:
            self.ended += 1


def lived(own: Any = None) -> tuple[Server, Lived]:
    lifespan = Lived()
    return Server("demo", version="1", handlers=own or behaviour(), lifespan=lifespan), lifespan


@spec("2025-11-25", "basic/transports#streamable-http")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@pytest.mark.parametrize("root_path", ["/api", "/a/b", "/mcp"])
async def test_a_mounted_application_finds_its_path_below_the_mount(root_path: str, revision: str) -> None:
    async with site(demo(), root_path=root_path) as web:
        peer = await joined(web, revision)

        assert "tools" in await peer.result("tools/list")


@spec("2025-11-25", "basic/transports#streamable-http")
async def test_elsewhere_below_the_mount_there_is_nothing() -> None:
    async with site(demo(), root_path="/api") as web:
        answers = [
            await web.ask("POST", path, [JSON, BOTH], initialize("2025-11-25")) for path in ("/api/mcp", "/", "")
        ]

    assert [404] * 3 == [each.status for each in answers]


def in_scopes(step: Any) -> Any:
    """Receive or send as Starlette's ``BaseHTTPMiddleware`` does: whoever waits waits within a task group."""

    async def stepped(*message: Any) -> Any:
        async with anyio.create_task_group():
            await checkpoint()
            return await step(*message)

    return stepped


@spec("2025-11-25", "basic/transports#streamable-http")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@on_both_loops
async def test_middleware_may_wait_within_a_task_group(revision: str) -> None:
    server = demo()
    inner = server.asgi()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_request = scope["type"] == "http"
        await inner(scope, in_scopes(receive) if is_request else receive, in_scopes(send) if is_request else send)

    async with site(server) as web:
        web.app = app
        peer = await joined(web, revision)

        assert "tools" in await peer.result("tools/list")
        stream = peer.call("steps", meta='"progressToken":"p"')
        assert "notifications/progress" == (await stream.message())["method"]


@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@on_both_loops
async def test_the_lifespan_of_the_server_is_that_of_the_application() -> None:
    server, lifespan = lived()
    async with site(server) as web:
        assert (WORKERS, 0) == (lifespan.begun, lifespan.ended)

        for each in STREAMABLE:
            await (await joined(web, each)).result("tools/list")

        assert (WORKERS, 0) == (lifespan.begun, lifespan.ended)

    assert (WORKERS, WORKERS) == (lifespan.begun, lifespan.ended)


@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@on_both_loops
async def test_a_lifespan_that_fails_fails_the_start() -> None:
    server, lifespan = lived()
    lifespan.fails = True
    app = server.asgi()
    async with open_group() as group:
        told = Lifespan(app)
        group.start_soon(told.run)
        said = await told.ask("startup")
        group.cancel_scope.cancel()

    assert "lifespan.startup.failed" == said["type"]
    assert "no database" in said.get("message", "")


@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@on_both_loops
async def test_without_a_lifespan_it_begins_with_the_first_request() -> None:
    server, lifespan = lived()
    async with site(server, lifespan=False) as web:
        assert 0 == lifespan.begun
        for each in STREAMABLE:
            await (await joined(web, each)).result("tools/list")

        assert (WORKERS, 0) == (lifespan.begun, lifespan.ended)


@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("tool", ["echo", "add"])  # a handler in a task of its own, and a function that needs none
def test_in_another_event_loop_it_begins_anew(backend: str, tool: str) -> None:
    server = Server("demo", version="1", lifespan=(lifespan := Lived()))

    @server.tool
    async def add() -> str:
        return str(lifespan.begun - lifespan.ended)

    @server.tool
    async def echo(ctx: Context) -> str:
        del ctx
        return await add()

    app = server.asgi()

    async def called() -> Any:
        async with open_group() as group:
            web = Site(app, group, Overseer(server._engine.handlers.served, server._engine.handlers.capabilities), "")
            (said,) = await Caller(web, STATELESS).call(tool).messages()
            return said["result"]["content"][0]["text"]

    async def left() -> Any:
        async with open_group() as group:
            handlers = server._engine.handlers
            peer = await joined(Site(app, group, Overseer(handlers.served, handlers.capabilities), ""), OLD)
            (said,) = await peer.call(tool).messages()
            return said["result"]["content"][0]["text"]

    async def begun() -> Any:
        async with app.running():
            await server.tools_changed()
            return await called()

    assert ["1"] * 4 == [anyio.run(each, backend=backend) for each in (called, called, left, begun)]
    assert (4, 4) == (lifespan.begun, lifespan.ended)
    assert not server._engine.connections


@spec("2025-11-25", "basic/lifecycle#lifecycle-phases")
@on_both_loops
async def test_who_mounts_it_opens_its_lifespan() -> None:
    server, lifespan = lived()
    async with site(server, lifespan=False) as web:
        async with web.app.running():  # type: ignore[attr-defined]  # an application of ours
            assert (WORKERS, 0) == (lifespan.begun, lifespan.ended)
            await (await joined(web, STATELESS)).result("tools/list")

        assert (WORKERS, WORKERS) == (lifespan.begun, lifespan.ended)


@spec("2025-11-25", "basic/lifecycle#http")
@everywhere
@on_both_loops
@pytest.mark.slow
async def test_a_shutdown_ends_open_streams_in_two_seconds(revision: str) -> None:
    server, lifespan = lived()
    async with site(server) as web:
        peer = await joined(web, revision)
        if peer.is_stateless:
            streams = [peer.send("subscriptions/listen", '"notifications":{"toolsListChanged":true}')]
        else:
            streams = [await peer.listen().begun()]
        streams.append(peer.call("steps", meta='"progressToken":"p"'))
        for each in streams:
            await each.begun()
        await streams[-1].message()
        with anyio.fail_after(2 + BUSY_SECONDS):
            await web.shutdown()
            for each in streams:
                await each.returned()

    assert (WORKERS, WORKERS) == (lifespan.begun, lifespan.ended)


@spec("2025-11-25", "basic/lifecycle#http")
@everywhere
async def test_what_is_nearly_done_at_the_end_is_answered(revision: str) -> None:
    own = behaviour()
    server, _ = lived(own)
    async with site(server) as web:
        peer = await joined(web, revision)
        stream = peer.call("steps", meta='"progressToken":"p"')
        await stream.message()
        async with open_group() as group:
            group.start_soon(web.shutdown)
            await anyio.lowlevel.checkpoint()
            own.gate.set()
            *_, said = await stream.messages()
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(web.lifespan.said if web.lifespan else ()) < 2:
                    await anyio.lowlevel.checkpoint()

    assert "done" == said["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/lifecycle#http")
@with_sessions
async def test_after_the_end_nothing_is_served(revision: str) -> None:
    server, _ = lived()
    async with site(server) as web:
        web.overseer.expects_failure = True
        peer = await joined(web, revision)
        await web.shutdown()
        answer = await peer.post(peer.request(1, "tools/list")).returned()

    assert answer.status in (0, 404, 503)


@spec("2026-07-28", "basic/index#statelessness")
@on_both_loops
@pytest.mark.slow
async def test_a_handler_that_does_not_let_itself_be_cancelled_is_waited_for_and_not_heard() -> None:
    own = behaviour()
    async with site(demo(own)) as web:
        stream = Caller(web, STATELESS).call("stubborn", meta='"progressToken":"p"')
        await stream.message()
        assert web.lifespan is not None
        async with open_group() as group:
            group.start_soon(web.shutdown)
            await stream.returned()
            own.gate.set()
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(web.lifespan.said) < 2:
                    await anyio.lowlevel.checkpoint()

    assert [] == [each for each in stream.pending if each.data]
