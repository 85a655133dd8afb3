"""A copy of a session in one worker, and what of it is shared with the other workers.

Theory of operation. Each worker that serves a session has a copy. A copy knows the fields of the record as it was last
read or written. The session may differ from them, because a request has just changed it. This difference survives when
the record is read again.

One worker is the *home* of the session. It has the stream that the client opens with GET, and the messages that wait
for that. All other workers send their messages for this stream to the home.
"""

from __future__ import annotations

import secrets
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.event_streams import EventStream, is_get_stream
from mcpgen.runtime.http.server.http_session import HttpSession
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.messages import Batch, Request
from mcpgen.runtime.server.cluster.worker import parse_number
from mcpgen.runtime.server.cluster.worker_messages import WrittenForSession
from mcpgen.runtime.server.event_store import parse_event_id
from mcpgen.runtime.server.ledger import uris_bytes
from mcpgen.runtime.server.subscriptions import wants_change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcpgen.runtime.http.server.cluster.shared_events import SharedEvents
    from mcpgen.runtime.http.server.open_requests import Ticket
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import Malformed, Message, RequestId
    from mcpgen.runtime.server.cluster.worker import ClusterWorker
    from mcpgen.runtime.server.event_store import EventStore
    from mcpgen.runtime.server.exchange import Exchange

__all__ = ["HOME", "SharedHttpSession", "client_of", "is_of_get_stream", "stream_tag", "worker_of_event"]

HOME: Final = "home"

_USER: Final = "user"
_OWNER: Final = "owner"
_REVISION: Final = "revision"
_DECLARATION: Final = "declaration"
_START: Final = "start"  # another one with each `initialize`
_INITIALIZED: Final = "initialized"
_LEVEL: Final = "level"
_URI: Final = "uri:"

_OWN: Final = frozenset((_USER, _OWNER, HOME, _REVISION, _DECLARATION, _START, _INITIALIZED, _LEVEL))

# A record is read in a moment.
_MAX_MISSED: Final = 100


class _Declaration(Struct, rename="camel"):
    """What a client says about itself in `initialize`."""

    capabilities: Raw = Raw(b"{}")
    client_info: Raw | UnsetType = UNSET


_decode_declaration: Final = msgspec.json.Decoder(_Declaration).decode
_encode: Final = msgspec.json.Encoder().encode


class HomeStream(EventStream, eq=False):
    """The stream that a session opens with GET: at its home, or what passes messages on to the home.

    Attributes:
        pass_on: Sends a message to the home; returns False at the home.
    """

    pass_on: Callable[[bytes], bool] | None = None

    def write(self, message: bytes) -> None:
        """Send *message* at the home of the session."""
        if self.pass_on is None or not self.pass_on(message):
            EventStream.write(self, message)


class SharedHttpSession(HttpSession):
    """A copy of a session in this worker.

    Args:
        worker: This worker.
        events: The events of its streams.
        given: Of `HttpSession`.
        named: Of `HttpSession`.

    Attributes:
        home: The number of its home.
        generation: The generation of the worker in which it was read; -1 if it was changed since.
        kept_until: When the record expires at the earliest, by the application's clock.
        on_unheard: Called with the id of the session and a message that its home has not taken.
        missed: Changes that were made while the record is read again, because another worker has changed it: the
            client may have subscribed to them, or unsubscribed. None at other times.
    """

    def __init__(
        self,
        worker: ClusterWorker,
        events: SharedEvents,
        *given: Any,  # noqa: ANN401 (of `HttpSession`)
        **named: Any,  # noqa: ANN401 (likewise)
    ) -> None:
        self.on_unheard: Callable[[str, bytes], object] | None = None
        self.home: int = worker.number
        self.generation: int = -1
        self.kept_until: float = 0
        self.missed: dict[tuple[str, str | None], None] | None = None
        self._worker = worker
        self._events = events
        self._request_ids: Sequence[RequestId] = ()  # of the POST that is being read
        self._known: dict[str, bytes] = {}  # fields of the record, but for the subscribed URIs
        self._known_uris: dict[str, None] = {}
        self._declaration = self._start = b""
        super().__init__(*given, **named)
        self.session.last_id = worker.new_id_base()
        self.session.keeps_tasks = True
        self.bucket.name = f"session {self.id}"

    def _new_get_stream(self, name: str, store: EventStore, limits: HttpLimits) -> EventStream:
        found = super()._new_get_stream(name, store, limits)
        return HomeStream(
            name,
            store,
            max_waiting=found.max_waiting,
            max_waiting_bytes=found.max_waiting_bytes,
            charge=found.charge,
            pass_on=self._pass_on,
        )

    def _pass_on(self, message: bytes) -> bool:
        if self.home == self._worker.number:
            return False
        unheard = None if self.on_unheard is None else partial(self.on_unheard, self.id, message)
        self._worker.send_later(self.home, WrittenForSession(self.id, message), unheard, owner=self.client.owner)
        return True

    def take(self, message: Message | Malformed, ticket: Ticket | None = None) -> tuple[EventStream, ResponseBuffer]:
        """Handle the message of a POST; see `HttpSession`."""
        self._request_ids = (message.id,) if isinstance(message, Request) else ()
        session = self.session
        before = None if session.peer is None else session.principal
        taken = super().take(message, ticket)
        # Only what was accepted: the other workers refuse a record with anything else, and it may have 4 MB. A session
        # that begins anew has another principal; its client may declare the same again.
        has_begun = session.peer is not None and session.principal != before
        if has_begun and isinstance(message, Request) and message.method == "initialize":
            self._declare(message.params)
        return taken

    def open_batch(self, batch: Batch, ticket: Ticket) -> tuple[EventStream, ResponseBuffer]:
        """Return the stream of the answer to a batch; see `HttpSession`."""
        self._request_ids = [each.id for each in batch.items if isinstance(each, Request)]
        return super().open_batch(batch, ticket)

    def open_stream(self, exchange: Exchange, ticket: Ticket) -> tuple[EventStream, ResponseBuffer]:
        """Return the stream of an answer; see `HttpSession`."""
        self._request_ids = () if exchange.request is None else (exchange.request.id,)
        return super().open_stream(exchange, ticket)

    def _new_stream(self, ticket: Ticket | None) -> tuple[EventStream, ResponseBuffer]:
        stream, response = super()._new_stream(ticket)
        # A batch may have 4 MB of ids, which an idle session must not keep.
        stream.store, self._request_ids = self._events.store_for(self._request_ids), ()
        return stream, response

    def open_get_stream(self, response: ResponseBuffer, earlier: Sequence[bytes] = ()) -> None:
        """Open a GET stream; see `HttpSession`."""
        if self.get_stream.unsent:  # they are sent now, and the cluster has them as events of the stream before
            self._events.remove(self.get_stream.name)
        super().open_get_stream(response, earlier)

    async def resume(self, name: str, number: int, response: ResponseBuffer) -> int | None:
        """Resume a stream of this worker, or what is left of one of a worker that has ended; see `HttpSession`.

        Raises:
            ClusterUnavailable: The events cannot be read.
        """
        is_own_get = self._is_own(name) and is_get_stream(name)
        if is_own_get and not self.is_home:
            return None  # other messages are at the home; the client has to open a new stream, which is there
        size = await super().resume(name, number, response)
        if size is not None or is_own_get or name in self.streams:
            return size
        worker, _, rest = name.partition(".")[2].partition("-")
        if parse_number(worker) is None or rest.partition("-")[0] != stream_tag(self.id):
            return None
        lost = await self._events.read(name, number)
        if lost is None:
            return None
        if is_get_stream(name):
            self.open_get_stream(response, lost.missed)
        else:
            response.start_stream(encode_event)
            for each in (*lost.missed, *lost.unanswered):
                response.write_event(each)
            response.end()
        return sum(map(len, (*lost.missed, *lost.unanswered)))

    @property
    def record_bytes(self) -> int:
        """The bytes that it keeps of its record."""
        return len(self._declaration)

    @property
    def is_home(self) -> bool:
        """Whether this worker is the home of the session."""
        return self.home == self._worker.number

    def close(self) -> None:
        """End the copy."""
        super().close()
        if isinstance(self.get_stream, HomeStream):
            self.get_stream.pass_on = None  # it refers to this session, in a cycle

    def notify_change(self, method: str, uri: str | None) -> None:
        """Send the notification of a change, at the home; each worker is told of the change."""
        if self.is_home and not self._note(method, uri):
            super().notify_change(method, uri)

    @property
    def is_listening(self) -> bool:
        """Whether the client has opened the stream of the session, or relies on hearing of resources there."""
        return self.get_stream.is_reachable or bool(self.session.subscriptions.uris)

    def note_missed(self, method: str, uri: str | None) -> None:
        """Note a change that `notify_change` has not sent, if the client may have subscribed to it meanwhile."""
        if self.is_home and not wants_change(self.session, method, uri):
            self._note(method, uri)

    def _note(self, method: str, uri: str | None) -> bool:
        """Note a change if it is not known now whether the client wants it; return whether it was noted."""
        if self.missed is None or len(self.missed) >= _MAX_MISSED:
            return False
        self.missed[method, uri] = None
        return True

    def _declare(self, params: Raw | UnsetType) -> None:
        """Note what the client said about itself in *params*, those of its `initialize`."""
        before = len(self._declaration)
        self._declaration = _encode(self._read_declaration(b"{}" if isinstance(params, UnsetType) else params))
        if self.entry is not None:  # it is kept as JSON, too
            self.entry.resize(self.entry.size + len(self._declaration) - before)
        self._start = secrets.token_bytes(8)
        self._name_principal()

    def _read_declaration(self, params: bytes | Raw) -> _Declaration:
        """Return what *params* declare, as it was read here: other workers read it as the revision demands."""
        session, declaration = self.session, _decode_declaration(params)
        try:
            client_peer(session.revision or "", declaration.capabilities, declaration.client_info, session.limits)
        except RequestError:
            meant = session.engine.reading.payload(session.revision, "initialize", "params", "client", Raw(params))
            return declaration if meant is None else _decode_declaration(meant)
        return declaration

    def _name_principal(self) -> None:
        """Let the session have the same principal in all workers, until the next `initialize`."""
        label = blake2b(self._start, key=self.id.encode("utf-8", "surrogatepass")[:64], digest_size=16).hexdigest()
        self.session.principal = f"session {label}"

    def fields(self) -> dict[str, bytes]:
        """Return the fields of the record as the session is now."""
        session, level = self.session, self.session.log_level
        found = {
            _USER: _text(self.client.user),
            _OWNER: _text(self.client.owner),
            HOME: b"%d" % self.home,
            _REVISION: _text(session.revision or ""),
            _DECLARATION: self._declaration,
            _START: self._start,
        }
        if session.is_initialized:
            found[_INITIALIZED] = b"1"
        if not isinstance(level, UnsetType):
            found[_LEVEL] = _text(level)
        return found | {f"{_URI}{each}": b"" for each in session.subscriptions.uris}

    def unsettled(self) -> dict[str, bytes | None]:
        """Return the fields that differ from those of the record; None for those that are gone."""
        now, known = self.fields(), self._known_fields()
        changed: dict[str, bytes | None] = {name: value for name, value in now.items() if known.get(name) != value}
        return changed | {name: None for name in known if name not in now}

    def settled(self, changes: Mapping[str, bytes | None]) -> None:
        """Note that *changes* are in the record."""
        known = self._known_fields()
        for name, value in changes.items():
            if value is None:
                known.pop(name, None)
            else:
                known[name] = value
        self._know(known)

    def _known_fields(self) -> dict[str, bytes]:
        """Return the fields of the record, as far as this version knows them."""
        return self._known | {f"{_URI}{each}": b"" for each in self._known_uris}

    def _know(self, fields: Mapping[str, bytes]) -> None:
        """Note the fields of the record. A field that this version does not know is left to the workers of the next.

        The texts of URIs are those of the subscriptions, not copies: a session is charged for them once.
        """
        self._known = {name: value for name, value in fields.items() if name in _OWN}
        own = {each: each for each in self.session.subscriptions.uris}
        uris = (name.removeprefix(_URI) for name in fields if name.startswith(_URI))
        self._known_uris = {own.get(each, each): None for each in uris}

    def apply(self, fields: Mapping[str, bytes], generation: int) -> None:
        """Become what the record says, as it was read in *generation*.

        Raises:
            RequestError: There is no room for the session.
        """
        unsettled = self.unsettled() if self._known else {}
        self._know(fields)
        wanted = {**fields, **{name: value for name, value in unsettled.items() if value is not None}}
        for name, value in unsettled.items():
            if value is None:
                wanted.pop(name, None)
        was_home, self.home = self.is_home, int(wanted[HOME])
        if was_home and not self.is_home:  # its messages are at the new home
            self.get_stream.detach(retry_ms=self.retry_ms)
        self._apply_client(wanted)
        session, uris = self.session, self.session.subscriptions.uris
        session.is_initialized = _INITIALIZED in wanted
        session.log_level = wanted[_LEVEL].decode() if _LEVEL in wanted else UNSET
        for uri in [each for each in uris if f"{_URI}{each}" not in wanted]:
            del uris[uri]
            session.keep(-uris_bytes([uri]))
        for uri in [each for each in self._known_uris if each not in uris and f"{_URI}{each}" in wanted]:
            session.keep(uris_bytes([uri]))
            uris[uri] = None
        self.generation = generation
        missed, self.missed = self.missed, None
        for each in missed or ():
            self.notify_change(*each)

    def _apply_client(self, fields: Mapping[str, bytes]) -> None:
        session, revision = self.session, fields[_REVISION].decode()
        if session.peer is not None and self._start == fields[_START]:
            return
        self._declaration, self._start = fields[_DECLARATION], fields[_START]
        declaration = _decode_declaration(self._declaration)
        peer = client_peer(revision, declaration.capabilities, declaration.client_info, session.limits)
        if session.peer is not None:  # the client has sent another `initialize`
            session.restart()
        session.set_peer(peer)
        self._name_principal()


def stream_tag(session_id: str) -> str:
    """Return what the names of the streams of a session have in common, in all workers."""
    return blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def client_of(fields: Mapping[str, bytes]) -> Client:
    """Return who started the session of a record."""
    user = fields[_USER].decode("utf-8", "surrogatepass")
    return Client(user, fields[_OWNER].decode("utf-8", "surrogatepass"), is_known=bool(user))


def worker_of_event(last_event_id: str) -> int | None:
    """Return the number of the worker that has the stream of an event; None if it is no event of ours."""
    found = parse_event_id(last_event_id.strip())
    parts = [] if found is None else found[0].split(".")
    number = parts[1].partition("-")[0] if len(parts) == 3 else ""  # noqa: PLR2004 (of `SessionCopies.new`)
    return parse_number(number)


def is_of_get_stream(last_event_id: str) -> bool:
    """Return whether an event is of a stream that a session opens with GET."""
    found = parse_event_id(last_event_id.strip())
    return found is not None and is_get_stream(found[0])


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
