"""A listening socket whose connections have a bound, which addresses share.

Theory of operation. libuv accepts one connection in each turn of the event loop. If hundreds of connections are busy,
a turn takes a tenth of a second, so a client that opens a thousand connections would keep others waiting for minutes.
So all connections that wait are accepted at once.

Each connection takes a file descriptor, and some kilobytes. A process without a free file descriptor can neither accept
connections nor open files. So the number of connections has a bound below that of file descriptors. At the bound, the
address that has the most connections loses its oldest one to an address that has fewer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.server.client_address import site_of
from mcpgen.runtime.server.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.uvicorn_limits import BoundedProtocol

__all__ = ["Listener", "connection_quota"]

# Each takes up to 16 KiB before its first request.
MAX_CONNECTIONS: Final = 10_000

# The part of the file descriptors that connections do not take. Most of it is for those that are being closed, which
# `Quota` counts apart; the rest is for the files of the server.
_SPARE: Final = 4

# How many connections one turn of the event loop accepts; each takes a tenth of a millisecond.
_MAX_ACCEPTED: Final = 128

# How many connections one turn refuses; each takes some microseconds.
_MAX_REFUSED: Final = 1024

# How long to wait for a file descriptor, as asyncio does.
_PAUSE_SECONDS: Final = 1

_LOG: Final = logging.getLogger("mcpgen.http")


def connection_quota() -> Quota:
    """Return the bound of all connections of this process."""
    if sys.platform == "win32":
        return Quota(MAX_CONNECTIONS, 0)
    import resource  # noqa: PLC0415 (Windows does not have it)

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return Quota(MAX_CONNECTIONS, 0)
    return Quota(max(1, min(MAX_CONNECTIONS, descriptors - descriptors // _SPARE)), 0)


class Listener:
    """Accept the connections of a listening socket on the running event loop, until it is closed.

    Args:
        listening: The socket. It is bound, and is not closed here.
        backlog: How many connections the system keeps until they are accepted.
        quota: Counts the connections, by address.
        make: Returns the protocol of a new connection.
    """

    def __init__(
        self, listening: socket.socket, backlog: int, quota: Quota, make: Callable[[], BoundedProtocol]
    ) -> None:
        self._socket = listening
        self._quota = quota
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)  # noqa: FBT003 (of the standard library)
        listening.listen(backlog)
        self._resume()

    def close(self) -> None:
        """Accept those that wait, and no more."""
        if self._pause is None:
            self._accept_all()
        self._loop.remove_reader(self._socket)
        if self._pause is not None:
            self._pause.cancel()

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket, self._accept_all)

    def _accept_all(self) -> None:
        accepted = refused = 0
        while accepted < _MAX_ACCEPTED and refused < _MAX_REFUSED:
            try:
                made, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptor is free: the socket stays readable
                _LOG.error("cannot accept connections: %s", error.strerror)
                self._loop.remove_reader(self._socket)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._resume)
                return
            if self._admit(made, address[0]):
                accepted += 1
            else:
                refused += 1
                made.close()

    def _admit(self, made: socket.socket, address: str) -> bool:
        protocol = self._make()
        place = self._quota.admit(site_of(address), 0, give_way=protocol.abort)
        if place is None:
            return False
        protocol.place = place
        task = self._loop.create_task(self._open(made, protocol))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return True

    async def _open(self, made: socket.socket, protocol: BoundedProtocol) -> None:
        try:
            made.setblocking(False)  # noqa: FBT003 (of the standard library)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(lambda: protocol, made)
        except OSError:  # the client has closed it
            made.close()
            if protocol.place is not None:
                protocol.place.release()
