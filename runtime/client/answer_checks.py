"""Checks of what handlers answer, beyond its types: the URIs of roots, and the content of forms.

Spec:
    2024-11-05 to 2026-07-28, client/roots, "Root" and "Security Considerations"; 2025-11-25 and 2026-07-28,
    client/elicitation, "Form Mode Security".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.client.form_answers import find_mismatch
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.value_syntax import uri_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["check_root_uri", "checked_handler"]

_SEPARATOR: Final = re.compile(r"[/\\]")
_ARRAYS: Final = (list, tuple)


def checked_handler(method: str, handle: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a handler of *method* that checks what *handle* answers; *handle* itself if there is nothing to check."""
    check = {"roots/list": _check_roots, "elicitation/create": _check_form}.get(method)
    if check is None:
        return handle

    async def handle_and_check(params: Any, context: Any) -> Any:
        result = await handle(params, context)
        check(params, result)
        return result

    return handle_and_check


def check_root_uri(uri: str) -> None:
    """Check the URI of a root.

    A server may cut off `file://` and take the rest as a path, or decode it twice. So a `..` is refused in all of it.

    Raises:
        UsageError: It is not a file URI (RFC 8089), which has no query and no fragment, or it has a `..`.
    """
    rest = uri.removeprefix("file://")
    if uri_fault(uri) is not None or rest == uri or "/" not in rest or "?" in rest or "#" in rest:
        raise UsageError(f"`uri` of a root must be a file URI, such as file:///home, not {uri!r}; use `Path.as_uri()`")
    path = unquote(unquote(rest))
    if ".." in _SEPARATOR.split(path) or "\0" in path:
        raise UsageError(f"the path in `uri` of a root must not have `..` or a NUL: {uri!r}; use `Path.resolve()`")


def _check_roots(_params: object, result: Any) -> None:
    roots: Any = result.get("roots") if is_object(result) else getattr(result, "roots", None)
    given: list[Any] = [*roots] if type(roots) in _ARRAYS else []  # encoding reports what is no list
    for each in given:
        check_root_uri(str(each.get("uri", "") if is_object(each) else each.uri))


def _check_form(params: Any, result: Any) -> None:
    schema = getattr(params, "requested_schema", None)
    action = result.get("action") if is_object(result) else getattr(result, "action", "")
    if schema is None or action != "accept":
        return
    content: object = msgspec.to_builtins(result).get("content", {})
    if not is_object(content):
        return  # its type is wrong, which encoding it reports
    mismatch = find_mismatch(content, msgspec.to_builtins(schema))
    if mismatch is not None:
        raise UsageError(f"the answer to the form {params.message[:100]!r} is not valid: {mismatch[:500]}")
