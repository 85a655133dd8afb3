"""Agreeing on a revision with a server of unknown era, without harm to servers that know only `initialize`.

Theory of operation. A stateless server answers `server/discover` with its revisions. A handshake server needs
`initialize` first, and its reaction to anything else is unknown: an error with any code, no answer, exit, or it never
answers again. So the client sends one *probe* (`server/discover`) with a short timeout, and everything but a clear
answer means `initialize`. If the server has exited or does not answer that either, the client starts a new one, and
begins with `initialize`. The era is remembered.

Over HTTP each request stands alone, and a lost probe does the server no harm. The client sends `initialize` to the same
server, unless it would fail in the same way (2026-07-28, basic/transports/streamable-http, "Backward Compatibility").

A server that starts slowly may answer the probe after the client has sent `initialize`. Then the result of `initialize`
counts, and if that is an error, the late answer to the probe. The next connection begins with `server/discover`.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/transports/stdio, "Backward
    Compatibility", and basic/versioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.client.input_required import with_result_type
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
from mcpgen.runtime.protocol.newest import ErrorCode, MetaKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.deadlines import Deadlines
    from mcpgen.runtime.client.era_cache import Era, Plan
    from mcpgen.runtime.client.pending_request import PendingRequest

__all__ = ["RestartServer", "negotiate"]

# A server that did not answer the probe gets this many times its timeout for `initialize`. Most servers that only start
# slowly answer within it.
_INITIALIZE_TIMEOUT_FACTOR: Final = 5

# 2026-07-28, basic/index, "Error Codes": no handshake revision has these three.
_STATELESS_ERRORS: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)


class RestartServer(Exception):  # noqa: N818 (no error: the next step)
    """This server can no longer be used. Start a new one, and begin with *plan*.

    Attributes:
        plan: The first step with the new server.
        reason: The error to raise if *plan* was tried before.
    """

    def __init__(self, plan: Plan, reason: Exception) -> None:
        self.plan: Plan = plan
        self.reason = reason
        super().__init__(plan, reason)


class _DiscoverMeta(Struct):
    info: Raw | UnsetType = field(name=MetaKey.SERVER_INFO, default=UNSET)


class _DiscoverResult(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: Raw
    result_type: Literal["complete"] = "complete"
    instructions: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class _Version(Struct, rename="camel"):
    protocol_version: str


class _InitializeResult(Struct, rename="camel"):
    capabilities: Raw
    server_info: Raw | UnsetType = UNSET
    instructions: str | UnsetType = UNSET


class _UnsupportedData(Struct):
    supported: list[str]


class _Error(Struct):
    data: Raw | UnsetType = UNSET


async def negotiate(session: ClientSession, offered: Sequence[str], plan: Plan, clock: Deadlines) -> Era:
    """Agree on a revision with the server, and call `ClientSession.agree`.

    Args:
        session: A session in which nothing was sent yet.
        offered: The revisions that the client can speak, oldest first.
        plan: The first step.
        clock: Measures how long the server takes. It stands still while a person logs in.

    Returns:
        The era with which the next connection to this server begins.

    Raises:
        RestartServer: A new server has to be started.
        NoCommonRevision: The server speaks none of *offered*.
        RequestRefused: The server refuses the client.
        InvalidPayload: The server's answer is invalid.
        TransportClosed: The server has ended the connection.
        RequestLost: The server cannot be reached, or its answer is no message.
    """
    negotiation = _Negotiation(session, offered, clock)
    await negotiation.run(plan)
    return negotiation.era


class _Negotiation:
    def __init__(self, session: ClientSession, offered: Sequence[str], clock: Deadlines) -> None:
        self._session = session
        self._clock = clock
        self._offered = offered
        self._handshake = revisions_of_era(offered, "handshake")
        self._stateless = revisions_of_era(offered, "stateless")
        session.offers_handshake = bool(self._handshake)
        self.era: Era = "handshake"
        self._open_probe: PendingRequest | None = None
        self._refused: set[str] = set()  # revisions that the server refused, although it may list them
        self._retried: set[str] = set()

    async def run(self, plan: Plan) -> None:
        if plan == "initialize":
            await self._initialize(is_first=True)
        elif plan == "discover" or not self._handshake:
            try:
                await self._discover(self._stateless[-1])
            except TransportClosed as error:
                if not self._handshake:
                    raise
                raise RestartServer("initialize", error) from None
            except RequestLost as error:
                if not self._handshake or error.is_general:
                    raise
                await self._initialize(is_first=False)
        else:
            await self._probe()

    async def _probe(self) -> None:
        """Send the probe, and continue with the era that follows from the answer."""
        request = self._send_discover(self._stateless[-1])
        with self._clock.limit(self._session.limits.probe_seconds):
            await request.event.wait()
        if not request.is_done:
            self._open_probe = request
            await self._initialize_silent_server()
            return
        try:
            response = request.response()
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
        if isinstance(response, Raw):
            try:
                found = self._read_discover_result(response, self._stateless[-1])
            except InvalidPayload:  # no stateless server answers like this
                await self._initialize(is_first=False)
            else:
                await self._accept_discover_result(found)
        elif response.code in _STATELESS_ERRORS:
            await self._handle_stateless_error(response, self._stateless[-1])
        else:
            await self._initialize(is_first=False)

    async def _initialize_silent_server(self) -> None:
        """Send `initialize` to a server that did not answer the probe, with a timeout."""
        seconds = self._session.limits.probe_seconds * _INITIALIZE_TIMEOUT_FACTOR
        with self._clock.limit(seconds) as scope:
            await self._initialize(is_first=False)
        if scope.cancelled_caught:
            raise RestartServer("initialize", RequestTimedOut("initialize", seconds))

    async def _discover(self, revision: str) -> None:
        response = await self._send_discover(revision).wait()
        if isinstance(response, Raw):
            await self._accept_discover_result(self._read_discover_result(response, revision))
        elif response.code in _STATELESS_ERRORS:
            await self._handle_stateless_error(response, revision)
        else:
            # A handshake server. The remembered era was wrong; a new server gets `initialize` first.
            refusal = RequestRefused("server/discover", error_as_received(response))
            if self._handshake:
                raise RestartServer("initialize", refusal)
            raise NoCommonRevision(offered=self._offered, supported=_supported(response), reason=str(refusal))

    def _send_discover(self, revision: str) -> PendingRequest:
        meta = self._session.features.meta(revision)
        return self._session.send("server/discover", msgspec.json.encode({"_meta": meta}))

    async def _handle_stateless_error(self, response: ErrorResponse, revision: str) -> None:
        """Continue with a stateless server that refuses `server/discover` in *revision*.

        Spec:
            2026-07-28, basic/transports/stdio, "Backward Compatibility": "Do not fall back to initialize", but select
            one of the listed revisions, which may be a handshake revision.
        """
        refusal = RequestRefused("server/discover", error_as_received(response))
        if response.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            raise refusal
        self._refused.add(revision)
        await self._select(_supported(response), is_final=False, reason=str(refusal))

    async def _select(self, supported: Sequence[str], *, is_final: bool, reason: str = "") -> str:
        """Return the newest common revision; empty if `initialize` has agreed on one.

        Args:
            supported: The revisions that the server lists.
            is_final: Whether a stateless revision can be used without another `server/discover`.
            reason: Why the server has listed them.
        """
        common = [each for each in self._stateless if each in supported and each not in self._refused]
        if common and is_final:
            return common[-1]
        if common:
            await self._discover(common[-1])
            return common[-1]
        handshake = [each for each in self._handshake if each in supported]
        if handshake:
            await self._initialize(is_first=False, offer=handshake[-1])
            return ""
        retry = [each for each in self._stateless if each in supported and each not in self._retried]
        if retry:
            # The server refuses a revision that it lists. There may be several servers behind one address, and one of
            # them older than the others. Try once more, and only once.
            self._retried.add(retry[-1])
            self._refused.discard(retry[-1])
            await self._discover(retry[-1])
            return retry[-1]
        raise NoCommonRevision(offered=self._offered, supported=supported, reason=reason)

    async def _accept_discover_result(self, found: _DiscoverResult) -> None:
        revision = await self._select(found.supported_versions, is_final=True)
        if not revision:
            return
        meta = _DiscoverMeta()
        if not isinstance(found.meta, UnsetType):
            meta = msgspec.json.decode(found.meta, type=_DiscoverMeta)
        self.era = "stateless"
        self._session.agree(server_peer(revision, found.capabilities, meta.info, found.instructions))

    async def _initialize(self, *, is_first: bool, offer: str | None = None) -> None:
        """Send `initialize`, and agree on a revision.

        Args:
            is_first: Whether nothing was sent before.
            offer: The revision to offer; by default the newest.

        Spec:
            2025-11-25, basic/lifecycle, "Initialization" and "Version Negotiation".
        """
        session = self._session
        offer = offer or self._handshake[-1]
        params = {
            "protocolVersion": offer,
            "capabilities": session.features.capabilities(offer),
            "clientInfo": session.features.info(offer),
        }
        try:
            response = await session.send("initialize", msgspec.json.encode(params)).wait()
        except TransportClosed as error:
            if is_first:
                raise
            raise RestartServer("initialize", error) from None
        except RequestLost as error:
            if is_first and self._stateless and not error.is_general:  # the server may have a new era since
                raise RestartServer("probe", error) from None
            raise
        if isinstance(response, ErrorResponse):
            await self._handle_initialize_error(response, is_first=is_first)
            return
        if self._open_probe is not None:
            session.forget(self._open_probe)
            late = await self._late_discover_result() if self._open_probe.is_done else None
            if late is not None and not set(self._stateless).isdisjoint(late.supported_versions):
                self.era = "stateless"
        revision: str = _decode(response, offer, "initialize", _Version).protocol_version
        if revision not in self._handshake:
            is_stateless = revision in self._stateless
            reason = f"the result of initialize names {revision}, which has no initialize" if is_stateless else ""
            raise NoCommonRevision(offered=self._offered, supported=[revision[:40]], reason=reason)
        valid = self._valid(response, revision, "initialize", bindings(revision).models.InitializeResult)
        found: _InitializeResult = _decode(valid, revision, "initialize", _InitializeResult)
        session.agree(server_peer(revision, found.capabilities, found.server_info, found.instructions))
        session.notify("notifications/initialized")

    async def _handle_initialize_error(self, response: ErrorResponse, *, is_first: bool) -> None:
        """Continue with a server that refuses `initialize`."""
        refusal = RequestRefused("initialize", error_as_received(response))
        late = await self._late_discover_result()
        if late is not None:
            await self._accept_discover_result(late)
            return
        supported = _supported(response)
        if response.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and any(
            each in supported for each in self._stateless
        ):
            await self._select(supported, is_final=False, reason=str(refusal))
            return
        if not is_first:
            raise RestartServer("initialize", refusal)
        if supported:
            raise NoCommonRevision(offered=self._offered, supported=supported, reason=str(refusal))
        if self._stateless:
            raise RestartServer("probe", refusal)
        raise refusal

    def _read_discover_result(self, raw: Raw, revision: str) -> _DiscoverResult:
        """Return the result of `server/discover`, which was sent in *revision*.

        Raises:
            InvalidPayload: *revision* does not allow it.
        """
        raw = self._valid(with_result_type(raw), revision, "server/discover", bindings(revision).models.DiscoverResult)
        found: _DiscoverResult = _decode(raw, revision, "server/discover", _DiscoverResult)
        return found

    def _valid(self, raw: Raw, revision: str, method: str, kind: Any) -> Raw:
        """Return the result *raw*, or what is meant by it, as *revision* allows it.

        Raises:
            InvalidPayload: *revision* does not allow it.
        """
        try:
            _decode(raw, revision, method, kind)
        except InvalidPayload:
            normalized = self._session.reading.payload(revision, method, "result", "client", raw)
            if normalized is None:
                raise
            return normalized
        return raw

    async def _late_discover_result(self) -> _DiscoverResult | None:
        """Return the result of a probe that has timed out, if it comes now: a server may answer in any order."""
        probe, self._open_probe = self._open_probe, None
        if probe is None:
            return None
        with self._clock.limit(self._session.limits.probe_seconds):
            try:
                response = await probe.wait()
                return self._read_discover_result(response, self._stateless[-1]) if isinstance(response, Raw) else None
            except (TransportClosed, RequestLost, MalformedFrame, InvalidPayload):
                return None
        return None


def _decode(raw: Raw, revision: str, method: str, kind: Any) -> Any:
    try:
        return bindings(revision).models.decode(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = f"the result of {method}"
        raise InvalidPayload(revision=revision, pointer="", what=what, reason=str(error)[:500]) from None


def _supported(response: ErrorResponse) -> list[str]:
    """Return the revisions that an error lists."""
    try:
        data = msgspec.json.decode(response.error, type=_Error).data
        return [] if isinstance(data, UnsetType) else msgspec.json.decode(data, type=_UnsupportedData).supported
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
