"""Receive the redirect at the end of a login: a web server of this machine for one request.

Theory of operation. It answers one path, and only requests for its own host, so that a web page cannot reach it under
another name. A response that belongs to another login is refused, and the wait goes on: any program of this machine can
send one. Browsers open connections that they do not use, and so can any program; each has a task and a time limit of
its own, and the oldest one gives way to a new one when there are many. The page that the user sees is always the same,
and contains nothing of the request.

Spec:
    RFC 8252, sections 7.3 and 8.3.
"""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute

from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import SocketListener, SocketStream

__all__ = ["PATH", "LoopbackReceiver", "open_receiver"]

PATH: Final = "/callback"

_MAX_HEAD_BYTES: Final = 16 * 1024
_HEAD_SECONDS: Final = 5.0  # on the loopback, a request comes with its connection
_MAX_CONNECTIONS: Final = 32

_DONE: Final = "The login is done. You can close this window."
_REFUSED: Final = "This is not the response to the login that was started."
_NOTHING: Final = "There is nothing here."


class LoopbackReceiver:
    """Waits for one redirect at a time.

    Attributes:
        redirect_uri: The URL that it answers.
    """

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri: str = redirect_uri
        self._accepts: Callable[[str], bool] = lambda _: False
        parts = urlsplit(redirect_uri)
        self._path = parts.path or "/"
        self._host = _host(parts.netloc)
        self._response = ""
        self._received = anyio.Event()
        self._open: dict[anyio.CancelScope, None] = {}  # of each connection, the oldest first

    def waiting_for(self, accepts: Callable[[str], bool]) -> Callable[[], Awaitable[str]]:
        """Return a function that waits for the next response: the first URL for which *accepts* is true."""
        self._accepts = accepts
        self._received = anyio.Event()
        return self._wait

    async def _wait(self) -> str:
        await self._received.wait()
        return self._response

    async def serve(self, stream: SocketStream) -> None:
        """Answer one connection."""
        if len(self._open) >= _MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        scope = anyio.move_on_after(_HEAD_SECONDS)
        self._open[scope] = None
        try:
            with scope:
                async with stream:
                    url, answer = self._answer(await _head(stream))
                    await stream.send(answer)
                    if url:
                        self._response = url
                        self._received.set()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
            pass  # the browser has gone
        finally:
            self._open.pop(scope, None)

    def _answer(self, head: bytes) -> tuple[str, bytes]:
        """Return the URL of the response, or nothing, and what to answer to the request *head*."""
        lines = head.decode("latin-1").split("\r\n")
        verb, _, rest = lines[0].partition(" ")
        target = rest.partition(" ")[0]
        hosts = [_host(line[5:].strip()) for line in lines[1:] if line[:5].lower() == "host:"]
        if verb != "GET" or target.partition("?")[0] != self._path or hosts != [self._host]:
            return "", _page("404 Not Found", _NOTHING)
        url = f"http://{self._host}{target}"
        if self._received.is_set() or not self._accepts(url):
            return "", _page("400 Bad Request", _REFUSED)
        return url, _page("200 OK", _DONE)


@asynccontextmanager
async def open_receiver(redirect_uri: str | None, port: int = 0) -> AsyncGenerator[LoopbackReceiver]:
    """Listen for the redirect within the block.

    Args:
        redirect_uri: The URL of the redirect, at a loopback host; None for a URL of our own.
        port: The port to use for a URL of our own, if it is free.

    Raises:
        LoginFailed: Its port cannot be used.
    """
    listeners: list[SocketListener] = []
    async with AsyncExitStack() as stack:
        if redirect_uri is None:
            listeners.append(await stack.enter_async_context(await _listener("127.0.0.1", port)))
            redirect_uri = f"http://127.0.0.1:{_port(listeners[0])}{PATH}"
        else:
            parts = urlsplit(redirect_uri)
            host, wanted = parts.hostname or "", parts.port or 0
            hosts = ["127.0.0.1" if host == "localhost" else host]
            if host == "localhost" and _has_ipv6():  # a browser may try the address of either family first
                hosts.append("::1")
            for address in hosts:
                listener = await _listener(address, wanted, is_fixed=True)
                listeners.append(await stack.enter_async_context(listener))
                wanted = _port(listener)
            if not parts.port:
                shown = f"[{host}]" if ":" in host else host
                redirect_uri = parts._replace(netloc=f"{shown}:{wanted}").geturl()
        receiver = LoopbackReceiver(redirect_uri)
        group = await stack.enter_async_context(open_group())  # its tasks end before the listeners are closed
        for each in listeners:
            group.start_soon(each.serve, receiver.serve)
        yield receiver


def _host(authority: str) -> str:
    """Return *authority* as browsers write it."""
    return authority.lower().removesuffix(":80")


async def _listener(host: str, port: int, *, is_fixed: bool = False) -> SocketListener:
    try:
        made = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        if port and not is_fixed:
            return await _listener(host, 0)
        reason = f"the redirect of the login cannot be received on port {port}: {error.strerror}"
        raise LoginFailed(f"{reason}; choose another `redirect_uri`") from None
    return made.listeners[0]  # type: ignore[return-value]  # it is one of TCP


def _has_ipv6() -> bool:
    """Return whether the loopback has an address of IPv6, whose port another program could use already."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _port(listener: SocketListener) -> int:
    found: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 (of anyio)
    return found


async def _head(stream: SocketStream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
        head += await stream.receive()
    return head.partition(b"\r\n\r\n")[0]


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><title>mcpgen</title><p>{text}</p>".encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
        "content-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\n\r\n"
    )
    return head.encode("ascii") + body
