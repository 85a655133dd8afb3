"""The extensions that this process knows, and routes for their messages.

Theory of operation. The messages of an extension are those of its package in every revision, so between revisions of
one era they pass unchanged. The metadata of requests differs between the eras, and so the messages of an extension are
not adapted from one era to the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcpgen.generated import registry
from mcpgen.runtime.adapt import routes
from mcpgen.runtime.adapt.pattern_texts import package_decoder
from mcpgen.runtime.adapt.payloads import Payload, decoder_of
from mcpgen.runtime.errors import AdaptationError, UnknownMethod, UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.adapt.payloads import Part, Sender
    from mcpgen.runtime.adapt.routes import Route

__all__ = ["extension_message", "known_extensions", "register_extension", "route"]

Package: TypeAlias = Any
"""A package that `mcpgen build --extension` wrote."""

# Of the official extensions, those that have messages between MCP clients and servers.
_OFFICIAL: Final = ("mcpgen.generated.extensions.tasks",)

_known: dict[str, ModuleType] = {}


def register_extension(package: ModuleType) -> str:
    """Make the extension of *package* known to this process, and return its identifier.

    Another package of the same extension is replaced.

    Raises:
        UsageError: It is not the package of an extension.
    """
    identifier = getattr(package, "EXTENSION", None)
    if not isinstance(identifier, str):
        raise UsageError(
            f"the package {package.__name__} is not that of an extension; name one that `mcpgen build --extension` "
            "wrote"
        )
    _known[identifier] = package
    return identifier


def known_extensions() -> list[ModuleType]:
    """Return the packages of the known extensions, with the official ones."""
    official = [import_module(each) for each in _OFFICIAL]
    found = {str(each.EXTENSION): each for each in official} | _known
    return list(found.values())


def route(source: str, target: str, method: str, part: Part, *, sender: Sender | None = None) -> Route:
    """Return the route of *part* of *method* from the revision *source* to *target*; it is cached.

    A message of a known extension passes unchanged between the revisions of one era.

    Args:
        source: The revision of the values.
        target: The revision that they are adapted to.
        method: The method in *source*; for a result or an error, that of the request.
        part: ``params``, ``result`` and ``error`` belong to a request, ``notification`` to a notification.
        sender: The side that sends the request or the notification. None: either.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UnknownMethod: Neither the source nor a known extension has such a method.
        UsageError: The part or the sender is not one of the allowed names.
        AdaptationError: The target, or a revision on the way, has no such method from that sender.
    """
    try:
        return routes.route(source, target, method, part, sender=sender)
    except UnknownMethod:
        for package in known_extensions():
            payload = extension_message(package, method, part, sender)
            if payload is not None:
                return _extension_route(package, payload, (source, target, method, part))
        raise


def extension_message(package: Package, method: str, part: Part, sender: Sender | None) -> Payload | None:
    """Return the types of *part* of *method* in the *package* of an extension; None if it has no such message."""
    methods = getattr(package, "methods", None)
    kind = "NOTIFICATIONS" if part == "notification" else "REQUESTS"
    sides = ("CLIENT", "SERVER") if sender is None else (sender.upper(),)
    found = [getattr(methods, f"{side}_{kind}", {}).get(method) for side in sides]
    constants = [each for each in found if each is not None]
    if not constants:
        return None
    named = "params" if part == "notification" else part
    what = f"the {named} of {method} (of {package.EXTENSION}, an extension of {package.BASE})"
    if part == "error":
        error: Any = registry.revision(package.BASE).bindings()
        return Payload(package.BASE, what, (error.Error,), (decoder_of(package.BASE)(error.Error),), "data")
    annotation = constants[0].result if part == "result" else constants[0].params
    return Payload(package.BASE, what, (annotation,), (package_decoder(package)(annotation),), "_meta")


def _extension_route(package: Package, payload: Payload, at: tuple[str, str, str, Part]) -> Route:
    source, target, method, part = at
    if registry.revision(source).era != registry.revision(target).era:
        reason = (
            f"{method} belongs to the extension {package.EXTENSION}, which extends {package.BASE}; mcpgen does not "
            "adapt its messages between handshake revisions and stateless revisions"
        )
        raise AdaptationError(step=f"{source} to {target}", pointer="", reason=reason, service=None)
    return routes.Route(
        source=source,
        target=target,
        method=method,
        part=part,
        payload=payload,
        steps=(),
        reverse=lambda: _extension_route(package, payload, (target, source, method, part)),
    )
