"""The keys that seal the request states of all workers, and their rotation.

Theory of operation. They are fields of one record, each named by the time at which a worker made it. All keys open a
state. A key seals only when all workers have read it, and a newer one replaces it after a day. The times are those of
the clocks of several machines, which may differ by minutes: both limits are far larger than what they protect.

A flush removes the record, but clients still have states. So a worker stores the keys again that it has read before.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.request_state import MIN_KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.cluster.worker import ClusterWorker
    from mcpgen.runtime.server.request_state import RequestStateSealer

__all__ = ["StateKeys"]

_ROTATION_SECONDS: Final = 24 * 3600.0

# Workers read the keys every half minute.
_SETTLING_SECONDS: Final = 600.0


class StateKeys:
    """The shared keys, as one worker knows them.

    Args:
        worker: This worker.
        sealer: Seals with them.
        clock: Returns seconds of Unix time.
    """

    def __init__(
        self, worker: ClusterWorker, sealer: RequestStateSealer, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._worker = worker
        self._sealer = sealer
        self._clock = clock
        self._known: dict[str, bytes] = {}

    async def refresh(self) -> None:
        """Read the keys, and make one if there is none or the newest is old.

        Raises:
            ClusterUnavailable: They cannot be read.
        """
        cluster, key, now = self._worker.cluster, self._worker.key("keys"), self._clock()
        name, secret = str(int(now * 1000)), secrets.token_bytes(MIN_KEY_BYTES)
        fields = await cluster.read(key)
        lost = {
            each: self._known[each]
            for each in self._known.keys() - fields.keys()
            if now - int(each) / 1000 <= 2 * _ROTATION_SECONDS
        }
        if lost and fields:
            await cluster.change(key, lost)
        elif not fields:
            await cluster.create(key, lost or {name: secret}, 3 * _ROTATION_SECONDS)
            fields = await cluster.read(key)
        fields = lost | fields
        if not fields:  # another flush
            return
        newest = max(fields, key=int)
        if now - int(newest) / 1000 > _ROTATION_SECONDS:
            changes: dict[str, bytes | None] = {name: secret}
            changes |= {each: None for each in fields if now - int(each) / 1000 > 2 * _ROTATION_SECONDS}
            # Only one of the workers that try this succeeds.
            await cluster.change(key, changes, expected={newest: fields[newest]}, seconds=3 * _ROTATION_SECONDS)
            fields |= await cluster.read(key)
        self._known = fields
        names = sorted(fields, key=int, reverse=True)
        settled = [each for each in names if now - int(each) / 1000 > _SETTLING_SECONDS]
        first = settled[0] if settled else names[-1]
        self._sealer.share([fields[first], *(fields[each] for each in names if each != first)])
