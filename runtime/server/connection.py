"""The shell around a session: runs its handlers, and hands what it says to a transport."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from msgspec import Raw

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.server import input_required, notifications
from mcpgen.runtime.server.builtin_methods import end_stream
from mcpgen.runtime.server.context import Context, gather
from mcpgen.runtime.server.server_session import ServerSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange, Origin
    from mcpgen.runtime.server.service import Call
    from mcpgen.runtime.transports import Writer
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Connection"]

_LOG = logging.getLogger("mcpgen.handlers")


class Connection:
    """One connection of a server: what `Server.connect` returns, and what a transport drives.

    Attributes:
        session: What the peer has said and may say.
    """

    def __init__(self, engine: Engine, writer: Writer, spawner: Spawner) -> None:
        self.session: ServerSession = ServerSession(engine.service, self, engine.principal())
        self._engine = engine
        self._writer = writer
        self._spawner = spawner
        self._running = 0
        self._telling = 0
        self._changes: dict[tuple[str, str | None], None] = {}
        self._idle: anyio.Event | None = None

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Take what came; handlers are started, and what needs none is answered."""
        receive = self.session.receive
        self._spawner.hold()  # a request is not answered if the notification that cancels it came with it
        try:
            for each in frames:
                try:
                    receive(each)
                except Exception:  # noqa: BLE001 (the boundary: one frame must not cost the peer the others)
                    _LOG.exception("a message could not be handled")
        finally:
            self._spawner.release()

    def end_of_input(self) -> None:
        """Take it that nothing more will come: what the client was asked stays unanswered, streams end."""
        for stream in list(self.session.listening.streams.values()):
            end_stream(self.session, stream)
        for question in list(self.session.asks.values()):
            question.leave()
        self.session.asks.clear()

    async def finished(self) -> None:
        """Wait until no handler runs."""
        while self._running:
            if self._idle is None or self._idle.is_set():
                self._idle = anyio.Event()
            await self._idle.wait()

    def close(self) -> None:
        """Cancel all handlers, and forget the session."""
        self.session.close()
        self._engine.disconnect(self)

    def send(self, message: bytes, about: Exchange | Origin | None) -> None:
        """Write *message*; on one channel it does not matter which request it is about."""
        del about
        self._writer.write(message)

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Write an answer, likewise."""
        del origin
        self._writer.write(message)

    def dropped(self, origin: Origin | None) -> None:
        """Note that there will be no answer, for which nothing has to be done here."""

    def disconnect(self, exchange: Exchange, retry_ms: int | None) -> bool:
        """Return False: who loses the one channel cannot come back."""
        del exchange, retry_ms
        return False

    async def drain(self, about: Exchange | None) -> None:
        """Wait until the peer has read most of what was written."""
        del about
        if self._writer.is_full:
            await self._writer.drain()

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*."""
        self.enter(exchange)
        exchange.handle = self._spawner.start(self.serve, exchange)

    def enter(self, exchange: Exchange) -> None:
        """Note that the handler of *exchange* is run, by `serve`."""
        self._running += 1
        self.session.running += 1
        self.session.held_bytes += _size(exchange)

    def change(self, method: str, uri: str | None) -> None:
        """Tell of a change, now or as soon as the peer reads again; then once, however often it happened."""
        if not self._writer.is_full:
            notifications.change(self.session, method, uri)
        elif len(self._changes) < self._engine.limits.max_subscriptions:
            self._changes[method, uri] = None
            if len(self._changes) == 1:
                self._spawner.start(self._catch_up)

    async def _catch_up(self) -> None:
        while self._changes:
            await self._writer.drain()
            method, uri = next(iter(self._changes))
            del self._changes[method, uri]
            notifications.change(self.session, method, uri)

    def tell(self, call: Call, params: object, peer: Peer) -> None:
        """Run the handler of something that *peer* is not waiting for."""
        if self._telling >= self._engine.limits.max_in_flight:
            _LOG.warning("a notification is dropped: too many are being handled")
            return
        self._telling += 1
        self._running += 1
        self._spawner.start(self._told, call, params, peer)

    def flush_soon(self, exchange: Exchange) -> None:
        """Send what a handler asks of a stateless client, once it had time to ask for all of it."""
        self._spawner.start(self._flush, exchange)

    def expire_later(self) -> None:
        """Give up exchanges that nobody comes back to."""
        if not self._engine.is_expiring:
            self._engine.is_expiring = True
            self._spawner.start(self._expire)

    async def serve(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*, which was entered, and answer."""
        session, call = self.session, exchange.entry.call
        try:
            context = Context(self._engine, session, exchange, exchange.peer)
            result = await call(exchange.params, context)
            if exchange.peer.era == "handshake":
                rounds = 0
                while getattr(result, "result_type", "complete") == "input_required":
                    rounds += 1
                    if rounds > self._engine.limits.max_rounds:
                        _refuse_rounds()
                    call = self._lengthen(exchange)
                    exchange.params = await gather(context, exchange, session, result)
                    result = await call(exchange.params, context)
            if exchange.origin is not None:  # or thousands of answers would pile up in front of who does not read
                await exchange.origin.session.sink.drain(exchange)
            session.complete(exchange, result)
        except Exception as failure:  # noqa: BLE001 (the boundary: a handler's failure becomes an error response)
            session.fail(exchange, failure)
        finally:
            if not exchange.has_ended and exchange.origin is None:  # its shell ends while it waits for a retry
                input_required.forget_parked(session.service, exchange)
            if not exchange.has_ended:  # cancelled, but not by us: the request must not stay unanswered
                session.fail(exchange, RequestError(Code.INTERNAL_ERROR, "the request was given up"))
            if exchange.task is not None:
                exchange.task.close()
            self.session.running -= 1
            self.session.held_bytes -= _size(exchange)
            self._ran()

    def _lengthen(self, exchange: Exchange) -> Call:
        """Let *exchange* take the long way, where a handler is told what it demanded; return its handler."""
        entry = exchange.entry
        if entry.long is not None:
            exchange.entry = entry.long
            exchange.params = entry.long.codec.params(exchange.raw, self.session.meta)
        return exchange.entry.call

    async def _told(self, call: Call, params: object, peer: Peer) -> None:
        try:
            await call(params, Context(self._engine, self.session, None, peer))
        except Exception:  # noqa: BLE001 (the boundary: nobody waits for an answer)
            _LOG.exception("the handler of a notification failed")
        finally:
            self._telling -= 1
            self._ran()

    def _ran(self) -> None:
        self._running -= 1
        if not self._running and self._idle is not None:
            self._idle.set()

    async def _flush(self, exchange: Exchange) -> None:
        # One turn of the event loop: a handler that asks several things at once, with a task each, has then asked all.
        await anyio.lowlevel.checkpoint()
        input_required.flush_requests(exchange)

    async def _expire(self) -> None:
        seconds = input_required.expire_parked(self._engine.service)
        try:
            while seconds is not None:
                await anyio.sleep(seconds)
                seconds = input_required.expire_parked(self._engine.service)
        finally:
            self._engine.is_expiring = False
            if seconds is not None:  # this connection ends, and what waits on the server does not
                self._engine.hand_on(self)


def _size(exchange: Exchange) -> int:
    return len(memoryview(exchange.raw)) if isinstance(exchange.raw, Raw) else 0


def _refuse_rounds() -> None:
    raise RequestError(Code.INTERNAL_ERROR, "the request has asked for input too often")
