"""A session with a server that shakes hands: its id and revision, who asks in it, and what the next one has to be told.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Session Management".
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct, UnsetType

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.param_headers import standard_headers

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["HttpSession", "SessionState", "is_session_id"]

_HANDSHAKES: Final = frozenset(each.label for each in REVISIONS if each.era == "handshake")

# "MUST only contain visible ASCII characters"; a header of more than this, many servers refuse themselves.
_ID: Final = re.compile(r"[\x21-\x7e]{1,4096}")

# More of them are not answered at once anyway (`ClientLimits.max_in_flight`).
_MOST_ASKED: Final = 1000


class _Uri(Struct):
    uri: str


class HttpSession:
    """One session.

    Attributes:
        id: What the server calls it; None for a server without sessions.
        revision: What was agreed on; None before.
        is_lost: Whether the server does not know it any more.
        has_stream: Whether the server has its own stream in it.
        asked: The requests of the server that are not answered yet.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.revision: str | None = None
        self.is_lost: bool = False
        self.has_stream: bool = False
        self.asked: OrderedDict[RequestId, None] = OrderedDict()

    @property
    def headers(self) -> dict[str, str]:
        """What each request within it says."""
        found = {} if self.revision is None else standard_headers("", {}, self.revision)
        if self.id is not None:
            found[http.SESSION] = self.id
        return found

    def agree(self, revision: str) -> None:
        """Note what the server has agreed on; what nobody knows is for others to refuse."""
        if revision in _HANDSHAKES:
            self.revision = revision

    def note_asked(self, request_id: RequestId) -> None:
        """Note that the server asks something."""
        self.asked[request_id] = None
        if len(self.asked) > _MOST_ASKED:
            self.asked.popitem(last=False)


def is_session_id(text: str) -> bool:
    """Return whether *text* can be the id of a session."""
    return _ID.fullmatch(text) is not None


class SessionState:
    """What a server was told in its session, and would have to be told again in another.

    Attributes:
        greeting: The params of `initialize`.
    """

    def __init__(self) -> None:
        self.greeting: bytes = b"{}"
        self._level: bytes | None = None
        self._uris: dict[str, bytes] = {}

    def note(self, request: OutgoingMessage) -> None:
        """Note that the server has done what *request* asks for."""
        if isinstance(request.params, UnsetType):
            return
        params = bytes(request.params)
        if request.method == "logging/setLevel":
            self._level = params
        elif request.method in ("resources/subscribe", "resources/unsubscribe"):
            uri = msgspec.json.decode(params, type=_Uri).uri
            self._uris.pop(uri, None)
            if request.method == "resources/subscribe":
                self._uris[uri] = params

    def requests(self) -> list[tuple[str, Raw]]:
        """Return what to ask again."""
        found = [] if self._level is None else [("logging/setLevel", Raw(self._level))]
        return found + [("resources/subscribe", Raw(each)) for each in self._uris.values()]
