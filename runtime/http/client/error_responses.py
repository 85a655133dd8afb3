"""What a status of HTTP that is no success means to whoever made the request.

Theory of operation. There may be a JSON-RPC error in the body. It is the answer if it has the request's id; without, as
from whoever refuses before the request is read, it is still about this request, since nothing else was in the body.
Other bodies are of somebody who knows nothing of MCP, and are shown as they are.

Spec:
    2025-11-25, basic/transports, "Sending Messages to the Server"; 2026-07-28, basic/transports/streamable-http,
    "Backward Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.http.client.address import join_url
from mcpgen.runtime.http.client.response_body import read_head
from mcpgen.runtime.http.errors import HttpRefused
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import ErrorResponse

if TYPE_CHECKING:
    import httpx

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage

__all__ = ["HEADER_MISMATCH", "NOT_FOUND", "ErrorReply", "not_a_message", "read_error_reply"]

HEADER_MISMATCH: Final = -32020
_METHOD_NOT_FOUND: Final = -32601
# 2026-07-28, basic/transports/streamable-http, "Backward Compatibility": unsupported version, unknown method, or a
# header that does not fit; and the other error that only servers of today have.
_MODERN: Final = frozenset({HEADER_MISMATCH, -32021, -32022})

NOT_FOUND: Final = 404
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503

# 2025-06-18, basic/transports, "Backwards Compatibility": any of the fours; but these are about who asks.
_NOT_OF_THE_PATH: Final = frozenset({_UNAUTHORIZED, _FORBIDDEN, 407, 408, _TOO_MANY})

_ADVICE: Final = {
    _UNAUTHORIZED: "the server wants to know who asks; say so by Http(url, auth=bearer(token)), or headers",
    _FORBIDDEN: "who asks may not do this, by these credentials or from this origin or host",
    404: "there is nothing at this URL",
    405: "what is at this URL takes no such request",
    407: "a proxy wants to know who asks",
    413: "the message is longer than the server takes",
    _TOO_MANY: "there were too many requests",
    502: "what the server stands behind cannot reach it",
    _UNAVAILABLE: "the server is not ready, or has too much to do",
    504: "what the server stands behind did not hear from it in time",
}
_MOST_WAIT_CHARS: Final = 40
_MOST_EXCERPT: Final = 300


class ErrorReply(Struct, frozen=True):
    """A request that was answered with an error of HTTP.

    Attributes:
        status: That error.
        code: That of the JSON-RPC error in the body; None if there is none.
        frame: The error response that the body makes, with the request's id; None if it makes none.
        failure: What to tell whoever asked if there is no such response.
    """

    status: int
    code: int | None
    frame: bytes | None
    failure: HttpRefused

    @property
    def is_modern(self) -> bool:
        """Whether only a server of today says so."""
        return self.code in _MODERN or (self.status == NOT_FOUND and self.code == _METHOD_NOT_FOUND)

    @property
    def may_be_of_before(self) -> bool:
        """Whether a server of HTTP+SSE may say so when it is greeted at its first endpoint."""
        return 400 <= self.status < 500 and self.status not in _NOT_OF_THE_PATH and not self.is_modern  # noqa: PLR2004

    @property
    def is_about_session(self) -> bool:
        """Whether it says that the session which the request named is not known; not that the method is not."""
        return self.status == NOT_FOUND and not (self.code == _METHOD_NOT_FOUND and self.frame is not None)


async def read_error_reply(response: httpx.Response, message: OutgoingMessage | None, address: Address) -> ErrorReply:
    """Return what *response*, which is no success, says of *message*."""
    body, status = await read_head(response), response.status_code
    excerpt = _excerpt(body)
    found = envelope.decode(body) if body else None
    if not isinstance(found, ErrorResponse):
        return ErrorReply(status, None, None, _failure(response, address, excerpt))
    failure = _failure(response, address, f"{printable(found.message)} ({found.code})", is_of_mcp=True)
    asked = None if message is None or message.kind != "request" else message.id
    frame: bytes | None = None
    if asked is not None and found.id == asked:
        frame = body
    elif asked is not None and not failure.is_general:
        frame = envelope.encode_error(asked, found.error)
    return ErrorReply(status, found.code, frame, failure)


def not_a_message(response: httpx.Response, address: Address, what: str, body: bytes = b"") -> HttpRefused:
    """Return the failure of a request whose answer is a success by its status, but no message."""
    return HttpRefused(url=address.shown, status=response.status_code, excerpt=_excerpt(body), advice=what)


def _failure(response: httpx.Response, address: Address, excerpt: str, *, is_of_mcp: bool = False) -> HttpRefused:
    status = response.status_code
    # A server that says why in an error of MCP knows better what it does not find: a session, or a method.
    advice = "" if is_of_mcp and status == NOT_FOUND else _ADVICE.get(status, "")
    if response.has_redirect_location:
        advice = f"it is at {_location(response, address)}; redirections are not followed, so give that URL"
    wait = response.headers.get("retry-after", "")
    if status in (_TOO_MANY, _UNAVAILABLE) and wait:
        unit = " seconds" if wait.isdigit() else ""
        advice += f"; it says to come back {'in' if unit else 'at'} {printable(wait[:_MOST_WAIT_CHARS])}{unit}"
    return HttpRefused(url=address.shown, status=status, excerpt=excerpt, advice=advice)


def _location(response: httpx.Response, address: Address) -> str:
    said: str = response.headers.get("location", "")
    try:
        return join_url(address, said).shown
    except UsageError:
        return repr(said[:_MOST_EXCERPT])


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return " ".join(text.split())[:_MOST_EXCERPT]
