"""A judge of all that an application of ASGI says over HTTP: the recorder of servers, with the rules of the transport.

It hears each request when its body is complete, each response as it is sent, and holds them against the revision that
they belong to: that of the session, or that which the request states. What the runtime thinks of a request is never
asked. A site ends with `Overseer.verify`.

Theory of operation. Every message is heard by one `Recorder`: that of its session, or, in the stateless era, one that
lives as long as the exchange. What belongs to another session, or to another request, is then something that nobody has
asked for, which a recorder reports. An event that is sent again is not heard again; it must be the one that it was, on
the stream that it was on, behind what the client has seen.

Spec:
    The rules name their places.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.harness.client_state import ERAS, META, keyed
from tests.specification.http_server import response_rules
from tests.specification.http_server.exchange_record import Heard, Kind
from tests.specification.http_server.session_record import Log, Owned
from tests.specification.http_server.strict_events import Event, EventText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.specification.http_server.asgi_exchange import Exchange


class Violation(NamedTuple):
    """A rule that a response breaks."""

    exchange: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}\n    {self.exchange}"


class Overseer:
    """Judges the exchanges of one application.

    Args:
        served: The revisions that the server serves, oldest first.
        declared: What it declares to stateless clients of a revision.
        path: The endpoint of Streamable HTTP.
        sse_path: Where streams of HTTP+SSE are opened.
        message_path: Where what belongs to them is posted.
    """

    def __init__(
        self,
        served: Iterable[str],
        declared: Callable[[str], Mapping[str, Any]],
        *,
        path: str = "/mcp",
        sse_path: str = "/sse",
        message_path: str = "/messages",
    ) -> None:
        self.violations: list[Violation] = []
        self.expects_failure = False
        self.is_closing = False
        self.may_cross = False  # whether clients cancel what may have been answered
        self._served = list(served)
        self._declared = declared
        self._paths = (path, sse_path, message_path)
        self._sessions: dict[str, Log] = {}
        self._old: dict[str, Log] = {}  # by the target that their messages are posted to
        self._heard: dict[int, Heard] = {}

    def verify(self) -> None:
        """Fail if a rule was broken."""
        if self.violations:
            raise AssertionError("the server broke the rules of HTTP\n" + "\n".join(map(str, self.violations)))

    def log_of(self, session: str | None) -> Log:
        """Return what is known of a session."""
        return self._sessions[session or ""]

    # --- steps of an exchange

    def asked(self, exchange: Exchange) -> None:
        """Take the request, which is complete."""
        heard = self._of(exchange)
        heard.is_after_end = heard.log is not None and heard.log.is_over
        if exchange.method == "POST" and heard.log is not None and heard.kind is not Kind.INITIALIZE:
            heard.mark = heard.log.recorder.mark()
            heard.log.recorder.heard(exchange.request)
            heard.log.heard(heard.messages)
        elif heard.kind in (Kind.STATELESS, Kind.INITIALIZE):
            heard.log = Log(self._recorder())
            heard.log.recorder.heard(exchange.request)

    def started(self, exchange: Exchange) -> None:
        """Take the status and the headers."""
        heard = self._of(exchange)
        heard.is_late = exchange.knows
        for reason in response_rules.of_headers(exchange):
            self._blame(exchange, reason)
        if exchange.status >= 500 and not self.expects_failure:
            self._blame(exchange, f"the server failed with {exchange.status}")
        if exchange.status >= 400 and heard.mark is not None and heard.log is not None:
            heard.log.recorder.withdraw(heard.mark)
        if heard.is_after_end and exchange.status < 400:
            self._blame(exchange, "a session that is over is 404 (2025-11-25, basic/transports, Session Management, 3)")
        if exchange.method == "DELETE" and exchange.status < 300 and heard.log is not None:
            heard.log.is_over = True
        self._session_header(exchange, heard)
        if exchange.is_stream:
            self._stream_began(exchange, heard)

    def sent(self, exchange: Exchange, data: bytes) -> None:
        """Take a part of the body."""
        heard = self._of(exchange)
        # One document may be on its way already when its client goes.
        if exchange.knows and heard.kind is Kind.STATELESS and (exchange.is_stream or heard.is_late):
            self._blame(
                exchange, f"nothing more for who is gone: {data[:100]!r} (2026-07-28, streamable-http, Cancellation)"
            )
        if exchange.is_stream:
            for event in heard.text.feed(data):
                self._event(exchange, heard, event)

    def ended(self, exchange: Exchange) -> None:
        """Take the end of the response."""
        heard = self._of(exchange)
        if exchange.has_left or exchange.path.startswith("/.well-known/"):  # a document that is no message
            return
        if exchange.is_stream:
            self._stream_ended(exchange, heard)
            return
        is_batch = heard.revision == "2025-03-26" and isinstance(heard.body, list)
        # In HTTP+SSE, what is posted is answered on the stream.
        asked_ids = [] if heard.kind is Kind.OLD_POST and exchange.status < 300 else [*heard.ids, *heard.salvaged]
        for reason in response_rules.of_body(exchange, asked_ids=asked_ids, is_batch=is_batch):
            self._blame(exchange, reason)
        try:
            said = json.loads(exchange.body) if exchange.body else None
        except ValueError:
            return
        if isinstance(said, dict | list) and (exchange.header("content-type") or "").startswith("application/json"):
            self._body_said(exchange, heard, said)
        if exchange.status < 300 and heard.ids and not exchange.body and heard.kind is not Kind.OLD_POST:
            self._unanswered(exchange, heard)

    def returned(self, exchange: Exchange) -> None:
        """Take that the application is through with an exchange."""
        heard = self._of(exchange)
        if exchange.failure is not None and not self.expects_failure:
            self._blame(exchange, f"the application failed: {exchange.failure!r}")
        elif not exchange.is_ended and not exchange.has_left and not self.is_closing:
            self._blame(exchange, "the application returned in the middle of a response")
        if heard.log is not None and (exchange.has_left or heard.may_reconnect):
            heard.log.recorder.may_have_lost = True
        if heard.kind is Kind.OLD_STREAM and heard.log is not None:
            heard.log.is_over = True

    # --- whole bodies

    def _body_said(self, exchange: Exchange, heard: Heard, said: Any) -> None:
        is_error = isinstance(said, dict) and "error" in said
        if heard.kind is Kind.STATELESS and isinstance(said, dict):
            for reason in response_rules.of_stateless_status(exchange.status, said):
                self._blame(exchange, reason)
            code = said["error"].get("code") if is_error else None
            if "id" not in said and heard.ids and code in (-32020, -32021, -32022, -32601, -32602):
                self._blame(exchange, "an error bears the id of its request (2026-07-28, basic/index, Error Responses)")
        if exchange.status < 300 or (is_error and "id" in said and heard.kind is Kind.STATELESS):
            answered = [
                each.get("id") for each in (said if isinstance(said, list) else [said]) if isinstance(each, dict)
            ]
            if exchange.status < 300 and {keyed(each) for each in answered} - {keyed(each) for each in heard.ids}:
                self._blame(exchange, "a response to another request (2025-11-25, Sending Messages to the Server, 5)")
            heard.owed = [each for each in heard.owed if keyed(each) not in {keyed(one) for one in answered}]
            if exchange.status < 300:
                self._unanswered(exchange, heard)
            if heard.log is not None:
                self._judge(exchange, heard, exchange.body)
            if heard.kind is Kind.INITIALIZE and isinstance(said, dict) and "result" in said:
                self._initialized(exchange, heard, said["result"])

    def _session_header(self, exchange: Exchange, heard: Heard) -> None:
        told = exchange.header("mcp-session-id")
        if told is None:
            return
        if heard.kind is Kind.STATELESS:
            self._blame(exchange, "no session id in the stateless era (2026-07-28, Earlier Streamable HTTP Revisions)")
        elif heard.kind is Kind.INITIALIZE and exchange.status == 200:
            if told in self._sessions:
                self._blame(exchange, "a session id is unique (2025-11-25, basic/transports, Session Management, 1)")
            elif heard.log is not None:
                self._sessions[told] = heard.log
        elif told != exchange.sent_header("mcp-session-id"):
            self._blame(exchange, "this is not the session of the request (2025-11-25, Session Management)")

    def _initialized(self, exchange: Exchange, heard: Heard, result: Mapping[str, Any]) -> None:
        if exchange.header("mcp-session-id") is None:
            self._blame(exchange, "we give every session an id, and this one has none")
        if heard.log is not None:
            heard.log.revision = result.get("protocolVersion")

    # --- streams

    def _stream_began(self, exchange: Exchange, heard: Heard) -> None:
        if exchange.status != 200:
            self._blame(exchange, f"a stream has the status 200, and not {exchange.status}")
        accepted = exchange.sent_header("accept") or ""
        if "text/event-stream" not in accepted and "*" not in accepted and heard.kind is not Kind.OLD_STREAM:
            self._blame(exchange, "the client has not said that it takes a stream")
        if heard.kind is Kind.STATELESS and exchange.header("x-accel-buffering") != "no":
            self._blame(exchange, "X-Accel-Buffering: no is missing (2026-07-28, streamable-http, Receiving Messages)")
        if heard.kind is Kind.OLD_STREAM:
            heard.log = Log(self._recorder())
            heard.log.revision = "2024-11-05"

    def _event(self, exchange: Exchange, heard: Heard, event: Event) -> None:
        if event.retry_ms is not None:
            heard.may_reconnect = True
        if heard.kind is Kind.OLD_STREAM:
            self._old_event(exchange, heard, event)
            return
        if event.name != "message":
            self._blame(exchange, f"an event of the kind {event.name} is no message")
        if heard.kind is Kind.STATELESS and (event.event_id is not None or event.retry_ms is not None):
            self._blame(exchange, "there is nothing to resume (2026-07-28, streamable-http, Receiving Messages)")
        is_new = True
        if event.event_id is not None and heard.log is not None:
            reason, is_new = heard.log.place(heard, event)
            if reason is not None:
                self._blame(exchange, reason)
        if not event.data:
            self._primed(exchange, heard, event)
            return
        if not heard.has_events and heard.kind is Kind.HANDSHAKE and self._primes(heard) and exchange.method == "POST":
            self._blame(exchange, "the priming event comes first (2025-11-25, basic/transports, Sending Messages, 6)")
        heard.has_events = True
        if heard.is_answered:
            self._blame(exchange, f"nothing comes behind the final response: {event.data[:200]}")
        self._message(exchange, heard, event, is_new=is_new)

    def _primes(self, heard: Heard) -> bool:
        return heard.revision is not None and list(ERAS).index(heard.revision) >= list(ERAS).index("2025-11-25")

    def _primed(self, exchange: Exchange, heard: Heard, event: Event) -> None:
        heard.has_events = True
        if heard.kind is not Kind.HANDSHAKE or not self._primes(heard):
            self._blame(exchange, "an event without data is none before 2025-11-25, nor in the stateless era")
        elif event.event_id is None and event.retry_ms is None:
            self._blame(exchange, "an event without data tells an id (2025-11-25, Sending Messages, 6)")

    def _message(self, exchange: Exchange, heard: Heard, event: Event, *, is_new: bool) -> None:
        data = event.data or ""
        if is_new and heard.log is not None:
            self._judge(exchange, heard, data.encode())
        try:
            said = json.loads(data)
        except ValueError:
            self._blame(exchange, f"an event holds a message, and not {data[:200]!r}")
            return
        for each in said if isinstance(said, list) else [said]:
            if isinstance(each, dict) and "method" not in each:
                self._response(exchange, heard, each)
            elif heard.kind is Kind.STATELESS and "id" in each:
                self._blame(exchange, "no requests on a stream (2026-07-28, streamable-http, Receiving Messages)")

    def _response(self, exchange: Exchange, heard: Heard, said: Mapping[str, Any]) -> None:
        owed = heard.owed
        if not any(type(each) is type(said.get("id")) and each == said.get("id") for each in owed):
            where = "a stream of its own" if not owed else "another request's stream"
            self._blame(exchange, f"a response on {where} (2025-11-25, Listening for Messages from the Server, 4)")
            return
        heard.owed = [each for each in owed if each != said.get("id") or type(each) is not type(said.get("id"))]
        heard.is_answered = not heard.owed
        code = said.get("error", {}).get("code") if isinstance(said.get("error"), dict) else None
        too_late = (-32020, -32022, -32601) if heard.told > 1 else (-32020, -32021, -32022, -32601)
        if heard.kind is Kind.STATELESS and code in too_late:
            self._blame(exchange, f"the error {code} has a status of its own (2026-07-28, streamable-http)")

    def _old_event(self, exchange: Exchange, heard: Heard, event: Event) -> None:
        is_first, heard.has_events = not heard.has_events, True
        if is_first != (event.name == "endpoint"):
            self._blame(exchange, "an event named endpoint comes first, and once (2024-11-05, HTTP with SSE)")
        elif is_first and heard.log is not None:
            if event.data in self._old:
                self._blame(exchange, "two clients have one endpoint (2024-11-05, HTTP with SSE)")
            self._old[event.data or ""] = heard.log
        elif event.name != "message":
            self._blame(exchange, "messages are events named message (2024-11-05, HTTP with SSE)")
        else:
            self._judge(exchange, heard, (event.data or "").encode())

    def _stream_ended(self, exchange: Exchange, heard: Heard) -> None:
        for fault in heard.text.faults:
            self._blame(exchange, fault)
        if not heard.text.is_between_events:
            self._blame(exchange, "a stream ends in the middle of an event")
        if exchange.method == "POST":
            self._unanswered(exchange, heard)

    def _unanswered(self, exchange: Exchange, heard: Heard) -> None:
        left = [each for each in heard.owed if heard.log is None or not heard.log.is_cancelled(each)]
        is_polled = heard.may_reconnect and self._primes(heard) and heard.kind is Kind.HANDSHAKE
        is_taken = heard.stream is not None and heard.stream.is_taken
        is_excused = is_polled or is_taken or self.is_closing or (heard.log is not None and heard.log.is_over)
        if left and not is_excused:
            self._blame(exchange, f"no response to {left} (2025-11-25, basic/transports, Sending Messages, 6)")

    # --- whose it is

    def _of(self, exchange: Exchange) -> Heard:
        heard = self._heard.get(id(exchange))
        if heard is None:
            heard = self._heard[id(exchange)] = Heard(exchange, EventText())
            self._place(exchange, heard)
        return heard

    def _place(self, exchange: Exchange, heard: Heard) -> None:
        path, sse_path, message_path = self._paths
        if exchange.path in (sse_path, f"{sse_path}/"):
            heard.kind = Kind.OLD_STREAM
        elif exchange.path == message_path:
            heard.kind = Kind.OLD_POST
            heard.log = next((log for at, log in self._old.items() if at.endswith(self._target(exchange))), None)
        elif exchange.path == path:
            self._place_modern(exchange, heard)
        heard.owed = [] if heard.kind is Kind.OLD_POST else list(heard.ids)

    def _target(self, exchange: Exchange) -> str:
        return f"{exchange.path}?{exchange.query}"

    def _place_modern(self, exchange: Exchange, heard: Heard) -> None:
        meta = heard.meta
        header = exchange.sent_header("mcp-protocol-version") or ""
        serves_stateless = any(ERAS[each] == "stateless" for each in self._served)
        # 2026-07-28, basic/versioning, "Compatibility Matrix": metadata selects the one era, `initialize` the other.
        opens = isinstance(heard.body, dict) and heard.body.get("method") == "initialize"
        opens = opens and any(ERAS[each] == "handshake" for each in self._served)
        stated = isinstance(meta.get(META + "protocolVersion"), str)
        is_stateless = stated or (ERAS.get(header) == "stateless" and not opens)
        if exchange.method == "POST" and is_stateless and serves_stateless:
            heard.kind = Kind.STATELESS
            heard.revision = next(each for each in reversed(self._served) if ERAS[each] == "stateless")
            return
        heard.log = self._sessions.get(exchange.sent_header("mcp-session-id") or "")
        if heard.log is not None:
            heard.kind = Kind.HANDSHAKE
            heard.revision = heard.log.revision
            heard.log.resumes(heard, exchange.sent_header("last-event-id"))
        elif isinstance(heard.body, dict) and heard.body.get("method") == "initialize":
            heard.kind = Kind.INITIALIZE

    def _recorder(self) -> Owned:
        made = Owned(self._served, self._declared)
        made.may_cross = self.may_cross
        return made

    def _judge(self, exchange: Exchange, heard: Heard, message: bytes) -> None:
        recorder = heard.log.recorder if heard.log is not None else None
        heard.told += 1
        if recorder is None:
            return
        recorder.said(message)
        for each in recorder.violations:
            self._blame(exchange, f"{each.pointer or '/'}: {each.reason}: {message[:500].decode(errors='replace')}")
        recorder.violations.clear()

    def _blame(self, exchange: Exchange, reason: str) -> None:
        self.violations.append(Violation(repr(exchange), reason))
