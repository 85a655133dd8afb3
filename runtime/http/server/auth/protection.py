"""The configuration of a protected server: `Protect`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.auth.token_verifier import VerificationMethod
from mcpgen.runtime.protocol.argument_checks import check_flags
from mcpgen.runtime.server.functions.awaitables import is_async
from mcpgen.runtime.server.functions.registration_checks import check_scopes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.server.auth.token_verifier import Verify

__all__ = ["Protect", "check_url"]

# A URL is written into a header between quotes.
_UNQUOTED: Final = frozenset('"\\<> {}|^`')


class Protect:
    """Let only requests with an access token use the server: ``server.asgi(auth=Protect(…))``.

        Protect(
            resource="https://mcp.example.com/mcp", issuers=["https://login.example.com"], scopes=["mcp"]
        )

    The server is an OAuth resource server. It does not issue tokens, and does not pass them on. Clients learn from its
    metadata which authorization servers issue tokens for it.

    Args:
        resource: The public URL of the server, as clients write it, with the path of the endpoint.
        issuers: The URLs of the authorization servers that are trusted, exactly as they write their own name.
        scopes: The scopes that every request needs. Tools, resources and prompts can need more: ``tool(scopes=…)``.
        audience: More names by which tokens may call this server; a token for `resource` is always accepted. For
            issuers that write another name than the URL.
        implies: For a scope, the scopes that it includes: ``{"files:write": ["files:read"]}``.
        verify: How tokens are verified: `Jwt` (default), `Introspection`, or an async function that takes a token and
            returns an `Access`, or None if the token is not valid. Such a function has to check that the token was
            issued for this server.
        hide: Whether lists omit the tools, resources and prompts for which the token lacks a scope. If they are listed,
            a client can call one of them, and learn from the error which scopes to ask for.
        metadata_url: The URL of the metadata, if it is not the one that RFC 9728 defines for `resource`.

    Attributes:
        resource: The same.
        issuers: The same.
        scopes: The same, as a set.
        audience: The same.
        implies: The same.
        verify: The same; None for the default.
        hide: The same.
        metadata_url: The same.

    Raises:
        UsageError: An argument is not valid.
    """

    def __init__(  # noqa: PLR0913 (settings, each by its name)
        self,
        *,
        resource: str,
        issuers: Sequence[str],
        scopes: Iterable[str] = (),
        audience: Iterable[str] = (),
        implies: Mapping[str, Iterable[str]] | None = None,
        verify: VerificationMethod | Verify | None = None,
        hide: bool = False,
        metadata_url: str | None = None,
    ) -> None:
        self.resource: str = check_url("resource", resource)
        if urlsplit(resource).query:
            raise UsageError(f"`resource` is {resource!r}; remove the query")
        self.issuers: tuple[str, ...] = tuple(check_url("issuers", each) for each in _strings("issuers", issuers))
        if not self.issuers:
            raise UsageError("`issuers` is empty; name the authorization server that issues the tokens")
        if any(urlsplit(each).query for each in self.issuers):  # RFC 8414, section 2
            raise UsageError(f"`issuers` has a URL with a query, in {list(self.issuers)!r}; remove the query")
        self.scopes: frozenset[str] = check_scopes(scopes)
        self.audience: tuple[str, ...] = tuple(_strings("audience", audience))
        if "" in self.audience:
            raise UsageError("`audience` has an empty name; remove it")
        given: Mapping[str, Iterable[str]] = {} if implies is None else implies
        if not isinstance(cast("object", given), Mapping):
            raise UsageError(f"`implies` must be a mapping, such as {{'admin': ['read']}}, not {given!r}")
        found = {scope: check_scopes(narrower, f"implies[{scope!r}]") for scope, narrower in given.items()}
        self.implies: Mapping[str, frozenset[str]] = _closure(found)
        method: Any = verify
        is_method = isinstance(cast("object", method), VerificationMethod) and not isinstance(
            cast("object", method), type
        )
        if not (method is None or is_method or is_async(method)):
            raise UsageError(
                f"`verify` must be Jwt(), Introspection(…) or an async function that takes a token, not {verify!r}"
            )
        check_flags(hide=hide)
        self.verify: VerificationMethod | Verify | None = verify
        self.hide: bool = hide
        self.metadata_url: str | None = None if metadata_url is None else check_url("metadata_url", metadata_url)

    def __repr__(self) -> str:
        return f"Protect(resource={self.resource!r}, issuers={list(self.issuers)!r}, scopes={sorted(self.scopes)!r})"

    def granted(self, scopes: Iterable[str]) -> frozenset[str]:
        """Return *scopes* with those that they imply."""
        given = frozenset(scopes)
        return given.union(*(self.implies[each] for each in given & self.implies.keys()))


def check_url(argument: str, url: object) -> str:
    """Return a URL that was given as *argument*: HTTPS, or HTTP at a loopback address, without a fragment.

    Raises:
        UsageError: It is something else.

    Spec:
        2025-11-25, basic/authorization, "Canonical Server URI" and "Communication Security".
    """
    if not isinstance(url, str):
        raise UsageError(f"`{argument}` must be a URL, not {url!r}")
    try:
        found = urlsplit(url)
        host = found.hostname
        _ = found.port
    except ValueError:
        raise UsageError(f"`{argument}` has {url!r}, which is not a URL") from None
    if not host or not url.isascii() or not url.isprintable() or not _UNQUOTED.isdisjoint(url):
        raise UsageError(f"`{argument}` has {url!r}; it must be a URL such as https://example.com")
    if "#" in url or found.username is not None:
        part = "fragment" if "#" in url else "user name"
        raise UsageError(f"`{argument}` has {url!r}; remove the {part}")
    if found.scheme.lower() == "https" or (found.scheme.lower() == "http" and is_loopback(host)):
        return url
    raise UsageError(f"`{argument}` has {url!r}; use https, or http at a loopback address such as 127.0.0.1")


def is_loopback(host: str) -> bool:
    """Return whether *host* is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _strings(argument: str, given: object) -> list[str]:
    if not isinstance(given, str | bytes) and isinstance(given, Iterable):
        found = list(cast("Iterable[object]", given))
        if all(isinstance(each, str) for each in found):
            return cast("list[str]", found)
    raise UsageError(f"`{argument}` must be a list of strings, not {given!r}")


def _closure(implies: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """Return for each scope all that it implies, by others as well."""
    found: dict[str, frozenset[str]] = {}
    for scope in implies:
        reached: set[str] = set()
        pending = [scope]
        while pending:
            new = implies.get(pending.pop(), frozenset[str]()) - reached
            reached |= new
            pending += new
        found[scope] = frozenset(reached)
    return found
