"""A client's driver, and what it sees: what the drivers make, and ``conversation.py`` uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

__all__ = [
    "ACCEPTED",
    "CLIENT",
    "ROOT",
    "STATELESS",
    "Connection",
    "ClientDriver",
    "Invalid",
    "Missing",
    "Refused",
    "Seen",
    "Wire",
    "url_in",
]

CLIENT = {"name": "interop-client", "version": "7.1"}
ROOT = {"uri": "file:///srv/project", "name": "project"}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "stub-1", "stopReason": "endTurn"}
ACCEPTED = {"name": "Ada", "age": 36}
STATELESS = "2026-07-28"
Wire = dict[str, Any]


def url_in(target: list[str], *, insists: bool) -> str | None:
    """Return where the server is, if *target* says that, and no command: the first speaks all, the other one only."""
    return target[0 if insists else 1] if target[0].startswith("http:") else None


class Missing(Exception):  # noqa: N818 - no error: an outcome
    """This client has no such feature; the message says why."""


class Refused(Exception):  # noqa: N818 - what came back, which may be what must
    """The server answered with an error."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"error {code}")


class Invalid(Exception):  # noqa: N818 - what came back, which may be what must
    """What the server sent is not valid in its revision, and the client says where."""


class Seen:
    """What the server sent without being asked, in the order of its coming."""

    def __init__(self) -> None:
        self.logs: list[Wire] = []
        self.progress: list[Wire] = []
        self.asked: list[Wire] = []
        self.notices: list[Wire] = []
        self._arrived = anyio.Event()

    def add(self, where: list[Wire], what: Wire) -> None:
        """Keep something, and wake who waits for it."""
        where.append(what)
        self._arrived.set()
        self._arrived = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until *condition* holds; it is looked at whenever something arrives."""
        while not condition():
            await self._arrived.wait()

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Keep a report of progress; a callback."""
        self.add(self.progress, {"progress": progress, "total": total, "message": message})

    def answer(self, method: str, params: Wire | None) -> Wire:
        """Keep a question of the server's, and return what the user, or the model, says to it."""
        asked = {key: value for key, value in (params or {}).items() if key != "_meta"}
        self.add(self.asked, {"method": method, **asked})
        if method == "roots/list":
            return {"roots": [ROOT]}
        if method == "sampling/createMessage":
            return SAMPLED
        if asked.get("mode") == "url":
            return {"action": "accept"}
        if asked["message"] == "Really?":
            return {"action": "decline"}
        return {"action": "accept", "content": ACCEPTED}


class ClientDriver(ABC):
    """One client, connected. Results are in the words of the wire; an error of the server's is ``Refused``."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    @abstractmethod
    def greeting(self) -> Wire:
        """Return what was agreed on: revision, server, capabilities, instructions."""

    @abstractmethod
    async def page(self, kind: str, cursor: str | None) -> Wire:
        """Return one page of ``tools``, ``resources``, ``resourceTemplates`` or ``prompts``."""

    @abstractmethod
    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False, meta: Wire | None = None) -> Wire:
        """Call a tool; what it reports goes to ``seen.progress``."""

    @abstractmethod
    async def cancel(self, name: str, arguments: Wire) -> None:
        """Call a tool, and cancel the call when it has reported progress."""

    @abstractmethod
    async def read(self, uri: str) -> Wire:
        """Read a resource."""

    @abstractmethod
    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        """Get a prompt."""

    @abstractmethod
    async def complete(self, ref: Wire, argument: dict[str, str], known: dict[str, str] | None) -> Wire:
        """Complete an argument."""

    @abstractmethod
    async def ping(self) -> Wire:
        """Ping."""

    @abstractmethod
    async def set_level(self, level: str) -> None:
        """Say from which level on log messages are wanted."""

    @abstractmethod
    def listen(self, uris: list[str]) -> AbstractAsyncContextManager[Wire]:
        """Listen to updates of *uris* and to all lists; gives what was agreed to. Changes go to ``seen.notices``."""

    @abstractmethod
    async def demand(self, name: str, arguments: Wire, answers: Wire | None, state: str | None) -> Wire:
        """Call a tool once and return its result, or its demand for input, as it is."""


class Connection(Protocol):
    """How a driver connects."""

    def __call__(self, revision: str, *, insists: bool) -> AbstractAsyncContextManager[ClientDriver]:
        """Connect a client: made to offer *revision*, or left alone with a server of that revision only."""
