"""The ledger of a real process agrees with its resident memory, and is at zero when the client has ended everything."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.faults.server_processes import Process
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

NEW, OLD = "2026-07-28", "2025-11-25"
MIB = 1024 * 1024
SERVER = str(Path(__file__).with_name("ledger_server.py"))
META = "io.modelcontextprotocol/"
# So wide that not they are measured.
WIDE = dict.fromkeys(("max_in_flight_bytes", "max_session_bytes", "max_waiting_bytes"), 1024 * MIB)
MANY = dict.fromkeys(("max_in_flight", "max_subscriptions", "max_waiting"), 20_000)
# Parked calls end when they expire. It takes about two seconds to park as many as are measured.
EXPIRES = {"waiting_seconds": 8}

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what a process holds")


class Keeper(Process):
    """A server whose ledger can be read."""

    def __init__(self, revision: str, **limits: int) -> None:
        super().__init__(revision, (SERVER, json.dumps(limits)))
        self.open()

    def ledger(self) -> dict[str, int]:
        """Return what the ledger holds, by kind, once all that was sent has been read."""
        os.kill(self.popen.pid, signal.SIGUSR1)
        said = b""
        # What does not begin with a brace is a line of its log.
        while not (lines := [each for each in said.split(b"\n")[:-1] if each.startswith(b"{")]):
            assert select.select([self.stderr], [], [], PATIENCE_SECONDS)[0], f"the server tells no ledger: {said!r}"
            said += os.read(self.stderr, 65536)
        found: dict[str, int] = json.loads(lines[-1])
        return found

    def write_all(self, frames: Iterable[bytes]) -> None:
        """Send *frames*, and read what the server says; wait until it has read all of them."""
        for number, each in enumerate(frames):
            self.write(each)
            if number % 20 == 0:
                self.all_read()
        self.all_read()

    def all_read(self) -> None:
        self.call(1_000_000, "echo", text="all read")
        while self.receive().get("id") != 1_000_000:
            pass

    def at_last(self, expected: dict[str, int]) -> dict[str, int]:
        """Return what the ledger holds once that is *expected*, or nothing has expired for long."""
        until = time.monotonic() + EXPIRES["waiting_seconds"] + PATIENCE_SECONDS
        while (found := self.ledger()) != expected and time.monotonic() < until:
            time.sleep(0.05)
        return found


class Filling(NamedTuple):
    """What fills a server, and what ends it."""

    kind: str
    frames: Iterator[bytes]
    ends: Iterator[bytes]
    revision: str = NEW


def message(method: str, identity: object = None, /, **params: Any) -> bytes:
    members: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(members if identity is None else {**members, "id": identity}).encode() + b"\n"


def call(identity: object, tool: str, beside: str = "", **given: Any) -> bytes:
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {"elicitation": {}}}
    text = message("tools/call", identity, name=tool, arguments=given, _meta=meta)
    return text.replace(b"{", b'{"beside": "%s", ' % beside.encode(), 1) if beside else text


def cancels(count: int) -> Iterator[bytes]:
    return (message("notifications/cancelled", requestId=n) for n in range(1, count + 1))


def calls(count: int, tool: str = "wait", **given: Any) -> Filling:
    kind = "parked requests" if tool == "ask" else "open requests"
    return Filling(kind, (call(n, tool, **given) for n in range(1, count + 1)), cancels(count))


def streams(count: int, **wanted: Any) -> Filling:
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {}}
    frames = (message("subscriptions/listen", n, _meta=meta, notifications=wanted) for n in range(1, count + 1))
    return Filling("open requests", frames, cancels(count))


def subscriptions(count: int, size: int) -> Filling:
    uris = [f"note://{n}-{'u' * size}" for n in range(count)]
    begin = (message("resources/subscribe", n, uri=each) for n, each in enumerate(uris, 1))
    end = (message("resources/unsubscribe", n, uri=each) for n, each in enumerate(uris, count + 1))
    return Filling("sessions", begin, end, OLD)


def sessions(count: int, **capabilities: Any) -> Filling:
    info = {"name": "c", "version": "1"}
    begin = message("initialize", 0, protocolVersion=OLD, capabilities=capabilities, clientInfo=info)
    frames = [begin.decode(), message("notifications/initialized").decode()]
    return Filling("sessions", iter([call(1, "connect", count=count, frames=frames)]), cancels(1))


FILLINGS = {
    "small calls": lambda: calls(4000),
    "long texts": lambda: calls(200, value="x" * 100_000),
    "wide texts": lambda: calls(100, value="\U0001f600" * 50_000),
    "lists": lambda: calls(100, value=[[]] * 5000),
    "objects": lambda: calls(100, value=[{"name": "x", "size": n} for n in range(2000)]),
    "numbers": lambda: calls(100, value=[n + 0.5 for n in range(8000)]),
    "long ids": lambda: Filling(
        "open requests",
        (call("i" * 1000 + f"{n}", "wait") for n in range(4000)),
        (message("notifications/cancelled", requestId="i" * 1000 + f"{n}") for n in range(4000)),
    ),
    "members beside params": lambda: Filling(
        "open requests", (call(n, "wait", "b" * 3500) for n in range(1, 4001)), cancels(4000)
    ),
    "streams": lambda: streams(12_000, toolsListChanged=True),
    "parked calls": lambda: calls(4000, "ask"),
    "parked long texts": lambda: calls(200, "ask", text="x" * 100_000),
    "subscriptions": lambda: subscriptions(4000, 5000),
    "sessions": lambda: sessions(5000),
    "sessions with large declarations": lambda: sessions(300, experimental={"x": {"text": "x" * 50_000}}),
    # More than 4,096 bytes, below which sessions with equal declarations share them.
    "sessions with many values": lambda: sessions(300, experimental={f"x{n:030}": {"a": 1} for n in range(100)}),
}


@pytest.fixture
def keeper(request: pytest.FixtureRequest) -> Generator[tuple[Keeper, Filling]]:
    filling = FILLINGS[request.param]()
    started = Keeper(filling.revision, **WIDE, **MANY, **EXPIRES)
    try:
        yield started, filling
    finally:
        started.kill()


@pytest.mark.parametrize("keeper", FILLINGS, indirect=True)
@pytest.mark.slow
def test_the_ledger_agrees_with_resident_memory(keeper: tuple[Keeper, Filling]) -> None:
    server, filling = keeper
    for _ in range(20):
        server.all_read()
    # Pages of files, such as the interpreter's code, are not counted: they can go at any time while memory is scarce.
    before, empty = server.held("RssAnon"), server.ledger()
    server.write_all(filling.frames)
    grown, kept = server.held("RssAnon") - before, server.ledger()[filling.kind] - empty.get(filling.kind, 0)

    assert grown > 4 * MIB, "too little to be measured"
    assert kept / 2 < grown < 2 * kept, f"{grown / MIB:.1f} MiB more are resident, {kept / MIB:.1f} MiB are charged"

    server.write_all(filling.ends)

    assert server.at_last(empty) == empty
