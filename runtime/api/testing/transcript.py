"""Messages as text that is the same in each run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.protocol.newest import MetaKey

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.trace.annotations import Annotation

__all__ = ["Transcript"]

# Members whose values a server or a client makes up, and the word that stands for them.
_MADE_UP: Final = {
    "requestId": "id",
    MetaKey.SUBSCRIPTION_ID: "id",
    "progressToken": "token",
    "cursor": "cursor",
    "nextCursor": "cursor",
    "requestState": "state",
    "taskId": "task",
    "taskIds": "task",
    "elicitationId": "elicitation",
}
_TIMES: Final = frozenset({"createdAt", "lastUpdatedAt", "lastModified"})
# Their keys are made up.
_MAPS: Final = frozenset({"inputRequests", "inputResponses"})
# What the program under test says itself.
_VERBATIM: Final = frozenset(
    {"arguments", "structuredContent", "inputSchema", "outputSchema", "requestedSchema", "data", "text", "blob"}
)


class Transcript:
    """Writes the lines of one transcript. It numbers made-up values in the order in which they occur."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[object, int]] = {}

    def line(self, annotation: Annotation) -> str:
        """Return one message as a line."""
        arrow = "→" if annotation.direction == "to server" else "←"
        if annotation.frame is None or annotation.kind == "malformed":
            return f"{arrow} malformed message of {annotation.size_bytes} bytes"
        message: dict[str, Any] = msgspec.json.decode(annotation.frame)
        sender = "client" if (arrow == "→") == (annotation.kind == "request") else "server"
        label = message.get("method") or ("error" if annotation.kind == "error" else "result")
        # Both sides number their requests, so the same id may stand for two.
        number = f" #{self._number(f'{sender} id', message['id'])}" if message.get("id") is not None else ""
        name = f" of {annotation.method}" if annotation.kind in ("response", "error") and annotation.method else ""
        body = next((message[key] for key in ("params", "result", "error") if key in message), None)
        prefix = "server " if sender == "server" and number else ""
        shown = "" if body is None else f" {self._json(self._stable(body))}"
        return f"{arrow} {prefix}{label}{number}{name}{shown}"

    def _stable(self, value: Any) -> Any:
        if is_array(value):
            return [self._stable(each) for each in value]
        if not is_object(value):
            return value
        # The content of a form, which the user has filled in.
        verbatim = _VERBATIM | {"content"} if "action" in value else _VERBATIM
        return {key: each if key in verbatim else self._member(key, each) for key, each in value.items()}

    def _member(self, key: str, value: Any) -> Any:
        word = _MADE_UP.get(key, "")
        if word and is_array(value):
            return [self._member(key, each) for each in value]
        if word and isinstance(value, (str, int)):
            return f"<{word} {self._number('client id' if word == 'id' else word, value)}>"
        if key in _TIMES and isinstance(value, str) and _is_time(value):
            return "<time>"
        if key in _MAPS and is_object(value):
            return {f"<input {self._number('input', name)}>": self._stable(each) for name, each in value.items()}
        return self._stable(value)

    def _number(self, word: str, value: object) -> int:
        numbers = self._numbers.setdefault(word, {})
        return numbers.setdefault((type(value), value), len(numbers) + 1)

    @staticmethod
    def _json(value: object) -> str:
        encoded = msgspec.json.encode(value, order="deterministic")
        return encoded.decode()


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
