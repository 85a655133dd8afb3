"""A server for `uvicorn --workers`: run by tests, with the URL of Redis in the environment."""

from __future__ import annotations

import os

import anyio

from mcpgen import Context, Redis, RedisTaskStore, Server, TaskLimits

REDIS = os.environ.get("WORKERS_REDIS")
store = RedisTaskStore(REDIS, name="workers", timeout_seconds=10) if REDIS else None
server = Server("workers", version="1", tasks=store, task_limits=TaskLimits(lease_seconds=2))


def write_down(name: str) -> None:
    """Note that a function runs: with the name that its caller has given to the call, and the id of the process."""
    file = os.open(os.environ["WORKERS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{name} {os.getpid()}\n".encode())
    os.close(file)


async def told_to_go_on() -> None:
    """Return when the test has written a file beside the ledger."""
    while not await anyio.Path(os.environ["WORKERS_LEDGER"] + ".go").exists():  # noqa: ASYNC110 (a file)
        await anyio.sleep(0.1)


@server.tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool
def process() -> str:
    """Return the id of the process."""
    return str(os.getpid())


@server.tool
async def work(name: str) -> str:
    """Note that this runs, and need some time before and after that."""
    await anyio.sleep(0.01)
    write_down(name)
    await anyio.sleep(0.01)
    return name


@server.tool(task=True)
async def once(name: str) -> str:
    """Wait until the test goes on."""
    write_down(name)
    await told_to_go_on()
    return name


@server.tool(task=True, replay=True)
async def again(name: str) -> str:
    """Wait until the test goes on, and begin anew at another worker if this one ends."""
    write_down(name)
    await told_to_go_on()
    return name


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
    return f"{form.action} {os.getpid()}"


@server.tool(replay=True)
async def ask_again(ctx: Context) -> str:
    """Ask the user, at another worker if this one ends meanwhile."""
    write_down("ask_again")
    form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
    return f"{form.action} {os.getpid()}"


@server.tool
async def ask_slowly(ctx: Context) -> str:
    """Ask the user, and need a minute after that."""
    await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
    await anyio.sleep(60)
    return "done"


@server.tool
async def touch(ctx: Context) -> str:
    """Report a change of a resource."""
    await ctx.resource_updated("note://a")
    return "touched"


@server.tool
async def count(ctx: Context) -> str:
    """Report progress for a minute."""
    for step in range(1, 601):
        await ctx.progress(step)
        await anyio.sleep(0.1)
    return "done"


@server.resource("note://a")
def note() -> str:
    """Return a text."""
    return "text"


app = server.asgi(cluster=Redis(REDIS, timeout_seconds=10) if REDIS else None)
