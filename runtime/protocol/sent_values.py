"""Check what types do not express in a value that is about to be sent.

Authors and callers give these texts: URIs, MIME types, base64, keys of ``_meta``, trace context. A value is checked
after it was decoded with the types of its revision, so every part has its type. Messages of peers are not checked here.

Spec:
    2026-07-28, basic/index, "_meta"; client/elicitation, "URL Mode Elicitation Requests"; client/sampling, "Tool Use
    and Result Balance"; server/prompts, "Image Content"; server/resources, "Custom URI Schemes".
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcpgen.runtime.protocol.value_syntax import (
    base64_fault,
    form_dialect_fault,
    meta_key_fault,
    mime_type_fault,
    page_url_fault,
    trace_context_fault,
    uri_fault,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SentValueFault", "sent_value_fault"]

Value: TypeAlias = Any
"""A part of a message: a Struct, or a list, dict or text inside of one."""

SentValueFault: TypeAlias = "tuple[tuple[str | int, ...], str]"
"""The path to an invalid part of a value, and why it is invalid."""

_Check: TypeAlias = "Callable[[Value], SentValueFault | None]"


def sent_value_fault(value: Value) -> SentValueFault | None:
    """Return the first fault in *value*, which its types allow."""
    for attribute, wire, check in _plans[type(value)]:
        member = getattr(value, attribute)
        if member is not UNSET:
            fault = check(member)
            if fault is not None:
                return (wire, *fault[0]), fault[1]
    return None


def _parts_fault(value: Value) -> SentValueFault | None:
    """Return the first fault in the Structs of which *value* consists."""
    if type(value) is list:
        items: list[Value] = cast("Any", value)
        for index, each in enumerate(items):
            fault = sent_value_fault(each)
            if fault is not None:
                return (index, *fault[0]), fault[1]
        return None
    if type(value) is dict:
        members: dict[str, Value] = cast("Any", value)
        for key, each in members.items():
            fault = sent_value_fault(each)
            if fault is not None:
                return (key, *fault[0]), fault[1]
        return None
    return sent_value_fault(value)


def _text(find: Callable[[str], str | None]) -> _Check:
    def check(value: Value) -> SentValueFault | None:
        reason = find(value)
        return None if reason is None else ((), reason)

    return check


def _meta_fault(meta: Value) -> SentValueFault | None:
    for key in meta:
        reason = meta_key_fault(key)
        if reason is not None:
            return (key,), reason
    found = trace_context_fault(meta)
    return None if found is None else ((found[0],), found[1])


def _form_fault(schema: Value) -> SentValueFault | None:
    reason = form_dialect_fault(schema)
    return None if reason is None else (("$schema",), reason)


def _embedded_fault(contents: Value) -> SentValueFault | None:
    reason = uri_fault(contents.uri)
    return (("uri",), reason) if reason is not None else sent_value_fault(contents)


def _prompt_fault(content: Value) -> SentValueFault | None:
    if type(content).__name__ == "EmbeddedResource" and content.resource.mime_type is UNSET:
        # The schema does not require it, but server/prompts, "Embedded Resources", does.
        return ("resource",), "an embedded resource of a prompt must have a MIME type, such as text/plain"
    return _parts_fault(content)


def _sampling_fault(messages: Value) -> SentValueFault | None:
    """Return why a conversation is not balanced: the next message has the results of all uses of tools, and no others.

    Spec:
        2025-11-25, client/sampling, "Tool Use and Result Balance", "Tool Result Messages"; 2026-07-28, the same.
    """
    uses: set[str] = set()
    for index, message in enumerate(messages):
        content = message.content
        blocks: list[Value] = cast("Any", content) if type(content) is list else [content]
        results = [each.tool_use_id for each in blocks if type(each).__name__ == "ToolResultContent"]
        if results and (message.role != "user" or len(results) != len(blocks)):
            return (index, "content"), "a message with tool results must be a user message without other content"
        if set(results) != uses or len(results) != len(uses):
            reason = (
                "this message must have one result, with the same id, for each use of a tool in the message before it, "
                "and no other results"
            )
            return (index, "content"), reason
        ids = [each.id for each in blocks if type(each).__name__ == "ToolUseContent"]
        uses = set(ids)
        if len(uses) != len(ids):
            return (index, "content"), "each use of a tool must have an id of its own"
        if uses and message.role != "assistant":
            return (index, "content"), "only messages of the assistant may use tools"
    if uses:
        return (len(messages) - 1, "content"), "a message with the results of these tools must follow"
    return _parts_fault(messages)


# By class and key; a key alone holds for every class. The classes of all revisions have the same names.
_RULES: Final[dict[tuple[str, str], _Check]] = {
    ("", "_meta"): _meta_fault,
    ("AudioContent", "data"): _text(base64_fault),
    ("AudioContent", "mimeType"): _text(mime_type_fault),
    ("BlobResourceContents", "blob"): _text(base64_fault),
    ("CreateMessageRequestParams", "messages"): _sampling_fault,
    ("ElicitRequestFormParams", "requestedSchema"): _form_fault,
    ("ElicitRequestURLParams", "url"): _text(page_url_fault),
    ("EmbeddedResource", "resource"): _embedded_fault,
    ("ImageContent", "data"): _text(base64_fault),
    ("ImageContent", "mimeType"): _text(mime_type_fault),
    ("PromptMessage", "content"): _prompt_fault,
    ("Resource", "mimeType"): _text(mime_type_fault),
    ("Resource", "uri"): _text(uri_fault),
    ("ResourceLink", "mimeType"): _text(mime_type_fault),
    ("ResourceLink", "uri"): _text(uri_fault),
    ("ResourceTemplate", "mimeType"): _text(mime_type_fault),
    ("TextResourceContents", "mimeType"): _text(mime_type_fault),
    ("BlobResourceContents", "mimeType"): _text(mime_type_fault),
}

_SCALARS: Final = (str, int, float, bool, type(None), UnsetType, Any, object)


class _Plans(dict[type, "tuple[tuple[str, str, _Check], ...]"]):
    """By type, its fields to check: the attribute, the key, and the check; made on first use."""

    def __missing__(self, kind: type) -> tuple[tuple[str, str, _Check], ...]:
        found: list[tuple[str, str, _Check]] = []
        if issubclass(kind, Struct):
            hints = typing.get_type_hints(kind, localns={}, include_extras=True)
            for attribute, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
                rule = _RULES.get((kind.__name__, wire)) or _RULES.get(("", wire))
                if rule is None and _may_hold_structs(hints[attribute]):
                    rule = _parts_fault
                if rule is not None:
                    found.append((attribute, wire, rule))
        self[kind] = made = tuple(found)
        return made


def _may_hold_structs(annotation: Value) -> bool:
    """Whether a value of *annotation* may be a Struct, or a list or dict of Structs."""
    origin: object = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        marks = [each for each in arguments[1:] if not isinstance(each, (msgspec.Meta, type))]
        return bool(marks) or _may_hold_structs(arguments[0])  # a mark of a structural union
    if origin is typing.Literal:
        return False
    if arguments:
        return any(map(_may_hold_structs, arguments))
    return annotation not in _SCALARS


_plans: Final = _Plans()
