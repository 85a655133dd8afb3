"""Descriptions of methods, and the interface through which the generated stubs send.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct, UnsetType

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NotificationMethod", "RequestMethod", "Sender", "Unhandled", "declared", "notifications", "requests"]

P = TypeVar("P")
R = TypeVar("R")


class RequestMethod(Struct, Generic[P, R], frozen=True, kw_only=True):
    """A method that has a response.

    Attributes:
        name: The method as it is written on the wire.
        params: The type of the parameters, for `models.decode`.
        params_required: Whether a request without parameters is invalid. If it is valid, absent parameters mean the
            same as empty ones.
        result: The type of the result, for `models.decode`.
    """

    name: str
    params: Any
    params_required: bool
    result: Any


class NotificationMethod(Struct, Generic[P], frozen=True, kw_only=True):
    """A method that has no response; the attributes are those of `RequestMethod`."""

    name: str
    params: Any
    params_required: bool


def requests(*methods: RequestMethod[Any, Any]) -> Mapping[str, RequestMethod[Any, Any]]:
    """Return a table of *methods* by name."""
    return MappingProxyType({each.name: each for each in methods})


def notifications(*methods: NotificationMethod[Any]) -> Mapping[str, NotificationMethod[Any]]:
    """Return a table of *methods* by name."""
    return MappingProxyType({each.name: each for each in methods})


class Sender(Protocol):
    """The interface that ``ClientMethods`` and ``ServerMethods`` send through; an engine implements it."""

    async def request(self, method: RequestMethod[P, R], params: P | UnsetType, /) -> R:
        """Send a request and return its result, decoded as ``method.result``."""
        ...

    async def notify(self, method: NotificationMethod[P], params: P | UnsetType, /) -> None:
        """Send a notification."""
        ...


class Unhandled(Exception):  # noqa: N818 (the name of a state, as the handlers raise it for every method)
    """A subclass does not override the handler of this request; answer it with the error "method not found"."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(method)


def declared(handlers: object, base: type, capabilities: Mapping[str, tuple[tuple[str, ...], object]]) -> Any:
    """Return the capabilities that follow from the methods which the class of *handlers* overrides.

    Args:
        handlers: An instance of a subclass of *base*.
        base: The generated handlers class.
        capabilities: For each method name, the path of its capability and the value to put there.
    """
    found: dict[str, Any] = {}
    for name, (path, value) in capabilities.items():
        if getattr(type(handlers), name) is not getattr(base, name):
            holder = found
            for key in path[:-1]:
                holder = holder.setdefault(key, {})
            holder.setdefault(path[-1], value.copy() if isinstance(value, dict) else value)
    return found
