"""The load on several workers: sessions over connections that stay open, from several processes.

A connection stays with one worker, and each has a session of its own. So servers that share nothing can be measured
with several workers, too.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Calls", "calls", "keep_sessions", "listen", "open_sessions"]

_INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}'
)
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_ECHO: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}'
_TOUCH: Final = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"touch","arguments":{}}}'
_SUBSCRIBE: Final = b'{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"note://a"}}'

# Connections that are being opened at once; more would wait in the backlog of the system.
_MAX_OPENING: Final = 64


class Calls(msgspec.Struct, frozen=True):
    """What calls took.

    Attributes:
        count: How many there were.
        seconds: In which time.
        median: Milliseconds of one.
        p99: Milliseconds that 99 of 100 took at most.
    """

    count: int
    seconds: float
    median: float
    p99: float

    @property
    def per_second(self) -> float:
        """How many there were each second."""
        return self.count / self.seconds


class _Connection:
    """A connection that stays open, with a session if the server has sessions."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host = b"Host: 127.0.0.1:%d\r\n" % port  # mcp refuses a host without its port
        self._reader = reader
        self._writer = writer
        self._session = b""

    @classmethod
    async def open(cls, port: int) -> _Connection:
        return cls(port, *await asyncio.open_connection("127.0.0.1", port))

    def close(self) -> None:
        self._writer.close()

    async def start_session(self) -> None:
        head, _ = await self.post(_INITIALIZE)
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name.lower() == b"mcp-session-id":
                self._session = b"Mcp-Session-Id: " + value + b"\r\n"
        await self.post(_INITIALIZED)

    def _send(self, method: bytes, body: bytes) -> None:
        self._writer.write(
            method
            + b" /mcp HTTP/1.1\r\n"
            + self._host
            + b"Accept: application/json, text/event-stream\r\n"
            + b"Content-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n"
            + self._session
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body
        )

    async def post(self, body: bytes) -> tuple[bytes, bytes]:
        """Return the head and the body of a response.

        Raises:
            AssertionError: The response is no success, or is a stream.
        """
        self._send(b"POST", body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            raise AssertionError(head)
        fields = head.lower()
        if b"content-length: " not in fields:
            raise AssertionError(head)
        length = int(fields.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head, await self._reader.readexactly(length)

    async def listen(self) -> None:
        """Subscribe, and open the stream of the session."""
        await self.post(_SUBSCRIBE)
        self._send(b"GET", b"")
        await self._reader.readuntil(b"\r\n\r\n")

    async def changed(self) -> float:
        """Return when the notification of a change came."""
        await self._reader.readuntil(b"notifications/resources/updated")
        return time.perf_counter()


async def _sessions(port: int, count: int) -> list[_Connection]:
    free = asyncio.Semaphore(_MAX_OPENING)

    async def one() -> _Connection:
        async with free:
            found = await _Connection.open(port)
            await found.start_session()
            return found

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def _call(port: int, connections: int, seconds: float) -> list[float]:
    opened = await _sessions(port, connections)
    until = time.perf_counter() + seconds
    spent: list[float] = []

    async def one(connection: _Connection) -> None:
        while (begin := time.perf_counter()) < until:
            _, body = await connection.post(_ECHO)
            spent.append(time.perf_counter() - begin)
            if b"hello" not in body:
                raise AssertionError(body)

    await asyncio.gather(*map(one, opened))
    for each in opened:
        each.close()
    return spent


async def _open(port: int, connections: int, seconds: float) -> list[float]:
    opened = [await _Connection.open(port) for _ in range(connections)]
    until = time.perf_counter() + seconds
    spent: list[float] = []

    async def one(connection: _Connection) -> None:
        while (begin := time.perf_counter()) < until:
            connection._session = b""
            await connection.start_session()
            spent.append(time.perf_counter() - begin)

    await asyncio.gather(*map(one, opened))
    for each in opened:
        each.close()
    return spent


def _run(main: Callable[[int, int, float], Coroutine[None, None, list[float]]], *given: float) -> list[float]:
    port, connections, seconds = given
    return asyncio.run(main(int(port), int(connections), seconds))


def _measured(main: Callable[[int, int, float], Coroutine[None, None, list[float]]], *given: float) -> Calls:
    port, connections, seconds, processes = given
    spent: list[float] = []
    with ProcessPoolExecutor(int(processes), mp_context=get_context("spawn")) as pool:
        each = [pool.submit(_run, main, port, connections, seconds) for _ in range(int(processes))]
        for found in each:
            spent += found.result()
    spent.sort()
    return Calls(len(spent), seconds, 1000 * spent[len(spent) // 2], 1000 * spent[len(spent) * 99 // 100])


def calls(port: int, *, connections: int, seconds: float, processes: int) -> Calls:
    """Call `echo` over *connections* of each process, one call at a time on each."""
    return _measured(_call, port, connections, seconds, processes)


def open_sessions(port: int, *, connections: int, seconds: float, processes: int) -> Calls:
    """Open sessions, each with two requests, one session after the other on each connection."""
    return _measured(_open, port, connections, seconds, processes)


async def keep_sessions(port: int, count: int) -> None:
    """Open sessions, use each of them once, and leave them open."""
    connections = [await _Connection.open(port) for _ in range(min(count, _MAX_OPENING))]

    async def some(connection: _Connection, number: int) -> None:
        for _ in range(number, count, len(connections)):
            connection._session = b""
            await connection.start_session()
            await connection.post(_ECHO)

    await asyncio.gather(*(some(each, number) for number, each in enumerate(connections)))
    for each in connections:
        each.close()


async def listen(port: int, listeners: int, changes: int) -> list[float]:
    """Return the milliseconds until all *listeners* have heard of a change, for each of some changes."""
    opened = await _sessions(port, listeners)
    for each in opened:
        await each.listen()
    await asyncio.sleep(2)  # until every worker knows of the last subscription
    (caller,) = await _sessions(port, 1)
    found: list[float] = []
    for _ in range(changes):
        begin = time.perf_counter()
        waiting = asyncio.gather(*(each.changed() for each in opened))
        await caller.post(_TOUCH)
        found.append(1000 * (max(await waiting) - begin))
    for each in (*opened, caller):
        each.close()
    return found
