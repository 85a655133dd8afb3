"""Exchanges that wait for the retry of a stateless client.

Theory of operation. An ``InputRequiredResult`` ends the request that it answers, but the handler goes on waiting. Each
such result is a *round*, kept here under a random token that only its sealed request state holds. The first retry with
that state resumes the exchange. A client may repeat the retry because the response got lost: it gets the response of
the first retry.

A quota bounds the rounds. While an exchange is parked, its memory is charged to its round, and not to its session. When
there is no room, rounds that were answered are forgotten first; then the owner that has the most makes room.

Spec:
    2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.exchange import InputRound
from mcpgen.runtime.server.ledger import HANDLER_BYTES, peer_bytes, server_request_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.exchange import Exchange, ResponseBody
    from mcpgen.runtime.server.ledger import Ledger
    from mcpgen.runtime.server.quota import Quota

__all__ = ["ParkedRequests", "TooManyParked"]

# Measured, as the constants of `ledger`.
_ROUND_BYTES: Final = 800


class TooManyParked(Exception):  # noqa: N818 (as runtime/errors.py names those of its tree)
    """As many exchanges wait as the limits allow."""


class ParkedRequests:
    """The rounds of one server, bounded in number, bytes and time; oldest first, since all live equally long.

    Attributes:
        quota: Counts them for each client.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float], ledger: Ledger) -> None:
        self._limits = limits
        self._clock = clock
        self.quota: Quota = ledger.quota(
            "parked requests", max_count=limits.max_waiting, max_bytes=limits.max_waiting_bytes
        )
        self._rounds: dict[str, InputRound] = {}
        self._answered: dict[str, InputRound] = {}
        self._gave_way: dict[str, None] = {}  # tokens, as many as there can be rounds

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def seconds_to_expiry(self) -> float | None:
        """In how many seconds the oldest round expires; None if there is none."""
        return next((each.expires - self._clock() for each in self._rounds.values()), None)

    def park(self, token: str, exchange: Exchange) -> InputRound:
        """Keep *exchange* waiting under *token*.

        Raises:
            TooManyParked: There is no room, although answered rounds, and owners that have more, gave way.
        """
        parked = InputRound(token, exchange, self._clock() + self._limits.waiting_seconds, exchange.size)
        size = _ROUND_BYTES + exchange.size
        size += sum(server_request_bytes(each.params) for each in exchange.server_requests.values())
        size += HANDLER_BYTES * exchange.delayed_requests  # each is made in a task later, which counts only here
        while self._answered and not self.quota.has_room(size):
            self.forget(next(iter(self._answered.values())))
        owner = "" if exchange.request is None else exchange.request.session.owner
        parked.entry = self.quota.admit(owner, size, give_way=partial(self.displace, parked))
        if parked.entry is None:
            raise TooManyParked
        exchange.charge(-exchange.size)
        self._rounds[token] = parked
        return parked

    def find(self, token: str) -> InputRound | None:
        """Return the round of *token*, unless it has expired."""
        found = self._rounds.get(token)
        return None if found is None or found.expires <= self._clock() else found

    def gave_way(self, token: str) -> bool:
        """Return whether the round of *token* made room for another."""
        return token in self._gave_way

    def displace(self, parked: InputRound) -> None:
        """Stop the handler that waits for *parked*, because it makes room; a retry is told so."""
        self._gave_way[parked.token] = None
        if len(self._gave_way) > self._limits.max_waiting:
            del self._gave_way[next(iter(self._gave_way))]
        self._drop(parked)
        if not parked.is_resumed:
            parked.exchange.abandon()

    def resume(self, parked: InputRound, peer: Peer) -> None:
        """Charge the exchange of *parked* to its session again, because a retry of *peer* has come.

        The exchange keeps what *peer* has declared, instead of the declaration of the last request.
        """
        parked.is_resumed = True
        exchange = parked.exchange
        if exchange.unsent_response is None:
            exchange.charge(parked.exchange_bytes + peer_bytes(peer) - peer_bytes(exchange.last_peer))
        if parked.entry is not None:
            parked.entry.resize(_ROUND_BYTES)

    def record(self, parked: InputRound, response: ResponseBody) -> None:
        """Keep the *response* to the retry that resumed *parked*, for repeated retries."""
        parked.response = response
        if parked.token in self._rounds:
            self._answered[parked.token] = parked
            self.grow(parked, len(response.json))
        else:
            self.forget(parked)

    def grow(self, parked: InputRound, size: int) -> None:
        """Charge *size* bytes more for a response that *parked* keeps; forget the round if there is no room."""
        if parked.entry is None or not parked.entry.resize(parked.entry.size + size):
            self.forget(parked)

    def forget(self, parked: InputRound) -> None:
        """Drop a round, whose handler has ended or was resumed."""
        self._remove(parked)
        if parked.entry is not None:
            parked.entry.release()
        exchange = parked.exchange
        if exchange.has_ended and exchange.input_round is parked:
            exchange.input_round = None  # they would keep each other until the next garbage collection

    def expire(self) -> list[Exchange]:
        """Drop the expired rounds; return the exchanges whose client did not retry."""
        now = self._clock()
        expired = [each for each in self._rounds.values() if each.expires <= now]
        for each in expired:
            self._drop(each)
        return [each.exchange for each in expired if not each.is_resumed]

    def _drop(self, parked: InputRound) -> None:
        """Drop a round. If its handler still waits, it is charged until that has ended and calls `forget`."""
        if parked.is_resumed or parked.exchange.unsent_response is not None:
            self.forget(parked)
        else:
            self._remove(parked)

    def _remove(self, parked: InputRound) -> None:
        self._rounds.pop(parked.token, None)
        self._answered.pop(parked.token, None)
