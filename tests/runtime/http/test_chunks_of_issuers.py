"""Answers of an authorization server that would take long: in thousands of small chunks, or compressed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.runtime.http.client.auth import auth_requests
from mcpgen.runtime.http.server.auth import issuer_metadata
from mcpgen.runtime.http.server.auth.token_verifier import IssuerUnavailable
from tests.turns import counted_turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.anyio

DOCUMENT = b'{"a":"' + b"x" * 1000 + b'"}'


class Response:
    """A response whose chunks have arrived."""

    status_code = 200
    url = SimpleNamespace(host="login.example.com")

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def aiter_raw(self) -> AsyncGenerator[bytes]:
        for each in DOCUMENT:
            yield bytes([each])


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
    async with counted_turns() as turns:
        await read()

    assert turns.count > 500


async def test_a_compressed_document_is_refused_before_it_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def compressed(*_: object) -> AsyncGenerator[Response]:
        yield Response(content_encoding="gzip")

    monkeypatch.setattr(issuer_metadata, "_response", compressed)
    with pytest.raises(IssuerUnavailable, match="answered compressed"):
        await issuer_metadata.fetch_json("https://login.example.com/keys")
