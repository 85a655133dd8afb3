"""Handlers of the newest revision that are made of functions, and the capabilities that follow from them.

Spec:
    2026-07-28, client/roots, client/sampling, client/elicitation, "Capabilities" each.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, TypeAlias, TypedDict, cast

import msgspec
from msgspec import UnsetType

from mcpgen.runtime.client.answer_checks import check_root_uri
from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.argument_checks import check_parameters, function_name
from mcpgen.runtime.protocol.capabilities import has_capability
from mcpgen.runtime.protocol.newest import ClientHandlers, ErrorCode, models

__all__ = ["HandlerFunction", "HandlerFunctions", "Roots", "check_modes", "handlers_from_functions"]

HandlerFunction: TypeAlias = Callable[..., Awaitable[Any] | Any]
"""A plain or async function of params and context that returns a result."""

Roots: TypeAlias = Sequence[models.Root] | HandlerFunction
"""A list of roots, or a function of the context that returns such a list."""


class HandlerFunctions(TypedDict, total=False):
    """The options of ``connect`` that answer requests and notifications of a server.

    Each becomes the generated handler of the same name, unless `handlers_from_functions` says otherwise.
    """

    elicit: HandlerFunction | None
    """Answers form elicitation: ``(params, context) -> ElicitResult``."""
    elicit_url: HandlerFunction | None
    """Answers URL elicitation: ``(params, context) -> ElicitResult``."""
    sample: HandlerFunction | None
    """Answers sampling: ``(params, context) -> CreateMessageResult``."""
    roots: Roots | None
    """The roots, or a function that returns them: ``(context) -> [Root]``."""
    log: HandlerFunction | None
    """Takes log entries of the server: ``(params, context)``."""


# The generated handlers that have another name than their option.
_HANDLER_NAMES = {"log": "logging_message", "sample": "create_message"}

# The functions that answer elicitations, by mode.
_ELICITATION_MODES: Final = {"form": "elicit", "url": "elicit_url"}

# The results of the functions, with an article for errors.
_RESULTS: Final[dict[str, tuple[str, type]]] = {
    "elicit": ("an ElicitResult, such as ElicitResult(action='accept', content=…)", models.ElicitResult),
    "elicit_url": ("an ElicitResult", models.ElicitResult),
    "sample": ("a CreateMessageResult", models.CreateMessageResult),
}


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
        _check_function(name, function)
    if roots is not None:
        members["list_roots"] = _roots_handler(roots)
        if callable(roots):
            declared["roots"] = {"listChanged": True}
    form, url = (given.pop(each, None) for each in _ELICITATION_MODES.values())
    if form is not None or url is not None:
        members["elicit"] = _elicit_handler(form, url)
        declared["elicitation"] = {mode: {} for mode, each in (("form", form), ("url", url)) if each is not None}
    for name, function in given.items():
        members[_HANDLER_NAMES.get(name, name)] = _handler(name, function)
    return type("HandlerFunctions", (ClientHandlers,), members)(), declared


def check_modes(functions: Mapping[str, object], capabilities: Mapping[str, object]) -> None:
    """Check that each mode of elicitation that *capabilities* declares has a function.

    Raises:
        UsageError: It has none.

    Spec:
        2025-11-25 and 2026-07-28, client/elicitation, "Capabilities": a server sends requests of the declared modes.
    """
    for mode, name in _ELICITATION_MODES.items():
        if functions.get(name) is None and has_capability(capabilities, ("elicitation", mode)):
            raise UsageError(
                f"`capabilities` declares elicitation.{mode}, which needs a function; pass `{name}`, or do not declare "
                "the mode"
            )


def _check_function(name: str, function: object) -> None:
    if not callable(function):
        raise UsageError(f"`{name}` must be a function that takes params and a context, not {function!r}")
    check_parameters(name, function, "params and a context", 2)


def _handler(name: str, function: HandlerFunction) -> HandlerFunction:
    async def handle(self: object, params: Any, context: Any) -> Any:
        del self
        return _checked_result(name, function, await _await(function(params, context)))

    return handle


def _checked_result(name: str, function: HandlerFunction, result: Any) -> Any:
    """Return *result*, which *function* of the option *name* returned.

    Raises:
        UsageError: It cannot be the result, whatever it contains.
    """
    if name not in _RESULTS:
        return result
    expected, kind = _RESULTS[name]
    if isinstance(result, Mapping):
        members = cast("Mapping[str, object]", result)
        try:
            models.decode(msgspec.json.encode(members), kind)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            found = f"a {type(members).__name__} that is not a valid {kind.__name__}: {error}"
        else:
            return members
    elif isinstance(result, kind):
        try:
            models.decode(msgspec.json.encode(result), kind)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            found = f"an invalid {kind.__name__}: {error}"
        else:
            return result
    elif isinstance(result, msgspec.Raw) or is_dataclass(result):
        return result
    elif type(result).__name__ == kind.__name__:
        here, there = (each.__module__.rpartition(".")[0] for each in (kind, type(result)))
        found = f"the {kind.__name__} of {there}; import {kind.__name__} from {here}"
    else:
        found = "None" if result is None else f"a value of type {type(result).__name__}"
    raise UsageError(
        f"`{name}` must be a function that returns {expected}, but {function_name(function)} returned {found}"
    )


def _elicit_handler(form: HandlerFunction | None, url: HandlerFunction | None) -> HandlerFunction:
    async def elicit(self: object, params: Any, context: Any) -> Any:
        del self
        mode, name, function = ("url", "elicit_url", url) if params.mode == "url" else ("form", "elicit", form)
        if function is None:  # unreachable: the server's request was checked against the declared modes
            raise RequestError(ErrorCode.INVALID_PARAMS, f"this client has not declared the elicitation mode {mode}")
        result = _checked_result(name, function, await _await(function(params, context)))
        return _with_defaults(result, params.requested_schema) if mode == "form" else result

    return elicit


def _with_defaults(result: Any, schema: Mapping[str, Any]) -> Any:
    """Return a filled-in form with the defaults of the fields that the user left out.

    A mapping stays as it is: so a function can send exactly what its user has reviewed.

    Spec:
        2025-11-25, client/elicitation, "Requested Schema": all fields may have defaults, with which clients SHOULD
        pre-populate the form.
    """
    if not isinstance(result, models.ElicitResult) or result.action != "accept":
        return result
    given: Mapping[str, Any] = {} if isinstance(result.content, UnsetType) else result.content
    fields: Mapping[str, Any] = schema["properties"]
    defaults = {name: each["default"] for name, each in fields.items() if name not in given and "default" in each}
    return msgspec.structs.replace(result, content={**given, **defaults}) if defaults else result


def _roots_handler(roots: Roots) -> HandlerFunction:
    if callable(roots):
        check_parameters("roots", roots, "a context", 1)

        async def call(self: object, params: object, context: Any) -> models.ListRootsResult:
            del self, params
            found: Any = await _await(roots(context))
            kind = type(found).__name__
            if isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
                raise UsageError(
                    f"`roots` must be a function that returns a list of Root, but {function_name(roots)} returned a "
                    f"value of type {kind}"
                )
            listed: list[Any] = [*found]
            _check_roots(listed, f"a function that returns one, but {function_name(roots)} returned {listed!r}")
            return models.ListRootsResult(roots=listed)

        return call
    given: Any = roots
    fixed: list[Any] = (
        list(roots) if isinstance(given, Iterable) else [given]
    )  # `_check_roots` refuses what is not a list
    _check_roots(fixed, f"a function, not {roots!r}")

    async def list_roots(self: object, params: object, context: object) -> models.ListRootsResult:
        del self, params, context
        return models.ListRootsResult(roots=fixed)

    return list_roots


def _check_roots(found: Sequence[object], alternative: str) -> None:
    for each in found:
        if not isinstance(each, models.Root):
            if type(each).__name__ == models.Root.__name__:
                here, there = (kind.__module__.rpartition(".")[0] for kind in (models.Root, type(each)))
                raise UsageError(f"`roots` has a Root of {there}; import Root from {here}")
            raise UsageError(
                f"`roots` must be a list of Root, such as [Root(uri='file:///home')], or {alternative}; "
                f"Root is in {models.__name__.rpartition('.')[0]}"
            )
        check_root_uri(each.uri)


async def _await(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome
