"""Clients of ours log in at an authorization server of others: oidc-provider, from npm.

``python -m tests.interop.logins.runs``; ``nox -s interop`` runs it, too.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from mcpgen import (
    ClientCredentials,
    FileTokenStore,
    MemoryTokenStore,
    OAuth,
    connect,
)
from mcpgen.runtime.http.client.auth.logout import log_out
from tests.installations import folder_of, javascript, node
from tests.interop.logins.browser_login import logs_in_with_a_browser
from tests.interop.logins.protected_server import ProtectedServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
    from typing import TypeAlias

    from mcpgen.runtime.http.client.auth.credentials import Credentials

    Check: TypeAlias = Callable[[ProtectedServer], Awaitable[None]]

__all__ = ["failures"]

PACKAGE: Final = "oidc-provider@9.13.3"
OLDEST_NODE: Final = 22
HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[2] / ".nox" / "interop-peers"
SECONDS: Final = 120  # a browser takes its time where the processors are busy

KEY: Final = ec.generate_private_key(ec.SECP256R1())
PEM: Final = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


def failures() -> list[str]:
    """Return what went wrong, a line for each login."""
    found: list[str] = []
    for variant in ({}, {"OPAQUE": "1"}, {"NONCE": "1"}):
        found += anyio.run(_variant, variant, CHECKS)
    return found + anyio.run(_variant, {"FORMS": "1"}, {"browser": logs_in_with_a_browser})


async def _variant(variant: dict[str, str], checks: Mapping[str, Check]) -> list[str]:
    found = []
    async with _protected() as server:
        with _authorization_server(server.url, variant) as issuer:
            server.issuer = issuer
            for name, check in checks.items():
                server.refused.clear()
                server.schemes.clear()
                server.claims.clear()
                server.needed = "read"
                try:
                    with anyio.fail_after(SECONDS):
                        await check(server)
                except Exception as error:  # noqa: BLE001 (reported)
                    found.append(f"{PACKAGE} {' '.join(variant)}: {name}: {type(error).__name__}: {error}")
    return found


@asynccontextmanager
async def _protected() -> AsyncGenerator[ProtectedServer]:
    with socket.create_server(("127.0.0.1", 0)) as wire:
        server = ProtectedServer(f"http://127.0.0.1:{wire.getsockname()[1]}")
        shell = uvicorn.Server(uvicorn.Config(server, log_level="error", timeout_graceful_shutdown=1))
        async with anyio.create_task_group() as group:
            group.start_soon(shell._serve, [wire])
            try:
                yield server
            finally:
                shell.should_exit = True


@contextmanager
def _authorization_server(resource: str, variant: dict[str, str]) -> Iterator[str]:
    folder, runtime = folder_of(HOME, PACKAGE), node(HOME, oldest=OLDEST_NODE)
    javascript(folder, PACKAGE, runtime)
    script = shutil.copy(HERE / "authorization_server.mjs", folder)
    jwk = {**json.loads(ECAlgorithm.to_jwk(KEY.public_key())), "alg": "ES256", "use": "sig"}
    environment = {**os.environ, **variant, "RESOURCE": resource, "CLIENT_JWK": json.dumps(jwk)}
    with subprocess.Popen(
        [runtime.node, script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout
            for line in process.stdout:
                if line.endswith(f" {resource}\n"):
                    yield line.split()[0]
                    break
            else:
                raise AssertionError("the authorization server did not start")
        finally:
            process.kill()


async def visit(page: str) -> str:
    """Log in as a browser with cookies, up to the redirect to this machine."""
    async with httpx.AsyncClient() as browser:
        url = httpx.URL(page)
        origin = (url.host, url.port)
        for _ in range(12):
            response = await browser.get(url)
            assert response.has_redirect_location, response.text
            url = url.join(response.headers["location"])
            if (url.host, url.port) != origin:
                return str(url)
    raise AssertionError("the login does not end")


async def greet(server: ProtectedServer, credentials: Credentials) -> None:
    async with connect(server.url, auth=credentials) as client:
        result: Any = await client.call_tool("greet", {"name": "Ann"})
        assert result.content[0].text == "Hello, Ann!"


def oauth(**options: Any) -> OAuth:
    return OAuth(**{"visit": visit, "store": MemoryTokenStore(), **options})


async def registers(server: ProtectedServer) -> None:
    await greet(server, oauth())
    assert set(server.schemes) == {"Bearer"}


async def has_a_document(server: ProtectedServer) -> None:
    document = "https://client.example/client.json"
    await greet(server, oauth(client_metadata_url=document))
    assert {each["client_id"] for each in server.claims} == {document}


async def is_given(server: ProtectedServer) -> None:
    await greet(server, oauth(client_id="given", client_secret="s3cret", issuer=server.issuer))  # noqa: S106 (of a test)
    assert {each["client_id"] for each in server.claims} == {"given"}


async def steps_up(server: ProtectedServer) -> None:
    async with connect(server.url, auth=oauth()) as client:
        server.needed = "write"
        await client.call_tool("greet", {"name": "Ann"})
    assert {"read", "write"} <= set(server.claims[-1]["scope"].split())


async def refreshes(server: ProtectedServer) -> None:
    """Refresh twice: the second time needs the refresh token that the first one has brought."""
    credentials = oauth(store=(store := MemoryTokenStore()))
    async with connect(server.url, auth=credentials) as client:
        for _ in range(2):
            server.refused.add(_token(store))
            await client.call_tool("greet", {"name": "Ann"})
    assert len(server.refused) == 2


async def binds(server: ProtectedServer) -> None:
    await greet(server, oauth(dpop="on"))
    assert set(server.schemes) == {"DPoP"}


async def has_a_secret(server: ProtectedServer) -> None:
    await greet(server, ClientCredentials("service", secret="s3cret", issuer=server.issuer))  # noqa: S106 (of a test)


async def has_a_key(server: ProtectedServer) -> None:
    await greet(server, ClientCredentials("signing", private_key=PEM, issuer=server.issuer))


async def logs_out(server: ProtectedServer) -> None:
    credentials = oauth()
    await greet(server, credentials)
    assert await log_out(server.url, credentials)
    assert not await log_out(server.url, credentials)


async def shares(server: ProtectedServer) -> None:
    """Two processes refresh at once; the refresh token works only once."""
    with tempfile.TemporaryDirectory() as folder:
        store = FileTokenStore(folder)
        await greet(server, oauth(store=store))
        documents = [json.loads(path.read_bytes()) for path in Path(folder).glob("*.json")]  # noqa: ASYNC240 (a few)
        server.refused.update(each["access_token"] for each in documents if "access_token" in each)
        program = "import sys; from tests.interop.logins.runs import call; call(*sys.argv[1:])"
        command = [sys.executable, "-c", program, server.url, folder]
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(anyio.run_process, command)


def call(url: str, folder: str) -> None:
    """Call a tool with the tokens in *folder*, without a person."""

    async def main() -> None:
        async with connect(url, auth=OAuth(interactive=False, store=FileTokenStore(folder))) as client:
            await client.call_tool("greet", {"name": "Ann"})

    anyio.run(main)


def _token(store: MemoryTokenStore) -> str:
    documents = [json.loads(each) for each in store._documents.values()]
    return next(each["access_token"] for each in documents if "access_token" in each)


CHECKS: Final[dict[str, Check]] = {
    each.__name__: each
    for each in (
        registers,
        has_a_document,
        is_given,
        steps_up,
        refreshes,
        binds,
        has_a_secret,
        has_a_key,
        logs_out,
        shares,
    )
}

if __name__ == "__main__":
    if wrong := failures():
        raise SystemExit("\n".join(wrong))
    sys.stdout.write(f"{len(CHECKS)} kinds of logins, three kinds of tokens, and a browser: all is well\n")
