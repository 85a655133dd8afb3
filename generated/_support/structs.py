"""Base classes of the generated types: constants and open objects, which msgspec has no types for.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.

A **constant** is required on the wire, but a caller does not type it: `Constants` fills it in on construction only. An
**open object** keeps the keys that its schema does not define: its value is a ``dict``, and `Open` is a typed view of
the keys that the schema does define.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, StructMeta, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["JSON", "Constants", "ConstantsMeta", "Model", "Open", "const", "preset"]

T = TypeVar("T")

if TYPE_CHECKING:
    JSON: TypeAlias = object
    """Any JSON value. A type checker accepts every value for it, so that callers need no cast."""
else:
    # msgspec would take ``object`` for a custom type: it would call a ``dec_hook``, and it has no JSON Schema for it.
    JSON = Any


class _Constant:
    """The mark that `const` leaves in a class body for the metaclass."""

    def __init__(self, value: object, name: str | None) -> None:
        self.value = value
        self.name = name


def const(value: T, *, name: str | None = None) -> T:
    """Declare a field that always has this *value*: required on the wire, filled in on construction.

    Args:
        value: The constant.
        name: The key on the wire, if it differs from the attribute.
    """
    return typing.cast("T", _Constant(value, name))


def preset(value: T, *, name: str | None = None) -> T:
    """Declare a field that is required on the wire and gets *value* on construction, unless another is given."""
    return const(value, name=name)


class Model(Struct, frozen=True, repr_omit_defaults=True):
    """Base of all generated classes; the repr omits fields that have their default."""


_construct = StructMeta.__call__


class ConstantsMeta(StructMeta):
    """Makes the fields declared with `const` or `preset` required for the decoder, which does not call the class."""

    __constants__: dict[str, object]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> ConstantsMeta:
        """Create a class, and keep the constants of its body and its bases in ``__constants__``."""
        found = {key: value for key, value in namespace.items() if isinstance(value, _Constant)}
        for key, constant in found.items():
            if constant.name is None:
                del namespace[key]
            else:
                namespace[key] = field(name=constant.name)
        made = super().__new__(cls, name, bases, namespace, **options)
        redeclared = namespace.get("__annotations__", {})
        inherited: dict[str, object] = getattr(made, "__constants__", {})
        kept = {key: value for key, value in inherited.items() if key not in redeclared}
        made.__constants__ = kept | {key: constant.value for key, constant in found.items()}
        return made

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """Construct an instance, with the constants and presets that *kwargs* lacks."""
        return _construct(cls, *args, **{**cls.__constants__, **kwargs})


if TYPE_CHECKING:

    class Constants(Model, frozen=True):
        """Base of a class with constants or presets."""

else:

    class Constants(Model, frozen=True, metaclass=ConstantsMeta):
        """Base of a class with constants or presets; the repr omits them too, where they have their value."""

        def __rich_repr__(self) -> Iterable[tuple[str, Any]]:
            constants = type(self).__constants__
            for name, value in super().__rich_repr__():
                if name not in constants or value != constants[name]:
                    yield name, value

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class Open(Model, frozen=True):
    """Base of the typed view of an open object.

    A value of an open object's type is a ``dict[str, object]`` that holds all its keys in order, including those that
    the schema does not define. The generated class of that name is a view of the keys that the schema defines.
    """

    @classmethod
    def view(cls, value: Mapping[str, object]) -> Self:
        """Return the keys of *value* that the schema defines, typed.

        Raises:
            msgspec.ValidationError: One of these keys is missing or has the wrong type.
        """
        return msgspec.convert(value, cls)

    def as_dict(self) -> dict[str, object]:
        """Return these keys as the dict that a message holds."""
        return typing.cast("dict[str, object]", msgspec.to_builtins(self))

    @classmethod
    def check(cls, value: dict[str, object]) -> dict[str, object]:
        """Check *value* as `view` does, and return it unchanged."""
        msgspec.convert(value, cls)
        return value
