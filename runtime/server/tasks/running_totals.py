"""The totals of the calls that run as tasks: their number and the bytes of their requests, in all and by owner.

The receipt of a task ends its request, and with it what the transport has charged for the request. But the arguments
stay in memory until the handler has ended, so they are counted here until then.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from mcpgen.runtime.limits import TaskLimits

__all__ = ["RunningTotals"]


class RunningCall:
    """One call that runs as a task: it is counted until its handler has ended.

    Args:
        totals: What it is counted in.
        owner: Whose it is.
        size: The bytes of its request.
    """

    __slots__ = ("_owner", "_size", "_totals")

    def __init__(self, totals: RunningTotals, owner: str, size: int) -> None:
        self._totals = totals
        self._owner = owner
        self._size = size
        totals.change(owner, 1, size)

    def check(self, size: int) -> None:
        """Check that its handler may keep *size* bytes more, of the client's answers.

        Raises:
            RequestError: There is no room for them.
        """
        self._totals.check_bytes(self._owner, size)

    def keep(self, size: int) -> None:
        """Count *size* bytes more."""
        self._size += size
        self._totals.change(self._owner, 0, size)

    def end(self) -> None:
        """Count it no longer."""
        self._totals.change(self._owner, -1, -self._size)


class RunningTotals:
    """The number and the bytes of the calls that run as tasks.

    Args:
        limits: The limits on them.
    """

    def __init__(self, limits: TaskLimits) -> None:
        self._limits = limits
        self._count_by_owner: Counter[str] = Counter()
        self._bytes_by_owner: Counter[str] = Counter()
        self._count = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether no other call may run, however small it is."""
        return self._count >= self._limits.max_running or self._bytes >= self._limits.max_running_bytes

    def check(self, owner: str, size: int) -> None:
        """Check that another call of *owner*, of *size* bytes, may run. A call that is alone may, however large it is.

        Raises:
            RequestError: Too many run, or they keep too many bytes.
        """
        limits, count = self._limits, self._count_by_owner[owner]
        for most, running, name in (
            (limits.max_running, self._count, "max_running"),
            (limits.max_running_per_principal, count, "max_running_per_principal"),
        ):
            if running >= most:
                raise RequestError(ErrorCode.INTERNAL_ERROR, f"Too many tasks are running ({name}); try again later")
        self.check_bytes(owner, size)

    def check_bytes(self, owner: str, size: int) -> None:
        """Check that the calls of *owner* may keep *size* bytes more.

        Raises:
            RequestError: They would keep too many.
        """
        limits = self._limits
        for limit, used, name in (
            (limits.max_running_bytes, self._bytes, "max_running_bytes"),
            (limits.max_running_bytes_per_principal, self._bytes_by_owner[owner], "max_running_bytes_per_principal"),
        ):
            if used and used + size > limit:
                raise RequestError(
                    ErrorCode.INTERNAL_ERROR,
                    f"The calls of running tasks keep too many bytes ({name}); try again later",
                )

    def change(self, owner: str, count: int, size: int) -> None:
        """Count *count* calls and *size* bytes more of *owner*, or less if they are negative."""
        self._count += count
        self._bytes += size
        self._count_by_owner[owner] += count
        self._bytes_by_owner[owner] += size
        if not self._count_by_owner[owner]:  # keeps the counters small
            del self._count_by_owner[owner], self._bytes_by_owner[owner]
