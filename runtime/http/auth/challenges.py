"""Read the challenges of ``WWW-Authenticate``: which credentials a server wants.

Servers send several schemes in one header, and quoted values have commas. Malformed parts are skipped: a client must
find the challenge that it understands.

Spec:
    RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section 5.1; RFC 9449, section 7.1; 2025-11-25,
    basic/authorization, "Protected Resource Metadata Discovery Requirements".
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

from mcpgen.runtime.protocol.headers import TOKEN

__all__ = ["Challenge", "parse_challenges", "token_challenge"]

# A challenge is much shorter.
_MAX_CHARS: Final = 8 * 1024

_SCHEME: Final = re.compile(rf"({TOKEN.pattern})(?: +|(?=,|$))")
# Some servers write a URL without quotes.
_PARAM: Final = re.compile(rf'({TOKEN.pattern})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",=][^\s",]*))')
_TOKEN68: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))")
_SPACE: Final = re.compile(r"[ \t,]*")
_REST: Final = re.compile(r"[^,]*")
_ESCAPED: Final = re.compile(r"\\(.)")


class Challenge(Struct, frozen=True):
    """One challenge.

    Attributes:
        scheme: The scheme, in lower case: ``bearer`` or ``dpop``, for example.
        params: The parameters by name, in lower case. The first of several with one name counts.
    """

    scheme: str
    params: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def error(self) -> str:
        """The error code of RFC 6750; empty if there is none."""
        return self.params.get("error", "")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that the request needs; empty if the challenge does not say."""
        return tuple(dict.fromkeys(self.params.get("scope", "").split()))

    @property
    def resource_metadata(self) -> str | None:
        """The URL of the protected resource metadata; None if the challenge names none."""
        return self.params.get("resource_metadata") or None


def parse_challenges(header: str) -> list[Challenge]:
    """Return the challenges of a header's value. Values of several headers are joined by commas."""
    text, at = header[:_MAX_CHARS], 0
    found: list[Challenge] = []
    while at < len(text):
        at = _end(_SPACE, text, at)
        param = _PARAM.match(text, at)
        if param is not None and found:
            quoted, plain = param[2], param[3]
            value = _ESCAPED.sub(r"\1", quoted) if quoted is not None else plain
            found[-1].params.setdefault(param[1].lower(), value)
            at = param.end()
            continue
        scheme = _SCHEME.match(text, at)
        if scheme is None:
            at = max(_end(_REST, text, at), at + 1)
            continue
        found.append(Challenge(scheme[1].lower()))
        at = scheme.end()
        if _PARAM.match(text, at) is None and (token68 := _TOKEN68.match(text, at)) is not None:
            at = token68.end()
    return found


def token_challenge(header: str) -> Challenge | None:
    """Return the challenge that asks for an access token; None if the server wants another kind of credentials.

    A ``DPoP`` challenge counts before a ``Bearer`` challenge: a server that sends both prefers bound tokens. The
    parameters that it lacks, such as the URL of the metadata, are those of the others.
    """
    asked = [each for each in parse_challenges(header) if each.scheme in ("dpop", "bearer")]
    if not asked:
        return None
    asked.sort(key=lambda each: (each.scheme != "dpop", not each.error))
    params: dict[str, str] = {}
    for each in asked:
        params = each.params | params
    return Challenge(asked[0].scheme, params)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
