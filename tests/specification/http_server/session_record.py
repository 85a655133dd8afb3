"""What a judge remembers of one session: who has said what, and which event was on which stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.harness.client_state import keyed
from tests.harness.server_recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.client_state import Asked
    from tests.harness.closed_documents import Json, Problem
    from tests.specification.http_server.exchange_record import Heard
    from tests.specification.http_server.strict_events import Event


class Owned(Recorder):
    """A recorder that can take back what it has heard: a request that HTTP refuses was never a message.

    Attributes:
        may_have_lost: Whether the server may have asked what never arrived, and take that back where it does.
    """

    may_have_lost = False

    def mark(self) -> tuple[list[Asked], int]:
        """Return what `withdraw` needs to go back to now."""
        return list(self._open), self._unreadable

    def withdraw(self, mark: tuple[list[Asked], int]) -> None:
        """Forget the requests that were heard since *mark*."""
        before, self._unreadable = mark
        self._open = [each for each in self._open if each in before]

    def _cancelled(self, identity: Json) -> None:
        # Where messages may cross, what was said before is still on its way, or kept for a client that comes back.
        if not self.may_cross:
            super()._cancelled(identity)

    def _notification(self, message: Mapping[str, Json]) -> Iterator[Problem]:
        """Judge a notification; over HTTP the cancellation of a stream comes before its end, and not behind."""
        params = message.get("params", {})
        is_lenient = self.may_have_lost or self.may_cross
        if is_lenient and message.get("method") == "notifications/cancelled" and self._session is not None:
            yield from self._judged(message, self._session)
            return
        key = keyed(params.get("requestId")) if isinstance(params, dict) else None
        stream = self._streams.get(key) if key is not None else None
        yield from super()._notification(message)
        if message.get("method") == "notifications/cancelled" and key is not None and stream is not None:
            self._streams[key] = stream


class Stream:
    """What would have come on one connection that was never lost.

    Attributes:
        owed: The ids of the requests that it has to answer.
        ids: Of its events, in their order.
        is_taken: Whether a client has come back to it, so that no other connection is owed anything.
    """

    def __init__(self, owed: list[Any]) -> None:
        self.owed = owed
        self.ids: list[str] = []
        self.is_taken = False


class Log:
    """What is known of one session.

    Attributes:
        recorder: What judges its messages.
        revision: What it speaks, once that is agreed on.
        is_over: Whether it was ended.
    """

    def __init__(self, recorder: Owned) -> None:
        self.recorder = recorder
        self.revision: str | None = None
        self.is_over = False
        self._cancelled: set[Any] = set()
        self._events: dict[str, tuple[Stream, str | None]] = {}

    def heard(self, messages: list[Any]) -> None:
        """Take the messages of a client."""
        for each in messages:
            if isinstance(each, dict) and each.get("method") == "initialize":  # it ends what is open
                self._cancelled |= {keyed(own.message["id"]) for own in self.recorder.unanswered if own.message != each}
            if isinstance(each, dict) and each.get("method") == "notifications/cancelled":
                params = each.get("params")
                identity = params.get("requestId") if isinstance(params, dict) else None
                if isinstance(identity, str | int):
                    self._cancelled.add(keyed(identity))

    def is_cancelled(self, identity: Any) -> bool:
        """Whether the client has cancelled the request *identity*."""
        return keyed(identity) in self._cancelled

    def resumes(self, heard: Heard, last: str | None) -> None:
        """Take that a client opens a stream, or comes back to one where it has seen *last*."""
        if heard.exchange.method == "GET" and last in self._events:
            heard.stream, _ = self._events[last or ""]
            heard.seen = heard.stream.ids.index(last or "")
            heard.ids = list(heard.stream.owed)
            heard.is_resumed = heard.stream.is_taken = True
        else:
            heard.stream = Stream(list(heard.ids))

    def place(self, heard: Heard, event: Event) -> tuple[str | None, bool]:
        """Take an event; return what is wrong with its place, and whether it is a new one."""
        stream, identity = heard.stream, event.event_id or ""
        if stream is None:
            return None, True
        before = self._events.get(identity)
        if before is None:
            self._events[identity] = (stream, event.data)
            stream.ids.append(identity)
            heard.seen = len(stream.ids) - 1
            return None, True
        if before[0] is not stream:
            return (f"the event {identity} was on another stream (2025-11-25, Resumability and Redelivery, 2)", False)
        at = stream.ids.index(identity)
        if at <= heard.seen or not heard.is_resumed:
            return f"the id {identity} was used before (2025-11-25, Resumability and Redelivery, 1)", True
        heard.seen = at
        if event.data != before[1]:
            return f"the event {identity} is not what it was (2025-11-25, Resumability and Redelivery, 1)", True
        return None, False
