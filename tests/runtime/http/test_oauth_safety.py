"""What a hostile server, a hostile web page and other users of the machine cannot do to a client that logs in."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute

from mcpgen import (
    ClientCredentials,
    FileTokenStore,
    Http,
    LoginFailed,
    MemoryTokenStore,
    OAuth,
    TokenStore,
    connect,
)
from mcpgen.runtime.cli.terminal_text import error_text
from mcpgen.runtime.http.client.auth import address_guard, auth_requests, browser, loopback_receiver
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard, RefusedHost
from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
from mcpgen.runtime.http.client.auth.loopback_receiver import open_receiver
from mcpgen.runtime.http.client.auth.token_store import state_folder
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import METADATA, PRM, LoginWorld, login_world

pytestmark = pytest.mark.anyio
spec = pytest.mark.spec
SECURITY = "basic/authorization/security-considerations"
CERTIFICATE = Path(__file__).parent / "certificate" / "localhost.pem"
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no permissions of this kind")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def refused(world: LoginWorld, **options: Any) -> str:
    """Log in, and return why that failed."""
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(LoginFailed) as failure:
        async with connect(world.url, auth=world.oauth(**options)):
            pass
    return str(failure.value)


# --- URLs that a server names


@spec("2025-03-26", "basic/authorization#security-considerations", "3ee8dee1")
@spec("2025-06-18", "basic/authorization#communication-security", "1cfc8b38", "f355289c")
@spec("2025-11-25", "basic/authorization#communication-security", "1cfc8b38", "f355289c")
@spec("2026-07-28", "basic/authorization/security-considerations#communication-security", "13715018", "542c1675")
@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ms-word:ofe|u|https://evil.example/x",
        "https://user:password@evil.example/",
        "https://evil.example/ --flag",
        'https://evil.example/"&calc',
        "https://evil.example/`id`",
        "https://evil.example/\r\nX: y",
        "https://evil.example\\@good.example/",
        "https://ex\u0430mple.com/",
        "https://[broken/",
        "https://evil.example:port/",
        "-https://evil.example/",
        "https:///path",
        "",
    ],
)
def test_only_clean_urls_of_https_are_requested_or_opened(url: str) -> None:
    """Incident: a server ran commands through the URL of its login page (mcp-remote, CVE-2025-6514)."""
    with pytest.raises(LoginFailed):
        AddressGuard("https://mcp.example.com/mcp").check_url(url, "the login page")


def test_plain_http_is_for_this_machine_if_the_server_is_here() -> None:
    AddressGuard("http://127.0.0.1:8000/mcp").check_url("http://localhost:9000/authorize", "the login page")
    with pytest.raises(LoginFailed, match="only over https"):
        AddressGuard("https://mcp.example.com/mcp").check_url("http://localhost:9000/authorize", "the login page")
    with pytest.raises(LoginFailed, match="only over https"):
        AddressGuard("http://127.0.0.1:8000/mcp").check_url("http://login.example.com/", "the login page")


@pytest.mark.parametrize("url", ["http://mcp.example.com/mcp", "http://10.0.0.1/mcp"])
async def test_there_is_no_login_for_a_server_whose_tokens_others_could_read(url: str) -> None:
    """Its challenge may name metadata at https, and the resource there may be the URL: the token would go over http."""

    def refuse(_: httpx.Request) -> httpx.Response:
        link = 'Bearer resource_metadata="https://login.example.com/metadata"'
        return httpx.Response(401, headers={"www-authenticate": link})

    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as client:
        for credentials in (OAuth(store=MemoryTokenStore()), ClientCredentials("nightly", secret="1234")):  # noqa: S106 (of a test)
            with pytest.raises(LoginFailed, match=r"the URL of the server .* a login is safe only over https"):
                await connect(Http(url, auth=credentials, client=client))


@pytest.mark.parametrize(
    ("server", "host", "is_allowed"),
    [
        ("8.8.8.8", "8.8.4.4", True),
        ("8.8.8.8", "127.0.0.1", False),
        ("8.8.8.8", "10.0.0.1", False),
        ("8.8.8.8", "169.254.169.254", False),
        ("8.8.8.8", "::1", False),
        ("8.8.8.8", "::ffff:10.0.0.1", False),
        ("8.8.8.8", "fd00::1", False),
        ("8.8.8.8", "0.0.0.0", False),  # noqa: S104 (nothing is bound)
        ("8.8.8.8", "64:ff9b::a00:1", False),
        ("8.8.8.8", "64:ff9b::808:808", True),
        ("8.8.8.8", "64:ff9b:1::808:808", False),
        ("8.8.8.8", "::10.0.0.1", False),
        ("8.8.8.8", "::", False),
        ("8.8.8.8", "::ffff:0:10.0.0.1", False),
        ("8.8.8.8", "fec0::1", False),
        ("8.8.8.8", "2606:4700::1111", True),
        ("10.0.0.1", "10.0.0.2", True),
        ("10.0.0.1", "127.0.0.1", False),
        ("10.0.0.1", "169.254.169.254", False),
        ("127.0.0.1", "127.0.0.2", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("127.0.0.1", "8.8.8.8", True),
    ],
)
async def test_private_addresses_are_for_servers_of_the_same_network(
    server: str, host: str, *, is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Incident: metadata led a client to hosts of a private network (vercel/ai 15972, 19500)."""
    names = {"mcp.example.com": [server], "login.example.com": [host]}

    async def resolve(name: str, port: int) -> list[str]:
        return names[name]

    async def is_reachable(*_: object) -> bool:
        return True

    monkeypatch.setattr(address_guard, "_resolve", resolve)
    monkeypatch.setattr(address_guard, "is_reachable", is_reachable)
    guard = AddressGuard("https://mcp.example.com/mcp")
    if is_allowed:
        assert [host] == await guard.addresses("login.example.com", 443)
    else:
        with pytest.raises(RefusedHost):
            await guard.addresses("login.example.com", 443)


@pytest.mark.parametrize("own", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1"]])
async def test_a_name_that_leads_to_a_private_address_does_not_make_its_server_private(
    own: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile server adds a private address to its name, or answers the second look-up with one."""

    async def resolve(name: str, port: int) -> list[str]:
        return own if name == "mcp.example.com" else ["10.0.0.2"]

    async def is_reachable(*_: object) -> bool:
        return False

    monkeypatch.setattr(address_guard, "_resolve", resolve)
    monkeypatch.setattr(address_guard, "is_reachable", is_reachable)
    with pytest.raises(RefusedHost):
        await AddressGuard("https://mcp.example.com/mcp").addresses("intranet.example.com", 443)


async def test_the_issuer_that_a_program_names_may_be_on_a_private_network(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nowhere(_: AddressGuard) -> set[str]:
        return set()

    async with login_world() as world:
        issuer = world.origin.replace("127.0.0.1", "localhost")
        world.resource["authorization_servers"] = [issuer]
        world.metadata = {name: _moved(value) for name, value in world.metadata.items()}
        monkeypatch.setattr(AddressGuard, "_own_places", nowhere)
        assert (await refused(world)).endswith("if you trust the authorization server, pass its URL as `issuer`")
        assert error_text(RefusedHost()).endswith("run `mcpgen login --issuer ISSUER URL`")
        async with connect(world.url, auth=world.oauth(issuer=issuer)):
            pass


def _moved(value: Any) -> Any:
    return value.replace("127.0.0.1", "localhost") if isinstance(value, str) else value


@pytest.mark.parametrize(("host", "expected"), [("localhost", True), ("mcp.example.com", False)])
async def test_a_server_is_where_its_certificate_is(
    host: str, monkeypatch: pytest.MonkeyPatch, *, expected: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr(address_guard, "trusted_certificates", lambda: trust)

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        assert expected == await address_guard.is_reachable(host, ["127.0.0.1"], port)
    assert not await address_guard.is_reachable(host, ["127.0.0.1"], port)


async def test_the_address_that_was_checked_is_the_one_that_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere at its second look-up gains nothing: there is no second one."""
    looked_up: list[str] = []

    async def resolve(name: str, port: int) -> list[str]:
        looked_up.append(name)
        return ["127.0.0.1"]

    async with login_world() as world:
        monkeypatch.setattr(address_guard, "_resolve", resolve)
        port = world.origin.rpartition(":")[2]
        requests = AuthRequests(AddressGuard(f"http://localhost:{port}/mcp"))
        assert 200 == (await requests.get(f"http://localhost:{port}{METADATA}")).status

    assert ["localhost"] == looked_up


@pytest.mark.parametrize(
    "environment",
    [
        {"NO_PROXY": "localhost"},
        {"HTTP_PROXY": "http://127.0.0.1:9"},
        {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ".example.com"},
    ],
)
async def test_a_proxy_for_other_urls_does_not_turn_the_check_of_addresses_off(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        return ["8.8.8.8"] if name == "mcp.example.com" else ["10.0.0.1"]

    monkeypatch.setattr(address_guard, "_resolve", resolve)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LoginFailed, match="private network"):
        await AuthRequests(AddressGuard("https://mcp.example.com/mcp")).get("https://login.example.com/")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "127.0.0.1.", "[::1]", "localhost"])
async def test_an_address_of_this_machine_is_refused_before_a_proxy_is_asked(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(LoginFailed, match="private network"):
        await AuthRequests(AddressGuard("https://8.8.8.8/mcp")).get(f"https://{host}/")


async def test_redirects_of_metadata_are_not_followed() -> None:
    async with login_world() as world, login_world() as other:
        world.overrides[PRM] = (302, {"location": f"{other.origin}{PRM}"}, b"")
        world.overrides[METADATA] = (302, {"location": f"{other.origin}{METADATA}"}, b"")
        world.overrides["/register"] = (307, {"location": f"{other.origin}/register"}, b"")
        await refused(world)

        assert [] == other.asked


async def test_no_log_shows_the_query_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with login_world() as world:
        world.overrides[PRM] = (404, {}, b"")  # so that the client tries the URL with the query
        async with connect(f"{world.url}?key=hunter2", auth=world.oauth()):
            pass

        assert world.asked.count(f"GET {PRM}") > 1
    assert f"{PRM} " in caplog.text  # httpx logs the URL
    assert [] == [each for each in caplog.messages if "hunter2" in each]


async def test_a_long_document_is_not_read_to_its_end() -> None:
    async with login_world() as world:
        world.overrides[PRM] = (200, {}, b" " * 600_000)

        assert "sent more than 512 KiB" in await refused(world)


@pytest.mark.parametrize(
    ("scheme", "certificate", "end"),
    [
        ("http", None, "Server disconnected without sending a response; try again later"),
        ("https", None, "; the server may use http instead of https; tell its operator"),
        ("https", CERTIFICATE, "; tell its operator"),  # it is self-signed, and nobody trusts it
    ],
)
async def test_a_failed_request_says_what_helps(scheme: str, certificate: Path | None, end: str) -> None:
    """A second attempt does not help against a wrong certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)  # whole, since a close with unread bytes resets the connection
        writer.write(b"" if scheme == "http" else b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    tls = None if certificate is None else context
    async with await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls) as server:
        url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(LoginFailed) as failure:
            await AuthRequests(AddressGuard(url)).get(url)
    assert str(failure.value).startswith(f"the login failed: the request to {url.split('/')[2]} failed: ")
    assert str(failure.value).endswith(end)


async def test_a_slow_document_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth_requests, "_SECONDS", 0.3)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as silent, anyio.create_task_group() as group:
        group.start_soon(silent.serve, _say_nothing)
        url = f"http://127.0.0.1:{silent.extra(anyio.abc.SocketAttribute.local_port)}/"  # noqa: S610 (of anyio)
        with pytest.raises(LoginFailed, match=r"did not answer within 0\.3 seconds"):
            await AuthRequests(AddressGuard(url)).get(url)
        group.cancel_scope.cancel()


async def _say_nothing(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await anyio.sleep_forever()


# --- other servers


@spec("2025-03-26", "basic/authorization#implementation-requirements", "c503d22e")
@spec("2025-06-18", "basic/authorization#security-considerations", "3ca23bf6")
@spec("2025-11-25", "basic/authorization#security-considerations", "3ca23bf6")
@spec("2026-07-28", "basic/authorization/index#authorization-response-validation", "6ea9bde2", "e2a07b09")
@spec("2026-07-28", "basic/authorization/index#security-considerations", "ee8c84b5")
@spec("2026-07-28", "basic/authorization/security-considerations", "8f599b5c", "a79f8a74")
@spec("2026-07-28", "basic/authorization/security-considerations#mix-up-attacks")
async def test_the_code_of_another_authorization_server_is_sent_nowhere() -> None:
    async def confused(url: str) -> str:
        async with httpx.AsyncClient() as client:
            location = (await client.get(url)).headers["location"]
        return str(httpx.URL(location).copy_merge_params({"iss": "https://honest.example"}))

    async with login_world() as world:
        assert "another issuer" in await refused(world, visit=confused)
        assert [] == world.forms


@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
    "24c14872",
    "91e3a9e8",
    "f6d3f87e",
)
async def test_metadata_with_the_issuer_of_another_server_is_not_used() -> None:
    async with login_world() as world:
        world.metadata["issuer"] = "https://honest.example"

        assert "names another one, 'https://honest.example'" in await refused(world)
        assert ([], []) == (world.logins, world.registrations)


@spec("2026-07-28", "basic/authorization/index#resource-parameter-implementation")
async def test_a_token_for_another_resource_is_not_requested() -> None:
    async with login_world() as world:
        world.resource["resource"] = "https://bank.example/mcp"

        assert "which is not the URL of this server" in await refused(world)
        assert [] == world.logins


@spec("2025-03-26", "basic/authorization#security-considerations")
async def test_a_login_page_that_is_not_a_web_page_is_not_opened() -> None:
    """Incident: a login page was a `javascript:` URL (typescript-sdk 841)."""
    opened: list[str] = []

    async with login_world() as world:
        world.metadata["authorization_endpoint"] = "javascript:alert(1)"

        assert "must be a valid URL of https" in await refused(world, visit=opened.append)

    assert [] == opened


@spec("2025-06-18", "basic/authorization#token-handling", "58e25896")
@spec("2025-11-25", "basic/authorization#token-handling", "58e25896")
@spec("2026-07-28", "basic/authorization/index#token-handling", "a63356dc")
async def test_a_redirect_to_another_origin_gets_no_token() -> None:
    async with login_world() as world, login_world() as other, connect(world.url, auth=world.oauth()) as client:
        world.overrides["/mcp"] = (307, {"location": other.url}, b"")
        with pytest.raises(Exception, match="another origin"):
            await client.call_tool("greet", {"name": "Ann"})

        assert [] == other.bearers


# --- the redirect to this machine


async def page(url: str, **headers: str) -> tuple[int, str]:
    async with httpx.AsyncClient() as client:
        response = await client.get(url, headers=headers)
    return response.status_code, response.text


@spec("2026-07-28", f"{SECURITY}#open-redirection")
async def test_a_response_with_another_state_does_not_end_the_wait() -> None:
    async with open_receiver(None) as receiver:
        wait = receiver.waiting_for(lambda url: "state=S" in url)
        uri = receiver.redirect_uri

        assert 400 == (await page(f"{uri}?code=C&state=T"))[0]
        assert 200 == (await page(f"{uri}?code=C&state=S"))[0]
        assert f"{uri}?code=C&state=S" == await wait()
        assert 400 == (await page(f"{uri}?code=D&state=S"))[0]


async def test_the_receiver_answers_one_path_of_its_own_host_and_echoes_nothing() -> None:
    """Incident: an endpoint redirected to any URL in the request (CVE-2025-4143)."""
    async with open_receiver(None) as receiver:
        receiver.waiting_for(lambda _: True)
        origin = receiver.redirect_uri.removesuffix("/callback")

        assert 404 == (await page(f"{origin}/"))[0]
        assert 404 == (await page(f"{origin}/callback/x"))[0]
        assert 404 == (await page(f"{receiver.redirect_uri}?a=b", Host="evil.example"))[0]
        assert "<script>" not in (await page(f"{receiver.redirect_uri}?error=<script>"))[1]
    with pytest.raises(httpx.ConnectError):
        await page(f"{origin}/callback")


async def test_the_host_of_a_redirect_may_be_in_upper_case() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with open_receiver(f"http://LOCALHOST:{port}/done") as receiver:
        receiver.waiting_for(lambda _: True)

        assert 200 == (await page(f"http://localhost:{port}/done?code=C"))[0]  # as browsers write it


async def test_connections_that_a_browser_opens_in_advance_do_not_block_the_redirect() -> None:
    async with open_receiver("http://localhost:0/done") as receiver:
        wait = receiver.waiting_for(lambda _: True)
        port = int(receiver.redirect_uri.rpartition(":")[2].partition("/")[0])
        idle = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(5)]

        assert 200 == (await page(f"{receiver.redirect_uri}?code=C"))[0]
        assert f"{receiver.redirect_uri}?code=C" == await wait()
        for each in idle:
            await each.aclose()


async def test_idle_connections_of_another_program_give_way_to_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_receiver, "_HEAD_SECONDS", 600)
    async with open_receiver(None) as receiver, AsyncExitStack() as stack:
        wait = receiver.waiting_for(lambda _: True)
        port = int(receiver.redirect_uri.rpartition(":")[2].partition("/")[0])
        idle = [await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port)) for _ in range(100)]
        with anyio.fail_after(PATIENCE_SECONDS):
            assert 200 == (await page(f"{receiver.redirect_uri}?code=C"))[0]
            assert f"{receiver.redirect_uri}?code=C" == await wait()
            with pytest.raises(anyio.EndOfStream):
                await idle[0].receive()


async def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_receiver, "_HEAD_SECONDS", 0.1)
    async with open_receiver(None) as receiver:
        port = int(receiver.redirect_uri.rpartition(":")[2].partition("/")[0])
        async with await anyio.connect_tcp("127.0.0.1", port) as idle:
            with anyio.fail_after(PATIENCE_SECONDS):
                await idle.send(b"GET /callback HTTP/1.1\r\n")
                with pytest.raises(anyio.EndOfStream):
                    await idle.receive()


async def test_no_other_program_gets_the_redirect_to_localhost_at_its_other_address() -> None:
    """A browser may try ``::1`` first, so a program that waits there would get the response."""
    if not loopback_receiver._has_ipv6():
        pytest.skip("this machine has no IPv6")
    async with await anyio.create_tcp_listener(local_host="::1") as other:
        port = other.listeners[0].extra(SocketAttribute.local_port)  # noqa: S610 (of anyio)
        with pytest.raises(LoginFailed, match=f"cannot be received on port {port}"):
            async with open_receiver(f"http://localhost:{port}/callback"):
                pass


async def test_a_port_that_is_taken_is_replaced_unless_it_was_chosen() -> None:
    async with open_receiver(None) as first:
        port = int(first.redirect_uri.rpartition(":")[2].partition("/")[0])
        async with open_receiver(None, port) as second:
            assert first.redirect_uri != second.redirect_uri
        with pytest.raises(LoginFailed, match=f"port {port}"):
            async with open_receiver(first.redirect_uri):
                pass


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, False), ({"BROWSER": "lynx"}, False), ({"BROWSER": "true", "DISPLAY": ":0"}, True)],
)
def test_a_browser_in_the_terminal_is_none(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, expected: bool
) -> None:
    import webbrowser

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(browser.sys, "platform", "linux")
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser(environment.get("BROWSER", "firefox")))

    assert expected == browser.has_browser()


async def test_without_a_browser_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "has_browser", lambda: False)
    async with login_world() as world:
        assert "run `mcpgen login URL` in a terminal" in await refused(world, visit=None)


# --- stores


def documents(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    return FileTokenStore(tmp_path / "tokens") if request.param == "file" else MemoryTokenStore()


async def test_a_store_keeps_what_it_gets(store: TokenStore) -> None:
    assert isinstance(store, TokenStore)
    assert await store.load("a") is None
    await store.save("a", b"1")
    await store.save("a", b"2")
    await store.save("b", b"3")
    assert b"2" == await store.load("a")
    await store.save("a", None)
    await store.save("a", None)
    assert await store.load("a") is None


async def test_a_store_lets_one_task_after_the_other_into_its_lock(store: TokenStore) -> None:
    inside = 0

    async def enter() -> None:
        nonlocal inside
        async with store.lock("a"):
            inside += 1
            assert 1 == inside
            await anyio.sleep(0.01)
            inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(enter)
        async with store.lock("b"):
            pass


def test_a_store_lets_one_thread_after_the_other_into_its_lock(store: TokenStore) -> None:
    """Blocking clients have an event loop each."""
    inside: list[int] = []

    async def enter() -> None:
        async with store.lock("a"):
            inside.append(len(inside))
            await anyio.sleep(0.02)
            assert len(inside) == 1
            inside.clear()

    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(anyio.run, enter) for _ in range(6)]:
            each.result(PATIENCE_SECONDS)


@spec("2025-03-26", "basic/authorization#security-considerations", "5bf65b65")
@spec("2026-07-28", "basic/authorization/index#refresh-tokens", "64857f70")
@spec("2026-07-28", "basic/authorization/security-considerations#token-theft")
@posix
async def test_only_their_owner_can_read_the_files_of_tokens(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "tokens"
    before = os.umask(0)
    try:
        store = FileTokenStore(folder)
        await store.save("a", b"secret")
        async with store.lock("a"):
            pass
    finally:
        os.umask(before)

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert [] == [each for each in folder.iterdir() if each.suffix == ".new"]


@posix
async def test_a_file_of_others_is_not_used(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path)
    await store.save("a", b"secret")
    (file,) = documents(tmp_path)
    file.chmod(0o644)
    with pytest.raises(LoginFailed, match="other users can read or write"):
        await store.load("a")

    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LoginFailed, match="cannot be read"):
        await store.load("a")


@posix
@pytest.mark.parametrize("theirs", ["mcpgen", "mcpgen/tokens"])
async def test_a_folder_of_others_is_not_used(theirs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = FileTokenStore()
    await store.save("a", b"secret")
    folder, real = tmp_path / theirs, Path.stat

    def stat_of_others(path: Path, **options: Any) -> os.stat_result:
        found = real(path, **options)
        return os.stat_result((*found[:4], os.getuid() + 1, *found[5:])) if path == folder else found

    monkeypatch.setattr(Path, "stat", stat_of_others)
    for act in (lambda: store.load("a"), lambda: store.save("a", b"new"), lambda: store.lock("a").__aenter__()):
        with pytest.raises(LoginFailed, match=f"{theirs}, belongs to another user"):
            await act()


@posix
async def test_a_pipe_in_place_of_a_file_does_not_block_its_reader(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path)
    await store.save("a", b"secret")
    (file,) = documents(tmp_path)
    file.unlink()
    os.mkfifo(file, 0o644)
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(LoginFailed, match="other users can read or write"):
        await store.load("a")


def test_a_removed_document_leaves_nothing_of_a_program_that_was_killed(tmp_path: Path) -> None:
    code = """
import anyio, os, sys
from mcpgen import FileTokenStore

def killed(*_):
    os._exit(9)

os.replace = os.rename = killed
anyio.run(FileTokenStore(sys.argv[1]).save, "a", b"secret")
"""
    assert 9 == subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    anyio.run(FileTokenStore(tmp_path).save, "a", None)

    assert [] == list(tmp_path.iterdir())


async def test_a_document_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path)
    await store.save("a", b"secret")
    with pytest.raises(LoginFailed, match="too long"):
        await store.save("a", b"x" * (1024 * 1024 + 1))

    assert b"secret" == await store.load("a")


async def test_a_file_that_is_no_document_costs_a_login_and_not_the_program(tmp_path: Path) -> None:
    async with login_world() as world:
        store = FileTokenStore(tmp_path)
        oauth = world.oauth(store=store)
        async with connect(world.url, auth=oauth):
            pass
        for each in documents(tmp_path):
            each.write_bytes(b"{broken")
        async with connect(world.url, auth=oauth):
            pass

        assert 2 == len(world.logins)


def test_the_folder_of_the_tokens_is_the_one_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert tmp_path / "mcpgen" == state_folder()
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert tmp_path / ".local" / "state" / "mcpgen" == state_folder()


async def test_without_a_home_nothing_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("LOCALAPPDATA", "")
    store = FileTokenStore()

    assert ("FileTokenStore()", None, True) == (repr(store), await store.load("a"), store.is_default)
    with pytest.raises(LoginFailed, match="this user has no home folder"):
        await store.save("a", b"{}")
    with pytest.raises(LoginFailed, match=r"set the environment variable \w+, or choose another folder"):
        async with store.lock("a"):
            pass


_HOLD = """
import sys
import anyio
from mcpgen import FileTokenStore

async def hold(folder, name):
    async with FileTokenStore(folder + "/tokens").lock("a"):
        for _ in range(20):
            with open(folder + "/held", "a") as held:
                held.write(name)
            await anyio.sleep(0.01)

anyio.run(hold, *sys.argv[1:])
"""


@pytest.mark.slow
def test_the_lock_of_a_file_store_holds_between_processes(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path), name]) for name in "ab"]
    assert [0, 0] == [each.wait(PATIENCE_SECONDS) for each in both]

    assert (tmp_path / "held").read_text() in ("a" * 20 + "b" * 20, "b" * 20 + "a" * 20)
