"""A protected server: metadata for clients, challenges, scopes, and to whom things belong."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest

from mcpgen import Access, Protect, Server, UsageError
from tests.runtime.http.issuer import running_issuer
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    STATELESS,
    STREAM,
    initialize,
    mirrored,
)
from tests.specification.http_server.http_site import WORKERS, site
from tests.specification.http_server.protected_site import (
    ISSUER,
    METADATA,
    METADATA_URL,
    RESOURCE,
    ask,
    challenge,
    files,
    protect,
    protected,
    session,
    stateless,
    token,
    verify,
)
from tests.specification.http_server.revision_sets import SESSIONS, on_both_loops, spec, with_sessions

pytestmark = pytest.mark.anyio

EVIL = "evil.example.net"


# --- metadata


@spec("2025-06-18", "basic/authorization#authorization-server-location", "9808ee00", "a368018f")
@spec("2025-06-18", "basic/authorization#overview", "0749d3c8")
@spec("2025-11-25", "basic/authorization#authorization-server-location", "9808ee00", "a368018f")
@spec("2025-11-25", "basic/authorization#overview", "0749d3c8")
@spec(
    "2025-11-25",
    "basic/authorization#protected-resource-metadata-discovery-requirements",
    "16fb5a5a",
    "55ba6645",
    "99267580",
)
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#authorization-server-location",
    "724ec690",
    "a4cc4af1",
)
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "02b1271e",
    "1b66d8d4",
    "5b9d47e8",
)
@spec("2026-07-28", "basic/authorization/index#overview", "895d7498")
@pytest.mark.parametrize("path", [f"{METADATA}/mcp", METADATA, f"{METADATA}/mcp/", f"{METADATA}/"])
async def test_the_metadata_is_public_at_the_path_of_the_resource_and_at_the_root(path: str) -> None:
    async with protected() as web:
        answer = await web.ask("GET", path, [("Origin", "https://any.example.net")])

    assert 200 == answer.status
    assert "*" == answer.header("access-control-allow-origin")
    assert {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["mcp"],
        "bearer_methods_supported": ["header"],
    } == answer.json


@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "16fb5a5a", "55ba6645")
@pytest.mark.parametrize("path", ["/caf%C3%A9/mcp", "/a%2Fb/mcp", "/%7Eann"])
async def test_a_challenge_names_metadata_that_is_there_if_the_url_of_the_server_has_escapes(path: str) -> None:
    async with protected(auth=protect(resource=f"https://mcp.example.com{path}")) as web:
        named = challenge(await web.ask("POST", "/mcp", [JSON, BOTH], b"{}"))["resource_metadata"]
        answer = await web.ask("GET", named.removeprefix("https://mcp.example.com"))

    assert f"https://mcp.example.com{METADATA}{path}" == named
    assert f"https://mcp.example.com{path}" == answer.json["resource"]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_page_may_ask_whether_it_may_read_the_metadata() -> None:
    lines = [
        ("Origin", "https://any.example.net"),
        ("Access-Control-Request-Method", "GET"),
        ("Access-Control-Request-Headers", "mcp-protocol-version"),
    ]
    async with protected() as web:
        answer = await web.ask("OPTIONS", METADATA, lines)
        refused = await web.ask("POST", METADATA, [JSON], b"{}")

    assert (204, "*") == (answer.status, answer.header("access-control-allow-origin"))
    assert "mcp-protocol-version" == answer.header("access-control-allow-headers")
    assert 405 == refused.status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_the_endpoint_of_http_sse_is_a_resource_of_its_own() -> None:
    async with protected() as web:
        found = await web.ask("GET", f"{METADATA}/sse")
        refused = [
            await web.ask("GET", "/sse", [STREAM]),
            await web.ask("POST", "/messages?session=1", [JSON], INITIALIZED),
        ]

    assert "https://mcp.example.com/sse" == found.json["resource"]
    assert [401, 401] == [each.status for each in refused]
    assert {f"https://mcp.example.com{METADATA}/sse"} == {challenge(each)["resource_metadata"] for each in refused}


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_mounted_application_serves_the_metadata_below_its_mount_and_for_the_framework() -> None:
    """Incident: a mounted server named metadata that was not there (python-sdk 1264, 1400; fastmcp 1685, 2889)."""
    auth = protect(resource="https://example.com/api/mcp")
    app = files().asgi(auth=auth)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    async with protected(auth=auth, root_path="/api") as web:
        inside = await web.ask("GET", f"{METADATA}/mcp")
        refused = await web.ask("POST", "/mcp", [JSON, BOTH], b"{}")
    at_host = {"type": "http", "method": "GET", "path": f"{METADATA}/api/mcp", "root_path": "", "headers": []}
    mounted = {**at_host, "root_path": METADATA}
    elsewhere = {**at_host, "path": f"{METADATA}/other"}
    for scope in (at_host, mounted, elsewhere):
        await app.metadata(scope, receive, send)

    assert "https://example.com/api/mcp" == inside.json["resource"]
    assert f"https://example.com{METADATA}/api/mcp" == challenge(refused)["resource_metadata"]
    assert [200, 200, 404] == [each["status"] for each in sent if "status" in each]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_an_application_without_auth_has_no_metadata() -> None:
    app = files().asgi()

    with pytest.raises(UsageError, match="the application has no metadata"):
        _ = app.metadata
    async with site(Server("open")) as web:
        assert 404 == (await web.ask("GET", METADATA)).status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_urls_do_not_come_from_the_host_header() -> None:
    """A client whose Host an attacker has set would otherwise be sent to the attacker's login."""
    async with protected() as web:
        found = await web.open("GET", METADATA, host=EVIL).complete()
        refused = await web.open("POST", "/mcp", [JSON, BOTH], b"{}", host=EVIL).complete()

    assert RESOURCE == found.json["resource"]
    assert METADATA_URL == challenge(refused)["resource_metadata"]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_the_host_of_requests_for_metadata_is_checked() -> None:
    async with protected(allowed_hosts=["mcp.example.com"]) as web:
        answer = await web.open("GET", METADATA, host=EVIL).complete()

    assert 403 == answer.status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_server_is_no_authorization_server_and_no_proxy_of_one() -> None:
    """A proxy attaches the consent of one user to the client of another (confused deputy).

    Incident: fastmcp, GHSA-c2jp-c369-7pvx and CVE-2026-27124.
    """
    paths = [f"/.well-known/{each}" for each in ("oauth-authorization-server", "openid-configuration")]
    paths += [
        f"{each}?client_id=a&redirect_uri=https://{EVIL}" for each in ("/authorize", "/callback", "/auth/callback")
    ]
    async with protected() as web:
        answers = [await web.ask("GET", each) for each in paths]
        answers += [await web.ask("POST", each, [JSON], b"{}") for each in ("/token", "/register", "/revoke")]

    assert {404} == {each.status for each in answers}


# --- challenges


@spec("2025-03-26", "basic/authorization#example-authorization-code-grant", "ce7ae2e2")
@spec("2025-06-18", "basic/authorization#authorization-server-location", "57cdc166")
@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "4c0faf63", "c309940e")
@spec(
    "2026-07-28",
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "8446b359",
)
@spec("2026-07-28", "basic/authorization/index#scope-selection-strategy", "429a735a")
@on_both_loops
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_request_without_a_token_is_told_where_to_get_one_for_which_scope(method: str) -> None:
    async with protected() as web:
        answer = await web.ask(method, "/mcp", [JSON, BOTH], b"{}" if method == "POST" else b"")

    assert 401 == answer.status
    assert {"scope": "mcp", "resource_metadata": METADATA_URL} == challenge(answer)


@spec("2025-03-26", "basic/authorization#error-handling", "42f71951")
@spec("2025-03-26", "basic/authorization#token-handling", "4e08799a", "faefee7b")
@spec("2025-06-18", "basic/authorization#error-handling", "42f71951")
@spec("2025-06-18", "basic/authorization#token-handling", "4e08799a", "6531bc36")
@spec("2025-11-25", "basic/authorization#error-handling", "42f71951")
@spec("2025-11-25", "basic/authorization#token-handling", "4e08799a", "6531bc36")
@spec("2026-07-28", "basic/authorization/index#error-handling", "5281cb70")
@spec("2026-07-28", "basic/authorization/index#token-handling", "a7d178c1", "dd4168ac")
async def test_a_token_that_is_not_valid_gets_401() -> None:
    async with protected() as web:
        answer = await ask(web, "unknown", "tools/list")

    assert 401 == answer.status
    assert "invalid_token" == challenge(answer)["error"]
    assert METADATA_URL == challenge(answer)["resource_metadata"]


@spec("2025-03-26", "basic/authorization#security-considerations", "bbd7309c", "f366f685")
@spec("2025-03-26", "basic/authorization#token-handling", "66bb4133")
@spec("2025-06-18", "basic/authorization#access-token-privilege-restriction", "02acde26", "4e6976ac", "8fea7e1b")
@spec("2025-06-18", "basic/authorization#token-audience-binding-and-validation", "8f692df9")
@spec("2025-06-18", "basic/authorization#token-handling", "722ed03f", "c861e75e", "e7814df5")
@spec("2025-11-25", "basic/authorization#access-token-privilege-restriction", "02acde26", "4e6976ac", "8fea7e1b")
@spec("2025-11-25", "basic/authorization#token-audience-binding-and-validation", "8f692df9")
@spec("2025-11-25", "basic/authorization#token-handling", "722ed03f", "c861e75e", "e7814df5", "f725b935")
@spec("2026-07-28", "basic/authorization/index#token-handling", "508088a4", "59226a87", "79778fdb", "7db7878d")
@spec(
    "2026-07-28",
    "basic/authorization/security-considerations#access-token-privilege-restriction",
    "9e5d70ea",
    "c878d6d7",
    "d01e5c7a",
)
@spec("2026-07-28", "basic/authorization/security-considerations#token-audience-binding-and-validation", "7116d8d1")
async def test_only_tokens_for_this_server_are_accepted() -> None:
    """Incident: tokens for other servers were accepted (python-sdk 1441)."""
    with running_issuer() as issuer, running_issuer() as foreign:
        auth = Protect(resource=RESOURCE, issuers=[issuer.url])
        bad = [
            issuer.token(aud="https://other.example.com/mcp"),
            issuer.token(exp=1),
            foreign.token(),
            foreign.token(iss=issuer.url),
            "opaque",
        ]
        async with protected(auth=auth) as web:
            refused = [await ask(web, each, "tools/call", name="look", arguments={}) for each in bad]
            served = [
                await ask(web, issuer.token(aud=each), "tools/call", name="look", arguments={})
                for each in (RESOURCE, "https://mcp.example.com/sse")
            ]

    assert [401] * 5 == [each.status for each in refused]
    assert {"invalid_token"} == {challenge(each)["error"] for each in refused}
    assert [200, 200] == [each.status for each in served]


@spec("2025-11-25", "basic/authorization#access-token-privilege-restriction", "02acde26", "4e6976ac")
@spec(
    "2026-07-28",
    "basic/authorization/security-considerations#access-token-privilege-restriction",
    "c878d6d7",
    "d01e5c7a",
)
async def test_a_server_without_http_sse_refuses_tokens_for_its_url() -> None:
    server = Server("files", revisions=["2025-11-25", STATELESS])

    @server.tool
    def look() -> str:
        return "seen"

    with running_issuer() as issuer:
        async with protected(server, auth=Protect(resource=RESOURCE, issuers=[issuer.url])) as web:
            foreign = issuer.token(aud="https://mcp.example.com/sse")
            refused = await ask(web, foreign, "tools/call", name="look", arguments={})
            served = await ask(web, issuer.token(aud=RESOURCE), "tools/call", name="look", arguments={})
            document = await web.ask("GET", f"{METADATA}/sse")

    assert (401, 200) == (refused.status, served.status)
    assert 404 == document.status


@spec("2024-11-05", "basic/transports#security-warning", "2680f701")
@spec("2025-03-26", "basic/transports#security-warning", "2680f701")
@spec("2025-06-18", "basic/transports#security-warning", "2680f701")
@spec("2025-11-25", "basic/transports#security-warning", "2680f701")
@spec("2026-07-28", "basic/transports/streamable-http#security-endpoint", "2cbab6ee")
async def test_all_requests_of_a_protected_server_need_a_token() -> None:
    async with protected() as web:
        answers = [
            await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25")),
            await ask(web, None, "server/discover"),
            await web.ask("GET", "/sse", [STREAM]),
            await web.ask("POST", "/messages?session=1", [JSON], INITIALIZED),
            await web.ask("PUT", "/mcp"),
        ]

    assert [401] * 5 == [each.status for each in answers]


@spec("2025-11-25", "basic/authorization#error-handling")
@pytest.mark.parametrize("value", ["Bearer a b", "Bearer ann, Bearer bob"])
async def test_malformed_credentials_get_400(value: str) -> None:
    async with protected() as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("Authorization", value)], stateless("tools/list"))

    assert (400, "invalid_request") == (answer.status, challenge(answer)["error"])


@spec("2025-03-26", "basic/authorization#token-handling", "4e08799a")
@spec("2025-06-18", "basic/authorization#token-handling", "4e08799a")
@spec("2025-11-25", "basic/authorization#token-handling", "4e08799a")
@spec("2026-07-28", "basic/authorization/index#token-handling", "dd4168ac")
@pytest.mark.parametrize("value", ['Bearer "ann"', "Bearer a=nn", "Bearer " + "a" * 20_000])
async def test_a_malformed_token_is_an_invalid_one(value: str) -> None:
    """RFC 6750, section 3.1, "invalid_token": expired, revoked, malformed, or invalid for other reasons."""
    async with protected() as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("Authorization", value)], stateless("tools/list"))

    assert (401, "invalid_token") == (answer.status, challenge(answer)["error"])


@spec("2025-11-25", "basic/authorization#access-token-usage")
@on_both_loops
async def test_invented_tokens_of_one_address_do_not_keep_others_from_an_answer() -> None:
    gate = anyio.Event()

    async def slow(value: str) -> Access | None:
        if value != "ann":
            await gate.wait()
        return await verify(value)

    addresses = {"trusted_proxies": ["127.0.0.1"]}
    async with protected(auth=protect(verify=slow), **addresses) as web:
        web.overseer.expects_failure = True

        def send(value: str, address: str) -> Any:
            body = stateless("tools/list")
            lines = [JSON, BOTH, *mirrored(json.loads(body)), *token(value), ("X-Forwarded-For", address)]
            return web.open("POST", "/mcp", lines, body)

        flood = [send(f"invented{each}", "10.0.0.1") for each in range(200 * WORKERS)]
        await anyio.wait_all_tasks_blocked()
        answer = await send("ann", "10.0.0.2").complete()
        gate.set()
        refused = [(await each.complete()).status for each in flood]

    assert 200 == answer.status
    # One gave way, at the worker that got the other token.
    assert {401: 128 * WORKERS - 1, 503: 72 * WORKERS + 1} == {each: refused.count(each) for each in set(refused)}


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_token_is_verified_once_however_its_header_is_written() -> None:
    """Else one client with one token could ask the issuer without end, and displace the tokens of others."""
    verified: list[str] = []

    async def count(value: str) -> Access | None:
        verified.append(value)
        return await verify(value)

    async with protected(auth=protect(verify=count)) as web:
        answers = [
            await web.ask("POST", "/mcp", [*lines, ("Authorization", each)], body)
            for each in ("Bearer ann", "bearer ann", "BEARER ann", "Bearer   ann")
            for _ in range(WORKERS)
            for body in [stateless("tools/list")]
            for lines in [[JSON, BOTH, *mirrored(json.loads(body))]]
        ]

    assert {200} == {each.status for each in answers}
    assert ["ann"] * WORKERS == verified, "each worker asks once"


@spec("2025-11-25", "basic/authorization#access-token-usage")
@pytest.mark.parametrize("value", ["Basic YW5uOmFubg==", "ann", "DPoP ann", "Bearer", ""])
async def test_credentials_of_another_scheme_get_401(value: str) -> None:
    async with protected() as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("Authorization", value)], stateless("tools/list"))

    assert 401 == answer.status


@spec("2025-11-25", "basic/authorization#token-requirements")
async def test_a_token_in_the_query_is_not_accepted() -> None:
    async with protected() as web:
        answer = await web.ask("POST", "/mcp?access_token=ann", [JSON, BOTH], stateless("tools/list"))

    assert 401 == answer.status


@spec("2025-11-25", "basic/authorization#token-requirements")
@with_sessions
async def test_each_request_of_a_session_needs_a_token(revision: str) -> None:
    async with protected() as web:
        own = await session(web, "ann", revision)
        answers = [
            await web.ask("POST", "/mcp", [JSON, BOTH, *own], INITIALIZED),
            await web.ask("GET", "/mcp", [STREAM, *own]),
            await web.ask("DELETE", "/mcp", own),
        ]

    assert [401, 401, 401] == [each.status for each in answers]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_body_is_not_read_before_the_token_is_checked() -> None:
    """Else anybody could make the server hold bodies; the connection of a long one is closed."""
    async with protected() as web:
        waiting = web.open("POST", "/mcp", [JSON, BOTH, ("Content-Length", "9000000")], b"{", is_whole=False)
        answer = await waiting.complete()

    assert (401, "close") == (answer.status, answer.header("connection"))
    assert 0 == answer._next


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_origin_and_host_are_checked_before_the_token() -> None:
    async with protected(allowed_origins=["https://good.example.com"]) as web:
        refused = await web.ask("POST", "/mcp", [JSON, BOTH, ("Origin", "https://evil.example.com")], b"{}")
        challenged = await web.ask("POST", "/mcp", [JSON, BOTH, ("Origin", "https://good.example.com")], b"{}")
        preflight = await web.ask(
            "OPTIONS",
            "/mcp",
            [("Origin", "https://good.example.com"), ("Access-Control-Request-Method", "POST")],
        )

    assert [403, 401, 204] == [refused.status, challenged.status, preflight.status]
    assert "www-authenticate" in (challenged.header("access-control-expose-headers") or "")


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_verification_that_fails_is_no_reason_to_log_in_again(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(token: str) -> Access:
        raise RuntimeError(f"no database for {token}")

    async with protected(auth=protect(verify=broken)) as web:
        web.overseer.expects_failure = True
        answer = await ask(web, "hidden-token", "tools/list")

    assert (503, None) == (answer.status, answer.header("www-authenticate"))
    assert "RuntimeError" in caplog.text
    assert "hidden-token" not in caplog.text + answer.body.decode()


@spec("2025-11-25", "basic/authorization#access-token-usage")
@pytest.mark.parametrize(
    "access",
    [
        Access(),
        Access(issuer=ISSUER, scopes=frozenset({"mcp"})),
        Access(subject="ann", scopes=frozenset({"mcp"}), expires_at=float("nan")),
    ],
    ids=["nobody", "no subject", "no time"],
)
async def test_a_token_of_no_user_or_no_time_is_refused(access: Access) -> None:
    """Else all such tokens would be one user, or would not expire."""

    async def verify(_token: str) -> Access:
        return access

    async with protected(auth=protect(verify=verify)) as web:
        answer = await ask(web, "any", "tools/list")

    assert 401 == answer.status


# --- scopes


@spec("2025-11-25", "basic/authorization#protected-resource-metadata-discovery-requirements", "b710682b")
@spec(
    "2025-11-25",
    "basic/authorization#runtime-insufficient-scope-errors",
    "4439827f",
    "5234c6ef",
    "5b780bef",
    "a789e578",
    "e6faacae",
    "f4f0188a",
    "fcf1b704",
    "ffe3643f",
)
@spec(
    "2026-07-28",
    "basic/authorization/index#runtime-insufficient-scope-errors",
    "08515c2d",
    "1712e869",
    "19a20507",
    "508b34fa",
    "63b512dd",
    "92abd3e2",
    "a7a8c140",
    "a8b718a3",
    "e1ebabbf",
)
@spec("2026-07-28", "basic/authorization/index#scope-selection-strategy", "efd42dd0")
@pytest.mark.parametrize(
    ("method", "params", "needed"),
    [
        ("tools/call", {"name": "write"}, "files:write mcp"),
        ("prompts/get", {"name": "summary", "arguments": {"name": "a"}}, "files:read mcp"),
        ("resources/read", {"uri": "file:secret"}, "files:read mcp"),
        ("resources/read", {"uri": "file:other"}, "files:list mcp"),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "summary"}, "argument": {"name": "name", "value": ""}},
            "files:read mcp",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "file:{name}"}, "argument": {"name": "name", "value": ""}},
            "files:list mcp",
        ),
    ],
)
async def test_a_challenge_names_all_scopes_of_what_is_called(method: str, params: Any, needed: str) -> None:
    """Incident: a server could not demand scopes of single tools (fastmcp 1895, 4334)."""
    async with protected() as web:
        answer = await ask(web, "ann", method, **params)

    assert 403 == answer.status
    assert 1 == answer.json["id"]
    found = challenge(answer)
    assert ("insufficient_scope", needed, METADATA_URL) == (found["error"], found["scope"], found["resource_metadata"])


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_another_spelling_of_a_uri_needs_the_same_scopes() -> None:
    """A template for a folder read what another function protects: URIs were compared as clients wrote them."""
    server = Server("files")

    @server.resource("files:///password", scopes=["admin"])
    def password() -> str:
        return "1234"

    @server.resource("files:///both", scopes=["admin"])
    def both() -> str:
        return "5678"

    @server.resource("files:///both/", scopes=["owner"])
    def both_again() -> str:
        return "5678"

    @server.resource("files:///private/{name}", scopes=["owner"])
    def private(name: str) -> str:
        return name

    @server.resource("files:///{+path}")
    def public(path: str) -> str:
        return path

    fixed = ["password", "%70assword", "%2570assword", "password/", "password%2F"]
    below = ["private/a", "%70rivate/a", "private%2Fa", "private//a", "private/%2Fa", "private/a/", "private%5Ca"]
    others = ["a%20b", "private/a/b", "private/a%2Fb", "a//private/a", "Password", "private%3Fa"]
    async with protected(server) as web:
        found = {
            path: challenge(answer)["scope"] if answer.status == 403 else answer.status
            for path in (*fixed, "%62oth", *below, *others)
            for answer in [await ask(web, "ann", "resources/read", uri=f"files:///{path}")]
        }

    expected = dict.fromkeys(fixed, "admin mcp") | dict.fromkeys(below, "mcp owner") | dict.fromkeys(others, 200)
    assert expected | {"%62oth": "admin mcp owner"} == found


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_subscription_needs_the_scopes_of_what_it_is_for() -> None:
    async with protected() as web:
        filters = {"resourceSubscriptions": ["file:secret", "file:other"]}
        answer = await ask(web, "ann", "subscriptions/listen", notifications=filters)

    assert (403, "files:list files:read mcp") == (answer.status, challenge(answer)["scope"])


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_token_with_the_scopes_may_call() -> None:
    async with protected() as web:
        answer = await ask(web, "ann-writes", "tools/call", name="write", arguments={})

    assert "ann" == answer.json["result"]["content"][0]["text"]


@spec("2026-07-28", "basic/authorization/index#step-up-authorization-flow", "2ab35cb4")
async def test_a_scope_includes_those_that_it_implies_and_what_these_imply() -> None:
    implies = {"poor-mans-admin": ["admin"], "admin": ["files:write"], "files:write": ["mcp"]}

    async def admin(_token: str) -> Access:
        return Access(subject="root", scopes=frozenset({"poor-mans-admin"}))

    async with protected(auth=protect(verify=admin, implies=implies)) as web:
        answer = await ask(web, "any", "tools/call", name="write", arguments={})

    assert "root" == answer.json["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_all_requests_need_the_scopes_of_the_server() -> None:
    async with protected() as web:
        answers = [
            await ask(web, "poor", "tools/list"),
            await ask(web, "poor", "server/discover"),
            await web.ask("POST", "/mcp", [JSON, BOTH, *token("poor")], initialize(SESSIONS[-1])),
            await web.ask("GET", "/mcp", [STREAM, *token("poor")]),
            await web.ask("POST", "/mcp", [JSON, BOTH, *token("poor")], INITIALIZED),
            await web.ask("POST", "/mcp", [JSON, BOTH, *token("poor")], b"nonsense"),
        ]

    assert {403} == {each.status for each in answers}
    assert {"mcp"} == {challenge(each)["scope"] for each in answers}


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_batch_needs_the_scopes_of_all_its_requests() -> None:
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write"}},
        {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "file:secret"}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "look"}},
    ]
    async with protected() as web:
        own = await session(web, "ann", "2025-03-26")
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token("ann")], json.dumps(calls).encode())

    assert (403, "files:read files:write mcp") == (answer.status, challenge(answer)["scope"])


@spec("2025-11-25", "basic/authorization#access-token-usage")
@pytest.mark.parametrize(
    "params",
    [
        '{"name":"look","name":"write","arguments":{}}',
        '{"name":"write","arguments":{},"_meta":{"progressToken":[]}}',
        '{"name":"write","arguments":{},"_meta":7}',
        '{"name":"write","arguments":{},"requestState":7}',
        '{"n\\u0061me":"write","arguments":{}}',
    ],
)
@with_sessions
async def test_a_name_that_is_hard_to_read_does_not_get_around_its_scopes(revision: str, params: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
    async with protected() as web:
        own = await session(web, "ann", revision)
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token("ann")], body)

    assert 403 == answer.status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_http_sse_checks_scopes_too() -> None:
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}'
    async with protected() as web:
        stream = await web.open("GET", "/sse", [STREAM, *token("ann")]).begun()
        target = (await stream.event()).data
        refused = await web.ask("POST", target, [JSON, *token("ann")], call)
        of_another = await web.ask("POST", target, [JSON, *token("bob")], INITIALIZED)

    assert (403, f"https://mcp.example.com{METADATA}/sse") == (refused.status, challenge(refused)["resource_metadata"])
    assert 404 == of_another.status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_handlers_say_which_scopes_a_method_needs() -> None:
    from mcpgen.generated.v2025_11_25 import models, server

    class Own(server.ServerHandlers[Any]):
        async def call_tool(self, params: Any, context: Any, /) -> models.CallToolResult:
            return models.CallToolResult(content=[])

        def capabilities(self) -> models.ServerCapabilities:
            return models.ServerCapabilities(tools=models.ServerCapabilitiesTools())

        def scopes(self, method: str, name: str) -> list[str] | None:
            return [f"call:{name}"] if method == "tools/call" else None

    async with protected(Server("own", handlers=Own())) as web:
        refused = await ask(web, "ann", "tools/call", name="x")
        served = await ask(web, "ann", "server/discover")

    assert (403, "call:x mcp") == (refused.status, challenge(refused)["scope"])
    assert 200 == served.status


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_function_with_scopes_cannot_be_called_over_http_without_auth() -> None:
    async with site(files()) as web:
        refused = await ask(web, None, "tools/call", name="write", arguments={})
        served = await ask(web, None, "tools/call", name="look", arguments={})

    assert (403, None) == (refused.status, refused.header("www-authenticate"))
    assert 200 == served.status


async def listed(web: Any, value: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for method, member, key in (
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ):
        result = (await ask(web, value, method)).json["result"]
        names[member] = [each[key] for each in result[member]]
    return names


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_lists_show_what_needs_more_scopes_unless_they_shall_hide_it() -> None:
    async with protected() as web:
        shown = await listed(web, "ann")
    async with protected(auth=protect(hide=True)) as web:
        hidden = await listed(web, "ann")
        with_scope = await listed(web, "ann-writes")

    everything = {
        "tools": ["look", "write", "claims"],
        "prompts": ["summary"],
        "resources": ["file:secret"],
        "resourceTemplates": ["file:{name}"],
    }
    assert everything == shown
    assert {"tools": ["look", "claims"], "prompts": [], "resources": [], "resourceTemplates": []} == hidden
    assert ["look", "write", "claims"] == with_scope["tools"]


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_an_error_suggests_no_name_that_the_lists_hide() -> None:
    async def message(web: Any, value: str, method: str, name: str) -> str:
        return (await ask(web, value, method, name=name)).json["error"]["message"]

    async with protected() as web:
        shown = await message(web, "ann", "tools/call", "wrlte"), await message(web, "ann", "prompts/get", "sumary")
    async with protected(auth=protect(hide=True)) as web:
        hidden = await message(web, "ann", "tools/call", "wrlte"), await message(web, "ann", "prompts/get", "sumary")
        with_scope = await message(web, "ann-writes", "tools/call", "wrlte")

    assert ("Unknown tool: wrlte; did you mean write?", "Unknown prompt: sumary; did you mean summary?") == shown
    assert ("Unknown tool: wrlte", "Unknown prompt: sumary") == hidden
    assert shown[0] == with_scope


@spec("2025-11-25", "basic/authorization#access-token-usage")
async def test_a_list_that_depends_on_the_token_is_for_one_user() -> None:
    from mcpgen import CacheHint

    def server() -> Server:
        made = Server("hinted", cache_hints={"tools/list": CacheHint(ttl_ms=1000, scope="public")})

        @made.tool
        def look() -> str:
            return "seen"

        return made

    async with protected(server()) as web:
        shown = (await ask(web, "ann", "tools/list")).json["result"]["cacheScope"]
    async with protected(server(), auth=protect(hide=True)) as web:
        hidden = (await ask(web, "ann", "tools/list")).json["result"]["cacheScope"]

    assert ("public", "private") == (shown, hidden)


# --- to whom things belong


@spec("2025-06-18", "basic/authorization#access-token-privilege-restriction", "be25a8b3")
@spec("2025-06-18", "basic/authorization#token-theft", "e42ca219")
@spec("2025-11-25", "basic/authorization#access-token-privilege-restriction", "be25a8b3")
@spec("2025-11-25", "basic/authorization#token-theft", "e42ca219")
@spec("2026-07-28", "basic/authorization/security-considerations#access-token-privilege-restriction", "0fcc5ef8")
@spec("2026-07-28", "basic/authorization/security-considerations#token-theft", "9fd6c1aa")
async def test_handlers_see_the_claims_of_the_token_and_not_the_token() -> None:
    async with protected() as web:
        answer = await ask(web, "ann", "tools/call", name="claims", arguments={})

    told = json.loads(answer.json["result"]["content"][0]["text"])
    assert {
        "email": "a@example.com",
        "scopes": ["mcp"],
        "user": json.dumps([ISSUER, "app", "ann"]).replace(" ", ""),
    } == told


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@pytest.mark.parametrize("thief", ["bob", "ann-app2", "ann-elsewhere"])
async def test_a_session_belongs_to_issuer_client_and_subject(revision: str, thief: str) -> None:
    async with protected() as web:
        own = await session(web, "ann", revision)
        call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look"}}'
        stolen = await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token(thief)], call)
        stream = await web.ask("GET", "/mcp", [STREAM, *own, *token(thief)])
        ended = await web.ask("DELETE", "/mcp", [*own, *token(thief)])
        kept = await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token("ann-writes")], call)

    assert [404, 404, 404, 200] == [stolen.status, stream.status, ended.status, kept.status]


@spec("2025-11-25", "basic/authorization#access-token-usage")
@with_sessions
async def test_each_request_of_a_session_has_the_scopes_of_its_own_token(revision: str) -> None:
    """Incident: all requests of a session had the token of the first one (python-sdk 1250)."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claims","arguments":{}}}'
    async with protected() as web:
        own = await session(web, "ann-writes", revision)
        first = await web.ask("POST", "/mcp", [JSON, BOTH, *own, *token("ann")], call)
        second = await web.ask(
            "POST", "/mcp", [JSON, BOTH, *own, *token("ann-writes")], call.replace(b'"id":1', b'"id":2')
        )

    texts = [json.loads((await each.messages())[0]["result"]["content"][0]["text"]) for each in (first, second)]
    assert [["mcp"], ["files:write", "mcp"]] == [each["scopes"] for each in texts]


@spec("2025-11-25", "basic/authorization#access-token-usage")
def test_the_parts_of_a_user_cannot_be_mixed_up() -> None:
    one = Access(issuer="a", client_id='b","c', subject="d")
    other = Access(issuer="a", client_id="b", subject='c","d')

    assert one.user != other.user
    assert "secret" not in repr(Access(subject="a", claims={"x": "secret"}))


# --- options


@spec("2026-07-28", "basic/authorization/index#refresh-tokens", "9d33eab1")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"resource": "http://mcp.example.com/mcp"}, "use https, or http at a loopback"),
        ({"resource": "https://mcp.example.com/mcp#x"}, "remove the fragment"),
        ({"resource": "https://mcp.example.com/mcp?x"}, "remove the query"),
        ({"resource": "mcp.example.com"}, "must be a URL such as"),
        ({"resource": 'https://mcp.example.com/"'}, "must be a URL such as"),
        ({"resource": None}, "`resource` must be a URL"),
        ({"resource": "https://[::1"}, "which is not a URL"),
        ({"issuers": []}, "`issuers` is empty"),
        ({"issuers": "https://login.example.com"}, "`issuers` must be a list of strings"),
        ({"scopes": ["a b"]}, "which is not a scope"),
        ({"scopes": "mcp"}, "`scopes` must be a list of strings"),
        ({"scopes": ["offline_access"]}, "which only clients ask for"),
        ({"implies": {"a": ['"']}}, r"`implies\['a'\]` has '\"', which is not a scope"),
        ({"implies": {"a": "b"}}, r"`implies\['a'\]` must be a list of strings"),
        ({"verify": lambda token: None}, "`verify` must be"),
        ({"verify": "jwt"}, "`verify` must be"),
    ],
)
def test_a_protection_that_makes_no_sense_is_found_when_it_is_made(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        protect(**changes)


@spec("2025-11-25", "basic/authorization#access-token-usage")
def test_auth_excludes_user() -> None:
    with pytest.raises(UsageError, match="`auth` and `user` exclude each other"):
        files().asgi(auth=protect(), user=lambda _: "ann")
    with pytest.raises(UsageError, match="`auth` must be a Protect"):
        files().asgi(auth="secret")  # type: ignore[typeddict-item] # what it refuses


@spec("2025-11-25", "basic/authorization#access-token-usage")
def test_a_url_without_a_path_has_its_metadata_at_the_root() -> None:
    app = files().asgi(auth=protect(resource="https://mcp.example.com"))

    assert f"https://mcp.example.com{METADATA}" == app.metadata.url
    assert app.metadata.sse_url == app.metadata.url


@spec("2025-11-25", "basic/authorization#canonical-server-uri")
async def test_a_slash_that_clients_add_to_a_url_without_a_path_does_not_matter() -> None:
    with running_issuer() as issuer:
        auth = Protect(resource="https://mcp.example.com", issuers=[issuer.url])
        async with protected(auth=auth) as web:
            audiences = ["https://mcp.example.com", "https://mcp.example.com/", "https://mcp.example.com//"]
            answers = [await ask(web, issuer.token(aud=each), "tools/list") for each in audiences]

    assert [200, 200, 401] == [each.status for each in answers]


@spec("2025-11-25", "basic/authorization#canonical-server-uri", "448e82a7")
@spec("2026-07-28", "basic/authorization/index#canonical-server-uri", "a3fdcf43")
@pytest.mark.parametrize("resource", ["https://mcp.example.com/mcp", "HTTPS://MCP.example.com:443/mcp"])
async def test_the_host_of_an_audience_may_be_in_upper_case(resource: str) -> None:
    with running_issuer() as issuer:
        async with protected(auth=Protect(resource=resource, issuers=[issuer.url])) as web:
            same = ["https://mcp.example.com/mcp", "HTTPS://MCP.Example.COM/mcp", "https://mcp.example.com:443/mcp"]
            others = ["https://mcp.example.com/MCP", "https://mcp.example.com:80/mcp", "http://mcp.example.com/mcp"]
            answers = [await ask(web, issuer.token(aud=each), "tools/list") for each in [*same, *others]]

    assert [200, 200, 200, 401, 401, 401] == [each.status for each in answers]


# --- the ends of streams


async def expiring(_token: str) -> Access:
    return Access(subject="ann", scopes=frozenset({"mcp"}), expires_at=time.time() + 0.5)


@pytest.mark.slow
@spec("2025-11-25", "basic/authorization#access-token-usage")
@on_both_loops
async def test_a_stream_without_an_end_of_its_own_ends_with_its_token() -> None:
    async with protected(auth=protect(verify=expiring)) as web:
        own = await session(web, "any", "2025-11-25")
        lines = [JSON, BOTH, *token("any"), ("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "subscriptions/listen")]
        streams = [
            web.open("GET", "/mcp", [STREAM, *own, *token("any")]),
            web.open("GET", "/sse", [STREAM, *token("any")]),
            web.open(
                "POST", "/mcp", lines, stateless("subscriptions/listen", notifications={"toolsListChanged": True})
            ),
        ]
        for each in streams:
            assert not (await each.begun()).is_ended
        for each in streams:
            await each.complete()

    assert {"text/event-stream"} == {each.header("content-type") for each in streams}


@spec("2025-11-25", "basic/authorization#access-token-usage")
@pytest.mark.slow
async def test_a_call_is_answered_although_its_token_expires() -> None:
    server = Server("slow")

    @server.tool
    async def wait() -> str:
        await anyio.sleep(0.8)
        return "done"

    async with protected(server, auth=protect(verify=expiring)) as web:
        answer = await ask(web, "any", "tools/call", name="wait", arguments={})

    assert "done" == answer.json["result"]["content"][0]["text"]
