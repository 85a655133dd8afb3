"""Tokens for programs, and tokens that are bound to a key."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcpgen import (
    ClientCredentials,
    IdJag,
    JwtAssertion,
    LoginFailed,
    MemoryTokenStore,
    UsageError,
    connect,
)
from mcpgen.runtime.http.auth import assertions
from mcpgen.runtime.http.auth.assertions import client_assertion
from mcpgen.runtime.http.auth.pkce import unpadded
from mcpgen.runtime.http.auth.proofs import ProofKey
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.login_world import METADATA, PRM, LoginWorld, claims_of, login_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.client.auth.credentials import Credentials

pytestmark = pytest.mark.anyio
spec = pytest.mark.spec

KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def greet(world: LoginWorld, credentials: Credentials) -> str:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(world.url, auth=credentials) as client:
            result = await client.call_tool("greet", {"name": "Ann"})
    return str(result.content[0].text)


# --- programs


async def test_a_program_gets_tokens_with_its_secret() -> None:
    async with login_world() as world:
        service = ClientCredentials("service", secret="s3cret", issuer=world.origin)  # noqa: S106 (of a test)

        assert "Hello, Ann!" == await greet(world, service)
        assert "s3cret" not in repr(service)
        assert {"grant_type": "client_credentials", "scope": "read", "resource": world.url} == {
            name: value for name, value in world.forms[0].items() if name != "client_id"
        }
        assert ["Basic c2VydmljZTpzM2NyZXQ="] == world.authorizations
        assert [] == [*world.logins, *world.registrations]


async def test_a_client_with_http_basic_repeats_its_id_only_where_the_server_demands_it() -> None:
    """Incidents: some servers demand `client_id` in the form, too (python-sdk 3545); others refuse it (3138)."""
    async with login_world() as world:
        service = ClientCredentials("service", secret="s3cret", issuer=world.origin)  # noqa: S106 (of a test)
        assert "Hello, Ann!" == await greet(world, service)
        assert [None] == [each.get("client_id") for each in world.forms]
        world.wants_client_id = True
        assert "Hello, Ann!" == await greet(world, service)
        assert [None, None, "service"] == [each.get("client_id") for each in world.forms]
        assert {"Basic c2VydmljZTpzM2NyZXQ="} == set(world.authorizations)

        world.overrides["/token"] = (401, {}, b'{"error": "invalid_client"}')
        with pytest.raises(LoginFailed, match="invalid_client"):
            await greet(world, service)
        assert 5 == world.asked.count("POST /token")


async def test_a_program_authenticates_with_its_key() -> None:
    async with login_world() as world:
        assert "Hello, Ann!" == await greet(world, ClientCredentials("service", private_key=PEM))
        signed = world.forms[0]["client_assertion"]
        claims = jwt.decode(signed, KEY.public_key(), ["ES256"], audience=world.origin)

        assert ("service", "service", 60) == (claims["iss"], claims["sub"], claims["exp"] - claims["iat"])
        assert [""] == world.authorizations


async def test_the_advice_fits_the_reason_why_there_is_no_token_endpoint() -> None:
    async with login_world() as company, login_world() as world:
        service = ClientCredentials("service", private_key=PEM)
        for status, advice in ((429, "try again later"), (404, "tell the operator of the authorization server")):
            world.overrides["/token"] = (status, {}, b"")
            with pytest.raises(LoginFailed, match=f"answered {status} without an error of OAuth; {advice}"):
                await greet(world, service)

        company.overrides["/token"] = (404, {}, b"")
        with pytest.raises(LoginFailed, match="answered 404 without an error of OAuth; check `token_endpoint`"):
            await greet(world, JwtAssertion(IdJag(f"{company.origin}/token", client_id="c", id_token="t")))  # noqa: S106

        for path in (PRM, METADATA):  # so the URL of the token endpoint is a guess
            world.overrides[path] = (404, {}, b"")
        with pytest.raises(LoginFailed, match="names no authorization server"):
            await greet(world, service)


async def test_an_expired_token_of_a_program_is_replaced_without_a_refresh() -> None:
    async with login_world() as world:
        world.lifetime = 1
        service = ClientCredentials("service", private_key=PEM)
        async with connect(world.url, auth=service) as client:
            await client.call_tool("greet", {"name": "Ann"})

        assert "client_credentials" in {each["grant_type"] for each in world.forms}


async def test_the_credentials_of_a_program_go_only_to_their_issuer() -> None:
    async with login_world() as world, login_world() as other:
        world.resource["authorization_servers"] = [other.origin]
        with pytest.raises(LoginFailed, match="but `issuer` is"):
            await greet(world, ClientCredentials("service", secret="s3cret", issuer=world.origin))  # noqa: S106

        assert [] == [*other.asked, *other.forms]


@spec("2026-07-28", "basic/authorization/client-registration#authorization-server-binding", "61f83f49", "67621068")
@pytest.mark.parametrize("grant", ["client credentials", "assertion"])
async def test_the_credentials_of_a_program_stay_with_their_first_issuer(grant: str) -> None:
    async def workload(issuer: str, resource: str) -> str:
        return f"{issuer} {resource}"

    async with login_world() as world, login_world() as other:
        service: ClientCredentials | JwtAssertion
        if grant == "assertion":
            service = JwtAssertion(workload, client_id="service", client_secret="s3cret")  # noqa: S106 (of a test)
        else:
            service = ClientCredentials("service", secret="s3cret")  # noqa: S106 (of a test)
        async with connect(world.url, auth=service) as client:
            world.revoke()
            world.refreshable.clear()
            world.resource["authorization_servers"] = [other.origin]
            with pytest.raises(LoginFailed, match="registered with another one"):
                await client.call_tool("greet", {"name": "Ann"})
        with pytest.raises(LoginFailed, match="registered with another one"):
            await greet(world, service)

        assert [] == [*other.forms, *other.authorizations]


async def test_a_jwt_of_another_issuer_is_exchanged_once() -> None:
    asked: list[tuple[str, str]] = []

    async def workload(issuer: str, resource: str) -> str:
        asked.append((issuer, resource))
        return "workload.jwt.signed"

    async with login_world() as world:
        assert "Hello, Ann!" == await greet(world, JwtAssertion(workload, client_id="service"))
        assert [(world.origin, world.url)] == asked
        assert ("workload.jwt.signed", "service") == (world.forms[0]["assertion"], world.forms[0]["client_id"])

        world.overrides["/token"] = (400, {}, b'{"error": "invalid_grant", "error_description": "expired"}')
        with pytest.raises(LoginFailed, match="invalid_grant: expired"):
            await greet(world, JwtAssertion(workload))
        assert 1 == world.asked[-3:].count("POST /token")


async def test_an_enterprise_exchanges_the_id_token_of_its_user() -> None:
    async with login_world() as company, login_world() as world:
        identity = IdJag(
            f"{company.origin}/token", client_id="chat", id_token=lambda: "id.token.signed", scopes=["read"]
        )
        login = JwtAssertion(identity, client_id="chat-here", client_secret="s3cret")  # noqa: S106 (of a test)

        assert "Hello, Ann!" == await greet(world, login)
        exchange = company.forms[0]
        assert (world.origin, world.url, "id.token.signed") == (
            exchange["audience"],
            exchange["resource"],
            exchange["subject_token"],
        )
        assert "id.jag.signed" == world.forms[0]["assertion"]
        assert "token" not in repr(identity).replace("/token", "")

        company.overrides["/token"] = (400, {}, b'{"error": "access_denied"}')
        with pytest.raises(LoginFailed, match="the identity provider answered access_denied"):
            await greet(world, login)


async def test_an_identity_provider_that_issues_something_else_is_refused() -> None:
    async with login_world() as company, login_world() as world:
        document = {"access_token": "t", "token_type": "Bearer"}
        company.overrides["/token"] = (200, {}, json.dumps(document).encode())
        with pytest.raises(LoginFailed, match="another token than an identity assertion"):
            await greet(world, JwtAssertion(IdJag(f"{company.origin}/token", client_id="c", id_token="t")))  # noqa: S106


@pytest.mark.parametrize("result", ["", ZeroDivisionError()])
async def test_a_function_without_a_jwt_fails_the_login(result: Any) -> None:
    def assertion(issuer: str, resource: str) -> str:
        if isinstance(result, Exception):
            raise result
        return str(result)

    async with login_world() as world:
        with pytest.raises(LoginFailed, match=r"`assertion` (returned no JWT|raised ZeroDivisionError)"):
            await greet(world, JwtAssertion(assertion))


def test_wrong_options_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="needs `secret` or `private_key`"):
        ClientCredentials("service")
    with pytest.raises(UsageError, match="has both `secret` and `private_key`"):
        ClientCredentials("service", secret="s", private_key="k")  # noqa: S106 (of a test)
    with pytest.raises(UsageError, match="needs `client_id`"):
        JwtAssertion(lambda issuer, resource: "", client_secret="s")  # noqa: S106 (of a test)
    with pytest.raises(UsageError, match="must be a URL of https"):
        IdJag("http://login.example.com/token", client_id="c", id_token="t")  # noqa: S106 (of a test)
    with pytest.raises(UsageError, match="not a PEM key for the algorithm 'ES256'") as refused:
        client_assertion(client_id="c", audience="a", key="-----BEGIN my secret key", algorithm="ES256", now=0)
    assert "my secret key" not in str(refused.value)
    with pytest.raises(UsageError, match=r"use RS256.* or EdDSA") as refused:
        client_assertion(client_id="c", audience="a", key="", algorithm="ES521", now=0)
    assert "ES521, " not in str(refused.value)


def test_without_pyjwt_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)
    with pytest.raises(
        UsageError, match=r'DPoP needs PyJWT and cryptography; install both: pip install "mcpgen\[auth\]"'
    ):
        assertions.import_jwt("DPoP")


@pytest.mark.parametrize(
    "service",
    [
        ClientCredentials("service", secret="s3cret"),  # noqa: S106 (of a test)
        ClientCredentials("service", private_key=PEM),
        JwtAssertion(lambda issuer, resource: "workload.jwt", client_id="c", client_secret="s3cret"),  # noqa: S106
    ],
)
async def test_an_authorization_server_that_repeats_a_secret_does_not_get_it_into_an_error(
    service: Credentials,
) -> None:
    async with login_world() as world:

        def repeat(form: dict[str, str]) -> tuple[int, dict[str, str]]:
            text = " ".join([*form.values(), world.authorizations[-1]])
            return 400, {"error": "invalid_client", "error_description": f"I got {text}"}

        world._token = repeat  # type: ignore[method-assign] # another answer
        with pytest.raises(LoginFailed, match="invalid_client: I got ") as refused:
            await greet(world, service)
        secrets = [world.forms[-1].get(name, "s3cret") for name in ("assertion", "client_assertion")]

        assert [] == [each for each in (*secrets, "czNjcmV0", "OnMzY3JldA") if each in str(refused.value)]


@pytest.mark.parametrize("encode", [quote, quote_plus])
async def test_a_secret_that_is_repeated_as_it_was_in_the_form_does_not_get_into_an_error(
    encode: Callable[[str], str],
) -> None:
    secret = "s3cr+t /ä"  # noqa: S105 (of a test)
    async with login_world() as world:
        world.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]

        def repeat(form: dict[str, str]) -> tuple[int, dict[str, str]]:
            return 400, {"error": "invalid_client", "error_description": f"I got {encode(form['client_secret'])}"}

        world._token = repeat  # type: ignore[method-assign] # another answer
        with pytest.raises(LoginFailed, match=r"invalid_client: I got …"):
            await greet(world, ClientCredentials("service", secret=secret))


# --- DPoP


def test_a_proof_is_about_one_request_and_one_token() -> None:
    key = ProofKey()
    signed = key.proof("POST", "https://u:p@a.example:8443/mcp?q=1#f", now=100.5, token="t", nonce="n")  # noqa: S106
    header = jwt.get_unverified_header(signed)
    public = jwt.PyJWK(header["jwk"]).key
    claims = jwt.decode(signed, public, ["ES256"], options={"verify_iat": False})

    assert ("dpop+jwt", "ES256", {"kty", "crv", "x", "y"}) == (header["typ"], header["alg"], set(header["jwk"]))
    assert ("POST", "https://a.example:8443/mcp", 100) == (claims["htm"], claims["htu"], claims["iat"])
    assert (unpadded(sha256(b"t").digest()), "n") == (claims["ath"], claims["nonce"])
    assert claims["jti"] != json.loads(claims_of(key.proof("POST", "https://a.example/", now=1)))["jti"]
    assert ProofKey(key.pem).pem == key.pem
    assert "PRIVATE" not in repr(key)


@pytest.mark.parametrize("nonce", ["", "first"])
async def test_bound_tokens_are_sent_with_a_proof_each(nonce: str) -> None:
    async with login_world() as world:
        world.nonce = nonce
        store = MemoryTokenStore()
        assert "Hello, Ann!" == await greet(world, world.oauth(dpop="on", store=store))
        assert world.bearers[-1].startswith("DPoP ")
        sent = [json.loads(claims_of(each)) for each in world.proofs if each]
        assert len(sent) == len({each["jti"] for each in sent})
        assert {world.url} == {each["htu"] for each in sent}

        world.nonce = nonce and "second"
        assert "Hello, Ann!" == await greet(world, world.oauth(dpop="on", store=store))  # with the stored key
        assert 1 == len(world.logins)


async def test_a_server_that_binds_no_tokens_is_refused_if_they_must_be_bound() -> None:
    async with login_world() as world:
        world.binds = False
        with pytest.raises(LoginFailed, match="has not bound the token"):
            await greet(world, world.oauth(dpop="on"))


async def test_tokens_are_bound_by_themselves_if_the_server_demands_it() -> None:
    async with login_world() as world:
        world.resource["dpop_bound_access_tokens_required"] = True
        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert world.bearers[-1].startswith("DPoP ")
    async with login_world() as world:
        assert "Hello, Ann!" == await greet(world, world.oauth())
        assert world.bearers[-1].startswith("Bearer ")
