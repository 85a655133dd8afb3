"""Handlers that raise what is not an `Exception`: the client gets an error, and the server goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Server
from mcpgen.runtime.transports import memory
from tests.specification.http_server.http_clients import caller

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

REVISIONS = ["2025-11-25", "2026-07-28"]


class OddError(BaseException):
    """An exception that `except Exception` does not catch."""


FAILURES: list[Callable[[], BaseException]] = [
    GeneratorExit,
    OddError,
    lambda: BaseExceptionGroup("several", [GeneratorExit(), ValueError("inner")]),
]
of_each_kind = pytest.mark.parametrize("failure", FAILURES, ids=["GeneratorExit", "own", "group"])
of_each_tool = pytest.mark.parametrize("name", ["at_once", "later", "with_context", "in_thread", "in_thread_later"])


def server(failure: Callable[[], BaseException]) -> Server:
    """Return a server whose tools raise *failure*, but one."""
    made = Server("odd", version="1.0")

    @made.tool
    async def at_once() -> str:
        raise failure()

    @made.tool
    async def later() -> str:
        await anyio.sleep(0.001)
        raise failure()

    @made.tool
    async def with_context(ctx: Context) -> str:
        await ctx.progress(1)
        raise failure()

    @made.tool
    def in_thread() -> str:
        raise failure()

    @made.tool
    def in_thread_later() -> Any:
        return later()

    @made.tool
    async def fine() -> str:
        return "fine"

    return made


def call(name: str) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "_meta": meta}}


def is_failure(answer: Any, identity: object, name: str) -> bool:
    """Return whether *answer* says that the tool *name* failed, and not why."""
    if "result" in answer:  # in a thread, GeneratorExit becomes an exception as any other
        text = answer["result"]["content"][0]["text"]
        return (identity, True, f"The tool {name} failed.") == (answer["id"], answer["result"]["isError"], text)
    return {"jsonrpc": "2.0", "id": identity, "error": INTERNAL} == answer


INTERNAL = {"code": -32603, "message": "the server failed to handle this request"}


@of_each_kind
@of_each_tool
async def test_on_a_pipe_it_is_an_error(name: str, failure: Callable[[], BaseException]) -> None:
    async with memory.wire(server(failure)) as wire:
        await wire.send(call(name))
        failed = await wire.receive()
        await wire.send(call("fine"))
        served = await wire.receive()

    assert is_failure(failed, name, name)
    assert "fine" == served["result"]["content"][0]["text"]


@of_each_kind
@of_each_tool
@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http_it_is_an_error(name: str, failure: Callable[[], BaseException], revision: str) -> None:
    async with caller(server(failure), revision) as peer:
        failed = await peer.post(peer.request(7, "tools/call", f'"name":"{name}"')).complete()
        served = await peer.result("tools/call", '"name":"fine"')

    assert 200 == failed.status
    assert is_failure(failed.json, 7, name)
    assert "fine" == served["content"][0]["text"]
