"""What a client tells without wanting an answer: it is ready, it does not want an answer any more, something changed.

Spec:
    2025-11-25, basic/index, "Notifications"; basic/lifecycle; basic/utilities/cancellation; 2026-07-28, the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcpgen.runtime.engine.answering import cancelled_id
from mcpgen.runtime.engine.exchange import Exchange
from mcpgen.runtime.errors import AdaptationError, InvalidPayload

if TYPE_CHECKING:
    from mcpgen.runtime.engine.session import ServerSession
    from mcpgen.runtime.wire.messages import Notification

__all__ = ["hear"]

_LOG = logging.getLogger("mcpgen.session")


def hear(session: ServerSession, notification: Notification) -> None:
    """Take a notification; one that is unknown or not valid is ignored, since nobody could be told."""
    method = notification.method
    if method == "notifications/cancelled":
        _cancelled(session, notification)
        return
    if session.peer is None:
        return  # a stateless client has nothing else to tell (2026-07-28, schema: ClientNotification)
    if method == "notifications/initialized":
        session.is_ready = True
    listener = session.service.listener(session.peer.revision, method)
    if listener is None:
        return
    try:
        params = listener.codec.incoming(notification.params)
    except (InvalidPayload, AdaptationError) as error:
        _LOG.warning("%s is ignored: %s", method, error)
        return
    session.sink.tell(listener.call, params, session.peer)


def _cancelled(session: ServerSession, notification: Notification) -> None:
    """Stop what a client does not want any more.

    Spec:
        2025-11-25, basic/utilities/cancellation, "Behavior Requirements": what is unknown, over or malformed is
        ignored; no response is sent.
    """
    request_id = cancelled_id(notification.params)
    found = None if request_id is None else session.exchanges.pop(request_id, None)
    if found is None:
        return
    _LOG.info("request %r was cancelled", request_id)
    if isinstance(found, Exchange):
        session.stop(found)
        return
    if found.on_drop is not None:
        found.on_drop()
    session.dropped(found)
