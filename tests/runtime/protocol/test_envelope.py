"""Frames and messages: which bytes are which kind, what is wrong with the others, and what is written."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.errors import MalformedFrame, PeerError, UsageError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.envelope import allows_batches, decode, decode_oversized, refusal, unknown_id
from mcpgen.runtime.protocol.framing import LineFramer, OversizedLine
from mcpgen.runtime.protocol.messages import (
    Batch,
    Error,
    ErrorResponse,
    Fault,
    Malformed,
    Notification,
    Request,
    Response,
)
from mcpgen.runtime.protocol.newest import ErrorCode

LABELS = [each.label for each in REVISIONS]


def plain(message: object) -> object:
    """Return *message* with what is undecoded in it as bytes, so that it can be compared."""
    match message:
        case Request(id=request_id, method=method, params=params):
            return ("request", request_id, method, UNSET if params is UNSET else bytes(params))
        case Notification(method=method, params=params):
            return ("notification", method, UNSET if params is UNSET else bytes(params))
        case Response(id=request_id, result=result):
            return ("response", request_id, bytes(result))
        case ErrorResponse(id=request_id, code=code, message=text, error=error):
            return ("error", request_id, code, text, bytes(error))
        case Batch(items=items):
            return [plain(each) for each in items]
        case _:
            return message


def read(frame: bytes) -> object:
    return plain(decode(frame))


# --- the four kinds


@pytest.mark.spec("2024-11-05", "basic/messages#requests")
@pytest.mark.spec("2025-11-25", "basic/index#requests")
@pytest.mark.spec("2026-07-28", "basic/index#requests")
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', ("request", 1, "ping", UNSET)),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}', ("request", "a", "ping", b"{}")),
        (b'{"method":"x","params":{"a":[1, 2]},"jsonrpc":"2.0","id":0}', ("request", 0, "x", b'{"a":[1, 2]}')),
        (b' {"jsonrpc" : "2.0", "id" : -7, "method" : "" , "params" : {} }\r', ("request", -7, "", b"{}")),
        (b'{"jsonrpc":"2.0","id":"","method":"x"}', ("request", "", "x", UNSET)),
    ],
)
def test_a_method_with_an_id_is_a_request(frame: bytes, expected: object) -> None:
    assert expected == read(frame)


@pytest.mark.spec("2024-11-05", "basic/messages#notifications")
@pytest.mark.spec("2025-11-25", "basic/index#notifications")
def test_a_method_without_an_id_is_a_notification() -> None:
    assert ("notification", "a/b", UNSET) == read(b'{"jsonrpc":"2.0","method":"a/b"}')
    assert ("notification", "a/b", b'{"c":1}') == read(b'{"jsonrpc":"2.0","method":"a/b","params":{"c":1}}')


@pytest.mark.spec("2024-11-05", "basic/messages#responses")
@pytest.mark.spec("2025-11-25", "basic/index#result-responses")
def test_a_result_is_a_response() -> None:
    assert ("response", 3, b'{"a":{}}') == read(b'{"jsonrpc":"2.0","id":3,"result":{"a":{}}}')


@pytest.mark.spec("2024-11-05", "basic/messages#responses")
@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
def test_an_error_is_an_error_response_whose_data_stay_as_they_are() -> None:
    error = b'{"code":-32002,"message":"no","data":{"uri":"a"},"more":1}'

    assert ("error", "x", -32002, "no", error) == read(b'{"jsonrpc":"2.0","id":"x","error":' + error + b"}")


@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
@pytest.mark.parametrize("member", [b"", b'"id":null,'])
def test_an_error_may_name_no_request(member: bytes) -> None:
    error = b'{"code":-32700,"message":"what?"}'

    assert ("error", None, -32700, "what?", error) == read(b'{"jsonrpc":"2.0",' + member + b'"error":' + error + b"}")


def test_unknown_members_are_tolerated() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"x","extra":{"a":[null,1e400]},"_meta":{}}'

    assert ("request", 1, "x", UNSET) == read(frame)


def test_of_two_members_with_one_name_the_last_counts() -> None:
    frame = b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1.5,"id":2,"params":[],"params":{"a":1,"a":2},"method":"x"}'

    assert ("request", 2, "x", b'{"a":1,"a":2}') == read(frame)


def test_a_number_beyond_every_float_is_json() -> None:
    assert ("request", 1, "x", b'{"a":1e400}') == read(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e400}}')


def test_text_beyond_ascii_is_read_escaped_or_not() -> None:
    frame = '{"jsonrpc":"2.0","id":"é\\u00e9\\ud83d\\ude00","method":"ü","params":{"a":"日本"}}'.encode()

    assert ("request", "éé\U0001f600", "ü", '{"a":"日本"}'.encode()) == read(frame)


def test_a_message_of_ten_megabytes_is_read() -> None:
    params = b'{"a":"' + b"x" * 10_000_000 + b'"}'

    assert ("request", 1, "x", params) == read(b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + params + b"}")


# --- ids


@pytest.mark.spec("2025-11-25", "basic/index#requests")
@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (b"0", 0),
        (b"-0", 0),
        (b"9007199254740993", 9007199254740993),
        (b"18446744073709551615", 18446744073709551615),
        (b"-9223372036854775808", -9223372036854775808),
        (b"1.0", 1),
        (b"1e3", 1000),
        (b"-0.0", 0),
        (b"9007199254740991.0", 9007199254740991),
        (b'"1"', "1"),
        (b'"\\u0031"', "1"),
    ],
)
def test_an_id_is_a_string_or_an_integer(wire: bytes, expected: object) -> None:
    message = decode(b'{"jsonrpc":"2.0","id":' + wire + b',"method":"x"}')

    assert isinstance(message, Request)
    assert (expected, type(expected)) == (message.id, type(message.id))


@pytest.mark.spec("2024-11-05", "basic/messages#requests", "1fe436f9")
@pytest.mark.spec("2025-11-25", "basic/index#requests")
@pytest.mark.parametrize(
    "wire",
    [b"null", b"1.5", b"1e400", b"1e300", b"9007199254740992.0", b"true", b"[1]", b'{"a":1}', b"9" * 5000],
)
def test_nothing_else_is_an_id(wire: bytes) -> None:
    assert Malformed(Fault.WRONG_ID, None, "request") == decode(b'{"jsonrpc":"2.0","id":' + wire + b',"method":"x"}')


# --- what is JSON, and no message


@pytest.mark.spec("2026-07-28", "schema#invalidrequesterror")
@pytest.mark.parametrize(
    ("frame", "fault", "request_id", "kind"),
    [
        (b"1", Fault.NOT_AN_OBJECT, None, "unknown"),
        (b'"x"', Fault.NOT_AN_OBJECT, None, "unknown"),
        (b"null", Fault.NOT_AN_OBJECT, None, "unknown"),
        (b"{}", Fault.WRONG_JSONRPC, None, "unknown"),
        (b'{"jsonrpc":"2.0"}', Fault.NO_METHOD, None, "unknown"),
        (b'{"jsonrpc":"2.0","id":1}', Fault.NO_METHOD, 1, "request"),
        (b'{"id":0,"method":"x"}', Fault.WRONG_JSONRPC, 0, "request"),
        (b'{"jsonrpc":"1.0","id":"","method":"x"}', Fault.WRONG_JSONRPC, "", "request"),
        (b'{"jsonrpc":2.0,"id":1,"method":"x"}', Fault.WRONG_JSONRPC, 1, "request"),
        (b'{"jsonrpc":null,"method":"x"}', Fault.WRONG_JSONRPC, None, "notification"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', Fault.WRONG_METHOD, 1, "request"),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', Fault.WRONG_METHOD, None, "unknown"),
        (b'{"jsonrpc":"2.0","id":1,"method":null,"result":{}}', Fault.WRONG_METHOD, 1, "request"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', Fault.WRONG_PARAMS, 1, "request"),
        (b'{"jsonrpc":"2.0","id":0,"method":"x","params":null}', Fault.WRONG_PARAMS, 0, "request"),
        (b'{"jsonrpc":"2.0","id":"","method":"x","params": "a"}', Fault.WRONG_PARAMS, "", "request"),
        (b'{"jsonrpc":"2.0","method":"x","params":1}', Fault.WRONG_PARAMS, None, "notification"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', Fault.TWO_KINDS, 1, "request"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","error":{}}', Fault.TWO_KINDS, 1, "request"),
        (b'{"jsonrpc":"2.0","method":"x","result":{}}', Fault.TWO_KINDS, None, "notification"),
    ],
)
def test_what_is_no_message_is_told_apart(frame: bytes, fault: Fault, request_id: Any, kind: Any) -> None:
    assert Malformed(fault, request_id, kind) == decode(frame)
    assert ErrorCode.INVALID_REQUEST == fault.code


@pytest.mark.spec("2024-11-05", "basic/messages#responses")
@pytest.mark.spec("2025-11-25", "basic/index#result-responses")
@pytest.mark.parametrize(
    ("members", "fault", "request_id"),
    [
        (b'"id":1,"result":{},"error":{"code":1,"message":""}', Fault.TWO_OUTCOMES, 1),
        (b'"id":1,"result":{},"error":null', Fault.TWO_OUTCOMES, 1),
        (b'"result":{}', Fault.NO_ID, None),
        (b'"id":null,"result":{}', Fault.NO_ID, None),
        (b'"id":1.5,"result":{}', Fault.WRONG_ID, None),
        (b'"id":1.5,"error":{"code":1,"message":""}', Fault.WRONG_ID, None),
        (b'"id":1,"result":null', Fault.WRONG_RESULT, 1),
        (b'"id":1,"result":[]', Fault.WRONG_RESULT, 1),
        (b'"id":0,"result":true', Fault.WRONG_RESULT, 0),
        (b'"id":1,"error":"no"', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"message":"no"}', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"code":1}', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"code":"1","message":"no"}', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"code":1.5,"message":"no"}', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"code":1e400,"message":"no"}', Fault.WRONG_ERROR, 1),
        (b'"id":1,"error":{"code":1,"message":null}', Fault.WRONG_ERROR, 1),
        (b'"error":null', Fault.WRONG_ERROR, None),
    ],
)
def test_a_response_that_is_wrong_names_its_request_and_is_not_answered(
    members: bytes, fault: Fault, request_id: Any
) -> None:
    malformed = decode(b'{"jsonrpc":"2.0",' + members + b"}")

    assert Malformed(fault, request_id, "response") == malformed
    assert refusal(malformed, "2025-11-25") is None


@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
def test_an_error_code_is_an_integer_in_any_spelling() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":-3.2e4,"message":"no"}}')

    assert isinstance(message, ErrorResponse)
    assert (-32000, int) == (message.code, type(message.code))


# --- what is no JSON


@pytest.mark.spec("2026-07-28", "schema#parseerror")
@pytest.mark.parametrize(
    "frame",
    [
        b"Server listening on stdio",
        b"{",
        b"}",
        b"",
        b"\x00",
        b"{}{}",
        b'{"jsonrpc":"1.0"} x',
        b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        b'[{"jsonrpc":"2.0","method":"sum","id":"1"},{"jsonrpc":"2.0","method"]',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}',
        b"{'jsonrpc':'2.0'}",
        b"5 garbage",
    ],
)
def test_what_is_no_json_is_a_parse_error_of_nobody(frame: bytes) -> None:
    assert Malformed(Fault.NOT_JSON) == decode(frame)
    assert ErrorCode.PARSE_ERROR == Fault.NOT_JSON.code


@pytest.mark.spec("2025-03-26", "basic/transports")
@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xc3"])
@pytest.mark.parametrize("member", [b'"params":{"a":"%s"}', b'"extra":["%s"]', b'"params":{"%s":1}'])
def test_messages_must_be_utf8_everywhere(member: bytes, text: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":9,"method":"x",' + member % text + b"}"

    assert Malformed(Fault.NOT_UTF8, 9, "request") == decode(frame)


@pytest.mark.parametrize("text", [b"\\ud83d", b"\\ude00", b"\\ud83d\\ud83d", b"\\ud83d\\u0041"])
@pytest.mark.parametrize(
    "member",
    [b'"params":{"a":"%s"}', b'"extra":["%s"]', b'"params":{"%s":1}', b'"params":{"a":"%s","b":"other text"}'],
)
def test_half_of_a_surrogate_pair_is_named(member: bytes, text: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":9,"method":"x",' + member % text + b"}"

    assert Malformed(Fault.HALF_PAIR, 9, "request") == decode(frame)
    assert ErrorCode.PARSE_ERROR == Fault.HALF_PAIR.code


@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
@pytest.mark.parametrize(
    "bad", [b'{"a":NaN}', b'{"a":NaN,"b":"\\ud83d"}', b'{"a":01}', b'{"a":-Infinity}', b"[1,]", b'{"a":"\x01"}']
)
@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":4,"method":"x","params":%s}', Malformed(Fault.NOT_JSON, 4, "request")),
        (b'{"jsonrpc":"2.0","method":"x","params":%s,"id":"z"} ', Malformed(Fault.NOT_JSON, "z", "request")),
        (b'{"method":"x","params":%s,"jsonrpc":"2.0","id":4}', Malformed(Fault.NOT_JSON, 4, "request")),
        (b'{"params":%s,"id":4,"jsonrpc":"2.0"}', Malformed(Fault.NOT_JSON, 4, "request")),
        (b'{"jsonrpc":"2.0","id":4,"result":%s}', Malformed(Fault.NOT_JSON, 4, "response")),
        (b'{"result":%s,"id":4,"jsonrpc":"2.0"}', Malformed(Fault.NOT_JSON, 4, "response")),
        (b'{"jsonrpc":"2.0","id":4,"error":%s}', Malformed(Fault.NOT_JSON, 4, "response")),
        (b'{"jsonrpc":"2.0","method":"x","params":%s}', Malformed(Fault.NOT_JSON)),
        # Whose id this is cannot be told.
        (b'{"jsonrpc":"2.0","id":4,"odd":%s}', Malformed(Fault.NOT_JSON)),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x","params":%s}', Malformed(Fault.NOT_JSON, None, "request")),
    ],
)
def test_what_stands_beside_bad_params_is_read_all_the_same(frame: bytes, bad: bytes, expected: Malformed) -> None:
    assert expected == decode(frame % bad)


def test_a_message_that_breaks_off_names_its_request() -> None:
    assert Malformed(Fault.NOT_JSON, 4, "request") == decode(b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":"b')


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"a{b","id":4,"params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":"a}b","method":"x\xff"}',
        b'{"params":{"a":NaN},"note":"} ,\\"id\\":5,\\"method\\":\\"m\\""}',
        b'{"params":{"a":NaN},"id":"x}"}',
    ],
)
def test_no_id_is_read_where_brackets_in_strings_may_mislead(frame: bytes) -> None:
    malformed = decode(frame)

    assert isinstance(malformed, Malformed)
    assert None is malformed.id


@pytest.mark.parametrize("deep", [b"[" * 200_000 + b"]" * 200_000, b'{"a":' * 200_000 + b"1" + b"}" * 200_000])
def test_a_message_nested_too_deeply_is_answered_like_any_other(deep: bytes) -> None:
    request = b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":' + deep + b"}}"
    batch = b"[" + request + b"]"
    response = b'{"jsonrpc":"2.0","id":4,"result":{"a":' + deep + b"}}"
    unknown = b'{"jsonrpc":"2.0","a":' + deep + b',"method":"x","id":4}'

    assert Malformed(Fault.TOO_DEEP, 4, "request") == decode(request)
    assert Malformed(Fault.TOO_DEEP, 4, "response") == decode(response)
    assert Malformed(Fault.TOO_DEEP, 4, "request") == decode(unknown)
    assert Malformed(Fault.TOO_DEEP) == decode(batch)
    assert Malformed(Fault.TOO_DEEP) == decode(deep) or deep.startswith(b"{")
    assert ErrorCode.PARSE_ERROR == Fault.TOO_DEEP.code


@pytest.mark.parametrize("levels", [10, 500, 980, 985, 990, 995, 1000, 1005, 10_000])
@pytest.mark.parametrize("member", [b'"params":{"a":%s}', b'"id":%s,"params":{}', b'"error":{"code":1,"a":%s}'])
def test_no_depth_of_nesting_raises(levels: int, member: bytes) -> None:
    deep = b"[" * levels + b"]" * levels
    item = b'{"jsonrpc":"2.0","method":"x",' + member % deep + b"}"
    answer = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":' + deep + b"}}"

    for frame in (item, b"[" + item + b"]", b"[" + deep + b"]", answer, b"[" + answer + b"]"):
        assert isinstance(decode(frame), Notification | ErrorResponse | Batch | Malformed)


def test_of_an_oversized_line_the_request_is_known() -> None:
    framer = LineFramer(max_frame_bytes=5000)
    first = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"' + b"y" * 9000 + b'"}}\n'
    last = b'{"method":"x","params":{"a":"' + b"y" * 9000 + b'"},"jsonrpc":"2.0","id":8}\r\n'
    answer = b'{"jsonrpc":"2.0","id":9,"result":{"a":"' + b"y" * 9000 + b'"}}\n'
    noise = b"y" * 9000 + b"\n"
    events = framer.feed(first + last + answer + noise)

    assert [
        Malformed(Fault.TOO_LONG, 7, "request", 5000),
        Malformed(Fault.TOO_LONG, 8, "request", 5000),
        Malformed(Fault.TOO_LONG, 9, "response", 5000),
        Malformed(Fault.TOO_LONG, limit=5000),
    ] == [decode_oversized(event) for event in events if isinstance(event, OversizedLine)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"])
values = json_values | st.sampled_from(["2.0", 1, "a", {}, {"code": 1, "message": ""}])
frames = st.one_of(
    st.binary(),
    st.text(alphabet='{}[]",:0129.eE-+ntr\\u ', max_size=40).map(str.encode),
    st.dictionaries(names, values).map(lambda value: json.dumps(value).encode()),
    st.lists(st.dictionaries(names, values), max_size=3).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.slow
@given(frame=frames)
@example(frame=b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}')
def test_whatever_arrives_nothing_raises_and_a_refusal_can_be_read(frame: bytes) -> None:
    found = decode(frame)

    assert isinstance(found, Request | Notification | Response | ErrorResponse | Batch | Malformed)
    for each in found.items if isinstance(found, Batch) else [found]:
        if isinstance(each, Malformed) and (answer := refusal(each, "2026-07-28")):
            message = decode(answer)
            assert isinstance(message, ErrorResponse)
            assert (each.id, each.fault.code, each.reason) == (message.id, message.code, message.message)


@given(cut=st.integers(0, 120))
def test_a_part_of_a_message_is_never_a_message(cut: int) -> None:
    frame = b'{"jsonrpc":"2.0","id":"abc","method":"tools/call","params":{"name":"a","arguments":{"b":[1,{"c":"d"}]}}}'

    assert isinstance(decode(frame[: min(cut, len(frame) - 1)]), Malformed)


# --- batches


@pytest.mark.spec("2025-03-26", "basic/index#batching")
def test_a_batch_is_read_item_by_item() -> None:
    batch = (
        b' [ {"jsonrpc":"2.0","id":1,"method":"a"}, 1, {"jsonrpc":"2.0","method":"b","params":{}}, {"foo":"boo"},'
        b'{"jsonrpc":"2.0","id":1.0,"result":{}},[],{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}]'
    )

    assert [
        ("request", 1, "a", UNSET),
        Malformed(Fault.NOT_AN_OBJECT),
        ("notification", "b", b"{}"),
        Malformed(Fault.WRONG_JSONRPC),
        ("response", 1, b"{}"),
        Malformed(Fault.NOT_AN_OBJECT),
        ("error", 5, 1, "", b'{"code":1,"message":""}'),
    ] == read(batch)


@pytest.mark.spec("2025-03-26", "basic/index#batching")
def test_an_empty_batch_is_an_invalid_request() -> None:
    assert Malformed(Fault.EMPTY_BATCH) == decode(b"[ ]")
    assert ErrorCode.INVALID_REQUEST == Fault.EMPTY_BATCH.code


def test_a_batch_is_bounded() -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    most = b"[" + b",".join([ping] * envelope.MAX_BATCH_LENGTH) + b"]"

    assert isinstance(decode(most), Batch)
    assert Malformed(Fault.LONG_BATCH, limit=1000) == decode(most[:-1] + b"," + ping + b"]")
    assert Malformed(Fault.LONG_BATCH, limit=2) == decode(b"[1,2,3]", max_batch_length=2)
    assert ErrorCode.INVALID_REQUEST == Fault.LONG_BATCH.code
    assert "the batch has more than 2 messages (max_batch_length)" == Malformed(Fault.LONG_BATCH, limit=2).reason


@pytest.mark.spec("2025-03-26", "basic/index#batching")
@pytest.mark.spec("2025-06-18", "changelog#major-changes")
@pytest.mark.parametrize("label", LABELS)
def test_only_one_revision_has_batches(label: str) -> None:
    assert ("2025-03-26" == label) is allows_batches(label)


@pytest.mark.spec("2025-03-26", "basic/lifecycle#initialization")
def test_there_are_no_batches_before_a_revision_is_agreed_on() -> None:
    assert not allows_batches(None)


# --- writing


@pytest.mark.parametrize("params", [b'{"a": 1.0}', Raw(b'{"a": 1.0}')])
def test_what_is_json_already_is_written_as_it_is(params: bytes | Raw) -> None:
    assert b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a": 1.0}}' == envelope.encode_request(1, "x", params)
    assert b'{"jsonrpc":"2.0","method":"x","params":{"a": 1.0}}' == envelope.encode_notification("x", params)
    assert b'{"jsonrpc":"2.0","id":"\\"","result":{"a": 1.0}}' == envelope.encode_response('"', params)
    assert b'{"jsonrpc":"2.0","id":0,"error":{"a": 1.0}}' == envelope.encode_error(0, params)


def test_absent_params_are_not_written() -> None:
    assert b'{"jsonrpc":"2.0","id":1,"method":"ping"}' == envelope.encode_request(1, "ping")
    assert b'{"jsonrpc":"2.0","method":"a/b"}' == envelope.encode_notification("a/b")


class Text(msgspec.Struct):
    text: str


def test_what_is_not_json_yet_is_encoded_in_one_go() -> None:
    assert b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"text":"\xc3\xa9"}}' == envelope.encode_request(
        1, "x", Text("é")
    )
    assert b'{"jsonrpc":"2.0","id":1,"result":{"a":[null]}}' == envelope.encode_response(1, {"a": [None]})


@pytest.mark.spec("2024-11-05", "basic/messages#responses")
@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
def test_an_error_is_written_with_data_only_where_there_are_some() -> None:
    bare, full = Error(ErrorCode.METHOD_NOT_FOUND, "no"), Error(-1, "no", {"a": 1})

    assert b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}' == envelope.encode_error(1, bare)
    assert b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":{"a":1}}}' == envelope.encode_error(
        1, full
    )


@pytest.mark.spec("2025-03-26", "basic/index#batching")
def test_a_batch_is_written_unless_there_is_nothing_in_it() -> None:
    assert b'[{"a":1},{"b":2}]' == envelope.encode_batch([b'{"a":1}', b'{"b":2}'])
    with pytest.raises(UsageError, match="at least one message"):
        envelope.encode_batch([])


objects = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3).map(msgspec.json.encode)
ids = st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8)


@pytest.mark.slow
@given(request_id=ids, method=st.text(max_size=12), params=objects)
def test_what_was_written_is_read_again(request_id: str | int, method: str, params: bytes) -> None:
    error = msgspec.json.encode(Error(-5, method, Raw(params)))

    assert ("request", request_id, method, params) == read(envelope.encode_request(request_id, method, params))
    assert ("notification", method, params) == read(envelope.encode_notification(method, params))
    assert ("response", request_id, params) == read(envelope.encode_response(request_id, params))
    assert ("error", request_id, -5, method, error) == read(envelope.encode_error(request_id, error))


# --- refusals


@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
@pytest.mark.spec("2026-07-28", "basic/index#error-responses")
def test_a_refusal_names_the_request_if_it_can() -> None:
    malformed = decode(b'{"jsonrpc":"2.0","id":7,"method":"x","params":[]}')

    assert isinstance(malformed, Malformed)
    assert (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"params is not an object"}}'
        == refusal(malformed, "2025-11-25")
        == refusal(malformed, None)
    )


@pytest.mark.spec("2025-11-25", "basic/index#error-responses")
@pytest.mark.parametrize("label", ["2025-11-25", "2026-07-28"])
def test_a_refusal_of_nobody_has_no_id(label: str) -> None:
    assert b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"the message is not JSON"}}' == refusal(
        Malformed(Fault.NOT_JSON), label
    )


@pytest.mark.spec("2024-11-05", "basic/messages")
@pytest.mark.parametrize("label", [None, "2024-11-05", "2025-03-26", "2025-06-18"])
def test_where_an_id_is_required_a_refusal_of_nobody_has_that_of_json_rpc(label: str | None) -> None:
    assert None is unknown_id(label)
    assert b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not JSON"}}' == refusal(
        Malformed(Fault.NOT_JSON), label
    )


@pytest.mark.parametrize("label", LABELS)
def test_the_id_is_left_out_exactly_where_the_schema_lets_it(label: str) -> None:
    document = json.loads((files("mcpgen.schema") / label / "schema.json").read_bytes())
    definitions = document.get("$defs") or document["definitions"]
    definition = definitions.get("JSONRPCErrorResponse") or definitions["JSONRPCError"]

    assert ("id" not in definition["required"]) is (unknown_id(label) is UNSET)


@pytest.mark.parametrize("label", LABELS)
def test_batches_are_allowed_exactly_where_the_schema_has_them(label: str) -> None:
    document = json.loads((files("mcpgen.schema") / label / "schema.json").read_bytes())
    definitions = document.get("$defs") or document["definitions"]

    assert ("JSONRPCBatchRequest" in definitions) is allows_batches(label)


@pytest.mark.spec("2025-11-25", "basic/index#notifications")
@pytest.mark.parametrize("kind", ["notification", "response"])
def test_what_needs_no_answer_gets_no_refusal(kind: Any) -> None:
    assert None is refusal(Malformed(Fault.WRONG_PARAMS, 1, kind), "2025-11-25")


@pytest.mark.parametrize("revision", REVISIONS, ids=lambda each: each.label)
def test_the_codes_are_those_of_every_revision(revision: Any) -> None:
    theirs = {each.name: each.value for each in revision.bindings().methods.ErrorCode}

    assert {fault.code.name: fault.code.value for fault in Fault}.items() <= theirs.items()


def test_a_malformed_frame_can_be_raised_with_what_is_known() -> None:
    with pytest.raises(PeerError) as caught:
        raise MalformedFrame(revision="2025-11-25", reason=Fault.WRONG_RESULT.reason, request_id=5)

    assert "the answer cannot be read as a message of 2025-11-25 (request 5): result is not an object" == str(
        caught.value
    )
    assert "the answer cannot be read as a message of 2025-11-25: the message is not JSON" == str(
        MalformedFrame(revision="2025-11-25", reason=Fault.NOT_JSON.reason)
    )
    # The answer to the first request comes before a revision is agreed.
    assert "the answer cannot be read as a message (request 1): result is not an object" == str(
        MalformedFrame(revision="", reason=Fault.WRONG_RESULT.reason, request_id=1)
    )
