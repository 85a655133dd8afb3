"""Whether a value came back from a round trip as the same JSON.

Python's ``==`` is too kind: ``1 == 1.0 == True``. And the keys of an open object are the peer's, so their order counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.oracle.samples import OpenObject

if TYPE_CHECKING:
    from tests.oracle.shapes import Json


def difference(sent: Json, returned: Json, *, ordered: bool = False, pointer: str = "") -> str | None:
    """Return where and how *returned* differs from *sent*, None if it is equal JSON.

    Args:
        sent: As ``Instances`` made it; everything in an ``OpenObject`` must keep its order, of a
            ``MapObject`` only its own keys.
        returned: Decoded JSON.
        ordered: Whether the order of keys counts from here on.
        pointer: Where the two values were found.
    """
    if not pointer and msgspec.json.encode(sent) == msgspec.json.encode(returned):  # mostly, and this is fast
        return None
    match sent:
        case dict() if isinstance(returned, dict):
            if missing := [key for key in sent if key not in returned]:
                return f"{pointer}: lost {missing}"
            if invented := [key for key in returned if key not in sent]:
                return f"{pointer}: invented {invented}"
            if (ordered or isinstance(sent, OpenObject)) and list(sent) != list(returned):
                return f"{pointer}: keys in the order {list(returned)}, not {list(sent)}"
            ordered = ordered or type(sent) is OpenObject
            pairs = [(key, sent[key], returned[key]) for key in sent]
        case list() if isinstance(returned, list) and len(sent) == len(returned):
            pairs = [(index, *both) for index, both in enumerate(zip(sent, returned, strict=True))]
        case dict() | list():
            return f"{pointer}: {sent!r} became {returned!r}"
        case _:
            same = type(sent) is type(returned) and sent == returned
            return None if same else f"{pointer}: {sent!r} became {returned!r}"
    for key, before, after in pairs:
        if found := difference(before, after, ordered=ordered, pointer=f"{pointer}/{key}"):
            return found
    return None
