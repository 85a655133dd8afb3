"""How a client finds out what its server speaks, without harm to a server that knows nothing of the question.

Theory of operation. A server of today is asked `server/discover`, and says which revisions it has. One of before has to
be greeted with `initialize`; what it does when it is asked something else first is anybody's guess: an error of any
code, silence, exit, or a stupor in which it answers nothing ever after. So the question is put once, for a short time,
and whatever is no clear answer means `initialize`. If that finds the server gone or in a stupor, a fresh one is
started, which is greeted at once. What was learnt is remembered.

Where each request travels by itself, as over HTTP, one that is lost leaves the server as it was: it is greeted all the
same, unless the failure would be the same (2026-07-28, basic/transports/streamable-http, "Backward Compatibility").

A server that is slow to start may answer the question after all, while its greeting is on the way. Then the answer to
the greeting counts, if there is one, and otherwise the late answer.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/transports/stdio, "Backward
    Compatibility", and basic/versioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.client.pending_request import error_as_received
from mcpgen.runtime.errors import (
    InvalidPayload,
    MalformedFrame,
    NoCommonRevision,
    RequestLost,
    RequestRefused,
    RequestTimedOut,
    TransportClosed,
)
from mcpgen.runtime.protocol.capabilities import server_peer
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.protocol.negotiation import revisions_of_era

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.era_cache import Era
    from mcpgen.runtime.client.pending_request import PendingRequest

__all__ = ["Plan", "RestartServer", "negotiate", "first_plan"]

Plan: TypeAlias = Literal["probe", "initialize", "discover"]
"""What to begin with: ask for the era in a bounded way, or act on what is known of it."""

# How much longer than for the probe a server that was silent is waited for, before it is taken to be in a stupor. A
# server that only starts slowly answers within it, most often.
_PATIENCE: Final = 5

# 2026-07-28, basic/index, "Error Codes": these three no server of before has.
_MODERN: Final = frozenset({-32020, -32021, -32022})
_UNSUPPORTED_REVISION: Final = -32022


class RestartServer(Exception):  # noqa: N818 (no error: the next step)
    """This server cannot be spoken with any more; another one has to be started, and *plan* tried.

    Attributes:
        plan: What to begin with there.
        reason: What happened, should there be no other try.
    """

    def __init__(self, plan: Plan, reason: Exception) -> None:
        self.plan: Plan = plan
        self.reason = reason
        super().__init__(plan, reason)


class _Named(Struct):
    info: Raw | UnsetType = field(name="io.modelcontextprotocol/serverInfo", default=UNSET)


class _Discovered(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: Raw
    result_type: Literal["complete"] = "complete"
    instructions: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class _Initialized(Struct, rename="camel"):
    protocol_version: str
    capabilities: Raw
    server_info: Raw | UnsetType = UNSET
    instructions: str | UnsetType = UNSET


class _Unsupported(Struct):
    supported: list[str]


class _Error(Struct):
    data: Raw | UnsetType = UNSET


def first_plan(offered: Sequence[str], era: Era | None) -> Plan:
    """Return what to begin with.

    Args:
        offered: The revisions that we would speak.
        era: That of the server, if it is known.
    """
    if not revisions_of_era(offered, "stateless"):
        return "initialize"
    if not revisions_of_era(offered, "handshake"):
        return "discover"
    return "probe" if era is None else "initialize" if era == "handshake" else "discover"


async def negotiate(session: ClientSession, offered: Sequence[str], plan: Plan) -> None:
    """Agree with the server on a revision, so that `ClientSession.server` is known.

    Args:
        session: With a server that was asked nothing before.
        offered: The revisions that we would speak, oldest first.
        plan: What to begin with.

    Raises:
        StartAnew: It has to be tried with another server.
        NoCommonRevision: The server speaks none of *offered*.
        RequestRefused: It does not want to speak with us.
        InvalidPayload: Its answer is not valid.
        TransportClosed: It is gone.
        RequestLost: It cannot be reached, or what it says is no message.
    """
    await _Establishing(session, offered).run(plan)


class _Establishing:
    def __init__(self, session: ClientSession, offered: Sequence[str]) -> None:
        self._session = session
        self._offered = offered
        self._handshakes = revisions_of_era(offered, "handshake")
        self._stateless = revisions_of_era(offered, "stateless")
        self._probe: PendingRequest | None = None  # unanswered
        self._refused_in: set[str] = set()  # what the server does not speak, whatever it lists
        self._asked_again: set[str] = set()

    async def run(self, plan: Plan) -> None:
        if plan == "initialize":
            await self._initialize(is_first=True)
        elif plan == "discover" or not self._handshakes:
            try:
                await self._discover(self._stateless[-1])
            except TransportClosed as error:
                if not self._handshakes:
                    raise
                raise RestartServer("initialize", error) from None
            except RequestLost as error:
                if not self._handshakes or error.is_general:
                    raise
                await self._initialize(is_first=False)
        else:
            await self._ask_first()

    async def _ask_first(self) -> None:
        """Ask for the era, and go on with what is the answer."""
        call = self._send_discover(self._stateless[-1])
        seconds = self._session.limits.probe_seconds
        with anyio.move_on_after(seconds):
            await call.waker.wait()
        if not call.is_settled:
            self._probe = call
            await self._greet_slow()
            return
        try:
            answer = call.outcome()
        except TransportClosed as error:
            raise RestartServer("initialize", error) from None
        except RequestLost as error:
            if error.is_general:
                raise
            await self._initialize(is_first=False)
            return
        except MalformedFrame:
            await self._initialize(is_first=False)
            return
        if isinstance(answer, Raw):
            try:
                found = _read_discovered(answer, self._stateless[-1])
            except InvalidPayload:  # no server of today says this
                await self._initialize(is_first=False)
            else:
                await self._discovered(found)
        elif answer.code in _MODERN:
            await self._refused(answer, self._stateless[-1])
        else:
            await self._initialize(is_first=False)

    async def _greet_slow(self) -> None:
        """Greet a server that was silent, and do not wait for ever."""
        seconds = self._session.limits.probe_seconds * _PATIENCE
        with anyio.move_on_after(seconds) as scope:
            await self._initialize(is_first=False)
        if scope.cancelled_caught:
            raise RestartServer("initialize", RequestTimedOut("initialize", seconds))

    async def _discover(self, revision: str) -> None:
        answer = await _answered(self._send_discover(revision))
        if isinstance(answer, Raw):
            await self._discovered(_read_discovered(answer, revision))
        elif answer.code in _MODERN:
            await self._refused(answer, revision)
        else:
            # It is of before. Where that was not expected, it is now known, and a fresh one can be greeted.
            refusal = RequestRefused("server/discover", error_as_received(answer))
            if self._handshakes:
                raise RestartServer("initialize", refusal)
            raise NoCommonRevision(offered=self._offered, supported=_supported(answer), reason=str(refusal))

    def _send_discover(self, revision: str) -> PendingRequest:
        meta = self._session.offering.meta(revision)
        return self._session.send("server/discover", msgspec.json.encode({"_meta": meta}))

    async def _refused(self, answer: ErrorResponse, asked_in: str) -> None:
        """Go on with a server of today that has refused the question.

        Spec:
            2026-07-28, basic/transports/stdio, "Backward Compatibility": "Do not fall back to initialize" but use what
            it lists; a revision with a handshake may be among that.
        """
        refusal = RequestRefused("server/discover", error_as_received(answer))
        if answer.code != _UNSUPPORTED_REVISION:
            raise refusal
        self._refused_in.add(asked_in)
        await self._choose(_supported(answer), is_settled=False, reason=str(refusal))

    async def _choose(self, supported: Sequence[str], *, is_settled: bool, reason: str = "") -> str:
        """Return the newest revision in common, or greet a server that shakes hands for what is in common."""
        common = [each for each in self._stateless if each in supported and each not in self._refused_in]
        if common and is_settled:
            return common[-1]
        if common:
            await self._discover(common[-1])
            return common[-1]
        greetings = [each for each in self._handshakes if each in supported]
        if greetings:
            await self._initialize(is_first=False, offer=greetings[-1])
            return ""
        again = [each for each in self._stateless if each in supported and each not in self._asked_again]
        if again:
            # It refuses what it lists. Behind one address there may be several servers, of which one is behind the
            # others; so it is asked once more, and only once.
            self._asked_again.add(again[-1])
            self._refused_in.discard(again[-1])
            await self._discover(again[-1])
            return again[-1]
        raise NoCommonRevision(offered=self._offered, supported=supported, reason=reason)

    async def _discovered(self, found: _Discovered) -> None:
        revision = await self._choose(found.supported_versions, is_settled=True)
        if not revision:
            return
        meta = _Named()
        if not isinstance(found.meta, UnsetType):
            meta = msgspec.json.decode(found.meta, type=_Named)
        instructions = None if isinstance(found.instructions, UnsetType) else found.instructions
        self._session.agree(server_peer(revision, found.capabilities, meta.info, instructions))

    async def _initialize(self, *, is_first: bool, offer: str | None = None) -> None:
        """Shake hands.

        Args:
            is_first: Whether nothing was asked before.
            offer: The revision to offer; by default the newest.

        Spec:
            2025-11-25, basic/lifecycle, "Initialization" and "Version Negotiation".
        """
        session = self._session
        offer = offer or self._handshakes[-1]
        params = {
            "protocolVersion": offer,
            "capabilities": session.offering.capabilities(offer),
            "clientInfo": session.offering.info(offer),
        }
        try:
            answer = await _answered(session.send("initialize", msgspec.json.encode(params)))
        except TransportClosed as error:
            if is_first:
                raise
            raise RestartServer("initialize", error) from None
        except RequestLost as error:
            if is_first and self._stateless and not error.is_general:  # it may not be what it once was
                raise RestartServer("probe", error) from None
            raise
        if isinstance(answer, ErrorResponse):
            await self._not_initialized(answer, is_first=is_first)
            return
        if self._probe is not None:
            session.drop(self._probe)
        found: _Initialized = _read(answer, offer, "initialize", _Initialized)
        revision = found.protocol_version
        if revision not in self._handshakes:
            raise NoCommonRevision(offered=self._offered, supported=[revision[:40]])
        _check(answer, revision, "initialize", "InitializeResult")
        instructions = None if isinstance(found.instructions, UnsetType) else found.instructions
        session.agree(server_peer(revision, found.capabilities, found.server_info, instructions))
        session.notify("notifications/initialized")

    async def _not_initialized(self, answer: ErrorResponse, *, is_first: bool) -> None:
        """Go on with a server that does not shake hands."""
        refusal = RequestRefused("initialize", error_as_received(answer))
        late = await self._late_answer()
        if late is not None:
            await self._discovered(_read_discovered(late, self._stateless[-1]))
            return
        supported = _supported(answer)
        if answer.code == _UNSUPPORTED_REVISION and self._stateless and any(e in supported for e in self._stateless):
            await self._choose(supported, is_settled=False, reason=str(refusal))
            return
        if not is_first:
            raise RestartServer("initialize", refusal)
        if supported:
            raise NoCommonRevision(offered=self._offered, supported=supported, reason=str(refusal))
        if self._stateless:
            raise RestartServer("probe", refusal)
        raise refusal

    async def _late_answer(self) -> Raw | None:
        """Return the result of a probe that was given up, if there is one: a server may answer out of order."""
        probe, self._probe = self._probe, None
        if probe is None:
            return None
        with anyio.move_on_after(self._session.limits.probe_seconds):
            while not probe.is_settled:
                await probe.waker.wait()
        try:
            answer = probe.outcome() if probe.is_settled else None
        except (TransportClosed, RequestLost, MalformedFrame):
            return None
        return answer if isinstance(answer, Raw) else None


async def _answered(call: PendingRequest) -> Any:
    """Return the answer to *call*.

    Raises:
        TransportClosed: The server is gone.
        RequestLost: The server has not got it, or its answer has not come.
        MalformedFrame: What came back is no response.
    """
    while not call.is_settled:
        await call.waker.wait()
    return call.outcome()


def _read_discovered(raw: Raw, asked_in: str) -> _Discovered:
    """Return what a server says when it is asked in the revision *asked_in*.

    Raises:
        InvalidPayload: That revision does not allow it.
    """
    _check(raw, asked_in, "server/discover", "DiscoverResult")
    found: _Discovered = _read(raw, asked_in, "server/discover", _Discovered)
    return found


def _check(raw: Raw, revision: str, method: str, definition: str) -> None:
    """Find out whether *revision* allows the result *raw*.

    Raises:
        InvalidPayload: It does not.
    """
    types = bindings(revision).models
    try:
        types.decode(raw, getattr(types, definition))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(revision, method, error) from None


def _read(raw: Raw, revision: str, method: str, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(revision, method, error) from None


def _invalid(revision: str, method: str, error: Exception) -> InvalidPayload:
    return InvalidPayload(revision=revision, pointer="", what=f"the result of {method}", reason=str(error)[:500])


def _supported(answer: ErrorResponse) -> list[str]:
    """Return the revisions that an error lists."""
    try:
        data = msgspec.json.decode(answer.error, type=_Error).data
        return [] if isinstance(data, UnsetType) else msgspec.json.decode(data, type=_Unsupported).supported
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
