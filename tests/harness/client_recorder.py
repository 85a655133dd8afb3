"""A judge of everything that a client says on one connection: the mirror of `tests.harness.server_recorder`.

It hears both sides, and holds each message of the client against the document of the revision that it belongs to,
closed against foreign keys, and against the rules that no document can say: who may send what, after what, to whom.
What the engine thinks of a message is never asked. A test that uses it ends with `ClientRecorder.verify`.

Three kinds of client are heard. One that shakes hands says `initialize` first, and then what was agreed on. One that
does not states its revision in each request. One that can do both asks `server/discover` first, and shakes hands
unless the answer comes from a server of the stateless era (2026-07-28, basic/transports/stdio, "Backward
Compatibility").

Spec:
    All revisions; the rules name their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.client_notification_rules import ClientTold
from tests.harness.client_response_rules import of_content, undeclared
from tests.harness.client_retry_rules import Own
from tests.harness.client_state import ERAS, META, is_identity, keyed
from tests.harness.closed_documents import Json, Problem, document
from tests.harness.declared_capabilities import server_lacks, takes_tasks
from tests.harness.message_rules import Judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.harness.client_state import Asked

_STATED = META + "protocolVersion"
_WITH_TASKS = "2025-11-25"
_RELATED = META + "related-task"
# 2025-11-25, client/elicitation, "Error Handling"; every revision with a handshake, client/roots, "Error Handling".
_INVALID_PARAMS = -32602
_NO_METHOD = -32601


# Their basic/lifecycle, "Operation": both parties MUST "only use capabilities that were successfully negotiated".
# Before it is a SHOULD, and in 2026-07-28 it is said of servers only (basic/index, "_meta").
FORBID_UNDECLARED = frozenset({"2025-06-18", "2025-11-25"})


class ClientRecorder(ClientTold, Judge):
    """Hears one connection of a client, and judges it.

    `heard` takes what the server writes, `said` what the client does.

    Args:
        speaks: The revisions that the client speaks, where it is known to speak fewer than there are.
    """

    def __init__(self, speaks: Iterable[str] = tuple(ERAS)) -> None:
        ClientTold.__init__(self, speaks)
        Judge.__init__(self, "client")
        self._used: list[tuple[str, Json]] = []
        self._is_probed_only = True

    @property
    def _has_batches(self) -> bool:
        return self._session is not None and document(self._session).has_batches

    def _batch(self, items: list[Json]) -> None:
        calls = ["method" in each for each in items if isinstance(each, dict)]
        if any(calls) and not all(calls):
            self._blame("", "a batch holds responses or the rest, not both (2025-03-26, basic/transports)")
        super()._batch(items)

    def _said(self, message: Json, prefix: str) -> None:
        if self._has_parted:
            # Every revision with a handshake, basic/lifecycle, "Version Negotiation".
            self._blame(prefix, "the server speaks what the client does not: it disconnects (basic/lifecycle)")
            return
        super()._said(message, prefix)

    # --- requests

    def _request(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        method, params = message["method"], message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            newest = document(next(reversed(ERAS)))
            yield from newest.problems("JSONRPCRequest", message)
            return
        own = Own(message, None, is_batched=self._is_batch)
        if _STATED in own.meta:
            own.revision = own.meta[_STATED] if self._is_stateless(own.meta[_STATED]) else None
            yield from self._states(own)
        elif method == "initialize":
            own.revision = params.get("protocolVersion") if self._is_offer(params.get("protocolVersion")) else None
            yield from self._opens(own)
        else:
            own.revision = self._session
            yield from self._continues(own)
        yield from self._identity(own)
        if own.revision is not None:
            yield from self._judged_request(own)
        yield from self._token(own)
        self._open.append(own)

    def _is_stateless(self, revision: Json) -> bool:
        return isinstance(revision, str) and ERAS.get(revision) == "stateless" and revision in self._speaks

    def _is_offer(self, revision: Json) -> bool:
        return isinstance(revision, str) and ERAS.get(revision) == "handshake" and revision in self._speaks

    def _states(self, own: Own) -> Iterator[Problem]:
        """Judge that a request states its revision (2026-07-28, basic/index, "Per-request protocol fields")."""
        if self._session is not None or self._initializing is not None:
            yield Problem("/params/_meta", "after a handshake, its revision is spoken (2025-11-25, basic/lifecycle)")
        if own.revision is None:
            yield Problem("/params/_meta", f"{own.meta[_STATED]} is no stateless revision that the client speaks")
            return
        if self._supported is not None and own.revision not in self._supported and not self.may_cross:
            yield Problem(
                "/params/_meta", f"the server has said that it speaks {self._supported} (2026-07-28, basic/versioning)"
            )
        if META + "clientInfo" not in own.meta:
            yield Problem("/params/_meta", "clients SHOULD name themselves (basic/index, Per-request protocol fields)")
        self._stated = own.revision
        self._is_probed_only = self._is_probed_only and own.method == "server/discover"

    def _opens(self, own: Own) -> Iterator[Problem]:
        """Judge a handshake (2025-11-25, basic/lifecycle, "Initialization" and "Version Negotiation")."""
        offered = own.params.get("protocolVersion")
        if own.revision is None:
            yield Problem(
                "/params/protocolVersion", f"{offered} is no revision with a handshake that the client speaks"
            )
        if self._is_batch:
            yield Problem("", "initialize is never part of a batch (2025-03-26, basic/lifecycle, Initialization)")
        if self._session is not None or self._initializing is not None:
            yield Problem("", "a session is initialised once (basic/lifecycle, Initialization)")
        if not self._is_probed_only:
            yield Problem("", "server/discover is the probe, and nothing else (2026-07-28, Backward Compatibility)")
        # A server of both eras may speak, of what the client does, only what needs a handshake, and says so.
        supported = self._supported or ()
        may_fall_back = offered in supported and not any(map(self._is_stateless, supported))
        if self._is_modern and not may_fall_back and not self.may_cross:
            yield Problem(
                "", "the server needs no handshake (2026-07-28, basic/transports/stdio, Backward Compatibility)"
            )

    def _continues(self, own: Own) -> Iterator[Problem]:
        """Judge that a request relies on a session (2025-11-25, basic/lifecycle, "Initialization")."""
        opening = self._initializing
        if self._session is not None:
            if not self._is_ready and own.method != "ping":
                yield Problem("", "before notifications/initialized only pings are sent (basic/lifecycle)")
        elif opening is not None:
            own.revision = opening.revision
            if own.method != "ping":
                yield Problem("", "before the result of initialize only pings are sent (basic/lifecycle)")
        elif self._stated is not None:
            own.revision = self._stated  # which misses what this should have stated
        else:
            yield Problem("", "initialize comes first (basic/lifecycle), or _meta states the revision (2026-07-28)")

    def _identity(self, own: Own) -> Iterator[Problem]:
        """Judge an id.

        With a handshake it is never used again (2025-11-25, basic/index, "Requests"), and without one it is not while
        its request has no response (2026-07-28, basic/index, "Requests").
        """
        key = keyed(own.message["id"])
        if key in self._unanswered:
            yield Problem("/id", "a request with this id has no response yet (2026-07-28, basic/index, Requests)")
        elif not own.is_stateless and key in self._used:
            yield Problem("/id", "this id was used before in the session (2025-11-25, basic/index, Requests)")
        if not own.is_stateless:
            self._used.append(key)
        self._unanswered.append(key)

    def _token(self, own: Own) -> Iterator[Problem]:
        """Judge a progress token (2025-11-25, basic/utilities/progress; 2026-07-28, basic/patterns/progress)."""
        token = own.meta.get("progressToken")
        others = [each.meta["progressToken"] for each in self._active if "progressToken" in each.meta]
        if "progressToken" in own.meta and keyed(token) in map(keyed, others):
            yield Problem("/params/_meta/progressToken", "an open request has this token already (Progress Flow)")

    def _judged_request(self, own: Own) -> Iterator[Problem]:
        revision = own.revision or ""
        name = document(revision).client_requests.get(own.method)
        if name is None:
            yield Problem("/method", f"a client of {revision} does not send the request {own.method}")
            return
        yield from document(revision).of_request(own.message, name)
        declared = self._discovered if own.is_stateless else self._server
        if declared is not None and revision in FORBID_UNDECLARED:
            lacking = server_lacks(declared, revision, own.method, own.params)
            if lacking is not None:
                yield Problem("/method", f"the server has not declared {lacking}")
        if own.is_stateless:
            yield from self._rounds.retried(own)
        else:
            yield from self._in_session(own)

    def _in_session(self, own: Own) -> Iterator[Problem]:
        uri, cursor = own.params.get("uri"), own.params.get("cursor")
        if own.method == "resources/subscribe":
            self._watched.add(str(uri))
        elif own.method == "resources/unsubscribe":
            if str(uri) not in self._watched:
                # 2025-06-18 and 2025-11-25, schema, `UnsubscribeRequest`.
                yield Problem("/params/uri", "the client has not subscribed to it (schema, UnsubscribeRequest)")
            self._watched.discard(str(uri))
        elif isinstance(cursor, str) and (own.method, cursor) not in self._cursors:
            # Without a handshake, a cursor may come from another connection.
            yield Problem(
                "/params/cursor", "cursors are the server's, of this session (server/utilities/pagination, Guidelines)"
            )
        elif own.method == "tools/call":
            yield from self._task(own)
        elif own.method.startswith("tasks/") and _RELATED in own.meta:
            yield Problem("/params/_meta", "requests about tasks do not name one twice (Related Task Metadata)")

    def _task(self, own: Own) -> Iterator[Problem]:
        """Judge whether a tool may become a task (2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation")."""
        support = self._tools.get(str(own.params.get("name")))
        if "task" in own.params and support not in (None, "optional", "required"):
            yield Problem("/params/task", "this tool does not become a task (Tool-Level Negotiation)")
        if "task" not in own.params and support == "required" and takes_tasks(self._server or {}, "tools/call"):
            yield Problem("/params", "this tool always becomes a task (Tool-Level Negotiation)")

    # --- responses

    def _response(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        if "result" not in message and not isinstance(message.get("error"), dict):
            yield Problem("", "a response holds a result or an error")
            return
        opening = self._initializing
        revision = self._session or (opening.revision if opening else None)
        if revision is None:
            yield Problem("", "without a handshake no responses are sent (2026-07-28, basic/transports/stdio)")
            return
        asked = self._asked(message)
        if asked is None:
            yield from self._to_nothing(message, revision)
            return
        self._theirs.remove(asked)
        if asked.is_cancelled and not self.may_cross:
            yield Problem("/id", "the server has cancelled this (basic/utilities/cancellation, Behavior Requirements)")
        if asked.is_batched != self._is_batch:
            yield Problem("", "a batch is answered by a batch, and nothing else is (JSON-RPC 2.0, Batch)")
        if "error" in message:
            yield from document(revision).of_error(message)
            yield from self._refusal(asked, message["error"], revision)
        else:
            yield from document(revision).of_answer(message, asked.message)
            if isinstance(message["result"], dict):
                yield from self._result(asked, message["result"], revision)

    def _asked(self, message: Mapping[str, Json]) -> Asked | None:
        identity = message.get("id")
        if not is_identity(identity):
            return None
        found = [each for each in self._theirs if keyed(each.message["id"]) == keyed(identity)]
        found = [each for each in found if not each.is_cancelled] or found
        return found[0] if found else None

    def _to_nothing(self, message: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        if "error" in message and self._unreadable and message.get("id") is None:
            self._unreadable -= 1
            yield from document(revision).of_error(message)
            return
        yield Problem("/id", "this answers nothing that is open: unknown, or answered already")

    def _refusal(self, asked: Asked, error: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        """Judge the code of an error, where the specification says which it is."""
        name = document(revision).server_requests.get(asked.method)
        if name is None or any(document(revision).of_request(asked.message, name)):
            return  # the server's fault, which has codes of its own
        lacking = undeclared(self._client, revision, asked.method, asked.params)
        if asked.method == "roots/list" and lacking is not None and error.get("code") != _NO_METHOD:
            yield Problem("/error/code", f"without roots it is {_NO_METHOD} (client/roots, Error Handling)")
        is_mode = asked.method == "elicitation/create" and "elicitation" in self._client
        if is_mode and lacking is not None and error.get("code") != _INVALID_PARAMS:
            yield Problem(
                "/error/code", f"for a foreign mode it is {_INVALID_PARAMS} (client/elicitation, Error Handling)"
            )

    def _result(self, asked: Asked, result: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        if asked.method not in document(revision).server_requests:
            return  # the document has said so
        lacking = undeclared(self._client, revision, asked.method, asked.params)
        if lacking is not None:
            yield Problem("/result", f"{asked.method} is answered, and {lacking} is not declared (basic/lifecycle)")
        if "taskId" in asked.params and str(asked.params["taskId"]) not in self._their_tasks:
            yield Problem(
                "/result", "the client runs no such task (2025-11-25, basic/utilities/tasks, Protocol Errors)"
            )
        if asked.method in ("tasks/get", "tasks/cancel"):
            self._task_told(result)
            return
        meta = result.get("_meta", {})
        related = {"taskId": asked.params.get("taskId")} if asked.method == "tasks/result" else asked.meta.get(_RELATED)
        is_named = revision == _WITH_TASKS and isinstance(related, dict) and isinstance(related.get("taskId"), str)
        if is_named and (not isinstance(meta, dict) or meta.get(_RELATED) != related):
            yield Problem(
                "/result/_meta", "the task is named (2025-11-25, basic/utilities/tasks, Related Task Metadata)"
            )
        if asked.method == "tasks/result":
            yield from self._payload(asked, result, revision)
            return
        if "task" in asked.params:
            is_task, may_be = "task" in result, takes_tasks(self._client, asked.method)
            if is_task != may_be:
                # 2025-11-25, basic/utilities/tasks, "Result Retrieval" 1, "Task Support and Handling" 1.
                yield Problem("/result", "a task is made if tasks are declared, and only then (basic/utilities/tasks)")
            if is_task:
                task = result["task"]
                self._their_tasks[str(task.get("taskId") if isinstance(task, dict) else None)] = asked
                return
        yield from of_content(asked.method, asked.params, result, "/result")

    def _payload(self, asked: Asked, result: Mapping[str, Json], revision: str) -> Iterator[Problem]:
        """Judge what a task has come to (2025-11-25, basic/utilities/tasks, "Result Retrieval" 4)."""
        original = self._their_tasks.get(str(asked.params.get("taskId")))
        if original is None:
            return  # which is wrong already
        self._ended_tasks.add(str(asked.params.get("taskId")))
        plain = dict(original.message)
        plain["params"] = {key: each for key, each in original.params.items() if key != "task"}
        response = {"jsonrpc": "2.0", "id": 0, "result": result}
        yield from document(revision).of_answer(response, plain)
        yield from of_content(original.method, original.params, result, "/result")
