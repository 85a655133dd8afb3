"""What servers that a client logs in to cannot make it do: get tokens for others, or ask its user again and again."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen import ClientCredentials, HttpRefused, LoginFailed, MemoryTokenStore, connect
from mcpgen.runtime.http.auth.issuers import AuthorizationRequest, chosen_issuer, has_state
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.auth import access_tokens, attempts
from mcpgen.runtime.http.client.auth.credentials import tokens_key
from mcpgen.runtime.http.client.auth.token_store import stored_tokens
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import PRM, LoginWorld, answer, login_world, served

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def greet(world: LoginWorld, auth: Any) -> str:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(world.url, auth=auth) as client:
            result = await client.call_tool("greet", {"name": "Ann"})
    return str(result.content[0].text)


async def refused(world: LoginWorld, **options: Any) -> str:
    """Log in, and return why that failed."""
    with pytest.raises(LoginFailed) as failure:
        await greet(world, world.oauth(**options))
    return str(failure.value)


# --- tokens for others


@pytest.mark.parametrize(
    "query",
    [
        "resource=https%3A%2F%2Fvictim.example%2Fmcp",
        "tenant=1&scope=admin",
        "request_uri=https%3A%2F%2Fevil.example%2Fr",
        "code_challenge",
    ],
)
async def test_a_login_page_cannot_come_with_parameters_that_the_client_sets(query: str) -> None:
    """A hostile server names the login page of another one, whose tokens would be for the resource in this query."""
    async with login_world() as world:
        world.metadata["authorization_endpoint"] += f"?{query}"
        assert "has a parameter that only the client may set" in await refused(world)
        assert [] == world.logins


async def test_a_person_is_not_asked_if_the_code_could_not_be_redeemed() -> None:
    async with login_world() as world:
        world.metadata["token_endpoint"] = "javascript:alert(1)"  # noqa: S105 (a URL)
        assert "the token endpoint is 'javascript:alert(1)'" in await refused(world)
        assert [] == world.logins


async def test_a_login_page_can_have_a_query_of_its_own() -> None:
    async with login_world() as world:
        world.metadata["authorization_endpoint"] += "?p=policy"
        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert "policy" == world.logins[0]["p"]


@pytest.mark.parametrize(
    "issuer",
    [
        "https://login.example.com@evil.example",
        "https://evil.example/?https://login.example.com",
        "https://evil.example/#https://login.example.com",
        "https://evil.example/\x1b[2J",
        "https://evil.example/ x",
        f"https://evil.example/{'x' * 2000}",
        "https://[evil",
        "https:///evil",
        "",
    ],
)
def test_an_issuer_cannot_look_like_another_one(issuer: str) -> None:
    with pytest.raises(LoginFailed, match="cannot be an authorization server") as failure:
        chosen_issuer([issuer], None)

    assert str(failure.value).isprintable()
    assert 500 > len(str(failure.value))


@pytest.mark.parametrize("issuer", ["http://[", "http://127.0.0.1\x1b[2J", "https://[evil]/"])
async def test_metadata_cannot_name_an_issuer_that_is_no_url(issuer: str) -> None:
    async with login_world() as world:
        world.metadata["issuer"] = issuer
        assert "names another one" in await refused(world)
        assert [] == world.logins


def test_a_state_that_is_no_text_is_another_one() -> None:
    """A terminal gives bytes that are not UTF-8 as surrogates."""
    request = AuthorizationRequest(
        issuer="https://i.example", sends_issuer=False, state="S", verifier="V", redirect_uri="http://127.0.0.1/"
    )
    assert not has_state("http://127.0.0.1/?state=\udc80", request)


async def test_a_program_gets_no_more_scopes_than_it_has_listed() -> None:
    async with login_world() as world:
        world.needed = ["admin"]
        service = ClientCredentials("service", secret="s", scopes=["read"], issuer=world.origin)  # noqa: S106 (of a test)
        with pytest.raises(HttpRefused, match="403"):
            await greet(world, service)
        assert ["read"] == [each["scope"] for each in world.forms]

        anything = ClientCredentials("service", secret="s", issuer=world.origin)  # noqa: S106 (of a test)
        assert "Hello, Ann!" == await greet(world, anything)


# --- stored tokens


async def test_stored_tokens_of_another_issuer_are_not_used() -> None:
    async with login_world() as world, login_world() as other:
        store = MemoryTokenStore()
        await greet(world, world.oauth(store=store))
        world.resource["authorization_servers"].append(other.origin)
        with pytest.raises(LoginFailed):  # the server does not know the tokens of the other one
            await greet(world, world.oauth(store=store, issuer=other.origin))

        assert (1, 1) == (len(world.logins), len(other.logins))


async def test_stored_tokens_without_a_key_are_not_used_if_the_program_demands_one() -> None:
    async with login_world() as world:
        store = MemoryTokenStore()
        await greet(world, world.oauth(store=store))
        await greet(world, world.oauth(store=store, dpop="on"))

        assert 2 == len(world.logins)
        assert world.bearers[-1].startswith("DPoP ")


async def test_a_refreshed_token_without_a_key_is_not_used_if_the_program_demands_one() -> None:
    async with login_world() as world:
        oauth = world.oauth(dpop="on")
        await greet(world, oauth)
        world.revoke()
        world.binds = False
        before = len(world.bearers)
        with pytest.raises(LoginFailed, match="has not bound the token to the key"):
            await greet(world, oauth)

        assert not [each for each in world.bearers[before:] if each.startswith("Bearer")]


# --- one login after the other


class WithoutStreams(LoginWorld):
    """A server that refuses all tokens of its streams, and whose authorization server issues no refresh tokens."""

    def _issue(self, scopes: list[str]) -> dict[str, Any]:
        found = super()._issue(scopes)
        del found["refresh_token"]
        return found

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "GET":
            await super()._serve(scope, receive, send)
            return
        self.asked.append("GET /mcp")
        await answer(send, 401, {"www-authenticate": f'Bearer resource_metadata="{self.origin}{PRM}"'}, b"")


@pytest.mark.slow
async def test_a_stream_that_the_server_refuses_does_not_open_one_login_page_after_the_other() -> None:
    async with served(WithoutStreams) as world, connect(world.url, auth=world.oauth(), revisions=["2025-11-25"]):
        with anyio.fail_after(PATIENCE_SECONDS):
            while world.asked.count("GET /mcp") < 4:  # noqa: ASYNC110 (the server is another task)
                await anyio.sleep(0.05)

        assert 2 == len(world.logins)


async def test_a_server_that_always_wants_another_scope_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MAX_LOGINS", 4)
    async with login_world() as world, connect(world.url, auth=world.oauth()) as client:
        failure = ""
        for number in range(6):
            world.needed = [f"scope-{number}"]
            try:
                await client.call_tool("greet", {"name": "Ann"})
            except LoginFailed as error:
                failure = str(error)

        assert "has demanded 4 logins within 10 minutes" in failure
        assert 4 == len(world.logins)


class Fickle(LoginWorld):
    """A server that refuses each call of a tool with another scope."""

    count = 0

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        if dict(scope["headers"]).get(b"mcp-method") == b"tools/call":
            self.count += 1
            self.needed = [f"scope-{self.count}"]
        await super()._serve(scope, receive, send)


async def test_calls_that_are_refused_for_other_scopes_each_time_are_not_sent_again_for_each_other() -> None:
    calls = 30
    failures: list[HttpRefused] = []
    async with served(Fickle) as world:
        service = ClientCredentials("service", secret="s3cret", issuer=world.origin)  # noqa: S106 (of a test)
        async with connect(world.url, auth=service, revisions=["2026-07-28"]) as client:

            async def call() -> None:
                try:
                    await client.call_tool("greet", {"name": "Ann"})
                except HttpRefused as error:
                    failures.append(error)

            async with anyio.create_task_group() as group:
                for _ in range(calls):
                    group.start_soon(call)

        assert calls == len(failures)
        assert calls < world.count <= calls * (access_tokens._MAX_REFUSALS + 1)


async def test_scopes_that_make_the_url_too_long_end_the_login() -> None:
    async with login_world() as world:
        world.resource["scopes_supported"] = [f"scope-{number}" for number in range(10_000)]

        assert "longer than 16384 characters" in await refused(world)


async def test_scopes_that_differ_at_each_refresh_are_not_collected() -> None:
    store = MemoryTokenStore()
    async with login_world() as world:
        world.lifetime = 1  # each request refreshes the token
        issue = world._issue
        world._issue = lambda scopes: {  # type: ignore[method-assign]
            **issue(scopes),
            "scope": " ".join(f"{len(world.forms)}-{number}" for number in range(1000)),
        }
        oauth = world.oauth(store=store)
        async with connect(world.url, auth=oauth) as client:
            for _ in range(5):
                await client.call_tool("greet", {"name": "Ann"})
        tokens = await stored_tokens(store, tokens_key(oauth, parse_address(world.url)))

    assert len(world.forms) > 5
    assert tokens is not None
    assert 16 * 1024 >= len(" ".join(tokens.scopes))
