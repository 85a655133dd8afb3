"""What can be said of a server at a URL, what is shown of it, and what is refused before anything is sent."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest

from mcpgen import Http, UsageError, bearer, connect
from mcpgen.runtime.http.client.address import join_url, parse_address
from mcpgen.runtime.http.client.legacy_sse import LegacyServers
from tests.specification.client.scripted_server import discovered, on_both_loops
from tests.specification.http_client.scripted_http_server import NEWEST, closed, played


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTP://Example.COM:80/Mcp", "http://example.com/Mcp"),
        ("https://example.com:443/mcp#part", "https://example.com/mcp"),
        ("https://user:secret@example.com:8443/mcp?key=secret", "https://example.com:8443/mcp?…"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
    ],
)
def test_a_url_is_shown_in_one_spelling_and_without_what_may_be_secret(url: str, shown: str) -> None:
    target = Http(url, headers={"X-Key": "secret"}, auth=bearer("secret"))

    assert shown == target.description
    assert f"Http({shown!r})" == repr(target)
    assert "secret" not in repr(target.identity)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.com", "'ftp://…' is not a URL of http or https"),
        ("ws://user:secret@example.com", "'ws://…' is not a URL of http or https"),
        ("example.com/mcp", "is not a URL of http or https"),
        ("localhost:8000/mcp", "did you mean http://localhost:8000/mcp?"),
        ("http:///mcp", "the URL has no host"),
        ("http://example.com:99999/", "the port of the URL is not a number from 0 to 65535"),
        ("http://example.com:8000x/", "the port of the URL is not a number from 0 to 65535"),
        ("http://[::1/", "the host of the URL is malformed"),
        ("http://example.com/a b", "white space"),
        ("http://example.com\\@evil.invalid/", "a backslash"),
        ("http://example.com/\r\nX: y", "white space"),
        (7, "`url` must be a str"),
    ],
)
def test_what_is_no_url_is_refused(url: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        Http(url)

    assert "secret" not in str(refused.value)


def test_connect_takes_urls_and_says_what_else_there_is() -> None:
    with pytest.raises(UsageError, match="'ftp://…' is not a URL of http or https"):
        connect("ftp://example.com")
    with pytest.raises(UsageError, match=r"has no option `headers`; write connect\(Http\(url"):
        connect("http://example.com", headers={})  # type: ignore[call-overload]  # that is what is tried


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Mcp-Session-Id": "secret"}, "`headers` must not have Mcp-Session-Id"),
        ({"MCP-Protocol-Version": "secret"}, "which the client sets itself"),
        ({"mcp-param-region": "secret"}, "which the client sets itself"),
        ({"Accept": "secret"}, "which the client sets itself"),
        ({"Content-Length": "7"}, "which the client sets itself"),
        ({"Transfer-Encoding": "chunked"}, "which the client sets itself"),
        ({"X-Key": "secret\r\nX-Evil: 1"}, "`headers` has an invalid value for X-Key"),
        ({"X-Key": "sécret"}, "`headers` has an invalid value for X-Key"),
        ({"X-Key": 1}, "a value must be a string of visible ASCII characters, spaces and tabs"),
        ({"X-Key": 7}, "`headers` has an invalid value for X-Key"),
        (
            {"X Key": "secret"},
            "`headers` has an invalid name in item 1; write only the name, without spaces, colon and value",
        ),
        ({"X-Key:": "secret"}, "`headers` has an invalid name"),
        (["X-Key: secret"], "`headers` must be a mapping"),
    ],
)
def test_headers_that_are_none_or_not_the_callers_are_refused_and_not_shown(headers: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        Http("http://example.com", headers=headers)

    assert "secret" not in str(refused.value)


def test_credentials_and_clients_are_what_httpx_takes() -> None:
    with pytest.raises(
        UsageError, match=r"`auth` must be OAuth\(\), .*, or an httpx.Auth such as bearer\(token\), not str"
    ):
        Http("http://example.com", auth="secret")  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(UsageError, match=r"`client` must be an httpx.AsyncClient, not Client"):
        Http("http://example.com", client=httpx.Client())  # type: ignore[arg-type]  # that is what is tried


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "ü", 7, None])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token: Any) -> None:
    with pytest.raises(UsageError, match="bearer token"):
        bearer(token)


def test_what_reaches_the_same_server_is_remembered_as_the_same() -> None:
    def identity(url: str = "http://example.com/mcp", **options: Any) -> object:
        return Http(url, **options).identity

    one, other = httpx.AsyncClient(), httpx.AsyncClient()
    identities = [
        identity(),
        identity(headers={"X-Tenant": "a"}),
        identity("http://example.com/other"),
        identity(client=one),
        identity(client=other),
    ]

    assert 5 == len(set(identities))
    assert identities == [
        identity("HTTP://EXAMPLE.com:80/mcp#x"),
        identity(headers={"x-tenant": "a"}),
        identity("http://example.com/other"),
        identity(client=one),
        identity(client=other),
    ]
    assert identity() == identity(auth=bearer("token"))


def test_those_that_were_met_longest_ago_are_forgotten() -> None:
    known = LegacyServers()
    for number in range(10_001):
        known.add(number)
        known.add(1)

    assert (False, True, True) == (0 in known, 1 in known, 10_000 in known)


def test_addresses_are_joined_as_browsers_do() -> None:
    base = parse_address("https://user:secret@example.com/a/b?c=d")

    assert ("user", "secret") == base.credentials
    assert "https://example.com/a/x?y" == join_url(base, "x?y").url
    assert ("https", "example.com", 443) == join_url(base, "//EXAMPLE.com:443/x").origin
    with pytest.raises(UsageError):
        join_url(base, "http://[")


@pytest.mark.anyio
@on_both_loops
@pytest.mark.parametrize("kind", ["text", "plain", "async"])
async def test_every_request_carries_headers_and_token(kind: str) -> None:
    asked: list[str] = []

    def plain() -> str:
        asked.append("t")
        return f"token-{len(asked)}"

    async def later() -> str:
        return plain()

    token = {"text": "token-0", "plain": plain, "async": later}[kind]
    async with played() as server:
        target = Http(server.url, headers={"X-Key": "k"}, auth=bearer(token))  # type: ignore[arg-type]  # of each kind

        async def run() -> Any:
            return await connect(target, revisions=["2025-11-25"])

        connecting = server.start(run())
        from tests.specification.http_client.scripted_http_server import greeted

        await greeted(server, "2025-11-25", "s")
        await closed(await connecting.outcome(), server, "s")

        tokens = [each.headers["authorization"] for each in server.exchanges]
        assert ["POST", "POST", "GET", "DELETE"] == [each.verb for each in server.exchanges]
        assert [f"Bearer token-{0 if kind == 'text' else number + 1}" for number in range(4)] == tokens
        assert {"k"} == {each.headers["x-key"] for each in server.exchanges}


@pytest.mark.anyio
async def test_credentials_in_the_url_are_used_and_not_shown() -> None:
    async with played() as server:
        target = Http(server.url.replace("//", "//user:secret@") + "?key=secret")

        async def run() -> Any:
            return await connect(target, revisions=[NEWEST])

        connecting = server.start(run())
        asked = await server.hear(method="server/discover")
        await asked.result(discovered())
        await closed(await connecting.outcome(), server)

        assert "Basic dXNlcjpzZWNyZXQ=" == asked.headers["authorization"]
        assert asked.target.endswith("?key=secret")
        assert asked.headers["host"] == f"127.0.0.1:{server.port}"


PROGRAM = """
import sys
sys.modules["httpx"] = None
from mcpgen import Http, UsageError, bearer, connect
for make in (lambda: connect("http://example.com"), lambda: Http("http://example.com"), lambda: bearer("t")):
    try:
        make()
    except UsageError as error:
        print(error)
"""


def test_without_httpx_it_is_said_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, encoding="utf-8")

    assert [
        'a server at a URL needs httpx, which is not installed: pip install "mcpgen[http]"'
    ] * 3 == done.stdout.splitlines()


WITHOUT_HTTPTOOLS = """
import sys
sys.modules["httptools"] = None
from mcpgen import UsageError, connect_sync
try:
    with connect_sync("http://127.0.0.1:9/mcp"):
        pass
except UsageError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_httptools_it_is_said_what_to_install() -> None:
    """The extra `auth` alone has httpx, but not httptools."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_HTTPTOOLS], check=True, capture_output=True, encoding="utf-8")

    assert 'a server at a URL needs httptools, which is not installed: pip install "mcpgen[http]"\n' == done.stdout


def test_a_client_without_urls_does_not_load_httpx() -> None:
    program = "import sys; from mcpgen import Http, bearer, connect; connect('true'); print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8")

    assert "False\n" == done.stdout
