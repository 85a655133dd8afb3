"""The way from one revision to another: steps between neighbours, each loaded when a route first needs it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcpgen.generated import adapters
from mcpgen.runtime.errors import UnknownRevision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.generated.adapters import Direction

__all__ = ["GENERATED", "Steps", "step_name"]


class Steps:
    """The steps between neighbouring revisions.

    Args:
        steps: The older and the newer revision of each, and the name of its module; oldest first, without a gap.
        load: Imports a module by that name; it has the directions ``UP`` and ``DOWN``.
    """

    def __init__(self, steps: Sequence[tuple[str, str, str]], load: Callable[[str], Any]) -> None:
        self._steps = tuple(steps)
        self._load = load

    def directions(self, source: str, target: str) -> tuple[Direction, ...]:
        """Return the steps from *source* to *target* in the order in which they are taken; none, if they are one.

        Raises:
            UnknownRevision: There are no bindings for one of them, or no step leads there.
        """
        rungs = [old for old, _, _ in self._steps] + [new for _, new, _ in self._steps[-1:]]
        for label in (source, target):
            if label not in rungs:
                raise UnknownRevision(label)
        first, last = rungs.index(source), rungs.index(target)
        if first < last:
            return tuple(self._load(module).UP for _, _, module in self._steps[first:last])
        return tuple(self._load(module).DOWN for _, _, module in reversed(self._steps[last:first]))


def step_name(direction: Direction) -> str:
    """Return what losses call a step."""
    return f"{direction.source} to {direction.target}"


GENERATED = Steps(adapters.STEPS, lambda module: import_module(f"{adapters.__name__}.{module}"))
"""The steps that this package was built with."""
