"""The notifications of a server: progress, log entries, changes, and cancellations.

Spec:
    2025-11-25, basic/index, "Notifications", basic/utilities; 2026-07-28, basic/patterns.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.client.pending_request import MAX_MESSAGE_CHARS, Progress
from mcpgen.runtime.client.subscriptions import CHANGE_KINDS, Change
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod, quoted
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.malformed import same_id
from mcpgen.runtime.protocol.messages import Notification
from mcpgen.runtime.protocol.newest import NEWEST, MetaKey

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.incoming_requests import IncomingRequests
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["handle_notification"]

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_ELICITATION_COMPLETE: Final = "notifications/elicitation/complete"


class _Meta(Struct):
    subscription: str | int | float | UnsetType = field(name=MetaKey.SUBSCRIPTION_ID, default=UNSET)


class _Address(Struct, rename="camel"):
    """The part of the params that says which stream or request a notification is for."""

    meta: _Meta | UnsetType = field(name="_meta", default=UNSET)
    request_id: str | int | float | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    elicitation_id: str | UnsetType = UNSET


class _Acknowledged(Struct):
    """The params of an acknowledgement, with the keys of extensions, which the type of the revision does not have."""

    notifications: dict[str, Any]


_LOG: Final = logging.getLogger("mcpgen.session")

_decode_address = msgspec.json.Decoder(_Address).decode
_decode_acknowledged = msgspec.json.Decoder(_Acknowledged).decode


def handle_notification(session: ClientSession, requests: IncomingRequests, notification: Notification) -> None:
    """Handle a notification. Ignore one that is unknown or invalid: a notification has no response."""
    method, server = notification.method, session.server
    if server is None:
        # It may come in the same read as the response that agrees on the revision, which no task has seen yet.
        if _has_room(session):
            session.early_notifications.append(notification)
        return
    try:
        _handle(session, requests, notification, server.revision)
    except (InvalidPayload, AdaptationError, UnknownMethod) as error:
        normalized = session.reading.payload(server.revision, method, "notification", "server", notification.params)
        if normalized is None:
            session.warn("the notification %s is ignored: %s", quoted(method), error)
        else:
            handle_notification(session, requests, Notification(method, normalized))


def _handle(session: ClientSession, requests: IncomingRequests, notification: Notification, revision: str) -> None:
    """Handle a notification of a server whose revision is known.

    Raises:
        InvalidPayload: The revision does not allow its params.
        AdaptationError: The newest revision cannot express them.
        UnknownMethod: The revision has no such notification.
    """
    method = notification.method
    handler = session.features.notification_handler(revision, method)
    if method == "notifications/progress":
        _handle_progress(session, revision, notification)
    elif method in CHANGE_KINDS or method == _ACKNOWLEDGED:
        if not _handle_change(session, revision, notification):
            return
    elif method == "notifications/cancelled":
        _handle_cancelled(session, requests, _address(notification.params))
    elif method == _ELICITATION_COMPLETE:
        if not _is_open_elicitation(session, notification):
            return
    elif handler is None or not _is_on_a_stream(session, notification):
        return
    if handler is not None:
        session.output.queue_notification(handler, notification.params)


def _has_room(session: ClientSession) -> bool:
    early = session.early_notifications
    size = sum(_kept_bytes(each) for each in early)
    return len(early) < session.limits.max_in_flight and size < session.limits.max_buffered_bytes


def _kept_bytes(notification: Notification) -> int:
    params = notification.params
    # A server can choose a method of megabytes.
    return sys.getsizeof(notification.method) + (0 if isinstance(params, UnsetType) else len(memoryview(params)))


def _handle_progress(session: ClientSession, revision: str, notification: Notification) -> None:
    params = codec(NEWEST, revision, "client").incoming_notification(notification.method).params(notification.params)
    request = session.by_token(params.progress_token)
    if request is not None:  # otherwise it came too late, or the token is unknown
        session.output.extend_deadline(request)
        message = None if isinstance(params.message, UnsetType) else params.message[:MAX_MESSAGE_CHARS]
        request.add_progress(Progress(params.progress, _or_none(params.total), message))


def _handle_change(session: ClientSession, revision: str, notification: Notification) -> bool:
    """Handle a change, or the acknowledgement of a stream. Return whether a handler may run.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Receiving Notifications": the id in the metadata names the stream.
    """
    params = codec(NEWEST, revision, "client").incoming_notification(notification.method).params(notification.params)
    stream_id: RequestId | None = None
    if session.is_stateless:
        found = _stream_id(notification)
        if isinstance(found, UnsetType) or found not in session.subscriptions.streams:
            session.warn(
                "the notification %s is ignored: its `_meta` does not name an open stream", quoted(notification.method)
            )
            return False
        stream_id = found
    if notification.method == _ACKNOWLEDGED:
        if stream_id is not None:
            acknowledged = _acknowledged(notification, revision)
            session.subscriptions.acknowledge(stream_id, acknowledged, _kept_bytes(notification))
        return True
    kind = CHANGE_KINDS[notification.method]
    change = Change(kind, params.uri if kind == "resource" else None)
    session.changed(change)
    if not session.subscriptions.dispatch(change, notification.method, stream_id):
        session.warn(
            "the notification %s is ignored: the client has not requested it on this stream",
            quoted(notification.method),
        )
        return False
    return True


def _acknowledged(notification: Notification, revision: str) -> dict[str, Any]:
    """Return the filter as the server wrote it.

    Raises:
        InvalidPayload: A key of an extension has a value that Python does not read, such as 1e400.
    """
    written: Any = notification.params  # they are there: the revision requires the filter
    try:
        return _decode_acknowledged(written).notifications
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = f"the params of {notification.method}"
        raise InvalidPayload(revision=revision, pointer="", what=what, reason=str(error)) from None


def _is_open_elicitation(session: ClientSession, notification: Notification) -> bool:
    """Whether the completed elicitation is known, and was not completed before.

    Spec:
        2025-11-25, client/elicitation, "Completion Notifications for URL Mode Elicitation".
    """
    found = _address(notification.params).elicitation_id
    return not isinstance(found, UnsetType) and session.url_elicitations.complete(found)


def _is_on_a_stream(session: ClientSession, notification: Notification) -> bool:
    """Whether a notification that names a stream names an open one; others are about a request.

    Spec:
        2025-11-25, basic/index, "_meta": the key has no meaning in a handshake revision.
    """
    found = _stream_id(notification) if session.is_stateless else UNSET
    if isinstance(found, UnsetType) or found in session.subscriptions.streams:
        return True
    session.warn("the notification %s is ignored: its `_meta` names no open stream", quoted(notification.method))
    return False


def _handle_cancelled(session: ClientSession, requests: IncomingRequests, address: _Address) -> None:
    """Cancel a request of the server, or end a stream.

    Spec:
        2025-11-25, basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation: a server cancels nothing but
        subscriptions.
    """
    request_id = same_id(address.request_id)
    if isinstance(request_id, UnsetType):
        return
    if request_id in requests.open or request_id in session.subscriptions.streams:
        reason = "without a reason" if isinstance(address.reason, UnsetType) else quoted(address.reason)
        _LOG.info("the server cancels its request or the stream %r: %s", request_id, reason)
    requests.cancel(request_id)
    request = session.pending.get(request_id)
    if request is not None and request_id in session.subscriptions.streams:
        session.forget(request)
        session.subscriptions.end_stream(request_id)


def _stream_id(notification: Notification) -> RequestId | UnsetType:
    """Return the id of the stream that the metadata of *notification* names."""
    meta = _address(notification.params).meta
    return UNSET if isinstance(meta, UnsetType) else same_id(meta.subscription)


def _address(params: Raw | UnsetType) -> _Address:
    try:
        return _Address() if isinstance(params, UnsetType) else _decode_address(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Address()


def _or_none(value: Any) -> Any:
    return None if value is UNSET else value
