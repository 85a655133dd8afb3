"""What a client tells without wanting an answer: it is ready, it does not want an answer any more, something changed.

Spec:
    2025-11-25, basic/index, "Notifications"; basic/lifecycle; basic/utilities/cancellation; 2026-07-28, the same.

What a server tells its client without being asked for an answer: progress, log entries, changes.

Each notification is written in the terms of the newest revision, and adapted to the peer's.

Spec:
    2025-11-25, basic/utilities/progress, server/utilities/logging, server/resources, "Subscriptions"; 2026-07-28,
    basic/patterns/progress, server/utilities/logging, basic/patterns/subscriptions.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod, UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.log_levels import LEVELS, Level
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.protocol.subscriptions import LIST_CHANGES, RESOURCE_UPDATED
from mcpgen.runtime.server.builtin_methods import SUBSCRIPTION_ID, cancelled_id
from mcpgen.runtime.server.exchange import Exchange

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import Notification
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["change", "take_notification", "log", "notify", "progress"]

_LOG = logging.getLogger("mcpgen.session")


def take_notification(session: ServerSession, notification: Notification) -> None:
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


# 2025-11-25, server/utilities/logging: until a client sets a level, the server decides. `debug` is for whoever asks.
UNASKED_LEVEL: Level = "info"

# Whoever cancels has asked, and whoever acknowledges has been asked to listen: the engine, in both cases.
_ENGINES_OWN = frozenset({"notifications/cancelled", "notifications/subscriptions/acknowledged"})


def progress(exchange: Exchange, done: float, total: float | None, message: str | None) -> None:
    """Tell the client how far its request has come, if it asked for that; progress that does not grow is left out.

    Raises:
        UsageError: A number is not finite.

    Spec:
        2025-11-25, basic/utilities/progress: "MUST increase"; "MUST stop after completion".
    """
    if not math.isfinite(done) or (total is not None and not math.isfinite(total)):
        raise UsageError(f"progress is a finite number, not {done} of {total}")
    origin = exchange.origin
    if origin is None or exchange.has_ended or isinstance(origin.progress_token, UnsetType):
        return
    if exchange.progress is not None and done <= exchange.progress:
        return
    exchange.progress = done
    params = models.ProgressNotificationParams(
        progress_token=origin.progress_token,
        progress=done,
        total=UNSET if total is None else total,
        message=UNSET if message is None else message,
        meta=_meta(exchange),
    )
    _send(exchange, "notifications/progress", params)


def log(exchange: Exchange, level: Level, data: object, logger: str | None) -> None:
    """Tell the client of a log entry, if it wants to see entries of this level.

    Raises:
        UsageError: There is no such level, or the server has not declared that it logs.

    Spec:
        2026-07-28, server/utilities/logging, "Per-request log level"; 2025-11-25, same, "Capabilities".
    """
    if level not in LEVELS:
        raise UsageError(f"there is no log level {level!r}; there are {', '.join(LEVELS)}")
    origin = exchange.origin
    if origin is None or exchange.has_ended:
        return
    revision = origin.peer.revision
    if not offers(origin.session.service.capabilities(revision), revision, "notifications/message"):
        raise UsageError("a server that logs to its clients has to declare the capability `logging`")
    stateless = origin.peer.era == "stateless"
    least = origin.log_level if stateless else origin.session.level
    if isinstance(least, UnsetType):
        if stateless:
            return
        least = UNASKED_LEVEL
    if LEVELS.index(level) < LEVELS.index(least):
        return
    params = models.LoggingMessageNotificationParams(
        level=level, data=data, logger=UNSET if logger is None else logger, meta=_meta(exchange)
    )
    _send(exchange, "notifications/message", params)


def change(session: ServerSession, method: str, uri: str | None = None) -> None:
    """Tell a client of a change, on its session or on each of its streams, wherever it wants to hear of it.

    Spec:
        2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
    """
    peer = session.peer
    if peer is not None and session.is_ready and session.listening.hears(method, uri) and _offers(session, method):
        session.sink.send(_changed(peer.revision, method, uri, None), None)
    for stream in session.listening.streams_for(method, uri):
        message = _changed(stream.origin.peer.revision, method, uri, stream.origin.id)
        session.sink.send(message, stream.origin)


def _changed(revision: str, method: str, uri: str | None, stream: str | int | None) -> bytes:
    meta: Any = UNSET if stream is None else {SUBSCRIPTION_ID: stream}
    params: Any
    if method == RESOURCE_UPDATED:
        params = models.ResourceUpdatedNotificationParams(uri=uri or "", meta=meta)
    else:
        params = UNSET if stream is None else models.NotificationParams(meta=meta)
    return envelope.encode_notification(method, codec(NEWEST, revision).notice_out(method).outgoing(params))


def notify(session: ServerSession, exchange: Exchange | None, method: str, params: Any, *, terms: str) -> None:
    """Tell the client of *method*, whatever it is; params are in the terms of the revision *terms*.

    What a client has to want first is told if it wants it, and left out otherwise.

    Raises:
        UnsupportedByPeer: The client's revision has no such notification, or the server has not declared it.
        UsageError: The engine sends it, where it is due.
    """
    if method in _ENGINES_OWN:
        raise UsageError(f"{method} is sent by the engine, where it is due")
    if method == "notifications/progress" and exchange is not None:
        progress(exchange, params.progress, _given(params.total), _given(getattr(params, "message", UNSET)))
        return
    if method == "notifications/message" and exchange is not None:
        log(exchange, params.level, params.data, _given(params.logger))
        return
    if method in LIST_CHANGES or method == RESOURCE_UPDATED:
        change(session, method, params.uri if method == RESOURCE_UPDATED else None)
        return
    peer = session.peer if exchange is None else exchange.peer
    if peer is None:
        raise UnsupportedByPeer(revision="", what=method, reason="outside a request it has to have shaken hands")
    try:
        data = codec(terms, peer.revision).notice_out(method).outgoing(params)
    except (AdaptationError, UnknownMethod) as error:
        if isinstance(error, AdaptationError) and error.service == "input":
            return  # the end of an elicitation by url, which the retry of a stateless client tells by itself
        reason = error.reason if isinstance(error, AdaptationError) else str(error)
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=reason) from error
    if not offers(session.service.capabilities(peer.revision), peer.revision, method):
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason="this server has not declared it")
    session.sink.send(envelope.encode_notification(method, data), exchange)


def _given(value: Any) -> Any:
    return None if value is UNSET else value


def _send(exchange: Exchange, method: str, params: Any) -> None:
    origin = exchange.origin
    if origin is not None:
        data = codec(NEWEST, origin.peer.revision).notice_out(method).outgoing(params)
        origin.session.sink.send(envelope.encode_notification(method, data), exchange)


def _meta(exchange: Exchange) -> dict[str, object] | UnsetType:
    """Return the metadata that ties a notification to the task of its exchange, if that is one."""
    return UNSET if exchange.task is None else exchange.task.related()


def _offers(session: ServerSession, method: str) -> bool:
    """Whether the server has declared to its session that it may send *method*."""
    revision = session.revision
    return revision is not None and offers(session.declared, revision, method)
