"""Exchanges that wait for a stateless client to come back with answers.

Theory of operation. A demand for input ends the request that it answers; its handler goes on waiting here, under a
token that only the sealed state of the demand tells. Each demand is a round. Who comes back with the state takes the
round, and its request becomes the exchange's open one. Whoever brings the same state again, a client that retries
because an answer got lost, gets the answer that the first one got.

Spec:
    2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.server.exchange import Body, Exchange, Origin

__all__ = ["NoRoom", "InputRound", "ParkedRequests"]


class NoRoom(Exception):  # noqa: N818 (as runtime/errors.py names those of its tree)
    """As many exchanges wait as may."""


class InputRound(Struct, eq=False):
    """One demand for input.

    Attributes:
        token: What names it.
        exchange: Whose handler waits.
        expires: When nobody needs to come back any more, on the clock of the store.
        size_bytes: What it counts for.
        is_taken: Whether its state came back.
        body: What the request that took it was answered with.
        others: Requests that brought the same state, before there was an answer.
    """

    token: str
    exchange: Exchange
    expires: float
    size_bytes: int
    is_taken: bool = False
    body: Body | None = None
    others: list[Origin] = []


class ParkedRequests:
    """The rounds of one server, bounded in number, bytes and time; oldest first, since all live equally long."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._rounds: dict[str, InputRound] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def deadline(self) -> float | None:
        """When the oldest round expires; None if there is none."""
        return next((each.expires for each in self._rounds.values()), None)

    def park(self, token: str, exchange: Exchange) -> InputRound:
        """Let *exchange* wait under *token*.

        Raises:
            NoRoom: There is no room, even without the rounds that are over.
        """
        held = [exchange.raw, *exchange.answers.values()]
        size_bytes = sum(len(memoryview(each)) for each in held if isinstance(each, Raw))
        self._make_room(size_bytes)
        parked = InputRound(token, exchange, self._clock() + self._limits.waiting_seconds, size_bytes)
        self._rounds[token] = parked
        self._size_bytes += size_bytes
        return parked

    def find(self, token: str) -> InputRound | None:
        """Return the round that *token* names, unless it has expired."""
        found = self._rounds.get(token)
        return None if found is None or found.expires <= self._clock() else found

    def record(self, parked: InputRound, body: Body) -> None:
        """Keep what the request that took *parked* was answered with, for those who bring the same state again."""
        parked.body = body
        self.grow(parked, len(body.json))
        if self._is_over(0, 0):
            self.forget(parked)

    def grow(self, parked: InputRound, size_bytes: int) -> None:
        """Count *size_bytes* more for a round."""
        if parked.token in self._rounds:
            self._size_bytes += size_bytes
            parked.size_bytes += size_bytes

    def forget(self, parked: InputRound) -> None:
        """Drop a round."""
        if self._rounds.pop(parked.token, None) is not None:
            self._size_bytes -= parked.size_bytes

    def expire(self) -> list[Exchange]:
        """Drop the rounds whose time is over, and return the exchanges that nobody came back to."""
        now = self._clock()
        over = [each for each in self._rounds.values() if each.expires <= now]
        for each in over:
            self.forget(each)
        return [each.exchange for each in over if not each.is_taken]

    def _make_room(self, size_bytes: int) -> None:
        for each in [each for each in self._rounds.values() if each.body is not None]:
            if not self._is_over(1, size_bytes):
                return
            self.forget(each)
        if self._is_over(1, size_bytes):
            raise NoRoom

    def _is_over(self, count: int, size_bytes: int) -> bool:
        limits = self._limits
        return (
            len(self._rounds) + count > limits.max_waiting or self._size_bytes + size_bytes > limits.max_waiting_bytes
        )
