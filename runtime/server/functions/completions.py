"""Functions as completions: what they suggest for an argument of a prompt or a variable of a resource template."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import replace

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions import invocation
from mcpgen.runtime.server.functions.signatures import read_signature

if TYPE_CHECKING:
    from mcpgen.runtime.server.context import Context

__all__ = ["MAX_VALUES", "Completion", "empty", "make_completion"]

# Spec: 2026-07-28, server/utilities/completion#completion-results; the same in every revision.
MAX_VALUES = 100

# What a function may ask for, by the names of its parameters.
OFFERED = ("value", "arguments")


class Completion(Struct, frozen=True):
    """A function that is registered as a completion.

    Attributes:
        label: What messages to its author call the function.
    """

    label: str
    _call: Callable[..., Awaitable[Any]]
    _takes: frozenset[str]
    _context: tuple[str, ...]

    async def complete(self, params: models.CompleteRequestParams, context: Context) -> models.CompleteResult:
        """Run the function, and return the first of what it suggests."""
        given: dict[str, Any] = {}
        if "value" in self._takes:
            given["value"] = params.argument.value
        if "arguments" in self._takes:
            settled = UNSET if params.context is UNSET else params.context.arguments
            given["arguments"] = {} if settled is UNSET else settled
        for name in self._context:
            given[name] = context
        value = await self._call(**given)
        if isinstance(value, models.CompleteResult):
            return replace(value, completion=_cut(value.completion))
        if not isinstance(value, models.CompleteResultCompletion):
            value = self._completion(value)
        return models.CompleteResult(completion=_cut(value))

    def _completion(self, value: object) -> models.CompleteResultCompletion:
        suggested: object = [] if value is None else value
        if isinstance(suggested, str) or not isinstance(suggested, Iterable):
            raise TypeError(f"{self.label} returned {type(value).__name__}; return a list of texts")
        values = list(cast("Iterable[object]", suggested))
        texts = [each for each in values if isinstance(each, str)]
        if len(texts) < len(values):
            raise TypeError(f"{self.label} returned a list of something else than texts")
        return models.CompleteResultCompletion(values=texts, total=len(texts), has_more=False)


def _cut(completion: models.CompleteResultCompletion) -> models.CompleteResultCompletion:
    if len(completion.values) <= MAX_VALUES:
        return completion
    total = len(completion.values) if completion.total is UNSET else completion.total
    return models.CompleteResultCompletion(values=completion.values[:MAX_VALUES], total=total, has_more=True)


def empty() -> models.CompleteResult:
    """Return the answer where nobody has anything to suggest."""
    return models.CompleteResult(completion=models.CompleteResultCompletion(values=[], total=0, has_more=False))


def make_completion(function: Callable[..., Any]) -> Completion:
    """Make a completion of a function.

    Raises:
        UsageError: It takes something else than ``value``, ``arguments`` and a Context.
    """
    signature = read_signature(function)
    for each in signature.parameters:
        if each.name not in OFFERED and each.default is NODEFAULT:
            raise UsageError(
                f"parameter {each.name!r} of {signature.label} gets nothing; a completion takes `value: str`, "
                "`arguments: dict[str, str]` and a Context, by these names"
            )
    takes = frozenset(each.name for each in signature.parameters) & frozenset(OFFERED)
    return Completion(signature.label, invocation.as_awaitable(function), takes, signature.context)
