"""Match a URI against a template, and expand a template to a URI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.functions import uri_values
from mcpgen.runtime.server.functions.uri_template import Template, Variable, in_ascii

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["expand", "match", "split"]

# To decode a value takes some 10 µs, and a URI of 8 KiB can have 4,000 of them. A path has a few dozen segments.
_MAX_PARTS: Final = 500


def match(template: Template, uri: str) -> dict[str, str | list[str]] | None:
    """Return the decoded values in a URI; None if it does not match, or has a refused value."""
    path, query = in_ascii(uri), None
    if template.query:
        path, mark, rest = path.partition("?")
        query = rest if mark else None
    raw = split(template, path)
    if raw is None:
        return None
    found: dict[str, str | list[str]] = {}
    for variable, text in zip(template.variables, raw, strict=False):  # those of the query follow
        value = _value(text, variable)
        if value is None:
            return None
        found[variable.name] = value
    return found if query is None else _with_query(found, template.query, query)


def split(template: Template, text: str) -> list[str] | None:
    """Return the part of *text* at each variable before the query; None if the literals do not match."""
    literals = template.literals
    count = len(literals) - 1
    if not count:
        return [] if text == literals[0] else None
    start, end = len(literals[0]), len(text) - len(literals[-1])
    if not (start < end and text.startswith(literals[0]) and text.endswith(literals[-1])):
        return None
    # The one variable that takes the remaining text.
    rest = next((index for index in range(count) if template.variables[index].spans), 0)
    raw = [""] * count
    for index in range(rest):
        at = text.find(literals[index + 1], start + 1, end)  # no value is empty
        if at < 0:
            return None
        raw[index], start = text[start:at], at + len(literals[index + 1])
    for index in range(count - 1, rest, -1):
        at = text.rfind(literals[index], start, end - 1)
        if at < 0:
            return None
        raw[index], end = text[at + len(literals[index]) : end], at
    raw[rest] = text[start:end]
    return raw if start < end else None


def _value(raw: str, variable: Variable) -> str | list[str] | None:
    value = uri_values.decode(raw, variable)
    if value is None or not variable.many:
        return value
    # A list of segments: an encoded separator inside a segment would split it when a handler joins them.
    parts = raw.split("/")
    if len(parts) > _MAX_PARTS:
        return None
    segments = [uri_values.decode(each, Variable(variable.name)) for each in parts]
    kept = [each for each in segments if each]
    return kept if len(kept) == len(segments) else None


def _with_query(
    found: dict[str, str | list[str]], variables: tuple[Variable, ...], query: str
) -> dict[str, str | list[str]] | None:
    """Add the named values of a query to *found*; return None if there are too many, or one has an unknown name."""
    known = {each.name: each for each in variables}
    pairs = query.split("&") if query else []
    if len(pairs) > _MAX_PARTS:
        return None
    for pair in pairs:
        name, _, raw = pair.partition("=")
        variable = known.get(name)
        if variable is None or (name in found and not variable.many):
            return None
        value = uri_values.decode(raw, variable)
        if value is None:
            return None
        before = found.get(name, [])
        found[name] = [*before, value] if variable.many else value
    return found


def expand(template: Template, given: Mapping[str, object]) -> str:
    """Return the URI with these values (RFC 6570, section 3.2); lists for variables with ``*``, text for the others.

    Raises:
        UsageError: The value of a variable outside of ``{?…}`` is missing.
    """
    written = [template.literals[0]]
    for variable, literal in zip(template.variables, template.literals[1:], strict=False):  # those of the query follow
        if variable.name not in given:
            raise UsageError(f"the URI template {template.text!r} has no value for `{variable.name}`; pass one")
        texts = _texts(given[variable.name])
        written += ["/".join(uri_values.encode(each, reserved=variable.reserved) for each in texts), literal]
    pairs = [
        f"{each.name}={uri_values.encode(value, reserved=False)}"
        for each in template.query
        for value in _texts(given.get(each.name, []))
    ]
    return "".join(written) + ("?" + "&".join(pairs) if pairs else "")


def _texts(value: object) -> list[str]:
    return list(map(str, cast("list[object]", value))) if isinstance(value, (list, tuple)) else [str(value)]
