"""Functions as tools: their definitions and calls.

A parameter may be repeated in an HTTP header: ``Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]``.
Clients silently drop a tool whose ``x-mcp-header`` breaks a rule, so registration checks the rules.

Spec: 2026-07-28, server/tools#x-mcp-header and
basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from decimal import Decimal
from functools import partial
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError
from msgspec.structs import asdict

from mcpgen.generated.registry import REVISIONS, Labels
from mcpgen.runtime.adapt.pattern_texts import has_decimals, pattern_check
from mcpgen.runtime.errors import (
    McpgenError,
    RequestError,
    RequestRefused,
    UnsupportedByPeer,
    UsageError,
    quoted,
)
from mcpgen.runtime.protocol.argument_checks import check_flags, check_icons
from mcpgen.runtime.protocol.exception_groups import forget_frames, sole_exception
from mcpgen.runtime.protocol.hash_collisions import hash_check
from mcpgen.runtime.protocol.json_costs import JsonCosts
from mcpgen.runtime.protocol.newest import ErrorCode, models
from mcpgen.runtime.protocol.param_headers import InvalidParamHeader, Rule, param_headers_of
from mcpgen.runtime.protocol.python_caches import cache_check
from mcpgen.runtime.protocol.value_costs import argument_costs, memory_check
from mcpgen.runtime.protocol.value_types import TooManyErrors, any_object, whole_numbers
from mcpgen.runtime.server.exchange import RequestEnded
from mcpgen.runtime.server.failure_log import log_failure
from mcpgen.runtime.server.functions.awaitables import exit_refused, is_async, may_wait
from mcpgen.runtime.server.functions.results import (
    NonconformingResult,
    ResultFormat,
    StructuredJson,
    UnsendableResult,
    encode_result,
    error_result,
    exception_text,
    result_format,
)
from mcpgen.runtime.server.functions.schemas import argument_type, input_schema
from mcpgen.runtime.server.functions.signatures import read_result, read_signature
from mcpgen.runtime.server.functions.unknown_keys import check_keys, closed, has_nested_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.server.functions.dependencies import Injector
    from mcpgen.runtime.server.functions.results import AnyResult
    from mcpgen.runtime.server.functions.schemas import UnknownKeys
    from mcpgen.runtime.server.functions.signatures import BaseContext

__all__ = ["BEFORE_TASKS", "FAILURE_MAP", "TaskMode", "TaskSupport", "Tool", "ToolError", "make_tool"]

_LOG = logging.getLogger("mcpgen.handlers")
_DECIMALS: Final = msgspec.json.Decoder(float_hook=Decimal)
_ALL_DIGITS: Final = msgspec.json.Encoder(decimal_format="number")

# The rule of 2025-11-25 (server/tools#tool-names); earlier revisions have none, so such names are valid in all of them.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

# From 2025-11-25 on, server/tools#error-handling lists input validation among the errors that a tool reports in its
# result; up to 2025-06-18, the same section lists invalid arguments among the protocol errors.
ARGUMENT_ERRORS_IN_RESULTS = Labels(
    each.label for each in dropwhile(lambda each: each.label != "2025-11-25", REVISIONS)
)

# 2025-11-25, changelog: tasks are new.
BEFORE_TASKS = Labels(each.label for each in takewhile(lambda each: each.label != "2025-11-25", REVISIONS))

TaskMode: TypeAlias = Literal["always", "deferred"] | bool
"""Whether a function runs as a task: ``True`` if the client can take a task, ``always``, or when it calls
`Context.defer` (``deferred``)."""

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
"""``execution.taskSupport`` of a tool in 2025-11-25."""


def _unchanged(error: Exception) -> Exception:
    return error


# What middleware makes of the exception of a tool. Its failure becomes a result before middleware could catch it.
FAILURE_MAP: ContextVar[Callable[[Exception], Exception]] = ContextVar("FAILURE_MAP", default=_unchanged)


class ToolError(McpgenError):
    """Raise this in a tool to tell the model what went wrong. The model gets the text as the result of the tool."""


class Tool(Struct, frozen=True):
    """A function that is registered as a tool.

    Attributes:
        definition: Its entry in ``tools/list``.
        label: The function's name in messages to its author.
        replay: Whether it may run again from its start when the client retries with answers to its requests.
        task: Whether it runs as a task.
        read: Decodes the JSON of arguments for the function. Raises ValidationError or RecursionError if they are
            invalid, or only `call` can read them.
        may_wait: Whether the function may wait.
        json_costs: What the largest values in the arguments take.
    """

    definition: models.Tool
    label: str
    replay: bool
    task: TaskMode
    read: Callable[[bytes | Raw], Struct]
    may_wait: bool
    json_costs: JsonCosts
    _arguments: type[Struct]
    _call: Callable[..., Awaitable[Any]]
    _context: tuple[str, ...]
    _format: ResultFormat
    _check: Callable[[object], None] | None

    @property
    def task_support(self) -> TaskSupport:
        """Whether a call of the tool may, must or must not be a task."""
        if self.task == "always":
            return "required"
        return "optional" if self.task else "forbidden"

    @property
    def takes_context(self) -> bool:
        """Whether the function takes a `Context`."""
        return bool(self._context)

    async def call(
        self, given: dict[str, object] | UnsetType, context: BaseContext
    ) -> models.CallToolResult | models.InputRequiredResult:
        """Run the function.

        Raises:
            RequestError: The arguments are invalid, and the peer's revision answers that with an error; or the
                function raised it.
        """
        try:
            arguments = self._decode({} if given is UNSET else given)
        except (ValidationError, RecursionError) as error:
            return self._invalid_arguments(error, context)
        except Exception as error:  # noqa: BLE001 (a class of the author may raise anything)
            failed = self._failed(error, context)
            forget_frames(error)
            return failed
        value = await self.run(arguments, context)
        result = self._format.to_result(value) if isinstance(value, str) else value
        return result.to_result() if isinstance(result, StructuredJson) else result

    async def run(self, arguments: Struct, context: BaseContext | None) -> str | AnyResult:
        """Call the function with the arguments that `read` returned; return text as it is, any other value as a result.

        *context* may be None if the function takes none.

        Raises:
            RequestError: The function raised it.
        """
        given = asdict(arguments)
        for name in self._context:
            given[name] = context
        try:
            value = await self._call(**given)
            is_text = type(value) is str and self._format.takes_text
            if is_text and not value.isascii():
                encode_result(value)  # text with half of a surrogate pair cannot be sent
            return value if is_text else self._format.to_result(value)
        except SystemExit as error:
            failure = exit_refused()
            failure.__cause__ = error
            result = self._failed(failure, context)
            forget_frames(failure)
            return result
        except Exception as error:  # noqa: BLE001 (where a tool's failure becomes its result)
            result = self._failed(error, context)
            forget_frames(error)
            return result

    def _decode(self, given: dict[str, object]) -> Struct:
        if self._check is not None:
            self._check(given)
        try:
            return msgspec.convert(given, self._arguments, str_keys=True, dec_hook=any_object)
        except ValidationError as error:
            whole = whole_numbers(given)
            if isinstance(error.__cause__, TooManyErrors) or whole is given:
                raise
            return msgspec.convert(whole, self._arguments, str_keys=True, dec_hook=any_object)

    def _invalid_arguments(self, error: Exception, context: BaseContext) -> models.CallToolResult:
        reason = "nested too deeply" if isinstance(error, RecursionError) else quoted(str(error))
        text = f"Invalid arguments for tool {self.definition.name}: {reason}"
        if context.peer.revision in ARGUMENT_ERRORS_IN_RESULTS:
            return error_result(text)
        raise RequestError(ErrorCode.INVALID_PARAMS, text)

    def _failed(self, error: Exception, context: BaseContext | None) -> models.CallToolResult:
        """Return the result of a function that raised *error*; raise it again if it answers the request itself."""
        error = FAILURE_MAP.get()(sole_exception(error))
        match error:
            case ToolError():
                return error_result(str(error) or f"The tool {self.definition.name} failed.")
            case RequestRefused() | UnsupportedByPeer(peer="server"):
                return error_result(f"The tool {self.definition.name} failed: {error}")
            case RequestError() | UnsupportedByPeer() | RequestEnded():
                raise error
            case NonconformingResult():
                _LOG.error("the result of %s is not of its annotated type: %s", self.label, error)
                what = "fit its output schema" if self.definition.output_schema else "have the type that it declares"
                text = f"The result of the tool {self.definition.name} does not {what}"
                reason = quoted(str(error))
            case UnsendableResult():
                _LOG.error("%s returned %s", self.label, error)
                text, reason = f"The tool {self.definition.name} failed", f"it returned {quoted(str(error))}"
            case _:
                log_failure(_LOG, error, "%s failed", self.label)
                text, reason = f"The tool {self.definition.name} failed", exception_text(error)
        return error_result(f"{text}: {reason}" if context is not None and context.debug else f"{text}.")


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
    task: TaskMode,
    structured: bool | None,
    injector: Injector,
    unknown_keys: UnknownKeys | None,
) -> Tool:
    """Make a tool of a function.

    Raises:
        UsageError: The function cannot be a tool, its name cannot be a tool's, or an ``x-mcp-header`` breaks a rule.
    """
    if task not in {False, True, "always", "deferred"}:
        raise UsageError(f"`task` is {task!r}; it must be True, False, 'always' or 'deferred'")
    check_icons(icons)
    check_flags(replay=replay, **({} if structured is None else {"structured": structured}))
    signature = read_signature(function)
    tool_name = signature.name if name is None else name
    if name is None and not tool_name:
        raise UsageError(f"{signature.label} has no `__name__`; set the name of the tool with `name=`")
    if not isinstance(cast("object", tool_name), str):
        raise UsageError(f"`name` of the tool {signature.label} must be a string, not {tool_name!r}")
    if not NAME.fullmatch(tool_name):
        raise UsageError(
            f"{tool_name!r} cannot be the name of the tool {signature.label}; set another with `name=`, of 1 to 128 "
            "ASCII letters, digits, '_', '-' and '.'"
        )
    arguments = argument_type(signature, unknown_keys)
    schema = input_schema(signature, arguments)
    refuses_nested = unknown_keys == "refuse" and has_nested_keys(schema)
    if refuses_nested:
        schema = closed(schema)
    try:
        param_headers_of(schema)
    except InvalidParamHeader as error:
        raise UsageError(_param_header_problem(error, signature.label)) from error
    results = result_format(read_result(function), signature.label, structured=structured)
    definition = models.Tool(
        name=tool_name,
        title=title or UNSET,
        description=(signature.description if description is None else description) or UNSET,
        input_schema=schema,
        output_schema=results.schema,
        annotations=annotations or UNSET,
        icons=list(icons) if icons else UNSET,
        meta=meta or UNSET,
    )
    call, context = injector.bind(function, signature)
    if is_async(function) and not signature.dependencies:
        call = function  # `run` does for it what `bind` would, without another coroutine
    read = msgspec.json.Decoder(arguments, dec_hook=any_object).decode
    keys = partial(check_keys, schema=schema) if refuses_nested else None
    costs = argument_costs(arguments)
    found = (memory_check(costs), hash_check(arguments), cache_check(arguments), pattern_check(arguments), keys)
    checks = [each for each in found if each is not None]
    check = partial(_check_all, checks) if checks else None
    if check is not None:
        is_exact = not has_decimals(arguments)
        read = partial(_convert_checked, arguments, check) if is_exact else partial(_read_checked, read, check)
    waits = bool(signature.dependencies) or may_wait(function)
    return Tool(definition, signature.label, replay, task, read, waits, costs, arguments, call, context, results, check)


def _read_checked(read: Callable[[bytes | Raw], Struct], check: Callable[[object], None], data: bytes | Raw) -> Struct:
    """Do the same as `_convert_checked` for a type with a `Decimal`, whose digits only JSON keeps."""
    check(msgspec.json.decode(data))
    return read(_ALL_DIGITS.encode(_DECIMALS.decode(data)))


def _convert_checked(arguments: type[Struct], check: Callable[[object], None], data: bytes | Raw) -> Struct:
    """Return the arguments in *data*, of which each was checked: JSON may name one twice, and only the last counts."""
    given = msgspec.json.decode(data)
    check(given)
    return msgspec.convert(given, arguments, str_keys=True, dec_hook=any_object)


def _check_all(checks: Sequence[Callable[[object], None]], value: object) -> None:
    for check in checks:
        check(value)


def _param_header_problem(error: InvalidParamHeader, label: str) -> str:
    what = f"`x-mcp-header` of parameter `{'.'.join(error.path or ())}` of {label}"
    match error.rule:
        case Rule.NAME:
            return f"{what} is {error.header!r}, which is not a header name; use letters, digits and hyphens"
        case Rule.TYPE:
            return f"{what} needs a parameter of the type str, int or bool; change the type, or remove the header"
        case Rule.UNIQUE:
            other = ".".join(error.other or ())
            return f"{what} is {error.header!r}, which parameter `{other}` uses already; change one of them"
        case Rule.PLACE:
            return f"{label} has an `x-mcp-header` inside of a parameter; move it to the parameter itself"
