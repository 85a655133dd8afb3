"""Functions as completions: they suggest values for an argument of a prompt or a variable of a resource template."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import replace

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import MAX_COMPLETION_VALUES
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions.signatures import Annotation, arms, origin_of, read_signature

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.dependencies import Injector
    from mcpgen.runtime.server.functions.signatures import BaseContext

__all__ = ["Completion", "make_completion"]

# The parameters that a completion function may have, beside a `Context`: their types, as objects and as text.
_PARAMETERS: Final[dict[str, tuple[type, str]]] = {"value": (str, "str"), "arguments": (dict, "dict[str, str]")}


class Completion(Struct, frozen=True):
    """A function that is registered as a completion.

    Attributes:
        label: The function's name in messages to its author.
    """

    label: str
    _call: Callable[..., Awaitable[Any]]
    _takes: frozenset[str]
    _context: tuple[str, ...]

    async def complete(self, params: models.CompleteRequestParams, context: BaseContext) -> models.CompleteResult:
        """Run the function, and return its suggestions, at most `MAX_COMPLETION_VALUES`."""
        given: dict[str, Any] = {}
        if "value" in self._takes:
            given["value"] = params.argument.value
        if "arguments" in self._takes:
            chosen = UNSET if params.context is UNSET else params.context.arguments
            given["arguments"] = {} if chosen is UNSET else chosen
        for name in self._context:
            given[name] = context
        value = await self._call(**given)
        if isinstance(value, models.CompleteResult):
            return replace(value, completion=_truncated(value.completion))
        if not isinstance(value, models.CompleteResultCompletion):
            value = self._completion(value)
        return models.CompleteResult(completion=_truncated(value))

    def _completion(self, value: object) -> models.CompleteResultCompletion:
        suggested: object = [] if value is None else value
        if isinstance(suggested, str) or not isinstance(suggested, Iterable):
            raise TypeError(f"{self.label} returned {type(value).__name__}; return a list of strings")
        values = list(cast("Iterable[object]", suggested))
        texts = [each for each in values if isinstance(each, str)]
        if len(texts) < len(values):
            raise TypeError(f"{self.label} returned a list that holds other values than strings; return strings only")
        return models.CompleteResultCompletion(values=texts, total=len(texts), has_more=False)


def _truncated(completion: models.CompleteResultCompletion) -> models.CompleteResultCompletion:
    if len(completion.values) <= MAX_COMPLETION_VALUES:
        return completion
    total = len(completion.values) if completion.total is UNSET else completion.total
    return models.CompleteResultCompletion(values=completion.values[:MAX_COMPLETION_VALUES], total=total, has_more=True)


def make_completion(function: Callable[..., Any], injector: Injector) -> Completion:
    """Make a completion of a function.

    Raises:
        UsageError: It has another required parameter than ``value``, ``arguments`` and a `Context`, or one of the first
            two has a wrong type.
    """
    signature = read_signature(function)
    for each in signature.parameters:
        if each.name in _PARAMETERS:
            kind, text = _PARAMETERS[each.name]
            if not any(_is_base(arm, kind) for arm in arms(each.annotation)):
                raise UsageError(
                    f"parameter `{each.name}` of {signature.label} gets a {text}; write `{each.name}: {text}`"
                )
        elif each.default is NODEFAULT:
            raise UsageError(
                f"parameter `{each.name}` of {signature.label} gets no value; a completion takes `value: str`, "
                "`arguments: dict[str, str]` and a `Context`; rename the parameter, or give it a default"
            )
    takes = frozenset(each.name for each in signature.parameters) & frozenset(_PARAMETERS)
    call, context = injector.bind(function, signature)
    return Completion(signature.label, call, takes, context)


def _is_base(annotation: Annotation, kind: type) -> bool:
    """Return whether a value of *kind* may have the type *annotation*; also if only a type checker can tell."""
    found = origin_of(annotation) or annotation
    try:
        return not isinstance(found, type) or issubclass(kind, found)
    except TypeError:  # a TypedDict, or a protocol that exists for type checkers only
        return True
