"""Opaque tokens, for which the issuer is asked."""

from __future__ import annotations

import ssl
import time
from threading import Barrier
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import anyio
import pytest

from mcpgen import Access, Introspection, Jwt, UsageError
from mcpgen.runtime.http.auth.challenge_header import bearer_challenge
from mcpgen.runtime.http.server.auth import issuer_metadata, token_cache, token_check
from mcpgen.runtime.http.server.auth.token_cache import TokenCache
from mcpgen.runtime.http.server.auth.token_verifier import (
    ExpectedToken,
    InvalidToken,
    IssuerUnavailable,
    access_bytes,
)
from mcpgen.runtime.http.server.client_address import Client
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.issuer import RESOURCE, Issuer, running_issuer

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcpgen.runtime.http.server.auth.token_verifier import Verify

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def issuer() -> Generator[Issuer]:
    with running_issuer() as found:
        found.documents["/introspect"] = {"active": True, **found.claims()}
        yield found


def verifier(issuer: Issuer, **options: Any) -> Verify:
    settings = {"client_id": "r:s", "client_secret": "p w/ä", **options}
    return Introspection(**settings).verifier(ExpectedToken((issuer.url,), frozenset({RESOURCE})))


async def test_the_issuer_says_what_a_token_allows(issuer: Issuer) -> None:
    found = await verifier(issuer)("opaque+/=")

    assert found is not None
    assert ("ann", "app", issuer.url, {"mcp", "files:read"}) == (
        found.subject,
        found.client_id,
        found.issuer,
        found.scopes,
    )
    ((form, credentials),) = issuer.forms
    assert {"token": ["opaque+/="], "token_type_hint": ["access_token"]} == parse_qs(form)
    # RFC 6749, 2.3.1: r%3As:p+w%2F%C3%A4
    assert "Basic ciUzQXM6cCt3JTJGJUMzJUE0" == credentials


@pytest.mark.parametrize(
    "changes",
    [
        {"active": False},
        {"active": "true"},
        {"active": None},
        {"iss": "https://other.example.com"},
        {"aud": "https://other.example.com"},
        {"aud": None},
        {"token_type": "DPoP"},
        {"token_type": "refresh_token"},
        {"exp": 1},
        {"exp": "never"},
        {"nbf": 9_999_999_999},
        {"cnf": {"jkt": "x"}},
        {"sub": None, "client_id": None},
        {"sub": 7},  # all users with such a subject would be one: the client
        {"sub": ["ann"]},
        {"sub": "a" * 3000},  # each session keeps it
        {"x": [{}] * 1000},  # 1,000 objects of 64 bytes
    ],
)
async def test_an_answer_that_does_not_fit_refuses_the_token(issuer: Issuer, changes: dict[str, Any]) -> None:
    answer = issuer.documents["/introspect"] | changes
    issuer.documents["/introspect"] = {name: value for name, value in answer.items() if value is not None}

    with pytest.raises(InvalidToken):
        await verifier(issuer)("opaque")


@pytest.mark.parametrize("answer", [401, 500, 302, [], "text"])
async def test_an_issuer_that_does_not_answer_is_no_fault_of_the_token(issuer: Issuer, answer: Any) -> None:
    issuer.documents["/introspect"] = answer

    with pytest.raises(IssuerUnavailable):
        await verifier(issuer)("opaque")


async def test_an_answer_of_slow_numbers_is_not_decoded(issuer: Issuer) -> None:
    """It would take the event loop more than a second."""
    numbers = {"/introspect": {"active": True, "x": [1e300] * 60_000}, "/keys": {"keys": [], "x": [1e300] * 60_000}}
    issuer.documents |= numbers

    with pytest.raises(IssuerUnavailable, match="more than 10000 values"):
        await verifier(issuer)("opaque")
    with pytest.raises(IssuerUnavailable, match="more than 10000 values"):
        await Jwt().verifier(ExpectedToken((issuer.url,), frozenset({RESOURCE})))(issuer.token())


async def test_requests_with_one_token_ask_once(issuer: Issuer) -> None:
    issuer.delay_seconds = 0.05
    verify = verifier(issuer)
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(verify, "opaque")

    assert 1 == len(issuer.forms)


async def test_no_question_reads_the_certificates_again(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 50 ms, in which the server answers nobody; and anyone can send invented tokens."""
    verify = verifier(issuer)
    await verify("a")
    monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: pytest.fail("the certificates are read"))
    await verify("b")

    assert 2 == len(issuer.forms)


@pytest.mark.slow
async def test_if_the_asking_request_is_cancelled_another_one_asks(issuer: Issuer) -> None:
    issuer.delay_seconds = 0.2
    verify = verifier(issuer)
    found: list[Any] = []

    async def wait() -> None:
        found.append(await verify("opaque"))

    async with anyio.create_task_group() as group, anyio.create_task_group() as first:
        first.start_soon(verify, "opaque")
        with anyio.fail_after(PATIENCE_SECONDS):
            while not issuer.forms:
                await anyio.lowlevel.checkpoint()
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        first.cancel_scope.cancel()

    assert 2 == len(issuer.forms)
    assert ["ann"] == [each.subject for each in found]


async def test_a_refused_token_is_not_asked_for_again_at_once(issuer: Issuer) -> None:
    issuer.documents["/introspect"] = {"active": False}
    verify = verifier(issuer)
    for _ in range(5):
        with pytest.raises(InvalidToken):
            await verify("invented")

    assert 1 == len(issuer.forms)


@pytest.mark.slow
async def test_a_slow_issuer_is_asked_about_all_waiting_tokens_at_once(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a token would wait for the answers about others, which anyone can invent."""
    monkeypatch.setattr(issuer_metadata, "_SECONDS", PATIENCE_SECONDS)
    all_asked = Barrier(token_check._MAX_WAITING)

    def answer(_form: str) -> dict[str, Any]:
        all_asked.wait(PATIENCE_SECONDS)
        return {"active": False}

    issuer.documents["/introspect"] = answer
    verify = verifier(issuer)

    async def ask(number: int) -> None:
        with pytest.raises(InvalidToken):
            await verify(f"invented {number}")

    async with anyio.create_task_group() as group:
        for number in range(token_check._MAX_WAITING):
            group.start_soon(ask, number)

    assert token_check._MAX_WAITING == len(issuer.forms)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"client_id": ""}, "must not be empty"),
        ({"client_secret": ""}, "must not be empty"),
        ({"cache_seconds": 61}, "between 0 and 60"),
        ({"url": "http://a.example"}, "`url` has"),
        ({"scope_claims": "scope"}, "must be a list"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Introspection(**{"client_id": "a", "client_secret": "b"} | options)


def test_an_opaque_token_does_not_name_one_of_several_issuers() -> None:
    method = Introspection(client_id="a", client_secret="hidden")  # noqa: S106 (no real one)
    with pytest.raises(UsageError, match=r"for a single issuer, .*; name one in `issuers`"):
        method.verifier(ExpectedToken(("https://a.example", "https://b.example"), frozenset()))

    assert "hidden" not in repr(method)


# --- the cache of verified tokens


def test_a_token_is_cached_no_longer_than_it_is_valid() -> None:
    now = [100.0]
    cache = TokenCache(60, lambda: now[0])
    client = Client("ann", "user ann", is_known=True)
    cache.add("short", client, 110)
    cache.add("long", client, 1000)
    cache.add("endless", client, None)
    now[0] = 110

    assert [None, client, client] == [cache.find(each) for each in ("short", "long", "endless")]
    now[0] = 160
    assert [None, None, None] == [cache.find(each) for each in ("short", "long", "endless")]
    assert 0 == len(cache)


def test_the_cache_has_a_bound_and_holds_no_token_of_an_idle_client() -> None:
    now = [100.0]
    cache = TokenCache(60, lambda: now[0], max_tokens=3)
    for number in range(10):
        cache.add(f"secret{number}", Client("ann", "user ann", is_known=True), None)

    assert 3 == len(cache)
    assert "secret" not in repr(vars(cache))
    assert [None, "ann"] == [found and found.user for found in map(cache.find, ("secret6", "secret7"))]
    now[0] += 10
    assert cache.find("secret8") is not None
    assert "secret7" not in repr(vars(cache))


def test_a_client_that_calls_often_does_not_have_its_token_hashed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[bytes] = []
    real = token_cache.sha256

    def counted(data: bytes) -> Any:
        hashed.append(data)
        return real(data)

    monkeypatch.setattr(token_cache, "sha256", counted)
    now = [100.0]
    cache = TokenCache(60, lambda: now[0], max_tokens=300)
    client = Client("ann", "user ann", is_known=True)
    cache.add("often", client, 104)
    hashed.clear()

    assert [client] * 3 == [cache.find("often") for _ in range(3)]
    assert [b"often"] == hashed
    now[0] = 104
    assert [None, None] == [cache.find("often") for _ in range(2)]  # it has expired, although its hash is known


def test_the_headers_of_active_clients_have_a_bound() -> None:
    cache = TokenCache(60, time.time)
    client = Client("ann", "user ann", is_known=True)
    tokens = [str(number) for number in range(3000)]
    for each in [*tokens, "x" * 5000]:
        cache.add(each, client, None)
        cache.find(each)
        cache.find(f"invented {each}")

    assert 0 < len(cache._recent) <= 1000
    assert cache._recent.keys() <= set(tokens)
    assert [client] * 3000 == [cache.find(each) for each in tokens]


def test_the_cache_has_a_bound_in_bytes() -> None:
    """An issuer that is asked for each token decides how many claims a token has."""
    cache = TokenCache(60, time.time, max_bytes=10_000)
    for number in range(10):
        access = Access(subject="ann", claims={"text": "x" * 3000, "list": [f"text {number}"]})
        size = access_bytes(access)
        cache.add(f"{number}", Client("ann", "user ann", is_known=True, access=access, access_bytes=size), None)

    assert 2 == len(cache)
    assert 8000 <= cache.kept_bytes <= 10_000
    assert [None, access] == [client and client.access for client in map(cache.find, ("7", "9"))]


# --- the header


def test_a_challenge_names_what_is_there() -> None:
    url = "https://a.example/.well-known/oauth-protected-resource"

    assert f'Bearer resource_metadata="{url}"'.encode() == bearer_challenge(url)
    assert (
        f'Bearer error="insufficient_scope", error_description="more", scope="a b", resource_metadata="{url}"'.encode()
        == bearer_challenge(url, scopes={"b", "a"}, error="insufficient_scope", description="more")
    )
