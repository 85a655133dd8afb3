"""The ids of elicitations by URL, and which clients got them.

The author of a function chooses an id, and passes it to `Context.elicitation_completed` in this request or in a later
one, which may be a request of another client. Only the client that was asked may be told.

A worker does not know the ids that other workers have sent. So it tells its client of an id that it does not know.

Spec:
    2025-11-25, client/elicitation, "URL Mode Elicitation Requests" and "Completion Notifications for URL Mode
    Elicitation".
"""

from __future__ import annotations

from typing import Final

__all__ = ["ElicitationIds"]

# As many as an application has sessions by default (`max_sessions`). An entry takes some 200 bytes.
_MAX_ENTRIES: Final = 10_000


class ElicitationIds:
    """The clients that got each id, as hashes. The oldest are forgotten."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, str], None] = {}
        self._clients: dict[int, int] = {}

    def add(self, elicitation_id: str, principal: str) -> None:
        """Note that the client *principal* got this id."""
        key = (hash(elicitation_id), principal)
        if key in self._asked:
            return
        self._asked[key] = None
        self._clients[key[0]] = self._clients.get(key[0], 0) + 1
        if len(self._asked) > _MAX_ENTRIES:
            oldest = next(iter(self._asked))
            del self._asked[oldest]
            self._clients[oldest[0]] -= 1
            if not self._clients[oldest[0]]:
                del self._clients[oldest[0]]

    def is_of_others(self, elicitation_id: str, principal: str) -> bool:
        """Whether other clients got this id, and *principal* did not."""
        found = hash(elicitation_id)
        return found in self._clients and (found, principal) not in self._asked
