"""Functions that answer a server, made into handlers of the newest revision that declare what they can do.

Spec:
    2026-07-28, client/roots, client/sampling, client/elicitation, "Capabilities" each.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import ClientHandlers, models

__all__ = ["Function", "HandlerFunctions", "handlers_from_functions"]

Function: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""Takes params and context, and returns a result; plain or async."""


class HandlerFunctions(Struct, frozen=True, kw_only=True):
    """What answers a server; None for what is not answered.

    Attributes:
        elicit: Fills in a form, or has a user do it.
        elicit_url: Has a user visit a page.
        sample: Has a model go on with a conversation.
        roots: The roots, or what returns them, given the context.
        log: Takes entries of the server's log.
    """

    elicit: Function | None = None
    elicit_url: Function | None = None
    sample: Function | None = None
    roots: Sequence[models.Root] | Function | None = None
    log: Function | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return self == HandlerFunctions()


def handlers_from_functions(functions: HandlerFunctions) -> tuple[ClientHandlers[Any], dict[str, object]]:
    """Return handlers that call *functions*, and what is to be declared beyond what their methods show.

    Raises:
        UsageError: One is no function.
    """
    members: dict[str, Any] = {}
    declared: dict[str, object] = {}
    modes = {"form": functions.elicit, "url": functions.elicit_url}
    for name in ("elicit", "elicit_url", "sample", "log"):
        _check(name, getattr(functions, name))
    if functions.elicit is not None or functions.elicit_url is not None:
        members["elicit"] = _eliciting(functions.elicit, functions.elicit_url)
        declared["elicitation"] = {mode: {} for mode, each in modes.items() if each is not None}
    if functions.sample is not None:
        members["create_message"] = _calling(functions.sample)
    if functions.log is not None:
        members["logging_message"] = _calling(functions.log)
    if functions.roots is not None:
        members["list_roots"] = _listing(functions.roots)
        if callable(functions.roots):
            declared["roots"] = {"listChanged": True}
    return type("HandlerFunctions", (ClientHandlers,), members)(), declared


def _check(name: str, function: object) -> None:
    if function is None:
        return
    if not callable(function):
        raise UsageError(f"{name} is a function that takes params and a context, not {function!r}")
    _check_arguments(name, function, "params and a context", 2)


def _check_arguments(name: str, function: Function, takes: str, count: int) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some that are written in C have none
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise UsageError(f"{name} is called with {takes}, but {function!r} takes {signature}") from None


def _calling(function: Function) -> Function:
    async def call(self: object, params: Any, context: Any) -> Any:
        del self
        return await _result(function(params, context))

    return call


def _eliciting(form: Function | None, url: Function | None) -> Function:
    async def elicit(self: object, params: Any, context: Any) -> Any:
        del self
        function = url if isinstance(params, models.ElicitRequestURLParams) else form
        if function is None:  # cannot be: it was not declared
            raise RequestError(Code.INVALID_PARAMS, "this mode of elicitation was not declared")
        return await _result(function(params, context))

    return elicit


def _listing(roots: Sequence[models.Root] | Function) -> Function:
    if callable(roots):
        _check_arguments("roots", roots, "a context", 1)

        async def call(self: object, params: object, context: Any) -> models.ListRootsResult:
            del self, params
            found = list(await _result(roots(context)))
            _check_roots(found, found)
            return models.ListRootsResult(roots=found)

        return call
    fixed = _several(roots)
    _check_roots(fixed, roots)

    async def list_roots(self: object, params: object, context: object) -> models.ListRootsResult:
        del self, params, context
        return models.ListRootsResult(roots=fixed)

    return list_roots


def _check_roots(found: Sequence[object], given: object) -> None:
    if not all(isinstance(each, models.Root) for each in found):
        raise UsageError(f"roots are a list of Root, such as Root(uri='file:///home'), or a function, not {given!r}")


def _several(roots: Any) -> list[Any]:
    try:
        return list(roots)
    except TypeError:  # not even several things; what it is instead is found when it is checked
        return [roots]


async def _result(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome
