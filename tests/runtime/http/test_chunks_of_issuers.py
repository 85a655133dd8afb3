"""An authorization server that answers in thousands of small chunks, which arrive together, leaves time for others."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mcpgen.runtime.http.client.auth import auth_requests
from mcpgen.runtime.http.server.auth import issuer_metadata

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.anyio

DOCUMENT = b'{"a":"' + b"x" * 1000 + b'"}'


class Response:
    """A response whose chunks have arrived."""

    status_code = 200
    headers: dict[str, str] = {}  # noqa: RUF012 (of all)
    url = SimpleNamespace(host="login.example.com")

    async def aiter_raw(self) -> AsyncGenerator[bytes]:
        for each in DOCUMENT:
            yield bytes([each])

    aiter_bytes = aiter_raw


@asynccontextmanager
async def responding(*_: object) -> AsyncGenerator[Response]:
    yield Response()


async def client() -> object:
    return await auth_requests._read(Response())  # type: ignore[arg-type]


async def server() -> object:
    return await issuer_metadata.fetch_json("https://login.example.com/keys")


@pytest.mark.parametrize("read", [client, server])
async def test_others_run_while_many_small_chunks_are_read(
    read: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_metadata, "_response", responding)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(others)
        await read()
        group.cancel_scope.cancel()

    assert turns > 500
