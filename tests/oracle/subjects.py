"""What the oracle compares: the documents of a revision, and the bindings generated from them."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen.codegen.overlay import patched_document
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.generated import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REVISIONS = SchemaRoom().revisions


@cache
def official(revision: str) -> Mapping[str, Any]:
    """Return the document of *revision* as upstream published it, defects included."""
    return SchemaRoom().document(revision)


@cache
def patched(revision: str) -> Mapping[str, Any]:
    """Return the document of *revision* with its overlay: what the bindings are generated from."""
    return patched_document(revision)


class Bindings:
    """The models of one revision, used as a caller would use them."""

    def __init__(self, models: Any, *, open_objects: type) -> None:
        """Wrap the module *models*, or anything that looks like it.

        Args:
            models: Has an attribute for each definition, and ``decode``.
            open_objects: The base class of views, which decode to a dict and not to an instance.
        """
        self._models = models
        self._open = open_objects

    def decoders(self, name: str) -> dict[str, Callable[[bytes], object]]:
        """Return each way to decode the definition *name*, by what a caller writes."""
        target = getattr(self._models, name)
        ways: dict[str, Callable[[bytes], object]] = {
            "models.decode": lambda data: self._models.decode(data, target),
        }
        if isinstance(target, type) and issubclass(target, msgspec.Struct) and not issubclass(target, self._open):
            ways["msgspec.json.decode"] = msgspec.json.Decoder(target).decode
        return ways


def bindings(revision: str) -> Bindings:
    """Return the generated bindings of *revision*, or those of a registered draft."""
    door = registry.revision(revision).bindings()
    support = door.models.decode.__module__.rpartition(".")[0]  # a draft has its own
    return Bindings(door, open_objects=importlib.import_module(f"{support}.structs").Open)
