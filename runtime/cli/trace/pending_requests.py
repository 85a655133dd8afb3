"""The requests of one side that wait for an answer, and those that have got one."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["SeenRequest", "PendingRequests"]

# A client runs a few requests at once, and a stream of a week has seen millions: what is older than these is forgotten.
_MOST: Final = 10_000

# Longer ids are remembered by what they hash to: somebody else chooses them, and could choose 4 MiB.
_LONGEST: Final = 100

_Key: TypeAlias = "str | int | tuple[int, int]"


class SeenRequest(Struct, gc=False):
    """A request that was seen.

    Attributes:
        method: Its method.
        revision: The revision that it belongs to, if that is known.
        time_seconds: When it came.
        is_cancelled: Whether its sender does not want the answer any more.
    """

    method: str
    revision: str | None
    time_seconds: float
    is_cancelled: bool = False


class PendingRequests:
    """What one side has asked."""

    def __init__(self) -> None:
        self._open: OrderedDict[_Key, SeenRequest] = OrderedDict()
        self._answered: OrderedDict[_Key, str | None] = OrderedDict()
        self._tokens: OrderedDict[_Key, str | None] = OrderedDict()

    def ask(self, request_id: RequestId, asked: SeenRequest) -> str | None:
        """Note a request; return what is wrong with its id, if anything."""
        key = _key(request_id)
        problem = None
        if key in self._open:
            problem = "a request with this id waits for its answer"
        elif key in self._answered:
            problem = "this id was used before"
        else:
            _put(self._open, key, asked)
        return problem

    def waiting(self, request_id: RequestId) -> SeenRequest | None:
        """Return the request that waits under this id."""
        return self._open.get(_key(request_id))

    def answer(self, request_id: RequestId) -> SeenRequest | None:
        """Return the request that is answered now, and forget it; None if none waits under this id."""
        key = _key(request_id)
        asked = self._open.pop(key, None)
        if asked is not None:
            _put(self._answered, key, asked.revision)
        return asked

    def was_answered(self, request_id: RequestId) -> bool:
        """Whether a request of this id has got its answer."""
        return _key(request_id) in self._answered

    def revision_of_answered(self, request_id: RequestId) -> str | None:
        """Return the revision of a request that has got its answer."""
        return self._answered.get(_key(request_id))

    def give(self, token: RequestId, revision: str | None) -> None:
        """Note the token under which a request wants to hear of progress."""
        _put(self._tokens, _key(token), revision)

    def has_given(self, token: RequestId) -> bool:
        """Whether some request has named this token."""
        return _key(token) in self._tokens

    def revision_of_token(self, token: RequestId) -> str | None:
        """Return the revision of the request that has named this token."""
        return self._tokens.get(_key(token))


def _put(into: OrderedDict[_Key, Any], key: _Key, value: Any) -> None:  # noqa: ANN401 (of any of them)
    into[key] = value
    if len(into) > _MOST:
        into.popitem(last=False)


def _key(name: RequestId) -> _Key:
    if isinstance(name, str):
        return name if len(name) <= _LONGEST else (len(name), hash(name))
    return name if -(2**63) <= name < 2**64 else (0, hash(name))
