"""Functions with a `Context` that start in the task of their request."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Depends, Server, TransportClosed
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio

STATELESS = "2026-07-28"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Site:
    """A server, called as an ASGI application."""

    def __init__(self, server: Server) -> None:
        self.app: Any = server.asgi(bound_to="127.0.0.1", user=lambda scope: dict(scope["headers"])[b"x-user"].decode())
        self.lines: dict[str, str] = {}
        self.meta: dict[str, Any] = {}
        self.kept_bytes: list[int] = []  # when each event is sent, if memory is traced

    async def begin(self, revision: str) -> None:
        """Do what a client of *revision* does first."""
        info = {"name": "test", "version": "1"}
        self.lines["mcp-protocol-version"] = revision
        if revision == STATELESS:
            prefix = "io.modelcontextprotocol/"
            values = {"protocolVersion": revision, "clientInfo": info, "clientCapabilities": {"roots": {}}}
            self.meta = {"_meta": {prefix + key: value for key, value in values.items()}}
            return
        params = {"protocolVersion": revision, "capabilities": {"roots": {}}, "clientInfo": info}
        start, _ = await self._post({"id": 0, "method": "initialize", "params": params})
        self.lines["mcp-session-id"] = dict(start["headers"])[b"mcp-session-id"].decode()

    async def call(self, tool: str, number: int = 7, **arguments: Any) -> Any:
        """Return the answer to a call, which must be JSON."""
        self.lines |= {"mcp-method": "tools/call", "mcp-name": tool}
        params = {"name": tool, "arguments": arguments, **self.meta}
        start, body, *_ = await self._post({"id": number, "method": "tools/call", "params": params})
        assert b"application/json" == dict(start["headers"])[b"content-type"]
        return json.loads(body["body"])

    async def _post(self, message: dict[str, Any]) -> list[Any]:
        said: list[Any] = []
        lines = {
            "host": "127.0.0.1",
            "x-user": "ada",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self.lines,
        }

        bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode()]  # kept nowhere else

        async def receive() -> Any:
            if not bodies:
                await anyio.sleep_forever()
            return {"type": "http.request", "body": bodies.pop()}

        async def send(event: Any) -> None:
            said.append(event)
            self.kept_bytes.append(tracemalloc.get_traced_memory()[0])

        headers = [(name.encode(), value.encode()) for name, value in lines.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "client": ("127.0.0.1", 1), "headers": headers}
        await self.app(scope, receive, send)
        return said


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise RuntimeError("odd")


def text(answer: Any) -> str:
    found: str = answer["result"]["content"][0]["text"]
    return found


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_function_that_cannot_wait_gets_its_context_in_the_task_of_its_request(revision: str) -> None:
    own = Server("demo", version="1")
    tasks: list[Any] = []

    @own.tool
    async def about(ctx: Context) -> str:
        tasks.append(asyncio.current_task())
        return f"{ctx.request_id} {ctx.method} {ctx.user} {ctx.peer.revision} {ctx.is_cancelled} {ctx.access}"

    @own.tool
    async def waiting(ctx: Context) -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return f"{ctx.request_id}"

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)
        await site.call("about", 6)

        assert f"7 tools/call ada {revision} False None" == text(await site.call("about"))
        assert "8" == text(await site.call("waiting", 8))
    assert tasks[1] is asyncio.current_task()
    assert tasks[2] is not asyncio.current_task()


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_such_a_function_may_fail(revision: str) -> None:
    own = Server("demo", version="1")

    @own.tool
    async def fails(ctx: Context) -> int:
        raise ValueError(ctx.request_id)

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)

        assert [(True, "The tool fails failed.")] * 2 == [
            (each["result"]["isError"], text(each)) for each in [await site.call("fails"), await site.call("fails", 8)]
        ]
    assert {} == site.app._state.connections


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_class_of_the_author_that_raises_is_a_failed_tool(revision: str) -> None:
    own = Server("demo", version="1")

    @own.tool
    async def half(of: Even) -> int:
        return of.number // 2

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)

        assert "The tool half failed." == text(await site.call("half", of={"number": 7}))
        assert {"result": 4} == (await site.call("half", of={"number": 8}))["result"]["structuredContent"]


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_function_that_has_begun_gets_its_cancellations_also_after_a_large_request(revision: str) -> None:
    own = Server("demo", version="1")

    @own.tool
    async def grouped(text: str) -> str:
        async def fail() -> None:
            raise ValueError

        try:
            async with asyncio.TaskGroup() as group:  # which cancels this task
                group.create_task(fail())
        except* ValueError:
            pass
        return "done"

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)
        await site.call("grouped", 6, text="")

        assert "done" == text(await site.call("grouped", text="x" * 1024 * 1024))  # which a turn has no more time after


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_its_context_sends_nothing_after_its_end(revision: str) -> None:
    own = Server("demo", version="1")
    left: list[Context] = []

    @own.tool
    async def leaves(ctx: Context) -> str:
        left.append(ctx)
        return "done"

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)
        assert "done" == text(await site.call("leaves"))

        assert left[0].is_cancelled
        with pytest.raises(TransportClosed):
            await left[0].roots()


async def test_a_call_that_is_cancelled_while_its_dependency_is_closed_closes_it_to_the_end() -> None:
    own, closed = Server("demo", version="1"), False
    closing, may_end = asyncio.Event(), asyncio.Event()

    async def connection() -> AsyncGenerator[int]:
        nonlocal closed
        yield 1
        closing.set()
        await may_end.wait()
        closed = True

    @own.tool
    async def work(value: int = Depends(connection)) -> int:
        return value

    @own.tool
    async def other() -> str:
        return "other"

    site = Site(own)
    async with site.app.running():
        await site.begin("2025-11-25")
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                call = {"id": 7, "method": "tools/call", "params": {"name": "work", "arguments": {}}}
                group.start_soon(site._post, call)
                await closing.wait()
                await site._post({"method": "notifications/cancelled", "params": {"requestId": 7}})
                may_end.set()

        assert closed
        assert "other" == text(await site.call("other", 8))


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_large_request_is_not_kept_while_its_answer_is_sent(revision: str) -> None:
    own = Server("demo", version="1")

    @own.tool
    async def length(text: str) -> str:
        return str(len(text))

    site = Site(own)
    async with site.app.running():
        await site.begin(revision)
        large = "x" * 1_000_000
        await site.call("length", text=large)
        tracemalloc.start()
        try:
            answer = await site.call("length", text=large)
        finally:
            tracemalloc.stop()

    assert "1000000" == text(answer)
    assert max(site.kept_bytes) < len(large) // 10
