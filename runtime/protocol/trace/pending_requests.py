"""The requests of one side: pending ones, answered ones, and their progress tokens."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["SeenRequest", "PendingRequests"]

# A long session has millions of requests, but few at once. Older ones than these are forgotten.
_MAX_KEPT: Final = 10_000

# Longer ids are kept as their hash: the peer chooses them, and could choose 4 MiB.
_MAX_ID: Final = 100

# The peer also chooses the method. A method that the specification defines is shorter.
_MAX_METHOD: Final = 100

_Key: TypeAlias = "str | int | tuple[int, int]"


class SeenRequest(Struct, gc=False):
    """A request that passed.

    Attributes:
        method: The method. `PendingRequests` keeps its first 100 characters.
        revision: The revision; None if it is unknown.
        time_seconds: The time of the request.
        is_cancelled: Whether the sender has cancelled it.
        extensions: The extensions that its client has declared.
    """

    method: str
    revision: str | None
    time_seconds: float
    is_cancelled: bool = False
    extensions: frozenset[str] = frozenset()


class PendingRequests:
    """The requests of one side."""

    def __init__(self) -> None:
        self._pending: OrderedDict[_Key, SeenRequest] = OrderedDict()
        self._answered: OrderedDict[_Key, str | None] = OrderedDict()
        self._tokens: OrderedDict[_Key, str | None] = OrderedDict()

    def add(self, request_id: RequestId, request: SeenRequest) -> str | None:
        """Add a request; return what is wrong with its id, if anything."""
        key = _key(request_id)
        if key in self._pending:
            return "another request with this id is pending"
        if len(request.method) > _MAX_METHOD:
            request.method = f"{request.method[:_MAX_METHOD]}…"
        _put(self._pending, key, request)  # also with an id that was used before: the other side answers it
        return "this id was used before" if key in self._answered else None

    def pending(self, request_id: RequestId) -> SeenRequest | None:
        """Return the pending request with this id."""
        return self._pending.get(_key(request_id))

    def answer(self, request_id: RequestId) -> SeenRequest | None:
        """Return the pending request with this id, and mark it as answered; None if there is none."""
        key = _key(request_id)
        request = self._pending.pop(key, None)
        if request is not None:
            _put(self._answered, key, request.revision)
        return request

    def was_answered(self, request_id: RequestId) -> bool:
        """Whether a request with this id was answered."""
        return _key(request_id) in self._answered

    def revision_of_answered(self, request_id: RequestId) -> str | None:
        """Return the revision of an answered request."""
        return self._answered.get(_key(request_id))

    def add_token(self, token: RequestId, revision: str | None) -> None:
        """Add the progress token of a request."""
        _put(self._tokens, _key(token), revision)

    def has_token(self, token: RequestId) -> bool:
        """Whether a request had this progress token."""
        return _key(token) in self._tokens

    def revision_of_token(self, token: RequestId) -> str | None:
        """Return the revision of the request with this progress token."""
        return self._tokens.get(_key(token))


def _put(into: OrderedDict[_Key, Any], key: _Key, value: Any) -> None:  # noqa: ANN401 (any value type)
    into[key] = value
    if len(into) > _MAX_KEPT:
        into.popitem(last=False)


def _key(request_id: RequestId) -> _Key:
    if isinstance(request_id, str):
        return request_id if len(request_id) <= _MAX_ID else (len(request_id), hash(request_id))
    return request_id if -(2**63) <= request_id < 2**64 else (0, hash(request_id))
