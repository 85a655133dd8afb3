"""Whether a URI fits the template of a server, as far as a client can know."""

from __future__ import annotations

import re
from typing import Final

from mcpgen.runtime.limits import MAX_URI_CHARS

__all__ = ["template_fits"]

# A part of a URI template in braces. What it stands for is up to the server; here, any text fits.
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")


def template_fits(template: str, uri: str) -> bool:
    """Return whether *uri* has the literal parts of *template*, in their order, and any text between them.

    The template is the server's. As a regular expression, a dozen of ``.*`` would take years. One that is longer than
    the URIs that a template reads fits none: a million expressions take a second.
    """
    if len(template) > MAX_URI_CHARS:
        return False
    first, *others = _EXPRESSION.split(template)
    if not others:
        return uri == first
    last = others.pop()
    at, end = len(first), len(uri) - len(last)
    if at > end or not uri.startswith(first) or not uri.endswith(last):
        return False
    for each in others:  # the leftmost place leaves the most for the rest
        found = uri.find(each, at, end)
        if found < 0:
            return False
        at = found + len(each)
    return True
