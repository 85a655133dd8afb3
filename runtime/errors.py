"""What can go wrong at run time, as one tree; each branch says whose fault it is.

McpgenError
├── UsageError             you called us wrongly; fix your code
│   ├── UnknownRevision
│   ├── UnknownMethod
│   └── UnknownDefinition
├── PeerError              the other side broke the protocol; carries .revision and .pointer
│   ├── MalformedFrame     not JSON, not JSON-RPC, or over the size limit
│   └── InvalidPayload     well-formed, but not what this revision's method allows
│       └── InvalidStructuredContent   what a tool returned does not fit its own schema; carries .result
├── AdaptationError        a value has no meaning in the target revision; carries .step and .pointer
├── RequestError           a request is answered with an error; carries .code, .message and .data
│   └── RequestRefused     it is one of ours, and the other side answered so; carries .method, too
├── UnsupportedByPeer      the peer cannot take part in what you ask for; nothing was sent
├── NoCommonRevision       the two sides speak no revision in common; carries .offered and .supported
├── RequestTimedOut        a request of ours was not answered in time; it is a TimeoutError, too
├── RequestLost            a request of ours may not have arrived, or its answer will not; the others go on
│   ├── ServerUnreachable  no connection to it could be made; carries .url and .reason (mcpgen.runtime.http.errors)
│   └── HttpRefused        what came back over HTTP is no message; carries .status and .excerpt (likewise)
└── TransportClosed        nothing wrong; there is just nobody there
    └── ServerExited       the process of the server is gone; carries .status and .stderr
"""

from __future__ import annotations

import signal
import unicodedata
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from mcpgen.generated import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.generated.adapters import Loss

__all__ = [
    "AdaptationError",
    "InvalidPayload",
    "InvalidStructuredContent",
    "MalformedFrame",
    "McpgenError",
    "NoCommonRevision",
    "PeerError",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "RequestTimedOut",
    "ServerExited",
    "TransportClosed",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UnsupportedByPeer",
    "UsageError",
    "printable",
    "quoted",
    "sole_exception",
]

_E = TypeVar("_E", bound=Exception)


class McpgenError(Exception):
    """Base of everything that mcpgen raises at run time."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how it is copied, or sent to another process: its arguments are not all that it has."""
        return _remade, (type(self), self.args, self.__dict__)


def _remade(kind: type[_E], arguments: tuple[object, ...], attributes: Mapping[str, object]) -> _E:
    made = kind.__new__(kind, *arguments)
    made.__dict__.update(attributes)
    return made


class UsageError(McpgenError):
    """The caller asked for something that does not exist or makes no sense."""


class UnknownRevision(UsageError, registry.UnknownRevision):  # noqa: N818 (as the tree above names it)
    """There are no bindings for a revision; the message lists those that there are.

    It is the registry's error too, so that either name catches it.
    """


class UnknownMethod(UsageError):  # noqa: N818 (as the tree above names it)
    """A revision has no such method, or not of this kind and from this sender.

    Attributes:
        revision: The revision that was asked.
        method: The method that it lacks.
        known: The methods that would do.
        hint: What the method is instead, if anything.
    """

    def __init__(self, method: str, *, revision: str, kind: str, known: Sequence[str], hint: str = "") -> None:
        self.revision = revision
        self.method = method
        self.known: tuple[str, ...] = tuple(known)
        self.hint = hint
        self._kind = kind
        super().__init__(method)

    def __str__(self) -> str:
        listed = ", ".join(self.known) or "none"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.revision} has no {self._kind} {self.method!r}{hint}; known are {listed}"


class UnknownDefinition(UsageError):  # noqa: N818 (as the tree above names it)
    """A revision has no definition of a name.

    Attributes:
        revision: The revision that was asked.
        name: What it was asked for.
        similar: Names of definitions that may be meant.
    """

    def __init__(self, name: str, *, revision: str, similar: Sequence[str]) -> None:
        self.revision = revision
        self.name = name
        self.similar: tuple[str, ...] = tuple(similar)
        super().__init__(name)

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.similar)}?" if self.similar else ""
        return f"{self.revision} has no definition {self.name!r}{hint}"


class PeerError(McpgenError):
    """The other side broke the protocol.

    Attributes:
        revision: The revision that it speaks.
        pointer: Where, as an RFC 6901 pointer; empty for the value as a whole.
    """

    def __init__(self, *, revision: str, pointer: str) -> None:
        self.revision = revision
        self.pointer = pointer
        super().__init__(revision, pointer)


class InvalidPayload(PeerError):  # noqa: N818 (as the tree above names it)
    """A value is JSON that its revision does not allow there, or no JSON at all.

    Attributes:
        what: Which value: ``the result of tools/call``.
        reason: What is wrong with it.
    """

    def __init__(self, *, revision: str, pointer: str, what: str, reason: str) -> None:
        super().__init__(revision=revision, pointer=pointer)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        place = f" at {printable(self.pointer)}" if self.pointer else ""
        return f"not valid as {self.what} in {self.revision}{place}: {printable(self.reason)}"


class InvalidStructuredContent(InvalidPayload):
    """What a tool returned as structured content does not fit the schema that its server listed for it.

    Attributes:
        result: All that the tool returned; nothing of it is lost.
    """

    def __init__(self, *, revision: str, pointer: str, tool: str, reason: str, result: object) -> None:
        what = f"structured content of the tool {tool[:100]!r}"
        super().__init__(revision=revision, pointer=pointer, what=what, reason=reason)
        self.result = result


class MalformedFrame(PeerError):  # noqa: N818 (as the tree above names it)
    """What came is no message: not JSON, not JSON-RPC, or over the size limit.

    The engine reads frames without raising; this is for a caller whose request was answered so.

    Attributes:
        reason: What is wrong with it.
        request_id: The request that it answers or makes, if that could be read.
    """

    def __init__(self, *, revision: str, reason: str, request_id: str | int | None = None) -> None:
        super().__init__(revision=revision, pointer="")
        self.reason = reason
        self.request_id = request_id

    def __str__(self) -> str:
        named = "" if self.request_id is None else f" (request {self.request_id!r})"
        return f"not a message of {self.revision}{named}: {self.reason}"


class AdaptationError(McpgenError):
    """A message, or a value in it, has no meaning in the target revision.

    Attributes:
        step: The step that cannot be taken: ``2025-11-25 to 2026-07-28``.
        pointer: The value that is in its way, in the message as that step found it; empty for the whole message.
        reason: Why.
        service: What an engine that knows both peers can do instead (docs/adapters.md lists them), or None.
        losses: What was lost before.
    """

    def __init__(
        self, *, step: str, pointer: str, reason: str, service: str | None, losses: Sequence[Loss] = ()
    ) -> None:
        self.step = step
        self.pointer = pointer
        self.reason = reason
        self.service = service
        self.losses: tuple[Loss, ...] = tuple(losses)
        super().__init__(step, pointer, reason)

    def __str__(self) -> str:
        place = f" at {self.pointer}" if self.pointer else ""
        service = f" (an engine can do it by {self.service})" if self.service else ""
        return f"cannot be adapted from {self.step}{place}: {self.reason}{service}"


class RequestError(McpgenError):
    """A request is answered with an error: a handler raises it to say so, and whoever sent the request gets it.

    Attributes:
        code: The error code, as the revision at home has it; the ``ErrorCode`` of its bindings lists MCP's own.
        message: One sentence, for the other side.
        data: More about it, as JSON; UNSET if there is none.
    """

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        self.code: int = int(code)
        self.message = message
        self.data = data
        super().__init__(self.code, message)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class RequestRefused(RequestError):  # noqa: N818 (as the tree above names it)
    """The other side answered a request of ours with an error.

    Attributes:
        method: What it was asked.
    """

    def __init__(self, method: str, error: RequestError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)

    def __str__(self) -> str:
        message = "\n".join(map(printable, self.message.splitlines()))
        return f"{self.method} was answered with an error: {message} ({self.code})"


class UnsupportedByPeer(McpgenError):  # noqa: N818 (as the tree above names it)
    """A call that the peer's revision cannot express, or that needs what the peer has not declared; nothing was sent.

    Attributes:
        revision: The revision that the peer speaks.
        what: The call: ``elicitation/create``.
        reason: Why it cannot be made.
        required: The capabilities that the peer would have had to declare; None if that would not help.
    """

    def __init__(self, *, revision: str, what: str, reason: str, required: Mapping[str, object] | None = None) -> None:
        self.revision = revision
        self.what = what
        self.reason = reason
        self.required = required
        super().__init__(what, reason)

    def __str__(self) -> str:
        return f"{self.what} cannot be sent to this peer of {self.revision}: {self.reason}"


class TransportClosed(McpgenError):  # noqa: N818 (as the tree above names it)
    """Nothing went wrong, but there is nobody there any more."""

    def again(self) -> TransportClosed:
        """Return the same error anew: many may wait when the other side goes, and each raises its own."""
        return _remade(type(self), self.args, self.__dict__)


class ServerExited(TransportClosed):
    """The process of a server has ended.

    Attributes:
        command: What was started.
        status: Its exit status, negative for the signal that ended it; None if that cannot be known.
        stderr: The last of what it printed as errors.
    """

    def __init__(self, *, command: str, status: int | None, stderr: str) -> None:
        self.command = command
        self.status = status
        self.stderr = stderr
        super().__init__(command, status)

    def __str__(self) -> str:
        if self.status is None:
            how = "has closed its output"
        elif self.status < 0:
            how = f"was ended by {_signal_name(-self.status)}"
        else:
            how = f"has exited with status {self.status}"
        printed = self.stderr.strip()
        last = "; it printed nothing on its standard error"
        if self.status == 0:
            last += " (does it serve? Python files call server.run())"
        if printed:
            lines = printed.splitlines()[-_MOST_LINES:]
            last = ", having printed last:\n" + "\n".join(f"    {printable(line.expandtabs())}" for line in lines)
        return f"the server {self.command!r} {how}{last}"


_MOST_LINES = 12
_MOST_CHARACTERS = 40  # of a revision, which has ten


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class RequestTimedOut(McpgenError, TimeoutError):  # noqa: N818 (as the tree above names it)
    """A request of ours was not answered in time; the other side was told that nobody waits any more.

    Attributes:
        method: What was asked.
        seconds: How long was waited, since it was asked or since the last progress.
        server: The server, if it was not ready in all the time that connecting may take; None for any other request.
    """

    def __init__(self, method: str, seconds: float, server: str | None = None) -> None:
        self.method = method
        self.seconds = seconds
        self.server = server
        super().__init__(method)  # two arguments would make it an error of the system with this number

    def __str__(self) -> str:
        if self.server is not None:
            return f"the server {self.server!r} was not ready within {self.seconds:g} seconds"
        return f"{self.method} was not answered within {self.seconds:g} seconds"


class NoCommonRevision(McpgenError):  # noqa: N818 (as the tree above names it)
    """The two sides speak no revision in common.

    Attributes:
        offered: What we would speak, oldest first.
        supported: What the other side says it speaks; empty if it did not say.
    """

    def __init__(self, *, offered: Sequence[str], supported: Sequence[str], reason: str = "") -> None:
        self.offered: tuple[str, ...] = tuple(offered)
        self.supported: tuple[str, ...] = tuple(supported)
        self.reason = reason
        super().__init__(self.offered, self.supported)

    def __str__(self) -> str:
        listed = [printable(each[:_MOST_CHARACTERS]) for each in self.supported[:_MOST_LINES]]
        if len(self.supported) > _MOST_LINES:
            listed.append(f"and {len(self.supported) - _MOST_LINES} more")
        theirs = f"the server speaks {', '.join(listed)}" if listed else "the server did not say which"
        why = f" ({printable(self.reason[: 10 * _MOST_CHARACTERS])})" if self.reason else ""
        return f"no revision in common: offered were {', '.join(self.offered)}, {theirs}{why}"


class RequestLost(McpgenError):  # noqa: N818 (as the tree above names it)
    """A request of ours may not have arrived, or its answer will not; nobody knows whether it was acted on.

    The conversation goes on: other requests are not concerned, and this one may be made again if that does no harm.
    """

    is_general: bool = False
    """Whether any other request would fare alike, as without the right credentials."""


# Enough to recognise it; an error must not be as long as what caused it.
MAX_QUOTED_CHARS = 300

# Blanks of other widths, such as the one between Japanese words: they are no danger, and an escape would be ugly.
_BLANK = "Zs"


def quoted(text: str) -> str:
    """Return a text that may hold what a peer sent, cut to a bearable length, and harmless to a terminal."""
    shown = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
    return "\n".join(map(printable, shown.split("\n")))


def printable(text: str) -> str:
    """Return *text* on one line, with what could steer a terminal written as an escape."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == _BLANK:
        return character
    return character.encode("unicode_escape").decode("ascii")


E = TypeVar("E", bound=BaseException)


def sole_exception(error: E) -> E:
    """Return the one error in a group; what happened matters, not that a task group ran it."""
    inner: Sequence[E] = getattr(error, "exceptions", ()) if issubclass(type(error), BaseExceptionGroup) else ()
    return sole_exception(inner[0]) if len(inner) == 1 else error
