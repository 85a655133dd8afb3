"""What no ASGI application can beat by much: it reads the body, looks for the id in it, and answers with a fixed JSON.

It knows where the id is in what the bench sends, and that the text to be echoed ends with it; nothing is decoded. The
first argument is the parser that uvicorn uses.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from http_running import run

CALL = b'"tools/call"'
ID = b'"id":'
# All ids of the bench have eight digits.
DIGITS = 8
JSON = (b"content-type", b"application/json")
SESSION = (b"mcp-session-id", b"0123456789abcdef0123456789abcdef")
ANSWER = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"hello, %b"}],"resultType":"complete"}}'
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "1"},
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    if CALL not in body:
        await open_session(body, send)
        return
    start = body.index(ID) + len(ID)
    number = body[start : start + DIGITS]
    answer = ANSWER % (number, number)
    headers = [JSON, (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def open_session(body: bytes, send: Any) -> None:
    """Answer ``initialize``, and accept the notification that follows."""
    request = msgspec.json.decode(body)
    answer = b""
    if "id" in request:
        answer = msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "result": INITIALIZED})
    headers = [JSON, SESSION, (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200 if answer else 202, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def live(receive: Any, send: Any) -> None:
    """Start and end at once."""
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


if __name__ == "__main__":
    run("floor", app, parser=sys.argv[1])
