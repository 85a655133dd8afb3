"""The exceptions of the runtime, as one tree; each branch says whose fault it is.

McpgenError
├── UsageError             you called us wrongly; fix your code
│   ├── UnknownRevision
│   ├── UnknownMethod
│   └── UnknownDefinition
├── PeerError              the peer broke the protocol; carries .revision and .pointer
│   ├── MalformedFrame     not JSON, not JSON-RPC, or over the size limit
│   └── InvalidPayload     well-formed, but the revision does not allow it there
│       └── InvalidStructuredContent   a tool's result does not fit the tool's own output schema; carries .result
├── AdaptationError        a value has no meaning in the target revision; carries .step and .pointer
├── RequestError           an error with which a request is answered; carries .code, .message and .data
│   ├── RequestRefused     the peer answered our request with an error; carries .method, too
│   ├── PromptError        a prompt failed; its text is for the client (mcpgen.runtime.server.functions.prompts)
│   └── ResourceNotFound   there is no resource at a URI (mcpgen.runtime.server.functions.resources)
├── ToolError              a tool failed; its text is for the model (mcpgen.runtime.server.functions.tools)
├── ToolFailed             a tool that was called with `returns` failed (mcpgen.runtime.client.tool_results)
├── TaskCancelled          the task of a tool was cancelled (mcpgen.runtime.client.task_state)
├── UnexpectedResult       a tool's value is not of the type `returns` (mcpgen.runtime.client.tool_results)
├── UnsupportedByPeer      the peer's revision or capabilities do not allow a call; nothing was sent
├── NoCommonRevision       client and server have no revision in common; carries .offered and .supported
├── RequestTimedOut        our request was not answered in time; a TimeoutError, too
├── RequestLost            our request or its answer was lost; other requests are not affected
│   ├── ServerUnreachable  no connection could be made; carries .url and .reason (mcpgen.runtime.http.errors)
│   ├── HttpRefused        the HTTP response is not a message; carries .status and .excerpt (mcpgen.runtime.http.errors)
│   ├── LoginNeeded        a person has to log in, but may not be asked; carries .url (mcpgen.runtime.http.errors)
│   └── LoginFailed        the client got no access token; carries .reason (mcpgen.runtime.http.errors)
├── ClusterUnavailable     workers cannot reach each other; carries .reason (mcpgen.runtime.server.cluster.cluster)
├── StoreFull              a `TaskStore` has no room (mcpgen.runtime.server.tasks.task_store)
└── TransportClosed        the connection is closed; nothing more can be sent or received
    ├── NoServerConnected  no server of a configuration connects; has .failures (mcpgen.runtime.api.hosts.client_group)
    └── ServerExited       its process has ended; carries .status and .stderr (mcpgen.runtime.transports.errors)

Exceptions that stay inside of one module are not drawn.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
    "TransportClosed",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UnsupportedByPeer",
    "UsageError",
    "printable",
    "quoted",
    "seconds_text",
]

E = TypeVar("E", bound=BaseException)


class McpgenError(Exception):
    """The base of all exceptions of the runtime."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support `copy` and `pickle`; the default would lose the attributes that are not arguments."""
        return _remade, (type(self), self.args, self.__dict__)


def _remade(kind: type[E], arguments: tuple[object, ...], attributes: Mapping[str, object]) -> E:
    made = kind.__new__(kind, *arguments)
    made.__dict__.update(attributes)
    return made


class UsageError(McpgenError):
    """The caller passed something that does not exist or is not allowed."""


class UnknownRevision(UsageError, registry.UnknownRevision):  # noqa: N818 (as the tree above names it)
    """There are no bindings for a revision; the message lists the known ones.

    It is a subclass of `mcpgen.generated.registry.UnknownRevision`, so that either class catches it.
    """


class UnknownMethod(UsageError):  # noqa: N818 (as the tree above names it)
    """A revision has no such request or notification, or only one from the other side.

    Attributes:
        revision: The revision.
        method: The name that was asked for.
        known: The methods of the same kind (request or notification).
        hint: The kind and the sender that *method* has in the revision; empty if the revision has no such method.
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
        kind, space, sender = self._kind.partition(" ")  # such as "request from a server"
        return f"{self.revision} has no {kind} {self.method!r}{space}{sender}{hint}; the known ones are {listed}"


class UnknownDefinition(UsageError):  # noqa: N818 (as the tree above names it)
    """A revision has no definition of this name.

    Attributes:
        revision: The revision.
        name: The name.
        similar: Names of definitions of the revision that are similar to *name*.
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
    """The peer broke the protocol.

    Attributes:
        revision: The revision of the peer.
        pointer: The place, as a JSON Pointer (RFC 6901); empty for the whole value.
    """

    def __init__(self, *, revision: str, pointer: str) -> None:
        self.revision = revision
        self.pointer = pointer
        super().__init__(revision, pointer)


class InvalidPayload(PeerError):  # noqa: N818 (as the tree above names it)
    """A value is not allowed by its revision, or is not JSON at all.

    Attributes:
        what: The name of the value, such as ``the result of tools/call``.
        reason: Why it is not allowed.
        is_refused: Whether the value may be valid, and is refused for another reason, such as a limit.
    """

    def __init__(self, *, revision: str, pointer: str, what: str, reason: str, is_refused: bool = False) -> None:
        super().__init__(revision=revision, pointer=pointer)
        self.what = what
        self.reason = reason
        self.is_refused = is_refused

    def __str__(self) -> str:
        place = f" at {printable(self.pointer)}" if self.pointer else ""
        if self.is_refused:
            return f"{self.what} was refused{place}: {printable(self.reason)}"
        verb = "are" if self.what.startswith("the params") else "is"
        named = f" in {self.revision}" if self.revision else ""
        return f"{self.what} {verb} not valid{named}{place}: {printable(self.reason)}"


class InvalidStructuredContent(InvalidPayload):
    """The structured content of a tool's result does not match the tool's output schema.

    Attributes:
        result: The whole result of the tool.
    """

    def __init__(self, *, revision: str, pointer: str, tool: str, reason: str, result: object) -> None:
        what = f"the structured content of the tool {tool[:100]!r}"
        # Content that cannot be checked is refused, too.
        super().__init__(revision=revision, pointer=pointer, what=what, reason=reason, is_refused=True)
        self.result = result


class MalformedFrame(PeerError):  # noqa: N818 (as the tree above names it)
    """The peer answered a request with a frame that holds no message: not JSON, not JSON-RPC, or too long.

    A frame is the bytes of one message or batch. The caller of the request gets this error. The connection stays open.

    Attributes:
        reason: What is wrong with the frame.
        request_id: The id in the frame; None if it could not be read.
    """

    def __init__(self, *, revision: str, reason: str, request_id: str | int | None = None) -> None:
        super().__init__(revision=revision, pointer="")
        self.reason = reason
        self.request_id = request_id

    def __str__(self) -> str:
        named = f" of {self.revision}" if self.revision else ""  # empty before a revision is agreed
        named += "" if self.request_id is None else f" (request {self.request_id!r})"
        return f"the answer cannot be read as a message{named}: {self.reason}"


class AdaptationError(McpgenError):
    """A message, or a value in it, has no meaning in the target revision.

    Attributes:
        step: The conversion that failed, between two neighbouring revisions: ``2025-11-25 to 2026-07-28``.
        pointer: The place of the value in the input of that step, as a JSON Pointer; empty for the whole message.
        reason: Why the step failed.
        service: The name of the part of an mcpgen client or server that handles such messages; None if there is none.
            docs/losses.md lists these services.
        losses: The losses of the earlier steps.
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
        service = (
            f" (docs/losses.md, service {self.service!r}, says what mcpgen's clients and servers do instead)"
            if self.service
            else ""
        )
        return f"the message cannot be adapted from {self.step}{place}: {self.reason}{service}"


class RequestError(McpgenError):
    """An error with which a request is answered. Raise it in a handler.

    A side that sent a request gets the subclass `RequestRefused` if the peer answered with an error.

    Attributes:
        code: The error code in the native revision. ``ErrorCode`` in the bindings of that revision has the codes that
            MCP defines.
        message: One sentence, for the peer.
        data: Details, as JSON; UNSET if there are none.
    """

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        given: Any = code
        if not isinstance(given, int):
            raise UsageError(f"`code` of {type(self).__name__} must be an integer, not {given!r}")
        self.code: int = int(code)
        self.message = message
        self.data = data
        super().__init__(self.code, message)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class RequestRefused(RequestError):  # noqa: N818 (as the tree above names it)
    """The peer answered our request with an error.

    Attributes:
        method: The method of the request.
    """

    def __init__(self, method: str, error: RequestError) -> None:
        self.method = method
        super().__init__(error.code, error.message, error.data)

    def __str__(self) -> str:
        message = printable("\n".join(self.message.splitlines()), kept="\n")
        return f"{self.method} was answered with an error: {message} ({self.code})"


class UnsupportedByPeer(McpgenError):  # noqa: N818 (as the tree above names it)
    """The peer's revision has no such call, or the peer has not declared the capability; nothing was sent.

    Attributes:
        revision: The revision that the peer speaks.
        what: The method of the call, such as ``elicitation/create``.
        reason: Why it cannot be sent.
        required: The capabilities that the call needs and the peer has not declared; None if capabilities are not the
            reason.
        peer: Which side the peer is. A server's function may be the client of another server.
    """

    def __init__(
        self,
        *,
        revision: str,
        what: str,
        reason: str,
        required: Mapping[str, object] | None = None,
        peer: Literal["client", "server"] = "client",
    ) -> None:
        self.revision = revision
        self.what = what
        self.reason = reason
        self.required = required
        self.peer: Literal["client", "server"] = peer
        super().__init__(what, reason)

    def __str__(self) -> str:
        named = f" of {self.revision}" if self.revision else ""
        return f"{self.what} cannot be sent to this peer{named}: {self.reason}"


class TransportClosed(McpgenError):  # noqa: N818 (as the tree above names it)
    """The connection is closed, so no more messages can be sent or received."""

    def again(self) -> TransportClosed:
        """Return a copy of this error. When a connection ends, each waiting task raises its own copy."""
        return _remade(type(self), self.args, self.__dict__)


_MAX_REVISIONS = 12
_MAX_REVISION_CHARS = 40  # a revision has ten


class RequestTimedOut(McpgenError, TimeoutError):  # noqa: N818 (as the tree above names it)
    """Our request was not answered in time; the peer was notified that it is cancelled.

    Attributes:
        method: The method of the request.
        seconds: The time limit.
        server: The server, if the time to connect ended before it was ready; None if it did not answer a later request.
    """

    def __init__(self, method: str, seconds: float, server: str | None = None, *, event: str = "") -> None:
        self.method = method
        self.seconds = seconds
        self.server = server
        self._event = event or f"{method} was not answered"  # what did, or did not, happen within the time
        super().__init__(method)  # a TimeoutError takes two arguments as errno and its text

    def __str__(self) -> str:
        what = self._event if self.server is None else f"the server {self.server!r} was not ready"
        return f"{what} within {seconds_text(self.seconds)}"


class NoCommonRevision(McpgenError):  # noqa: N818 (as the tree above names it)
    """Client and server have no revision in common, or the server refuses a revision that both have.

    Attributes:
        offered: The revisions that the client offered.
        supported: The revisions that the server supports; empty if the server did not name them.
        reason: The error that the server sent; empty if it sent none.
    """

    def __init__(self, *, offered: Sequence[str], supported: Sequence[str], reason: str = "") -> None:
        self.offered: tuple[str, ...] = tuple(offered)
        self.supported: tuple[str, ...] = tuple(supported)
        self.reason = reason
        super().__init__(self.offered, self.supported)

    def __str__(self) -> str:
        listed = [printable(each[:_MAX_REVISION_CHARS]) for each in self.supported[:_MAX_REVISIONS]]
        if len(self.supported) > _MAX_REVISIONS:
            listed.append(f"and {len(self.supported) - _MAX_REVISIONS} more")
        none = "the server supports none of them" if len(self.offered) > 1 else "the server does not support it"
        theirs = f"the server speaks {', '.join(listed)}" if listed else none
        why = f" ({printable(self.reason[: 10 * _MAX_REVISION_CHARS])})" if self.reason else ""
        # A server can refuse a revision that it lists.
        is_refused = not set(self.offered).isdisjoint(self.supported)
        problem = "client and server could not agree on a revision" if is_refused else "no revision in common"
        return f"{problem}: the client offered {', '.join(self.offered)}, {theirs}{why}"


class RequestLost(McpgenError):  # noqa: N818 (as the tree above names it)
    """Our request or its answer was lost. The server may or may not have handled the request.

    The connection stays open for other requests. Send this one again only if handling it twice does no harm.
    """

    is_general: bool = False
    """Whether other requests would fail for the same reason, such as wrong credentials."""

    is_temporary: bool = True
    """Whether the same request may succeed later, such as when the server is started again."""

    is_refusal: bool = False
    """Whether the server, or a proxy or gateway before it, has refused the request."""


# Enough to recognise the text; an error must not be as long as the message that caused it.
MAX_QUOTED_CHARS = 300


def quoted(text: str) -> str:
    """Return text from a peer, truncated, and with control characters escaped."""
    shown = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
    return "\n".join(map(printable, shown.split("\n")))


def printable(text: str, *, kept: str = "") -> str:
    """Return *text* on one line, with line breaks and control characters escaped, except those in *kept*."""
    if text.isprintable():
        return text
    # Each character once: a peer can send millions of control characters, and to escape one takes 1 µs.
    return text.translate({ord(each): each if each in kept else _escaped(each) for each in set(text)})


def _escaped(character: str) -> str:
    # Spaces of other widths, such as the one between Japanese words, need no escape: terminals print them as they are.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def seconds_text(seconds: float) -> str:
    """Return a number of seconds with its unit, such as ``1 second``."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"
