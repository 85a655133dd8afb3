"""A server on its standard streams that tells what its ledger holds: as JSON on standard error, at each SIGUSR1."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

import anyio

from mcpgen import Context, Limits, Server
from mcpgen.runtime.transports.spawner import open_spawner

LIMITS: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}}

server = Server("ledger", version="1", limits=Limits(**LIMITS))


class Silence:
    """A client that reads everything and keeps nothing."""

    is_full = False

    def write(self, message: bytes) -> None:
        """Forget *message*."""

    async def drain(self) -> None:
        """Return at once."""


@server.tool
async def echo(text: str = "") -> str:
    return text


@server.tool
async def wait(value: Any = None) -> str:
    await anyio.sleep_forever()
    return str(value)


@server.tool
async def ask(ctx: Context, text: str = "") -> str:
    return (await ctx.elicit("Who?", FORM)).action + text


@server.tool
async def connect(ctx: Context, count: int, frames: list[str]) -> str:
    """Open more connections, send *frames* on each, and close them when this call is cancelled."""
    async with open_spawner() as spawner:
        connections = [server.connect(Silence(), spawner) for _ in range(count)]
        try:
            for each in connections:
                each.receive([frame.encode() for frame in frames])
            await ctx.log("info", "connected")
            await anyio.sleep_forever()
        finally:
            for each in connections:
                each.close()
    return ""


@server.resource("note://{+name}")
async def note(name: str) -> str:
    return name


def tell() -> None:
    os.write(2, json.dumps(server._engine.ledger.by_kind()).encode() + b"\n")


def tell_at_signals(loop: asyncio.AbstractEventLoop) -> None:
    # In a thread of its own: a handler of signals does not run if the main thread is just about to wait for input.
    while True:
        signal.sigwait({signal.SIGUSR1})
        # Not at once: the signal may come while a request that has just been answered is still open.
        loop.call_soon_threadsafe(tell)


async def main() -> None:
    threading.Thread(target=tell_at_signals, args=(asyncio.get_running_loop(),), daemon=True).start()
    await server.run_async()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # in all threads, which inherit it
    asyncio.run(main())
