"""What a client has said on one connection, so far as it decides what its server may say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcpgen.generated.registry import REVISIONS
from tests.harness.closed_documents import Json, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

META = "io.modelcontextprotocol/"
ERAS = {each.label: each.era for each in REVISIONS}

_IDS = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')


class Asked:
    """A request that has no answer yet.

    Attributes:
        revision: What it is written in; None if nobody can tell.
        is_batched: Whether it came in a batch, and so has to be answered in one.
        is_cancelled: Whether its sender has cancelled it. What is answered already may wait for the rest of its batch.
        progress: The last progress that was told of it.
        wanted: Of a stream: what was acknowledged.
    """

    def __init__(self, message: Mapping[str, Json], revision: str | None, *, is_batched: bool) -> None:
        self.message = message
        self.method: str = message.get("method", "")
        self.revision = revision
        params = message.get("params")
        self.params: Mapping[str, Json] = params if isinstance(params, dict) else {}
        meta = self.params.get("_meta")
        self.meta: Mapping[str, Json] = meta if isinstance(meta, dict) else {}
        self.is_batched = is_batched
        self.is_cancelled = False
        self.progress: float | None = None
        self.wanted: Mapping[str, Json] | None = None

    @property
    def is_stateless(self) -> bool:
        """Whether it states its own revision."""
        return self.revision is not None and ERAS[self.revision] == "stateless"


class Heard:
    """Hears a client.

    Args:
        served: The revisions that the server serves, oldest first.
        declared: What it declares to stateless clients of a revision; to the others it says so itself.
    """

    def __init__(self, served: Iterable[str], declared: Callable[[str], Mapping[str, Json]]) -> None:
        # Whether messages of both sides may cross, since they were taken down on their way and not where they arrive:
        # what a server says before it has read that nobody wants to hear it is no breach.
        self.may_cross = False
        self._served = list(served)
        self._declared = declared
        self._session: str | None = None
        self._client: Mapping[str, Json] = {}
        self._server: Mapping[str, Json] = {}
        self._is_ready = False
        self._level: str | None = None
        self._watched: set[str] = set()
        self._open: list[Asked] = []
        self._tasks: dict[str, Asked] = {}
        self._streams: dict[tuple[str, Json], Asked] = {}
        self._ours: set[tuple[str, Json]] = set()
        self._pages: set[Json] = set()
        self._ours_open: set[tuple[str, Json]] = set()
        self._salvaged: list[Json] = []
        self._unreadable = 0

    @property
    def unanswered(self) -> list[Asked]:
        """The requests of the client that are open."""
        return [each for each in self._open if not each.is_cancelled]

    def heard(self, frame: bytes) -> None:
        """Take what the client wrote."""
        try:
            message = json.loads(frame)
            json.dumps(message, ensure_ascii=False).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError):
            self._unreadable += 1
            self._salvaged += [json.loads(each) for each in _IDS.findall(frame)]
            return
        has_batches = self._session is not None and document(self._session).has_batches
        for each in message if isinstance(message, list) and message else [message]:
            self._heard(each, is_batched=has_batches and isinstance(message, list))

    def _heard(self, message: Json, *, is_batched: bool) -> None:
        if not isinstance(message, dict):
            self._unreadable += 1
            return
        is_valid = message.get("jsonrpc") == "2.0" and isinstance(message.get("params", {}), dict)
        identity = message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            self._ours_open.discard(keyed(identity))
        elif is_identity(identity):
            asked = Asked(message, self._revision_of(message), is_batched=is_batched)
            self._open.append(asked)
            if is_valid and asked.method == "subscriptions/listen" and asked.is_stateless:
                self._streams.setdefault(keyed(identity), asked)
        elif "id" in message or not is_valid:
            self._unreadable += 1
        elif message.get("method") == "notifications/initialized":
            self._is_ready = self._session is not None
        elif message.get("method") == "notifications/cancelled":
            self._cancelled(message.get("params", {}).get("requestId"))

    def _revision_of(self, message: Mapping[str, Json]) -> str | None:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
        stateless = [each for each in self._served if ERAS[each] == "stateless"]
        if isinstance(stated, str) and stateless:
            return stated if stated in stateless else stateless[-1]
        return None if message.get("method") == "initialize" else self._session

    def _cancelled(self, identity: Json) -> None:
        """Take down a cancellation. A request of a batch may have its response already: then the next one is meant."""
        same = [each for each in self.unanswered if keyed(each.message["id"]) == keyed(identity)]
        for found in same:
            if found.method == "initialize":
                return
            found.is_cancelled = True
            if not self.may_cross:
                self._streams.pop(keyed(identity), None)
            if not found.is_batched:
                if found is same[0]:
                    self._open.remove(found)
                return


def is_identity(value: Any) -> bool:
    """Return whether *value* may be the id of a request."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, str | int) and not isinstance(value, bool)


def keyed(identity: Any) -> tuple[str, Json]:
    """Return *identity* so that 1 and "1" differ, and 1 and 1.0 do not."""
    return ("text", identity) if isinstance(identity, str) else ("number", identity)
