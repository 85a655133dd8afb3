"""The responses to bodies that are refused, and what is done with the rest of these bodies.

Theory of operation. A body that is too long is refused before all of it has arrived. If the connection was closed at
once, the system would reset it when more arrives, and the client would often lose the response. So the server reads on
for a while, and drops what it reads. If a body is refused because it is slow, or has to make room, its connection is
closed at once.

Spec:
    RFC 9112, 9.6.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.http.server import responses

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from mcpgen.runtime.http.server.request_body import BodyRefused
    from mcpgen.runtime.http.server.responses import Receive, Send

__all__ = ["RefusedBodies"]

# Eight times as much as a body may have by default.
_MAX_DROPPED_BYTES: Final = 32 * 1024 * 1024

# A client that waits for the end of the connection gets it a second after its last byte.
_PART_SECONDS: Final = 1.0
_SECONDS: Final = 5.0

# Each can have 64 KiB that were not read yet. Beyond this number, connections are closed at once.
_MAX_AT_ONCE: Final = 64


class RefusedBodies:
    """Sends the responses to bodies that are refused."""

    def __init__(self) -> None:
        self._count = 0

    async def refuse(self, receive: Receive, send: Send, error: BodyRefused) -> None:
        """Answer the request whose body is refused because of *error*, and close its connection."""
        if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or self._count >= _MAX_AT_ONCE:
            await _send(send, error)
            return
        self._count += 1
        try:
            await _send(partial(_send_open, send), error)
            await _drop_rest(receive)
            await send({"type": "http.response.body"})
        finally:
            self._count -= 1


async def _send(send: Send, error: BodyRefused) -> None:
    # The rest of the body may not be read, so the connection cannot be used for another request.
    await responses.send_error(send, error.status, error.reason, headers=((b"connection", b"close"),))


async def _send_open(send: Send, message: MutableMapping[str, Any]) -> None:
    """Send *message*, but not the end of the response, at which the connection is closed."""
    await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)


async def _drop_rest(receive: Receive) -> None:
    rest = _MAX_DROPPED_BYTES
    is_last = False
    with anyio.move_on_after(_SECONDS):
        while rest > 0 and not is_last:
            is_last = True
            with anyio.move_on_after(_PART_SECONDS):
                message = await receive()
                rest -= len(message.get("body", b""))
                is_last = not message.get("more_body", False)  # also of `http.disconnect`
