"""A judge of the notifications of a client.

Spec:
    2025-11-25, basic/lifecycle, basic/utilities, client/roots; 2026-07-28, basic/patterns, basic/transports/stdio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.client_state import is_identity, keyed
from tests.harness.closed_documents import Json, Problem, document
from tests.harness.declared_capabilities import may_tell_roots
from tests.harness.server_state import TERMINAL, ServerHeard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.client_retry_rules import Own

_CANCELLED = "notifications/cancelled"
_INITIALIZED = "notifications/initialized"


class ClientTold(ServerHeard):
    """Judges what a client tells, by what its server has said."""

    _stated: str | None = None  # the stateless revision that the client has spoken last

    def _notification(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        method, params = message["method"], message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            yield Problem("", "method is a text and params are an object (JSON-RPC 2.0, Notification)")
            return
        opening = self._initializing
        revision = self._session or (opening.revision if opening else None) or self._stated
        if method == _CANCELLED:
            yield from self._cancelled(message, params, revision)
        elif revision is None:
            yield Problem("", "the first message is a request (2025-11-25, basic/lifecycle, Initialization)")
        else:
            yield from self._judged(message, revision)
            if method in document(revision).client_notifications:
                yield from self._told_in_session(message, params)

    def _judged(self, message: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        name = document(revision).client_notifications.get(message["method"])
        if name is None:
            yield Problem("/method", f"a client of {revision} does not send the notification {message['method']}")
        else:
            yield from document(revision).of_notification(message, name)

    def _told_in_session(self, message: Mapping[str, Json], params: Mapping[str, Json]) -> Iterator[Problem]:
        method = message["method"]
        if method == _INITIALIZED:
            if self._session is None:
                yield Problem("", "initialize has no result yet (2025-11-25, basic/lifecycle, Initialization)")
            elif self._is_ready:
                yield Problem("", "a session is initialised once (2025-11-25, basic/lifecycle, Initialization)")
            self._is_ready = True
            return
        if not self._is_ready:
            yield Problem("", f"{method} before {_INITIALIZED} (2025-11-25, basic/lifecycle, Initialization)")
        if method == "notifications/progress":
            yield from self._progress(params)
        elif method == "notifications/roots/list_changed" and not may_tell_roots(self._client):
            yield Problem("/method", "the client has not declared roots.listChanged (client/roots, Capabilities)")
        elif method == "notifications/tasks/status":
            yield from self._status(params)

    def _cancelled(
        self, message: Mapping[str, Json], params: Mapping[str, Json], revision: str | None
    ) -> Iterator[Problem]:
        """Judge a cancellation (basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation)."""
        found = self._own(params.get("requestId"))
        if revision is not None:
            yield from self._judged(message, revision)
        if found is None:
            identity = params.get("requestId")
            if not self.may_cross or keyed(identity) not in self._answered:
                yield Problem("/params/requestId", "no open request of the client (Behavior Requirements 1)")
            return
        if found.method == "initialize":
            yield Problem("/params/requestId", "initialize is never cancelled (Behavior Requirements 2)")
            return
        if "task" in found.params:
            yield Problem(
                "/params/requestId",
                "tasks/cancel cancels what becomes a task (2025-11-25, basic/utilities/cancellation, "
                "Behavior Requirements 3)",
            )
        self._open.remove(found)
        self._rounds.failed(found)

    def _own(self, identity: Json) -> Own | None:
        if not is_identity(identity):
            return None
        return next((each for each in self._open if keyed(each.message["id"]) == keyed(identity)), None)

    def _progress(self, params: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge progress (2025-11-25, basic/utilities/progress, "Behavior Requirements")."""
        token, progress = params.get("progressToken"), params.get("progress")
        served = [each for each in self._theirs if self.may_cross or not each.is_cancelled]
        running = [each for key, each in self._their_tasks.items() if key not in self._ended_tasks]
        found = next(
            (
                each
                for each in (*served, *running)
                if "progressToken" in each.meta and keyed(each.meta["progressToken"]) == keyed(token)
            ),
            None,
        )
        if found is None:
            yield Problem("/params/progressToken", "no open request of the server has given this token")
        elif isinstance(progress, int | float):
            if found.progress is not None and progress <= found.progress:
                yield Problem("/params/progress", f"progress must increase; it was {found.progress}")
            found.progress = progress

    def _status(self, params: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge the status of a task (2025-11-25, basic/utilities/tasks, "Task Status Notification")."""
        if str(params.get("taskId")) not in self._their_tasks:
            yield Problem(
                "/params/taskId", "the client runs no such task (basic/utilities/tasks, Task ID Requirements)"
            )
        self._task_told(params)

    def _task_told(self, task: Mapping[str, Json]) -> None:
        if task.get("status") in TERMINAL:
            self._ended_tasks.add(str(task.get("taskId")))
