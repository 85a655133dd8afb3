"""Find out whether a revision declares a key of a value; adapters do not restore other keys."""

from __future__ import annotations

import typing
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import index_of, is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["is_declared"]


def is_declared(model: Any, annotation: Any, tokens: Sequence[str]) -> bool:  # noqa: ANN401 (any decoded value and type)
    """Whether a schema declares the place at *tokens*: a declared key, an item of a list, or a member of a typed map.

    Args:
        model: A value, decoded with its revision's bindings.
        annotation: The type that it was decoded as.
        tokens: Keys and indexes, outermost first; the value need not have them.
    """
    for token in tokens:
        view = None if isinstance(model, Struct) else _view(annotation)
        if view is not None and is_object(model):
            model = msgspec.convert(model, view)
        if isinstance(model, Struct):
            names = model.__struct_encode_fields__
            if token not in names:
                return False
            attribute = model.__struct_fields__[names.index(token)]
            annotation = _hints(type(model))[attribute]
            model = getattr(model, attribute)
        elif is_array(model):
            annotation = _member(annotation, list)
            index = index_of(token, len(model))
            model = None if index is None else model[index]
        elif is_object(model):
            annotation = _member(annotation, dict)
            if annotation in (object, Any):  # any key is allowed; none is declared
                return False
            model = model.get(token)
        else:
            return False
    return True


@cache
def _hints(struct: type[Struct]) -> dict[str, Any]:
    return typing.get_type_hints(struct, include_extras=True)


def _view(annotation: Any) -> type[Struct] | None:  # noqa: ANN401 (any type)
    """Return the view of an open object; *annotation* may be a union with one."""
    for arm in _arms(annotation):
        candidates = [arm, *(typing.get_args(arm)[1:] if typing.get_origin(arm) is Annotated else ())]
        for each in candidates:
            if isinstance(each, type) and issubclass(each, Struct):
                return each
    return None


def _member(annotation: Any, container: type) -> Any:  # noqa: ANN401 (any type)
    """Return the item type of a list, or the value type of a map; *annotation* may be a union with one."""
    for arm in _arms(annotation):
        bare = typing.get_args(arm)[0] if typing.get_origin(arm) is Annotated else arm
        if typing.get_origin(bare) is container:
            return typing.get_args(bare)[-1]
    return object


def _arms(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 (any type)
    if typing.get_origin(annotation) in (typing.Union, typing.get_origin(int | str)):
        yield from (each for each in typing.get_args(annotation) if each is not UnsetType)
    else:
        yield annotation
