"""A relay on this machine, between a client and a server of HTTP, that writes down what goes through it.

It changes nothing and holds nothing back: each piece of what one side sends is written down, and handed on at once. So
what was heard before something was said comes before it on the tape, whatever the connections.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Self

__all__ = ["Piece", "Relay", "Tape"]

T = TypeVar("T")

HOST = "127.0.0.1"
AT_MOST = 65536


class Piece(NamedTuple):
    """What came in one go.

    Attributes:
        connection: On which connection, by number.
        is_clients: Whether the client sent it.
        data: It; nothing, when that side has closed the connection.
    """

    connection: int
    is_clients: bool
    data: bytes


class Tape:
    """What went through one door of a relay.

    Attributes:
        url: Where clients find the server behind it: scheme, host and port.
        pieces: In the order in which they came.
    """

    def __init__(self) -> None:
        self.url = ""
        self.pieces: list[Piece] = []
        self._connections = 0

    def enter(self) -> int:
        """Return the number of a new connection."""
        self._connections += 1
        return self._connections


class Relay:
    """Doors to servers, all of them held open by one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def door(self, port: int) -> Iterator[Tape]:
        """Open a door to the server at *port* of this machine for the length of the block."""
        tape = Tape()
        passing: set[asyncio.Task[None]] = set()

        async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            passing.add(task)
            try:
                await _relay(tape, port, reader, writer)
            finally:
                passing.discard(task)

        async def leave() -> None:
            server.close()
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

        server = self._do(asyncio.start_server(enter, HOST, 0, limit=AT_MOST))
        tape.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        try:
            yield tape
        finally:
            self._do(leave())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _relay(tape: Tape, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    number = tape.enter()
    try:
        from_server, to_server = await asyncio.open_connection(HOST, port, limit=AT_MOST)
    except OSError:  # nobody is there any more
        writer.close()
        return
    ways = [
        asyncio.create_task(_pass_on(tape, number, reader, to_server, is_clients=True)),
        asyncio.create_task(_pass_on(tape, number, from_server, writer, is_clients=False)),
    ]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()
        for each in (writer, to_server):
            each.close()


async def _pass_on(
    tape: Tape, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_clients: bool
) -> None:
    closer = is_clients
    while data := await _read(reader):
        tape.pieces.append(Piece(number, is_clients, data))  # before anybody can answer it
        try:
            writer.write(data)
            await writer.drain()
        except ConnectionError:
            closer = not is_clients
            break
    tape.pieces.append(Piece(number, closer, b""))
    # Neither side of HTTP says more on a connection that it has closed.
    writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        return await reader.read(AT_MOST)
    return b""
