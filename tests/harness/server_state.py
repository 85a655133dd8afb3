"""What a server has said on one connection, so far as it decides what its client may say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.harness.client_retry_rules import Own, Rounds
from tests.harness.client_state import ERAS, Asked, is_identity, keyed
from tests.harness.closed_documents import document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.harness.closed_documents import Json

# 2026-07-28, basic/index, "Error Codes".
_UNSUPPORTED = -32022
# 2025-11-25, basic/utilities/tasks, "Task Status".
TERMINAL = ("completed", "failed", "cancelled")


class ServerHeard:
    """Hears a server.

    Args:
        speaks: The revisions that the client speaks.
    """

    def __init__(self, speaks: Iterable[str]) -> None:
        # Whether messages of both sides may cross, since they were taken down on their way and not where they arrive:
        # what a client says before it has read what forbids it is no breach.
        self.may_cross = False
        self._speaks = set(speaks)
        self._session: str | None = None
        self._has_parted = False
        self._is_ready = False
        self._client: Mapping[str, Json] = {}
        self._server: Mapping[str, Json] | None = None
        self._discovered: Mapping[str, Json] | None = None
        self._supported: list[Json] | None = None
        self._is_modern = False
        self._open: list[Own] = []
        self._answered: list[tuple[str, Json]] = []
        self._unanswered: list[tuple[str, Json]] = []
        self._tasks: dict[str, Own] = {}
        self._rounds = Rounds()
        self._cursors: set[tuple[str, str]] = set()
        self._tools: dict[str, str] = {}
        self._watched: set[str] = set()
        self._theirs: list[Asked] = []
        self._their_tasks: dict[str, Asked] = {}
        self._ended_tasks: set[str] = set()
        self._unreadable = 0

    def heard(self, frame: bytes) -> None:
        """Take what the server wrote."""
        try:
            message = json.loads(frame)
            json.dumps(message, ensure_ascii=False).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError):
            self._unreadable += 1
            return
        if not isinstance(message, list):
            self._heard(message, is_batched=False)
        elif message and self._session is not None and document(self._session).has_batches:
            for each in message:
                self._heard(each, is_batched=True)
        else:
            self._unreadable += 1

    @property
    def _initializing(self) -> Own | None:
        return next((each for each in self._open if each.method == "initialize"), None)

    @property
    def _active(self) -> list[Own]:
        """The requests of the client that may still be told of (2025-11-25, basic/utilities/progress)."""
        return [*self._open, *self._tasks.values()]

    def _heard(self, message: Json, *, is_batched: bool) -> None:
        if not isinstance(message, dict):
            self._unreadable += 1
            return
        identity, params = message.get("id"), message.get("params", {})
        is_valid = message.get("jsonrpc") == "2.0" and isinstance(params, dict)
        if "method" not in message and ("result" in message) != ("error" in message):
            own = next(
                (e for e in self._open if is_identity(identity) and keyed(e.message["id"]) == keyed(identity)), None
            )
            if is_valid and own is not None:
                self._responded(own, message)
            elif is_valid and is_identity(identity) and keyed(identity) in self._unanswered:
                self._unanswered.remove(keyed(identity))  # of what was cancelled
        elif isinstance(message.get("method"), str) and is_identity(identity):
            self._theirs.append(Asked(message, None, is_batched=is_batched))
        elif "id" in message or not is_valid:
            self._unreadable += 1
        elif message.get("method") == "notifications/cancelled":
            self._cancelled_by_server(params.get("requestId"))
        elif message.get("method") == "notifications/tasks/status" and params.get("status") in TERMINAL:
            self._tasks.pop(str(params.get("taskId")), None)
        elif message.get("method") == "notifications/tools/list_changed":
            self._tools.clear()

    def _cancelled_by_server(self, identity: Json) -> None:
        if not is_identity(identity):
            return
        for each in self._theirs:
            if keyed(each.message["id"]) == keyed(identity):
                each.is_cancelled = True
        # 2026-07-28, basic/patterns/subscriptions, "Cancellation": so a server ends a stream.
        for own in self._open:
            if own.method == "subscriptions/listen" and keyed(own.message["id"]) == keyed(identity):
                self._open.remove(own)
                self._answered.append(keyed(identity))
                return

    # --- responses

    def _responded(self, own: Own, message: Mapping[str, Json]) -> None:
        key = keyed(own.message["id"])
        self._open.remove(own)
        self._answered.append(key)
        if key in self._unanswered:
            self._unanswered.remove(key)
        if "error" in message:
            self._refused(own, message)
            return
        result = message["result"] if isinstance(message["result"], dict) else {}
        if own.method == "initialize":
            self._agreed(own, result)
        elif own.is_stateless:
            self._stateless_result(own, result)
        else:
            self._session_result(own, result)
        self._listed(own, result)

    def _refused(self, own: Own, message: Mapping[str, Json]) -> None:
        self._rounds.failed(own)
        if own.method == "resources/subscribe":
            self._watched.discard(str(own.params.get("uri")))
        error = message["error"] if isinstance(message["error"], dict) else {}
        code, data = error.get("code"), error.get("data")
        # 2026-07-28, basic/transports/stdio, "Backward Compatibility": by such an error a server shows its era.
        is_modern = own.is_stateless and isinstance(code, int) and code in document(own.revision or "").error_codes
        if is_modern and not any(document(own.revision or "").of_error(message)):
            self._is_modern = True
            if code == _UNSUPPORTED and isinstance(data, dict):
                self._supported = data["supported"]

    def _agreed(self, own: Own, result: Mapping[str, Json]) -> None:
        revision, declared = result.get("protocolVersion"), result.get("capabilities")
        if not isinstance(revision, str) or ERAS.get(revision) != "handshake" or revision not in self._speaks:
            self._has_parted = True
            return
        self._session = revision
        client = own.params.get("capabilities")
        self._client = client if isinstance(client, dict) else {}
        self._server = declared if isinstance(declared, dict) else {}

    def _stateless_result(self, own: Own, result: Mapping[str, Json]) -> None:
        if own.method == "server/discover":
            # Servers that answer everything alike are of no era; what they say is taken, if it is something.
            response = {"jsonrpc": "2.0", "id": own.message["id"], "result": result}
            self._is_modern = not any(document(own.revision or "").of_result(response, own.message))
            supported, declared = result.get("supportedVersions"), result.get("capabilities")
            self._supported = supported if isinstance(supported, list) else self._supported
            self._discovered = declared if isinstance(declared, dict) else None
        elif result.get("resultType") == "input_required":
            self._rounds.demanded(own, result)

    def _session_result(self, own: Own, result: Mapping[str, Json]) -> None:
        if "task" in result and "task" in own.params:
            task = result["task"]
            if isinstance(task, dict) and task.get("status") not in TERMINAL:
                self._tasks[str(task.get("taskId"))] = own
        elif own.method == "tasks/result" or (own.method.startswith("tasks/") and result.get("status") in TERMINAL):
            self._tasks.pop(str(own.params.get("taskId")), None)

    def _listed(self, own: Own, result: Mapping[str, Json]) -> None:
        if isinstance(result.get("nextCursor"), str):
            self._cursors.add((own.method, result["nextCursor"]))
        tools: Any = result.get("tools") if own.method == "tools/list" else None
        for each in tools if isinstance(tools, list) else ():
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                execution = each.get("execution")
                support = execution.get("taskSupport") if isinstance(execution, dict) else None
                self._tools[each["name"]] = support if isinstance(support, str) else "forbidden"
