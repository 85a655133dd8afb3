"""The parts of the adapters between revisions.

A step converts a JSON value from the form of one revision to that of a neighbouring revision. It never changes the
value that it gets: it copies what it alters. It reports to `Losses` what the other revision cannot express, or refuses
it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, TypeGuard

import msgspec
from msgspec import Struct, UnsetType, ValidationError

from .validation import decoder

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

__all__ = [
    "SAME",
    "Adapt",
    "At",
    "Direction",
    "Fields",
    "Gone",
    "Loss",
    "Losses",
    "Message",
    "Part",
    "Refusal",
    "Severity",
    "by_method",
    "closing",
    "is_array",
    "is_object",
    "keep",
    "same_name",
    "step",
]

Severity: TypeAlias = Literal["dropped", "degraded", "defaulted", "refused"]

At: TypeAlias = tuple[Any, ...]
"""The place of a value: () is the whole message, (holder, key) is the place of a key or an index inside *holder*."""


class Loss(Struct, frozen=True, kw_only=True):
    """Something that the target revision cannot express as the source revision does.

    Attributes:
        pointer: The place, as an RFC 6901 pointer into the message that the step got.
        step: The step, for example ``2025-06-18 to 2025-03-26``.
        reason: The reason, as a sentence.
        severity: ``dropped``: the value was removed. ``degraded``: it was replaced by one with less information.
            ``defaulted``: the target requires a value that the source lacks. ``refused``: the target cannot express the
            message.
    """

    pointer: str
    step: str
    reason: str
    severity: Severity


class Refusal(Exception):  # noqa: N818 (a refusal is an outcome, not a fault)
    """The target revision cannot express the message.

    Attributes:
        loss: The place and the reason; its severity is ``refused``.
        service: What an engine can do instead, or None.
    """

    def __init__(self, loss: Loss, service: str | None) -> None:
        self.loss = loss
        self.service = service
        super().__init__(loss.reason)


class Losses:
    """Collects the losses of one message.

    Attributes:
        step: The current step; the caller sets it.
    """

    __slots__ = ("_noted", "step")

    def __init__(self, step: str = "") -> None:
        self.step: str = step
        self._noted: list[tuple[At, str, str, Severity]] = []

    def __len__(self) -> int:
        return len(self._noted)

    @property
    def found(self) -> list[Loss]:
        """All losses, in the order in which they occurred; built on each access, since many callers never read them."""
        return [
            Loss(pointer=_pointer(at), step=step, reason=reason, severity=severity)
            for at, step, reason, severity in self._noted
        ]

    def dropped(self, at: At, reason: str) -> None:
        """Report that the value at *at* was removed."""
        self._noted.append((at, self.step, reason, "dropped"))

    def degraded(self, at: At, reason: str) -> None:
        """Report that the value at *at* was replaced by one with less information."""
        self._noted.append((at, self.step, reason, "degraded"))

    def defaulted(self, at: At, reason: str) -> None:
        """Report that the value at *at* is a default, because the target requires one."""
        self._noted.append((at, self.step, reason, "defaulted"))

    def refuse(self, at: At, reason: str, service: str | None = None) -> NoReturn:
        """Refuse the whole message.

        Raises:
            Refusal: Always.
        """
        raise Refusal(Loss(pointer=_pointer(at), step=self.step, reason=reason, severity="refused"), service)

    def drop(self, value: dict[str, Any], key: str, at: At, reason: str) -> None:
        """Remove *key* from *value*, whose place is *at*, and report it."""
        del value[key]
        self._noted.append(((at, key), self.step, reason, "dropped"))

    def drop_all(self, value: dict[str, Any], keys: AbstractSet[str], at: At, reason: str) -> None:
        """Remove and report those of *keys* that *value* has."""
        for key in [key for key in value if key in keys]:
            self.drop(value, key, at, reason)


def _pointer(at: At) -> str:
    tokens: list[str] = []
    while at:
        at, token = at
        tokens.append("/" + str(token).replace("~", "~0").replace("/", "~1"))
    return "".join(reversed(tokens))


Adapt: TypeAlias = Callable[[Any, At, Losses], Any]
"""Takes a value and its place, and returns the value in the form of the other revision."""


def keep(value: Any, at: At, losses: Losses) -> Any:
    """Return *value* unchanged."""
    del at, losses
    return value


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether *value* is a JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether *value* is a JSON array."""
    return isinstance(value, list)


class Part(Struct, frozen=True, kw_only=True):
    """The step for the params, the result or the error of a message, or for a definition.

    Attributes:
        adapt: The function.
        idle: The function does something only if the value has keys that the source revision does not define. The
            output of another step has no such keys.
    """

    adapt: Adapt = keep
    idle: bool = True


SAME: Final = Part()
"""The value stays the same."""


def step(adapt: Adapt) -> Part:
    """Return the part that applies *adapt* to every value."""
    return Part(adapt=adapt, idle=False)


def closing(adapt: Adapt) -> Part:
    """Return the part whose function *adapt* only removes keys that the source revision does not define."""
    return Part(adapt=adapt, idle=True)


class Gone(Struct, frozen=True, kw_only=True):
    """The reason why the target has no such message, and what an engine can do instead."""

    reason: str
    service: str | None


class Message(Struct, frozen=True):
    """One method of the source revision.

    Attributes:
        params: The step for the params; None if the target lacks the method.
        result: Likewise; None for a notification.
        error: Likewise; None for a notification.
        gone: By sender, ``client`` or ``server``: the reason why it cannot send the message in the target.
    """

    params: Part | None = None
    result: Part | None = None
    error: Part | None = None
    gone: dict[str, Gone] = {}


class Direction(Struct, frozen=True, kw_only=True):
    """One direction between two neighbouring revisions.

    Attributes:
        source: The revision that values come from.
        target: The revision that they are adapted to.
        messages: The steps by method.
        definitions: The name in the target and the step, by the name in the source.
    """

    source: str
    target: str
    messages: dict[str, Message]
    definitions: dict[str, tuple[str, Part]]


def by_method(*rows: tuple[Message, str]) -> dict[str, Message]:
    """Return the messages by method; each row is a message and the methods that it is for, separated by blanks."""
    return {name: message for message, names in rows for name in names.split()}


def same_name(*rows: tuple[Part, str]) -> dict[str, tuple[str, Part]]:
    """Return the definitions that keep their name; each row is a step and the names that it is for."""
    return {name: (name, part) for part, names in rows for name in names.split()}


class Fields:
    """Checks values against the fields of a revision's types; imports the bindings on first use."""

    def __init__(self, package: str) -> None:
        self._package = f"{__name__.rsplit('.', 2)[0]}.{package}"
        self._decoders: Final[dict[tuple[str, str], Callable[[bytes], object]]] = {}

    @classmethod
    def of(cls, package: str | None) -> Fields:
        """Return the fields of the types in *package*, the full name of the bindings of a draft."""
        fields = cls("")
        fields._package = package or ""
        return fields

    def admit(self, definition: str, key: str, value: Any) -> bool:
        """Whether *value* is valid for *key* of the type *definition*, or for an empty key as that type itself."""
        if (definition, key) not in self._decoders:
            self._decoders[definition, key] = self._decoder(definition, key)
        try:
            self._decoders[definition, key](msgspec.json.encode(value))
        except ValidationError:
            return False
        return True

    def _decoder(self, definition: str, key: str) -> Callable[[bytes], object]:
        held: Any = getattr(import_module(self._package), definition)
        if key:
            attribute = held.__struct_fields__[held.__struct_encode_fields__.index(key)]
            annotation = typing.get_type_hints(held, include_extras=True)[attribute]
            arms = [each for each in typing.get_args(annotation) if each is not UnsetType]
            is_optional = UnsetType in typing.get_args(annotation)
            held = typing.Union[tuple(arms)] if is_optional else annotation  # noqa: UP007 (a tuple made at run time)
        return decoder(held)
