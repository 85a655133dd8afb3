"""Results of tools, and their values as types of the caller's choice.

Theory of operation. Servers of mcpgen and other SDKs send an object as it is, and wrap any other value as ``{"result":
…}``, because structured content had to be an object up to 2025-11-25. Revisions without structured content get its JSON
as text. `value_as` undoes this by the type that the caller wants, so that the value is the same in every revision.
"""

from __future__ import annotations

import typing
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import UNSET, ValidationError

from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.errors import McpgenError, UsageError, printable, quoted
from mcpgen.runtime.limits import MAX_VALUES
from mcpgen.runtime.protocol.hash_collisions import hash_check
from mcpgen.runtime.protocol.message_size import too_many_values
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.python_caches import cache_check
from mcpgen.runtime.protocol.value_costs import memory_check, type_costs
from mcpgen.runtime.protocol.value_types import (
    TooManyErrors,
    any_object,
    any_schema,
    pydantic_type,
    unknown_class_text,
    uses_pydantic,
    whole_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ToolFailed", "ToolResult", "UnexpectedResult", "as_tool_result", "check_type", "value_as"]

T = TypeVar("T")

_RESULT = "result"


class ToolResult(models.CallToolResult, frozen=True, kw_only=True):
    """The result of a tool: a ``CallToolResult`` of the newest revision, with shortcuts to its value and its text."""

    @property
    def data(self) -> Any:
        """The structured content; without it, the text."""
        return self.text if self.structured_content is UNSET else self.structured_content

    @property
    def text(self) -> str:
        """The text blocks of the content, joined by line breaks; empty if there are none."""
        return "\n".join(each.text for each in self.content if isinstance(each, models.TextContent))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same content; *other* may be a ``CallToolResult``."""
        if not isinstance(other, models.CallToolResult):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__)

    def __hash__(self) -> int:
        return super().__hash__()


class ToolFailed(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """A tool that was called with ``returns`` reported that it failed.

    Attributes:
        tool: The name of the tool; empty for a task of which the client knows only the id.
        result: Its result. The text describes the failure.
    """

    def __init__(self, tool: str, result: ToolResult) -> None:
        self.tool = tool
        self.result = result
        super().__init__(tool)

    def __str__(self) -> str:
        text = quoted(self.result.text)
        return f"{_named(self.tool)} failed" + (f": {text}" if text else " and gave no reason")


class UnexpectedResult(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The result of a tool is not of the type that the caller passed as ``returns``.

    Attributes:
        tool: The name of the tool; empty for a task of which the client knows only the id.
        expected: The type.
        reason: Why the result is not of the type.
        result: The result.
    """

    def __init__(self, tool: str, expected: Any, reason: str, result: ToolResult) -> None:
        self.tool = tool
        self.expected = expected
        self.reason = reason
        self.result = result
        super().__init__(tool, reason)

    def __str__(self) -> str:
        name = self.expected.__name__ if isinstance(self.expected, type) else str(self.expected)
        return (
            f"the result of {_named(self.tool)} is not of the type {name}: {printable(self.reason)}; change "
            "`returns`, or call the tool without it to see the result"
        )


def _named(tool: str) -> str:
    return f"the tool {tool[:100]!r}" if tool else "the task"


def as_tool_result(result: Any) -> Any:
    """Return *result* with the shortcuts, unless it is of an extension whose types the client does not know."""
    if isinstance(result, ToolResult) or not isinstance(result, msgspec.Struct):
        return result
    return ToolResult(**{name: getattr(result, name) for name in result.__struct_fields__})


def check_type(returns: Any) -> None:
    """Refuse a type that no value of JSON can be converted to, before a tool is called.

    Raises:
        UsageError: It is such a type.
    """
    _target(returns)


def value_as(tool: str, result: ToolResult, returns: type[T], *, max_values: int) -> T:
    """Return the value of a tool's result as the type *returns*.

    Args:
        tool: The name of the tool; empty if it is not known.
        result: The result.
        returns: The type.
        max_values: The most values of a text that is JSON. In the message, such a text counted as one value.

    Raises:
        ToolFailed: The tool failed.
        UnexpectedResult: The value is not of the type.
        UsageError: Values of the type cannot be read from JSON.
    """
    target = _target(cast("Any", returns))
    if not isinstance(cast("Any", result), ToolResult):
        raise UnexpectedResult(tool, returns, "it belongs to an extension whose types the client does not have", result)
    if result.is_error is True:
        raise ToolFailed(tool, result)
    try:
        if result.structured_content is not UNSET:
            return cast("T", target.read_structured(result.structured_content))
        return cast("T", target.read_text(result, max_values))
    except UnicodeEncodeError:
        reason = "a text has half of a surrogate pair"
    except (ValidationError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValidationError) else "it is nested too deeply"
    # Not in an `except`: the frames of that error have the text once more, and its values.
    raise UnexpectedResult(tool, returns, reason, result)


class _Target(NamedTuple):
    """A type that results are converted to.

    Attributes:
        checks: What a value of JSON, wrapped or not, has to pass before it is converted.
        convert: Converts a value of JSON.
        is_object: Whether each value of the type is an object in JSON, which servers do not wrap.
        is_text: Whether tools that return the type send it as text, without structured content.
        takes_none: Whether the type allows None.
    """

    checks: Sequence[Callable[[object], None]]
    convert: Callable[[object], Any]
    is_object: bool
    is_text: bool
    takes_none: bool

    def read(self, value: object) -> Any:
        for check in self.checks:
            check(value)
        return self.convert(value)

    def read_structured(self, content: object) -> Any:
        for check in self.checks:  # once, because each can take 0.1 s
            check(content)
        if not self.is_object and isinstance(content, dict) and content.keys() == {_RESULT}:
            members = cast("dict[str, object]", content)
            try:
                return self.convert(members[_RESULT])
            except ValidationError as wrapped:
                try:
                    return self.convert(members)
                except ValidationError:
                    raise wrapped from None
        return self.convert(cast("Any", content))

    def read_text(self, result: ToolResult, max_values: int) -> Any:
        if not result.content and self.takes_none:
            return None
        if not any(isinstance(each, models.TextContent) for each in result.content):
            raise ValidationError("it has neither structured content nor text")
        text = result.text
        if self.is_text:
            return self.read(text)
        data = text.encode()
        if too_many_values(data, max_values):
            if data.lstrip().startswith((b"[", b"{")):
                raise ValidationError(f"its text has more than {max_values} values (max_values)")
            return self.read(text)  # a table, for example
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return self.read(text)  # such as a date or a choice
        return self.read_structured(value)


def _target(returns: Any) -> _Target:
    try:
        return _cached_target(returns)
    except TypeError:  # a type whose metadata cannot be hashed
        return _make_target(returns)


def _make_target(returns: Any) -> _Target:
    kind = pydantic_type(returns, "`returns`") if uses_pydantic(returns) else returns
    try:
        msgspec.json.Decoder(kind, dec_hook=any_object)
        (schema,), definitions = msgspec.json.schema_components([kind], schema_hook=any_schema)
    except (TypeError, NotImplementedError, RecursionError) as error:  # the second one for a default of an attrs class
        reason, remedy = str(error).partition("\n")[0], ""
        if "custom types" in reason:
            reason, remedy = unknown_class_text(kind)
        remedy = remedy or "use a Struct, a dataclass, a TypedDict, a pydantic model, or a built-in type"
        raise UsageError(f"`returns` is {returns!r}, which cannot be read from JSON ({reason}); {remedy}") from error
    if "$ref" in schema:
        schema = {**definitions, **schema.get("$defs", {})}[schema["$ref"].rpartition("/")[2]]
    arms = _arms(returns)
    convert = partial(_read_value, partial(msgspec.convert, type=kind, str_keys=True, dec_hook=any_object))
    patterns = pattern_check(kind)
    found = (memory_check(type_costs(kind)), hash_check(kind, MAX_VALUES), cache_check(kind))
    return _Target(
        checks=[each for each in found if each is not None],
        convert=convert if patterns is None else partial(_read_checked, convert, patterns),
        is_object=schema.get("type") == "object",
        is_text=set(arms) <= {str, NoneType},
        takes_none=NoneType in arms,
    )


def _read_value(convert: Callable[[object], Any], value: object) -> Any:
    """Return *value* as the type; 5.0 as 5 only if the type has no 5.0, so that `object` and `float` keep it."""
    try:
        return convert(value)
    except ValidationError as error:
        if isinstance(error.__cause__, TooManyErrors):
            raise
        if b".0" not in msgspec.json.encode(value):  # this takes a tenth of the time of looking at each value
            raise
        whole = whole_numbers(value)
        if whole is value:  # it would fail again, and take as long
            raise
        try:
            return convert(whole)
        except ValidationError:
            raise error from None


def _read_checked(convert: Callable[[object], Any], check: Callable[[object], None], value: object) -> Any:
    check(value)
    return convert(value)


_cached_target = lru_cache(maxsize=256)(_make_target)


def _arms(kind: Any) -> tuple[Any, ...]:
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return tuple(arm for each in typing.get_args(kind) for arm in _arms(each))
    return (kind,)
