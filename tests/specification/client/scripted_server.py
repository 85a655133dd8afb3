"""Servers that a test plays itself: it hears what the client says, and says what it likes, frame by frame.

    async with scripted(revisions=["2025-11-25"]) as (connecting, wire):
        asked = await wire.hear()
        wire.result(asked, {...})
        client = await connecting.outcome()

Each conversation is judged by a `ClientRecorder`, which is asked for its verdict at the end of the block. A message
reaches the client before `say` returns, so that both sides agree on what was said when.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.transports.spawner import open_group
from tests.harness.client_recorder import ClientRecorder
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable, Iterable

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint

ERAS = {each.label: each.era for each in REVISIONS}
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
ALL = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}

on_both_loops = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

# Who waits for nothing but us is through after a few turns of the event loop.
_QUIET_TURNS = 30


class Errand:
    """Something that the client's user does while the test plays the server."""

    def __init__(self) -> None:
        self.is_over = False
        self.value: Any = None
        self._over = anyio.Event()
        self._scope = anyio.CancelScope()
        self._error: Exception | None = None

    async def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do *work*."""
        try:
            with self._scope:
                self.value = await work
        except Exception as error:  # noqa: BLE001 (raised where the test asks for the outcome)
            self._error = error
        finally:
            self.is_over = True
            self._over.set()

    async def outcome(self) -> Any:
        """Return what came of it, or raise it."""
        with anyio.fail_after(PATIENCE_SECONDS):
            await self._over.wait()
        if self._error is not None:
            raise self._error
        return self.value

    async def cancel(self) -> None:
        """Cancel the task, and wait for its end."""
        self._scope.cancel()
        with anyio.fail_after(PATIENCE_SECONDS):
            await self._over.wait()


class Wire:
    """One conversation; the test is the server.

    Attributes:
        recorder: Judges what the client says.
        raw: All that it has said.
        is_left: Whether the client has ended the conversation.
    """

    is_full = False
    stderr = ""

    def __init__(self, revisions: Iterable[str]) -> None:
        self.recorder = ClientRecorder(revisions)
        self.raw: list[bytes] = []
        self.is_left = False
        self._read = 0
        self._said = anyio.Event()
        self._gone = anyio.Event()
        self._left = anyio.Event()
        self._endpoint: Endpoint | None = None
        self._early: list[bytes] = []

    # --- what the client sees: a channel

    def write(self, message: bytes) -> None:
        """Take a message of the client."""
        assert not self.is_left, message

        self.raw.append(bytes(message))
        self.recorder.said(bytes(message))
        self._said.set()

    async def drain(self) -> None:
        """Return at once: nothing is ever full here."""

    async def run(self, endpoint: Endpoint) -> None:
        """Hand over what the test says, until it hangs up."""
        self._endpoint = endpoint
        if self._early:
            endpoint.receive(self._early)
        await self._gone.wait()

    async def close_reason(self) -> TransportClosed:
        """Return why there is no more."""
        return TransportClosed("the test has hung up")

    # --- what the test does: a server

    async def hear(self, method: str = "") -> Any:
        """Return the client's next message; with *method*, it has to be one of these."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while self._read == len(self.raw):
                self._said = anyio.Event()
                await self._said.wait()
        message = json.loads(self.raw[self._read])
        self._read += 1
        assert not method or (isinstance(message, dict) and method == message.get("method")), message

        return message

    async def rest(self) -> list[Any]:
        """Return what the client says until it waits for something."""
        quiet, heard = 0, len(self.raw)
        with anyio.fail_after(PATIENCE_SECONDS):
            while quiet < _QUIET_TURNS:
                await checkpoint()
                quiet = quiet + 1 if heard == len(self.raw) else 0
                heard = len(self.raw)
        read, self._read = self._read, len(self.raw)
        return [json.loads(each) for each in self.raw[read:]]

    def say(self, *messages: object) -> None:
        """Say *messages*, all with one read; bytes as they are."""
        frames = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages]
        for each in frames:
            self.recorder.heard(each)
        if self._endpoint is None:
            self._early += frames
        else:
            self._endpoint.receive(frames)

    def result(self, request: Any, result: object) -> None:
        """Answer *request*."""
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def error(self, request: Any, code: int, message: str = "no", **more: object) -> None:
        """Answer *request* with an error; *more* is its ``data``."""
        self.say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message, **more}})

    def tell(self, method: str, **params: object) -> None:
        """Send a notification."""
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, identity: int | str, method: str, params: object = None) -> Any:
        """Send a request, and return what the client says next."""
        more = {} if params is None else {"params": params}
        self.say({"jsonrpc": "2.0", "id": identity, "method": method, **more})
        return await self.hear()

    def hang_up(self) -> None:
        """End the conversation."""
        self._gone.set()

    async def left(self) -> None:
        """Return when the client has ended the conversation."""
        with anyio.fail_after(PATIENCE_SECONDS):
            await self._left.wait()

    def leave(self) -> None:
        """Take it that the client has ended the conversation."""
        self.is_left = True
        self._left.set()

    # --- what most servers say

    async def greeted(self, revision: str, can: object = None, **more: object) -> Any:
        """Agree on *revision* when greeted, and return the greeting."""
        asked = await self.hear("initialize")
        self.result(asked, initialized(revision, can, **more))
        assert {"jsonrpc": "2.0", "method": "notifications/initialized"} == await self.hear()

        return asked

    async def discovered(self, can: object = None, **more: object) -> Any:
        """Say what a server of the newest revision says first, and return the question."""
        asked = await self.hear("server/discover")
        self.result(asked, discovered(can, **more))
        return asked


def initialized(revision: str, can: object = None, **more: object) -> dict[str, object]:
    """Return the result of `initialize`."""
    return {
        "protocolVersion": revision,
        "capabilities": ALL if can is None else can,
        "serverInfo": {"name": "played", "version": "1"},
        **more,
    }


def discovered(can: object = None, **more: object) -> dict[str, object]:
    """Return the result of `server/discover`."""
    return {
        "resultType": "complete",
        "supportedVersions": [STATELESS],
        "capabilities": ALL if can is None else can,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": {"name": "played", "version": "1"}},
        **more,
    }


def complete(revision: str, *, is_list: bool = False, **members: object) -> dict[str, object]:
    """Return a result of *revision* with *members*; lists and resources may be kept for a while."""
    if ERAS[revision] == "handshake":
        return members
    kept = {"ttlMs": 0, "cacheScope": "private"} if is_list else {}
    return {"resultType": "complete", **kept, **members}


class Stage:
    """A transport whose servers the test plays, and the tasks of whoever uses the client meanwhile.

    Args:
        start: Starts a task.
        revisions: What the client speaks.
        identity: What the servers are remembered under.
    """

    description = "a server that a test plays"

    def __init__(
        self, start: Callable[..., object], revisions: Iterable[str] | None = None, identity: Hashable | None = None
    ) -> None:
        self.identity = identity
        self.wires: list[Wire] = []
        self._start = start
        self._revisions = list(ERAS) if revisions is None else list(revisions)
        self.met = 0
        self._opened = anyio.Event()

    @asynccontextmanager
    async def open(self, limits: ClientLimits) -> AsyncGenerator[Channel]:
        """Begin a conversation."""
        del limits
        wire = Wire(self._revisions)
        self.wires.append(wire)
        self._opened.set()
        try:
            yield wire
        finally:
            wire.leave()

    async def wire(self) -> Wire:
        """Return the next conversation that the client opens."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while self.met == len(self.wires):
                self._opened = anyio.Event()
                await self._opened.wait()
        self.met += 1
        return self.wires[self.met - 1]

    def start(self, work: Coroutine[Any, Any, Any]) -> Errand:
        """Do *work* in a task of its own."""
        errand = Errand()
        self._start(errand.run, work)
        return errand

    def connect(self, **options: Any) -> Errand:
        """Connect a client to this; whoever does so closes it."""

        async def start() -> Any:
            return await connect(self, **options)

        return self.start(start())


@asynccontextmanager
async def stage(revisions: Iterable[str] | None = None, identity: Hashable | None = None) -> AsyncGenerator[Stage]:
    """Set a stage; the block ends with the verdict on all that clients have said on it."""
    async with open_group() as group:
        made = Stage(group.start_soon, revisions, identity)
        yield made
    for each in made.wires:
        each.recorder.verify()


@asynccontextmanager
async def scripted(**options: Any) -> AsyncGenerator[tuple[Errand, Wire]]:
    """Connect a client with *options* to a server that the test plays; it is closed, and judged, at the end."""
    async with stage(options.get("revisions")) as made:
        connecting = made.connect(**options)
        wire = await made.wire()
        try:
            yield connecting, wire
        finally:
            await connecting.cancel()
            await _close(connecting)


class Opened:
    """A client that is connected, and the server that the test plays.

    Attributes:
        client: The client.
        wire: Its conversation.
        greeting: What it has said first.
    """

    def __init__(self, client: Any, wire: Wire, own: Stage, greeting: Any) -> None:
        self.client = client
        self.wire = wire
        self.greeting = greeting
        self._stage = own

    @property
    def capabilities(self) -> Any:
        """What the client has declared at first."""
        params = self.greeting["params"]
        return params["_meta"][META + "clientCapabilities"] if "_meta" in params else params["capabilities"]

    @property
    def info(self) -> Any:
        """How it has named itself."""
        params = self.greeting["params"]
        return params["_meta"][META + "clientInfo"] if "_meta" in params else params["clientInfo"]

    def start(self, work: Coroutine[Any, Any, Any]) -> Errand:
        """Do *work* in a task of its own."""
        return self._stage.start(work)

    async def asked(self, work: Coroutine[Any, Any, Any]) -> tuple[Errand, Any]:
        """Start *work*, and return it with the request that it sends."""
        errand = self.start(work)
        return errand, await self.wire.hear()

    async def answered(self, work: Coroutine[Any, Any, Any], result: object) -> Any:
        """Start *work*, answer the one request that it sends with *result*, and return what comes of it."""
        errand, asked = await self.asked(work)
        self.wire.result(asked, result)
        return await errand.outcome()


@asynccontextmanager
async def opened(revision: str, *, can: object = None, more: Any = None, **options: Any) -> AsyncGenerator[Opened]:
    """Connect a client with *options* to a server of *revision* that declares *can*; the test plays it from then on.

    Args:
        revision: The one that the client offers, unless *options* say more.
        can: The capabilities of the server.
        more: More that the server says of itself.
        options: For `connect`.
    """
    options = {"revisions": [revision], **options}
    async with stage(options["revisions"]) as made:
        connecting = made.connect(**options)
        wire = await made.wire()
        play = wire.discovered(can, **(more or {})) if ERAS[revision] == "stateless" else None
        greeting = await (play or wire.greeted(revision, can, **(more or {})))
        try:
            yield Opened(await connecting.outcome(), wire, made, greeting)
        finally:
            await _close(connecting)


async def _close(connecting: Errand) -> None:
    client = connecting.value
    if client is not None:
        with anyio.fail_after(PATIENCE_SECONDS):
            await client.close()
