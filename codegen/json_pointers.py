"""JSON pointers (RFC 6901) with one addition: the token ``*`` matches every key or index."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from mcpgen.codegen.diagnostics import pointer_to

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Json", "Location", "objects", "locations"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Location:
    """One key of an object, which may be absent, or one index of an array, which exists."""

    def __init__(self, holder: dict[str, Json] | list[Json], key: str | int, path: tuple[str | int, ...]) -> None:
        self._holder = holder
        self._key = key
        self._path = (*path, key)

    @property
    def pointer(self) -> str:
        """The pointer of this location, without wildcards."""
        return pointer_to(*self._path)

    def get(self) -> Json | UnsetType:
        """Return the value here, or UNSET if there is none."""
        if isinstance(self._holder, dict):
            return self._holder.get(str(self._key), UNSET)
        return self._holder[int(self._key)]

    def put(self, value: Json) -> None:
        """Replace the value here by *value*."""
        if isinstance(self._holder, dict):
            self._holder[str(self._key)] = value
        else:
            self._holder[int(self._key)] = value

    def below(self, token: str) -> Iterator[Location]:
        """Yield the locations that *token* matches inside the value here."""
        match self.get():
            case dict() as found:
                for key in sorted(found) if token == "*" else [token]:  # noqa: S105 a token of a pointer
                    yield Location(found, key, self._path)
            case list() as found:
                indexes = range(len(found)) if token == "*" else [int(token)] if token.isdecimal() else []  # noqa: S105
                yield from (Location(found, index, self._path) for index in indexes if index < len(found))
            case _:
                pass


def locations(document: dict[str, Json], pointer: str) -> list[Location]:
    """Return the locations in *document* that *pointer* matches. Only its last key may be absent."""
    first, *rest = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]] or [""]
    found = [Location(document, key, ()) for key in (sorted(document) if first == "*" else [first])]
    for token in rest:
        found = [inner for place in found for inner in place.below(token)]
    return found


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """Yield every object inside *value*, including *value*, in the order of the keys."""
    match value:
        case dict():
            yield value
            for key in sorted(value):
                yield from objects(value[key])
        case list():
            for each in value:
                yield from objects(each)
        case _:
            pass
