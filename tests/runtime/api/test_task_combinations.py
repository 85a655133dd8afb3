"""Tasks together with what else a server and a client have: dependencies, middleware, views, groups, `debug`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import (
    Context,
    Depends,
    RequestRefused,
    Server,
    TaskCancelled,
    TaskLimits,
    ToolError,
    UnsupportedByPeer,
    connect,
    connect_sync,
)
from mcpgen.generated.v2026_07_28 import ElicitResult, TextContent, methods
from mcpgen.runtime.api.hosts.group_start import prepare_group
from tests.harness.rooms_extension import rooms
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


def accept(_params: Any, _context: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


def connected(server: Server[Any], revision: str, **options: Any) -> Any:
    return connect(server, revisions=[revision], tasks=True, elicit=accept, **options)


@BOTH
async def test_a_task_has_its_dependencies_until_its_function_has_ended(revision: str) -> None:
    steps: list[str] = []
    server = Server("bakery")

    async def oven() -> AsyncGenerator[str]:
        steps.append("lit")
        yield "oven"
        steps.append("out")

    async def customer(ctx: Context) -> str:
        form = await ctx.elicit("Who?", NAME)
        return str((form.content or {})["name"])

    @server.tool(task="always")
    async def bake(ctx: Context, hot: str = Depends(oven), who: str = Depends(customer)) -> str:
        form = await ctx.elicit("Again?", NAME)
        steps.append("baked")
        return f"{hot} {who} {form.action}"

    async with server.running(), connected(server, revision) as client:
        handle = await client.start_tool("bake")
        assert handle.task_id
        with anyio.fail_after(PATIENCE_SECONDS):
            result = await handle.result()
            while steps[-1] != "out":  # noqa: ASYNC110 (the generator ends after the task)
                await anyio.sleep(0.001)

    assert ("oven Ada accept", ["lit", "baked", "out"]) == (result.text, steps)


@BOTH
async def test_middleware_runs_once_around_a_deferred_task(revision: str) -> None:
    seen: list[str] = []
    server = Server("bakery")

    @server.tool(task="deferred")
    async def later(ctx: Context) -> str:
        form = await ctx.elicit("Who?", NAME)
        seen.append(f"task {await ctx.defer()}")
        return form.action

    @server.middleware(methods.CALL_TOOL)
    async def around(params: Any, context: Context, call_next: Callable[..., Awaitable[Any]]) -> Any:
        seen.append("before")
        result = await call_next(params, context)
        seen.append("after")
        return result

    async with server.running(), connected(server, revision) as client:
        handle = await client.start_tool("later")
        with anyio.fail_after(PATIENCE_SECONDS):
            result = await handle.result()

    assert ("accept", ["before", "task True", "after"]) == (result.text, seen)


@BOTH
@pytest.mark.parametrize("has_tasks", [True, False])
async def test_a_tool_that_may_be_no_task_cannot_become_one(revision: str, has_tasks: bool) -> None:  # noqa: FBT001
    server = Server("bakery", debug=True)

    @server.tool(scopes=["bake"])
    async def plain(name: str, ctx: Context) -> str:
        return f"{name} {await ctx.defer()}"

    @server.tool(task=has_tasks)
    async def bake() -> str:
        return "bread"

    async with server.running(), connected(server, revision) as client:
        result = await client.call_tool("plain", {"name": "bake"})

    assert (True, True) == (result.is_error, 'register the tool with `task="deferred"`' in result.text)


@BOTH
@pytest.mark.parametrize("debug", [True, False])
async def test_the_error_of_a_task_shows_what_a_call_would_show(revision: str, *, debug: bool) -> None:
    server = Server("bakery", debug=debug)

    @server.tool(task=True)
    async def crash() -> str:
        raise LookupError("no flour")

    async with server.running(), connected(server, revision) as client:
        called = await client.call_tool("crash")
        started = await client.start_tool("crash")
        assert started.task_id
        with anyio.fail_after(PATIENCE_SECONDS):
            result = await started.result()

    assert (debug, True) == ("no flour" in result.text, result.is_error)
    assert called.text == result.text


async def test_a_view_lists_only_the_tasks_of_its_own_tools() -> None:
    server = Server("bakery")

    @server.tool(task=True, tags={"public"})
    async def bake() -> str:
        return "bread"

    @server.tool(task=True)
    async def count() -> str:
        return "money"

    view = server.only(tags={"public"})
    async with view.running(), connect(view, revisions=["2025-11-25"], tasks=True) as client:
        handle = await client.start_tool("bake")
        await handle.result()
        listed = await client.request_json("tasks/list")
        with pytest.raises(RequestRefused, match="count"):
            await client.start_tool("count")
        again = await client.request_json("tasks/list")

    assert (
        [handle.task_id] == [each["taskId"] for each in listed["tasks"]] == [each["taskId"] for each in again["tasks"]]
    )


@BOTH
def test_the_blocking_client_starts_waits_for_and_cancels_tasks(revision: str) -> None:
    server = Server("bakery")

    @server.tool(task=True)
    async def bake(ctx: Context) -> str:
        await ctx.progress(1, 2, "Kneading")
        return (await ctx.elicit("Who?", NAME)).action

    @server.tool(task=True)
    async def burn() -> str:
        raise ToolError("It is black")

    @server.tool(task=True)
    async def rest() -> str:
        await anyio.sleep(3600)
        return "never"

    with connect_sync(server, revisions=[revision], tasks=True, elicit=accept) as client:
        baking = client.start_tool("bake")
        burning, resting = client.start_tool("burn"), client.start_tool("rest")
        state = resting.state()
        resting.cancel()
        with pytest.raises(TaskCancelled):
            resting.result(timeout_seconds=PATIENCE_SECONDS)
        again = client.task(baking.task_id).result(timeout_seconds=PATIENCE_SECONDS)
        burnt = burning.result(timeout_seconds=PATIENCE_SECONDS)

    assert ("working", "accept", True) == (state.status, again.text, burnt.is_error)


@pytest.mark.slow
async def test_a_group_waits_for_tasks_and_calls_extensions_of_its_servers() -> None:
    class Rooms(rooms().ServerHandlers[Context[Any]]):  # type: ignore[misc]  # built for this test
        async def reserve_room(self, params: Any, _context: Context[Any]) -> Any:
            return rooms().ReserveRoomResult(confirmation=TextContent(text=f"room {params.room}"))

    bakery, hotel = Server("bakery"), Server("hotel")
    hotel.extend(rooms(), Rooms())

    @bakery.tool(task="always")
    async def bake(ctx: Context) -> str:
        return (await ctx.elicit("Who?", NAME)).action

    @hotel.tool
    async def greet() -> str:
        return "hello"

    async with bakery.running():
        start, _ = prepare_group(
            {"mcpServers": {"bakery": {"command": "bakery"}, "hotel": {"command": "hotel"}}},
            lambda transport: connect(
                {"bakery": bakery, "hotel": hotel}[transport.description],
                extensions=[rooms()],
                tasks=True,
                elicit=accept,
            ),
        )
        async with await start() as group:
            waited, greeting = await group.call_tool("bakery_bake"), await group.call_tool("hotel_greet")
            handle = await group["bakery"].start_tool("bake")
            with anyio.fail_after(PATIENCE_SECONDS):
                later = await group["bakery"].task(handle.task_id).result()
            wanted = rooms().ReserveRoomRequestParams(meta=group["hotel"].meta, room="5")
            reserved = await rooms().ClientMethods(group["hotel"]).reserve_room(wanted)
            with pytest.raises(UnsupportedByPeer, match="has not declared the extension"):
                await rooms().ClientMethods(group["bakery"]).reserve_room(wanted)

    assert ["accept", "hello", "accept"] == [waited.text, greeting.text, later.text]
    assert "room 5" == reserved.confirmation.text


async def test_a_task_that_expires_before_an_earlier_one_ends_in_time() -> None:
    """Incident: the timer waited for the task that was there first, and the function of the other one ran on."""
    server, has_ended = Server("bakery", task_limits=TaskLimits(min_ttl_ms=1)), anyio.Event()

    @server.tool(task=True)
    async def bake() -> str:
        return "bread"

    @server.tool(task=True)
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            has_ended.set()

    async with connected(server, "2025-11-25") as client:
        await client.request_json("tools/call", {"name": "bake", "task": {"ttl": 600_000}})
        await anyio.sleep(0.05)  # the timer waits
        await client.request_json("tools/call", {"name": "wait", "task": {"ttl": 50}})
        with anyio.fail_after(PATIENCE_SECONDS):
            await has_ended.wait()
