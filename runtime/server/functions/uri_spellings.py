"""Find the scopes of resources that a URI names in another spelling.

Suppose that ``files:///private/{name}`` needs scopes, and a later template ``files:///{+path}`` does not. Then
``files:///%70rivate/a`` and ``files:///private//a`` match only the later one, but are the same file as
``files:///private/a``.

Spec: RFC 3986, section 6.2.2.2 (escapes). That a path may repeat a separator is a rule of file systems.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from mcpgen.runtime.server.functions import uri_matching
from mcpgen.runtime.server.functions.uri_values import MAX_ENCODINGS

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.uri_template import Template

__all__ = ["covers", "is_plain", "plain"]

SEPARATORS = re.compile(r"[/\\]+")
AFTER_SCHEME = re.compile(r"(?<=:)/+")


def plain(uri: str) -> str:
    """Return the spelling that a URI shares with those that a file system reads as the same path."""
    return _flat(uri).rstrip("/")


def is_plain(uri: str) -> bool:
    """Whether a URI is its own plain spelling, apart from the separators after its scheme."""
    return AFTER_SCHEME.sub("/", uri, count=1) == plain(uri)


def covers(template: Template, spelling: str) -> bool:
    """Whether a template is for the URIs of a plain spelling, whatever the types of its variables."""
    literals = [*map(_flat, template.literals)]
    literals[-1] = literals[-1].rstrip("/")
    path = spelling.partition("?")[0] if template.query else spelling
    raw = uri_matching.split(msgspec.structs.replace(template, literals=tuple(literals)), path)
    if raw is None:
        return False
    return all(each.spans or "/" not in text for each, text in zip(template.variables, raw, strict=False))


def _flat(text: str) -> str:
    for _ in range(MAX_ENCODINGS):
        text = unquote(text)
    return SEPARATORS.sub("/", text)
