"""The native revision of an author's handlers, and the methods that they override.

A class of handlers overrides methods of the generated ``ServerHandlers`` or ``ClientHandlers`` of its native revision.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from mcpgen.generated import registry
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.adapt.registration import register_installed
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from mcpgen.runtime.adapt.routes import Sender

__all__ = ["check_handlers", "check_overrides", "native_revision_of", "handler_names", "overrides"]


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
        raise UsageError(f"`handlers` must be an instance, not a class; write {handlers.__name__}()")
    name = "ServerHandlers" if side == "server" else "ClientHandlers"
    modules = {base.__module__ for base in type(handlers).__mro__ if base.__name__ == name}
    for known_already in (True, False):
        if not known_already:
            register_installed()  # the handlers of an installed draft that was not used before
        for each in reversed(registry.known()):
            if modules and _base(each.label, side).__module__ in modules:
                return each.label
    known = ", ".join(f"mcpgen.generated.{each.package}" for each in registry.REVISIONS)
    raise UsageError(
        f"`handlers` has the type {type(handlers).__name__}, which is not a subclass of {name}; derive its class from "
        f"the {name} of one of {known}; for the bindings of a draft, call `mcpgen.register` first"
    )


def handler_names(methods: ModuleType, *tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the handler's name for each method of *tables*: the name of the method's constant in lower case."""
    constants: dict[str, Any] = vars(methods)
    wanted = [each for table in tables for each in table.values()]
    return {
        each.name: name.lower()
        for name, each in constants.items()
        if name.isupper() and any(each is known for known in wanted)
    }


def overrides(handlers: Any, native_revision: str, side: Sender, name: str) -> bool:
    """Whether the class of *handlers* overrides the method *name*."""
    return getattr(handlers.__class__, name) is not getattr(_base(native_revision, side), name)


def check_handlers(
    handlers: Any, native_revision: str, side: Sender, *, called: Iterable[str], answered: Iterable[str]
) -> None:
    """Refuse handlers with methods that would never be called.

    Args:
        handlers: The author's handlers.
        native_revision: Their revision.
        side: Their side.
        called: The methods that are called if they are overridden.
        answered: The methods that mcpgen answers itself.

    Raises:
        UsageError: They override a method that mcpgen answers itself, or have one that cannot be called or has a
            misspelt name.
    """
    check_overrides(handlers, _base(native_revision, side), called=called, answered=answered)


def check_overrides(handlers: Any, base: type[Any], *, called: Iterable[str], answered: Iterable[str]) -> None:
    """Do the same as `check_handlers`, for handlers whose class is derived from *base*.

    Raises:
        UsageError: As `check_handlers` does.
    """
    kind = handlers.__class__.__name__

    def is_overridden(name: str) -> bool:
        # The base may lack a method that only other revisions have.
        return getattr(handlers.__class__, name) is not getattr(base, name, None)

    for name in answered:
        if hasattr(handlers.__class__, name) and is_overridden(name):
            raise UsageError(
                f"{kind} has a method `{name}`, but mcpgen handles this method itself; remove it from the class"
            )
    called = list(called)
    for name in called:
        if is_overridden(name):
            _check_handler(kind, name, getattr(handlers, name))
    members: dict[str, Any] = handlers.__class__.__dict__
    others = sorted(name for name in set(members) - set(dir(base)) if not name.startswith("_"))
    if not others or handlers.__class__.__module__.startswith("mcpgen.runtime."):  # whose names are not misspelt
        return
    from difflib import get_close_matches  # noqa: PLC0415 (few servers get here)

    for name in others:
        meant = get_close_matches(name, called, 1, 0.85)
        if meant:
            raise UsageError(
                f"{kind} has a method `{name}`, which mcpgen never calls; did you mean `{meant[0]}`? If only your own "
                f"code calls it, name it `_{name}`"
            )


def _check_handler(kind: str, name: str, handler: Any) -> None:
    """Refuse a handler that cannot be called.

    Raises:
        UsageError: It is not a coroutine function, or does not take params and a context.
    """
    if not inspect.iscoroutinefunction(handler):
        raise UsageError(f"{kind}.{name} is not a coroutine function; write `async def {name}`")
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        raise UsageError(
            f"{kind}.{name} does not take params and context; write `async def {name}(self, params, context)`"
        ) from None
