"""A session with a server of a handshake revision, and its state that a new session must repeat.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Session Management".
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated.registry import REVISIONS, Labels
from mcpgen.runtime.errors import RequestLost
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.param_headers import standard_headers

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = ["LOST_CURSOR", "HttpSession", "SessionState"]

LOST_CURSOR: Final = (
    "the server lost the session, and the cursor is not valid in another one; list again from the start"
)
"""Why a request for the next page of a list is not sent."""

_HANDSHAKES: Final = Labels(each.label for each in REVISIONS if each.era == "handshake")

# "MUST only contain visible ASCII characters". Many servers refuse longer headers themselves.
_ID: Final = re.compile(r"[\x21-\x7e]{1,4096}")

# More than `ClientLimits.max_in_flight` by default, so no more are answered at once.
_MAX_SERVER_REQUESTS: Final = 1000


_MAX_REQUEST_ID_CHARS: Final = 1000
_MAX_CURSORS: Final = 10_000


class _Uri(Struct):
    uri: str


class _Page(Struct, rename="camel"):
    next_cursor: str | UnsetType = UNSET


_decode_page: Final = msgspec.json.Decoder(_Page).decode


class HttpSession:
    """One session.

    Attributes:
        id: Its id; None if the server does not use session ids.
        revision: The negotiated revision; None before.
        is_lost: Whether the server does not know it any more.
        has_get_stream: Whether the server has accepted its GET stream.
        get_stream: Ends that when cancelled; None before it is read.
        is_replacement: Whether it replaces a session that the server did not know any more.
        server_requests: The ids of the server's requests that are not answered yet.
        cursors: The hashes of the cursors that the server has sent in it. The server chooses how long a cursor is.
        lost_cursors: The hashes of those of the sessions before.

    Args:
        lost: The session that it replaces.
    """

    def __init__(self, lost: HttpSession | None = None) -> None:
        self.id: str | None = None
        self.revision: str | None = None
        self.is_lost: bool = False
        self.has_get_stream: bool = False
        self.get_stream: StartedFunction | None = None
        self.is_replacement: bool = lost is not None
        self.server_requests: OrderedDict[RequestId, None] = OrderedDict()
        self.cursors: dict[int, None] = {}
        self.lost_cursors: dict[int, None] = {}
        if lost is not None:
            self.lost_cursors = dict.fromkeys([*lost.lost_cursors, *lost.cursors][-_MAX_CURSORS:])

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request in it."""
        found = {} if self.revision is None else standard_headers("", {}, self.revision)
        if self.id is not None:
            found[http.SESSION] = self.id
        return found

    def set_id(self, session_id: str | None) -> None:
        """Set the id that the server sent, if any.

        Raises:
            RequestLost: It is not valid.
        """
        if session_id is not None and _ID.fullmatch(session_id) is None:
            raise RequestLost(
                "the server sent an invalid Mcp-Session-Id: it is empty or too long, or is not visible ASCII"
            )
        self.id = session_id

    def set_revision(self, revision: str) -> None:
        """Set the negotiated revision; ignore an unknown one, which the client refuses."""
        if revision in _HANDSHAKES:
            self.revision = revision

    def add_server_request(self, request_id: RequestId) -> None:
        """Add a request of the server. One with a long id is not kept: ids are as long as a message allows."""
        if isinstance(request_id, str) and len(request_id) > _MAX_REQUEST_ID_CHARS:
            return
        self.server_requests[request_id] = None
        if len(self.server_requests) > _MAX_SERVER_REQUESTS:
            self.server_requests.popitem(last=False)

    def add_cursor(self, page: Raw) -> None:
        """Add the cursor of *page*, the result of a list."""
        try:
            found = _decode_page(page).next_cursor
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # the client reports the error
        if not isinstance(found, UnsetType):
            self.cursors[hash(found)] = None
            if len(self.cursors) > _MAX_CURSORS:
                del self.cursors[next(iter(self.cursors))]

    def check_cursor(self, cursor: str | None) -> None:
        """Check that the server has not sent *cursor* in the session that was lost.

        Raises:
            RequestLost: It has.

        Spec:
            2025-03-26 to 2025-11-25, server/utilities/pagination, "Implementation Guidelines": a cursor is not valid in
            another session.
        """
        if cursor is not None and hash(cursor) in self.lost_cursors and hash(cursor) not in self.cursors:
            raise RequestLost(LOST_CURSOR)


class SessionState:
    """The state of a session that a new one must repeat: the log level, and the subscriptions to resources.

    Attributes:
        initialize_params: The params of `initialize`, encoded.
    """

    def __init__(self) -> None:
        self.initialize_params: bytes = b"{}"
        self._log_level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}

    def record(self, request: OutgoingMessage) -> None:
        """Record a request that has succeeded."""
        if isinstance(request.params, UnsetType):
            return
        params = bytes(request.params)
        if request.method == "logging/setLevel":
            self._log_level = params
        elif request.method in ("resources/subscribe", "resources/unsubscribe"):
            uri = msgspec.json.decode(params, type=_Uri).uri
            self._subscriptions.pop(uri, None)
            if request.method == "resources/subscribe":
                self._subscriptions[uri] = params

    def requests(self) -> list[tuple[str, Raw]]:
        """Return the methods and params of the requests to repeat."""
        found = [] if self._log_level is None else [("logging/setLevel", Raw(self._log_level))]
        return found + [("resources/subscribe", Raw(each)) for each in self._subscriptions.values()]
