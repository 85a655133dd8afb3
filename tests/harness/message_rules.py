"""What both judges have in common: taking down the messages of one side, and finding fault with their form.

Whoever judges a side says what is wrong with its requests, its notifications and its responses.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.closed_documents import Json, Problem


class Violation(NamedTuple):
    """A rule that a message breaks."""

    message: bytes
    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.reason}\n    {self.message.decode(errors='replace')}"


class Judge(ABC):
    """Judges the messages of one side.

    Args:
        side: Whose messages they are.
    """

    def __init__(self, side: str) -> None:
        self.violations: list[Violation] = []
        self._side = side
        self._message = b""
        self._is_batch = False

    def verify(self) -> None:
        """Fail if the side has broken a rule."""
        if self.violations:
            raise AssertionError(f"the {self._side} broke the protocol\n" + "\n".join(map(str, self.violations)))

    def said(self, message: bytes) -> None:
        """Take what the side wrote."""
        self._message = message
        if b"\n" in message or b"\r" in message:
            self._blame("", "a message holds no newlines (basic/transports, stdio)")
        try:
            value = json.loads(message.decode(), object_pairs_hook=self._object, parse_constant=self._constant)
        except ValueError as error:
            self._blame("", f"this is not JSON: {error}")
            return
        if isinstance(value, list):
            self._batch(value)
        else:
            self._said(value, "")

    @property
    @abstractmethod
    def _has_batches(self) -> bool:
        """Whether several messages may come in one frame."""

    @abstractmethod
    def _request(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with a request."""

    @abstractmethod
    def _notification(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with a notification."""

    @abstractmethod
    def _response(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        """Yield what is wrong with a response."""

    def _object(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self._blame("", f"one name twice in one object: {[name for name, _ in pairs]}")
        return found

    def _constant(self, name: str) -> Json:
        self._blame("", f"{name} is not JSON")

    def _batch(self, items: list[Json]) -> None:
        if not self._has_batches:
            self._blame("", "there are no batches in this revision (2025-03-26, basic/index, Batching)")
        if not items:
            self._blame("", "an empty batch is no message (JSON-RPC 2.0, Batch)")
        self._is_batch = True
        for index, each in enumerate(items):
            self._said(each, f"/{index}")
        self._is_batch = False

    def _said(self, message: Json, prefix: str) -> None:
        if not isinstance(message, dict):
            self._blame(prefix, "a message is an object")
            return
        found: Iterator[Problem]
        if "method" in message:
            allowed = {"jsonrpc", "id", "method", "params"}
            found = self._request(message) if "id" in message else self._notification(message)
        else:
            allowed = {"jsonrpc", "id", "result", "error"}
            found = self._response(message)
        if set(message) - allowed or {"result", "error"} <= set(message):
            self._blame(prefix, f"an envelope does not hold all of {sorted(message)}")
        for pointer, reason in found:
            self._blame(prefix + pointer, reason)

    def _blame(self, pointer: str, reason: str) -> None:
        self.violations.append(Violation(self._message, pointer, reason))
