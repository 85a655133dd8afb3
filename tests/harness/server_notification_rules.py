"""A judge of the notifications of a server.

Spec:
    2025-11-25, basic/utilities, server/resources, server/utilities/logging; 2026-07-28, basic/patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.client_state import ERAS, META, Heard, keyed
from tests.harness.closed_documents import Json, Problem, document
from tests.harness.declared_capabilities import server_lacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.client_state import Asked
    from tests.harness.closed_documents import Document

# 2025-11-25, server/utilities/logging, "Log Levels".
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# 2026-07-28, basic/patterns/subscriptions, "Notification Filter".
_FILTERS = {
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
    "notifications/tools/list_changed": "toolsListChanged",
}


class Told(Heard):
    """Judges what a server tells, by what its client has said."""

    def _notification(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        params = message.get("params", {})
        meta = params.get("_meta", {}) if isinstance(params, dict) else {}
        method = message["method"]
        if not isinstance(params, dict) or not isinstance(meta, dict):
            yield Problem("/params", "params and _meta are objects")
        elif method == "notifications/cancelled" and self._is_of_stream(params, meta):
            key = keyed(params.get("requestId"))  # its result comes next, and ends it
            yield from self._judged(message, next(e for e in reversed(self._served) if ERAS[e] == "stateless"))
            if keyed(meta.get(META + "subscriptionId")) != key:
                yield Problem("/params/_meta", "it is told on a stream, without its id (NotificationMetaObject)")
        elif META + "subscriptionId" in meta:
            yield from self._told_on_stream(message, params, meta[META + "subscriptionId"])
        elif method == "notifications/progress":
            yield from self._progress(message, params)
        elif method == "notifications/message":
            yield from self._entry(message, params)
        elif self._session is None:
            yield Problem("", "no session, and no stream that it names: nobody is meant (2026-07-28, subscriptions)")
        else:
            yield from self._judged(message, self._session)
            yield from self._told_to_session(method, params)

    def _is_of_stream(self, params: Mapping[str, Json], meta: Mapping[str, Json]) -> bool:
        """Return whether a cancellation is that of a stream. A request of the server may have the id of one."""
        key = keyed(params.get("requestId"))
        return key in self._streams and (META + "subscriptionId" in meta or key not in self._ours_open)

    def _judged(self, message: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        method = message["method"]
        paper: Document = document(revision)
        name = paper.server_notifications.get(method)
        if name is None:
            yield Problem("/method", f"a server of {revision} does not send the notification {method}")
            return
        yield from paper.of_notification(message, name)
        lacking = server_lacks(self._capabilities(revision), revision, method)
        if lacking is not None:
            yield Problem("/method", f"the server has not declared {lacking}")

    def _told_to_session(self, method: str, params: Mapping[str, Json]) -> Iterator[Problem]:
        if method == "notifications/cancelled":
            key = keyed(params.get("requestId"))
            if key not in self._ours_open:
                yield Problem("/params/requestId", "no open request of the server (basic/utilities/cancellation)")
            self._ours_open.discard(key)
        if method == "notifications/resources/updated":
            uri = params.get("uri", "")
            if not any(uri.startswith(each) for each in self._watched):
                yield Problem("/params/uri", "nobody has subscribed to it (server/resources, Subscriptions)")

    def _told_on_stream(
        self, message: Mapping[str, Json], params: Mapping[str, Json], identity: Json
    ) -> Iterator[Problem]:
        """Judge what is told on a stream (2026-07-28, basic/patterns/subscriptions)."""
        method = message["method"]
        stream = self._streams.get(keyed(identity))
        if stream is None:
            yield Problem("/params/_meta", f"{identity!r} is no open subscription")
            return
        revision = stream.revision or ""
        yield from self._judged(message, revision)
        if method == "notifications/subscriptions/acknowledged":
            if stream.wanted is not None:
                yield Problem("", "a subscription is acknowledged once")
            stream.wanted = params.get("notifications", {})
            yield from self._acknowledged(stream, revision)
            return
        if stream.wanted is None:
            yield Problem("", "the acknowledgement comes first (Acknowledgment)")
            stream.wanted = {}
        wanted = stream.wanted.get(_FILTERS.get(method, ""), False)
        if not wanted or ("uri" in params and not any(params["uri"].startswith(each) for each in wanted)):
            yield Problem("/method", "not among what was acknowledged (Opening a Stream)")

    def _acknowledged(self, stream: Asked, revision: str) -> Iterator[Problem]:
        asked = stream.params.get("notifications", {})
        for method, name in _FILTERS.items():
            agreed = (stream.wanted or {}).get(name, False)
            if not agreed:
                continue
            extra = set(agreed) - set(asked.get(name, [])) if isinstance(agreed, list) else not asked.get(name)
            if extra:
                yield Problem(f"/params/notifications/{name}", "the client has not asked for it")
            lacking = server_lacks(self._capabilities(revision), revision, method)
            if lacking is not None:
                yield Problem(f"/params/notifications/{name}", f"the server has not declared {lacking}")

    def _progress(self, message: Mapping[str, Json], params: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge progress (2025-11-25, basic/utilities/progress; 2026-07-28, basic/patterns/progress)."""
        token = keyed(params.get("progressToken"))
        served = [*self.unanswered, *self._tasks.values()]
        found = next((e for e in served if "progressToken" in e.meta and keyed(e.meta["progressToken"]) == token), None)
        if found is None or found.revision is None:
            yield Problem("/params/progressToken", "no open request has given this token")
            return
        yield from self._judged(message, found.revision)
        progress = params.get("progress")
        if not isinstance(progress, int | float) or (found.progress is not None and progress <= found.progress):
            yield Problem("/params/progress", f"progress must increase; it was {found.progress}")
        else:
            found.progress = progress

    def _entry(self, message: Mapping[str, Json], params: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge an entry of the log: it belongs to the session, or to a stateless request that wants it."""
        level = params.get("level")
        rank = _LEVELS.index(level) if level in _LEVELS else -1
        verdicts: list[list[Problem]] = []
        if self._session is not None:
            found = list(self._judged(message, self._session))
            if self._level is not None and rank < _LEVELS.index(self._level):
                found.append(Problem("/params/level", f"the client wants {self._level} and above"))
            verdicts.append(found)
        for each in self.unanswered:
            least = each.meta.get(META + "logLevel")
            if each.is_stateless and least in _LEVELS:
                found = list(self._judged(message, each.revision or ""))
                if rank < _LEVELS.index(least):
                    found.append(Problem("/params/level", f"the request wants {least} and above"))
                verdicts.append(found)
        if not verdicts:
            yield Problem("", "no open request has asked for log entries (2026-07-28, server/utilities/logging)")
        elif all(verdicts):
            yield from verdicts[0]

    def _capabilities(self, revision: str) -> Mapping[str, Json]:
        return self._declared(revision) if ERAS[revision] == "stateless" else self._server
