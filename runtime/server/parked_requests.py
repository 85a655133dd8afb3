"""Exchanges that wait for the retry of a stateless client.

Theory of operation. An ``InputRequiredResult`` ends the request that it answers, but the handler goes on waiting. Each
such result is a *round*, kept here under a random token that only its sealed request state holds. The first retry with
that state resumes the exchange. A client may repeat the retry because the response got lost: it gets the response of
the first retry.

Spec:
    2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from mcpgen.runtime.server.exchange import InputRound

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.server.exchange import Exchange, ResponseBody

__all__ = ["ParkedRequests", "TooManyParked"]


class TooManyParked(Exception):  # noqa: N818 (as runtime/errors.py names those of its tree)
    """As many exchanges wait as the limits allow."""


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
    def seconds_to_expiry(self) -> float | None:
        """In how many seconds the oldest round expires; None if there is none."""
        return next((each.expires - self._clock() for each in self._rounds.values()), None)

    def park(self, token: str, exchange: Exchange) -> InputRound:
        """Keep *exchange* waiting under *token*.

        Raises:
            TooManyParked: There is no room, even without the rounds that were answered.
        """
        held = [exchange.raw, *exchange.earlier_responses.values()]
        size_bytes = sum(len(memoryview(each)) for each in held if isinstance(each, Raw))
        self._make_room(size_bytes)
        parked = InputRound(token, exchange, self._clock() + self._limits.waiting_seconds, size_bytes)
        self._rounds[token] = parked
        self._size_bytes += size_bytes
        return parked

    def find(self, token: str) -> InputRound | None:
        """Return the round of *token*, unless it has expired."""
        found = self._rounds.get(token)
        return None if found is None or found.expires <= self._clock() else found

    def record(self, parked: InputRound, response: ResponseBody) -> None:
        """Keep the *response* to the retry that resumed *parked*, for repeated retries."""
        parked.response = response
        self.grow(parked, len(response.json))
        if self._exceeds(0, 0):
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
        """Drop the expired rounds; return the exchanges whose client did not retry."""
        now = self._clock()
        expired = [each for each in self._rounds.values() if each.expires <= now]
        for each in expired:
            self.forget(each)
        return [each.exchange for each in expired if not each.is_resumed]

    def _make_room(self, size_bytes: int) -> None:
        for each in [each for each in self._rounds.values() if each.response is not None]:
            if not self._exceeds(1, size_bytes):
                return
            self.forget(each)
        if self._exceeds(1, size_bytes):
            raise TooManyParked

    def _exceeds(self, count: int, size_bytes: int) -> bool:
        limits = self._limits
        return (
            len(self._rounds) + count > limits.max_waiting or self._size_bytes + size_bytes > limits.max_waiting_bytes
        )
