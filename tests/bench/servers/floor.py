"""What no server can beat by much: msgspec, the descriptors, and no protocol beyond what opens a conversation.

``blocking`` reads and writes in turns. ``asyncio`` does the same whenever the loop says that there is input, in the
callback itself; ``tasks`` also runs an asynchronous handler for each call, in a task of its own.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

CHUNK_BYTES = 64 * 1024


class Params(msgspec.Struct):
    """What is read of any params."""

    arguments: dict[str, Any] = {}


class Request(msgspec.Struct):
    """What is read of a request; a notification has no id."""

    method: str
    id: int | str | None = None
    params: Params | msgspec.UnsetType = msgspec.UNSET


decode = msgspec.json.Decoder(Request).decode
encode = msgspec.json.Encoder().encode
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "1"},
}
ECHO = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
FIXED = {
    "initialize": INITIALIZED,
    "tools/list": {"tools": [ECHO], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    },
}
# The newest revision requires this in each result. After `initialize`, it is left out.
STATELESS = {"resultType": "complete"}
UNKNOWN = {"code": -32601, "message": "unknown here"}


def answered(request: Request) -> bytes:
    """Return the answer to a request."""
    if request.method == "tools/call" and request.params:
        return encoded(request.id, request.params.arguments["text"])
    if request.method == "initialize":
        STATELESS.clear()
    if request.method not in FIXED:
        return encode({"jsonrpc": "2.0", "id": request.id, "error": UNKNOWN})
    return encode({"jsonrpc": "2.0", "id": request.id, "result": FIXED[request.method]})


def encoded(number: int | str | None, text: str) -> bytes:
    """Return the answer to a call."""
    result = {"content": [{"type": "text", "text": text}], **STATELESS}
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def block() -> None:
    """Serve without a loop."""
    from os import read, write

    rest = b""
    while chunk := read(0, CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        requests = map(decode, lines)
        out = b"".join(answered(each) + b"\n" for each in requests if each.id is not None)
        while out:
            out = out[write(1, out) :]


def loop(*, with_tasks: bool) -> None:
    """Serve in a loop of asyncio's."""
    import asyncio
    import os

    asyncio.run(_loop(os.read, os.write, with_tasks=with_tasks))


async def _loop(read: Any, write: Any, *, with_tasks: bool) -> None:  # noqa: C901 (closures cost less than a class)
    import asyncio

    running = asyncio.get_running_loop()
    ended = asyncio.Event()
    rest = b""
    out: list[bytes] = []
    tasks: set[asyncio.Task[None]] = set()

    def flush() -> None:
        data = b"".join(out)
        out.clear()
        while data:
            data = data[write(1, data) :]

    async def echo(text: str) -> str:
        return text

    async def handle(request: Request) -> None:
        if request.method == "tools/call" and request.params:
            answer = encoded(request.id, await echo(request.params.arguments["text"]))
        else:
            answer = answered(request)
        if not out:
            running.call_soon(flush)
        out.append(answer + b"\n")

    def readable() -> None:
        nonlocal rest
        chunk = read(0, CHUNK_BYTES)
        if not chunk:
            running.remove_reader(0)
            ended.set()
        *lines, rest = (rest + chunk).split(b"\n")
        requests = map(decode, lines)
        if with_tasks:
            for each in requests:
                if each.id is not None:
                    task = running.create_task(handle(each))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            return
        out.extend(answered(each) + b"\n" for each in requests if each.id is not None)
        flush()

    running.add_reader(0, readable)
    await ended.wait()


if __name__ == "__main__":
    match sys.argv[1]:
        case "blocking":
            block()
        case kind:
            loop(with_tasks=kind == "tasks")
