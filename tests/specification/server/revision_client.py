"""A client of any revision, which writes its requests as that revision wants them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpgen.generated import registry
from tests.harness.server_wire import connected

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.api.server import Server
    from tests.harness.server_wire import Wire

_HANDSHAKE = (
    '{"jsonrpc":"2.0","id":"handshake","method":"initialize","params":{"protocolVersion":"%s",'
    '"capabilities":%s,"clientInfo":{"name":"client","version":"1"}}}'
)


class Client:
    """A client of one revision, ready to ask.

    Attributes:
        wire: Its connection.
        revision: What it speaks.
        capabilities: What it declares, as JSON.
        initialized: The result of its handshake; of a stateless client, nothing.
    """

    def __init__(self, wire: Wire, revision: str, capabilities: str) -> None:
        self.wire = wire
        self.revision = revision
        self.capabilities = capabilities
        self.initialized: Any = None
        self._last = 0

    @property
    def is_stateless(self) -> bool:
        """Whether it says who it is with each request."""
        return registry.revision(self.revision).era == "stateless"

    def request(self, identity: int | str, method: str, params: str = "", meta: str = "") -> bytes:
        """Return the bytes of a request; *params* and *meta* are the members of objects, as JSON."""
        if self.is_stateless:
            own = (
                f'"io.modelcontextprotocol/protocolVersion":"{self.revision}",'
                f'"io.modelcontextprotocol/clientCapabilities":{self.capabilities}'
            )
            meta = f"{own},{meta}" if meta else own
        members = [each for each in (params, f'"_meta":{{{meta}}}' if meta else "") if each]
        text = f'"{identity}"' if isinstance(identity, str) else identity
        return f'{{"jsonrpc":"2.0","id":{text},"method":"{method}","params":{{{",".join(members)}}}}}'.encode()

    async def ask(self, method: str, params: str = "", meta: str = "") -> list[Any]:
        """Send a request, and return all that the server says until it waits for something."""
        self._last += 1
        return await self.wire.say(self.request(self._last, method, params, meta))

    async def result(self, method: str, params: str = "", meta: str = "") -> Any:
        """Send a request, and return its result, which is the last that the server says; errors fail the test."""
        said = await self.ask(method, params, meta)
        assert "result" in said[-1], said

        return said[-1]["result"]

    async def error(self, method: str, params: str = "", meta: str = "") -> Any:
        """Send a request, and return the error that it is answered with."""
        said = await self.ask(method, params, meta)
        assert "error" in said[-1], said

        return said[-1]["error"]

    async def call(self, tool: str, arguments: str = "{}", meta: str = "") -> list[Any]:
        """Call a tool, and return all that the server says."""
        return await self.ask("tools/call", f'"name":"{tool}","arguments":{arguments}', meta)

    async def answer(self, request: Any, result: str) -> list[Any]:
        """Answer a request of the server, and return all that it says then."""
        identity = request["id"]
        text = f'"{identity}"' if isinstance(identity, str) else identity
        return await self.wire.say(f'{{"jsonrpc":"2.0","id":{text},"result":{result}}}'.encode())


@asynccontextmanager
async def client(server: Server, revision: str, capabilities: str = "{}") -> AsyncGenerator[Client]:
    """Connect a client of *revision*, and let it shake hands if it has to."""
    async with connected(server) as wire:
        peer = Client(wire, revision, capabilities)
        if not peer.is_stateless:
            said = await wire.say((_HANDSHAKE % (revision, capabilities)).encode())
            peer.initialized = said[-1]["result"]
            assert [] == await wire.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

        yield peer


def lack(said: dict[str, Any]) -> object:
    """Return the code of the error with which a tool was refused what its client lacks; True if it is a result."""
    return said["error"]["code"] if "error" in said else said["result"]["isError"]
