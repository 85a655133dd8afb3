"""The vocabulary in which a step between two revisions is declared.

Theory of operation. ``mcpgen diff OLD NEW`` lists the differences. Most of them are adapted mechanically: a new
optional key is dropped going down and admitted going up. For the others, a `Change` declares an `Action` for each
direction. If an action needs code, the module of the step defines a small function, which is copied verbatim into the
generated adapter. The function may use the standard library and the methods of `Losses`.

An action gets a value of the source revision and also returns one: the mechanical part of the step runs after it. So an
action only has to replace what the mechanical part cannot carry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

import msgspec

__all__ = [
    "Action",
    "At",
    "Change",
    "Convert",
    "Default",
    "Drop",
    "Keep",
    "Losses",
    "Read",
    "Recode",
    "Refuse",
    "Rename",
    "Step",
]

At: TypeAlias = tuple[Any, ...]
"""The place of a value in a message: () is the message, (holder, key) is *key* in the value at *holder*."""


class Losses(Protocol):
    """The report of a conversion. The generated adapters define the class."""

    def degraded(self, at: At, reason: str) -> None:
        """Report that the value at *at* was replaced by one that carries less information."""
        ...

    def dropped(self, at: At, reason: str) -> None:
        """Report that the value at *at* was removed."""
        ...

    def defaulted(self, at: At, reason: str) -> None:
        """Report that the value at *at* is a default, because the target requires one."""
        ...

    def refuse(self, at: At, reason: str, service: str | None = None) -> NoReturn:
        """Refuse the whole message.

        Args:
            at: The value that cannot be expressed.
            reason: Why, as one sentence.
            service: The engine service that handles the message instead, or None.
        """
        ...


Conversion: TypeAlias = Callable[[Any, At, Losses], Any]
"""Return a replacement for a value; must not change the value itself."""


class Drop(msgspec.Struct, frozen=True, tag=True):
    """Remove the value and report a loss. Without an action, a key that the target lacks is dropped too."""


class Keep(msgspec.Struct, frozen=True, tag=True):
    """Keep the value: the target does not name the key, but allows any key. Revisions beyond the target keep it too."""


class Default(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Fill in a value that the target requires and the source may lack.

    In the other direction, a value that equals the default is dropped without a loss, because it would be filled in
    again.

    Attributes:
        value: The default, as JSON. Give this or *make*.
        make: A function that returns the default for the object that lacks the value.
        implied: An absent value means the same as the default, so that adding it is no loss either.
    """

    value: Any = None
    make: Conversion | None = None
    implied: bool = False


class Convert(msgspec.Struct, frozen=True, tag=True):
    """Replace the value by what *function* returns. The function reports losses itself.

    At the errors of a method (``resources/read error``), the function must return an error of the target, or the same
    object. That is then converted like any other error, and the function is called once more, with the result.
    """

    function: Conversion


class Read(msgspec.Struct, frozen=True, tag=True):
    """Convert a value of this arm of a union as if its type were the target's definition *name*."""

    name: str


class Rename(msgspec.Struct, frozen=True, tag=True):
    """Rename the key: the other side calls it *key*."""

    key: str


class Recode(msgspec.Struct, frozen=True, tag=True):
    """Replace the code of the error by *code*; its message and its data stay."""

    code: int


class Refuse(msgspec.Struct, frozen=True, tag=True):
    """Refuse a message with this value, because the target cannot express it.

    Attributes:
        service: The engine service that handles such messages instead, or None if none does.
    """

    service: Service | None = None


Service: TypeAlias = Literal[
    "negotiation",  # initialize, initialized and ping, or server/discover: each engine answers these itself
    "input",  # elicitation, sampling and roots: server requests, or input_required results and retries
    "subscriptions",  # resources/subscribe and change notifications, or subscriptions/listen
    "log_level",  # logging/setLevel, or a log level in each request
    "tasks",  # only if both peers speak 2025-11-25
    "batching",  # sends the messages of a batch one by one
    "progress",  # progress notifications from the client: only handshake revisions have them
    "roots",  # requests the list of roots again
]

Action: TypeAlias = Drop | Keep | Default | Convert | Read | Rename | Recode | Refuse


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One declared change between the two revisions.

    Attributes:
        name: Kebab-case, unique in the step.
        says: The reason of its losses. One sentence that states a fact: ``2025-03-26 has no `title`.``
        spec: The place in the specification: ``2025-06-18, server/tools#structured-content``.
        covers: The differences that this change explains, each as the ``kind`` and ``id`` that
            ``mcpgen diff --format json`` shows: ``key-removed Tool.execution``. ``*`` matches any characters. Each
            entry must match at least one difference.
        at: The places of the actions, if they are not the covered ones: ``Tool`` (a definition, before its keys),
            ``Tool.outputSchema`` (a key), ``ContentBlock[AudioContent]`` (an arm). Use the names of the revision that
            the action converts from.
        up: The action for values of the older revision. None converts them mechanically, if that is possible.
        down: The action for values of the newer revision.
    """

    name: str
    says: str
    spec: str
    covers: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    up: Action | None = None
    down: Action | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The step between two neighbouring revisions.

    Attributes:
        old: The older revision.
        new: The newer one.
        renames: New name by old name, for definitions whose name and structure both changed.
        changes: The declared changes, in the order in which the generated adapter lists them.
    """

    old: str
    new: str
    renames: dict[str, str] = {}
    changes: tuple[Change, ...] = ()
