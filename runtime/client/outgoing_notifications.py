"""The notifications of a client to its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from mcpgen.runtime.client.declared_methods import unsupported
from mcpgen.runtime.client.extensions import find_extension
from mcpgen.runtime.client.pending_request import fresh_error
from mcpgen.runtime.errors import AdaptationError, UsageError

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.outgoing_requests import RequestSender
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.codec import Codec

__all__ = ["OutgoingNotifications"]

_ROOTS_CHANGED: Final = "notifications/roots/list_changed"
# The client sends these by itself.
_CANCELLED: Final = "notifications/cancelled"
_RESERVED_NOTIFICATIONS: Final = frozenset({"notifications/initialized", _CANCELLED})
_HOW_TO_CANCEL: Final = (
    "; to cancel a request, cancel the asyncio or trio task that awaits it, or, with a blocking client, pass "
    "`timeout_seconds` to its call"
)


class OutgoingNotifications:
    """Encodes notifications for the server's revision, and sends them.

    Args:
        session: The session with the server.
        server: The server, in the agreed revision.
        translation: Encodes values of the native revision.
        sender: Waits until the connection has room.
    """

    def __init__(self, session: ClientSession, server: ServerPeer, translation: Codec, sender: RequestSender) -> None:
        self._session = session
        self._server = server
        self._codec = translation
        self._sender = sender

    async def send(self, method: Any, params: Any) -> None:
        """Send a notification of the generated ``methods`` of the native revision."""
        name: str = method.name
        if name in _RESERVED_NOTIFICATIONS:
            hint = _HOW_TO_CANCEL if name == _CANCELLED else ""
            raise UsageError(f"the client sends {name} itself, so callers must not send it{hint}")
        if name == _ROOTS_CHANGED:
            self._session.features.check_roots_may_change(self._server.revision)
        self._check_open()
        extension = find_extension(self._session.features.extensions, method)
        if extension is not None:
            extension.require(self._server, name)
            await self._send(name, extension.outgoing_notification(name).params(params))
            return
        try:
            encoded = self._codec.outgoing_notification(name).params(params)
        except AdaptationError as error:
            if error.service == "roots":  # a server of this revision requests the roots each time that it needs them
                return
            raise unsupported(self._server, name, error.reason) from error
        await self._send(name, encoded)

    async def roots_changed(self) -> None:
        """Notify a server of a handshake revision. Other servers request the roots each time that they need them."""
        self._check_open()
        if self._session.is_stateless:
            return
        self._session.features.check_roots_may_change(self._server.revision)
        await self._send(_ROOTS_CHANGED, UNSET)

    async def _send(self, method: str, params: Any) -> None:
        await self._sender.wait_for_room(method)
        self._session.notify(method, params)

    def _check_open(self) -> None:
        if self._session.failure is not None:
            raise fresh_error(self._session.failure)
