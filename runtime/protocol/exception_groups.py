"""The one exception that a group of exceptions stands for, and what exceptions keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from mcpgen.runtime.errors import TransportClosed, UnsupportedByPeer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["forget_frames", "joined_unsupported", "sole_exception"]

E = TypeVar("E", bound=BaseException)


def sole_exception(error: E) -> E:
    """Return the exception that the group *error* stands for, as task groups raise it; otherwise *error* itself.

    This is the only exception of the group. For several that are all an `UnsupportedByPeer` of the client, it joins
    them. If all are a `TransportClosed`, it is the first: a handler that asks several questions has one for each, and
    to log the group takes milliseconds for each handler of a session that ends.
    """
    inner = _members(error)
    if len(inner) == 1:
        return sole_exception(inner[0])
    found = [sole_exception(each) for each in inner]
    if found and all(isinstance(each, TransportClosed) for each in found):
        return found[0]
    unsupported = [each for each in found if isinstance(each, UnsupportedByPeer) and each.peer == "client"]
    return cast("E", joined_unsupported(unsupported)) if unsupported and len(unsupported) == len(found) else error


def _members(error: E) -> Sequence[E]:
    """Return the exceptions of a group; none of another exception."""
    return getattr(error, "exceptions", ()) if issubclass(type(error), BaseExceptionGroup) else ()


def joined_unsupported(failures: Sequence[UnsupportedByPeer]) -> UnsupportedByPeer:
    """Return one exception that names everything that the peer lacks.

    Spec:
        2026-07-28, basic/index, "_meta": the error lists the missing capabilities.
    """
    required: dict[str, object] = {}
    for each in failures:
        _merge(required, each.required or {})
    return UnsupportedByPeer(
        revision=failures[0].revision,
        what=", ".join(dict.fromkeys(each.what for each in failures)),
        reason="; ".join(dict.fromkeys(each.reason for each in failures)),
        required=required or None,
    )


def _merge(target: dict[str, object], more: Mapping[str, object]) -> None:
    """Add the capabilities *more* to *target*, at any depth."""
    for key, each in more.items():
        inner = dict(cast("Mapping[str, object]", target.get(key) or {}))
        _merge(inner, cast("Mapping[str, object]", each))
        target[key] = inner


def forget_frames(failure: BaseException) -> None:
    """Drop the tracebacks of *failure*, of its causes and contexts, and of the exceptions in groups among them.

    One of their frames may refer to one of these exceptions, and the only exception of a group often has the group as
    its context. Then the request, which may be large, would be kept until the next garbage collection, which comes late
    (`process_memory`).
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [failure]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            waiting += (each.__cause__, each.__context__)
            waiting += _members(each)
