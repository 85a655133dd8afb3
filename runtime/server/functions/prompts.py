"""Functions as prompts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, ValidationError

from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.errors import RequestError, UsageError, quoted
from mcpgen.runtime.protocol.argument_checks import check_icons
from mcpgen.runtime.protocol.newest import ErrorCode, models
from mcpgen.runtime.server.functions.media import Media
from mcpgen.runtime.server.functions.results import CONTENT_BLOCKS, list_items, other_revision_text
from mcpgen.runtime.server.functions.schemas import argument_type, input_schema
from mcpgen.runtime.server.functions.signatures import read_signature
from mcpgen.runtime.server.functions.text_arguments import check_textual, converted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.server.functions.dependencies import Injector
    from mcpgen.runtime.server.functions.signatures import BaseContext

__all__ = ["Prompt", "PromptError", "make_prompt"]

FULL_RESULTS = (models.GetPromptResult, models.InputRequiredResult)

# As annotations, resolved or as text. Others are judged when they are called: a name may exist for type checkers only.
_NO_MESSAGES: Final = (int, float, bool, bytes, "int", "float", "bool", "bytes")
_MESSAGES: Final = "return a string, a content block or a PromptMessage, or a list of them"


class PromptError(RequestError):
    """Raise this in a prompt to tell the client why there are no messages. The client gets the text as an error.

    Spec: 2026-07-28, server/prompts#error-handling. The code is that of internal errors, -32603.
    """

    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.INTERNAL_ERROR, text)


_WRONG_TYPE: Final = re.compile(r"Expected `(\w+)`, got `str` - at `\$\.(\w+)`")
_KINDS: Final = {"int": "an integer", "float": "a number", "bool": "true or false"}


class Prompt(Struct, frozen=True):
    """A function that is registered as a prompt.

    Attributes:
        definition: Its entry in ``prompts/list``.
        label: The function's name in messages to its author.
        replay: Whether it may run again from its start when the client retries with answers to its requests.
    """

    definition: models.Prompt
    label: str
    replay: bool
    _arguments: type[Struct]
    _call: Callable[..., Awaitable[Any]]
    _context: tuple[str, ...]
    _check: Callable[[object], None] | None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(self._arguments.__struct_fields__)

    async def get(
        self, given: dict[str, str] | UnsetType, context: BaseContext
    ) -> models.GetPromptResult | models.InputRequiredResult:
        """Run the function.

        Raises:
            RequestError: An argument is missing, unknown or of the wrong type. Spec: 2026-07-28,
                server/prompts#error-handling.
        """
        values = {} if given is UNSET else given
        try:
            if self._check is not None:
                self._check(values)
            arguments = converted(values, self._arguments)
        except ValidationError as error:
            text = f"Invalid arguments for prompt {self.definition.name}: {_explained(str(error), values)}"
            raise RequestError(ErrorCode.INVALID_PARAMS, text) from None
        for name in self._context:
            arguments[name] = context
        value: object = await self._call(**arguments)
        if isinstance(value, FULL_RESULTS):
            return value
        items = list_items(value)
        messages = list(map(self._message, (value,) if items is None else items))
        return models.GetPromptResult(messages=messages, description=self.definition.description)

    def _message(self, value: object) -> models.PromptMessage:
        if isinstance(value, models.PromptMessage):
            return value
        if isinstance(value, str):
            return models.PromptMessage(role="user", content=models.TextContent(text=value))
        if isinstance(value, Media):
            return models.PromptMessage(role="user", content=value.to_block())
        if isinstance(value, CONTENT_BLOCKS):
            return models.PromptMessage(role="user", content=value)
        if inspect.iscoroutine(value):
            value.close()  # otherwise Python warns that it was never awaited
        if fault := other_revision_text(value):
            raise TypeError(f"{self.label} returned {fault}")
        raise TypeError(f"{self.label} returned a value of the type {type(value).__name__}; {_MESSAGES}")


def make_prompt(  # noqa: PLR0913 (one per member of a prompt's definition)
    function: Callable[..., Any],
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    icons: Sequence[models.Icon] | None,
    meta: dict[str, object] | None,
    replay: bool,
    injector: Injector,
) -> Prompt:
    """Make a prompt of a function.

    Raises:
        UsageError: The function cannot be a prompt.
    """
    check_icons(icons)
    signature = read_signature(function)
    prompt_name = signature.name if name is None else name
    if not prompt_name:
        raise UsageError(f"the prompt {signature.label} has no name; set it with `name=`")
    for each in signature.parameters:  # first: most types that `argument_type` advises cannot be read from text
        check_textual(each, f"parameter `{each.name}` of {signature.label}")
    type_ = argument_type(signature)
    properties: dict[str, dict[str, Any]] = input_schema(signature, type_)["properties"]
    arguments = [
        models.PromptArgument(
            name=each.name,
            title=properties[each.name].get("title", UNSET),
            description=properties[each.name].get("description", UNSET),
            required=each.default is NODEFAULT,
        )
        for each in signature.parameters
    ]
    definition = models.Prompt(
        name=prompt_name,
        title=title or UNSET,
        description=(signature.description if description is None else description) or UNSET,
        arguments=arguments or UNSET,
        icons=list(icons) if icons else UNSET,
        meta=meta or UNSET,
    )
    call, context = injector.bind(function, signature)
    result: object = inspect.signature(function).return_annotation
    if result in _NO_MESSAGES:
        raise UsageError(f"the prompt {signature.label} returns {getattr(result, '__name__', result)}; {_MESSAGES}")
    return Prompt(definition, signature.label, replay, type_, call, context, pattern_check(type_))


def _explained(error: str, values: dict[str, str]) -> str:
    """Return the text of a validation error. Arguments always arrive as text, so "got `str`" would mislead."""
    found = _WRONG_TYPE.fullmatch(error)
    if found is None or found[1] not in _KINDS or found[2] not in values:
        return quoted(error)
    return f"`{found[2]}` must be {_KINDS[found[1]]}, not {quoted(repr(values[found[2]]))}"
