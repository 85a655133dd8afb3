"""HTTP responses with an error status: what they mean for the request.

Theory of operation. The body may be a JSON-RPC error. It is the answer if it has the id of the request. Without an id,
as from a server that refuses before it reads the request, it is still about this request, since the body has no other.
Other bodies come from something that is not an MCP server, and are quoted as they are.

Spec:
    2025-11-25, basic/transports, "Sending Messages to the Server"; 2026-07-28, basic/transports/streamable-http,
    "Backward Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.http.client.address import join_url, max_url_chars
from mcpgen.runtime.http.client.response_body import read_head
from mcpgen.runtime.http.errors import HttpRefused
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.reading_policy import SUSPECT, is_meant_id, meant_message

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_exchange import HttpResponse
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage

__all__ = [
    "KEEPS_REQUEST",
    "MAX_REDIRECTS",
    "NOT_FOUND",
    "ErrorReply",
    "not_a_message",
    "read_error_reply",
    "redirect_target",
]

# RFC 9110, section 15.4: with these, a client sends the same method and body again.
KEEPS_REQUEST: Final = frozenset({307, 308})

_REDIRECTS: Final = frozenset({301, 302, 303, *KEEPS_REQUEST})

# A server that redirects in a circle must not keep a request busy. A slash at the end needs one.
MAX_REDIRECTS: Final = 5

# 2026-07-28, basic/transports/streamable-http, "Backward Compatibility": errors that only servers of a stateless
# revision send.
_STATELESS_CODES: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)

NOT_FOUND: Final = 404

# 2025-06-18, basic/transports, "Backwards Compatibility": any status of 400 to 499 may mean HTTP+SSE. These do not
# depend on the endpoint.
_NOT_OF_THE_ENDPOINT: Final = frozenset({401, 403, 407, 408, 429})

_ADVICE: Final = {
    401: "the server requires valid credentials; pass Http(url, auth=bearer(token)), or headers",
    403: "the server does not allow this with these credentials, or from this origin or host",
    404: "there is nothing at this URL",
    405: "this URL does not accept this kind of request",
    407: "a proxy requires credentials",
    413: "the message is longer than the server accepts",
    429: "there were too many requests",
    502: "a gateway cannot reach the server",
    503: "the server is not ready, or overloaded",
    504: "the server did not answer a gateway in time",
}
_UNAUTHORIZED: Final = 401
# RFC 6750, section 3.1: a server sends this code only if the request had a token.
_REFUSAL: Final = 'error="invalid_token"'
_REFUSED: Final = (
    "the server refused the access token; get a new one, and pass Http(url, auth=bearer(token)), or headers"
)
# RFC 9728, section 5.1: the challenge of a server whose tokens an authorization server issues.
_HAS_LOGIN: Final = "resource_metadata="
_LOGIN: Final = (
    "the server requires a login; pass Http(url, auth=OAuth()) to log in, or Http(url, auth=bearer(token)), or headers"
)
# Gateways and web servers answer these with a page of their own, also in front of an MCP server.
_PAGE_OF_GATEWAY: Final = frozenset({401, 407, 413, 429, 502, 503, 504})
_WEB_PAGE: Final = (
    "the response is a web page, so there is probably no MCP server at this URL; check its path, which is often /mcp"
)
# With these, a JSON-RPC error says itself what is wrong, such as an unknown session, or a server that shuts down.
_SAYS_ITSELF: Final = frozenset({NOT_FOUND, 503})
_MAX_RETRY_AFTER_CHARS: Final = 40
_MAX_EXCERPT_CHARS: Final = 300


class ErrorReply(Struct, frozen=True):
    """An HTTP response with an error status.

    Attributes:
        status: The status.
        code: The code of the JSON-RPC error in the body; None if there is none.
        frame: The error response to deliver, with the id of the request; None if the body is none.
        failure: The error to raise instead if there is no such response.
    """

    status: int
    code: int | None
    frame: bytes | None
    failure: HttpRefused

    @property
    def is_stateless(self) -> bool:
        """Whether only a server of a stateless revision sends this."""
        return self.code in _STATELESS_CODES or (self.status == NOT_FOUND and self.code == ErrorCode.METHOD_NOT_FOUND)

    @property
    def may_be_legacy_sse(self) -> bool:
        """Whether the answer to `initialize` may come from a server of HTTP+SSE."""
        return 400 <= self.status < 500 and self.status not in _NOT_OF_THE_ENDPOINT and not self.is_stateless  # noqa: PLR2004

    @property
    def is_about_session(self) -> bool:
        """Whether it says that the server does not know the session of the request.

        Spec:
            2025-11-25, basic/transports, "Session Management": 404 says so, whatever the body.
        """
        return self.status == NOT_FOUND

    @property
    def may_be_about_method(self) -> bool:
        """Whether a server of a later revision may say with it that it does not know the method of the request."""
        return self.status == NOT_FOUND and self.code == ErrorCode.METHOD_NOT_FOUND and self.frame is not None


async def read_error_reply(response: HttpResponse, message: OutgoingMessage | None, address: Address) -> ErrorReply:
    """Read *response*, which has an error status, as the reply to *message*."""
    body, status = await read_head(response), response.status
    excerpt = _excerpt(body)
    found = envelope.decode(body) if body else None
    if isinstance(found, SUSPECT):
        found, _ = meant_message(body, found)
    if not isinstance(found, ErrorResponse):
        return ErrorReply(status, None, None, _failure(response, address, excerpt))
    failure = _failure(response, address, f"{printable(found.message)} ({found.code})", is_json_rpc=True)
    request_id = None if message is None or message.kind != "request" else message.id
    frame: bytes | None = None
    if request_id is not None and is_meant_id(found.id, request_id):
        frame = body
    elif request_id is not None and not failure.is_general:
        frame = envelope.encode_error(request_id, found.error)
    return ErrorReply(status, found.code, frame, failure)


def not_a_message(response: HttpResponse, address: Address, advice: str, body: bytes = b"") -> HttpRefused:
    """Return the error for a response whose status is a success, but whose body is not a message."""
    return HttpRefused(url=address.shown, status=response.status, excerpt=_excerpt(body), advice=advice)


def _failure(response: HttpResponse, address: Address, excerpt: str, *, is_json_rpc: bool = False) -> HttpRefused:
    status = response.status
    advice = "" if is_json_rpc and status in _SAYS_ITSELF else _ADVICE.get(status, "")
    if _redirects(response):
        advice = _redirect_advice(response, address)
    elif status == _UNAUTHORIZED and _REFUSAL in response.headers.get("www-authenticate", ""):
        advice = _REFUSED
    elif status == _UNAUTHORIZED and _HAS_LOGIN in response.headers.get("www-authenticate", ""):
        advice = _LOGIN
    elif not is_json_rpc and status not in _PAGE_OF_GATEWAY and _is_web_page(response):
        advice = f"{advice}; {_WEB_PAGE}" if advice else _WEB_PAGE
    retry_after = response.headers.get("retry-after", "")
    if status in (429, 503) and retry_after:
        unit = "" if not retry_after.isdigit() else " second" if retry_after == "1" else " seconds"
        again = f"try again {'in' if unit else 'at'} {printable(retry_after[:_MAX_RETRY_AFTER_CHARS])}{unit}"
        advice = f"{advice}; {again}" if advice else again
    return HttpRefused(url=address.shown, status=status, excerpt=excerpt, advice=advice)


def _redirect_advice(response: HttpResponse, address: Address) -> str:
    """Return why a redirect was not followed."""
    target = redirect_target(response, address)
    if target is None:
        location = response.headers["location"]
        limit = max_url_chars(location)
        if len(location) > limit:
            kind = "" if location.isascii() else " if it is not ASCII"
            return f"it redirects to a URL of {len(location):,} characters; a URL may have at most {limit:,}{kind}"
        return "it redirects, but not to a URL of http or https"
    start = f"it redirects to {target.shown}"
    if target.origin != address.origin:
        return f"{start}, which has another origin, so it is not followed; use that URL if you trust it"
    if response.status in KEEPS_REQUEST:
        return f"{start}, after {MAX_REDIRECTS} redirects that were followed"
    return f"{start}; only 307 and 308 are followed, so use that URL"


def redirect_target(response: HttpResponse, address: Address) -> Address | None:
    """Return the URL to which *response*, of a request to *address*, redirects; None if it has no valid one."""
    if not _redirects(response):
        return None
    try:
        return join_url(address, response.headers["location"])
    except UsageError:
        return None


def _redirects(response: HttpResponse) -> bool:
    return response.status in _REDIRECTS and "location" in response.headers


def _is_web_page(response: HttpResponse) -> bool:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/html"


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return " ".join(text.split())[:_MAX_EXCERPT_CHARS]
