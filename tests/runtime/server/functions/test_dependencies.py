"""`Depends` gives a function the value of another function: once per call, closed after it, absent from the schema."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Context, Depends, Server, ToolError, UsageError, connect
from mcpgen.runtime.server.functions import dependencies
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Server:
    return Server("dependent", version="1.0")


@pytest.fixture
def events() -> list[str]:
    return []


def kinds(events: list[str]) -> dict[str, Callable[..., Any]]:
    """Return functions of each kind that provide 1, and note in *events* when they open and close."""

    def plain() -> int:
        events.append("open")
        return 1

    async def coroutine() -> int:
        events.append("open")
        return 1

    def generator() -> Generator[int]:
        events.append("open")
        try:
            yield 1
        finally:
            events.append("close")

    async def async_generator() -> AsyncGenerator[int]:
        events.append("open")
        try:
            yield 1
        finally:
            await anyio.lowlevel.checkpoint()
            events.append("close")

    return {
        "plain": plain,
        "coroutine": coroutine,
        "generator": generator,
        "async generator": async_generator,
        "context manager": contextmanager(generator),
        "async context manager": asynccontextmanager(async_generator),
    }


KINDS = [*kinds([])]
CLOSED = KINDS[2:]


def register(server: Server, events: list[str], provider: Any, *, is_async: bool, fails: bool = False) -> None:
    def work(value: int) -> int:
        events.append("run")
        if fails:
            raise ToolError("no")
        return value

    if is_async:

        @server.tool(name="it")
        async def it_async(value: int = Depends(provider)) -> int:
            return work(value)

    else:

        @server.tool(name="it")
        def it(value: int = Depends(provider)) -> int:
            return work(value)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_function_gives_its_value_and_is_closed_after_the_call(
    server: Server, events: list[str], kind: str, *, fails: bool, is_async: bool
) -> None:
    register(server, events, kinds(events)[kind], is_async=is_async, fails=fails)
    async with connect(server) as client:
        result = await client.call_tool("it")

    assert ("no" if fails else {"result": 1}) == result.data
    assert ["open", "run", *(["close"] if kind in CLOSED else [])] == events


def number() -> int:
    return 1


async def test_a_dependency_is_no_argument(server: Server) -> None:
    @server.tool
    def both(a: int, b: Annotated[int, Depends(number)], c=Depends(number)) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 (its type is not needed)
        return a + b + c

    async with connect(server) as client:
        (tool,) = (await client.list_tools()).tools
        assert {"a"} == tool.input_schema["properties"].keys()
        assert 3 == await client.call_tool("both", {"a": 1}, returns=int)
        refused = await client.call_tool("both", {"a": 1, "b": 5})

    assert "Object contains unknown field `b`" in refused.text


async def test_a_dependency_runs_once_per_call_and_gets_the_context(server: Server, events: list[str]) -> None:
    def base(ctx: Context) -> str:
        events.append("base")
        return ctx.peer.revision

    async def left(text: str = Depends(base)) -> str:
        return f"left {text}"

    def right(text: str = Depends(base)) -> str:
        return f"right {text}"

    @server.tool
    def it(ctx: Context, a: str = Depends(left), b: str = Depends(right), c: str = Depends(base)) -> list[str]:
        return [ctx.peer.revision, a, b, c]

    async with connect(server) as client:
        revision = client.revision
        expected = [revision, f"left {revision}", f"right {revision}", revision]
        assert expected == await client.call_tool("it", returns=list[str])
        assert expected == await client.call_tool("it", returns=list[str])

    assert ["base", "base"] == events


async def test_a_connection_that_belongs_to_one_thread_can_be_injected(server: Server) -> None:
    def database() -> Generator[sqlite3.Connection]:
        connection = sqlite3.connect(":memory:")
        try:
            yield connection
        finally:
            connection.close()

    def cursor(connection: sqlite3.Connection = Depends(database)) -> sqlite3.Cursor:
        return connection.cursor()

    @server.tool
    def one(found: sqlite3.Cursor = Depends(cursor)) -> int:
        (value,) = found.execute("select 1").fetchone()
        return int(value)

    async with connect(server) as client:
        assert [1, 1, 1] == [await client.call_tool("one", returns=int) for _ in range(3)]


async def test_prompts_resources_templates_and_completions_get_dependencies(server: Server, events: list[str]) -> None:
    word = kinds(events)["async generator"]

    @server.prompt
    def prompt(style: str, number: int = Depends(word)) -> str:
        return f"{style} {number}"

    @server.resource("a:b")
    def resource(number: int = Depends(word)) -> str:
        return f"{number}"

    @server.resource("a:{key}/c")
    def template(key: str, number: int = Depends(word)) -> str:
        return f"{key} {number}"

    @server.completion("prompt", "style")
    def complete(value: str, number: int = Depends(word)) -> list[str]:
        return [f"{value} {number}"]

    async with connect(server) as client:
        (message,) = (await client.get_prompt("prompt", {"style": "x"})).messages
        (found,) = (await client.read_resource("a:b")).contents
        (other,) = (await client.read_resource("a:k/c")).contents
        (listed,) = (await client.list_prompts()).prompts
        from mcpgen.generated.v2026_07_28 import PromptReference

        completed = await client.complete(PromptReference(name="prompt"), "style", "v")

    seen: list[Any] = [message.content, found, other]
    assert ["x 1", "1", "k 1"] == [each.text for each in seen]
    assert ["v 1"] == completed.values
    arguments: Any = listed.arguments
    assert ["style"] == [each.name for each in arguments]
    assert ["open", "close"] * 4 == events


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_override_replaces_a_dependency_until_it_is_removed(
    server: Server, events: list[str], kind: str, *, is_async: bool
) -> None:
    def original() -> int:
        raise AssertionError

    register(server, events, original, is_async=is_async)
    server.overrides[original] = kinds(events)[kind]
    async with connect(server) as client:
        assert 1 == await client.call_tool("it", returns=int)
        server.overrides[original] = lambda: 7
        assert 7 == await client.call_tool("it", returns=int)
        server.overrides.clear()
        assert (await client.call_tool("it")).is_error is True


def test_an_override_that_cannot_be_called_is_refused_when_it_is_set(server: Server) -> None:
    def original() -> int:
        return 1

    def needy(value: int) -> int:
        return value

    with pytest.raises(UsageError, match=r"parameter `value` of .*needy\(\) gets no value; a dependency takes"):
        server.overrides[original] = needy
    with pytest.raises(UsageError, match=r"^`overrides\[original\]` must be a function that replaces original, not 3$"):
        server.overrides[original] = 3  # type: ignore[assignment]
    assert {} == server.overrides


def test_a_parameter_of_a_dependency_without_annotation_is_told_to_take_the_context() -> None:
    def needy(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (this is what is refused)
        return value

    async def tool(needed: str = Depends(needy)) -> str:
        return needed

    with pytest.raises(UsageError, match="has no annotation; write its type, such as `value: Context`"):
        Server("x", version="1").tool(tool)


async def test_an_override_that_needs_what_it_replaces_fails_with_the_circle(
    server: Server, events: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def original() -> int:
        return 1

    def around(value: int = Depends(original)) -> int:
        return value

    register(server, events, original, is_async=True)
    server.overrides[original] = around
    async with connect(server) as client:
        assert "The tool it failed." == (await client.call_tool("it")).text

    assert "depends on itself" in caplog.text


def first(value: Annotated[int, Depends(second)]) -> int:
    return value


def second(value: Annotated[int, Depends(first)]) -> int:
    return value


def test_a_circle_is_refused_at_registration_and_shown(server: Server) -> None:
    def it(value: int = Depends(first)) -> int:
        return value

    with pytest.raises(UsageError, match=r"depends on itself: .*first\(\) → .*second\(\) → .*first\(\); remove one"):
        server.tool(it)


class Settings:
    """A class is not a function."""


def needy(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("dependency", "problem"),
    [
        (
            needy,
            r"parameter `value` of .*needy\(\) gets no value; a dependency takes a `Context` and other dependencies",
        ),
        (Settings, r"Settings\(\) is a class; pass a function that returns an instance of it"),
        (Settings(), r"^`Depends` needs a function, not <.*Settings object .*>; pass the function without calling it"),
        (lambda *names: names, r"takes `\*names`, which a schema cannot describe"),
    ],
)
def test_a_function_that_cannot_be_a_dependency_is_refused_at_registration(
    server: Server, dependency: Any, problem: str
) -> None:
    def it(value: int = Depends(dependency)) -> int:
        return value

    for decorator in (server.tool, server.prompt, server.resource("a:b")):
        with pytest.raises(UsageError, match=problem):
            decorator(it)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_dependency_that_fails_is_named_in_the_log_and_not_to_the_client(
    server: Server, caplog: pytest.LogCaptureFixture, kind: str, *, is_async: bool
) -> None:
    class Failing(list[str]):
        def append(self, _event: str, /) -> None:
            raise ValueError("the password is 123")

    provider = kinds(Failing())[kind]
    register(server, [], provider, is_async=is_async)
    async with connect(server) as client:
        result = await client.call_tool("it")

    assert (True, "The tool it failed.") == (result.is_error, result.text)
    assert f"{provider.__qualname__}(), a dependency of " in caplog.text
    assert "the password is 123" in caplog.text


async def test_what_was_opened_before_a_dependency_failed_is_closed(server: Server, events: list[str]) -> None:
    async def failing() -> int:
        raise ToolError("not today")

    provider = kinds(events)["async generator"]

    @server.tool
    def it(a: int = Depends(provider), b: int = Depends(failing)) -> int:
        return a + b

    async with connect(server) as client:
        assert "not today" == (await client.call_tool("it")).text

    assert ["open", "close"] == events


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", CLOSED)
async def test_a_dependency_sees_the_exception_of_the_call(
    server: Server, events: list[str], kind: str, *, is_async: bool
) -> None:
    def note(error: ToolError) -> None:
        events.append(f"saw {error}")

    def generator() -> Generator[int]:
        try:
            yield 1
        except ToolError as error:
            note(error)
            raise

    async def async_generator() -> AsyncGenerator[int]:
        try:
            yield 1
        except ToolError as error:
            note(error)
            raise

    register(server, events, async_generator if "async" in kind else generator, is_async=is_async, fails=True)
    async with connect(server) as client:
        assert "no" == (await client.call_tool("it")).text

    assert ["run", "saw no"] == events


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_async_dependency", [False, True])
async def test_a_dependency_that_yields_twice_is_named_in_the_log(
    server: Server, events: list[str], caplog: pytest.LogCaptureFixture, *, is_async: bool, is_async_dependency: bool
) -> None:
    def twice() -> Generator[int]:
        yield 1
        yield 2

    async def twice_async() -> AsyncGenerator[int]:
        yield 1
        yield 2

    register(server, events, twice_async if is_async_dependency else twice, is_async=is_async)
    async with connect(server) as client:
        assert "The tool it failed." == (await client.call_tool("it")).text

    assert "yields more than once; yield one value" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_dependency_that_hides_an_exception_is_an_error(
    server: Server, events: list[str], caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    def hiding() -> Generator[int]:
        with suppress(ToolError):
            yield 1

    register(server, events, hiding, is_async=is_async, fails=True)
    async with connect(server) as client:
        assert "The tool it failed." == (await client.call_tool("it")).text

    assert "caught an exception, so there is no result; raise it again" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_dependency_that_exits_does_not_end_the_server(
    server: Server, events: list[str], *, is_async: bool
) -> None:
    async def leaving() -> AsyncGenerator[int]:
        raise SystemExit(3)
        yield 1

    register(server, events, leaving, is_async=is_async)
    async with connect(server) as client:
        assert "The tool it failed." == (await client.call_tool("it")).text
        await client.ping()


@pytest.mark.parametrize("kind", CLOSED)
async def test_a_dependency_is_closed_after_a_call_that_was_cancelled(
    server: Server, events: list[str], kind: str
) -> None:
    running, provider = anyio.Event(), kinds(events)[kind]

    @server.tool
    async def wait(value: int = Depends(provider)) -> int:
        running.set()
        await anyio.sleep_forever()
        return value

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(server) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "wait")
            await running.wait()
            group.cancel_scope.cancel()
        while "close" not in events:
            await anyio.lowlevel.checkpoint()

    assert ["open", "close"] == events


@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_cancellation_does_not_interrupt_the_end_of_a_dependency(
    server: Server, events: list[str], *, is_plain: bool
) -> None:
    closing, may_end = threading.Event(), threading.Event()

    def plain() -> Generator[int]:
        yield 1
        closing.set()
        may_end.wait(PATIENCE_SECONDS)
        events.append("close")

    async def coroutine() -> AsyncGenerator[int]:
        yield 1
        closing.set()
        while not may_end.is_set():
            await anyio.lowlevel.checkpoint()
        events.append("close")

    innermost: Callable[..., Any] = plain if is_plain else coroutine

    async def outer(inner: int = Depends(innermost)) -> AsyncGenerator[int]:
        yield inner
        await anyio.lowlevel.checkpoint()
        events.append("close outer")

    async def outermost(inner: int = Depends(outer)) -> AsyncGenerator[int]:
        yield inner
        events.append("close outermost")

    @server.tool
    async def work(value: int = Depends(outermost)) -> int:
        return value

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(server) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "work")
                while not closing.is_set():
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            await client.ping()
            may_end.set()
            while "close" not in events:
                await anyio.lowlevel.checkpoint()

    assert events == ["close outermost", "close outer", "close"]


async def test_a_plain_function_that_goes_on_after_its_call_was_cancelled_keeps_its_dependency(
    server: Server, events: list[str]
) -> None:
    running, may_end = threading.Event(), threading.Event()
    provider = kinds(events)["generator"]

    @server.tool
    def wait(value: int = Depends(provider)) -> int:
        running.set()
        may_end.wait(PATIENCE_SECONDS)
        events.append("end")
        return value

    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(server) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "wait")
                while not running.is_set():
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            await client.ping()
            assert ["open"] == events
            may_end.set()
            while "close" not in events:
                await anyio.lowlevel.checkpoint()

    assert ["open", "end", "close"] == events


async def test_a_dependency_that_does_not_close_is_given_up_and_logged(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "TEARDOWN_SECONDS", 0.01)

    async def stuck() -> AsyncGenerator[int]:
        yield 1
        await anyio.sleep_forever()

    register(server, [], stuck, is_async=True)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(server) as client:
            assert 1 == await client.call_tool("it", returns=int)

    assert "were not closed within 0.01 seconds" in caplog.text


async def test_a_dependency_may_hold_a_task_group(server: Server, events: list[str]) -> None:
    async def tasks() -> AsyncGenerator[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
            yield 1

    register(server, events, tasks, is_async=True)
    async with connect(server) as client:
        assert 1 == await client.call_tool("it", returns=int)


async def test_a_plain_wrapper_of_a_coroutine_function_runs_while_its_dependencies_are_open(
    server: Server, events: list[str]
) -> None:
    from functools import wraps

    provider = kinds(events)["generator"]

    async def it(value: int = Depends(provider)) -> int:
        events.append("run")
        return value

    @wraps(it)
    def wrapper(**arguments: Any) -> Any:
        return it(**arguments)

    server.tool(wrapper)
    async with connect(server) as client:
        assert 1 == await client.call_tool("it", returns=int)

    assert ["open", "run", "close"] == events
