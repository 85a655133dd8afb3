"""What a tool returned, as the result that its caller gets, and the schema of it.

A type that is an object in JSON becomes structured content as it is; any other is wrapped, ``{"result": …}``, because
structured content was an object up to 2025-11-25 and clients of that time still count on it. The same JSON is there as
text, for clients that know no structured content.

Spec: 2026-07-28, server/tools#structured-content; 2025-11-25, server/tools#structured-content.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.server.functions.schemas import any_object, schema_of
from mcpgen.runtime.server.functions.signatures import Annotation, arms, bare, origin_of

__all__ = ["BLOCKS", "NonconformingResult", "ResultKind", "error_result", "list_items", "result_kind"]

BLOCKS = (
    models.TextContent,
    models.ImageContent,
    models.AudioContent,
    models.ResourceLink,
    models.EmbeddedResource,
)
BINDINGS = "mcpgen.generated.v"
FINISHED = (models.CallToolResult, models.InputRequiredResult)
ToResult = Callable[[Any], models.CallToolResult | models.InputRequiredResult]


class ResultKind(Struct, frozen=True):
    """How a tool's results are sent.

    Attributes:
        schema: The schema of their structured content; UNSET if they have none.
        to_result: Makes the result of what the function returned. Raises TypeError for what cannot be sent, and
            `NonconformingResult`.
    """

    schema: dict[str, Any] | UnsetType
    to_result: ToResult


class NonconformingResult(Exception):  # noqa: N818 (a result, not an error of the protocol)
    """What a function returned is not what it is annotated with, so that the schema of it would be a lie.

    Attributes:
        text: It, as JSON.
        reason: What is wrong with it.
    """

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        super().__init__(reason)


def result_kind(annotation: Annotation, label: str, *, structured: bool | None) -> ResultKind:
    """Return how the results of a function are sent.

    Args:
        annotation: What it is annotated to return; `inspect.Signature.empty` if it is not.
        label: What messages call the function.
        structured: Whether there is structured content; None: where the type makes something of it, that is, where it
            is no text and no content block.

    Raises:
        UsageError: The function returns what cannot be sent.
    """
    what = f"the result of {label}"
    annotation = _final(annotation)
    _refuse_bytes(annotation, what)
    _refuse_other_revisions(annotation, what)
    says_nothing = annotation in (inspect.Signature.empty, Any, object)
    if says_nothing or _has_blocks(annotation):
        if structured:
            raise UsageError(f"{what} has no type that a schema could be made of; annotate it, or leave structured out")
        return ResultKind(UNSET, text_result)
    if not structured and (structured is False or set(arms(annotation)) <= {str, type(None)}):
        return ResultKind(UNSET, text_result)
    return _structured(annotation, what)


def text_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
    """Return the result of what a function without an output schema returned."""
    if isinstance(value, str):
        return models.CallToolResult(content=[models.TextContent(text=value)])
    if isinstance(value, FINISHED):
        return value
    if value is None:
        return models.CallToolResult(content=[])
    if isinstance(value, BLOCKS):
        return models.CallToolResult(content=[value])
    items = list_items(value) or ()
    if any(isinstance(each, BLOCKS) for each in items):
        return models.CallToolResult(content=[_block(each) for each in items])
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("bytes are no result; return ImageContent, AudioContent or EmbeddedResource")
    return models.CallToolResult(content=[models.TextContent(text=msgspec.json.encode(value).decode())])


def list_items(value: object) -> Sequence[object] | None:
    """Return what a list or tuple holds; None for what is neither."""
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else None


def error_result(text: str) -> models.CallToolResult:
    """Return the result of a tool that failed, for the model to read."""
    return models.CallToolResult(content=[models.TextContent(text=text)], is_error=True)


def _block(value: object) -> models.ContentBlock:
    if isinstance(value, str):
        return models.TextContent(text=value)
    if isinstance(value, BLOCKS):
        return value
    raise TypeError(f"a {type(value).__name__} stands among content blocks; make it one, or text")


def _final(annotation: Annotation) -> Annotation:
    """Return a result's type without `InputRequiredResult`, which is an answer but not the tool's result."""
    found = arms(annotation)
    if models.InputRequiredResult not in found:
        return annotation
    others = tuple(each for each in found if each is not models.InputRequiredResult)
    return typing.Union[others] if others else Any  # noqa: UP007 (of a tuple)


def _refuse_bytes(annotation: Annotation, what: str) -> None:
    if any(each in (bytes, bytearray, memoryview) for each in arms(annotation)):
        raise UsageError(
            f"{what} is bytes, which a tool cannot return; return ImageContent or AudioContent with the bytes in "
            "base64, or EmbeddedResource with BlobResourceContents"
        )


def _refuse_other_revisions(annotation: Annotation, what: str) -> None:
    for arm in arms(annotation):
        for item in typing.get_args(arm):
            _refuse_other_revisions(item, what)
        module = str(getattr(arm, "__module__", ""))
        if module.startswith(BINDINGS) and module != models.__name__:
            raise UsageError(
                f"{what} is of {module}, but functions are written in terms of {NEWEST}: import it from "
                f"{models.__name__}, and peers of all revisions get it as theirs has it"
            )


def _has_blocks(annotation: Annotation) -> bool:
    """Whether content blocks, or whole results, are among what a type allows."""
    for arm in arms(annotation):
        if origin_of(arm) in (list, tuple):
            if any(_has_blocks(each) for each in typing.get_args(arm)):
                return True
        elif isinstance(arm, type) and issubclass(arm, (*BLOCKS, *FINISHED)):
            return True
    return False


def _structured(annotation: Annotation, what: str) -> ResultKind:
    """Return how values of a type are sent as structured content.

    What is sent is read back as that type: a Struct may hold anything, but the result must be as its schema says.
    """
    schema = schema_of(annotation, what)
    wire: Any = bare(annotation)
    wrapped = schema.get("type") != "object"
    if wrapped:
        wire = defstruct("Result", [("result", annotation)])
        schema = {key: value for key, value in schema_of(wire, what).items() if key != "title"}
    encode = msgspec.json.Encoder().encode
    read: Callable[[bytes], object] = msgspec.json.Decoder().decode
    check = msgspec.json.Decoder(wire, dec_hook=any_object).decode

    def to_result(value: object) -> models.CallToolResult | models.InputRequiredResult:
        if isinstance(value, FINISHED):
            return value
        data = encode({"result": value} if wrapped else value)
        try:
            check(data)
        except msgspec.ValidationError as error:
            raise NonconformingResult(data.decode(), str(error)) from None
        return models.CallToolResult(content=[models.TextContent(text=data.decode())], structured_content=read(data))

    return ResultKind(schema, to_result)
