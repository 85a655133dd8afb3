"""Summarize a message on one line.

There is one rule for each informative key, whatever the method: a tool's ``name`` and ``arguments``, a resource's
``uri``. The message may be invalid: a value of another type than its rule expects is shown as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.protocol.newest import MetaKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.messages import ErrorResponse

__all__ = ["error_summary", "message_count", "summary", "text_summary"]

# Wider than most terminals. `annotation_text` cuts summaries to the width of the terminal.
_MAX_CHARACTERS: Final = 240
_MAX_NAMES: Final = 8


def summary(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Summarize the params or the result *value*."""
    if not is_object(value):
        return "" if value is None else _json(value)
    parts: list[str] = []
    length = 0
    for key, describe in _RULES.items():
        if key in value:
            text = _describe(describe, value[key])
            if text and key == "arguments" and parts:
                parts[-1] += f" {text}"
            elif text:
                parts.append(text)
                length += len(text)
                if length > _MAX_CHARACTERS:
                    break
    if not parts or "supportedVersions" in value:
        parts += _peer(value.get("_meta"))
    if not parts:
        rest = {key: member for key, member in value.items() if key not in ("_meta", "resultType")}
        return _json(rest) if rest else ""
    return ", ".join(parts)


def error_summary(error: ErrorResponse) -> str:
    """Return the code and the message of *error*."""
    return f"{error.code} {_cut(error.message)}"


def text_summary(frame: bytes) -> str:
    """Return the beginning of a frame, which may be any bytes."""
    return _cut(frame[: 2 * _MAX_CHARACTERS].decode("utf-8", "backslashreplace"))


def _describe(describe: Callable[[Any], str], value: Any) -> str:  # noqa: ANN401 (any JSON value)
    try:
        return describe(value)
    except (TypeError, KeyError, AttributeError, ValueError):
        return _json(value)


def _cut(text: str, most: int = _MAX_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _json(value: Any, most: int = _MAX_CHARACTERS) -> str:  # noqa: ANN401 (any JSON value)
    try:
        data = msgspec.json.encode(value)
    except (ValueError, OverflowError, RecursionError):
        return "…"
    return _cut(data[: 4 * most + 4].decode("utf-8", "ignore"), most)


def _plain(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return _cut(value) if isinstance(value, str) else _json(value)


def _peer(meta: Any) -> list[str]:  # noqa: ANN401 (any JSON value)
    keys = (MetaKey.CLIENT_INFO, MetaKey.SERVER_INFO) if is_object(meta) else ()
    return [_describe(_implementation, meta[key]) for key in keys if key in meta]


def _implementation(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return f"{_plain(value['name'])} {_plain(value['version'])}"


def _labelled(label: str, describe: Callable[[Any], str] = _plain) -> Callable[[Any], str]:
    return lambda value: f"{label} {describe(value)}"


def _keys(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return " ".join(_cut(key, 40) for key in list(value.keys())[: 2 * _MAX_NAMES]) or "none"


def _names(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    shown = [_plain(each) for each in value[:_MAX_NAMES]] + ["…"] * (len(value) > _MAX_NAMES)
    return " ".join(shown) or "none"


def _listed(noun: str, key: str) -> Callable[[Any], str]:
    def describe(value: Any) -> str:  # noqa: ANN401 (any JSON value)
        if not is_array(value):
            return _json(value)
        names = [
            _plain(each.get(key) or each.get("name")) if is_object(each) else _json(each, 40)
            for each in value[:_MAX_NAMES]
        ]
        more = " …" if len(value) > _MAX_NAMES else ""
        count = f"{len(value)} {noun if len(value) != 1 else noun[:-1]}"
        return f"{count}: {' '.join(names)}{more}" if names else f"no {noun}"

    return describe


def _content(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    if is_array(value):
        more = f" and {len(value) - 3} more" if len(value) > 3 else ""  # noqa: PLR2004 (as many as are shown)
        return ", ".join(map(_block, value[:3])) + more if value else "no content"
    return _block(value)


def _block(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    kind = value.get("type") if is_object(value) else None
    match kind:
        case "text":
            return _json(value.get("text"))
        case "image" | "audio":
            return f"{kind} {_plain(value.get('mimeType'))}"
        case "resource_link":
            return f"link {_plain(value.get('uri'))}"
        case "resource":
            return f"resource {_plain(value['resource']['uri'])}"
        case "tool_use":
            return f"tool use {_plain(value.get('name'))}"
        case "tool_result":
            return "tool result"
        case _:
            return _json(value)


def message_count(messages: int) -> str:
    """Return a number of messages with its noun."""
    return "1 message" if messages == 1 else f"{messages} messages"


def _messages(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    if not value:
        return "no messages"
    return f"{message_count(len(value))}: {_plain(value[-1]['role'])} {_content(value[-1]['content'])}"


def _contents(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return ", ".join(
        f"{_plain(each['uri'])} {_json(each['text'], 80) if 'text' in each else 'blob'}" for each in value[:3]
    )


def _reference(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return _plain(value.get("name") or value.get("uri"))


def _input_requests(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    return "asks for " + ", ".join(f"{key}: {_plain(each['method'])}" for key, each in list(value.items())[:_MAX_NAMES])


_RULES: Final[dict[str, Callable[[Any], str]]] = {
    "supportedVersions": _labelled("supports", _names),
    "clientInfo": _implementation,
    "serverInfo": _implementation,
    "capabilities": _labelled("capabilities", _keys),
    "protocolVersion": _labelled("revision"),
    "inputRequests": _input_requests,
    "inputResponses": _labelled("answers", _keys),
    "taskId": _labelled("task"),
    "task": lambda value: (
        f"task {_plain(value['taskId'])} {_plain(value['status'])}" if "taskId" in value else "as a task"
    ),
    "status": _plain,
    "statusMessage": _plain,
    "ref": _reference,
    "argument": lambda value: f"{_plain(value['name'])}={_json(value['value'])}",
    "name": _plain,
    "uri": _plain,
    "cursor": _labelled("cursor"),
    "arguments": _json,
    "level": _plain,
    "logger": _plain,
    "data": _json,
    "progressToken": lambda value: f"#{_plain(value)}",
    "progress": _json,
    "total": _labelled("of", _json),
    "requestId": lambda value: f"#{_plain(value)}",
    "reason": _plain,
    "mode": _plain,
    "message": _plain,
    "url": _plain,
    "requestedSchema": lambda value: f"fields {_keys(value['properties'])}",
    "action": _plain,
    "isError": lambda value: "FAILED" if value is True else "",
    "role": _plain,
    "content": _content,
    "structuredContent": lambda value: f"structured {_json(value)}",
    "model": _labelled("model"),
    "tools": _listed("tools", "name"),
    "prompts": _listed("prompts", "name"),
    "resources": _listed("resources", "uri"),
    "resourceTemplates": _listed("resource templates", "uriTemplate"),
    "roots": _listed("roots", "uri"),
    "tasks": _listed("tasks", "taskId"),
    "contents": _contents,
    "messages": _messages,
    "completion": lambda value: _names(value["values"]),
    "notifications": _labelled("notifications", _keys),
    "nextCursor": lambda _: "more pages",
}
"""The rules, in the order of the summary."""
