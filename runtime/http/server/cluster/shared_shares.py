"""What clients have at other workers, so that a worker that is full knows which client has the most.

Theory of operation. A limit bounds what one worker keeps, since it protects the memory of a process. Which client gives
way at a full worker depends on what each has at all workers. Every second, a worker tells the others what the owners
have that have a notable part of a limit, and each worker adds this to what it counts itself. So no request needs a
message. What an owner has taken or released elsewhere within the last second is not known.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.worker_messages import SharesKept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.server.cluster.worker import ClusterWorker
    from mcpgen.runtime.server.quota import Quota

__all__ = ["SharedShares"]

_TELL_SECONDS: Final = 1.0

# What a worker has told holds for this time. A worker that was killed tells nothing any more.
_HOLD_SECONDS: Final = 3.5

# Of a limit. At most 100 owners have as much, of entries or of bytes, so a message to all workers stays small.
_NOTABLE: Final = 1 / 50

_LOG = logging.getLogger("mcpgen.cluster")


class SharedShares:
    """The shares of one worker's clients.

    Args:
        worker: This worker.
        quotas: What counts them, by a name that is the same in all workers.
        clock: Returns monotonic seconds.
    """

    def __init__(self, worker: ClusterWorker, quotas: Mapping[str, Quota], clock: Callable[[], float]) -> None:
        self._worker = worker
        self._quotas = quotas
        self._clock = clock
        self._told: set[str] = set()  # the quotas of which other workers know something
        self._known: dict[str, dict[int, tuple[float, dict[str, tuple[int, int]]]]] = {each: {} for each in quotas}
        worker.on(SharesKept, self._arrived)

    async def run(self) -> None:
        """Tell the other workers every second, until this is cancelled."""
        while True:
            await anyio.sleep(_TELL_SECONDS)
            try:
                await self.tell()
            except ClusterUnavailable as error:
                # The worker has logged it.
                _LOG.debug("this worker cannot tell the others how much of its limits each client uses: %s", error)
            self._forget_old()

    async def tell(self) -> None:
        """Tell the other workers what clients have here.

        Raises:
            ClusterUnavailable: That is not possible now.
        """
        for name, quota in self._quotas.items():
            shares = quota.large_shares(_NOTABLE)
            if shares or name in self._told:
                await self._worker.send_to_all(SharesKept(self._worker.number, name, shares))
                (self._told.add if shares else self._told.discard)(name)

    def _arrived(self, told: SharesKept) -> None:
        known = self._known.get(told.quota)
        if known is None or told.worker == self._worker.number:
            return
        known[told.worker] = self._clock(), told.owners
        self._apply(told.quota)

    def _forget_old(self) -> None:
        oldest = self._clock() - _HOLD_SECONDS
        for quota, known in self._known.items():
            old = [worker for worker, (told_at, _) in known.items() if told_at < oldest]
            for each in old:
                del known[each]
            if old:
                self._apply(quota)

    def _apply(self, quota: str) -> None:
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for _, owners in self._known[quota].values():
            for owner, (count, size) in owners.items():
                counts[owner] += count
                sizes[owner] += size
        self._quotas[quota].set_elsewhere({each: (counts[each], sizes[each]) for each in counts})
