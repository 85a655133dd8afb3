"""A server whose handlers do over HTTP what handlers should not; as a program, it serves with the bounds it is given.

What it is given is JSON: ``limits`` of the server, ``http`` and other ``options`` of the application, ``constants`` of
modules, and a ``port``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen import Context, Limits, Server
from mcpgen.runtime.limits import HttpLimits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

SECRET = "hunter2 /srv/private/key.pem"  # noqa: S105 (must not be told)
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}}


class Own(BaseException):
    """A failure that is no `Exception`."""


FAILURES: dict[str, type[BaseException]] = {
    each.__name__: each
    for each in (
        ConnectionResetError,
        GeneratorExit,
        KeyboardInterrupt,
        Own,
        RecursionError,
        StopAsyncIteration,
        SystemExit,
        TimeoutError,
        asyncio.CancelledError,
    )
}


class Guest:
    """A server, and what its handlers wait for.

    Attributes:
        gate: Opened by whoever lets the handlers go on.
        waiting: How many wait for that now.
        given_up: How many were cancelled meanwhile.
    """

    def __init__(self, **options: Any) -> None:
        self.gate = anyio.Event()
        self.waiting = 0
        self.given_up = 0
        self.server = Server("guest", version="1", **options)
        functions: tuple[Callable[..., Any], ...] = (
            self.wait,
            self.step,
            self.stubborn,
            self.tell,
            self.hang_up,
            self.standing,
            ask,
            big,
            block,
            echo,
            fill,
            grow,
            throw,
        )
        for each in functions:
            self.server.tool(each)
        self.server.resource("note://{name}")(read_note)

    async def wait(self, text: str = "waited") -> str:
        self.waiting += 1
        try:
            await self.gate.wait()
        except BaseException:
            self.given_up += 1
            raise
        finally:
            self.waiting -= 1
        return text

    async def step(self, ctx: Context, text: str = "stepped") -> str:
        """Tell of progress, wait, and tell of more."""
        await ctx.progress(1, message=text)
        await self.wait()
        await ctx.progress(2, message=text)
        return text

    async def stubborn(self) -> str:
        """Wait, and ignore being cancelled."""
        self.waiting += 1
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.given_up += 1
        self.waiting -= 1
        return "waited"

    async def tell(self, ctx: Context, mark: str, count: int) -> str:
        """Say whose it is, often, in all the ways that there are."""
        for number in range(count):
            await ctx.progress(number, message=mark)
            await ctx.log("error", mark)
            await anyio.lowlevel.checkpoint()
        return mark

    async def standing(self) -> str:
        """Say what else there is."""
        return f"waiting {self.waiting}, given up {self.given_up}, tasks {len(asyncio.all_tasks())}"

    async def hang_up(self, ctx: Context, mark: str) -> str:
        """Have the client come back for the answer."""
        await ctx.progress(1, message=mark)
        await ctx.disconnect()
        await ctx.progress(2, message=mark)
        return mark


async def ask(ctx: Context, mark: str = "Who?") -> str:
    answer = await ctx.elicit(mark, FORM)
    return f"{mark} {answer.action} {answer.content}"


async def big(size: int) -> str:
    return "x" * size


async def block() -> str:
    time.sleep(3600)  # noqa: ASYNC251 (what is tested)
    return "awake"


async def echo(text: str = "") -> str:
    return text


async def fill(ctx: Context, count: int, size: int) -> str:
    """Say much."""
    for number in range(count):
        await ctx.progress(number, message="x" * size)
    return "said"


async def grow(ctx: Context) -> str:
    """Tell everybody that there are other tools."""
    await ctx.tools_changed()
    return "grown"


async def throw(what: str, when: str = "at once") -> str:
    if when != "at once":
        await anyio.sleep(0.01)
    raise FAILURES[what](SECRET)


async def read_note(name: str) -> str:
    return f"note {name}"


@asynccontextmanager
async def bad_end(_server: Server) -> AsyncGenerator[None]:
    """Be a lifespan that fails at its end."""
    yield
    raise OSError(SECRET)


@asynccontextmanager
async def bad_start(_server: Server) -> AsyncGenerator[None]:
    """Be a lifespan that fails at its start."""
    raise OSError(SECRET)
    yield


server = Guest().server
LIFESPANS = {"bad_end": bad_end, "bad_start": bad_start}


def main(text: str) -> None:
    """Serve, and say so, until a signal comes."""
    from mcpgen.runtime.http.server import uvicorn_server

    given = json.loads(text)
    for name, value in given.get("constants", {}).items():
        module, _, constant = name.rpartition(".")
        assert hasattr(sys.modules[module], constant), name
        setattr(sys.modules[module], constant, value)
    guest = Guest(limits=Limits(**given.get("limits", {})), lifespan=LIFESPANS.get(given.get("lifespan")))
    options = {"limits": HttpLimits(**given.get("http", {})), **given.get("options", {})}
    uvicorn_server.serve_http(guest.server, f"127.0.0.1:{given.get('port', 0)}", options)


if __name__ == "__main__":
    own = str(Path(__file__).parent)  # where other modules of these names are
    sys.path[:] = [each for each in sys.path if each != own]
    main(sys.argv[1])
    sys.stderr.write("serve returned\n")
