"""Find the numbers that JSON cannot express: nan and the infinities, which msgspec writes as null."""

from __future__ import annotations

import math
import re
from typing import Any, Final, cast

import msgspec

from mcpgen.runtime.adapt.json_pointer import pointer_to
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.value_types import dump_value

__all__ = ["check_finite", "nonfinite_number"]

# A float of MessagePack whose exponent has no zero bit. UTF-8 has no such bytes.
_NONFINITE: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


def nonfinite_number(value: object) -> tuple[float, list[str | int]] | None:
    """Return a number in *value* that JSON cannot express, and the path to it; None if there is none.

    Ask only if the JSON of the value has a null. Most values are then encoded once more, and nothing else.
    """
    try:
        if not _NONFINITE.search(msgspec.msgpack.encode(value, enc_hook=dump_value)):
            return None
    except (TypeError, ValueError, OverflowError):  # MessagePack has smaller integers than JSON
        pass
    waiting: list[tuple[list[str | int], object]]
    waiting = [([], msgspec.to_builtins(value, enc_hook=dump_value, str_keys=True))]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return each, path
        members: list[tuple[Any, object]] = []
        if isinstance(each, dict):
            members = list(cast("dict[str, object]", each).items())
        elif isinstance(each, list | tuple):
            members = list(enumerate(cast("list[object]", each)))
        waiting.extend(([*path, key], member) for key, member in reversed(members))
    return None


def check_finite(params: object, encoded: object) -> None:
    """Refuse *params* with a number that JSON cannot express; *encoded* is their JSON.

    Raises:
        UsageError: There is one. The message names the member.
    """
    found = nonfinite_number(params) if isinstance(encoded, bytes) and b"null" in encoded else None
    if found is not None:
        number, (member, *path) = found
        place = f" at {pointer_to(path)}" if path else ""
        raise UsageError(
            f"`{member}` has {number}{place}, which JSON cannot express; pass a finite number, or None where that is "
            "allowed"
        )
