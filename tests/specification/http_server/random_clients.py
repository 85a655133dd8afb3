"""Clients that do anything at any time: call, leave, come back, cancel, answer, in an order that a seed decides.

What arrives is counted. A request that can be come back to is answered once, whatever happens to its connections; of
changes, none is missing and none comes twice.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.specification.http_server.http_clients import Caller, cancellation, joined
from tests.specification.http_server.revision_sets import NEWEST, SESSIONS

if TYPE_CHECKING:
    from random import Random

    from tests.specification.http_server.asgi_exchange import Exchange
    from tests.specification.http_server.http_site import Site

TOOLS = ("steps", "echo", "progress", "ask_twice", "roots", "log", "wait", "hang_up")
CHANGED = "notifications/tools/list_changed"


class Line:
    """One stream, over all its connections.

    Attributes:
        identity: The request that it answers; None for a session's own.
        last: The id of the last event that was seen.
        has_hole: Whether something may be lost: its client had nothing to come back with.
    """

    def __init__(self, peer: Caller, exchange: Exchange, identity: int | None) -> None:
        self.peer = peer
        self.exchange: Exchange | None = exchange
        self.identity = identity
        self.last: str | None = None
        self.has_hole = False
        self.is_cancelled = False
        self.answers = 0

    @property
    def is_open(self) -> bool:
        """Whether its response is still to come."""
        return self.identity is not None and not (self.answers or self.is_cancelled or self.has_hole)


class Walk:
    """Some clients of one server.

    Args:
        web: Where it runs.
        random: What decides.
    """

    def __init__(self, web: Site, random: Random) -> None:
        self.web = web
        self.random = random
        self.peers: list[Caller] = []
        self.lines: list[Line] = []
        self.own: list[Line] = []
        self.questions: list[tuple[Caller, Any]] = []
        self.told: Counter[str] = Counter()
        self.changes = 0
        self._count = 0

    async def begin(self, sessions: int) -> None:
        """Have clients join."""
        for _ in range(sessions):
            peer = await joined(self.web, self.random.choice(SESSIONS), '{"roots":{}}')
            self.peers.append(peer)
            await peer.result("logging/setLevel", '"level":"info"')
            self.own.append(Line(peer, await peer.listen().begun(), None))
        self.peers.append(Caller(self.web, NEWEST))
        await self.web.quiet()
        self.read(1.0)

    async def step(self) -> None:
        """Do something."""
        names = ("call", "call", "call", "leave", "leave", "come_back", "come_back", "cancel", "change", "answer")
        await getattr(self, self.random.choice(names))()
        if self.random.random() < 0.7:
            await self.web.quiet()
        self.read(0.8)

    async def call(self) -> None:
        peer = self.random.choice(self.peers)
        self._count += 1
        meta = f'"progressToken":{self._count}'
        tool = self.random.choice(TOOLS if not peer.is_stateless else ("steps", "echo", "progress", "wait"))
        self.lines.append(Line(peer, peer.call(tool, meta=meta, identity=self._count), self._count))

    async def leave(self) -> None:
        """Lose a connection, with what is on its way."""
        line = self._some([each for each in (*self.lines, *self.own) if each.exchange is not None])
        if line is None or line.exchange is None:
            return
        line.exchange.leave()
        if line.peer.is_stateless:
            line.is_cancelled = True
        elif line.last is None:
            line.has_hole = True
        line.exchange = None

    async def come_back(self) -> None:
        line = self._some([each for each in (*self.lines, *self.own) if each.exchange is None])
        if line is not None:
            await self.resume(line)

    async def resume(self, line: Line) -> None:
        if line.peer.is_stateless or (line.last is None and line.identity is not None):
            return
        line.exchange = await line.peer.listen(line.last).begun()
        if not line.exchange.is_stream:
            raise AssertionError(f"what was there is not there any more: {line.exchange}")

    async def cancel(self) -> None:
        line = self._some([each for each in self.lines if each.is_open and not each.peer.is_stateless])
        if line is not None and line.identity is not None:
            line.is_cancelled = True  # its answer may be on its way
            await line.peer.tell(cancellation(line.identity))

    async def change(self) -> None:
        self.changes += 1
        await self.web.server.tools_changed()

    async def answer(self) -> None:
        if self.questions:
            peer, question = self.questions.pop(self.random.randrange(len(self.questions)))
            await peer.answer(question, '{"roots":[]}')

    def read(self, chance: float) -> None:
        """Read what has come, on some connections."""
        for line in (*self.lines, *self.own):
            exchange = line.exchange
            if exchange is None or not exchange.status or self.random.random() > chance:
                continue
            for event in exchange.pending:
                line.last = event.event_id or line.last
                if event.data:
                    self._take(line, json.loads(event.data))
            if exchange.is_ended:
                if not exchange.is_stream:
                    self._take(line, exchange.json)
                line.exchange = None

    async def finish(self) -> None:
        """Come back to everything, and answer every question, until nothing is open."""
        for _ in range(30):
            await self.web.quiet()
            self.read(1.0)
            while self.questions:
                await self.answer()
            for line in (*self.lines, *self.own):
                if line.exchange is None and (line.is_open or line.identity is None):
                    await self.resume(line)
            if not any(each.is_open for each in self.lines):
                break
        await self.web.quiet()
        self.read(1.0)

    def _take(self, line: Line, message: Any) -> None:
        if message.get("method") == "roots/list":
            self.questions.append((line.peer, message))
        elif message.get("method") == CHANGED:
            self.told[line.peer.session or ""] += 1
        elif "method" not in message:
            line.answers += 1

    def _some(self, lines: list[Line]) -> Line | None:
        return self.random.choice(lines) if lines else None
