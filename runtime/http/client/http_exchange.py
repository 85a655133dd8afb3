"""HTTP exchanges: a request goes out, and a response comes back. The seam between the client and an HTTP library.

There are two implementations. `AsyncioExchange` makes the requests itself, on connections of asyncio; it costs a tenth
of httpx (ADR 0028). `HttpxExchange` makes them with httpx, which can do more. `open_exchange` chooses.
"""

from __future__ import annotations

import os
import socket
import ssl
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from mcpgen.runtime.errors import RequestLost, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from types import ModuleType

    from mcpgen.runtime.http.client.address import Address

__all__ = [
    "CLOSE_SECONDS",
    "IDLE_SECONDS",
    "KEEP_ALIVE_OPTIONS",
    "PART_BYTES",
    "ConnectionBroke",
    "HeaderLines",
    "HttpExchange",
    "HttpResponse",
    "credentials_failed",
    "import_httpx",
    "is_lasting",
    "system_message",
    "trusted_certificates",
]

HeaderLines: TypeAlias = "Sequence[tuple[str, str]]"
"""Names in lower case, and values, which are sent as UTF-8."""

# uvicorn and Node.js close connections that were idle for 5 seconds; a request sent at that moment is lost.
IDLE_SECONDS: Final = 4.0

# Closing a connection takes no time, unless TLS must send its last bytes to a peer that does not read.
CLOSE_SECONDS: Final = 1.0

# How much must be written within `ClientLimits.open_seconds`.
PART_BYTES: Final = 64 * 1024

# A stream may be silent for hours, so TCP finds out whether the peer is still there. It notices a vanished peer after
# two minutes; on systems without these options, after the system's default time.
KEEP_ALIVE_OPTIONS: Final[list[tuple[int, int, int]]] = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
        if hasattr(socket, name)
    ),
]

# The errors of OpenSSL, older and newer versions, if the answer is not TLS.
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})

_MAX_CAUSES: Final = 10  # contexts of exceptions may form circles


class HttpResponse(Protocol):
    """A response whose head has arrived."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by name, in lower case. Values of the same name are joined by commas."""
        ...

    @property
    def whole_body(self) -> bytes | None:
        """The body, if all of it has arrived and none was read; None otherwise."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it arrives, without decompressing it.

        Raises:
            ConnectionBroke: The body is incomplete, or not valid.
        """
        ...

    async def close(self) -> None:
        """End the exchange. The connection is used again if the whole body has arrived, and closed otherwise."""
        ...


class HttpExchange(Protocol):
    """Makes the requests to one server.

    Attributes:
        library: The name of the library that makes them, for `repr`.
    """

    library: str

    async def send(self, verb: str, address: Address, headers: HeaderLines, body: bytes | None) -> HttpResponse:
        """Make a request with these headers and those of each request; follow no redirect.

        Raises:
            ServerUnreachable: No connection could be made, so nothing was sent.
            ConnectionBroke: The connection broke before the head of the response arrived.
            RequestLost: The credentials are not available.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class ConnectionBroke(RequestLost):
    """A connection broke, or the server sent something that is not HTTP.

    Attributes:
        reason: What went wrong.
    """

    def __init__(self, shown: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the connection to {shown} broke: {reason}")


def import_httpx() -> ModuleType:
    """Return httpx.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import httpx  # noqa: PLC0415 (most clients never need it, and it takes long to load)
    except ImportError:
        raise UsageError('a server at a URL needs httpx, which is not installed: pip install "mcpgen[http]"') from None
    return httpx


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the context that verifies certificates, loaded once: this takes longer than the rest of connecting."""
    import httpx  # noqa: PLC0415 (only https needs it)

    context = httpx.create_ssl_context()  # with the certificates of the environment, such as `SSL_CERT_FILE`
    context.set_alpn_protocols(["http/1.1"])
    return context


def credentials_failed(address: Address, error: Exception) -> RequestLost:
    """Return the error for a request whose credentials raised *error*."""
    lost = RequestLost(f"the request to {address.shown} could not be made: {error!r}")
    lost.is_general, lost.is_temporary = True, False  # any other request needs the same credentials
    return lost


def system_message(error: BaseException) -> str:
    """Return the system's message for *error*, which may be in a distant cause."""
    found = str(error) or type(error).__name__
    for cause in _causes(error if isinstance(error, OSError) else _cause(error)):
        if isinstance(cause, ConnectionError) and cause.errno is not None:
            found = os.strerror(cause.errno)  # event loops replace the message of the system
        elif isinstance(cause, OSError) and cause.strerror:
            found = cause.strerror
        if _is_not_tls(cause):
            return f"{found}; the server may use http instead of https"
    return found


def is_lasting(error: BaseException) -> bool:
    """Whether the same request would fail again: the peer has a wrong certificate, or does not use TLS."""
    return any(isinstance(each, ssl.SSLCertVerificationError) or _is_not_tls(each) for each in _causes(error))


def _is_not_tls(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield *error* and its causes; of a group of exceptions, only the first one."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        if isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        yield error
        error = _cause(error)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or error.__context__
