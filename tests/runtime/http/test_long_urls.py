"""The URLs of a server are short before they are parsed: that can take a time with the square of their length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib import parse

import msgspec
import pytest

from mcpgen import LoginFailed, RequestError, UsageError
from mcpgen.runtime.client.form_answers import find_mismatch
from mcpgen.runtime.client.url_elicitations import check_url
from mcpgen.runtime.http.auth import registration
from mcpgen.runtime.http.auth.issuers import chosen_issuer
from mcpgen.runtime.http.auth.resources import chosen_resource
from mcpgen.runtime.http.client.address import join_url, parse_address
from mcpgen.runtime.http.client.auth import code_login
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard
from tests.runtime.http.login_world import login_world
from tests.runtime.http.test_oauth_hostile_servers import refused

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

# Each pair of marks is in the wrong order, so that to normalise them means to sort them, by insertion.
MARKS = "https://a" + "\u0300\u0316" * 4_500
SERVER = "https://a.example/mcp"
URLSPLIT: Any = parse.urlsplit  # with the methods of `lru_cache`


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def normalised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the hosts that `urlsplit` normalises."""
    hosts: list[str] = []
    monkeypatch.setattr(parse, "_checknetloc", hosts.append)
    URLSPLIT.cache_clear()
    return hosts


@pytest.mark.parametrize(
    ("parse_it", "error"),
    [
        (lambda: chosen_issuer([MARKS], None), LoginFailed),
        (lambda: chosen_resource(SERVER, MARKS), LoginFailed),
        (lambda: AddressGuard(SERVER).check_url(MARKS, "the token endpoint"), LoginFailed),
        (lambda: join_url(parse_address(SERVER), MARKS), UsageError),
        (lambda: check_url(MARKS), RequestError),
    ],
    ids=["issuer", "resource", "endpoint", "redirect or endpoint of HTTP+SSE", "URL elicitation"],
)
def test_a_long_host_is_refused_before_it_is_normalised(
    parse_it: Callable[[], object], error: type[Exception], normalised: list[str]
) -> None:
    with pytest.raises(error):
        parse_it()
    assert max(map(len, normalised), default=0) < len(MARKS) - len("https://")


@pytest.mark.parametrize("parse_it", [lambda url: join_url(parse_address(SERVER), url), check_url])
def test_a_url_that_is_not_ascii_is_shorter(parse_it: Callable[[str], object], normalised: list[str]) -> None:
    """The redirects of all calls can arrive in one turn of the event loop."""
    parse_it("https://a.example/" + "x" * 4000)
    parse_it("https://ä.example/")
    with pytest.raises((UsageError, RequestError), match=r"more than 1,?024"):
        parse_it(MARKS[:1025])
    assert max(map(len, normalised)) < 100


def test_the_host_of_a_default_in_a_form_is_not_normalised(normalised: list[str]) -> None:
    schema = {"properties": {"page": {"type": "string", "format": "uri"}}}
    assert find_mismatch({"page": MARKS}, schema) is None
    assert find_mismatch({"page": "no scheme"}, schema) == "the field 'page' must have the format uri"
    assert not any(normalised)
    assert URLSPLIT.cache_info().currsize == 0


def test_python_keeps_no_long_url_of_an_elicitation() -> None:
    """It keeps the last 128 URLs that `urlsplit` has parsed, each of which could be as long as a message."""
    URLSPLIT.cache_clear()
    with pytest.raises(RequestError, match="more than 8192 characters"):
        check_url("https://a.example/" + "x" * 8192)
    assert URLSPLIT.cache_info().currsize == 0


def test_python_keeps_no_long_url_of_metadata() -> None:
    guard = AddressGuard(SERVER)
    guard.check_url(f"https://a.example/{'x' * 65_000}", "the token endpoint")
    kept = URLSPLIT.cache_info().currsize
    for each in range(3):
        with pytest.raises(LoginFailed, match="it must have at most 65,536 characters"):
            guard.check_url(f"https://a.example/{'x' * 65_536}{each}", "the token endpoint")
    assert URLSPLIT.cache_info().currsize <= kept + 1  # with the empty one


def test_a_registration_is_compared_with_a_thousand_redirect_uris(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []

    def is_same(_: str, listed: object) -> bool:
        compared.append(listed)
        return False

    monkeypatch.setattr(registration, "_is_same_redirect", is_same)
    body = msgspec.json.encode({"client_id": "a", "redirect_uris": [""] * 100_000})
    with pytest.raises(LoginFailed, match="did not register the redirect URI"):
        registration.decode_registration(body, issuer="https://a.example", redirect_uri="http://127.0.0.1:1/callback")
    assert len(compared) == 1_000


async def test_the_parameters_of_a_long_login_page_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def parse_qsl(query: str, **_: object) -> list[tuple[str, str]]:
        read.append(query)
        return []

    monkeypatch.setattr(code_login, "parse_qsl", parse_qsl)
    async with login_world() as world:
        world.metadata["authorization_endpoint"] += "?" + "&%4" * 10_000
        assert "longer than 16384 characters" in await refused(world)
    assert read == []
