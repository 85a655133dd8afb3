"""The rules of OAuth without input and output: challenges, discovery, issuers, resources, scopes and registration."""

from __future__ import annotations

import ast
import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mcpgen.runtime.http import errors
from mcpgen.runtime.http.auth.challenges import Challenge, parse_challenges, token_challenge
from mcpgen.runtime.http.auth.discovery import (
    InvalidMetadata,
    ResourceMetadata,
    ServerMetadata,
    decode_metadata,
    legacy_endpoints,
    legacy_metadata_url,
    resource_metadata_urls,
    server_metadata_urls,
)
from mcpgen.runtime.http.auth.grants import (
    InvalidReply,
    TokenError,
    Tokens,
    client_authentication,
    code_form,
    decode_error,
    decode_tokens,
    exchange_form,
    refresh_form,
)
from mcpgen.runtime.http.auth.issuers import (
    AuthorizationRequest,
    chosen_issuer,
    code_of_response,
    has_root_slash,
    is_issuer_of,
)
from mcpgen.runtime.http.auth.pkce import check_pkce, code_challenge
from mcpgen.runtime.http.auth.registration import (
    Registration,
    decode_registration,
    registration_kind,
    registration_request,
    secret_method,
)
from mcpgen.runtime.http.auth.resources import chosen_resource
from mcpgen.runtime.http.auth.scopes import needs_step_up, selected_scopes, step_up_scopes
from mcpgen.runtime.http.errors import LoginFailed

spec = pytest.mark.spec
DISCOVERY = "basic/authorization/authorization-server-discovery"
REGISTRATION = "basic/authorization/client-registration"
SECURITY = "basic/authorization/security-considerations"

ISSUER = "https://login.example.com"
NOT_REGISTERED = pytest.raises(LoginFailed, match="did not register the redirect URI")
METADATA = ServerMetadata(
    issuer=ISSUER,
    token_endpoint=f"{ISSUER}/token",
    authorization_endpoint=f"{ISSUER}/authorize",
    registration_endpoint=f"{ISSUER}/register",
    code_challenge_methods_supported=["S256"],
)


def metadata(**changes: Any) -> ServerMetadata:
    return ServerMetadata(**{**{name: getattr(METADATA, name) for name in METADATA.__struct_fields__}, **changes})


# --- challenges


@spec("2025-06-18", "basic/authorization#authorization-server-location", "90cc0b95")
@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "de1a51a7")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "5a09040f",
)
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer", [("bearer", {})]),
        ('Bearer realm="a, b", scope="x y"', [("bearer", {"realm": "a, b", "scope": "x y"})]),
        ("BEARER Error=invalid_token", [("bearer", {"error": "invalid_token"})]),
        (r'Bearer error_description="say \"hi\""', [("bearer", {"error_description": 'say "hi"'})]),
        ('Basic realm="x", Bearer scope="y"', [("basic", {"realm": "x"}), ("bearer", {"scope": "y"})]),
        ('Negotiate dG9rZW4=, Bearer scope="y"', [("negotiate", {}), ("bearer", {"scope": "y"})]),
        ('DPoP algs="ES256 PS256", Bearer', [("dpop", {"algs": "ES256 PS256"}), ("bearer", {})]),
        ('Bearer scope="a", scope="b"', [("bearer", {"scope": "a"})]),
        ("Bearer scope = a ,error= b", [("bearer", {"scope": "a", "error": "b"})]),
        (',, Bearer scope="a",,', [("bearer", {"scope": "a"})]),
        ('Bearer x, error="never ends', [("bearer", {})]),
        ("Bearer a=http://h:1/x?y=1, scope=s", [("bearer", {"a": "http://h:1/x?y=1", "scope": "s"})]),
        ("", []),
        ("=,=", []),
    ],
)
def test_challenges_are_read_by_the_grammar_of_http(header: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    found = [(each.scheme, each.params) for each in parse_challenges(header)]

    assert expected == found


@given(st.text(alphabet='Bearer dpop,="\\ \t=realmé', max_size=200))
def test_any_header_is_read_without_an_error(header: str) -> None:
    assert all(each.scheme == each.scheme.lower() for each in parse_challenges(header))


def test_a_hostile_header_costs_no_more_than_a_long_one() -> None:
    began = time.process_time()
    for header in ('a="' * 100_000, "a," * 100_000, '"' * 100_000, "a b " * 100_000, "=" * 100_000):
        parse_challenges(header)

    assert time.process_time() - began < 5  # of this process alone; minutes, if it were quadratic


def test_the_challenge_for_a_token_is_found_among_others() -> None:
    assert token_challenge('Basic realm="x"') is None
    assert Challenge("dpop", {"error": "use_dpop_nonce"}) == token_challenge('Bearer, DPoP error="use_dpop_nonce"')
    assert (
        "s" == (token_challenge('Bearer realm="x", Bearer error="invalid_token", scope="s"') or Challenge("")).scopes[0]
    )


@spec("2025-06-18", "basic/authorization#authorization-server-location", "90cc0b95")
@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "de1a51a7")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "5a09040f",
)
@pytest.mark.parametrize(
    "header",
    [
        'Bearer resource_metadata="https://a.example/m", scope="s", DPoP algs="ES256"',
        'DPoP algs="ES256", Bearer resource_metadata="https://a.example/m", scope="s"',
        'Bearer realm="x", Bearer resource_metadata="https://a.example/m", scope="s"',
    ],
)
def test_the_challenges_for_tokens_complete_each_other(header: str) -> None:
    found = token_challenge(header)

    assert found is not None
    assert ("https://a.example/m", ("s",)) == (found.resource_metadata, found.scopes)


# --- discovery

PRM = "/.well-known/oauth-protected-resource"


@spec("2025-06-18", "basic/authorization#overview", "230dda47")
@spec("2025-11-25", "basic/authorization#overview", "230dda47")
@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "c154bd6e")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "b318e095",
)
@spec("2026-07-28", "basic/authorization/index#overview", "c95fadfb")
@pytest.mark.parametrize(
    ("server", "named", "expected"),
    [
        ("https://a.example/public/mcp", None, [f"{PRM}/public/mcp", PRM]),
        ("https://a.example/", None, [PRM]),
        ("https://a.example", None, [PRM]),
        ("https://a.example/mcp/", None, [f"{PRM}/mcp/", f"{PRM}/mcp", PRM]),
        ("https://a.example/mcp?tenant=1", None, [f"{PRM}/mcp?tenant=1", f"{PRM}/mcp", PRM]),
        ("https://a.example/?tenant=1", None, [f"{PRM}?tenant=1", PRM]),
        ("https://a.example/mcp", "https://a.example/odd", ["/odd", f"{PRM}/mcp", PRM]),
    ],
)
def test_the_metadata_of_a_resource_is_asked_by_header_then_path_then_root(
    server: str, named: str | None, expected: list[str]
) -> None:
    assert [f"https://a.example{each}" for each in expected] == resource_metadata_urls(server, named)


@spec(
    "2025-11-25",
    "basic/authorization#authorization-server-metadata-discovery",
    "0ae1fd1e",
    "8c663e2b",
    "8d454d54",
    "ae789ad9",
    "dd37cba7",
    "f69e9eb1",
)
@spec("2025-11-25", "basic/authorization#overview", "479d9c33")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
    "179c6afb",
    "6a97529f",
    "762cf547",
    "acb869e4",
    "b66a2ef6",
    "ea6bdeaa",
)
@spec("2026-07-28", "basic/authorization/index#authorization-server-discovery", "2a1f373e")
@spec("2026-07-28", "basic/authorization/index#overview", "5bf43289")
@pytest.mark.parametrize(
    ("issuer", "expected"),
    [
        ("https://a.example", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        ("https://a.example/", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        (
            "https://a.example/tenant1",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://a.example/tenant1/",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_the_metadata_of_an_authorization_server_is_asked_in_the_order_of_the_text(
    issuer: str, expected: list[str]
) -> None:
    """Incident: a client asked for metadata in one place only (typescript-sdk 616, 744, 1946, 2733)."""
    assert [f"https://a.example{each}" for each in expected] == server_metadata_urls(issuer)


@spec("2025-03-26", "basic/authorization#authorization-base-url", "572841f3")
@spec("2025-03-26", "basic/authorization#fallbacks-for-servers-without-metadata-discovery")
@spec("2025-03-26", "basic/authorization#overview", "f1221d76")
def test_2025_03_26_drops_the_path_and_has_default_endpoints() -> None:
    found = legacy_endpoints("https://api.example.com/v1/mcp")

    assert "https://api.example.com/.well-known/oauth-authorization-server" == legacy_metadata_url(
        "https://api.example.com/v1/mcp"
    )
    assert (
        "https://api.example.com/authorize",
        "https://api.example.com/token",
        "https://api.example.com/register",
    ) == (found.authorization_endpoint, found.token_endpoint, found.registration_endpoint)


@pytest.mark.parametrize("document", [b"<html>", b"[]", b"{}", b'{"issuer": 1}', b"\xff", b"[" * 100_000])
def test_a_document_that_is_no_metadata_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidMetadata):
        decode_metadata(document, ServerMetadata)
    with pytest.raises(InvalidMetadata):
        decode_metadata(document, ResourceMetadata)


# --- issuers

REQUEST = AuthorizationRequest(
    issuer=ISSUER, sends_issuer=False, state="S", verifier="V", redirect_uri="http://127.0.0.1:1/callback"
)
BOUND = AuthorizationRequest(
    issuer=ISSUER, sends_issuer=True, state="S", verifier="V", redirect_uri="http://127.0.0.1:1/callback"
)
CALLBACK = "http://127.0.0.1:1/callback"


@spec("2026-07-28", f"{DISCOVERY}#authorization-server-metadata-discovery")
@pytest.mark.parametrize("other", ["https://login.example.com/", "https://LOGIN.example.com", "https://honest.example"])
def test_metadata_is_used_only_for_its_own_issuer(other: str) -> None:
    assert is_issuer_of(METADATA, ISSUER)
    assert not is_issuer_of(METADATA, other)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("https://login.example.com/", True),
        ("https://login.example.com", False),
        ("https://login.example.com//", False),
        ("https://login.example.com/a", False),
        ("https://LOGIN.example.com/", False),
        ("https://honest.example/", False),
    ],
)
def test_only_the_slash_that_is_the_whole_path_is_another_spelling(other: str, *, expected: bool) -> None:
    assert expected == has_root_slash(other, ISSUER)
    assert expected == has_root_slash(ISSUER, other)
    assert not has_root_slash(f"{ISSUER}/a", f"{ISSUER}/a/")


@spec("2026-07-28", "basic/authorization/index#authorization-response-validation")
@pytest.mark.parametrize(
    ("request_", "query"),
    [
        (BOUND, "code=C&state=S&iss=https%3A%2F%2Flogin.example.com"),
        (REQUEST, "code=C&state=S&iss=https%3A%2F%2Flogin.example.com"),
        (REQUEST, "code=C&state=S"),
    ],
)
def test_a_response_of_the_recorded_issuer_is_accepted(request_: AuthorizationRequest, query: str) -> None:
    assert "C" == code_of_response(f"{CALLBACK}?{query}", request_)


@spec("2026-07-28", "basic/authorization/index#authorization-response-validation", "3a78f1a3")
@spec("2026-07-28", "basic/authorization/security-considerations#mix-up-attacks")
@pytest.mark.parametrize("request_", [BOUND, REQUEST], ids=["advertised", "not advertised"])
@pytest.mark.parametrize(
    "issuer",
    [
        "https://login.example.com/",
        "https://LOGIN.example.com",
        "HTTPS://login.example.com",
        "https://login.example.com:443",
        "https://login.example.com%2F",
        "",
    ],
)
def test_an_issuer_is_compared_without_normalization(request_: AuthorizationRequest, issuer: str) -> None:
    with pytest.raises(LoginFailed, match="another issuer"):
        code_of_response(f"{CALLBACK}?code=C&state=S&iss={issuer.replace('%', '%25')}", request_)


@spec("2026-07-28", "basic/authorization/index#authorization-response-validation", "e2a07b09")
def test_an_advertised_issuer_may_not_be_absent() -> None:
    with pytest.raises(LoginFailed, match="does not name its issuer"):
        code_of_response(f"{CALLBACK}?code=C&state=S", BOUND)


@spec("2026-07-28", "basic/authorization/index#authorization-response-validation", "e2e02426")
def test_the_error_of_another_issuer_is_not_shown() -> None:
    query = "error=access_denied&error_description=call+0900-1234&state=S&iss=https%3A%2F%2Fattacker.example"
    with pytest.raises(LoginFailed) as refused:
        code_of_response(f"{CALLBACK}?{query}", REQUEST)

    assert "0900" not in str(refused.value)
    assert "access_denied" not in str(refused.value)


def test_the_error_of_the_right_issuer_is_shown_on_one_line() -> None:
    query = "error=access_denied&error_description=no%0Athanks&state=S"
    with pytest.raises(LoginFailed) as refused:
        code_of_response(f"{CALLBACK}?{query}", REQUEST)

    assert r"access_denied: no\nthanks" in str(refused.value)


@spec("2025-06-18", "basic/authorization#open-redirection", "1eb9352d")
@spec("2025-11-25", "basic/authorization#open-redirection", "1eb9352d")
@spec("2026-07-28", "basic/authorization/security-considerations#open-redirection", "ca3fed76")
@pytest.mark.parametrize(
    "query", ["code=C", "code=C&state=T", "code=C&state=S&state=S", "code=C&state=", "code=C&state=%C3%A9"]
)
def test_a_response_without_the_state_of_this_login_is_discarded(query: str) -> None:
    with pytest.raises(LoginFailed, match="state"):
        code_of_response(f"{CALLBACK}?{query}", REQUEST)


@pytest.mark.parametrize(
    "query",
    [
        "iss=https://honest.example&iss=https://attacker.example",
        "iss=https://honest.example&iss=",
        "iss=&iss=",
        "code=D",
        "error=a&error=b",
    ],
)
def test_a_parameter_that_is_there_twice_does_not_count_as_absent(query: str) -> None:
    """An attacker who adds an `iss` to the redirect URI would make the honest server's response pass as one without."""
    with pytest.raises(LoginFailed, match="more than once"):
        code_of_response(f"{CALLBACK}?code=C&state=S&{query}", REQUEST)


def test_what_comes_behind_a_long_parameter_is_not_cut_off() -> None:
    with pytest.raises(LoginFailed):
        code_of_response(f"{CALLBACK}?code=C&state=S&x={'x' * 20_000}&iss=https://attacker.example", REQUEST)


def test_an_issuer_that_the_program_demands_must_be_listed() -> None:
    assert "https://a.example" == chosen_issuer(["https://a.example", "https://b.example"], None)
    assert "https://b.example/" == chosen_issuer(["https://a.example", "https://b.example"], "https://b.example/")
    assert "https://b.example" == chosen_issuer(["https://a.example", "https://b.example"], None, "https://b.example")
    assert "https://a.example" == chosen_issuer(["https://a.example"], None, "https://b.example")
    with pytest.raises(LoginFailed, match="get credentials from that one"):
        chosen_issuer(["https://a.example"], "https://b.example")
    with pytest.raises(LoginFailed, match="names no authorization server"):
        chosen_issuer([], None)


# --- resources


@spec("2025-06-18", "basic/authorization#canonical-server-uri", "448e82a7", "9a7c0a42", "e92fb3e5")
@spec("2025-11-25", "basic/authorization#canonical-server-uri", "448e82a7", "9a7c0a42", "e92fb3e5")
@spec("2026-07-28", "basic/authorization/index#canonical-server-uri", "0039613f", "5e5f9614", "a3fdcf43")
@spec("2026-07-28", "basic/authorization/index#resource-parameter-implementation")
@pytest.mark.parametrize(
    "named",
    [
        "https://mcp.example.com/server/mcp",
        "https://mcp.example.com/server",
        "https://mcp.example.com",
        "https://mcp.example.com/",
        "HTTPS://MCP.example.com/server/mcp",
        "https://mcp.example.com:443/server/mcp",
    ],
)
def test_a_resource_is_sent_as_the_server_writes_it(named: str) -> None:
    assert named == chosen_resource("https://mcp.example.com/server/mcp", named)


@spec("2026-07-28", "basic/authorization/index#resource-parameter-implementation")
@pytest.mark.parametrize(
    "named",
    [
        "https://evil.example.com/server/mcp",
        "http://mcp.example.com/server/mcp",
        "https://mcp.example.com:8443/server/mcp",
        "https://mcp.example.com/serv",
        "https://mcp.example.com/server/mcp/deeper",
        "https://mcp.example.com/other/../server",
        "https://mcp.example.com/server#fragment",
        "https://mcp.example.com/server?tenant=2",
        "https://mcp.example.com@evil.example/server",
        "https://honest.example@mcp.example.com/server/mcp",
        "https://honest.example\\@mcp.example.com/server/mcp",
        "https://mcp.ex\tample.com/server/mcp",
        " https://mcp.example.com/server/mcp",
        "https://[broken",
        "mcp.example.com",
        "",
    ],
)
def test_the_metadata_of_another_resource_is_refused(named: str) -> None:
    with pytest.raises(LoginFailed, match="not the URL of this server"):
        chosen_resource("https://mcp.example.com/server/mcp", named)


# --- scopes


@spec(
    "2025-11-25",
    "basic/authorization#protected-resource-metadata-discovery-requirements",
    "0029cc40",
    "01071e6d",
    "765eb7ff",
)
@spec("2025-11-25", "basic/authorization#scope-selection-strategy", "01cb54b5", "16d4ce4d", "bb3aacc6")
@spec(
    "2026-07-28",
    "basic/authorization/index#scope-selection-strategy",
    "2dc7d6bc",
    "4f935f41",
    "78119989",
    "d3b85cdb",
    "f293eeb5",
)
@pytest.mark.parametrize(
    ("configured", "challenged", "listed", "server", "expected"),
    [
        (None, ("a",), ("b", "c"), None, ("a",)),
        (None, (), ("b", "c"), None, ("b", "c")),
        (None, (), None, ("x",), ()),
        (None, (), (), None, ()),
        (("z",), ("a",), ("b",), ("offline_access",), ("z",)),
        (None, ("a",), None, ("a", "offline_access"), ("a", "offline_access")),
        (None, ("a", "offline_access"), None, ("a",), ("a",)),
        (None, (), None, ("offline_access",), ()),
    ],
)
def test_the_challenge_decides_about_scopes_before_the_metadata(
    configured: Any, challenged: Any, listed: Any, server: Any, expected: tuple[str, ...]
) -> None:
    assert expected == selected_scopes(configured, challenged, listed, server)


@spec("2026-07-28", "basic/authorization/index#scope-selection-strategy", "fe87d39c")
@spec("2026-07-28", "basic/authorization/index#step-up-authorization-flow")
def test_a_step_up_keeps_the_scopes_that_were_requested_before() -> None:
    assert ("a", "b", "c") == step_up_scopes(("a", "b"), ("b", "c"))
    assert needs_step_up(("a",), ("a", "b"))
    assert not needs_step_up(("a", "b"), ("a",))
    assert not needs_step_up(("a",), ())


def test_scopes_do_not_add_up_without_end() -> None:
    earlier = [f"scope-{number}" for number in range(2000)]

    assert ("b", "c") == step_up_scopes(earlier, ("b", "c", "b"))


# --- PKCE


@spec("2026-07-28", f"{SECURITY}#authorization-code-protection")
def test_the_code_challenge_is_that_of_rfc_7636() -> None:
    assert "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" == code_challenge(
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    )


@spec("2025-11-25", "basic/authorization#authorization-code-protection", "51dbdffa", "99eaacf1", "b4400b1d", "f8a4f9d3")
@spec(
    "2026-07-28",
    "basic/authorization/security-considerations#authorization-code-protection",
    "9096d3ac",
    "a051d37e",
    "cabef9b9",
    "dbcb0a38",
)
@pytest.mark.parametrize("methods", [None, [], ["plain"]])
def test_a_client_refuses_a_server_that_does_not_say_that_it_supports_pkce(methods: list[str] | None) -> None:
    check_pkce(METADATA)
    with pytest.raises(LoginFailed, match="assume_pkce"):
        check_pkce(metadata(code_challenge_methods_supported=methods))


# --- registration


@spec("2025-11-25", "basic/authorization#client-registration-approaches", "48e0f6f4", "855aeaab", "f08390b8")
@spec("2025-11-25", "basic/authorization#discovery", "511b93d4")
@spec("2026-07-28", "basic/authorization/client-registration", "5332baf3", "7c24a8a4", "f920d725")
@spec("2026-07-28", "basic/authorization/client-registration#advertising-cimd-support", "cdea9d9d")
@spec("2026-07-28", "basic/authorization/index#client-registration", "a557c9d2")
@pytest.mark.parametrize(
    ("client_id", "document", "supported", "expected"),
    [
        ("given", "https://c.example/c.json", True, "given"),
        (None, "https://c.example/c.json", True, "document"),
        (None, "https://c.example/c.json", False, "dynamic"),
        (None, None, True, "dynamic"),
    ],
)
def test_a_client_gets_its_id_in_the_order_of_the_text(
    client_id: str | None, document: str | None, *, supported: bool, expected: str
) -> None:
    found = metadata(client_id_metadata_document_supported=supported)

    assert expected == registration_kind(client_id=client_id, document_url=document, metadata=found)


@spec("2025-11-25", "basic/authorization#client-registration-approaches", "95fe65d6")
@spec("2026-07-28", "basic/authorization/client-registration", "e9bea672")
def test_a_client_that_cannot_register_says_what_to_do() -> None:
    """Incident: an authorization server without registration was a dead end (fastmcp 1530, 3085; python-sdk 1988)."""
    with pytest.raises(LoginFailed, match="--client-id"):
        registration_kind(client_id=None, document_url=None, metadata=metadata(registration_endpoint=None))


@spec(
    "2026-07-28",
    "basic/authorization/client-registration#application-type-and-redirect-uri-constraints",
    "6f2eac6c",
    "b1b43541",
    "fdeca302",
)
@spec("2026-07-28", "basic/authorization/index#refresh-tokens", "718be370")
@pytest.mark.parametrize(
    ("redirect", "kind"), [("http://127.0.0.1:1/callback", "native"), ("https://app.example/done", "web")]
)
def test_a_registration_names_its_application_type_and_wants_refresh_tokens(redirect: str, kind: str) -> None:
    sent = json.loads(registration_request(METADATA, name="n", redirect_uri=redirect))

    assert (kind, [redirect]) == (sent["application_type"], sent["redirect_uris"])
    assert "scope" not in sent  # or it could not get others later
    assert ["authorization_code", "refresh_token"] == sent["grant_types"]


@pytest.mark.parametrize(
    ("reply", "method", "secret"),
    [
        ({"client_id": "c"}, "none", None),
        ({"client_id": "c", "token_endpoint_auth_method": "none", "client_secret": "s"}, "none", None),
        ({"client_id": "c", "client_secret": "s"}, "client_secret_basic", "s"),
        (
            {"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"},
            "client_secret_post",
            "s",
        ),
    ],
)
def test_the_reply_to_a_registration_decides_how_the_client_authenticates(
    reply: dict[str, str], method: str, secret: str | None
) -> None:
    found = decode_registration(json.dumps(reply).encode(), issuer=ISSUER, redirect_uri="")

    assert (method, secret) == (found.method, found.secret)
    assert "client_id" not in repr(found)


@spec("2026-07-28", "basic/authorization/index#client-registration", "a557c9d2")
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[]",
        b"{}",
        b'{"client_id": ""}',
        b'{"client_id": "c", "token_endpoint_auth_method": "private_key_jwt"}',
        b'{"client_id": "%s"}' % (b"c" * 16_385),
        b'{"client_id": "c", "client_secret": "%s"}' % (b"s" * 16_385),
    ],
)
def test_a_registration_without_usable_credentials_is_refused(reply: bytes) -> None:
    with pytest.raises(LoginFailed):
        decode_registration(reply, issuer=ISSUER, redirect_uri="")


@pytest.mark.parametrize(
    ("method", "secret", "said"),
    [
        ("client_secret_jwt", "s", "'client_secret_jwt', which the client does not have"),
        ("client_secret_basic", None, "'client_secret_basic', but sent no secret for it"),
    ],
)
def test_a_registration_for_another_method_of_authentication_is_told_with_the_method(
    method: str, secret: str | None, said: str
) -> None:
    reply = json.dumps({"client_id": "c", "client_secret": secret, "token_endpoint_auth_method": method}).encode()

    with pytest.raises(LoginFailed, match=said):
        decode_registration(reply, issuer=ISSUER, redirect_uri="")


@spec("2025-11-25", "basic/authorization#open-redirection", "e5ff42cd")
@spec("2026-07-28", "basic/authorization/security-considerations#open-redirection", "8bddc9ca")
@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (["http://127.0.0.1:7/callback"], nullcontext()),
        (["http://127.0.0.1:8/callback", 5], nullcontext()),  # RFC 8252, section 7.3: any port of a loopback address
        ([], nullcontext()),  # such a list, and a missing one, say nothing
        (None, nullcontext()),
        (["https://other.example/callback"], NOT_REGISTERED),
        (["http://127.0.0.1:7/other", 5], NOT_REGISTERED),
        (["http://127.0.0.1.example:7/callback"], NOT_REGISTERED),
    ],
)
def test_a_registration_of_other_redirect_uris_is_refused(
    listed: object, expected: AbstractContextManager[object]
) -> None:
    reply = json.dumps({"client_id": "c", "redirect_uris": listed}).encode()

    with expected:
        decode_registration(reply, issuer=ISSUER, redirect_uri="http://127.0.0.1:7/callback")


@pytest.mark.parametrize(
    ("listed", "secret", "expected"),
    [
        (None, "s", "client_secret_basic"),
        (["client_secret_post"], "s", "client_secret_post"),
        (["client_secret_post", "client_secret_basic"], "s", "client_secret_basic"),
        (["client_secret_post"], None, "none"),
    ],
)
def test_the_method_of_a_given_secret_follows_the_metadata(
    listed: list[str] | None, secret: str | None, expected: str
) -> None:
    assert expected == secret_method(metadata(token_endpoint_auth_methods_supported=listed), secret)


# --- grants


@spec("2025-06-18", "basic/authorization#resource-parameter-implementation")
@spec("2026-07-28", "basic/authorization/index#resource-parameter-implementation")
def test_each_token_request_names_the_resource_unchanged() -> None:
    resource = "https://mcp.example.com"

    assert resource == code_form(code="c", redirect_uri="r", verifier="v", resource=resource)["resource"]
    assert resource == refresh_form(refresh_token="t", resource=resource)["resource"]  # noqa: S106 (of a test)
    assert "resource" not in refresh_form(refresh_token="t", resource=None)  # noqa: S106 (of a test)
    assert "resource" not in exchange_form(id_token="t", audience=ISSUER, resource="", scopes=())  # noqa: S106


def test_a_client_without_an_id_sends_none() -> None:
    assert ({}, {}) == client_authentication(Registration(ISSUER, ""))
    assert ({}, {"client_id": "c"}) == client_authentication(Registration(ISSUER, "c"))


def test_credentials_of_http_basic_are_encoded_as_a_form_first() -> None:
    client = Registration(ISSUER, "a:b", "s%é", "client_secret_basic")

    assert ({"authorization": "Basic YSUzQWI6cyUyNSVDMyVBOQ=="}, {}) == client_authentication(client)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"", "is not JSON"),
        (b"{}", "lacks `access_token` or `token_type`"),
        (b'{"access_token": "t"}', "lacks `access_token` or `token_type`"),
        (b'{"access_token": "t", "token_type": "Bearer", "scope": 5}', "has a field of a wrong type"),
        (b'{"access_token": "t", "token_type": "mac"}', "unknown type"),
        (b'{"access_token": "a\\r\\nX: y", "token_type": "Bearer"}', "has characters that a header cannot contain"),
        (b'{"access_token": "", "token_type": "Bearer"}', "is empty, or"),
        (b'{"access_token": "%s", "token_type": "Bearer"}' % (b"t" * 65_537), "more than 65536 characters"),
        (
            b'{"access_token": "t", "token_type": "Bearer", "refresh_token": "%s"}' % (b"r" * 65_537),
            "more than 65536 characters",
        ),
        (b'{"access_token": "t", "token_type": "Bearer", "expires_in": "nan"}', "a lifetime that makes no sense"),
        (b'{"access_token": "t", "token_type": "Bearer", "expires_in": "inf"}', "a lifetime that makes no sense"),
    ],
)
def test_a_reply_without_a_usable_token_is_refused_and_not_shown(reply: bytes, said: str) -> None:
    with pytest.raises(InvalidReply, match=said) as refused:
        decode_tokens(reply)

    assert "X:" not in str(refused.value)


def test_a_lifetime_may_be_a_string() -> None:
    assert 60 == decode_tokens(b'{"access_token": "t", "token_type": "bearer", "expires_in": "60"}').expires_in


def test_the_error_of_a_token_endpoint_is_text_on_one_line() -> None:
    assert r"invalid_grant: a\nb" == str(decode_error(b'{"error": "invalid_grant", "error_description": "a\\nb"}'))
    assert "a" == str(decode_error(b'{"error": "a", "error_description": null}'))
    assert decode_error(b"<html>") is None


def test_tokens_are_renewed_before_they_expire_and_never_shown() -> None:
    client = Registration(ISSUER, "c", "secret-of-client", "client_secret_basic")
    tokens = Tokens("secret-token", ISSUER, f"{ISSUER}/token", client, expires_at=100.0, key="secret")
    refreshable = structs.replace(tokens, refresh_token="secret-too")  # noqa: S106 (of a test)

    assert [True, False] == [refreshable.is_fresh(each) for each in (60.0, 80.0)]
    assert [True, False] == [tokens.is_fresh(each) for each in (80.0, 100.0)]  # another login would follow
    assert "secret" not in repr(tokens)
    assert "secret" not in repr(client)


# --- what errors say


def test_each_error_of_a_login_says_what_to_do() -> None:
    """What is wrong comes before the semicolon."""
    folder = Path(errors.__file__).parent
    silent: list[str] = []
    for path in [*folder.glob("auth/*.py"), *folder.glob("client/auth/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "LoginFailed":
                reason = ast.unparse(node.args[0])
                if isinstance(node.args[0], ast.Constant | ast.JoinedStr) and ";" not in reason:
                    silent.append(f"{path.name}: {reason}")

    assert {
        # The hint or the reason says what to do.
        "auth_requests.py: f'the request to {parts.netloc} failed: {reason}{hint}'",
        "keyring_store.py: f'the keyring cannot be {what}: {hint}'",  # each hint has two parts
        "logout.py: f'the authorization server answered {reply.status}'",  # a part of a warning
    } == set(silent)


def test_a_secret_in_which_another_one_occurs_is_not_shown() -> None:
    error = TokenError("invalid_grant", "code=x&code_verifier=123x456")

    assert TokenError("invalid_grant", "code=…&code_verifier=…") == error.without(["x", "123x456"])
