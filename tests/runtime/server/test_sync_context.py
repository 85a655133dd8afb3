"""The methods of a context without `await`, and the error for the form that does not belong where it is called."""

from __future__ import annotations

import gc
import inspect
import logging
import subprocess
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import pytest
from msgspec import Struct

from mcpgen import Context, Depends, Server, TransportClosed, UsageError, connect
from mcpgen.generated.v2026_07_28 import CreateMessageResult, ElicitResult, Root, TextContent, methods
from mcpgen.runtime.server.sync_context import SyncContext
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


class Form(Struct):
    count: int


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture
def server() -> Server:
    return Server("synchronous")


def awaitables() -> list[str]:
    names = [each for each in dir(Context) if not each.startswith("_")]
    return [each for each in names if inspect.iscoroutinefunction(inspect.unwrap(getattr(Context, each)))]


def test_each_awaitable_of_a_context_has_a_synchronous_form_with_the_same_parameters() -> None:
    names = awaitables()

    assert {"log", "progress", "elicit", "sample", "roots", "tools_changed"} <= set(names)
    assert names == [each for each in dir(SyncContext) if not each.startswith("_")]
    for name in names:
        ours, theirs = (inspect.signature(getattr(each, name)) for each in (SyncContext, Context))

        assert theirs == ours


@ERAS
async def test_a_plain_function_sends_and_asks_without_await(server: Server, revision: str) -> None:
    @server.tool
    def order(ctx: Context) -> list[object]:
        ctx.sync.log("warning", "hot", logger="stove")
        ctx.sync.progress(1, total=2, message="half")
        form = ctx.sync.elicit("How many?", Form)
        sampled = ctx.sync.sample("Hello", max_tokens=5)
        (root,) = ctx.sync.roots()
        assert form.content is not None
        assert isinstance(sampled.content, TextContent)
        return [form.action, form.content.count, sampled.content.text, root.uri, ctx.sync.disconnect()]

    heard: list[object] = []
    reply = CreateMessageResult(role="assistant", model="m", content=TextContent(text="hi"))
    async with connect(
        server,
        revisions=[revision],
        elicit=lambda *_: ElicitResult(action="accept", content={"count": 3}),
        sample=lambda *_: reply,
        roots=[Root(uri="file:///a")],
        log=lambda params, _: heard.append((params.level, params.data, params.logger)),
    ) as client:
        if revision == "2025-11-25":
            await client.set_log_level("warning")
        with anyio.fail_after(PATIENCE_SECONDS):
            result = await client.call_tool("order", on_progress=lambda *given: heard.append(given))

    assert {"result": ["accept", 3, "hi", "file:///a", False]} == result.structured_content or (
        result.data == '["accept",3,"hi","file:///a",false]'
    )
    if revision == "2025-11-25":  # a client of 2026-07-28 asks for log entries with each request
        assert [("warning", "hot", "stove"), (1, 2, "half")] == heard
    else:
        assert [(1, 2, "half")] == heard


@ERAS
async def test_changes_and_messages_of_the_native_revision_have_a_synchronous_form(
    server: Server, revision: str
) -> None:
    @server.tool
    def change(ctx: Context) -> str:
        ctx.sync.tools_changed()
        ctx.sync.prompts_changed()
        ctx.sync.resources_changed()
        ctx.sync.resource_updated("a:b")
        ctx.sync.notify(methods.TOOL_LIST_CHANGED)
        return str(len(ctx.sync.request(methods.LIST_ROOTS).roots))

    async with connect(server, revisions=[revision], roots=[]) as client:
        with anyio.fail_after(PATIENCE_SECONDS):
            assert "0" == (await client.call_tool("change")).text


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda ctx: ctx.log("info", "x"), "log"),
        (lambda ctx: ctx.progress(1), "progress"),
        (lambda ctx: ctx.elicit("x", Form), "elicit"),
        (lambda ctx: ctx.tools_changed(), "tools_changed"),
    ],
)
async def test_a_coroutine_that_a_plain_function_cannot_await_fails_at_once_with_the_remedy(
    server: Server, call: Callable[[Context], object], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    reached: list[str] = []

    @server.tool
    def forget(ctx: Context) -> str:
        call(ctx)
        reached.append("the line after it")
        return "done"

    async with connect(server) as client:
        assert (await client.call_tool("forget")).is_error is True

    assert [] == reached
    assert f"ctx.{name}() needs `await`, but it was called in a plain function (`def`)" in caplog.text
    assert (
        f"write ctx.sync.{name}(...), or make the function an `async def` with `await ctx.{name}(...)`" in caplog.text
    )


async def test_a_synchronous_form_in_an_async_function_fails_at_once_with_the_remedy(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    @server.tool
    async def block(ctx: Context) -> str:
        ctx.sync.log("info", "x")
        return "done"

    async with connect(server) as client:
        with anyio.fail_after(PATIENCE_SECONDS):
            assert (await client.call_tool("block")).is_error is True

    assert "ctx.sync.log() would block the event loop, because it was called in an `async def`" in caplog.text
    assert "write `await ctx.log(...)`" in caplog.text


async def test_a_thread_of_the_authors_own_cannot_use_the_synchronous_forms(server: Server) -> None:
    failures: list[Exception] = []

    @server.tool
    def spread(ctx: Context) -> str:
        def work() -> None:
            try:
                ctx.sync.log("info", "x")
            except UsageError as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        return "done"

    async with connect(server) as client:
        assert "done" == (await client.call_tool("spread")).text

    (failure,) = failures
    assert "ctx.sync.log() was called in a thread that the server did not start" in str(failure)


async def test_a_plain_dependency_has_the_synchronous_forms_too(server: Server) -> None:
    def noted(ctx: Context) -> Generator[int]:
        ctx.sync.log("error", "open")
        yield 1
        ctx.sync.log("error", "closed")

    @server.tool
    def work(number: int = Depends(noted)) -> str:
        return str(number)

    heard: list[Any] = []
    async with connect(server, revisions=["2025-11-25"], log=lambda params, _: heard.append(params.data)) as client:
        assert "1" == (await client.call_tool("work")).text

    assert ["open", "closed"] == heard


async def test_a_cancelled_plain_function_ends_at_its_next_synchronous_call(server: Server) -> None:
    begun, go_on, ended = anyio.Event(), threading.Event(), threading.Event()
    reached: list[str] = []

    @server.tool
    def long(ctx: Context) -> str:
        anyio.from_thread.run_sync(begun.set)
        go_on.wait(PATIENCE_SECONDS)
        try:
            ctx.sync.log("info", "still there")
            reached.append("the line after it")
        except TransportClosed as error:
            reached.append(str(error))
        finally:
            ended.set()
        return "done"

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(server) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "long")
            await begun.wait()
            group.cancel_scope.cancel()
        go_on.set()
        assert await anyio.to_thread.run_sync(ended.wait, PATIENCE_SECONDS)

    reason = "the request is over: it was answered, was cancelled or has expired, or the client has disconnected"
    assert [reason] == reached


@pytest.mark.parametrize("asks", [False, True])
async def test_a_call_whose_plain_function_fails_is_freed_without_a_garbage_collection(
    server: Server, monkeypatch: pytest.MonkeyPatch, *, asks: bool
) -> None:
    @server.tool
    def fail(ctx: Context) -> str:
        if asks:
            ctx.sync.elicit("How many?", Form)  # raises, because the client cannot be asked
        raise ValueError("mine")

    async def call() -> None:
        async with connect(server, revisions=["2025-11-25"]) as client:
            for _ in range(3):  # the thread keeps the last one
                assert (await client.call_tool("fail")).is_error

    monkeypatch.setattr(logging.getLogger("mcpgen"), "propagate", False)  # pytest keeps what is logged
    await call()  # what is made once is there then
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await call()
        gc.collect()
        frames = [each for each in gc.garbage if isinstance(each, FrameType)]
        left = {each.f_code.co_name for each in frames} & {"fail", "elicit"}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert left == set()


def test_a_server_that_ends_while_a_plain_function_asks_says_nothing() -> None:
    code = """
from mcpgen import Context, Server

server = Server("asking")

@server.tool
def ask(ctx: Context) -> str:
    return str(ctx.sync.elicit("How much?", {"type": "object", "properties": {}}))

server.run()
"""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "_meta": meta}}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(call) + b"\n")
        process.stdin.flush()
        assert b"input_required" in process.stdout.readline()
        _, said = process.communicate(timeout=PATIENCE_SECONDS)

    assert (0, b"") == (process.returncode, said)
