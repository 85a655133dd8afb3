"""What clients of a revision send to an echoing server, prepared in advance, and whether the answers are right.

All calls of a batch are equally long, so that where one begins is arithmetic rather than work.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

REVISIONS: Final = ("2024-11-05", "2025-11-25", "2026-07-28")
STATELESS: Final = frozenset({"2026-07-28"})

# An id is used once in a session. All of them have eight digits.
FIRST_ID: Final = 10_000_000

_WHO: Final = {"name": "bench", "version": "1.2.3"}
_decode = msgspec.json.Decoder().decode


class WrongAnswer(Exception):  # noqa: N818 (said as a sentence)
    """What came back is not what an echoing server answers."""


class Batch(msgspec.Struct, frozen=True):
    """Some calls, one after the other.

    Attributes:
        texts: By id, what is to be echoed.
        data: The calls, each with the newline that ends it.
        length: Bytes of each.
    """

    texts: dict[int, str]
    data: bytes
    length: int

    def messages(self) -> list[bytes]:
        """Return the calls."""
        return [self.data[start : start + self.length] for start in range(0, len(self.data), self.length)]


class Traffic:
    """One client's messages, with ids that are not used twice."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self._next = FIRST_ID

    def opening(self) -> bytes:
        """Return the request that a client of the revision sends first."""
        if self.revision in STATELESS:
            return self._request("tools/list", {})
        return self._request("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": _WHO})

    def opened(self) -> bytes:
        """Return what the client says when the first request has been answered, which may be nothing."""
        if self.revision in STATELESS:
            return b""
        return _line({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: str) -> bytes:
        """Return a call."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def listening(self) -> bytes:
        """Return the request that opens a stream on which changes of the tools are told."""
        return self._request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

    def calls(self, count: int, *, tool: str = "echo") -> Batch:
        """Return *count* calls of a tool that echoes."""
        first = str(self._next)
        one = self.call(tool, text=f"hello, {first}")
        texts = {number: f"hello, {number}" for number in range(self._next - 1, self._next - 1 + count)}
        self._next += count - 1
        # Ten times as fast as encoding each.
        data = b"".join([one.replace(first.encode(), b"%d" % number) for number in texts])
        return Batch(texts, data, len(one))

    def _request(self, method: str, params: dict[str, Any]) -> bytes:
        meta = {}
        if self.revision in STATELESS:
            meta = {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": _WHO,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        number, self._next = self._next, self._next + 1
        if meta:
            params = {**params, "_meta": meta}
        return _line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def check_opening(answer: bytes) -> None:
    """Make sure that the first answer is a result.

    Raises:
        WrongAnswer: It is not.
    """
    if "result" not in json.loads(answer):
        raise WrongAnswer(answer.decode())


def check(batch: Batch, answers: Iterable[bytes]) -> None:
    """Make sure that each call of *batch* has one answer, and that it holds the call's text and nothing else.

    Args:
        batch: The calls.
        answers: What came, in pieces of any size.

    Raises:
        WrongAnswer: Something else came.
    """
    missing = dict(batch.texts)
    for line in b"".join(answers).splitlines():
        answer = _decode(line)
        expected = missing.pop(answer.get("id"), None)
        if expected is None or _text(answer) != expected:
            raise WrongAnswer(line.decode())
    if missing:
        raise WrongAnswer(f"nothing for {len(missing)} of {len(batch.texts)} calls, such as {min(missing)}")


def text_of(line: bytes) -> str:
    """Return the one text of a tool's result.

    Raises:
        WrongAnswer: It is another answer.
    """
    try:
        text = _text(_decode(line))
    except msgspec.DecodeError:  # several lines, for one
        text = None
    if text is None:
        raise WrongAnswer(line.decode(errors="replace"))
    return text


def _text(answer: Any) -> str | None:
    match answer:
        case {"jsonrpc": "2.0", "result": {"content": [{"type": "text", "text": str(text)}], **rest}}:
            return None if rest.get("isError") else text
        case _:
            return None


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
