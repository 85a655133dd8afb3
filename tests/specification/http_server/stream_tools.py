"""Tools that take their time, change things, or hang up: what the rules of streams are tried with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from tests.specification.http_server.revision_sets import NEWEST
from tests.specification.server.revision_server import handlers, server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.api.server import Server


async def steps(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Tell of progress, wait for the gate, and tell of more."""
    await context.progress(1, 3, "one")
    own.waiting.set()
    try:
        await own.gate.wait()
    except BaseException:
        own.given_up += 1
        raise
    await context.progress(2, 3, "two")
    return own.text(str(arguments.get("say", "done")))


async def hang_up(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Close the connection, wait for the gate, and answer whoever has come back."""
    await context.progress(1, 3, "one")
    await context.disconnect()
    own.waiting.set()
    await own.gate.wait()
    await context.progress(2, 3, "two")
    return own.text("done")


async def grow(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Tell everybody that there are other tools."""
    await context.tools_changed()
    return own.text("grown")


async def touch(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Tell whoever watches it that a resource has changed."""
    await context.resource_updated("note://a")
    return own.text("touched")


async def stubborn(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Go on after the client has lost interest."""
    await context.progress(1)
    own.waiting.set()
    with anyio.CancelScope(shield=True):
        await own.gate.wait()
    await context.progress(2)
    await context.log("emergency", "still here")
    own.given_up += 1
    return own.text("late")


async def ask_twice(own: Any, arguments: dict[str, Any], context: Any) -> Any:
    """Ask for roots, tell of progress, and ask again."""
    first = await context.roots()
    await context.progress(1)
    second = await context.roots()
    return own.text(f"{len(first)} {len(second)}")


TOOLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "ask_twice": ask_twice,
    "grow": grow,
    "hang_up": hang_up,
    "steps": steps,
    "stubborn": stubborn,
    "touch": touch,
}


def behaviour(native_revision: str = NEWEST, **more: Any) -> Any:
    """Return handlers with these tools, besides those of the tests of the protocol."""
    return handlers(native_revision, tools={**TOOLS, **more.pop("tools", {})}, **more)


def demo(own: Any = None, *, native_revision: str = NEWEST, revisions: list[str] | None = None, **more: Any) -> Server:
    """Return a server with these tools."""
    return server(native_revision, own=own or behaviour(native_revision, **more), revisions=revisions)
