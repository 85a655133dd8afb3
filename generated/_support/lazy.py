"""A package that imports its envelopes when they are first used.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.

The classes in ``messages`` take a quarter of the time of an import, and most programs need none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["lazily"]


def lazily(package: str, *, has_messages: bool = True) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for *package*, which import its module ``messages``, if it has one."""
    door = vars(sys.modules[package])

    def load() -> list[str]:
        if has_messages:
            messages = import_module(f"{package}.messages")
            door.update((name, getattr(messages, name)) for name in messages.__all__)
        door.pop("__getattr__", None)  # its presence keeps CPython from specializing accesses to the package
        names = {name for name in door if not name.startswith("_")} - {"Final", "TYPE_CHECKING", "annotations"}
        door["__all__"] = shown = sorted(names)
        return shown

    def get(name: str) -> Any:
        if name == "__all__" or not name.startswith("__"):
            load()
            if name in door:
                return door[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, load
