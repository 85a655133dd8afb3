"""JSON values, and RFC 6901 pointers into them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ABSENT", "index_of", "is_array", "is_object", "linked_pointer", "look_up", "pointer_to", "tokens_of"]

ABSENT: Final = object()
"""The result of `look_up` for a place that does not exist. JSON null is a value, which `look_up` returns as None."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def pointer_to(tokens: Iterable[str | int]) -> str:
    """Return the pointer of these keys and indexes, outermost first."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def linked_pointer(at: tuple[Any, ...], max_chars: int | None = None) -> str:
    """Return the pointer of a place that is linked to its parents: ``(((), "items"), 0)`` is ``/items/0``.

    Of each key, it has at most the first *max_chars* characters: a peer chooses how long keys are.
    """
    tokens: list[str | int] = []
    while at:
        at, token = at
        tokens.append(token[:max_chars] if isinstance(token, str) else token)
    return pointer_to(reversed(tokens))


def tokens_of(pointer: str) -> tuple[str, ...]:
    """Return the keys and indexes of *pointer*, outermost first.

    Raises:
        ValueError: It is not a pointer.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is not a JSON Pointer: it must be empty or begin with /")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))


def look_up(value: Any, tokens: Sequence[str]) -> Any:  # noqa: ANN401 (any JSON value)
    """Return the value in *value* at *tokens*; `ABSENT` if there is none."""
    for token in tokens:
        if is_object(value):
            value = value.get(token, ABSENT)
        elif is_array(value):
            index = index_of(token, len(value))
            value = ABSENT if index is None else value[index]
        else:
            return ABSENT
    return value


def index_of(token: str, length: int) -> int | None:
    """Return *token* as an index of a list of *length*; None if it is not one."""
    # No list in memory needs ten digits, and int() of a long text from a peer is slow.
    if _INDEX.fullmatch(token) is None:
        return None
    index = int(token)
    return index if index < length else None
