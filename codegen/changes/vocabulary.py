"""The words in which a step between two revisions is declared.

Theory of operation. ``mcpgen diff OLD NEW`` lists what differs. Most of it needs no words: a key that may be there and
was not known before is dropped going down and admitted going up. Where that is not enough, a `Change` says in each
direction what becomes of a value: an `Action` of this closed vocabulary. A conversion that is more than data is a small
function of the step's own file, which is copied into the generated adapter as it stands; it may use the standard
library, and what `Losses` offers.

An action is applied to the value as the side that it comes from wrote it, and what it returns is still of that side's
revision: the mechanical part of the step follows it. So an action only removes what the mechanical part cannot carry.
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
"""Where in a message a value stands, innermost key first; the generated adapters turn it into a pointer."""


class Losses(Protocol):
    """What a conversion may do beside returning a value; the adapters generate the class."""

    def degraded(self, at: At, reason: str) -> None:
        """Report that the value at *at* became something that says less."""
        ...

    def dropped(self, at: At, reason: str) -> None:
        """Report that the value at *at* is gone."""
        ...

    def defaulted(self, at: At, reason: str) -> None:
        """Report that the value at *at* was made up, because the target demands one."""
        ...

    def refuse(self, at: At, reason: str, service: str | None = None) -> NoReturn:
        """Give the whole message up.

        Args:
            at: The value that cannot be expressed.
            reason: Why.
            service: What an engine can do about it, or None.
        """
        ...


Conversion: TypeAlias = Callable[[Any, At, Losses], Any]
"""Takes a value that is not its own to change, and returns the value to use instead."""


class Drop(msgspec.Struct, frozen=True, tag=True):
    """The value goes, with a loss. What is removed without a word about it is dropped too."""


class Keep(msgspec.Struct, frozen=True, tag=True):
    """The value is as good in the target, which does not name the key because it allows any."""


class Default(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The target demands a value where there is none.

    On the way back, a value that equals the default goes without a loss, since it would be filled in again.

    Attributes:
        value: What it is, as JSON; or
        make: what makes it from the object that lacks it.
        implied: An absent value means exactly this one, so that neither adding it nor dropping it is a loss.
    """

    value: Any = None
    make: Conversion | None = None
    implied: bool = False


class Convert(msgspec.Struct, frozen=True, tag=True):
    """*function* says what the value becomes; it reports what is lost itself."""

    function: Conversion


class Read(msgspec.Struct, frozen=True, tag=True):
    """The values of this arm of a union are values of the target's definition *name*."""

    name: str


class Rename(msgspec.Struct, frozen=True, tag=True):
    """The key is called *key* on the other side."""

    key: str


class Recode(msgspec.Struct, frozen=True, tag=True):
    """The error becomes one with another *code*; its message and its data stay."""

    code: int


class Refuse(msgspec.Struct, frozen=True, tag=True):
    """A message with this value cannot be expressed in the target.

    Attributes:
        service: What an engine can do about it (`Service`), or None if nothing can.
    """

    service: Service | None = None


Service: TypeAlias = Literal[
    "negotiation",  # initialize, initialized and ping, or server/discover: each engine answers for itself
    "input",  # elicitation, sampling and roots: requests of the server, or input_required and a retry
    "subscriptions",  # resources/subscribe and change notifications, or subscriptions/listen
    "log_level",  # logging/setLevel, or the log level of each request
    "tasks",  # only where both ends speak 2025-11-25
    "batching",  # each message of a batch is a message of its own
    "progress",  # progress of the client, which only a handshake peer reports
    "cancellation",
    "roots",  # the list of roots is asked for anew
]

Action: TypeAlias = Drop | Keep | Default | Convert | Read | Rename | Recode | Refuse


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the newer revision does differently.

    Attributes:
        name: Kebab-case, unique in the step.
        says: One sentence, for people who read losses.
        spec: The place in the specification: ``2025-06-18, server/tools#structured-content``.
        covers: The differences that this explains, ``key-removed Tool.execution``, as `mcpgen diff --format json` says
            ``kind`` and ``id``; ``*`` stands for any characters. Each must match at least one.
        at: Where the actions apply, if not at each covered place: ``Tool`` (a definition, before its keys),
            ``Tool.outputSchema`` (a key), ``ContentBlock[AudioContent]`` (an arm). Spelled as the side that an action
            comes from spells it.
        up: What becomes of values of the older side; None is the mechanical way, if there is one.
        down: What becomes of values of the newer side.
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
        changes: In the order in which the generated adapter lists them.
    """

    old: str
    new: str
    renames: dict[str, str] = {}
    changes: tuple[Change, ...] = ()
