"""The server that is attacked: ``mcpgen serve`` runs it, or Python, with other limits than the defaults.

The variable `MCPGEN_ATTACKED` holds JSON: the ``name`` of the server, its ``limits``, the bounds of its application
(``http``), its ``keys``, the bounds of its stores (``events``, ``tasks``) and of its tasks (``task_limits``), whether
its tools ``bake`` tasks, how many ``descriptors`` of files it may open, and whether it ``collects`` garbage.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from mcpgen import Context, HttpLimits, Limits, MemoryEventStore, MemoryTaskStore, RateLimit, Redis, Server, TaskLimits
from mcpgen.generated.v2025_11_25 import CallToolRequestParams, CallToolResult, ServerHandlers, TextContent

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.application import Application

GIVEN: dict[str, Any] = json.loads(os.environ.get("MCPGEN_ATTACKED", "{}"))
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}}

applications: list[Application] = []
real_time, shift_seconds, waiting = time.time, 0.0, 0
calls = itertools.count(1)

if "descriptors" in GIVEN:
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (GIVEN["descriptors"],) * 2)

if not GIVEN.get("collects", True):
    gc.set_threshold(0)

time.time = lambda: real_time() + shift_seconds  # `jump` moves this clock

server = Server(
    GIVEN.get("name", "attacked"),
    version="1",
    limits=Limits(**GIVEN.get("limits", {})),
    state_keys=[each.encode() for each in GIVEN["keys"]] if "keys" in GIVEN else None,
)


@server.tool
async def echo(text: str = "") -> str:
    return text


@server.tool
async def count() -> str:
    """Return how many calls of this tool have been answered."""
    return str(next(calls))


@server.tool
async def jump(seconds: float) -> str:
    global shift_seconds  # noqa: PLW0603 (the clock of the process)
    shift_seconds += seconds
    return "jumped"


@server.tool
async def wait(text: str = "") -> str:
    global waiting  # noqa: PLW0603 (one counter of the process)
    waiting += 1
    try:
        await anyio.sleep_forever()
    finally:
        waiting -= 1
    return text


@server.tool
async def wait_for(value: Any) -> str:
    return await wait(str(value)[:0])


@server.tool
async def wait_with_context(_ctx: Context, text: str = "") -> str:
    return await wait(text)


@server.tool
async def fail(when: str, text: str) -> str:
    if when == "later":
        await anyio.sleep(0.01)
    raise ValueError(text[:10])


@server.tool
async def keep_failure(text: str) -> int:
    """Leave *text* in a reference cycle, as many functions do: a frame, its exception, and the traceback of that."""
    try:
        return int(text[:10])
    except ValueError as error:
        kept = error
    return len(str(kept))


@server.tool
async def garbage() -> dict[str, int]:
    """Return how many objects of each type could only be freed by a garbage collection.

    Those that msgspec leaves when it reads a type for the first time do not count.
    """
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = Counter(type(each).__name__ for each in gc.garbage)
    for each in ("cell", "function", "tuple"):
        del found[each]
    gc.garbage.clear()
    gc.set_debug(0)
    gc.collect()
    return found


@server.tool
async def charged() -> dict[str, int]:
    """Return how many bytes the application charges to its clients, by what bounds them."""
    state = applications[0]._state
    return {
        "max_open_bytes": state.open_quota.kept_bytes,
        "max_sessions_bytes": state.sessions.quota.kept_bytes,
        "max_unread_bytes": state.unread.kept_bytes,
    }


@server.tool
async def ledger() -> dict[str, int]:
    """Return how many bytes the server keeps for its clients, by kind."""
    return {**(applications[0].kept_bytes if applications else server._engine.ledger.by_kind())}


@server.tool
async def standing() -> str:
    """Return how many calls of `wait` are alive, and how many tasks."""
    return f"{waiting} {len(asyncio.all_tasks())}"


@server.tool
async def ask(ctx: Context, text: str = "") -> str:
    return (await ctx.elicit("Who?", FORM)).action


@server.tool
def ask_plainly(ctx: Context) -> str:
    return ctx.sync.elicit("Who?", FORM).action


@server.tool(replay=True)
async def ask_again(ctx: Context) -> str:
    return (await ctx.elicit("Who?", FORM)).action


@server.tool
async def ask_often(ctx: Context, times: int) -> str:
    for number in range(times):
        await ctx.elicit(f"{number}?", FORM)
    return "enough"


@server.tool
def drowse(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


@server.tool
async def fill(ctx: Context, count: int, size: int) -> str:
    for number in range(1, count + 1):
        await ctx.progress(number, message="x" * size)
        await anyio.lowlevel.checkpoint()
    return "said"


@server.tool
async def report(ctx: Context, count: int) -> str:
    for number in range(1, count + 1):
        await ctx.progress(number)
    return "reported"


@server.tool
async def nested() -> dict[str, Any]:
    """Return 800,000 lists."""
    value: list[Any] = []
    for _ in range(99):
        value = [value]
    return {"value": [value] * 8000}


@server.tool
async def big(size: int) -> str:
    return "x" * size


@server.tool
async def change(ctx: Context, count: int, uri: str = "") -> str:
    """Tell that a resource, or the list of tools, has changed."""
    for _ in range(count):
        await (ctx.resource_updated(uri) if uri else ctx.tools_changed())
    return "changed"


@server.tool
async def throw(what: str, when: str = "at once") -> str:
    if when == "later":
        await anyio.sleep(0.01)
    if when == "from a future":
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_later(0.01, future.set_exception, GeneratorExit("hunter2"))
        await future
    raise {"GeneratorExit": GeneratorExit}[what]("hunter2")


@server.resource("big://{size}")
async def read_big(size: int) -> str:
    return "x" * size


@server.resource("note://{+name}")
async def read_note(name: str) -> str:
    return "note"


@server.completion("note://{+name}", "name")
async def complete(value: str) -> list[str]:
    return [f"{value}{each}" for each in range(1000)]


def add_resource(number: int) -> None:
    @server.resource(f"list://{number}", name=f"list{number}")
    async def read() -> str:
        return "note"


for each in range(GIVEN.get("resources", 0)):
    add_resource(each)


if GIVEN.get("bake"):

    @server.tool(task=True)
    async def bake(size: int = 0, text: str = "") -> str:
        """End at once if *size* is given, or never."""
        return "x" * size if size else await wait(text)


class Baker(ServerHandlers[Context]):
    """Handlers whose calls become tasks."""

    def task_support(self, name: str) -> str:
        return "optional"

    async def call_tool(self, params: CallToolRequestParams, context: Context, /) -> CallToolResult:
        arguments: Any = params.arguments
        if params.name == "wait":
            await anyio.sleep_forever()
        return CallToolResult(content=[TextContent(text="x" * arguments["size"])])


if "tasks" in GIVEN:
    server = Server(
        "baker",
        version="1",
        handlers=Baker(),
        tasks=MemoryTaskStore(**GIVEN["tasks"]),
        task_limits=TaskLimits(**GIVEN.get("task_limits", {})),
    )


def main() -> None:
    """Serve on standard streams, or over HTTP if bounds of an application are given."""
    if "http" not in GIVEN:
        server.run()
        return
    from mcpgen.runtime.http.server import uvicorn_server

    serve = server.asgi

    def asgi(**options: Any) -> Application:
        applications.append(serve(**options))
        return applications[0]

    server.asgi = asgi  # type: ignore[method-assign] # so that `charged` finds it
    given = dict(GIVEN["http"])
    if given.get("rate_limit"):
        given["rate_limit"] = RateLimit(**given["rate_limit"])
    options: Any = {"limits": HttpLimits(**given)}
    if "events" in GIVEN:
        options["events"] = MemoryEventStore(**GIVEN["events"])
    if "MCPGEN_REDIS" in os.environ:
        options["cluster"] = Redis(os.environ["MCPGEN_REDIS"], timeout_seconds=10)
    uvicorn_server.serve_http(server, "127.0.0.1:0", options)


if __name__ == "__main__":
    main()
