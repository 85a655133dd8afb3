"""Headers that MCP defines: how a value is written in one, and what is refused when one is read."""

from __future__ import annotations

import base64
import re
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpgen.runtime.protocol.headers import (
    METHOD,
    NAME,
    PARAM_PREFIX,
    REVISION,
    SESSION,
    TOKEN,
    check_plain,
    decode_value,
    encode_value,
    headers_by_name,
    stripped,
)
from tests.specification.citation import spec

# What JSON can carry: everything but lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]))
# Near to what the encoding treats apart.
awkward = st.lists(
    st.sampled_from(
        ["=?base64?", "?=", "=", "?", " ", "\t", "\r\n", "\0", "\x7f", "a", "QQ==", "é", "世", "\U0001f600"]
    )
).map("".join)

LITERALS: list[tuple[Any, str]] = [
    # as they are
    ("us-west1", "us-west1"),
    ("us west 1", "us west 1"),
    ("", ""),
    ("!~", "!~"),
    ("file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"),
    ("https://example.com/resource?id=123", "https://example.com/resource?id=123"),
    ("a,b", "a,b"),
    # other types
    (42, "42"),
    (-7, "-7"),
    (0, "0"),
    (2**53 - 1, "9007199254740991"),
    (-(2**53) + 1, "-9007199254740991"),
    (True, "true"),
    (False, "false"),
    # not ASCII
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    ("日本語", "=?base64?5pel5pys6Kqe?="),
    ("é", "=?base64?w6k=?="),
    # whitespace at an end
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
    ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
    ("\tindented", "=?base64?CWluZGVudGVk?="),
    (" ", "=?base64?IA==?="),
    # control characters
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
    ("a\tb", "=?base64?YQli?="),
    ("a\0b", "=?base64?YQBi?="),
    ("\x7f", "=?base64?fw==?="),
    # what would be taken for an encoding
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    # and what would not
    ("=?base64?literal", "=?base64?literal"),
    ("literal?=", "literal?="),
    ("=?BASE64?QQ==?=", "=?BASE64?QQ==?="),
]


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "ad8d4f3f", "f362e04d")
@pytest.mark.parametrize(("value", "header"), LITERALS)
def test_a_value_is_written_as_the_text_says(value: str | int, header: str) -> None:
    assert header == encode_value(value)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@pytest.mark.parametrize(("value", "header"), [each for each in LITERALS if isinstance(each[0], str)])
def test_what_was_written_is_read_again(value: str, header: str) -> None:
    assert value == decode_value(header)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@given(value=texts | awkward)
@example(value="=?base64?=")
@example(value="\x85\xa0 ")
def test_every_text_survives_a_header(value: str) -> None:
    assert value == decode_value(encode_value(value))


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "ab79f989")
@given(value=texts | awkward | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1), around=st.text(" \t", max_size=3))
def test_what_is_written_is_a_field_value_that_no_parser_changes(value: str | int, around: str) -> None:
    header = encode_value(value)

    assert re.fullmatch(r"[\x20-\x7e]*", header)
    assert header == header.strip()
    assert decode_value(header) == decode_value(around + header + around)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@given(one=texts | awkward, other=texts | awkward)
def test_different_values_are_different_in_headers(one: str, other: str) -> None:
    assert (one == other) == (encode_value(one) == encode_value(other))


@spec("2026-07-28", "server/tools#x-mcp-header")
@pytest.mark.parametrize(
    "value", [2**53, -(2**53), pytest.param(10**5000, id="huge"), 1.5, float("nan"), float("inf"), None, [], {}, b"a"]
)
def test_a_value_that_no_header_can_carry_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="a header can hold only"):
        encode_value(value)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_an_integer_written_with_a_fraction_of_zero_is_an_integer() -> None:
    value: Any = 42.0

    assert "42" == encode_value(value)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_half_a_character_is_not_written() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode_value("\ud800")


@spec("2026-07-28", "basic/transports/streamable-http#server-behavior-for-custom-headers")
@pytest.mark.parametrize("place", ["{}", "{}a", "a{}", "a{}b", "=?base64?{}?=", "=?base64?QUJD{}?="])
def test_a_character_that_no_header_may_have_is_refused_wherever_it_is(place: str) -> None:
    for character in [*map(chr, range(9)), *map(chr, range(10, 32)), "\x7f", "\x80", "é", "ÿ", "世"]:
        value = place.format(character)
        with pytest.raises(ValueError, match=r"characters that HTTP does not allow|is repeated"):
            pytest.fail(f"{value!r} is read as {decode_value(value)!r}")


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_a_tab_within_a_value_is_allowed() -> None:
    assert "a\tb" == decode_value("a\tb")


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize(
    "inner",
    [
        "SGVsbG8",  # no padding
        "SGVsbG8==",  # too much of it
        "SGVs!!!bG8=",
        "SGVs bG8=",
        "SGVs\tbG8=",
        "=SGVsbG8",
        "SGVsbG8=SGVsbG8=",
        "SGVsbG9=",  # stray bits: another spelling of the same text
        "-_-_",  # another alphabet
        "/w==",  # 0xFF is no UTF-8
        "wIA=",  # NUL in two bytes, which UTF-8 forbids
        "7aCA",  # half a character
        "?",
        "=",
        "=?base64?QQ==?=",
    ],
)
def test_what_is_marked_as_base64_must_be_the_base64_of_text(inner: str) -> None:
    with pytest.raises(ValueError, match="marked as base64"):
        decode_value(f"=?base64?{inner}?=")


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_two_marks_that_share_a_character_are_no_encoding() -> None:
    with pytest.raises(ValueError, match="marked as base64"):
        decode_value("=?base64?=")


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding", "8f449e24")
@pytest.mark.parametrize(
    "value",
    ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?Base64?QQ==?=", "a=?base64?QQ==?=",
     "=?base64?QQ==?=a", "=?base64 ?QQ==?=", "=?utf-8?B?QQ==?="],
)  # fmt: skip
def test_only_the_exact_marks_mark(value: str) -> None:
    assert value == decode_value(value)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@pytest.mark.parametrize(
    ("header", "value"), [("=?base64?SGVsbG8=?=", "Hello"), ("=?base64??=", ""), ("=?base64?NDI=?=", "42")]
)
def test_a_value_that_need_not_have_been_encoded_is_decoded_all_the_same(header: str, value: str) -> None:
    assert value == decode_value(header)


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_what_was_decoded_is_not_decoded_again() -> None:
    assert "=?base64?QQ==?=" == decode_value(encode_value("=?base64?QQ==?="))


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
@given(inner=st.text(string.ascii_letters + string.digits + "+/=?-_ ", max_size=12))
def test_a_text_has_one_base64_only(inner: str) -> None:
    try:
        value = decode_value(f"=?base64?{inner}?=")
    except ValueError:
        return

    assert inner == base64.b64encode(value.encode()).decode()


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_whitespace_around_a_value_is_not_part_of_it_and_only_spaces_and_tabs_are_whitespace() -> None:
    assert "foo" == decode_value(" \t foo\t ") == stripped("  foo ")
    for other in "\x0b\x0c\x1c\x1f\x85\xa0\u2003":
        with pytest.raises(ValueError, match="HTTP does not allow in a header"):
            decode_value(f"foo{other}")


@spec("2026-07-28", "basic/transports/streamable-http#value-encoding")
def test_a_very_long_value_is_a_value() -> None:
    assert "a" * 100_000 == decode_value(encode_value("a" * 100_000))
    assert "é" * 100_000 == decode_value(encode_value("é" * 100_000))


@spec("2026-07-28", "basic/transports/streamable-http#standard-request-headers")
@pytest.mark.parametrize(
    "value", ["", " tools/call", "tools/call ", "tools/cäll", "a\r\nX-Evil: 1", "a\0", "a\tb", "a\n"]
)
def test_what_is_never_encoded_must_be_plain(value: str) -> None:
    assert "tools/call" == check_plain("tools/call")
    with pytest.raises(ValueError, match="HTTP does not allow in a header"):
        check_plain(value)


# --- names and lines


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity")
@pytest.mark.parametrize("name", [b"Mcp-Method", b"mcp-method", b"MCP-METHOD", b"mCP-mETHOD"])
def test_names_are_compared_without_regard_to_case_and_values_are_not(name: bytes) -> None:
    assert {"mcp-method": "tools/CALL"} == headers_by_name([(name, b"tools/CALL")])


@spec("2026-07-28", "basic/transports/streamable-http#request-metadata")
@spec("2025-11-25", "basic/transports#session-management")
def test_names_are_those_of_the_text_in_lower_case() -> None:
    names = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-", "MCP-Session-Id"]

    assert [each.lower() for each in names] == [REVISION, METHOD, NAME, PARAM_PREFIX, SESSION]


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity")
@pytest.mark.parametrize(
    "name",
    [b"", b" ", b"mcp-method ", b" mcp-method", b"\tmcp-method", b"mcp-method\t", b"mcp-method:", b"mcp\0method",
     b"mcp-m\xe9", b"mcp-method\r", b"mcp-method\n",
     b"mcp-method\x0b", b"mcp-method\x7f", b"mcp-method\xa0", b"(mcp)", b"mcp method",
     "mcp\u2010method".encode(), "\u212aey".encode(), "\uff2d\uff23\uff30".encode()],
)  # fmt: skip
def test_a_name_that_another_reader_could_take_for_ours_is_refused(name: bytes) -> None:
    with pytest.raises(ValueError, match="a header name has characters"):
        headers_by_name([(b"mcp-method", b"tools/call"), (name, b"tools/list")])


@spec("2026-07-28", "basic/transports/streamable-http#case-sensitivity")
def test_an_underscore_is_not_a_hyphen() -> None:
    assert {"mcp_method": "a", "mcp-method": "b"} == headers_by_name([(b"Mcp_Method", b"a"), (b"Mcp-Method", b"b")])


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize("name", [REVISION, METHOD, NAME, SESSION, PARAM_PREFIX + "region"])
@pytest.mark.parametrize("second", [b"a", b"b", b"A", b"", b" a"])
def test_a_header_of_ours_that_is_given_twice_is_refused_even_if_both_say_the_same(name: str, second: bytes) -> None:
    headers = headers_by_name([(name.encode(), b"a"), (b"accept", b"*/*"), (name.upper().encode(), second)])

    for read in (decode_value, stripped):
        with pytest.raises(ValueError, match="is repeated"):
            read(headers[name])


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
def test_other_headers_that_are_given_twice_are_a_list() -> None:
    lines = [(b"Accept", b"application/json"), (b"accept", b"text/event-stream")]

    assert {"accept": "application/json, text/event-stream"} == headers_by_name(lines)


@pytest.mark.parametrize("given", [b"a ", b"a\t", b" \t a \t "])
@pytest.mark.parametrize("name", [b"mcp-session-id", b"X-Not-Seen-Before"])
def test_spaces_and_tabs_around_a_value_are_not_part_of_it(name: bytes, given: bytes) -> None:
    """RFC 9110, section 5.5."""
    assert {name.decode().lower(): "a"} == headers_by_name([(name, given)])


@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
def test_bytes_beyond_ascii_are_kept_for_whoever_refuses_them() -> None:
    headers = headers_by_name([(b"mcp-name", "é".encode())])

    assert {"mcp-name": "Ã©"} == headers
    with pytest.raises(ValueError, match="HTTP does not allow in a header"):
        decode_value(headers["mcp-name"])


@spec("2026-07-28", "server/tools#x-mcp-header")
@given(name=st.text(max_size=5))
def test_a_name_is_a_token(name: str) -> None:
    allowed = set(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")

    assert (bool(name) and set(name) <= allowed) == (TOKEN.fullmatch(name) is not None)
