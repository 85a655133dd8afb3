"""Functions that answer a server, made into handlers of the newest revision that declare what they can do.

Spec:
    2026-07-28, client/roots, client/sampling, client/elicitation, "Capabilities" each.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypedDict

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import ClientHandlers, models

__all__ = ["Function", "HandlerFunctions", "handlers_from_functions"]

Function: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""Takes params and context, and returns a result; plain or async."""


class HandlerFunctions(TypedDict, total=False):
    """The options of ``connect`` that answer requests and notifications of a server.

    Each becomes the generated handler of the same name, unless `handlers_from_functions` says otherwise.
    """

    elicit: Function | None
    """Answers a form: ``(params, context) -> ElicitResult``."""
    elicit_url: Function | None
    """Sends the user to a page, if they agree: ``(params, context) -> ElicitResult``."""
    sample: Function | None
    """Returns a model's next message: ``(params, context) -> CreateMessageResult``."""
    roots: Sequence[models.Root] | Function | None
    """The roots, or a function that returns them: ``(context) -> [Root]``."""
    log: Function | None
    """Receives the server's log entries: ``(params, context)``."""


# The generated handlers that have another name than their option.
_HANDLER_NAMES = {"log": "logging_message", "sample": "create_message"}


def handlers_from_functions(functions: HandlerFunctions) -> tuple[ClientHandlers[Any], dict[str, object]]:
    """Return handlers that call *functions*, and the capabilities that do not follow from their methods.

    Raises:
        UsageError: An option is not a function, or cannot be called with its arguments.
    """
    members: dict[str, Any] = {}
    declared: dict[str, object] = {}
    given: dict[str, Any] = {name: each for name, each in functions.items() if each is not None}
    roots = given.pop("roots", None)
    for name, function in given.items():
        _check(name, function)
    if roots is not None:
        members["list_roots"] = _listing(roots)
        if callable(roots):
            declared["roots"] = {"listChanged": True}
    form, url = given.pop("elicit", None), given.pop("elicit_url", None)
    if form is not None or url is not None:
        members["elicit"] = _eliciting(form, url)
        declared["elicitation"] = {mode: {} for mode, each in (("form", form), ("url", url)) if each is not None}
    for name, function in given.items():
        members[_HANDLER_NAMES.get(name, name)] = _calling(function)
    return type("HandlerFunctions", (ClientHandlers,), members)(), declared


def _check(name: str, function: object) -> None:
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
