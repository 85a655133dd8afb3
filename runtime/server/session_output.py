"""What a session needs of its connection: it writes messages and runs handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpgen.runtime.transports.event_loops import next_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
    from mcpgen.runtime.server.exchange import Call, Exchange, OpenRequest, ResponseBody

__all__ = ["SessionOutput"]


class SessionOutput:
    """What a session needs of its connection: it writes messages and runs handlers.

    This base does nothing. It is the output of a stateless request that has ended, while its handler waits for the
    client's retry.

    Attributes:
        is_only_client: Whether a notification may wait for this client if the server has no other one now.
    """

    __slots__ = ()

    is_only_client: bool = False

    def send(self, message: bytes, about: Exchange | OpenRequest | None, /) -> None:
        """Write a request or a notification that belongs to *about*; None: to no request."""

    def respond(self, message: bytes, request: OpenRequest | None, /) -> None:
        """Write the response to *request* or to its batch; None: to a message that was refused when it was decoded."""

    def batch_charge(self) -> Callable[[int], bool]:
        """Return what charges bytes for the responses to the batch that is being read: see `BatchResponse`."""
        return lambda _size: True

    def keep_answer(self, _exchange: Exchange, _size: int, /) -> bool:
        """Count *size* bytes more with the request of an exchange; return whether there is room."""
        return True

    def reply_in_turn(self, request: OpenRequest, body: Callable[[], ResponseBody], /) -> None:
        """Answer *request*, which has no handler, with what *body* returns; wait while the client does not read."""
        request.session.reply(request, body())

    def drop(self, request: OpenRequest | None, /) -> None:
        """Note that *request*, or its batch, gets no response; None as for `respond`."""

    def held(self, request: OpenRequest, /) -> None:
        """Note that *request* is answered later, although no handler runs for it."""

    def follow_task(self, request: OpenRequest, task_id: str, /) -> None:
        """Send the messages of a task with the answer to *request*, its open ``tasks/result``, if both can wait."""

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*."""

    def start_notification_handler(self, call: Call, params: object, peer: Peer, size: int) -> None:
        """Run a handler whose result *peer* does not wait for, and whose *params* cost *size* bytes."""

    def flush_soon(self, exchange: Exchange) -> None:
        """Call `input_required.flush_requests` when the handler had time to make all its requests."""

    async def drain(self, _about: Exchange | OpenRequest | None, /) -> None:
        """Wait until the peer has read most of the messages about an exchange; here, let others go on."""
        await next_turn()

    async def wait_turn(self) -> None:
        """Wait for a turn of the event loop that has time to encode more."""

    def disconnect(self, _exchange: Exchange, _retry_ms: int | None, /) -> bool:
        """Close the stream of the response to an exchange if its client can reconnect; return whether it can."""
        return False

    def notify_change(self, method: str, uri: str | None) -> None:
        """Send the notification *method* if the client is subscribed to it."""

    @property
    def is_listening(self) -> bool:
        """Whether the client may get notifications of changes before it sends another request."""
        return True

    def notify_all_changes(self) -> None:
        """Send the notifications of all changes that the client is subscribed to, because some may have been lost."""

    def notify_extension(self, notification: ExtensionNotification, /) -> None:
        """Send *notification* if the client is subscribed to it, and reads."""

    async def deliver_extension(self, notification: ExtensionNotification, /) -> None:
        """Send *notification* if the client is subscribed to it, as the client reads; only if `is_only_client`."""

    def context(self, peer: Peer, /) -> Any:
        """Return a context for *peer* that belongs to no request."""

    def expire_later(self) -> None:
        """Call `input_required.expire_parked` from now on, whenever it has something to do."""
