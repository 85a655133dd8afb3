"""Functions as tools: what is listed of them, and how they are called."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError
from msgspec.structs import asdict

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.errors import (
    McpgenError,
    RequestError,
    RequestRefused,
    TransportClosed,
    UnsupportedByPeer,
    UsageError,
    quoted,
    sole_exception,
)
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions import invocation
from mcpgen.runtime.server.functions.headers import check_headers
from mcpgen.runtime.server.functions.results import NonconformingResult, ResultKind, error_result, result_kind
from mcpgen.runtime.server.functions.schemas import any_object, argument_type, input_schema
from mcpgen.runtime.server.functions.signatures import read_result, read_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.server.context import Context

__all__ = ["Tool", "ToolError", "make_tool"]

_LOG = logging.getLogger("mcpgen.handlers")

# The rule is of 2025-11-25 (server/tools#tool-names); earlier revisions set none, so names that keep it suit them all.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

# 2025-11-25, server/tools#error-handling counts input validation among the errors that a tool reports in its result;
# 2025-06-18 and before, same section, count invalid arguments among the protocol errors.
ARGUMENTS_ARE_THE_TOOLS_FROM = "2025-11-25"

# Up to here each integer is a double of its own (IEEE 754), so that 5.0 can only have meant 5.
MAX_EXACT_INTEGER = 2**53


def since(label: str) -> frozenset[str]:
    """Return the labels of the revisions from *label* on."""
    labels = [each.label for each in REVISIONS]
    return frozenset(labels[labels.index(label) :])


ARGUMENTS_ARE_THE_TOOLS = since(ARGUMENTS_ARE_THE_TOOLS_FROM)


class ToolError(McpgenError):
    """A tool failed in a way that the model should read about: raised by the tool, its text is the result."""


class Tool(Struct, frozen=True):
    """A function that is registered as a tool.

    Attributes:
        definition: What ``tools/list`` says of it.
        label: What messages to its author call the function.
        replay: Whether it may run again from its start when its caller comes back with answers to its questions.
    """

    definition: models.Tool
    label: str
    replay: bool
    _arguments: type[Struct]
    _call: Callable[..., Awaitable[Any]]
    _context: tuple[str, ...]
    _returned: ResultKind
    _read: Callable[[bytes | Raw], Struct]

    @property
    def takes_context(self) -> bool:
        """Whether the function takes a Context."""
        return bool(self._context)

    async def call(
        self, given: dict[str, object] | UnsetType, context: Context
    ) -> models.CallToolResult | models.InputRequiredResult:
        """Run the function.

        Raises:
            RequestError: The arguments are wrong, and the peer's revision has that as an error of the request; or the
                function raised it.
        """
        try:
            arguments = asdict(self._decode({} if given is UNSET else given))
        except (ValidationError, RecursionError) as error:
            return self._misfit(error, context)
        for name in self._context:
            arguments[name] = context
        try:
            return self._returned.to_result(await self._call(**arguments))
        except Exception as error:  # noqa: BLE001 (where a tool's failure becomes its result)
            return self._failed(error)

    def read(self, arguments: Raw | UnsetType) -> Struct | None:
        """Return *arguments* as the function takes them; None if they do not fit, or not at first sight."""
        try:
            return self._read(b"{}" if arguments is UNSET else arguments)
        except (ValidationError, RecursionError):
            return None

    async def run(
        self, arguments: Struct, context: Context
    ) -> str | models.CallToolResult | models.InputRequiredResult:
        """Call the function with what `read` returned; text comes back as it is, all else as a result.

        Raises:
            RequestError: The function raised it.
        """
        given = asdict(arguments)
        for name in self._context:
            given[name] = context
        try:
            value = await self._call(**given)
            is_text = type(value) is str and self._returned.schema is UNSET
            return value if is_text else self._returned.to_result(value)
        except Exception as error:  # noqa: BLE001 (where a tool's failure becomes its result)
            return self._failed(error)

    def _decode(self, given: dict[str, object]) -> Struct:
        try:
            return msgspec.convert(given, self._arguments, str_keys=True, dec_hook=any_object)
        except ValidationError:
            return msgspec.convert(whole_numbers(given), self._arguments, str_keys=True, dec_hook=any_object)

    def _misfit(self, error: Exception, context: Context) -> models.CallToolResult:
        reason = "nested too deeply" if isinstance(error, RecursionError) else quoted(str(error))
        text = f"Invalid arguments for tool {self.definition.name}: {reason}"
        if context.peer.revision in ARGUMENTS_ARE_THE_TOOLS:
            return error_result(text)
        raise RequestError(Code.INVALID_PARAMS, text)

    def _failed(self, error: Exception) -> models.CallToolResult:
        """Return the result of a function that raised; raise again what is an answer or the engine's to handle."""
        error = sole_exception(error)
        match error:
            case ToolError():
                return error_result(str(error))
            case RequestRefused():
                return error_result(f"The tool {self.definition.name} failed: {error}")
            case RequestError() | UnsupportedByPeer() | TransportClosed():
                raise error
            case NonconformingResult():
                _LOG.error("the result of %s is not of its type: %s", self.label, error.reason)
                return error_result(f"The tool {self.definition.name} broke its output schema: {error.text}")
            case _:
                _LOG.error("%s failed", self.label, exc_info=error)
                return error_result(f"The tool {self.definition.name} failed.")


def whole_numbers(value: object) -> object:
    """Return JSON with 5 for 5.0: JSON Schema counts both among the integers, msgspec only the first."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= MAX_EXACT_INTEGER else value
    if isinstance(value, dict):
        return {key: whole_numbers(each) for key, each in cast("dict[str, object]", value).items()}
    return list(map(whole_numbers, cast("list[object]", value))) if isinstance(value, list) else value


def make_tool(  # noqa: PLR0913 (one per member of a tool's definition)
    function: Callable[..., Any],
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    annotations: models.ToolAnnotations | None,
    icons: Sequence[models.Icon] | None,
    meta: dict[str, object] | None,
    replay: bool,
    structured: bool | None,
) -> Tool:
    """Make a tool of a function.

    Raises:
        UsageError: The function cannot be one, or its name must not be a tool's.
    """
    signature = read_signature(function)
    named = signature.name if name is None else name
    if not NAME.fullmatch(named):
        raise UsageError(
            f"{named!r} cannot be the name of the tool {signature.label}: 1 to 128 ASCII letters, digits, '_', '-' and "
            "'.' are allowed; give it another with name="
        )
    arguments = argument_type(signature)
    schema = input_schema(signature, arguments)
    check_headers(schema, signature.label)
    results = result_kind(read_result(function), signature.label, structured=structured)
    said = signature.description if description is None else description
    definition = models.Tool(
        name=named,
        title=title or UNSET,
        description=said or UNSET,
        input_schema=schema,
        output_schema=results.schema,
        annotations=annotations or UNSET,
        icons=list(icons) if icons else UNSET,
        meta=meta or UNSET,
    )
    call = invocation.as_awaitable(function)
    read = msgspec.json.Decoder(arguments, dec_hook=any_object).decode
    return Tool(definition, signature.label, replay, arguments, call, signature.context, results, read)
