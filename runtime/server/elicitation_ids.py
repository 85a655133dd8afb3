"""The ids of elicitations by URL, and which clients got them.

The author of a function chooses an id, and passes it to `Context.elicitation_completed` in this request or in a later
one, which may be a request of another client. Only the client that was asked may be told.

A server and its views share the ids. Workers of one server tell each other of the ids that they send. An id that no
client is known to have got, such as one that was forgotten, is reported.

Spec:
    2025-11-25, client/elicitation, "URL Mode Elicitation Requests" and "Completion Notifications for URL Mode
    Elicitation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcpgen.runtime.server.cluster.worker import ClusterWorker
    from mcpgen.runtime.server.cluster.worker_messages import ElicitationAsked

__all__ = ["ElicitationIds"]

# As many as an application has sessions by default (`max_sessions`). An entry takes some 200 bytes.
_MAX_ENTRIES: Final = 10_000


class ElicitationIds:
    """The clients that got each id, as hashes. The oldest are forgotten."""

    def __init__(self) -> None:
        self._worker: ClusterWorker | None = None
        self._asked: dict[tuple[int, str], None] = {}
        self._clients: dict[int, int] = {}

    def of_view(self) -> ElicitationIds:
        """Return the ids of a view of the server: both know what the clients of either got."""
        view = ElicitationIds()
        view._asked, view._clients = self._asked, self._clients
        return view

    def share_with(self, worker: ClusterWorker) -> None:
        """Tell the workers beside *worker* of each new id, and note theirs."""
        from mcpgen.runtime.server.cluster.worker_messages import ElicitationAsked  # noqa: PLC0415 (most have none)

        self._worker = worker
        worker.on(ElicitationAsked, self._asked_elsewhere)

    def add(self, elicitation_id: str, principal: str, owner: str) -> None:
        """Note that the client *principal*, of *owner*, got this id."""
        if self._note(elicitation_id, principal) and self._worker is not None:
            from mcpgen.runtime.server.cluster.worker_messages import ElicitationAsked  # noqa: PLC0415 (as above)

            self._worker.send_later(None, ElicitationAsked(elicitation_id, principal), owner=owner)

    def is_of_others(self, elicitation_id: str, principal: str) -> bool:
        """Whether other clients got this id, and *principal* did not."""
        found = hash(elicitation_id)
        return found in self._clients and (found, principal) not in self._asked

    def _asked_elsewhere(self, message: ElicitationAsked) -> None:
        self._note(message.elicitation_id, message.principal)

    def _note(self, elicitation_id: str, principal: str) -> bool:
        """Return whether this is new."""
        key = (hash(elicitation_id), principal)
        if key in self._asked:
            return False
        self._asked[key] = None
        self._clients[key[0]] = self._clients.get(key[0], 0) + 1
        if len(self._asked) > _MAX_ENTRIES:
            oldest = next(iter(self._asked))
            del self._asked[oldest]
            self._clients[oldest[0]] -= 1
            if not self._clients[oldest[0]]:
                del self._clients[oldest[0]]
        return True
