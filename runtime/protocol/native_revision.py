"""An author's handlers: of which revision they are, and what of its methods they override.

A class overrides some of the generated ``ServerHandlers`` or ``ClientHandlers`` of one revision, its home.
"""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from mcpgen.runtime.adapt.routes import Sender

__all__ = ["check_handlers", "native_revision_of", "handler_names", "overrides"]


def _base(native_revision: str, side: Sender) -> type[Any]:
    generated = bindings(native_revision)
    base: type[Any] = generated.server.ServerHandlers if side == "server" else generated.client.ClientHandlers
    return base


def native_revision_of(handlers: object, side: Sender) -> str:
    """Return the revision whose generated handlers the class of *handlers* overrides.

    Raises:
        UsageError: It overrides none.
    """
    if isinstance(handlers, type):
        raise UsageError(f"handlers are an instance: write {handlers.__name__}()")
    name = "ServerHandlers" if side == "server" else "ClientHandlers"
    modules = {base.__module__ for base in type(handlers).__mro__ if base.__name__ == name}
    for each in reversed(REVISIONS):
        if modules and _base(each.label, side).__module__ in modules:
            return each.label
    known = ", ".join(f"mcpgen.generated.{each.package}" for each in REVISIONS)
    raise UsageError(f"{type(handlers).__name__} is no {side}: it has to subclass the {name} of one of {known}")


def handler_names(methods: ModuleType, *tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the name that the generated handlers have for each method of *tables*: that of its constant, in small."""
    constants: dict[str, Any] = vars(methods)
    wanted = [each for table in tables for each in table.values()]
    return {
        each.name: name.lower()
        for name, each in constants.items()
        if name.isupper() and any(each is known for known in wanted)
    }


def overrides(handlers: Any, native_revision: str, side: Sender, name: str) -> bool:
    """Whether the class of *handlers* has a method *name* of its own."""
    return getattr(handlers.__class__, name) is not getattr(_base(native_revision, side), name)


def check_handlers(
    handlers: Any, native_revision: str, side: Sender, *, called: Iterable[str], answered: Iterable[str]
) -> None:
    """Find what handlers say in vain.

    Args:
        handlers: The author's.
        native_revision: Their revision.
        side: Whose they are.
        called: The methods that are called if they are overridden.
        answered: The methods that the engine answers itself.

    Raises:
        UsageError: They override what the engine answers itself, or have what could not be called, or never is.
    """
    kind = handlers.__class__.__name__
    for name in answered:
        if hasattr(handlers, name) and overrides(handlers, native_revision, side, name):
            raise UsageError(f"{kind} overrides {name}, which the engine answers itself")
    called = list(called)
    for name in called:
        if overrides(handlers, native_revision, side, name):
            _check_handler(kind, name, getattr(handlers, name))
    known: set[str] = set(dir(_base(native_revision, side)))
    members: dict[str, Any] = handlers.__class__.__dict__
    for name in sorted(set(members) - known):
        meant = difflib.get_close_matches(name, called, 1, 0.85)
        if meant and not name.startswith("_"):
            raise UsageError(f"{kind} has a method {name}, which nothing calls; did you mean {meant[0]}?")


def _check_handler(kind: str, name: str, handler: Any) -> None:
    """Find a handler that could not be called.

    Raises:
        UsageError: It is not a coroutine function, or does not take params and a context.
    """
    if not inspect.iscoroutinefunction(handler):
        raise UsageError(f"{kind}.{name} has to be a coroutine function: write `async def {name}`")
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        raise UsageError(
            f"{kind}.{name} has to take params and context: `async def {name}(self, params, context)`"
        ) from None
