"""JSON Web Tokens: what is accepted, and what attackers try."""

from __future__ import annotations

import json
import time
import tracemalloc
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mcpgen import Jwt, UsageError
from mcpgen.runtime.http.server.auth import key_sets
from mcpgen.runtime.http.server.auth.token_verifier import ExpectedToken, InvalidToken, IssuerUnavailable
from tests.runtime.http.issuer import RESOURCE, Issuer, new_key, public_jwk, running_issuer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mcpgen.runtime.http.server.auth.token_verifier import Verify

pytestmark = pytest.mark.anyio

METADATA = "/.well-known/oauth-authorization-server"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def issuer() -> Generator[Issuer]:
    with running_issuer() as found:
        yield found


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Turn the clock of key sets by hand."""
    found = Clock()
    monkeypatch.setattr("mcpgen.runtime.http.server.auth.jwt_verification.time.monotonic", found)
    return found


def verifier(issuer: Issuer, *others: str, **options: Any) -> Verify:
    return Jwt(**options).verifier(ExpectedToken((issuer.url, *others), frozenset({RESOURCE})))


async def refusal(verify: Verify, token: str) -> str:
    with pytest.raises(InvalidToken) as caught:
        await verify(token)
    assert token not in str(caught.value)
    return str(caught.value)


async def test_a_good_token_is_accepted_with_its_claims(issuer: Issuer) -> None:
    found = await verifier(issuer)(issuer.token(email="a@example.com"))

    assert found is not None
    assert ("ann", "app", issuer.url) == (found.subject, found.client_id, found.issuer)
    assert frozenset({"mcp", "files:read"}) == found.scopes
    assert "a@example.com" == found.claims["email"]
    assert found.expires_at == found.claims["exp"]


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("names_algorithm", [True, False])
async def test_each_algorithm_is_verified(issuer: Issuer, algorithm: str, *, names_algorithm: bool) -> None:
    key = new_key(algorithm)
    issuer.documents["/keys"] = {"keys": [public_jwk(key, "k1", algorithm if names_algorithm else None)]}

    assert await verifier(issuer)(issuer.token(key=key, algorithm=algorithm))


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b", 7]}, {"a", "b"}),
        ({"scope": ["a b", "c"]}, {"a", "b", "c"}),
        ({"scope": 'a " \\ \u00e4'}, {"a"}),
        ({"scope": None}, set()),
        ({"scope": {"a": 1}}, set()),
        ({"roles": ["no scope"]}, {"mcp", "files:read"}),
    ],
)
async def test_scopes_are_read_as_issuers_write_them(issuer: Issuer, changes: dict[str, Any], scopes: set[str]) -> None:
    found = await verifier(issuer)(issuer.token(**changes))

    assert found is not None
    assert scopes == found.scopes


async def test_other_claims_can_hold_scopes(issuer: Issuer) -> None:
    found = await verifier(issuer, scope_claims=["roles"])(issuer.token(roles=["admin"]))

    assert found is not None
    assert {"admin"} == found.scopes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aud": "https://other.example.com"}, "not issued for this server"),
        ({"aud": None}, "not valid"),
        ({"aud": []}, "not issued for this server"),
        ({"aud": [["https://mcp.example.com/mcp"]]}, "not issued for this server"),
        ({"aud": {"https://mcp.example.com/mcp": 1}}, "not issued for this server"),
        ({"aud": f"{RESOURCE}/"}, "not issued for this server"),
        ({"aud": f"{RESOURCE} https://other.example.com"}, "not issued for this server"),
        ({"exp": None}, "not valid"),
        ({"exp": "soon"}, "not valid"),
        ({"exp": "99999999999"}, "not valid"),
        ({"exp": 10**400}, "not valid"),
        ({"sub": None, "client_id": None}, "neither a subject nor a client"),
        ({"sub": None, "preferred_username": "ann"}, "no subject"),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"typ": "ID"}, "not an access token"),
        ({"typ": "Refresh"}, "not an access token"),
        ({"token_use": "id"}, "not an access token"),
    ],
)
async def test_claims_that_are_wrong_are_refused(issuer: Issuer, changes: dict[str, Any], said: str) -> None:
    assert said in await refusal(verifier(issuer), issuer.token(**changes))


@pytest.mark.parametrize(
    ("claim", "seconds", "said"),
    [("exp", -60, "has expired"), ("nbf", 600, "not valid yet"), ("iat", 600, "not valid yet")],
)
async def test_a_token_is_refused_before_and_after_its_time(
    issuer: Issuer, claim: str, seconds: int, said: str
) -> None:
    changes: dict[str, Any] = {claim: int(time.time()) + seconds}
    assert said in await refusal(verifier(issuer), issuer.token(**changes))


async def test_a_token_without_an_audience_is_for_no_server(issuer: Issuer) -> None:
    """Incident: a token without `aud` was accepted (fastmcp 3729, 3739)."""
    assert "not valid" in await refusal(verifier(issuer), issuer.token(aud=None))


@pytest.mark.parametrize("audience", [[RESOURCE], ["https://other.example.com", RESOURCE]])
async def test_one_of_several_audiences_is_enough(issuer: Issuer, audience: list[str]) -> None:
    assert await verifier(issuer)(issuer.token(aud=audience))


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -15), ("nbf", 15)])
async def test_clocks_may_differ_a_little(issuer: Issuer, claim: str, seconds: int) -> None:
    changes: dict[str, Any] = {claim: int(time.time()) + seconds}
    assert await verifier(issuer)(issuer.token(**changes))
    assert await refusal(verifier(issuer, leeway_seconds=0), issuer.token(**changes))


async def test_a_token_of_a_foreign_issuer_is_refused_although_its_signature_is_good(issuer: Issuer) -> None:
    with running_issuer() as foreign:
        said = await refusal(verifier(issuer), foreign.token())
        as_ours = await refusal(verifier(issuer), foreign.token(iss=issuer.url))

        assert [] == foreign.asked
    assert "issuer of the token is not trusted" in said
    assert "not signed with a key of its issuer" in as_ours


async def test_a_trusted_issuer_cannot_speak_for_another(issuer: Issuer) -> None:
    with running_issuer() as second:
        verify = verifier(issuer, second.url)

        assert await verify(second.token())
        assert await refusal(verify, second.token(iss=issuer.url))


@pytest.mark.parametrize("iss", ["HTTP://{}", "http://{}/", "http://{}:80", "http://{}#"])
async def test_the_name_of_the_issuer_is_compared_as_it_is(issuer: Issuer, iss: str) -> None:
    name = iss.format(issuer.url.removeprefix("http://"))

    assert "not trusted" in await refusal(verifier(issuer), issuer.token(iss=name))


def unsigned(issuer: Issuer, **header: Any) -> str:
    parts = [{"typ": "at+jwt", "kid": "k1", **header}, issuer.claims()]
    encoded = [urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts]
    return ".".join([*encoded, ""])


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "HS512"])
async def test_a_token_without_a_signature_is_refused(issuer: Issuer, algorithm: str) -> None:
    assert "algorithm of the token is not allowed" in await refusal(verifier(issuer), unsigned(issuer, alg=algorithm))


async def test_the_public_key_is_no_secret_of_hs256(issuer: Issuer) -> None:
    key = rsa.generate_private_key(65537, 2048)
    issuer.documents["/keys"] = {"keys": [public_jwk(key, "k1", None)]}
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head, body, _ = unsigned(issuer, alg="HS256").split(".")
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(f"{head}.{body}".encode(), pem)
    token = f"{head}.{body}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    assert "algorithm of the token is not allowed" in await refusal(verifier(issuer), token)


async def test_a_symmetric_key_of_the_issuer_is_not_used(issuer: Issuer) -> None:
    issuer.documents["/keys"] = {"keys": [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "k1"}]}

    assert "not signed with a key" in await refusal(verifier(issuer), issuer.token())


@pytest.mark.parametrize("change", [{"use": "enc"}, {"alg": "ES384"}, {"kid": "k2"}, {"d": "private"}, {"x": "?"}])
async def test_a_key_for_something_else_is_not_used(issuer: Issuer, change: dict[str, str]) -> None:
    issuer.documents["/keys"] = {"keys": [public_jwk(issuer.key, "k1") | change, 7, {}, {"kty": "EC", "kid": "k1"}]}

    assert "not signed with a key" in await refusal(verifier(issuer), issuer.token())


async def test_a_private_key_is_reported_with_its_url(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.documents["/keys"] = {"keys": [public_jwk(issuer.key, "k1") | {"d": "private"}]}
    await refusal(verifier(issuer), issuer.token())

    assert f"{issuer.url}/keys publishes a private key" in caplog.text


async def test_a_short_rsa_key_is_not_used(issuer: Issuer) -> None:
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 (what it refuses)
    issuer.documents["/keys"] = {"keys": [public_jwk(short, "k1", "RS256")]}
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = issuer.token(key=short, algorithm="RS256")

    assert "not signed with a key" in await refusal(verifier(issuer), token)


@pytest.mark.parametrize(("bits", "is_usable"), [(16_384, True), (20_000, False)])
def test_an_rsa_key_that_would_take_long_is_not_used(bits: int, *, is_usable: bool) -> None:
    modulus = urlsafe_b64encode((2**bits - 1).to_bytes(bits // 8)).decode().rstrip("=")
    [key] = key_sets._usable([{"kty": "RSA", "e": "AQAB", "n": modulus}], "https://login.example.com/keys")

    assert is_usable == (key.usable_for("RS256") is not None)


@pytest.mark.parametrize(("exponent", "is_usable"), [(2**64 - 1, True), (2**2000 + 1, False)], ids=["short", "long"])
def test_an_rsa_key_with_a_long_exponent_is_not_used(exponent: int, *, is_usable: bool) -> None:
    encoded = [urlsafe_b64encode(each.to_bytes(256)).decode().rstrip("=") for each in (2**2048 - 1, exponent)]
    [key] = key_sets._usable([{"kty": "RSA", "n": encoded[0], "e": encoded[1]}], "https://login.example.com/keys")
    assert (key.usable_for("RS256") is not None) == is_usable


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "dpop+jwt"},
        {"typ": "logout+jwt"},
        {"typ": "secevent+jwt"},
    ],
)
async def test_a_token_for_another_purpose_is_refused(issuer: Issuer, header: dict[str, Any]) -> None:
    assert "not an access token" in await refusal(verifier(issuer), issuer.token(header=header))


@pytest.mark.parametrize("header", [{"crit": ["b64"], "b64": False}, {"crit": ["x"], "x": 1}, {"crit": []}])
async def test_a_token_with_critical_extensions_is_refused(issuer: Issuer, header: dict[str, Any]) -> None:
    _, body, signature = issuer.token().split(".")
    made = {"alg": "ES256", "kid": "k1", **header}
    head = urlsafe_b64encode(json.dumps(made).encode()).rstrip(b"=").decode()

    assert "has `crit`, which this server does not support" in await refusal(
        verifier(issuer), f"{head}.{body}.{signature}"
    )


@pytest.mark.parametrize("typ", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", None])
async def test_the_usual_types_are_accepted(issuer: Issuer, typ: str | None) -> None:
    assert await verifier(issuer)(issuer.token(header={"typ": typ}))


async def test_types_can_be_restricted(issuer: Issuer) -> None:
    verify = verifier(issuer, types=["at+jwt"])

    assert await verify(issuer.token())
    assert await refusal(verify, issuer.token(header={"typ": "JWT"}))


@pytest.mark.parametrize(
    "change", [lambda t: t[:-4] + "AAAA", lambda t: t + ".x", lambda t: "a.b.c", lambda t: "opaque"]
)
async def test_a_token_that_was_changed_is_refused(issuer: Issuer, change: Callable[[str], str]) -> None:
    assert await refusal(verifier(issuer), change(issuer.token()))


# --- keys


async def test_the_keys_are_fetched_once_for_many_tokens_at_once(issuer: Issuer) -> None:
    issuer.delay_seconds = 0.05
    verify = verifier(issuer)
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(verify, issuer.token(sub=f"user {number}"))

    assert [METADATA, "/keys"] == issuer.asked


async def test_new_keys_are_fetched_when_a_token_names_one(issuer: Issuer, clock: Clock) -> None:
    verify = verifier(issuer)
    await verify(issuer.token())
    old, issuer.key = issuer.key, new_key()
    issuer.documents["/keys"] = {"keys": [public_jwk(issuer.key, "k2")]}
    clock.now += 31

    assert await verify(issuer.token(header={"kid": "k2"}))
    assert await refusal(verify, issuer.token(key=old))


async def test_a_new_key_under_the_name_of_the_old_one_is_fetched_once_the_old_one_fails(
    issuer: Issuer, clock: Clock
) -> None:
    verify = verifier(issuer)
    old = issuer.token()
    await verify(old)
    issuer.key = new_key()
    issuer.documents["/keys"] = {"keys": [public_jwk(issuer.key, "k1")]}
    await verify(issuer.token())
    assert 2 == issuer.asked.count("/keys")
    for _ in range(5):
        await refusal(verify, old)
    assert 2 == issuer.asked.count("/keys")
    clock.now += 31

    await refusal(verify, old)
    await refusal(verify, old)
    assert 3 == issuer.asked.count("/keys")


async def test_invented_names_of_keys_do_not_flood_the_issuer(issuer: Issuer, clock: Clock) -> None:
    verify = verifier(issuer)
    for number in range(50):
        await refusal(verify, issuer.token(header={"kid": f"invented {number}"}))
        clock.now += 1

    assert 3 == issuer.asked.count("/keys")  # the first time, and after 1 and 31 seconds


async def test_old_keys_are_used_while_the_issuer_is_down_but_not_for_ever(issuer: Issuer, clock: Clock) -> None:
    verify = verifier(issuer)
    await verify(issuer.token())
    issuer.documents.clear()
    clock.now += 3600

    assert await verify(issuer.token())
    assert await verify(issuer.token())
    clock.now += 24 * 3600
    with pytest.raises(IssuerUnavailable):
        await verify(issuer.token())


async def test_an_issuer_that_hangs_does_not_keep_tokens_of_known_keys_waiting(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its metadata may be at three URLs, which are asked for one after the other."""
    verify = verifier(issuer)
    await verify(issuer.token())
    for name, seconds in (("_WITH_OLD_SECONDS", 0.1), ("_FRESH_SECONDS", 0.0), ("_COOLDOWN_SECONDS", 0.0)):
        monkeypatch.setattr(key_sets, name, seconds)
    issuer.delay_seconds = 1
    issuer.asked.clear()

    assert await verify(issuer.token())
    assert [METADATA] == issuer.asked


async def test_an_issuer_that_is_down_is_not_asked_for_each_token(issuer: Issuer, clock: Clock) -> None:
    issuer.documents.clear()
    verify = verifier(issuer)
    for _ in range(5):
        with pytest.raises(IssuerUnavailable):
            await verify(issuer.token())
    asked = len(issuer.asked)
    clock.now += 31
    with pytest.raises(IssuerUnavailable):
        await verify(issuer.token())

    assert (2, 4) == (asked, len(issuer.asked))


async def test_an_expired_token_is_refused_without_asking_the_issuer(issuer: Issuer) -> None:
    """A 503 would tell its client to wait, not to get a new token."""
    issuer.documents.clear()
    verify = verifier(issuer)
    within_leeway = issuer.token(exp=time.time() - 10)

    assert "the token has expired" == await refusal(verify, issuer.token(exp=time.time() - 60))
    assert [] == issuer.asked
    with pytest.raises(IssuerUnavailable):
        await verify(within_leeway)


async def test_only_a_short_time_of_a_token_is_decoded_before_its_signature_is_verified(issuer: Issuer) -> None:
    verify = verifier(issuer)
    head = urlsafe_b64encode(b'{"alg":"RS256","crit":[%b]}' % b",".join([b"1e308"] * 1000)).decode().rstrip("=")

    async def kept_for(claim: bytes, head: str = "eyJhbGciOiJSUzI1NiJ9") -> int:
        claims = urlsafe_b64encode(b'{"iss":"https://other.example","exp":%b}' % claim).decode().rstrip("=")
        tracemalloc.start()
        try:
            await refusal(verify, f"{head}.{claims}.AA")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    numbers = b"[%b]" % b",".join([b"1e308"] * 1000)
    await kept_for(b"1")
    text = await kept_for(b'"%b"' % bytes(len(numbers) - 2).replace(b"\0", b"x"))

    assert await kept_for(numbers) < text + 8000  # 1,000 numbers take 32,000 bytes
    assert await kept_for(b'"%b"' % b"x", head) < text + 8000


async def test_a_request_that_is_cancelled_while_it_fetches_keys_fetches_them_for_others(issuer: Issuer) -> None:
    """Or else all others would be refused until the keys may be asked for again."""
    issuer.delay_seconds = 0.2
    verify = verifier(issuer)
    with anyio.move_on_after(0.05):
        await verify(issuer.token())
    issuer.delay_seconds = 0

    assert await verify(issuer.token())
    assert [METADATA, "/keys"] == issuer.asked


@pytest.mark.parametrize(
    "document", [{"keys": [], "long": "x" * 600_000}, [], "text", 302, 500, 404], ids=lambda each: str(each)[:20]
)
async def test_documents_that_are_not_keys_are_refused(issuer: Issuer, document: Any) -> None:
    issuer.documents["/keys"] = document

    with pytest.raises(IssuerUnavailable):
        await verifier(issuer)(issuer.token())


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # httpx warns on trio when a body is not read to its end
async def test_a_document_without_a_length_is_bounded_too(issuer: Issuer) -> None:
    issuer.states_length = False
    verify = verifier(issuer)
    issuer.documents["/keys"]["long"] = "x" * 600_000

    with pytest.raises(IssuerUnavailable, match="more than 524288 bytes"):
        await verify(issuer.token())


async def test_many_keys_are_not_kept(issuer: Issuer) -> None:
    more = [public_jwk(new_key(), f"x{number}") for number in range(3)]
    issuer.documents["/keys"] = {"keys": more * 50 + [public_jwk(issuer.key, "k1")]}

    assert await refusal(verifier(issuer), issuer.token())
    assert 100 == key_sets._MAX_KEYS


# --- discovery


async def test_openid_metadata_behind_the_path_is_found() -> None:
    with running_issuer("/tenant") as issuer:
        document = issuer.documents.pop(f"{METADATA}/tenant")
        issuer.documents["/tenant/.well-known/openid-configuration"] = document

        assert await verifier(issuer)(issuer.token())


async def test_metadata_of_another_issuer_is_not_used(issuer: Issuer) -> None:
    issuer.documents[METADATA]["issuer"] = f"{issuer.url}/"

    with pytest.raises(
        IssuerUnavailable, match=r"the `issuer` in the metadata at .* is not .*; write the issuer in `issuers`"
    ):
        await verifier(issuer)(issuer.token())
    assert "/keys" not in issuer.asked


@pytest.mark.parametrize("url", [None, "http://keys.example.com/keys", "file:///etc/passwd", 7])
async def test_keys_at_an_unsafe_url_are_not_fetched(issuer: Issuer, url: Any) -> None:
    issuer.documents[METADATA]["jwks_uri"] = url

    with pytest.raises(IssuerUnavailable, match="is of no use: `jwks_uri`"):
        await verifier(issuer)(issuer.token())


async def test_the_url_of_the_keys_can_be_configured(issuer: Issuer) -> None:
    del issuer.documents[METADATA]

    assert await verifier(issuer, keys_url=f"{issuer.url}/keys")(issuer.token())
    assert ["/keys"] == issuer.asked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"algorithms": ["none"]}, "`algorithms` has 'none'"),
        ({"algorithms": ["RS256", "HS256"]}, "`algorithms` has 'HS256'"),
        ({"algorithms": "RS256"}, "`algorithms` must be a list of strings, such as .*RS256.*, not 'RS256'"),
        ({"algorithms": []}, "`algorithms` is empty; use a list of RS256"),
        ({"keys_url": "http://a.example/keys"}, "`keys_url` has"),
        ({"leeway_seconds": -1}, "must not be negative"),
        ({"scope_claims": "scope"}, "must be a list of strings"),
        ({"types": "jwt"}, "must be a list of strings"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Jwt(**options)


def test_keys_at_one_url_are_those_of_one_issuer() -> None:
    with pytest.raises(UsageError, match="for a single issuer"):
        Jwt(keys_url="https://a.example/keys").verifier(
            ExpectedToken(("https://a.example", "https://b.example"), frozenset())
        )
