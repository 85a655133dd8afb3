"""A server whose handlers do what handlers should not; as a program, it serves on its standard streams."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from mcpgen import Context, Limits, RequestError, Server, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "hunter2 /srv/private/key.pem"  # noqa: S105 (must not be told)

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


class Own(BaseException):
    """A failure that is no `Exception`."""


FAILURES: dict[str, type[BaseException]] = {
    each.__name__: each
    for each in (
        AssertionError,
        GeneratorExit,
        KeyError,
        KeyboardInterrupt,
        MemoryError,
        Own,
        RecursionError,
        StopAsyncIteration,
        StopIteration,
        SystemExit,
        TimeoutError,
        asyncio.CancelledError,
    )
}


class Loop(list[Any]):
    """A list that holds itself."""

    def __init__(self) -> None:
        super().__init__([self])


VALUES: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "10^400": 10**400,
    "10^5000": 10**5000,
    "half a pair": "a\ud800b",
    "half a pair as a key": {"\udfff": 1},
    "an object": object(),
    "a set of objects": {object()},
    "itself": Loop(),
    "a line break": "a\nb\r\nc\u2028d\x00e\x7f",
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
            self.stubborn,
            self.slow,
            echo,
            throw,
            throw_in_thread,
            hanging_thread,
            value,
            structured,
            progress,
            log,
            ask,
            ask_often,
            big,
        )
        for each in functions:
            self.server.tool(each)
        self.server.tool(name="printing")(printing)
        self.server.resource("fail://{what}")(fail)
        self.server.resource("file:///srv/{+path}")(read)
        self.server.resource("note://{name}/text")(read_note)
        self.server.resource("list://all{/parts*}")(read_parts)
        self.server.prompt(review)

    async def wait(self) -> str:
        self.waiting += 1
        try:
            await self.gate.wait()
        except BaseException:
            self.given_up += 1
            raise
        finally:
            self.waiting -= 1
        return "waited"

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

    async def slow(self, ctx: Context) -> str:
        """Ask, and then wait."""
        await ctx.elicit("Who?", FORM)
        return await self.wait()


async def echo(text: str = "") -> str:
    return text


async def throw(what: str, when: str = "at once") -> str:
    if when != "at once":
        await anyio.lowlevel.checkpoint()
    if when == "in a group":
        raise BaseExceptionGroup(SECRET, [FAILURES[what](SECRET)])
    raise FAILURES[what](SECRET)


def throw_in_thread(what: str) -> str:
    raise FAILURES[what](SECRET)


def hanging_thread() -> None:
    threading.Event().wait()


async def value(what: str) -> Any:
    return VALUES[what]


async def structured(what: str) -> dict[str, Any]:
    return {"value": VALUES[what]}


async def progress(ctx: Context, count: int) -> str:
    for number in range(count):
        await ctx.progress(number)
    return "done"


async def log(ctx: Context, count: int) -> str:
    for number in range(count):
        await ctx.log("error", f"{number} of {count}")
    return "done"


async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who?", FORM)
    return f"{answer.action} {answer.content}"


async def ask_often(ctx: Context, times: int) -> str:
    for number in range(times):
        await ctx.elicit(f"{number}?", FORM)
    return "enough"


async def big(size: int) -> str:
    return "x" * size


async def printing(text: str) -> str:
    print(text, "by print")  # noqa: T201 (what is tested)
    ctypes.CDLL(None).puts(f"{text} by C".encode())
    os.write(1, f"{text} by descriptor\n".encode())
    return "printed"


async def fail(what: str) -> str:
    if what == "RequestError":
        raise RequestError(4711, "told", {"why": "told"})
    if what == "ToolError":
        raise ToolError(SECRET)
    raise FAILURES[what](SECRET)


async def read(path: str) -> str:
    return f"path {path}"


async def read_note(name: str) -> str:
    return f"note {name}"


async def read_parts(parts: list[str]) -> str:
    return f"parts {parts}"


async def review(code: str) -> str:
    if code in FAILURES:
        raise FAILURES[code](SECRET)
    return code


if __name__ == "__main__":
    # A limit that a test reaches within a second.
    Guest(limits=Limits(max_in_flight=2000)).server.run()
    sys.stderr.write("run returned\n")
