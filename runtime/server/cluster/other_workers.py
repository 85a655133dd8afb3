"""Which other workers of a cluster are alive.

Each worker renews a record that expires soon, so a worker without a record has ended. But after a failure of the
cluster, or a flush, all of them seem to have ended until they have stored their records again. Then this is not known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["OtherWorkers"]

# How long an answer may be used.
_KNOWN_SECONDS: Final = 1.0

# After a failure or a flush, all workers have stored their records again. On a busy machine, that may take seconds.
_REJOIN_SECONDS: Final = 5.0

# Numbers in what clients send are not checked before they are looked up.
_MAX_KNOWN_WORKERS: Final = 1000


class OtherWorkers:
    """What one worker knows of the others.

    Args:
        has_record: Returns whether a worker has a record.
        is_flushed: Returns whether the cluster was flushed, and this worker has not noted it yet.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        has_record: Callable[[int], Awaitable[bool]],
        is_flushed: Callable[[], Awaitable[bool]],
        clock: Callable[[], float],
    ) -> None:
        self._has_record = has_record
        self._is_flushed = is_flushed
        self._clock = clock
        self._known: dict[int, tuple[float, bool]] = {}
        self._settled_at = -math.inf

    def cut_off(self) -> None:
        """Note that the connection to the others has broken."""
        self._settled_at = math.inf

    def begin(self, *, again: bool) -> None:
        """Note that the cluster can be reached; *again* after a failure or a flush."""
        self._known.clear()
        self._settled_at = self._clock() + _REJOIN_SECONDS if again else -math.inf

    async def is_alive(self, worker: int) -> bool:
        """Return whether *worker* has given a sign of life in the last seconds; the answer can be a second old.

        Raises:
            ClusterUnavailable: That is not known: the cluster cannot be reached, or could not a moment ago.
        """
        checked, is_alive = self._known.get(worker, (-math.inf, False))
        now = self._clock()
        if now - checked > _KNOWN_SECONDS:
            is_alive = await self._has_record(worker)
            if not is_alive and (now < self._settled_at or await self._is_flushed()):
                raise ClusterUnavailable("other workers may not have joined it again yet")
            if len(self._known) >= _MAX_KNOWN_WORKERS:
                self._known.clear()
            self._known[worker] = now, is_alive
        return is_alive
