"""What many clients cost that do nothing: those that have a session, and those that wait to hear of a change."""

from __future__ import annotations

import json
import select
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.http import serving, wire
from tests.bench.http.connections import (
    READ_BYTES,
    Connections,
    allow_descriptors,
    clients,
    connected,
    opened,
    poller,
    response,
)
from tests.bench.http.listening import Listening
from tests.bench.http.serving import HANDSHAKE, OURS, STATELESS, Contender
from tests.bench.load import ServerGone
from tests.bench.stopwatch import Timing, timing
from tests.bench.traffic import Traffic, WrongAnswer

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

SESSIONS: Final = 10_000
STREAMS: Final = 1_000
CHANGES: Final = 20

_CHANGED: Final = "notifications/tools/list_changed"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
# The first of them fill caches and pools, which all share.
_FIRST: Final = 10
# What a server still does after its last answer is over by then, a hundred times.
_IDLE_SECONDS: Final = 0.2


class SessionsRow(msgspec.Struct, frozen=True, kw_only=True):
    """What idle sessions take.

    Attributes:
        contender: Who has them.
        count: How many there were in the end.
        size: KiB of resident memory that one of the last nine tenths took.
        opening: Microseconds by the clock to open one, that is of two requests one after the other.
    """

    contender: Contender
    count: int
    size: float
    opening: float


class StreamsRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long it takes to tell all who listen.

    Attributes:
        contender: Who tells them.
        revision: What they speak.
        count: How many listen.
        all: Milliseconds from sending the call that changes something until the last has the notification.
        cpu: Milliseconds of the server's CPU for it; None if the system does not count it.
        size: KiB of resident memory that one of them takes, with its connection.
    """

    contender: Contender
    revision: str
    count: int
    all: Timing
    cpu: Timing | None
    size: float


def sessions(racing: Sequence[tuple[Contender, int]]) -> Iterator[SessionsRow]:
    """Measure what sessions take; with each server comes how many it is to have.

    Raises:
        WrongAnswer: The first or the last of them cannot be used in the end.
    """
    for contender, count in racing:
        with Listening(contender.command) as server, connected(server.address) as connection, server.patience:
            talk = Traffic(HANDSHAKE)
            found = [opened(connection, server, talk) for _ in range(count // _FIRST)]
            before = _settled(server)
            start = time.perf_counter()
            found += [opened(connection, server, talk) for _ in range(count - len(found))]
            spent = time.perf_counter() - start
            grown = _settled(server) - before
            for session in (found[0], found[-1]):
                _use(connection, server, talk, session)
            late = count - count // _FIRST
            yield SessionsRow(contender=contender, count=count, size=grown * 1024 / late, opening=spent * 1e6 / late)


def streams(racing: Sequence[Contender], *, count: int = STREAMS, changes: int = CHANGES) -> Iterator[StreamsRow]:
    """Measure how long it takes until all have heard of a change."""
    allow_descriptors()
    for contender in racing:
        for revision in contender.revisions:
            with ExitStack() as running:
                server = running.enter_context(Listening(contender.command))
                running.enter_context(server.patience)
                caller = running.enter_context(clients(server, revision, 1))
                caller.call(1, tool="change")
                before = _settled(server)
                listeners = _Listeners(server, revision, count, running)
                size = (_settled(server) - before) * 1024 / count
                heard = []
                cpu = []
                for _ in range(changes):
                    spent = server.cpu()
                    heard.append(listeners.hear(caller))
                    cpu.append((server.cpu() - spent) / 1e6)
                listeners.check(changes)
            yield StreamsRow(
                contender=contender,
                revision=revision,
                count=count,
                all=timing(heard),
                cpu=timing(cpu) if any(cpu) else None,
                size=size,
            )


@contextmanager
def listening(server: Listening, revision: str, count: int) -> Iterator[None]:
    """Have *count* clients listen within the block; at its end each hangs up, and ends its session otherwise."""
    with ExitStack() as running:
        listeners = _Listeners(server, revision, count, running)
        yield
    with connected(server.address) as connection, server.patience:
        for session in filter(None, listeners.sessions):
            connection.sendall(wire.delete(server.address, revision, session))
            wire.messages(response(connection))


def holders() -> list[tuple[Contender, int]]:
    """Return who is compared with idle sessions, and with how many: the others get fewer, which takes long enough."""
    theirs = [each for each in serving.contenders() if each.name in {serving.SDK, "FastMCP, JSON"}]
    return [(serving.contenders()[0], SESSIONS), *((each, SESSIONS // 10) for each in theirs)]


def tellers() -> list[Contender]:
    """Return who is compared with listeners: FastMCP has no subscriptions."""
    return [
        Contender(OURS, serving.ours("http_watched")),
        Contender("mcp", serving.command("http_sdk.py"), (STATELESS,)),
    ]


class _Listeners:
    """Connections, each with an open stream.

    Attributes:
        sessions: Their ids; empty where there are no sessions.
    """

    def __init__(self, server: Listening, revision: str, count: int, running: ExitStack) -> None:
        self.sessions: list[str] = []
        self._server = server
        self._received: dict[int, bytes] = {}
        self._sockets: dict[int, socket.socket] = {}
        # How much of what came has been looked at already.
        self._seen: dict[int, int] = {}
        self._poller = poller()
        talk = Traffic(revision)
        for _ in range(count):
            connection = running.enter_context(connected(server.address))
            self.sessions.append(_listen(connection, server, talk))
            number = connection.fileno()
            self._sockets[number] = connection
            self._received[number] = b""
            self._seen[number] = 0
            self._poller.register(number, select.POLLIN)
            # One after the other: what is measured is not how fast they come. The head of a stream of events of a
            # handshake session may come with nothing in it.
            sign = _ACKNOWLEDGED.encode() if revision == STATELESS else b"\r\n\r\n"
            while sign not in self._received[number]:
                self._read()
        self._seen = {number: len(data) for number, data in self._received.items()}

    def hear(self, caller: Connections) -> float:
        """Return the milliseconds from calling the tool that changes something until all have heard of it."""
        sign = _CHANGED.encode()
        missing = set(self._sockets)
        start = time.perf_counter_ns()
        caller.send("change", text="now")
        while missing:
            for number in self._read():
                if number in missing and self._received[number].find(sign, self._seen[number]) >= 0:
                    missing.discard(number)
        spent = time.perf_counter_ns() - start
        caller.receive()
        self._seen = {number: len(data) for number, data in self._received.items()}
        return spent / 1e6

    def check(self, changes: int) -> None:
        """Make sure that each heard of each change, once, on a stream of its own.

        Raises:
            WrongAnswer: One did not.
        """
        names = set()
        for data in self._received.values():
            body = data.partition(b"\r\n\r\n")[2]
            heard = [json.loads(each) for each in wire.events(b"".join(wire.chunks(body)))]
            told = [each for each in heard if each.get("method") == _CHANGED]
            if len(told) != changes:
                raise WrongAnswer(f"{len(told)} of {changes} changes were told: {data.decode(errors='replace')}")
            names |= {each.get("params", {}).get("_meta", {}).get(_SUBSCRIPTION) for each in told}
        if None not in names and len(names) != len(self._received):
            raise WrongAnswer(f"{len(self._received)} streams have {len(names)} names")

    def _read(self) -> list[int]:
        ready = [number for number, _ in self._poller.poll()]
        for number in ready:
            if not (data := self._sockets[number].recv(READ_BYTES)):
                raise ServerGone(self._server.last_words())
            self._received[number] += data
        return ready


def _listen(connection: socket.socket, server: Listening, talk: Traffic) -> str:
    session = opened(connection, server, talk)
    if session:
        connection.sendall(wire.get(server.address, talk.revision, session))
        return session
    method = "subscriptions/listen"
    body = talk.listening()
    connection.sendall(wire.post(server.address, talk.revision, method, length=len(body)) + body)
    return session


def _use(connection: socket.socket, server: Listening, talk: Traffic, session: str) -> None:
    Connections(server, talk, [(connection, session)]).call(1)


def _settled(server: Listening) -> float:
    time.sleep(_IDLE_SECONDS)
    return server.resident()
