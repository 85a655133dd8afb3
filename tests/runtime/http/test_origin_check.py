"""Who may ask a server: pages of strangers may not, whatever they call it, and programs of this machine may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.server.origin_check import OriginCheck

WARNING = "basic/transports#security-warning"
NEWEST = "basic/transports/streamable-http#security-endpoint"
LOOPBACKS = [
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "localhost",
    "LocalHost",
    "localhost.",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "::1%lo",
    "::ffff:127.0.0.1",
    "127.0.0.1:8000",
    "[::1]:8000",
    "localhost:8000",
    "app.localhost",
]
ELSEWHERE = ["0.0.0.0", "::", "", "192.168.1.7", "fe80::1%eth0", "mcp.example.com", "/run/mcp.sock", "\u00e4", None]  # noqa: S104 (nothing is bound)
HERE = {"host": "127.0.0.1:8000"}


def guard(
    origins: list[str] | None = None, hosts: list[str] | None = None, bound_to: str | None = "127.0.0.1"
) -> OriginCheck:
    return OriginCheck(allowed_origins=origins, allowed_hosts=hosts, bound_to=bound_to)


def lets(host: str, hosts: list[str] | None = None) -> bool:
    return guard(hosts=hosts).refusal({"host": host}) is None


def lets_origin(origin: str, origins: list[str] | None = None) -> bool:
    return guard(origins).refusal({**HERE, "origin": origin}) is None


# --- which checks there are


@pytest.mark.parametrize("bound_to", LOOPBACKS)
def test_a_server_of_this_machine_answers_to_the_names_of_this_machine_alone(bound_to: str) -> None:
    checked = guard(bound_to=bound_to)

    assert checked.refusal({"host": "localhost:8000"}) is None
    assert checked.refusal({"host": "[::1]:8000"}) is None
    assert checked.refusal({"host": "evil.example:8000"}) is not None
    assert checked.refusal({}) is not None


@pytest.mark.parametrize("bound_to", LOOPBACKS)
def test_a_server_of_this_machine_answers_pages_of_this_machine_alone(bound_to: str) -> None:
    checked = guard(bound_to=bound_to)

    assert checked.refusal({**HERE, "origin": "http://localhost:3000"}) is None
    assert checked.refusal({**HERE, "origin": "http://evil.example"}) is not None


@pytest.mark.parametrize("bound_to", ELSEWHERE)
def test_a_server_that_others_can_reach_does_not_know_what_it_is_called(bound_to: str | None) -> None:
    checked = guard(bound_to=bound_to)

    assert checked.refusal({"host": "mcp.example.com"}) is None
    assert checked.refusal({"host": "a, b"}) is None
    assert checked.refusal({}) is None


@pytest.mark.spec("2025-11-25", WARNING)
@pytest.mark.spec("2026-07-28", NEWEST)
@pytest.mark.parametrize("bound_to", ELSEWHERE)
@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost", "http://127.0.0.1", "null", ""])
def test_a_server_that_others_can_reach_answers_no_page_that_is_not_named(bound_to: str | None, origin: str) -> None:
    checked = guard(bound_to=bound_to)

    assert checked.refusal({"host": "mcp.example.com", "origin": origin}) is not None


@pytest.mark.parametrize("bound_to", [*LOOPBACKS, *ELSEWHERE])
def test_what_sends_no_origin_is_no_page(bound_to: str | None) -> None:
    assert guard(bound_to=bound_to).refusal(HERE) is None
    assert guard([], bound_to=bound_to).refusal(HERE) is None


def test_a_list_turns_the_check_of_host_on_wherever_the_server_is_bound() -> None:
    checked = guard(hosts=["mcp.example.com"], bound_to=None)

    assert checked.refusal({"host": "mcp.example.com"}) is None
    assert checked.refusal({"host": "evil.example"}) is not None
    assert checked.refusal({}) is not None


def test_a_list_replaces_what_is_allowed_by_default() -> None:
    checked = guard(["https://app.example"], ["mcp.example.com"])

    assert checked.refusal({"host": "localhost"}) is not None
    assert checked.refusal({"host": "mcp.example.com", "origin": "http://localhost"}) is not None
    assert checked.refusal({"host": "mcp.example.com", "origin": "https://app.example"}) is None


def test_each_list_is_by_itself() -> None:
    assert guard(["https://app.example"]).refusal({"host": "evil.example"}) is not None
    assert guard(["https://app.example"]).refusal(HERE) is None
    assert guard(hosts=["mcp.example.com"]).refusal({"host": "mcp.example.com", "origin": "http://localhost"}) is None


def test_a_server_is_called_what_it_is_bound_to() -> None:
    checked = guard(bound_to="app.localhost")

    assert checked.refusal({"host": "app.localhost:80", "origin": "http://app.localhost"}) is None
    assert checked.refusal({"host": "other.localhost"}) is not None
    assert checked.refusal({**HERE, "origin": "tauri://app.localhost"}) is not None


def test_no_origin_at_all_can_be_allowed() -> None:
    assert not lets_origin("http://localhost", [])


def test_everything_can_be_allowed() -> None:
    checked = guard(["*"], ["*"])

    for origin in ("https://evil.example", "null", "", "file://"):
        assert checked.refusal({"host": "evil.example", "origin": origin}) is None
    assert checked.refusal({}) is None


def test_host_is_looked_at_even_where_the_origin_is_allowed() -> None:
    assert guard(["*"]).refusal({"host": "evil.example", "origin": "http://localhost"}) is not None
    assert guard(hosts=["*"]).refusal({"host": "localhost", "origin": "https://evil.example"}) is not None


# --- what a refusal says


@pytest.mark.spec("2024-11-05", "basic/transports#security-warning")
@pytest.mark.spec("2025-03-26", WARNING)
@pytest.mark.spec("2025-06-18", WARNING)
@pytest.mark.spec("2025-11-25", WARNING)
@pytest.mark.spec("2026-07-28", NEWEST)
def test_a_refusal_names_the_origin_and_the_setting() -> None:
    refusal = guard().refusal({**HERE, "origin": "https://evil.example"})

    expected = (
        "the Origin 'https://evil.example' is not allowed; add it to the server's `allowed_origins` (--allow-origin)"
    )
    assert expected == refusal


def test_a_refusal_names_the_host_and_the_setting() -> None:
    expected = "the Host 'mcp.example.com' is not allowed; add it to the server's `allowed_hosts` (--allow-host)"
    assert expected == guard().refusal({"host": "mcp.example.com"})


def test_a_header_that_no_setting_can_allow_is_called_invalid() -> None:
    host = "the Host 'a b' is not valid; send a host, such as example.com:8443"
    assert host == guard().refusal({"host": "a b"})
    origin = "the Origin 'file://' is not valid; send an origin, such as https://example.com:8443"
    assert origin == guard().refusal({**HERE, "origin": "file://"})
    assert "the Origin 'null' is not allowed" in str(guard().refusal({**HERE, "origin": "null"}))


def test_a_request_without_a_host_is_told_what_it_lacks() -> None:
    expected = "the request has no Host header, which the server's `allowed_hosts` (--allow-host) requires"
    assert expected == guard().refusal({})


def test_a_refusal_is_short_and_of_one_line() -> None:
    refusal = guard().refusal({"host": "a\r\n\x1b[31m" + "x" * 100_000})

    assert refusal is not None
    assert len(refusal) < 300
    assert refusal.isprintable()


# --- Host


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost:80",
        "localhost:65535",
        "localhost.",
        "localhost.:8000",
        "127.0.0.1",
        "127.0.0.1:8000",
        "127.0.0.1.",
        "127.255.255.254",
        "[::1]",
        "[::1]:8000",
        "[0:0:0:0:0:0:0:1]:8000",
        "[0000::0001]",
        "[::ffff:127.0.0.1]:8000",
        "[::FFFF:7f00:1]",
    ],
)
def test_this_machine_has_many_names(host: str) -> None:
    assert lets(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        ".",
        ":",
        ":8000",
        "evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io",
        "evil127.0.0.1",
        "xlocalhost",
        "localhostx",
        "localhost..",
        ".localhost",
        "localhost:",
        "localhost:x",
        "localhost:-1",
        "localhost:65536",
        "localhost:999999999",
        "localhost:80:80",
        "localhost:\u0661",
        "localhost:8000/",
        "localhost/",
        "localhost#",
        "localhost?",
        "localhost\\",
        "localhost%00",
        "localhost\0",
        "localhost\n",
        "localhost ",
        " localhost",
        "local host",
        "localhost\u3002",
        "\uff4cocalhost",
        "loca\u017fhost",
        "user@localhost",
        "localhost@evil.example",
        "localhost:80@evil.example",
        "evil.example@localhost",
        "http://localhost",
        "//localhost",
        "0.0.0.0",  # noqa: S104 (nothing is bound)
        "128.0.0.1",
        "10.0.0.1",
        "127.0.0.256",
        "127.0.0.01",
        "127.0.0",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "::1",
        "::1:8000",
        "[::1",
        "::1]",
        "[::1]]",
        "[[::1]]",
        "[::1]8000",
        "[::1].",
        "[::1%lo]",
        "[::1%25lo]",
        "[::2]",
        "[::]",
        "[]",
        "[localhost]",
        "[127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[fe80::1]",
        "*",
    ],
)
def test_anything_else_is_not_this_machine(host: str) -> None:
    assert not lets(host)


@pytest.mark.parametrize("hosts", ["localhost, localhost", "localhost,evil.example", "evil.example,localhost"])
def test_several_hosts_are_none(hosts: str) -> None:
    assert not lets(hosts)
    assert not lets(hosts, ["localhost", "evil.example"])


@pytest.mark.parametrize(
    ("entry", "host", "allowed"),
    [
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.:8443", True),
        ("Example.COM.", "example.com", True),
        ("example.com", "www.example.com", False),
        ("example.com", "example.com.evil.example", False),
        ("www.example.com", "example.com", False),
        ("example.com:*", "example.com:8443", True),
        ("example.com:8443", "example.com:8443", True),
        ("example.com:8443", "example.com:08443", True),
        ("example.com:8443", "example.com:443", False),
        ("example.com:8443", "example.com", False),
        ("example.com:443", "example.com", True),
        ("example.com:80", "example.com", True),
        ("example.com:443", "example.com:80", False),
        ("https://example.com", "example.com", True),
        ("https://example.com", "example.com:443", True),
        ("https://example.com/", "example.com:8443", False),
        ("https://example.com:*", "example.com:8443", True),
        ("https://example.com:8443", "example.com:8443", True),
        ("::1", "[::1]:8000", True),
        ("[::1]", "[0:0:0:0:0:0:0:1]", True),
        ("[::1]:8000", "[::1]:8000", True),
        ("[::1]:8000", "[::1]:8001", False),
        ("[::1]:*", "[::1]:8001", True),
        ("2001:DB8::1", "[2001:db8:0::1]", True),
        ("10.0.0.1", "[::ffff:10.0.0.1]", True),
        ("my_host-1", "my_host-1", True),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", True),
        ("k.example", "\u212a.example", False),
        ("localhost", "127.0.0.1", False),
    ],
)
def test_an_allowed_host_demands_what_it_says(entry: str, host: str, allowed: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    assert allowed == lets(host, ["other.example", entry])


# --- Origin


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "https://localhost",
        "http://localhost:3000",
        "HTTP://LOCALHOST:3000",
        "http://localhost.",
        "http://127.0.0.1:8000",
        "http://127.8.8.8",
        "http://[::1]",
        "https://[::1]:8443",
        "http://[::ffff:127.0.0.1]",
    ],
)
def test_pages_of_this_machine_may_ask_a_server_of_this_machine(origin: str) -> None:
    assert lets_origin(origin)


@pytest.mark.spec("2025-11-25", WARNING)
@pytest.mark.spec("2026-07-28", NEWEST)
@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "NULL",
        "*",
        "localhost",
        "//localhost",
        "http:localhost",
        "http:/localhost",
        "http:///localhost",
        "http://",
        "://localhost",
        "http://localhost/",
        "http://localhost/path",
        "http://localhost?",
        "http://localhost#",
        "http://localhost:",
        "http://localhost:65536",
        "http://localhost@evil.example",
        "http://localhost:80@evil.example",
        "http://user:password@localhost",
        "http://evil.example\\@localhost",
        "http://localhost, http://localhost",
        "http://localhost,http://evil.example",
        "http://localhost http://evil.example",
        "http://localhost\n",
        " http://localhost",
        "http://localhost.evil.example",
        "http://evil.localhost",
        "http://0.0.0.0",
        "http://[::]",
        "http://::1",
        "http://10.0.0.1",
        "http://evil.example",
        "https://127.0.0.1.nip.io",
        "file://",
        "file:///etc/passwd",
        "ftp://localhost",
        "tauri://localhost",
        "chrome-extension://localhost",
        "1http://localhost",
        "http://\uff4cocalhost",
    ],
)
def test_no_other_origin_may(origin: str) -> None:
    assert not lets_origin(origin)


@pytest.mark.parametrize(
    ("entry", "origin", "allowed"),
    [
        ("https://example.com", "https://example.com", True),
        ("HTTPS://Example.COM./", "https://example.com", True),
        ("https://example.com", "https://example.com.", True),
        ("https://example.com", "https://example.com:443", True),
        ("https://example.com:443", "https://example.com", True),
        ("https://example.com", "http://example.com", False),
        ("https://example.com", "http://example.com:443", False),
        ("https://example.com", "https://example.com:8443", False),
        ("https://example.com:*", "https://example.com:8443", True),
        ("https://example.com:*", "http://example.com", False),
        ("https://example.com", "https://www.example.com", False),
        ("https://example.com", "https://example.com.evil.example", False),
        ("https://example.com", "https://example.com@evil.example", False),
        ("http://example.com", "http://example.com:80", True),
        ("example.com", "http://example.com", True),
        ("example.com", "https://example.com:8443", True),
        ("example.com", "tauri://example.com", False),
        ("example.com:3000", "http://example.com:3000", True),
        ("example.com:3000", "http://example.com", False),
        ("example.com:80", "http://example.com", True),
        ("example.com:80", "https://example.com", False),
        ("example.com:*", "https://example.com:1", True),
        ("::1", "http://[::1]:3000", True),
        ("http://[::1]:3000", "http://[0::1]:3000", True),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh", True),
        ("chrome-extension://abcdefgh", "moz-extension://abcdefgh", False),
        ("chrome-extension://abcdefgh", "https://abcdefgh", False),
        ("app://obsidian.md:7", "app://obsidian.md", False),
        ("kk://example.com", "\u212ak://example.com", False),
        ("null", "null", True),
        ("null", "http://null", False),
        ("http://null", "null", False),
        ("https://example.com", "null", False),
    ],
)
def test_an_allowed_origin_demands_what_it_says(entry: str, origin: str, allowed: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    assert allowed == lets_origin(origin, ["https://other.example", entry])


# --- settings that make no sense


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        "/",
        ":8000",
        ":*",
        "*:8000",
        "*.example.com",
        "https://*.example.com",
        "https://example.com/mcp",
        "https://example.com//",
        "https://user@example.com",
        "user@example.com",
        "example.com:99999",
        "example.com:80:*",
        "https://example.com:80:*",
        "example.com, other.example",
        "https://",
        "b\u00fccher.example",
        "[::1",
        "::1:*",
        "a..b",
        "NULL*",
    ],
)
def test_an_entry_that_could_never_be_meant_is_told_at_once(entry: str) -> None:
    with pytest.raises(UsageError, match="`allowed_origins` has the invalid entry"):
        guard(["https://example.com", entry])
    with pytest.raises(UsageError, match="`allowed_hosts` has the invalid entry"):
        guard(hosts=["example.com", entry])


def test_a_text_is_no_list() -> None:
    with pytest.raises(UsageError, match="`allowed_origins` must be a list of strings, not the string '\\*'"):
        OriginCheck(allowed_origins="*", allowed_hosts=None, bound_to=None)
    with pytest.raises(UsageError, match="`allowed_hosts` must be a list of strings, not the string 'localhost'"):
        OriginCheck(allowed_origins=None, allowed_hosts="localhost", bound_to=None)


@pytest.mark.parametrize("bound_to", ["127.0.0.1", None])
def test_a_server_that_would_refuse_everything_is_not_made(bound_to: str | None) -> None:
    with pytest.raises(UsageError, match="`allowed_hosts` is empty"):
        guard(hosts=[], bound_to=bound_to)


# --- laws


def test_what_was_allowed_once_is_remembered_in_bounds_and_judged_as_before() -> None:
    checked = guard()
    for _ in range(2):
        for port in range(1, 1000):
            assert checked.refusal({"host": f"localhost:{port}", "origin": f"http://localhost:{port}"}) is None
            assert checked.refusal({"host": f"localhost:{port}", "origin": f"http://evil.example:{port}"}) is not None
            assert checked.refusal({"host": f"evil.example:{port}"}) is not None

    assert len(checked._good_hosts) + len(checked._good_origins) <= 200


hostile = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            [
                "localhost",
                "127.0.0.1",
                "[::1]",
                "evil.example",
                ".",
                ":",
                "80",
                "@",
                "/",
                "http://",
                ",",
                " ",
                "%",
                "\\",
            ]
        ),
        max_size=6,
    ).map("".join),
)


@given(text=hostile)
def test_whatever_has_a_stranger_in_it_is_refused(text: str) -> None:
    assert not lets(f"{text}evil.example")
    assert not lets(f"evil.example{text}")
    assert not lets_origin(f"{text}evil.example")
    assert not lets_origin(f"http://evil.example{text}")


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}(\.[a-z][a-z0-9-]{0,8}){0,2}", fullmatch=True)


@pytest.mark.slow
@given(name=names, port=st.integers(0, 65535), other=names, scheme=st.sampled_from(["http", "https", "tauri"]))
def test_what_is_listed_is_allowed_and_nothing_else(name: str, port: int, other: str, scheme: str) -> None:
    assert lets(f"{name}:{port}", [name])
    assert lets(f"{name}:{port}", [f"{name}:{port}"])
    assert lets_origin(f"{scheme}://{name}:{port}", [f"{scheme}://{name}:{port}"])
    assert (name == other) == lets(other, [name])
    assert (name == other) == lets_origin(f"{scheme}://{other}", [f"{scheme}://{name}"])
