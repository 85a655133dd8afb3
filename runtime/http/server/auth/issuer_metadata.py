"""The metadata of an authorization server, and how documents of it are fetched.

Spec:
    RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4; 2025-11-25, basic/authorization,
    "Authorization Server Metadata Discovery".
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.auth.discovery import server_metadata_urls
from mcpgen.runtime.http.client.http_exchange import import_httpx, trusted_certificates
from mcpgen.runtime.http.server.auth.protection import check_url
from mcpgen.runtime.http.server.auth.token_verifier import IssuerUnavailable
from mcpgen.runtime.protocol.message_size import too_many_values

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import httpx

__all__ = ["fetch_json", "issuer_endpoint"]

# A document of a large issuer has some 20 KB. A hanging issuer must not hold requests for long.
_MAX_DOCUMENT_BYTES: Final = 512 * 1024
# Such a document has some 1,000 values. One of numbers with exponents would take 1.5 seconds to decode.
_MAX_DOCUMENT_VALUES: Final = 10_000
_MAX_DIGITS: Final = 9
_SECONDS: Final = 5.0


async def issuer_endpoint(issuer: str, member: str) -> str:
    """Return the URL that the metadata of *issuer* has as *member*.

    Raises:
        IssuerUnavailable: There is no such metadata now, or it belongs to another issuer.
    """
    missing, wrong = f"{issuer} has no metadata", ""  # most issuers have it at one of the URLs only
    for url in server_metadata_urls(issuer):
        try:
            found = await fetch_json(url)
        except IssuerUnavailable as unavailable:
            missing = str(unavailable)
            continue
        if found.get("issuer") != issuer:  # the characters must be the same (RFC 8414, 3.3)
            wrong = wrong or (
                f"the `issuer` in the metadata at {url} is not {issuer}; write the issuer in `issuers` (--auth-issuer) "
                "exactly as in the metadata"
            )
            continue
        try:
            return check_url(member, found.get(member))
        except UsageError as error:
            wrong = wrong or f"the metadata at {url} is of no use: {error}"
    raise IssuerUnavailable(wrong or missing)


async def fetch_json(
    url: str, form: Mapping[str, str] | None = None, credentials: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object at *url*; with *form*, the one that answers a POST of it.

    Redirects are not followed: the answer must come from the host that the author has named.

    Raises:
        IssuerUnavailable: There is none, it is too large, has too many values, or takes too long.
    """
    httpx = import_httpx()
    try:
        with anyio.fail_after(_SECONDS):
            async with _response(url, form, credentials) as response:
                if response.status_code != httpx.codes.OK:
                    raise IssuerUnavailable(f"{url} answered with the status {response.status_code}")
                body = bytearray()
                length = response.headers.get("content-length", "")
                if length.isdecimal() and (len(length) > _MAX_DIGITS or int(length) > _MAX_DOCUMENT_BYTES):
                    raise IssuerUnavailable(f"{url} answered with more than {_MAX_DOCUMENT_BYTES} bytes")
                if response.headers.get("content-encoding", "identity").lower() != "identity":
                    raise IssuerUnavailable(f"{url} answered compressed, although the request asked for no compression")
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > _MAX_DOCUMENT_BYTES:
                        raise IssuerUnavailable(f"{url} answered with more than {_MAX_DOCUMENT_BYTES} bytes")
                    await checkpoint()  # one read of the socket can have 10,000 chunks, of which each takes 70 µs
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        raise IssuerUnavailable(f"{url} cannot be read ({type(error).__name__})") from None
    if too_many_values(bytes(body), _MAX_DOCUMENT_VALUES):
        raise IssuerUnavailable(f"{url} answered with more than {_MAX_DOCUMENT_VALUES} values")
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IssuerUnavailable(f"{url} did not answer with JSON") from None
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"{url} did not answer with a JSON object")
    return cast("dict[str, Any]", found)


@asynccontextmanager
async def _response(
    url: str, form: Mapping[str, str] | None, credentials: tuple[str, str] | None
) -> AsyncGenerator[httpx.Response]:
    """Open a request on a connection of its own: there are few, and the event loop may be another one each time."""
    httpx = import_httpx()
    from mcpgen.runtime.http.client.connection_pool import NoCookies  # noqa: PLC0415 (it loads httpx)

    trust, cookies = trusted_certificates(), NoCookies()
    headers = {"accept": "application/json", "accept-encoding": "identity"}  # a small answer must not become large
    async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, verify=trust, cookies=cookies) as client:
        auth = None if credentials is None else httpx.BasicAuth(*credentials)
        method = "GET" if form is None else "POST"
        async with client.stream(method, url, data=form, auth=auth, headers=headers) as response:
            yield response
