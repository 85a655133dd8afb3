"""The same readings without other processes: our client with sloppy servers, and our server with sloppy clients."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol.framing import LineFramer
from mcpgen.runtime.transports.memory import wire
from tests.interop.sloppy.readings import Verdict, judge_answer
from tests.interop.sloppy.scripted_client import AFTERTHOUGHT_SECONDS, answer_in, script
from tests.interop.sloppy.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mcpgen.runtime.transports.interfaces import MessageWriter, ServerInterface
    from mcpgen.runtime.transports.memory import Wire
    from tests.interop.sloppy.kinds import Kind

__all__ = ["SloppyServer", "answer_of"]

# A server that answers in memory does so at once, or in seconds on a busy machine.
SILENCE_SECONDS = 10


class SloppyServer:
    """A scripted server, as `connect` takes it."""

    name = "sloppy"
    limits = Limits()

    def __init__(self, kind: Kind, revision: str) -> None:
        self._kind = kind
        self._revision = revision

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do nothing: it has no lifespan."""
        yield

    def connect(self, writer: MessageWriter, _: object) -> _Endpoint:
        """Return the server's side of a new connection."""
        return _Endpoint(writer, ScriptedServer(self._kind, self._revision))


class _Endpoint:
    def __init__(self, writer: MessageWriter, script: ScriptedServer) -> None:
        self._writer = writer
        self._script = script

    def receive(self, frames: Sequence[Any]) -> None:
        for frame in frames:
            for line in LineFramer().feed(self._script.receive(bytes(frame).decode()).encode()):
                self._writer.write(bytes(line))  # type: ignore[arg-type] # no line is too long

    def end_of_input(self) -> None:
        """Do nothing: it has answered."""

    async def wait_finished(self) -> None:
        """Return at once: nothing runs."""

    def close(self) -> None:
        """Do nothing: nothing runs."""


async def answer_of(server: ServerInterface, kind: Kind, revision: str) -> Verdict:
    """Return what becomes of a sloppy client that talks to *server*."""
    answer: dict[str, Any] = {}
    async with wire(server) as connection:
        for step in script(kind, revision):
            for line in LineFramer().feed(f"{step.text}\n".encode()):
                await connection.send(bytes(line))  # type: ignore[arg-type] # no line is too long
            found = await _answer(connection, step.answered) if step.answered is not None else {}
            if found is None:
                return Verdict("hangs", "no answer")
            answer = found or answer
            if "error" in answer:
                break
    return judge_answer(kind, answer)


async def _answer(connection: Wire, wanted: object) -> dict[str, Any] | None:
    """Return the answer to a request, or an error without an id if there is none."""
    nameless: dict[str, Any] | None = None
    while True:
        text = ""
        with anyio.move_on_after(SILENCE_SECONDS if nameless is None else AFTERTHOUGHT_SECONDS):
            text = (await connection.receive_bytes()).decode()
        found = answer_in([text], wanted)
        if found is not None or not text:
            return found or nameless
        nameless = answer_in([text], None) or nameless
