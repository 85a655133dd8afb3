"""uvicorn's HTTP protocol with limits, which parses a head that its connection repeats once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.http.server.repeated_head import RepeatedHead
from mcpgen.runtime.http.server.uvicorn_limits import BoundedProtocol

if TYPE_CHECKING:
    from mcpgen.runtime.server.quota import Entry, Quota

__all__ = ["MAX_REPEATED_HEADS_BYTES", "RepeatingProtocol"]

# What the heads that connections remember keep together: some 2,000 usual heads. Other connections parse each head.
MAX_REPEATED_HEADS_BYTES: Final = 8 * 1024 * 1024

# In memory, a head takes its bytes three times, and some objects.
_BYTES_FACTOR: Final = 3
_OBJECT_BYTES: Final = 3072

# A client that sends a different head each time would have each remembered in vain.
_MAX_REMEMBERED: Final = 16


class RepeatingProtocol(BoundedProtocol):
    """uvicorn's protocol with limits, which remembers the last head of its connection.

    Args:
        repeated: What the heads that connections remember keep.
        **options: Those of `BoundedProtocol`.
    """

    def __init__(self, *, repeated: Quota, **options: Any) -> None:  # noqa: ANN401 (as uvicorn's are)
        super().__init__(**options)
        self._repeated = repeated
        self._known: RepeatedHead | None = None
        self._known_entry: Entry | None = None
        self._remembered = 0

    def parse(self, data: bytes) -> None:
        """Start the request that *data* is, or parse it."""
        # False for the first request: many clients send only one on a connection, whose head is not remembered.
        # False, too, for a request that has to wait: it is parsed, and its head is counted.
        is_between = self._is_complete and not (self._is_in_head or self.flow.write_paused)
        known = self._known
        if known is not None and is_between and not self.transport.is_closing() and self.cycle.response_complete:
            found = known.body_of(data)
            if found is not None:
                self._idle_since = None
                scope = known.new_scope(found[0], self._extensions)
                scope["state"] = self.app_state.copy()
                self.scope = scope
                self.start_request(scope, found[1])
                return
        BoundedProtocol.parse(self, data)
        if is_between and self._remembered < _MAX_REMEMBERED and self._is_complete and not self._is_in_head:
            self._remember(data)

    def _remember(self, data: bytes) -> None:
        self._remembered += 1
        has_begun = self.loop.get_task_factory() is not None or self.cycle.response_complete  # and may change the scope
        if not has_begun:
            head = RepeatedHead.of(data, self.url, self.scope)
            if head is None or head.body_of(data) is None:
                return
            size = head.size * _BYTES_FACTOR + _OBJECT_BYTES
            self._forget()
            self._known_entry = self._repeated.admit(self.owner, size, give_way=self._forget)
            if self._known_entry is not None:
                self._known = head

    def _forget(self) -> None:
        self._known = None
        entry, self._known_entry = self._known_entry, None
        if entry is not None:
            entry.release()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the head, too."""
        self._forget()
        super().connection_lost(exc)
