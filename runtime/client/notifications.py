"""What a server tells without wanting an answer: progress, log entries, changes, and that it gives something up.

Spec:
    2025-11-25, basic/index, "Notifications", basic/utilities; 2026-07-28, basic/patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.client.incoming_requests import stop
from mcpgen.runtime.client.pending_request import Progress
from mcpgen.runtime.client.subscriptions import KINDS, Change
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod, quoted
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.newest import NEWEST

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.protocol.messages import Notification, RequestId

__all__ = ["take_notification"]


class _Meta(Struct):
    subscription: str | int | UnsetType = field(name="io.modelcontextprotocol/subscriptionId", default=UNSET)


class _About(Struct, rename="camel"):
    """What decides about whom a notification is told."""

    meta: _Meta | UnsetType = field(name="_meta", default=UNSET)
    request_id: str | int | UnsetType = UNSET


_decode_about = msgspec.json.Decoder(_About).decode


def take_notification(session: ClientSession, notification: Notification) -> None:
    """Take a notification; one that is unknown or not valid is ignored, since nobody could be told."""
    method, server = notification.method, session.server
    if server is None:  # it may follow so closely on the answer that agrees that nobody has read that yet
        if (
            len(session.early) < session.limits.max_in_flight
            and _size(session.early) < session.limits.max_buffered_bytes
        ):
            session.early.append(notification)
        return
    heard = session.offering.hearing(server.revision, method)
    try:
        if method == "notifications/progress":
            _progress(session, server.revision, notification)
        elif method in KINDS or method == "notifications/subscriptions/acknowledged":
            if not _stream(session, server.revision, notification):
                return
        elif method == "notifications/cancelled":
            _cancelled(session, _about(notification.params).request_id)
        elif heard is None:
            return
        if heard is not None:
            session.sink.tell(heard, notification.params)
    except (InvalidPayload, AdaptationError, UnknownMethod) as error:
        session.complain("the notification %s is ignored: %s", quoted(method), error)


def _size(notifications: list[Notification]) -> int:
    """Return about how many bytes they hold."""
    return sum(0 if isinstance(each.params, UnsetType) else len(memoryview(each.params)) for each in notifications)


def _progress(session: ClientSession, revision: str, notification: Notification) -> None:
    params = codec(NEWEST, revision, "client").notice_in(notification.method).incoming(notification.params)
    call = session.of_token(params.progress_token)
    if call is not None:  # else it came too late, or nobody wanted to know
        session.sink.moved(call)
        call.tell(Progress(params.progress, _given(params.total), _given(params.message)))


def _stream(session: ClientSession, revision: str, notification: Notification) -> bool:
    """Take what is told of a change, or of a stream; return whether anybody may be told.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Receiving Notifications": the id in the metadata says which stream.
    """
    params = codec(NEWEST, revision, "client").notice_in(notification.method).incoming(notification.params)
    stateless = session.server is not None and session.server.era == "stateless"
    stream: RequestId | None = None
    if stateless:
        meta = _about(notification.params).meta
        found = UNSET if isinstance(meta, UnsetType) else meta.subscription
        if isinstance(found, UnsetType) or found not in session.listening.streams:
            session.complain("%s is told on no stream of ours", quoted(notification.method))
            return False
        stream = found
    if notification.method == "notifications/subscriptions/acknowledged":
        if stream is not None:
            session.listening.acknowledge(stream, msgspec.to_builtins(params.notifications))
        return True
    kind = KINDS[notification.method]
    if kind == "tools" and session.on_tools_changed is not None:
        session.on_tools_changed()
    change = Change(kind, params.uri if kind == "resource" else None)
    if not session.listening.tell(change, notification.method, stream):
        session.complain("%s is told, and was not asked for", quoted(notification.method))
        return False
    return True


def _cancelled(session: ClientSession, request_id: RequestId | UnsetType) -> None:
    """Give up what the server does not want any more, or a stream that it ends.

    Spec:
        2025-11-25, basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation: a server cancels nothing but
        subscriptions.
    """
    if isinstance(request_id, UnsetType):
        return
    asked = session.asked.get(request_id)
    if asked is not None:
        stop(session, asked)
    call = session.calls.get(request_id)
    if call is not None and request_id in session.listening.streams:
        session.drop(call)
        session.listening.end(request_id)


def _about(params: Raw | UnsetType) -> _About:
    try:
        return _About() if isinstance(params, UnsetType) else _decode_about(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _About()


def _given(value: Any) -> Any:
    return None if value is UNSET else value
