"""What a judge remembers of one exchange."""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from tests.harness.client_state import is_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.specification.http_server.asgi_exchange import Exchange
    from tests.specification.http_server.session_record import Log, Stream
    from tests.specification.http_server.strict_events import EventText


_IDS = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')


class Kind(Enum):
    """Whose rules an exchange is judged by."""

    STATELESS = auto()
    INITIALIZE = auto()
    HANDSHAKE = auto()
    OLD_STREAM = auto()
    OLD_POST = auto()
    NOBODY = auto()


class Heard:
    """One exchange.

    Attributes:
        kind: Whose rules it is judged by.
        revision: Which one's, if that is known.
        log: Its session; of a stateless one, what is known of it alone.
        mark: What the session's recorder was like before it.
        body: The request's JSON; None if it is none.
        ids: The ids of the requests in it; of a resumed stream, those that it has to answer.
        owed: Those of them without a response.
        seen: Where on its stream it is.
        told: How many messages it was told.
        is_after_end: Whether its session was over when it was sent.
        is_late: Whether its response began when the application knew that its client was gone.
    """

    def __init__(self, exchange: Exchange, text: EventText) -> None:
        self.exchange = exchange
        self.text = text
        self.kind = Kind.NOBODY
        self.revision: str | None = None
        self.log: Log | None = None
        self.mark: tuple[list[Any], int] | None = None
        self.stream: Stream | None = None
        self.seen = -1
        self.told = 0
        self.is_resumed = self.has_events = self.is_answered = self.may_reconnect = self.is_late = False
        self.is_after_end = False
        self.body = _body(exchange.request) if exchange.method == "POST" else None
        asked = [each for each in self.messages if "result" not in each and "error" not in each]
        self.ids: list[Any] = [each["id"] for each in asked if is_identity(each.get("id"))]
        self.owed: list[Any] = list(self.ids)

    @property
    def salvaged(self) -> list[Any]:
        """The ids that can be made out in a body that is no JSON."""
        if self.body is not None:
            return []
        return [json.loads(each.decode(errors="replace")) for each in _IDS.findall(self.exchange.request)]

    @property
    def messages(self) -> list[Any]:
        """The messages in the body that are objects."""
        items = self.body if isinstance(self.body, list) else [self.body]
        return [each for each in items if isinstance(each, dict)]

    @property
    def meta(self) -> Mapping[str, Any]:
        """The metadata of the request, if it is a single one."""
        params = self.body.get("params") if isinstance(self.body, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        return meta if isinstance(meta, dict) else {}


def _body(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
