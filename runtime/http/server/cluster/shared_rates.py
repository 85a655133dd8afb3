"""The rate limits of one worker, settled with those of the other workers every second.

Theory of operation. A call takes its token from the bucket of this worker, and needs no message. Each second, the
worker adds the tokens that were taken to a level that all workers share, and sets its own bucket to that level. So a
client that calls at all workers gets more than its burst for one second at most. It then waits until the level has
fallen, so that over time it calls no faster than it may. A bucket is settled until its level is 0, even if no call
arrives: otherwise a client could go from worker to worker.

If the cluster cannot be reached, each worker counts for itself.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.rate_limit import Bucket, RateLimiter
    from mcpgen.runtime.server.cluster.worker import ClusterWorker

__all__ = ["SharedRates"]

_SETTLE_SECONDS: Final = 1.0

# Of one message to the cluster.
_BATCH: Final = 1000

_LOG = logging.getLogger("mcpgen.cluster")


class SharedRates:
    """The rate limits of one worker.

    Args:
        worker: This worker.
        rates: Its buckets.
        clock: That of the buckets.
    """

    def __init__(self, worker: ClusterWorker, rates: RateLimiter, clock: Callable[[], float]) -> None:
        self._worker = worker
        self._used: dict[str, Bucket] = {}
        self._clock = clock
        rates.used = self._used

    async def run(self) -> None:
        """Settle every second, until this is cancelled."""
        while True:
            await anyio.sleep(_SETTLE_SECONDS)
            try:
                await self.settle()
            except ClusterUnavailable as error:
                # The worker has logged it.
                _LOG.debug("this worker cannot tell the others how often each client called: %s", error)
                self._forget_full()

    async def settle(self) -> None:
        """Tell the other workers which tokens were taken here, and learn which were taken there.

        Raises:
            ClusterUnavailable: That is not possible now.
        """
        buckets = dict(self._used)
        names = iter(buckets)
        while batch := list(islice(names, _BATCH)):
            await self._settle({each: buckets[each] for each in batch})

    def _forget_full(self) -> None:
        """Forget the buckets that are full again, or those of all clients would be kept until the cluster is back."""
        now = self._clock()
        for name in [name for name, bucket in self._used.items() if bucket.full_at <= now]:
            del self._used[name]

    async def _settle(self, buckets: dict[str, Bucket]) -> None:
        now = self._clock()
        labels = {_label(name): bucket for name, bucket in buckets.items()}
        full_at = {label: bucket.full_at for label, bucket in labels.items()}
        # Only what has not been refilled meanwhile.
        taken = {label: max(0.0, each.full_at - max(now, each.settled_at)) for label, each in labels.items()}
        levels = await self._worker.cluster.raise_levels(self._worker.key("rate"), taken)
        now = self._clock()
        for label, bucket in labels.items():
            taken_since = bucket.full_at - full_at[label]
            bucket.settled_at = now + levels[label]
            bucket.full_at = bucket.settled_at + taken_since
            if bucket.full_at <= now and self._used.get(bucket.name) is bucket:
                del self._used[bucket.name]


def _label(name: str) -> str:
    """Return a short name, since the name of a user may be long."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
