"""A judge of everything that a server says on one connection.

It hears both sides, and holds each message of the server against the document of the revision that it belongs to,
closed against foreign keys, and against the rules that no document can say: who may send what, after what, to whom.
What the engine thinks of a message is never asked. A test that uses it ends with `Recorder.verify`.

Spec:
    All revisions; the rules name their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.client_state import ERAS, META, keyed
from tests.harness.closed_documents import DEMAND, MAY_DEMAND, Json, Problem, document
from tests.harness.declared_capabilities import client_lacks, server_lacks
from tests.harness.message_rules import Judge
from tests.harness.server_notification_rules import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.harness.client_state import Asked

# JSON-RPC 2.0, "Error object".
_NOT_JSON = -32700
_REFUSED = -32600


class Recorder(Told, Judge):
    """Hears one connection of a server, and judges it.

    `heard` takes what the client writes, `said` what the server does.

    Args:
        served: The revisions that the server serves, oldest first.
        declared: What it declares to stateless clients of a revision; to the others it says so itself.
    """

    def __init__(self, served: Iterable[str], declared: Callable[[str], Mapping[str, Json]]) -> None:
        Told.__init__(self, served, declared)
        Judge.__init__(self, "server")

    @property
    def _has_batches(self) -> bool:
        return self._session is not None and document(self._session).has_batches

    # --- responses

    def _response(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        if "result" not in message and not isinstance(message.get("error"), dict):
            yield Problem("", "a response holds a result or an error")
            return
        identity = message.get("id")
        asked = self._asked(message)
        if asked is None:
            yield from self._to_nothing(message)
            return
        self._open.remove(asked)
        if self._is_batch and asked.is_stateless:
            yield Problem("", "a message is a single response (2026-07-28, basic/transports/stdio)")
        if "error" in message:
            self._streams.pop(keyed(identity), None) if self._streams.get(keyed(identity)) is asked else None
            yield from self._error(message, asked.revision)
        elif asked.method == "initialize" and not asked.is_stateless:
            yield from self._agreed(message, asked)
        elif asked.revision is None:
            yield from self._early(message, asked)
        else:
            yield from document(asked.revision).of_result(message, asked.message)
            if isinstance(message["result"], dict):
                yield from self._result(asked, message["result"])

    def _asked(self, message: Mapping[str, Json]) -> Asked | None:
        """Return what *message* answers: of several requests with one id, all but the oldest have to be refused."""
        code = message["error"].get("code") if "error" in message else None
        if code == _NOT_JSON and message.get("id") in self._salvaged:
            return None  # it belongs to a frame of which no more could be read than this id
        found = [each for each in self._open if keyed(each.message["id"]) == keyed(message.get("id"))]
        found = [each for each in found if each.is_batched == self._is_batch] or found
        found = [each for each in found if not each.is_cancelled] or found
        found = [each for each in found if each.method == "initialize"] or found  # it ends the session before it
        return found[-1 if code == _REFUSED else 0] if found else None

    def _to_nothing(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        identity = message.get("id")
        if "error" in message and self._unreadable and (identity is None or identity in self._salvaged):
            self._unreadable -= 1
            yield from self._error(message, self._session)
            return
        yield Problem("/id", "this answers nothing that is open: unknown, answered already, or cancelled")

    def _error(self, message: Mapping[str, Json], revision: str | None) -> Iterator[Problem]:
        """Judge an error; where no revision is agreed on, it must be one of some revision that is served."""
        known = self._served if revision is None else [revision]
        verdicts = [list(document(each).of_error(message)) for each in known]
        if all(verdicts):
            yield from verdicts[-1]

    def _early(self, message: Mapping[str, Json], asked: Asked) -> Iterator[Problem]:
        verdicts = [list(document(each).of_result(message, asked.message)) for each in self._served]
        if all(verdicts):
            yield from verdicts[-1]
        if asked.method != "ping":
            yield Problem("", f"{asked.method} is served before initialize (2025-11-25, basic/lifecycle)")

    def _agreed(self, message: Mapping[str, Json], asked: Asked) -> Iterator[Problem]:
        """Judge the result of `initialize` (2025-11-25, basic/lifecycle, "Version Negotiation")."""
        result = message["result"]
        revision = result.get("protocolVersion")
        handshakes = [each for each in self._served if ERAS[each] == "handshake"]
        if revision not in handshakes:
            yield Problem("/result/protocolVersion", f"{revision} is not among those that can be agreed on")
            return
        offered = asked.params.get("protocolVersion")
        if revision != (offered if offered in handshakes else handshakes[-1]):
            yield Problem("/result/protocolVersion", f"{revision} is no answer to an offer of {offered}")
        if self._session is not None:  # a new session: what the one before had open is never answered
            self._open = [each for each in self._open if each.is_stateless]
        self._session = revision
        self._client = asked.params.get("capabilities", {})
        self._server = result.get("capabilities", {})
        yield from document(revision).of_result(message, asked.message)

    def _result(self, asked: Asked, result: Mapping[str, Json]) -> Iterator[Problem]:
        revision = asked.revision or ""
        lacking = server_lacks(self._capabilities(revision), revision, asked.method)
        if lacking is not None:
            yield Problem("", f"{asked.method} is served, and {lacking} is not declared")
        if asked.method == "logging/setLevel":
            self._level = asked.params.get("level")
        elif asked.method == "resources/subscribe":
            self._watched.add(asked.params["uri"])
        elif asked.method == "resources/unsubscribe":
            self._watched.discard(asked.params["uri"])
        elif "task" in result and "task" in asked.params:
            self._tasks[result["task"]["taskId"]] = asked
        elif asked.method == "tasks/result" and asked.params.get("taskId") in self._tasks:
            original = dict(self._tasks[asked.params["taskId"]].message)
            original["params"] = {key: each for key, each in original["params"].items() if key != "task"}
            response = {"jsonrpc": "2.0", "id": 0, "result": result}
            yield from document(revision).of_result(response, original)
        if asked.is_stateless:
            yield from self._stateless_result(asked, result)

    def _stateless_result(self, asked: Asked, result: Mapping[str, Json]) -> Iterator[Problem]:
        meta = result.get("_meta", {})
        if META + "serverInfo" not in meta:
            yield Problem("/result/_meta", "servers SHOULD name themselves (basic/index, Per-response protocol fields)")
        kind = result.get("resultType")
        if kind not in ("complete", "input_required"):
            yield Problem("/result/resultType", "neither complete nor input_required (basic/index, ResultType)")
        if kind == "input_required":
            yield from self._demand(asked, result)
        if asked.method == "subscriptions/listen":
            key = keyed(asked.message["id"])
            if self._streams.pop(key, None) is None or asked.wanted is None:
                yield Problem("", "a stream ends that was never acknowledged (basic/patterns/subscriptions)")
            if meta.get(META + "subscriptionId") != asked.message["id"]:
                yield Problem("/result/_meta", "the end of a stream names it (basic/patterns/subscriptions)")

    def _demand(self, asked: Asked, result: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge a demand for input (2026-07-28, basic/patterns/mrtr, "Server Requirements")."""
        revision = asked.revision or ""
        if asked.method not in MAY_DEMAND:
            yield Problem("", f"{asked.method} cannot be answered by a demand for input (Supported Requests)")
        if "inputRequests" not in result and "requestState" not in result:
            yield Problem("/result", "a demand holds inputRequests or requestState")
        yield from document(revision).problems(DEMAND, result, "/result")
        for key, each in result.get("inputRequests", {}).items():
            where = f"/result/inputRequests/{key}"
            yield from document(revision).problems("InputRequest", each, where)
            declared = asked.meta.get(META + "clientCapabilities", {})
            lacking = client_lacks(declared, revision, each.get("method", ""), each.get("params", {}))
            if lacking is not None:
                yield Problem(where, f"the client has not declared {lacking}")

    # --- requests

    def _request(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        revision, method, key = self._session, message["method"], keyed(message["id"])
        if revision is None:
            yield Problem("", "no handshake: the server may not send requests (2026-07-28, basic/patterns/mrtr)")
            return
        name = document(revision).server_requests.get(method)
        if name is None:
            yield Problem("/method", f"a server of {revision} does not send the request {method}")
            return
        yield from document(revision).of_request(message, name)
        if key in self._ours:
            yield Problem("/id", "this id was used before (2025-11-25, basic/index, Requests)")
        self._ours.add(key)
        self._ours_open.add(key)
        if not self._is_ready and method != "ping":
            yield Problem("", "before initialized only pings are sent (2025-11-25, basic/lifecycle, Initialization)")
        params = message.get("params", {})
        params = params if isinstance(params, dict) else {}
        lacking = client_lacks(self._client, revision, method, params)
        if lacking is not None:
            yield Problem("/method", f"the client has not declared {lacking}")
        if "elicitationId" in params:
            if params["elicitationId"] in self._pages:
                yield Problem("/params/elicitationId", "it is unique (2025-11-25, client/elicitation, URL mode)")
            self._pages.add(params["elicitationId"])
