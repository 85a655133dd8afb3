"""A load generator for HTTP: connections that stay, each with one request at a time, and bytes prepared in advance.

One thread waits for all connections at once. While the clock runs it reads, sees whether a response is whole, and
writes the next request; whether the answers were right is looked at afterwards. A response as long as the one before,
read in one piece, is taken for whole without a look into it. If it was not, what follows is in disorder, which the
check finds.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.bench import traffic
from tests.bench.http import wire
from tests.bench.load import ServerGone
from tests.bench.traffic import STATELESS, Traffic, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from tests.bench.http.listening import Listening

READ_BYTES: Final = 256 * 1024
# More than any measurement takes; some systems would let everybody have millions, and copy a table of as many.
_MOST_DESCRIPTORS: Final = 10_000
_USUAL_DESCRIPTORS: Final = 256


class Driven(msgspec.Struct, frozen=True):
    """What a batch took.

    Attributes:
        clock: Microseconds a call, by the clock.
        cpu: Microseconds of the server's CPU a call; None if the system does not count them.
        waits: Microseconds from sending each call to having its whole answer.
    """

    clock: float
    cpu: float | None
    waits: list[float]


class Connections:
    """Some clients of one server, each with a connection, and a session where the revision has them."""

    def __init__(self, server: Listening, talk: Traffic, clients: Sequence[tuple[socket.socket, str]]) -> None:
        self._server = server
        self._traffic = talk
        self._sockets = [each for each, _ in clients]
        self._sessions = [session for _, session in clients]

    def __enter__(self) -> Self:
        """Return them."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections; sessions stay behind."""
        for each in self._sockets:
            each.close()

    def reconnect(self) -> None:
        """Open new connections, as a server may close those that were idle for some seconds."""
        for number, each in enumerate(self._sockets):
            each.close()
            self._sockets[number] = connected(self._server.address)

    def call(self, count: int, *, tool: str = "echo") -> Driven:
        """Call *count* times: each connection again when its last call is answered.

        Raises:
            ServerGone: It closed a connection.
            WrongAnswer: Something else came back than what was sent.
        """
        batch = self._traffic.calls(count, tool=tool)
        heads = [self._head(tool, batch.length, session) for session in self._sessions]
        bodies = batch.messages()
        with self._server.patience:
            cpu = self._server.cpu()
            start = time.perf_counter_ns()
            answers, waits = self._driven(heads, bodies)
            clock = time.perf_counter_ns() - start
            spent = self._server.cpu() - cpu
        traffic.check(batch, [message + b"\n" for answer in answers for message in wire.messages(answer)])
        return Driven(clock / count / 1000, spent / count / 1000 if spent else None, [each / 1000 for each in waits])

    def send(self, tool: str, **arguments: str) -> None:
        """Send one call, by the first of them, and wait for nothing."""
        body = self._traffic.call(tool, **arguments)
        self._sockets[0].sendall(self._head(tool, len(body), self._sessions[0]) + body)

    def receive(self) -> str:
        """Return the text of the result of the call that was sent.

        Raises:
            WrongAnswer: It has no such result.
        """
        (message,) = wire.messages(response(self._sockets[0]))
        return traffic.text_of(message)

    def end_sessions(self) -> None:
        """End all sessions, where there are any."""
        with self._server.patience:
            for each, session in zip(self._sockets, self._sessions, strict=True):
                if session:
                    each.sendall(wire.delete(self._server.address, self._traffic.revision, session))
                    wire.messages(response(each))

    def _head(self, tool: str, length: int, session: str) -> bytes:
        where, revision = self._server.address, self._traffic.revision
        return wire.post(where, revision, "tools/call", length=length, name=tool, session=session)

    def _driven(self, heads: list[bytes], bodies: list[bytes]) -> tuple[list[bytes], list[int]]:
        waiting = poller()
        # What is needed of a connection, by its descriptor.
        connections: dict[int, tuple[Any, Any, bytes]] = {}
        rest: dict[int, bytes] = {}
        started: dict[int, int] = {}
        answers: list[bytes] = []
        waits: list[int] = []
        answered, waited, poll, clock = answers.append, waits.append, waiting.poll, time.perf_counter_ns
        left = iter(bodies)
        usual = -1
        for each, head, body in zip(self._sockets, heads, left, strict=False):
            number = each.fileno()
            connections[number] = (each.recv, each.send, head)
            rest[number] = b""
            waiting.register(number, select.POLLIN)
            started[number] = clock()
            each.send(head + body)
        while len(answers) < len(bodies):
            for number, _ in poll():
                receive, send, head = connections[number]
                data = receive(READ_BYTES)
                if len(data) != usual or rest[number]:
                    if not data:
                        raise ServerGone(self._server.last_words())
                    data = rest[number] + data
                    if not wire.is_complete(data):
                        rest[number] = data
                        continue
                    rest[number] = b""
                    usual = len(data)
                now = clock()
                waited(now - started[number])
                answered(data)
                if (body := next(left, None)) is not None:
                    started[number] = now
                    send(head + body)
        return answers, waits


def clients(server: Listening, revision: str, count: int) -> Connections:
    """Return *count* clients, connected."""
    talk = Traffic(revision)
    with ExitStack() as opening, server.patience:
        found = [opening.enter_context(connected(server.address)) for _ in range(count)]
        made = Connections(server, talk, [(each, opened(each, server, talk)) for each in found])
        opening.pop_all()  # they are the caller's from now on
        return made


def connected(where: wire.Address) -> socket.socket:
    """Return a connection to a server, which sends what it gets at once."""
    found = socket.create_connection((where.host, where.port))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def response(connection: socket.socket) -> bytes:
    """Return the next response on a connection.

    Raises:
        ServerGone: It was closed.
    """
    data = b""
    while not wire.is_complete(data):
        if not (piece := connection.recv(READ_BYTES)):
            raise ServerGone("the connection was closed")
        data += piece
    return data


def opened(connection: socket.socket, server: Listening, talk: Traffic) -> str:
    """Open a session, where the revision has them, and return its id."""
    if talk.revision in STATELESS:
        return ""
    body = talk.opening()
    connection.sendall(wire.post(server.address, talk.revision, "initialize", length=len(body)) + body)
    answer = response(connection)
    if b'"result"' not in answer:
        raise WrongAnswer(answer.decode(errors="replace"))
    session = wire.session(answer)
    body = talk.opened()
    method = "notifications/initialized"
    head = wire.post(server.address, talk.revision, method, length=len(body), session=session)
    connection.sendall(head + body)
    wire.messages(response(connection))
    return session


def allow_descriptors() -> int:
    """Let this process, and those that it starts from now on, have as many descriptors as it may; return how many."""
    try:
        import resource
    except ImportError:
        return _USUAL_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


def poller() -> Any:
    """Return what tells which of many connections have something to be read."""
    # Both say what is ready in the same way; the first does not look at each connection to find out.
    return select.epoll() if hasattr(select, "epoll") else select.poll()
