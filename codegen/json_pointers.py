"""Places in a JSON document that a pointer names: RFC 6901, where a ``*`` token stands for every key or index."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from mcpgen.codegen.diagnostics import pointer_to

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Json", "Location", "objects", "places"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Location:
    """One key of an object, which need not exist, or one index of an array, which does."""

    def __init__(self, holder: dict[str, Json] | list[Json], key: str | int, path: tuple[str | int, ...]) -> None:
        self._holder = holder
        self._key = key
        self._path = (*path, key)

    @property
    def pointer(self) -> str:
        """The pointer of this place, without wildcards."""
        return pointer_to(*self._path)

    def get(self) -> Json | UnsetType:
        """Return what is here, UNSET if there is nothing."""
        if isinstance(self._holder, dict):
            return self._holder.get(str(self._key), UNSET)
        return self._holder[int(self._key)]

    def put(self, value: Json) -> None:
        """Put *value* here."""
        if isinstance(self._holder, dict):
            self._holder[str(self._key)] = value
        else:
            self._holder[int(self._key)] = value

    def below(self, token: str) -> Iterator[Location]:
        """Yield the places that *token* names in what is here."""
        match self.get():
            case dict() as found:
                for key in sorted(found) if token == "*" else [token]:  # noqa: S105 a token of a pointer
                    yield Location(found, key, self._path)
            case list() as found:
                indexes = range(len(found)) if token == "*" else [int(token)] if token.isdecimal() else []  # noqa: S105
                yield from (Location(found, index, self._path) for index in indexes if index < len(found))
            case _:
                pass


def places(document: dict[str, Json], pointer: str) -> list[Location]:
    """Return the places in *document* that *pointer* names; only the last key of it need not exist."""
    first, *rest = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]] or [""]
    found = [Location(document, key, ()) for key in (sorted(document) if first == "*" else [first])]
    for token in rest:
        found = [inner for place in found for inner in place.below(token)]
    return found


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """Yield every object inside *value*, itself included, in the order of keys."""
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
