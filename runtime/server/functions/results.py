"""Convert the return value of a tool to its result, and describe it by an output schema.

A value that is a JSON object becomes structured content as it is; any other is wrapped as ``{"result": …}``, because
structured content had to be an object up to 2025-11-25, and clients still rely on it. The result repeats the same JSON
as text, for clients without structured content.

Spec: 2026-07-28, server/tools#structured-content; 2025-11-25, server/tools#structured-content.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, ItemsView, Iterator, KeysView, Sequence, ValuesView
from types import UnionType
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct

from mcpgen.runtime.adapt.json_pointer import pointer_to
from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.errors import UsageError, quoted
from mcpgen.runtime.protocol.finite_numbers import nonfinite_number
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.protocol.value_types import any_object, dump_value, pydantic_type, uses_pydantic
from mcpgen.runtime.server.functions.media import Media
from mcpgen.runtime.server.functions.schemas import in_declared_order, schema_of
from mcpgen.runtime.server.functions.signatures import Annotation, arms, origin_of

__all__ = [
    "CONTENT_BLOCKS",
    "NonconformingResult",
    "ResultFormat",
    "StructuredJson",
    "UnsendableResult",
    "encode_result",
    "error_result",
    "exception_text",
    "list_items",
    "other_revision_text",
    "result_format",
]

CONTENT_BLOCKS = (
    models.TextContent,
    models.ImageContent,
    models.AudioContent,
    models.ResourceLink,
    models.EmbeddedResource,
)
BINDINGS = "mcpgen.generated.v"
NEWEST_BINDINGS = models.__name__.removesuffix(".models")
FULL_RESULTS = (models.CallToolResult, models.InputRequiredResult)
_encode = msgspec.json.Encoder(enc_hook=dump_value).encode
_read: Callable[[bytes], object] = msgspec.json.Decoder().decode


class StructuredJson(Struct, frozen=True):
    """A result with structured content, and the same JSON as text.

    Attributes:
        json: The structured content, an object. msgspec wrote it, and has checked it.
    """

    json: bytes

    def to_result(self) -> models.CallToolResult:
        """Return the result in the types of the protocol."""
        text = models.TextContent(text=self.json.decode())
        return models.CallToolResult(content=[text], structured_content=_read(self.json))


class ResultFormat(Struct, frozen=True):
    """How the return values of a tool become results.

    Attributes:
        schema: The schema of their structured content; UNSET if they have none.
        to_result: Converts a return value. Raises `UnsendableResult` and `NonconformingResult`.
        takes_text: Whether text needs no conversion and no check.
    """

    schema: dict[str, Any] | UnsetType
    to_result: ToResult
    takes_text: bool = False


AnyResult: TypeAlias = models.CallToolResult | models.InputRequiredResult | StructuredJson
ToResult: TypeAlias = Callable[[Any], AnyResult]


class NonconformingResult(Exception):  # noqa: N818 (a result, not an error of the protocol)
    """A function returned a value that is not of its annotated type."""


class UnsendableResult(Exception):  # noqa: N818 (a result, not an error of the protocol)
    """A function returned a value that cannot be sent, such as a coroutine or an object of an unknown class."""


def encode_result(value: object) -> bytes:
    """Return the JSON of a value that a function returned.

    Raises:
        UnsendableResult: It has none, or it is a message of another revision, which would arrive as mere text.
    """
    for each in (value, *(list_items(value) or ())[:1]):  # the first item shows what the list is for
        if fault := other_revision_text(each):
            raise UnsendableResult(fault)
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableResult(_why_unsendable(value, error)) from error
    if b"null" in encoded and (found := nonfinite_number(value)) is not None:
        place = f" at {pointer_to(found[1])}" if found[1] else ""
        raise UnsendableResult(
            f"{found[0]}{place}, which JSON cannot express; return a finite number, or None where that is allowed"
        )
    return encoded


def _why_unsendable(value: object, error: Exception) -> str:
    """Return why a value cannot be sent, and what to return instead; close it if it is a coroutine or generator."""
    kind = type(value).__name__
    if inspect.iscoroutine(value):
        value.close()  # otherwise Python warns that it was never awaited
        return "a coroutine; await it"
    if inspect.isawaitable(value):
        return f"an awaitable of the type {kind}; await it"
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return "a generator; return a list"
    if isinstance(value, (Iterator, KeysView, ValuesView, ItemsView)):
        return f"a value of the type {kind}, which is not a list; return a list"
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"a value of the type {kind} that cannot be written as JSON: {reason}"


def result_format(annotation: Annotation, label: str, *, structured: bool | None) -> ResultFormat:
    """Return how the return values of a function become results.

    Args:
        annotation: Its return annotation; `inspect.Signature.empty` if there is none.
        label: The function's name in error messages.
        structured: Whether results have structured content; None: unless the type is text or a content block.

    Raises:
        UsageError: A value of this type cannot be sent.
    """
    what = f"the result of {label}"
    if isinstance(annotation, list):
        shown = ", ".join(getattr(each, "__name__", str(each)) for each in cast("list[object]", annotation))
        raise UsageError(f"{what} has the type [{shown}]; write `list[{shown or 'object'}]`")
    annotation = _without_input_required(annotation)
    _refuse_bytes(annotation, what)
    _refuse_other_revisions(annotation, what)
    if annotation in (inspect.Signature.empty, Any, object) or _has_blocks(annotation):
        if structured and _has_blocks(annotation):
            raise UsageError(
                f"{what} has content blocks instead of a value, so it has no output schema; remove `structured=True`"
            )
        if structured:
            raise UsageError(f"{what} has no type for an output schema; annotate it, or remove `structured=True`")
        return _content(annotation)
    if not structured and (structured is False or set(arms(annotation)) <= {str, type(None)}):
        return _text(annotation, what)
    return _structured(annotation, what)


def _content(annotation: Annotation) -> ResultFormat:
    """Return how content blocks, and values of an unknown type, become results."""
    if annotation in (inspect.Signature.empty, Any, object):
        return ResultFormat(UNSET, text_result, takes_text=True)

    def to_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
        result = text_result(value)
        if not isinstance(value, FULL_RESULTS) and not _is_of(value, annotation):
            raise NonconformingResult(_mismatch(annotation, value))
        return result

    return ResultFormat(UNSET, to_result, takes_text=str in arms(annotation))


def _text(annotation: Annotation, what: str) -> ResultFormat:
    """Return how values of a type become text, without structured content."""
    if set(typing.get_args(annotation) or (annotation,)) <= {str, type(None), None}:
        return _content(annotation)
    try:
        check = _structured(annotation, what).to_result
    except UsageError:  # a type without a schema, which only structured content needs
        return ResultFormat(UNSET, text_result)

    def to_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
        check(value)
        return text_result(value)

    return ResultFormat(UNSET, to_result)


def _is_of(value: object, annotation: Annotation) -> bool:
    """Whether a value is of a type, as far as its classes and the items of lists show."""
    return any(_is_of_arm(value, each) for each in arms(annotation))


def _is_of_arm(value: object, arm: Annotation) -> bool:
    if origin_of(arm) in (list, tuple):
        items = list_items(value)
        kinds = [each for each in typing.get_args(arm) if each is not ...]
        return items is not None and all(any(_is_of(item, kind) for kind in kinds) for item in items)
    if arm is None:
        return value is None
    if arm is float:
        return isinstance(value, int | float)
    return not isinstance(arm, type) or isinstance(value, arm)  # others, such as dict[str, int], are not looked into


def _mismatch(annotation: Annotation, value: object) -> str:
    """Return why a value is not of a type, without the value."""
    expected = " | ".join(_name(each) if isinstance(each, type) else str(each) for each in arms(annotation))
    got = _name(type(value))
    if items := list_items(value):
        got += f" of {', '.join(sorted({_name(type(each)) for each in items}))}"
    return f"Expected `{expected}`, got `{got}`"


def _name(kind: type) -> str:
    return "None" if kind is type(None) else kind.__name__


def _other_revision(kind: object) -> str:
    """Return the package of a class that the bindings of another revision define; "" for anything else."""
    module = str(getattr(kind, "__module__", ""))
    return module.removesuffix(".models") if module.startswith(BINDINGS) and module != models.__name__ else ""


def other_revision_text(value: object) -> str:
    """Return what to do about a value whose class is of the bindings of another revision; "" for any other value."""
    package = _other_revision(type(value))
    if not package:
        return ""
    return (
        f"a {type(value).__name__} of {package}, but functions use the types of {NEWEST}; import it from "
        f"{NEWEST_BINDINGS}"
    )


def text_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
    """Return the result for a return value of a function without an output schema."""
    if isinstance(value, str):
        return models.CallToolResult(content=[models.TextContent(text=value)])
    if isinstance(value, FULL_RESULTS):
        return value
    if value is None:
        return models.CallToolResult(content=[])
    if isinstance(value, (*CONTENT_BLOCKS, Media)):
        return models.CallToolResult(content=[_block(value)])
    items = list_items(value) or ()
    if any(isinstance(each, (*CONTENT_BLOCKS, Media)) for each in items):
        return models.CallToolResult(content=[_block(each) for each in items])
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise UnsendableResult("bytes; return Image(data), Audio(data) or File(data)")
    return models.CallToolResult(content=[models.TextContent(text=encode_result(value).decode())])


def list_items(value: object) -> Sequence[object] | None:
    """Return *value* if it is a list or tuple; None otherwise."""
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else None


def error_result(text: str) -> models.CallToolResult:
    """Return the result of a tool that failed, with a message for the model."""
    return models.CallToolResult(content=[models.TextContent(text=text)], is_error=True)


def exception_text(error: BaseException) -> str:
    """Return the type and the message of an exception, for the clients of a server with ``debug=True``."""
    try:
        message = quoted(str(error))
    except Exception:  # noqa: BLE001 (a class of the author, whose message may be computed)
        message = "its message cannot be shown"
    name = type(error).__qualname__
    return f"{name}: {message}" if message else name


def _block(value: object) -> models.ContentBlock:
    if isinstance(value, str):
        return models.TextContent(text=value)
    if isinstance(value, Media):
        return value.to_block()
    if isinstance(value, CONTENT_BLOCKS):
        return value
    shown = f"a list of content blocks with a value of the type {type(value).__name__}"
    raise UnsendableResult(other_revision_text(value) or f"{shown}; make it a content block or a string")


def _without_input_required(annotation: Annotation) -> Annotation:
    """Return a result's type without `InputRequiredResult`, which has no structured content."""
    found = arms(annotation)
    if models.InputRequiredResult not in found:
        return annotation
    if origin_of(annotation) in (typing.Union, UnionType):  # its arms keep their constraints
        kept = (each for each in typing.get_args(annotation) if arms(each) != (models.InputRequiredResult,))
        found = tuple(_without_input_required(each) for each in kept)
    others = tuple(each for each in found if each is not models.InputRequiredResult)
    return typing.Union[others] if others else Any  # noqa: UP007 (of a tuple)


def _refuse_bytes(annotation: Annotation, what: str) -> None:
    for each in arms(annotation):
        if each in (bytes, bytearray, memoryview):
            raise UsageError(
                f"{what} has the type {_name(each)}, which a tool cannot return; return Image(data), Audio(data) or "
                "File(data) of mcpgen instead"
            )


def _refuse_other_revisions(annotation: Annotation, what: str) -> None:
    for arm in arms(annotation):
        for item in typing.get_args(arm):
            _refuse_other_revisions(item, what)
        if package := _other_revision(arm):
            name = getattr(arm, "__name__", "type")
            raise UsageError(
                f"{what} has the type {name} of {package}, but functions use the types of {NEWEST}; import it from "
                f"{NEWEST_BINDINGS} (it is adapted to the revision of each peer)"
            )


def _has_blocks(annotation: Annotation) -> bool:
    """Whether a type allows content blocks or full results."""
    for arm in arms(annotation):
        if origin_of(arm) in (list, tuple):
            if any(_has_blocks(each) for each in typing.get_args(arm)):
                return True
        elif isinstance(arm, type) and issubclass(arm, (*CONTENT_BLOCKS, *FULL_RESULTS, Media)):
            return True
    return False


def _structured(annotation: Annotation, what: str) -> ResultFormat:
    """Return how values of a type become structured content.

    Each is decoded again, since a Struct does not check its fields. A client may have sent its texts for patterns.
    """
    if uses_pydantic(annotation):
        return _structured_by_pydantic(annotation, what)
    schema = schema_of(annotation, what)
    wire: Any = annotation
    wrapped = schema.get("type") != "object"
    if wrapped:
        wire = defstruct("Result", [("result", annotation)])
        schema = {key: value for key, value in schema_of(wire, what).items() if key != "title"}
    check, check_patterns = msgspec.json.Decoder(wire, dec_hook=any_object).decode, pattern_check(wire)

    def to_result(value: object) -> AnyResult:
        if isinstance(value, FULL_RESULTS):
            return value
        try:
            data = _encode({"result": value} if wrapped else value)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnsendableResult(_why_unsendable(value, error)) from error
        if b"null" in data:
            encode_result(value)  # raises if one stands for nan
        try:
            if check_patterns is not None:
                check_patterns(_read(data))
            check(data)
        except msgspec.ValidationError as error:
            raise NonconformingResult(str(error)) from None
        found = StructuredJson(data)
        has_lines = data.find(b"\n") >= 0 or data.find(b"\r") >= 0  # of a `Raw` in the value, which msgspec copies
        return found.to_result() if has_lines else found

    return ResultFormat(schema, to_result)


def _structured_by_pydantic(annotation: Annotation, what: str) -> ResultFormat:
    """Return how values of a type with pydantic models become structured content: pydantic checks and writes them."""
    kind = pydantic_type(annotation, what)
    inner = in_declared_order(kind.schema("serialization"), annotation)
    definitions = inner.pop("$defs", {})
    if inner.keys() == {"$ref"}:
        inner = definitions[inner["$ref"].rpartition("/")[2]]
    wrapped = inner.get("type") != "object"
    schema = {"type": "object", "properties": {"result": inner}, "required": ["result"]} if wrapped else inner

    def to_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
        if isinstance(value, FULL_RESULTS):
            return value
        if inspect.isawaitable(value) or inspect.isgenerator(value):  # pydantic would read a generator as a list
            raise UnsendableResult(_why_unsendable(value, TypeError()))
        try:
            data = kind.dump(kind.check(value))
        except ValueError as error:
            raise NonconformingResult(str(error)) from None
        if wrapped:
            data = b'{"result":' + data + b"}"
        return StructuredJson(data).to_result()  # pydantic writes numbers in another way than msgspec

    return ResultFormat({**schema, "$defs": definitions} if definitions else schema, to_result)
