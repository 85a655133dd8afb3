"""Which revisions are served, which one a handshake chooses, and what a request says about itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import RequestError, UnknownRevision, UsageError
from mcpgen.runtime.protocol.negotiation import (
    RequestMeta,
    choose_revision,
    missing_fields,
    read_meta,
    revisions_of_era,
    selected_revisions,
    unsupported_revision,
)
from mcpgen.runtime.protocol.newest import NEWEST

LABELS = tuple(each.label for each in REVISIONS)
STATELESS = (
    b'{"name":"echo","arguments":{"text":"hi"},"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},'
    b'"io.modelcontextprotocol/clientCapabilities":{"roots":{}},'
    b'"io.modelcontextprotocol/logLevel":"info",'
    b'"progressToken":7},'
    b'"requestState":"s","inputResponses":{"a":{"action":"accept"}}}'
)


def plain(meta: RequestMeta) -> dict[str, object]:
    """Return what a request says about itself, with what is undecoded as bytes, so that it can be compared."""
    found = {name: getattr(meta, name) for name in RequestMeta.__struct_fields__ if name != "is_plain"}
    return {
        name: bytes(value) if isinstance(value, Raw) else value for name, value in found.items() if value is not UNSET
    }


def read(params: bytes) -> dict[str, object]:
    return plain(read_meta(Raw(params)))


# --- what is served


def test_everything_is_served_unless_somebody_says_otherwise() -> None:
    assert LABELS == selected_revisions(None)
    assert LABELS[-1] == NEWEST


def test_what_is_served_is_in_the_order_of_the_registry_and_named_once() -> None:
    assert ("2024-11-05", "2025-11-25") == selected_revisions(["2025-11-25", "2024-11-05", "2025-11-25"])
    assert LABELS == selected_revisions(reversed(LABELS))


def test_a_revision_without_bindings_cannot_be_served() -> None:
    with pytest.raises(UnknownRevision, match="2025-11-26"):
        selected_revisions(["2025-11-25", "2025-11-26"])


def test_a_string_is_not_taken_for_a_list_of_characters() -> None:
    with pytest.raises(UsageError, match=r"\['2025-11-25'\]"):
        selected_revisions("2025-11-25")


def test_nothing_at_all_cannot_be_served() -> None:
    with pytest.raises(UsageError):
        selected_revisions([])


def test_an_era_has_the_revisions_that_say_so() -> None:
    assert [each.label for each in REVISIONS if each.era == "handshake"] == list(revisions_of_era(LABELS, "handshake"))
    assert ("2026-07-28",) == revisions_of_era(("2025-11-25", "2026-07-28"), "stateless")
    assert () == revisions_of_era(("2025-11-25",), "stateless")


# --- the handshake


@pytest.mark.spec("2024-11-05", "basic/lifecycle#version-negotiation")
@pytest.mark.spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("offered", revisions_of_era(LABELS, "handshake"))
def test_a_client_gets_the_revision_that_it_offers_if_that_is_served(offered: str) -> None:
    """2025-11-25, basic/lifecycle, "Version Negotiation": a supported version MUST be answered with the same one."""
    assert offered == choose_revision(offered, revisions_of_era(LABELS, "handshake"))


@pytest.mark.spec("2024-11-05", "basic/lifecycle#version-negotiation")
@pytest.mark.spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("offered", ["2025-11-25", "1999-01-01", "9999-12-31", "", "x" * 10_000, "2026-07-28"])
def test_a_client_gets_the_newest_served_revision_otherwise(offered: str) -> None:
    """2025-11-25, basic/lifecycle, "Version Negotiation": otherwise another one, which SHOULD be the latest."""
    assert "2025-06-18" == choose_revision(offered, ("2024-11-05", "2025-06-18"))


def test_there_is_nothing_to_choose_where_no_handshake_is_served() -> None:
    with pytest.raises(UsageError):
        choose_revision("2025-11-25", ())


# --- what a request says about itself


@pytest.mark.spec("2026-07-28", "basic/index#meta")
@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow")
def test_all_that_the_engine_needs_is_read_from_the_params() -> None:
    """2026-07-28, basic/index, "_meta": the fields that each request carries; basic/patterns/mrtr: those of a retry."""
    expected = {
        "revision": "2026-07-28",
        "client_info": b'{"name":"c","version":"1"}',
        "client_capabilities": b'{"roots":{}}',
        "log_level": "info",
        "progress_token": 7,
        "request_state": "s",
        "input_responses": b'{"a":{"action":"accept"}}',
        "name": "echo",
        "arguments": b'{"text":"hi"}',
    }

    assert expected == read(STATELESS)


@pytest.mark.parametrize("params", [b"{}", b'{"_meta":{}}', b'{"x":{"_meta":{"progressToken":1}}}'])
def test_a_request_that_says_nothing_is_no_stateless_one(params: bytes) -> None:
    assert {} == read(params)
    assert RequestMeta() == read_meta(UNSET)


def test_a_retry_is_one_without_metadata_too() -> None:
    assert {"request_state": "s"} == read(b'{"requestState":"s"}')
    assert {"input_responses": b"{}"} == read(b'{"inputResponses":{}}')


@pytest.mark.spec("2024-11-05", "basic/utilities/progress#progress-flow")
@pytest.mark.spec("2026-07-28", "basic/patterns/progress#progress-flow")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"1", {"progress_token": 1}),
        (b'"1"', {"progress_token": "1"}),
        (b"1.0", {"progress_token": 1}),
        (b"1.5", {}),
        (b"1e300", {}),
        (b"null", {}),
        (b"true", {}),
        (b"[]", {}),
    ],
)
def test_a_progress_token_is_a_string_or_an_integer(written: bytes, expected: dict[str, object]) -> None:
    """2026-07-28, basic/patterns/progress, "Progress Flow": "Progress tokens MUST be a string or integer value"."""
    assert expected == read(b'{"_meta":{"progressToken":' + written + b"}}")


MEMBERS: dict[str, tuple[str, bytes]] = {
    "revision": ("io.modelcontextprotocol/protocolVersion", b'"2026-07-28"'),
    "client_info": ("io.modelcontextprotocol/clientInfo", b"{}"),
    "client_capabilities": ("io.modelcontextprotocol/clientCapabilities", b"{}"),
    "log_level": ("io.modelcontextprotocol/logLevel", b'"info"'),
    "progress_token": ("progressToken", b'"t"'),
}


@pytest.mark.parametrize("wrong", MEMBERS)
@pytest.mark.parametrize("value", [b"null", b"[1]", b"{}", b"true", b"1.5"])
def test_a_member_of_the_wrong_type_hides_none_of_the_others(wrong: str, value: bytes) -> None:
    written = [f'"{key}":'.encode() + (value if name == wrong else good) for name, (key, good) in MEMBERS.items()]
    found = read(b'{"_meta":{' + b",".join(written) + b'},"requestState":5,"inputResponses":null}')

    assert {*MEMBERS} - {wrong} <= found.keys()
    assert found.get(wrong) in (None, value)  # what stays undecoded has no wrong type yet
    assert b"null" == found["input_responses"]
    assert "request_state" not in found


@pytest.mark.parametrize(
    "params",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"5",
        b'{"_meta":null}',
        b'{"_meta":5}',
        b'{"_meta":{"progressToken":"\xff"}}',
        b'{"_meta":{"progressToken":"\\ud800"}}',
        b'{"_meta":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    ],
    ids=lambda params: repr(params[:24]),
)
def test_whatever_the_params_are_nothing_is_raised(params: bytes) -> None:
    assert {} == read(params)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = [key for key, _ in MEMBERS.values()]


@given(
    meta=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), JSON) | JSON,
    params=st.dictionaries(st.sampled_from(["requestState", "inputResponses", "name", "arguments", "x"]), JSON),
)
@pytest.mark.slow
def test_a_quick_look_finds_what_a_slow_one_does(meta: Any, params: dict[str, Any]) -> None:
    whole = msgspec.json.encode({**params, "_meta": meta})
    spoilt = msgspec.json.encode({**params, "requestState": 5, "_meta": meta})  # makes the quick one give up
    quick, slow = read(whole), read(spoilt)

    assert {key: each for key, each in quick.items() if key != "request_state"} == slow


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (b'{"name":"echo","arguments":{"text":"hi"}}', ("echo", b'{"text":"hi"}', True)),
        (b'{"name":"echo"}', ("echo", None, True)),
        (b'{"name":"echo","task":{}}', ("echo", None, False)),
        (b'{"name":"echo","requestState":"s"}', ("echo", None, False)),
        (b'{"name":"echo","inputResponses":{}}', ("echo", None, False)),
        (b'{"name":"echo","_meta":{"progressToken":1.5}}', ("echo", None, False)),
        (b'{"name":5,"arguments":{}}', (None, b"{}", False)),
    ],
)
def test_a_plain_call_is_told_from_one_that_needs_a_closer_look(params: bytes, expected: tuple[Any, ...]) -> None:
    meta = read_meta(Raw(params))
    arguments = bytes(meta.arguments) if isinstance(meta.arguments, Raw) else None

    assert expected == (None if meta.name is UNSET else meta.name, arguments, meta.is_plain)


# --- the errors


@pytest.mark.spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
def test_a_revision_that_is_not_served_is_answered_with_those_that_are() -> None:
    """2026-07-28, basic/versioning, "Protocol Version Negotiation": the error MUST list the supported versions."""
    error = unsupported_revision("1900-01-01", ("2025-11-25", "2026-07-28"))

    assert isinstance(error, RequestError)
    assert -32022 == error.code
    assert {"supported": ["2026-07-28", "2025-11-25"], "requested": "1900-01-01"} == error.data


def test_that_error_does_not_repeat_all_of_what_was_asked_for_in_its_message() -> None:
    assert len(unsupported_revision("x" * 100_000, ("2026-07-28",)).message) < 200


def test_a_request_alone_of_a_revision_that_is_served_in_sessions_is_told_how_they_begin() -> None:
    assert (
        "negotiate it with initialize, and do not name it"
        in unsupported_revision("2025-11-25", ("2025-11-25", "2026-07-28")).message
    )


def test_an_initialize_that_names_a_revision_without_handshake_is_told_so() -> None:
    message = unsupported_revision("2026-07-28", ("2026-07-28",)).message
    assert "the protocol revision '2026-07-28' has no initialize; name it in the `_meta` of each request" == message


@pytest.mark.spec("2026-07-28", "basic/versioning#protocol-version-negotiation")
def test_that_error_is_one_that_the_newest_revision_knows() -> None:
    error = unsupported_revision("1900-01-01", LABELS)
    written = msgspec.json.encode({"code": error.code, "message": error.message, "data": error.data})

    assert bindings(NEWEST).models.decode(written, bindings(NEWEST).models.Error).code == -32022


@pytest.mark.spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize(
    ("params", "missing"),
    [
        (b"{}", ["protocolVersion", "clientCapabilities"]),
        (b'{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}', ["protocolVersion"]),
        (b'{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}', ["protocolVersion", "clientCapabilities"]),
        (b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}', ["clientCapabilities"]),
    ],
)
def test_a_request_without_a_required_field_is_refused(params: bytes, missing: list[str]) -> None:
    """2026-07-28, basic/index, "_meta": such a request "is malformed; the server MUST reject it" with -32602."""
    error = missing_fields(read_meta(Raw(params)))

    assert error is not None
    assert -32602 == error.code
    assert missing == [each for each in ("protocolVersion", "clientCapabilities") if each in error.message]


@pytest.mark.spec("2026-07-28", "basic/index#meta")
def test_a_request_need_not_name_the_client() -> None:
    """2026-07-28, basic/index, "_meta": clientInfo and logLevel are not required."""
    meta = b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"1","io.modelcontextprotocol/clientCapabilities":{}}}'

    assert missing_fields(read_meta(Raw(meta))) is None
