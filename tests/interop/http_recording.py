"""What a relay wrote down, read again as HTTP: each request and each response, step by step, before a judge.

Theory of operation. Each connection is read by two parsers of HTTP, one for either side, and what one of them
understands the other is told, since a response is read by the request that it answers. The steps of all connections
come in the order in which their last bytes went through the relay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11

from tests.specification.http_server.asgi_exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.relay import Tape
    from tests.specification.http_server.asgi_exchange import Watcher

__all__ = ["excerpt", "play"]

# The values of headers are lines of text; a client may mirror the arguments of a tool in them.
MOST_HEAD_BYTES = 256 * 1024


def play(tape: Tape, watcher: Watcher) -> list[str]:
    """Let *watcher* see all exchanges on *tape*; return where what was sent is not HTTP."""
    connections: dict[int, _Connection] = {}
    for number, is_clients, data in tape.pieces:
        if number not in connections:
            connections[number] = _Connection(watcher)
        connections[number].take(data, is_clients=is_clients)
    return [fault for each in connections.values() for fault in each.faults]


def excerpt(tape: Tape, most: int = 400) -> Iterator[str]:
    """Yield what was sent, in short, for people."""
    for number, is_clients, data in tape.pieces:
        text = data[:most].decode(errors="replace") + ("…" if len(data) > most else "")
        yield f"{number} {'>' if is_clients else '<'} {text if data else '(closed)'}"


class _Connection:
    def __init__(self, watcher: Watcher) -> None:
        self.faults: list[str] = []
        self._watcher = watcher
        self._exchange: Exchange | None = None
        self._target = ("", "")
        self._lines: list[tuple[str, str]] = []
        self._body = b""
        self._is_closed = False
        self._early = b""  # from a server that does not wait for the end of a request
        self._is_asked = True
        # Named after whom they listen to.
        self._client = h11.Connection(h11.SERVER, MOST_HEAD_BYTES)
        self._server = h11.Connection(h11.CLIENT, MOST_HEAD_BYTES)

    def take(self, data: bytes, *, is_clients: bool) -> None:
        """Take what one side sent, or (nothing) that it has closed the connection."""
        if self._is_closed:
            return
        try:
            if is_clients:
                self._client.receive_data(data)
                self._from_client()
                if self._is_asked and self._early:
                    early, self._early = self._early, b""
                    self._server.receive_data(early)
                    self._from_server()
            elif not self._is_asked and data:
                self._early += data
            else:
                self._server.receive_data(data)
                self._from_server()
        except h11.ProtocolError as error:
            side = "client" if is_clients else "server"
            self.faults.append(f"the {side} does not speak HTTP: {error}: {data[:200]!r}")
            self._is_closed = True
        if not data:
            self._close(is_clients=is_clients)

    def _close(self, *, is_clients: bool) -> None:
        exchange, self._exchange = self._exchange, None
        if not self._is_closed and exchange is not None:
            exchange.has_left = is_clients
            exchange.has_returned = True
            self._watcher.returned(exchange)
        self._is_closed = True

    def _from_client(self) -> None:
        while True:
            event = self._client.next_event()
            match event:
                case h11.Request():
                    self._target = (event.method.decode(), event.target.decode())
                    self._lines = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
                    self._body = b""
                    self._is_asked = False
                    self._server.send(event)
                case h11.Data():
                    self._body += bytes(event.data)
                    self._server.send(event)
                case h11.EndOfMessage():
                    self._server.send(event)
                    self._is_asked = True
                    method, target = self._target
                    self._exchange = Exchange(method, target, self._lines, [self._body], self._watcher)
                    self._watcher.asked(self._exchange)
                case _:  # there is no more, or the connection is closed
                    return

    def _from_server(self) -> None:
        while True:
            event = self._server.next_event()
            match event:
                case h11.Response() if self._exchange is not None:
                    self._exchange.status = event.status_code
                    self._exchange.response_lines = list(event.headers)
                    self._client.send(event)
                    self._watcher.started(self._exchange)
                case h11.Data() if self._exchange is not None:
                    self._client.send(event)
                    self._exchange.body += bytes(event.data)
                    self._watcher.sent(self._exchange, bytes(event.data))
                case h11.EndOfMessage() if self._exchange is not None:
                    self._client.send(event)
                    self._end(self._exchange)
                case h11.InformationalResponse():
                    pass
                case h11.Response():
                    self.faults.append(f"the server answers {event.status_code} to nothing")
                    return
                case _:
                    return

    def _end(self, exchange: Exchange) -> None:
        exchange.is_ended = exchange.has_returned = True
        self._watcher.ended(exchange)
        self._watcher.returned(exchange)
        self._exchange = None
        if self._client.our_state is self._client.their_state is h11.DONE:
            self._client.start_next_cycle()
            self._server.start_next_cycle()
