"""What no client on httpx can beat by much: its `AsyncClient`, msgspec, and nothing checked.

``http_floor.py REVISION URL``; with ``http_floor.py REVISION URL sockets`` the same without httpx, on asyncio's
connections, which are kept and used again.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from orders import obey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    # Body and head of a request; head and body of its response.
    Post = Callable[[bytes, dict[str, str]], Awaitable[tuple[Any, bytes]]]

STATELESS = "2026-07-28"
WHO = {"name": "floor", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
SESSION = "mcp-session-id"

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


async def main(revision: str, url: str, kind: str = "httpx") -> None:
    """Connect, and call as ordered."""
    if kind == "httpx":
        import httpx

        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:

            async def post(body: bytes, headers: dict[str, str]) -> tuple[Any, bytes]:
                response = await client.post(url, content=body, headers=headers)
                return response.headers, response.content

            await calling(revision, post)
    else:
        await calling(revision, Sockets(url).post)


async def calling(revision: str, post: Post) -> None:
    """Call as ordered."""
    headers = {**HEADERS, "mcp-protocol-version": revision}
    if revision == STATELESS:
        headers |= {"mcp-method": "tools/call", "mcp-name": "echo"}
    else:
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": WHO}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        found, _ = await post(encode(body), HEADERS)
        headers |= {SESSION: found[SESSION]}
        await post(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}), headers)
    last = 0

    async def call(name: str, arguments: dict[str, Any]) -> str:
        nonlocal last
        last += 1
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if revision == STATELESS:
            params["_meta"] = META
        _, answer = await post(
            encode({"jsonrpc": "2.0", "id": last, "method": "tools/call", "params": params}), headers
        )
        text: str = decode(answer)["result"]["content"][0]["text"]
        return text

    await obey(call)


class Sockets:
    """Connections to one server, for answers that say how long they are."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._first = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n"
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
        """Return the head and the body of the answer."""
        reader, writer = self._free.pop() if self._free else await asyncio.open_connection(self._host, self._port)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        writer.write(f"{self._first}{lines}content-length: {len(body)}\r\n\r\n".encode() + body)
        first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        if " 20" not in first:
            raise ValueError(first)
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
        answer = await reader.readexactly(int(found.get("content-length", "0")))
        self._free.append((reader, writer))
        return found, answer


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
