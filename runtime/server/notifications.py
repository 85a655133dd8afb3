"""Notifications from the client, and those to it: progress, log entries, and others that a handler sends.

Outgoing params are written in the newest revision, or in the native one, and adapted to the peer's.

Spec:
    2025-11-25, basic/index, "Notifications"; basic/lifecycle; basic/utilities/cancellation; basic/utilities/progress;
    server/utilities/logging; 2026-07-28, the same, and basic/patterns/progress.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod, UnsupportedByPeer, UsageError, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.argument_checks import check_texts
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.extensions import require_extension
from mcpgen.runtime.protocol.log_levels import LEVELS, Level
from mcpgen.runtime.protocol.malformed import same_id
from mcpgen.runtime.protocol.messages import Notification
from mcpgen.runtime.protocol.newest import NEWEST, models
from mcpgen.runtime.protocol.subscriptions import LIST_CHANGES, RESOURCE_UPDATED
from mcpgen.runtime.server.exchange import Exchange
from mcpgen.runtime.server.ledger import request_bytes
from mcpgen.runtime.server.subscriptions import notify_change

if TYPE_CHECKING:
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = [
    "CANCELLED",
    "brief_cancellation",
    "receive_notification",
    "send_extension_notification",
    "send_log",
    "send_notification",
    "send_progress",
]

CANCELLED: Final = "notifications/cancelled"

_LOG = logging.getLogger("mcpgen.session")

# 2025-11-25, server/utilities/logging: until a client sets a level, the server decides.
DEFAULT_LEVEL: Level = "info"

_ELICITATION_COMPLETE: Final = "notifications/elicitation/complete"

# The engine sends these itself.
_BUILTIN = frozenset({CANCELLED, "notifications/subscriptions/acknowledged"})


class _Cancelled(Struct, rename="camel"):
    request_id: str | int | float
    reason: Any = None


_decode_cancelled = msgspec.json.Decoder(_Cancelled).decode

# What the log shows of a reason.
_MAX_REASON_CHARS: Final = 200


def receive_notification(session: ServerSession, notification: Notification) -> None:
    """Act on a notification of the client; ignore one that is unknown or not valid, since it gets no response."""
    method = notification.method
    if method == CANCELLED:
        _cancel(session, notification.params)
        return
    if session.peer is None:
        return  # a stateless client sends no other (2026-07-28, schema: ClientNotification)
    if method == "notifications/initialized":
        session.is_initialized = True
    handler = session.handlers.notification_handler(session.peer.revision, method)
    if handler is None:
        return
    try:
        params = handler.codec.params(notification.params)
    except (InvalidPayload, AdaptationError) as error:
        peer, reading = session.peer, session.engine.reading
        normalized = reading.payload(peer.revision, method, "notification", "client", notification.params)
        if normalized is not None:
            receive_notification(session, Notification(method, normalized))
            return
        _LOG.warning("the notification %s of the client is ignored: %s", method, error)
        return
    size = request_bytes(notification.params)
    session.output.start_notification_handler(handler.call, params, session.peer, size)


def brief_cancellation(params: Raw | UnsetType) -> bytes | None:
    """Return a cancellation with *params*, and with the start of its reason; None if it is malformed."""
    try:
        found = _decode_cancelled(b"{}" if isinstance(params, UnsetType) else params)
    except (msgspec.DecodeError, RecursionError):
        return None
    reason = {"reason": found.reason[:_MAX_REASON_CHARS]} if isinstance(found.reason, str) else {}
    return envelope.encode_notification(CANCELLED, msgspec.json.encode({"requestId": found.request_id, **reason}))


def _cancel(session: ServerSession, params: Raw | UnsetType) -> None:
    """Stop a request that the client has cancelled.

    Spec:
        2025-11-25, basic/utilities/cancellation, "Behavior Requirements": one that is unknown, over or malformed is
        ignored; no response is sent; "Implementation Notes": log the reason.
    """
    try:
        cancelled = _decode_cancelled(b"{}" if isinstance(params, UnsetType) else params)
    except (msgspec.DecodeError, RecursionError):
        return
    request_id = same_id(cancelled.request_id)
    found = None if request_id is UNSET else session.exchanges.pop(request_id, None)
    if found is None:
        return
    reason = quoted(cancelled.reason) if isinstance(cancelled.reason, str) else "no reason"
    _LOG.info("the client has cancelled the request %r: %s", request_id, reason)
    if isinstance(found, Exchange):
        session.stop(found)
        return
    session.release(found)
    if found.on_cancel is not None:
        found.on_cancel()
    session.drop(found)


def send_progress(exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
    """Send progress, if the request has a token for it; progress that does not grow is not sent.

    Raises:
        UsageError: `progress` or `total` is not a finite number, or `message` is not a string.

    Spec:
        2025-11-25, basic/utilities/progress: "MUST increase"; "MUST stop after completion".
    """
    for name, each in (("progress", progress), ("total", total)):
        value: object = each
        if not isinstance(value, int | float) and (name == "progress" or value is not None):
            raise UsageError(f"`{name}` must be a number, not {value!r}")
    check_texts(message=message)
    try:
        are_finite = math.isfinite(progress) and (total is None or math.isfinite(total))
    except OverflowError as error:  # of a whole number
        raise UsageError("`progress` and `total` must be less than 1.8e308") from error
    if not are_finite:
        raise UsageError(f"`progress` and `total` must be finite numbers, not {progress} and {total}")
    request = exchange.request
    if request is None or exchange.has_ended or isinstance(request.progress_token, UnsetType):
        return
    if exchange.progress is not None and progress <= exchange.progress:
        return
    exchange.progress = progress
    params = models.ProgressNotificationParams(
        progress_token=request.progress_token,
        progress=progress,
        total=UNSET if total is None else total,
        message=UNSET if message is None else message,
        meta=_meta(exchange),
    )
    _send(exchange, "notifications/progress", params)


def send_log(handlers: HandlerTable, exchange: Exchange, level: Level, data: object, logger: str | None) -> None:
    """Send a log entry, if the client asked for entries of this level.

    Raises:
        UsageError: There is no such level, `logger` is not a string, or the server has not declared the capability.

    Spec:
        2026-07-28, server/utilities/logging, "Per-request log level"; 2025-11-25, same, "Capabilities".
    """
    if level not in LEVELS:
        raise UsageError(f"`level` is {level!r}; it must be one of {', '.join(LEVELS)}")
    check_texts(logger=logger)
    request = exchange.request
    if request is None or exchange.has_ended:
        return
    revision = request.peer.revision
    if not offers(handlers.capabilities(revision), revision, "notifications/message"):
        raise UsageError(
            "this server has not declared the capability `logging`, so it cannot send log entries: return it from the "
            "handlers' `capabilities` method"
        )
    is_stateless = request.peer.era == "stateless"
    least = request.log_level if is_stateless else request.session.log_level
    if isinstance(least, UnsetType):
        if is_stateless:
            return
        least = DEFAULT_LEVEL
    if LEVELS.index(level) < LEVELS.index(least):
        return
    params = models.LoggingMessageNotificationParams(
        level=level, data=data, logger=UNSET if logger is None else logger, meta=_meta(exchange)
    )
    _send(exchange, "notifications/message", params)


def send_notification(
    session: ServerSession, exchange: Exchange | None, method: str, params: Any, *, terms: str
) -> None:
    """Send any notification; its params are in the revision *terms*.

    Notifications that a client subscribes to or asks for are sent to those clients only.

    Raises:
        UnsupportedByPeer: The client's revision has no such notification, or the server has not declared it.
        UsageError: mcpgen sends this notification itself.
    """
    if method in _BUILTIN:
        raise UsageError(f"{method} cannot be sent by a handler, because mcpgen sends it itself; remove the call")
    if method == "notifications/progress" and exchange is not None:
        send_progress(exchange, params.progress, _optional(params.total), _optional(getattr(params, "message", UNSET)))
        return
    if method == "notifications/message" and exchange is not None:
        send_log(session.handlers, exchange, params.level, params.data, _optional(params.logger))
        return
    if method in LIST_CHANGES or method == RESOURCE_UPDATED:
        notify_change(session, method, params.uri if method == RESOURCE_UPDATED else None)
        return
    peer = session.peer if exchange is None else exchange.peer
    if peer is None:
        raise UnsupportedByPeer(revision="", what=method, reason="the session is not initialized")
    try:
        data = codec(terms, peer.revision).outgoing_notification(method).params(params)
    except (AdaptationError, UnknownMethod) as error:
        if isinstance(error, AdaptationError) and error.service == "input":
            return  # the end of an elicitation by URL: a stateless client shows it by its retry
        reason = error.reason if isinstance(error, AdaptationError) else str(error)
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=reason) from error
    if not offers(session.handlers.capabilities(peer.revision), peer.revision, method):
        raise UnsupportedByPeer(
            revision=peer.revision, what=method, reason="this server has not declared the capability for it"
        )
    if method == _ELICITATION_COMPLETE and session.engine.elicitation_ids.is_of_others(
        params.elicitation_id, session.principal
    ):
        # 2025-11-25, client/elicitation, "Completion Notifications for URL Mode Elicitation".
        _LOG.warning("%s was not sent: its elicitation was sent to another client", method)
        return
    _send_marked(session, exchange, method, data)


def _send_marked(session: ServerSession, exchange: Exchange | None, method: str, data: bytes | UnsetType) -> None:
    """Send a notification whose params name the task of *exchange*, if it has one."""
    if exchange is not None and exchange.task is not None and exchange.task.marks_messages:
        data = exchange.task.marked(data)
    session.output.send(envelope.encode_notification(method, data), exchange)


def send_extension_notification(session: ServerSession, exchange: Exchange | None, method: Any, params: Any) -> None:
    """Send a notification of an extension; *method* is a constant of its package.

    Raises:
        UnsupportedByPeer: The client has not declared the extension.
    """
    peer = session.peer if exchange is None else exchange.peer
    if peer is None:
        raise UnsupportedByPeer(revision="", what=method.name, reason="the session is not initialized")
    for each in session.handlers.extensions:
        outgoing = each.outgoing(method)
        if outgoing is not None:
            require_extension(peer, each.id, method.name)
            _send_marked(session, exchange, method.name, outgoing.params(params))


def _optional(value: Any) -> Any:
    return None if value is UNSET else value


def _send(exchange: Exchange, method: str, params: Any) -> None:
    request = exchange.request
    if request is not None:
        data = codec(NEWEST, request.peer.revision).outgoing_notification(method).params(params)
        request.session.output.send(envelope.encode_notification(method, data), exchange)


def _meta(exchange: Exchange) -> dict[str, object] | UnsetType:
    """Return the metadata that names the task of *exchange*, if it has one."""
    return UNSET if exchange.task is None else exchange.task.related()
