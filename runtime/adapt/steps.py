"""The steps between neighbouring revisions; each module is loaded when a route first needs it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcpgen.generated import adapters
from mcpgen.generated.adapters import Direction, Part
from mcpgen.runtime.errors import UnknownRevision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["GENERATED", "Steps", "Unadapted", "step_name"]


class Unadapted:
    """The step between *base* and a *draft* without an adapter: it converts no messages.

    The two peers of a session still tell each other who they are and what they support. For that, both are alike.
    """

    def __init__(self, base: str, draft: str) -> None:
        same = {name: (name, Part()) for name in ("ClientCapabilities", "Implementation", "ServerCapabilities")}
        self.UP: Direction = Direction(source=base, target=draft, messages={}, definitions=same)
        self.DOWN: Direction = Direction(source=draft, target=base, messages={}, definitions=same)


class Steps:
    """The steps between neighbouring revisions.

    Args:
        steps: The older and the newer revision of each step, and the name of its module; oldest first, without gaps.
        load: Imports a module by name; the module has the directions ``UP`` and ``DOWN``.
    """

    def __init__(self, steps: Sequence[tuple[str, str, str]], load: Callable[[str], Any]) -> None:
        self._steps = tuple(steps)
        self._load = load
        self._drafts: dict[str, tuple[str, Any]] = {}

    def add(self, draft: str, base: str, adapter: Any) -> None:  # noqa: ANN401 - a module
        """Add the step between *base* and *draft*: *adapter* has its directions ``UP`` and ``DOWN``."""
        self._drafts[draft] = (base, adapter)

    def directions(self, source: str, target: str) -> tuple[Direction, ...]:
        """Return the steps from *source* to *target*, in order; none if they are the same.

        Raises:
            UnknownRevision: There are no bindings for one of them, or no step leads there.
        """
        if source == target and source in self._drafts:
            return ()
        if source in self._drafts:
            base, adapter = self._drafts[source]
            return (adapter.DOWN, *self.directions(base, target))
        if target in self._drafts:
            base, adapter = self._drafts[target]
            return (*self.directions(source, base), adapter.UP)
        labels = [old for old, _, _ in self._steps] + [new for _, new, _ in self._steps[-1:]]
        for label in (source, target):
            if label not in labels:
                raise UnknownRevision(label)
        first, last = labels.index(source), labels.index(target)
        if first < last:
            return tuple(self._load(module).UP for _, _, module in self._steps[first:last])
        return tuple(self._load(module).DOWN for _, _, module in reversed(self._steps[last:first]))

    def is_draft(self, label: str) -> bool:
        """Whether *label* is a draft that was added."""
        return label in self._drafts


def step_name(direction: Direction) -> str:
    """Return the name of a step in losses and errors."""
    return f"{direction.source} to {direction.target}"


GENERATED = Steps(adapters.STEPS, lambda module: import_module(f"{adapters.__name__}.{module}"))
"""The generated steps."""
