"""What the document of one revision, closed against foreign keys, says about messages.

Read from the document alone, and not from the bindings: it judges what is built on them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from tests.adapters.closed import closed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json = Any

# Requests whose results hold nothing; the documents before 2026-07-28 do not say which result answers what.
_EMPTY = frozenset({"logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"})
# 2026-07-28, basic/patterns/mrtr, "Supported Requests".
MAY_DEMAND = frozenset({"prompts/get", "resources/read", "tools/call"})
DEMAND = "InputRequiredResult"
# 2026-07-28, basic/patterns/mrtr, "InputResponses".
_INPUTS = {
    "elicitation/create": "ElicitResult",
    "roots/list": "ListRootsResult",
    "sampling/createMessage": "CreateMessageResult",
}


class Problem(NamedTuple):
    """What is wrong, and where in the message."""

    pointer: str
    reason: str


class Document:
    """The document of one revision."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self._whole = closed(revision)
        self._section = "$defs" if "$defs" in self._whole else "definitions"
        self._definitions: Mapping[str, Any] = self._whole[self._section]
        self._validators: dict[str, Any] = {}
        self.server_requests = self._methods("ServerRequest")
        self.server_notifications = self._methods("ServerNotification")
        self.client_requests = self._methods("ClientRequest")
        self.client_notifications = self._methods("ClientNotification")

    @property
    def has_batches(self) -> bool:
        """Whether several messages may come in one frame."""
        return "JSONRPCBatchResponse" in self._definitions

    @property
    def is_stateless(self) -> bool:
        """Whether servers may not send requests, because nobody shook hands."""
        return not self.server_requests

    @property
    def error_codes(self) -> Mapping[int, str]:
        """The definition of each error that has one of its own."""
        return _errors(self.revision)

    def has(self, name: str) -> bool:
        """Whether there is a definition *name*."""
        return name in self._definitions

    def problems(self, name: str, value: Json, prefix: str = "") -> Iterator[Problem]:
        """Yield what the definition *name* has against *value*, which stands at *prefix* in its message."""
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = jsonschema_rs.validator_for(self._rooted(name), validate_formats=False)
        if validator.is_valid(value):
            return
        for error in validator.iter_errors(value):
            pointer = "".join(f"/{each}" for each in error.instance_path)
            yield Problem(prefix + pointer, f"{name} of {self.revision}: {error.message[:300]}")

    def of_request(self, message: Mapping[str, Json], name: str) -> Iterator[Problem]:
        """Yield what is wrong with a request, whose definition is *name*."""
        yield from self.problems("JSONRPCRequest", message)
        yield from self._of_call(message, name)

    def of_notification(self, message: Mapping[str, Json], name: str) -> Iterator[Problem]:
        """Yield what is wrong with a notification, whose definition is *name*."""
        yield from self.problems("JSONRPCNotification", message)
        yield from self._of_call(message, name)

    def of_result(self, message: Mapping[str, Json], asked: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with the response of a server to *asked*."""
        yield from self._of_response(message, asked, self.client_requests, "clients")

    def of_answer(self, message: Mapping[str, Json], asked: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with the response of a client to *asked*."""
        yield from self._of_response(message, asked, self.server_requests, "servers")

    def of_input(self, value: Json, asked: Mapping[str, Json], prefix: str) -> Iterator[Problem]:
        """Yield what is wrong with the input *value*, which stands at *prefix* and which *asked* has demanded."""
        name = _INPUTS.get(asked.get("method", ""))
        if name is None:
            yield Problem(prefix, f"{asked.get('method')} is no demand for input")
            return
        yield from self.problems(name, value, prefix)

    def of_error(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with an error response."""
        envelope = "JSONRPCErrorResponse" if self.has("JSONRPCErrorResponse") else "JSONRPCError"
        yield from self.problems(envelope, message)
        code = message["error"].get("code")
        if code in self.error_codes:
            yield from self.problems(self.error_codes[code], message)
        if self.is_stateless and isinstance(code, int) and -32099 <= code <= -32000 and code not in self.error_codes:
            # 2026-07-28, basic/index, "Error Codes": -32000 to -32099 are the specification's, or nobody's any more.
            yield Problem("/error/code", f"{code} is reserved and {self.revision} does not define it")

    def _of_call(self, message: Mapping[str, Json], name: str) -> Iterator[Problem]:
        # The older documents define requests without their envelope; where jsonrpc is foreign, id is too.
        bare = "jsonrpc" not in self._definitions[name].get("properties", {})
        value = {key: each for key, each in message.items() if not bare or key not in ("id", "jsonrpc")}
        yield from self.problems(name, value)

    def _of_response(
        self, message: Mapping[str, Json], asked: Mapping[str, Json], requests: Mapping[str, str], side: str
    ) -> Iterator[Problem]:
        method, result = asked["method"], message["result"]
        envelope = "JSONRPCResultResponse" if self.has("JSONRPCResultResponse") else "JSONRPCResponse"
        yield from self.problems(envelope, message)
        if method not in requests:
            yield Problem("", f"{method} is no request of {side} of {self.revision}")
            return
        stem = requests[method].removesuffix("Request")
        yield from self.problems(self._result_of(stem, result, asked), result, "/result")
        if self.has(stem + "ResultResponse"):
            yield from self.problems(stem + "ResultResponse", message)

    def _result_of(self, stem: str, result: Json, asked: Mapping[str, Json]) -> str:
        if asked["method"] in _EMPTY:
            return "EmptyResult"
        if self.is_stateless and isinstance(result, dict) and result.get("resultType") == "input_required":
            return DEMAND
        if "task" in asked.get("params", {}) and "task" in result and self.has("CreateTaskResult"):
            return "CreateTaskResult"
        return stem + "Result"

    def _methods(self, union: str) -> dict[str, str]:
        if union not in self._definitions:
            return {}
        found = self._definitions[union]
        arms = found.get("anyOf", [found])
        # Where a union has one member, the document may hold the member itself.
        names = [each["$ref"].rpartition("/")[2] if "$ref" in each else union for each in arms]
        return {self._definitions[name]["properties"]["method"]["const"]: name for name in names}

    def _rooted(self, name: str) -> dict[str, Any]:
        return {
            "$schema": self._whole["$schema"],
            self._section: self._definitions,
            "allOf": [{"$ref": f"#/{self._section}/{name}"}],  # draft-07 ignores what stands beside a reference
        }


@cache
def document(revision: str) -> Document:
    """Return the document of *revision*; its validators are kept."""
    return Document(revision)


@cache
def _errors(revision: str) -> Mapping[int, str]:
    whole = closed(revision)
    definitions = whole.get("$defs") or whole["definitions"]
    found: dict[int, str] = {}
    for name, schema in definitions.items():
        for each in schema.get("properties", {}).get("error", {}).get("allOf", ()):
            code = each.get("properties", {}).get("code", {}).get("const")
            if code is not None:
                found[code] = name
    return found
