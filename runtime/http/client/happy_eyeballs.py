"""Connecting to a host that has several addresses, as RFC 8305 ("Happy Eyeballs") says.

Addresses are tried in turn, one more every 250 ms; families alternate. asyncio can do so, too, but uvloop cannot, and
the error that asyncio raises does not tell why connecting failed.
"""

from __future__ import annotations

import asyncio
import socket
from itertools import chain, zip_longest
from typing import Any, Final

import anyio

from mcpgen.runtime.http.client.http_exchange import KEEP_ALIVE_OPTIONS

__all__ = ["open_socket"]

# RFC 8305, section 8, recommends this delay.
_NEXT_ADDRESS_SECONDS: Final = 0.25


async def open_socket(host: str, port: int) -> socket.socket:
    """Return a connected socket: that of the first address that answers.

    Raises:
        OSError: No address does; the error is the first one.
    """
    addresses = await _addresses(host, port)
    if len(addresses) == 1:
        return await _connected_socket(addresses[0])
    connected: list[socket.socket] = []
    errors: list[OSError] = []

    async def attempt(info: Any, done: anyio.Event) -> None:  # noqa: ANN401 (as `getaddrinfo` returns it)
        try:
            connected.append(await _connected_socket(info))
            group.cancel_scope.cancel()
        except OSError as error:
            errors.append(error)
        finally:
            done.set()

    try:
        async with anyio.create_task_group() as group:
            for info in addresses:
                done = anyio.Event()
                group.start_soon(attempt, info, done)
                with anyio.move_on_after(_NEXT_ADDRESS_SECONDS):
                    await done.wait()
    except BaseException:
        for each in connected:
            each.close()
        raise
    for each in connected[1:]:
        each.close()
    if not connected:
        raise errors[0]
    return connected[0]


async def _addresses(host: str, port: int) -> list[Any]:
    """Return the addresses of a host, its families in turn."""
    try:
        # A number takes no thread, which would cost more than connecting.
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, others)) if each is not None]


async def _connected_socket(info: Any) -> socket.socket:  # noqa: ANN401 (as `getaddrinfo` returns it)
    family, kind, protocol, _, address = info
    wire = socket.socket(family, kind, protocol)
    try:
        wire.setblocking(False)  # noqa: FBT003 (as sockets have it)
        for option in KEEP_ALIVE_OPTIONS:
            wire.setsockopt(*option)
        await asyncio.get_running_loop().sock_connect(wire, address)
    except BaseException:
        wire.close()
        raise
    return wire
