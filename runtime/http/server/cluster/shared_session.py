"""A copy of a session in one worker, and what of it is shared with the other workers.

Theory of operation. Each worker that serves a session has a copy. A copy knows the fields of the record as it was last
read or written. The session may differ from them, because a request has just changed it. This difference survives when
the record is read again.

One worker is the *home* of the session. It has the stream that the client opens with GET, and the messages that wait
for that. All other workers send their messages for this stream to the home.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.event_streams import EventStream
from mcpgen.runtime.http.server.http_session import HttpSession
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.server.cluster.worker_messages import WrittenForSession
from mcpgen.runtime.server.ledger import uris_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.event_store import EventStore
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.server.cluster.worker import ClusterWorker

__all__ = ["HOME", "SharedHttpSession", "client_of"]

HOME: Final = "home"

_USER: Final = "user"
_OWNER: Final = "owner"
_REVISION: Final = "revision"
_DECLARATION: Final = "declaration"
_START: Final = "start"  # another one with each `initialize`
_INITIALIZED: Final = "initialized"
_LEVEL: Final = "level"
_URI: Final = "uri:"


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
        given: Of `HttpSession`.
        named: Of `HttpSession`.

    Attributes:
        home: The number of its home.
        generation: The generation of the worker in which it was read; -1 if it was changed since.
        kept_until: When the record expires at the earliest, by the application's clock.
    """

    def __init__(self, worker: ClusterWorker, *given: Any, **named: Any) -> None:  # noqa: ANN401 (of `HttpSession`)
        self.home: int = worker.number
        self.generation: int = -1
        self.kept_until: float = 0
        self._worker = worker
        self._known: dict[str, bytes] = {}
        self._declaration = self._start = b""
        super().__init__(*given, **named)
        self.session.last_id = worker.new_id_base()

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
        self._worker.send_later(self.home, WrittenForSession(self.id, message))
        return True

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
        if self.is_home:
            super().notify_change(method, uri)

    def declare(self, params: Raw | UnsetType) -> None:
        """Note what the client said about itself in *params*, those of its `initialize`."""
        self._declaration = _encode(_decode_declaration(b"{}" if isinstance(params, UnsetType) else params))
        self._start = secrets.token_bytes(8)

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
        now = self.fields()
        changed: dict[str, bytes | None] = {
            name: value for name, value in now.items() if self._known.get(name) != value
        }
        return changed | {name: None for name in self._known if name not in now}

    def settled(self, changes: Mapping[str, bytes | None]) -> None:
        """Note that *changes* are in the record."""
        for name, value in changes.items():
            if value is None:
                self._known.pop(name, None)
            else:
                self._known[name] = value

    def apply(self, fields: Mapping[str, bytes], generation: int) -> None:
        """Become what the record says, as it was read in *generation*.

        Raises:
            RequestError: There is no room for the session.
        """
        unsettled = self.unsettled() if self._known else {}
        self._known = dict(fields)
        wanted = {**fields, **{name: value for name, value in unsettled.items() if value is not None}}
        for name, value in unsettled.items():
            if value is None:
                wanted.pop(name, None)
        self.home = int(wanted[HOME])
        self._apply_client(wanted)
        session, uris = self.session, self.session.subscriptions.uris
        session.is_initialized = _INITIALIZED in wanted
        session.log_level = wanted[_LEVEL].decode() if _LEVEL in wanted else UNSET
        subscribed = {name.removeprefix(_URI): None for name in wanted if name.startswith(_URI)}
        for uri in [each for each in uris if each not in subscribed]:
            del uris[uri]
            session.keep(-uris_bytes([uri]))
        for uri in [each for each in subscribed if each not in uris]:
            session.keep(uris_bytes([uri]))
            uris[uri] = None
        self.generation = generation

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


def client_of(fields: Mapping[str, bytes]) -> Client:
    """Return who started the session of a record."""
    user = fields[_USER].decode("utf-8", "surrogatepass")
    return Client(user, fields[_OWNER].decode("utf-8", "surrogatepass"), is_known=bool(user))


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
