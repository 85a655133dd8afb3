"""Count the modules and functions of mcpgen that one `tools/call` of 2025-11-25 passes in a server.

    python -m tests.bench.call_path

On stdio, the server reads and writes pipes. Over HTTP, it is an ASGI application without an ASGI server. Other calls
come before the one that is counted, so that nothing in it is made for the first time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from mcpgen import Access, Context, Protect, Server
from mcpgen.runtime.transports.descriptors import open_sink, open_source
from mcpgen.runtime.transports.spawner import open_spawner
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from types import FrameType

TOOLS: Final = ("plain", "with_context", "structured")
"""The tools of `made`."""

PROTECTED: Final = "protected"
"""The tool ``plain`` of a server that demands a token, which it has verified before."""

_REVISION: Final = "2025-11-25"
_EARLIER_CALLS: Final = 5
_ROOMS: Final = ("/runtime/", "/generated/")


class Passed:
    """The functions of mcpgen that are called while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self._functions: set[tuple[str, str]] = set()

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; a function for `sys.setprofile`."""
        del argument
        path = frame.f_code.co_filename
        if self.is_on and event == "call" and any(each in path for each in _ROOMS):
            self._functions.add((path, frame.f_code.co_qualname))

    def counts(self) -> tuple[int, int]:
        """Return the number of modules, and of functions."""
        return len({path for path, _ in self._functions}), len(self._functions)


def made() -> Server:
    """Return a server with one tool of each kind."""
    server = Server("call path", version="1")

    @server.tool
    async def plain(text: str) -> str:
        return text

    @server.tool
    async def with_context(text: str, context: Context) -> str:
        return f"{text} of {context.peer.revision}"

    @server.tool
    async def structured(text: str) -> dict[str, str]:
        return {"text": text}

    del plain, with_context, structured
    return server


def messages(tool: str) -> list[bytes]:
    """Return what a client sends: a handshake, and calls of which the last is counted."""
    info = {"name": "call path", "version": "1"}
    opening = {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": info}
    call = {"name": tool, "arguments": {"text": "hello"}}
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        *({"id": number, "method": "tools/call", "params": call} for number in range(1, _EARLIER_CALLS + 2)),
    ]
    return [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in sent]


def over_http(tool: str) -> tuple[int, int]:
    """Return how many modules and functions a call of *tool* passes over HTTP."""
    passed = Passed()
    auth = _protect() if tool == PROTECTED else None
    asyncio.run(_over_http(messages("plain" if auth else tool), passed, auth))
    return passed.counts()


def _protect() -> Protect:
    async def verify(_: str) -> Access:
        return Access(subject="ann", scopes=frozenset({"echo"}))

    url = "https://login.example.com"
    return Protect(resource="https://mcp.example.com/mcp", issuers=[url], scopes=["echo"], verify=verify)


async def _over_http(sent: list[bytes], passed: Passed, auth: Protect | None) -> None:
    app = made().asgi(bound_to="127.0.0.1", auth=auth)
    session: list[tuple[bytes, bytes]] = []
    async with app.running():
        for each in sent:
            if each is sent[-1]:
                sys.setprofile(passed.note)
                passed.is_on = True
            answer = await _post(app, each, session)
            passed.is_on = False
            sys.setprofile(None)
            session = session or [pair for pair in answer[0]["headers"] if pair[0] == b"mcp-session-id"]


async def _post(app: Any, body: bytes, session: list[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    names = {"host": "127.0.0.1", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    names["authorization"] = "Bearer 1234"  # which only a protected server reads
    headers = [(name.encode(), value.encode()) for name, value in names.items()]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(event: dict[str, Any]) -> None:
        said.append(event)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "client": ("127.0.0.1", 1)}
    await app({**scope, "headers": [*headers, *session]}, receive, send)
    return said


def over_stdio(tool: str) -> tuple[int, int]:
    """Return how many modules and functions a call of *tool* passes on stdio."""
    passed = Passed()
    source, into = os.pipe()
    out_of, sink = os.pipe()
    client = Thread(target=_talk, args=(messages(tool), into, out_of, passed), daemon=True)
    client.start()
    sys.setprofile(passed.note)
    try:
        asyncio.run(_over_stdio(source, sink))
    finally:
        sys.setprofile(None)
        for each in (source, out_of, sink):
            os.close(each)
    return passed.counts()


async def _over_stdio(source: int, sink: int) -> None:
    server = made()
    pump_of = open_pump(open_source(source), open_sink(sink))
    async with server.running(), open_spawner() as spawner, pump_of as pump:
        await pump.run(server.connect(pump, spawner))


def _talk(sent: list[bytes], into: int, out_of: int, passed: Passed) -> None:
    for each in sent:
        passed.is_on = each is sent[-1]
        os.write(into, each + b"\n")
        if b'"id"' in each:
            os.read(out_of, 1 << 16)
    passed.is_on = False
    os.close(into)


def main() -> None:
    """Print the counts."""
    for transport, count, tools in (("stdio", over_stdio, TOOLS), ("http", over_http, (*TOOLS, PROTECTED))):
        for tool in tools:
            modules, functions = count(tool)
            sys.stdout.write(f"{transport:6} {tool:13} {modules:3} modules {functions:4} functions\n")


if __name__ == "__main__":
    main()
