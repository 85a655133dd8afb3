"""The values of a message are counted before they are decoded, and its memory is estimated."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpgen.runtime.limits import MAX_FRAME_BYTES, MAX_VALUES, Limits
from mcpgen.runtime.protocol import message_size
from mcpgen.runtime.protocol.envelope import decode, refusal
from mcpgen.runtime.protocol.message_size import detached, memory_bytes, too_many_values
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response

MOST = 20


def count(value: Any) -> int:
    """Return the opening brackets and commas that JSON of *value* has outside of strings."""
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(count(each) for each in inner)


texts = st.text(alphabet='{[,]}":\\ \n\u00e9ab', max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=40,
)


@pytest.mark.slow
@given(value=json_values, ascii_only=st.booleans(), most=st.integers(1, 40))
@example(value=['\\"[', "\\\\", '"', "[,{"], ascii_only=True, most=4)
@example(value={"\\": "\\", '\\\\"': [',"']}, ascii_only=False, most=3)
def test_values_are_counted_outside_of_strings(value: Any, *, ascii_only: bool, most: int) -> None:
    frame = json.dumps(value, ensure_ascii=ascii_only).encode()

    assert (count(value) > most) == too_many_values(frame + b" " * most, most)


def test_a_text_of_4_mib_of_commas_and_brackets_is_one_value() -> None:
    frame = b'{"a":"' + b'[{,\\"' * (MAX_FRAME_BYTES // 5 - 3) + b'"}'

    assert not too_many_values(frame, 2)


@pytest.mark.parametrize(
    ("number", "values"),
    [
        ("1e-310", 20),
        ("1.5E+300", 20),
        ("-1e00310", 20),
        ("1" * 25, 4),
        ("-0." + "3" * 24, 4),
        ("9" * 4300, 688),  # takes 70 µs to decode, and 200 µs to encode
        ("3" * 25 + "e310", 24),
        ("18446744073709551615", 0),
        ("1.7976931348623157e-99", 0),
        ("0.30000000000000004", 0),
        ("true", 0),
    ],
)
def test_a_slow_number_counts_as_several_values(number: str, values: int) -> None:
    frame = f"[{number}]".encode() + b" " * 4000

    assert not too_many_values(frame, 1 + values)
    assert too_many_values(frame, values)


@pytest.mark.parametrize("unit", ["1e300,", "[],", "1,", "1e-999,"])
def test_no_byte_counts_as_more_values_than_a_small_frame_is_taken_to_have(unit: str) -> None:
    frame = b"[" + unit.encode() * 1000 + b"1]"

    assert not too_many_values(frame, 4 * len(frame))
    assert not too_many_values(frame + b" " * 100_000, 4 * len(frame))


def test_a_message_without_strings_to_speak_of_is_refused_for_its_quotes() -> None:
    """Or it would be split into millions of pieces."""
    pieces = message_size._outside_strings(b'"' * MAX_FRAME_BYTES, 4 * MAX_VALUES)

    assert pieces is None
    assert too_many_values(b'"' * MAX_FRAME_BYTES, MAX_VALUES)


MANY = b'{"a":[' + b"[]," * MOST + b"0]}"


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":%b}', (7, "request")),
        (b'{"params":%b,"method":"x","jsonrpc":"2.0","id":"a"}', ("a", "request")),
        (b'{"jsonrpc":"2.0","method":"x","params":%b}', (None, "notification")),
        (b'{"jsonrpc":"2.0","id":7,"result":%b}', (7, "response")),
        (b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"","data":%b}}', (7, "response")),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","other":%b}', (7, "request")),
        (b'{"jsonrpc":"2.0","id":7.0,"method":"x","params":%b}', (7, "request")),
        (b'[{"jsonrpc":"2.0","id":7,"method":"x","params":%b}]', (None, "unknown")),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":%b', (7, "request")),
    ],
)
def test_too_many_values_are_refused_with_the_id_and_the_limit(frame: bytes, expected: tuple[object, str]) -> None:
    found = decode(frame % MANY, max_values=MOST)

    assert Malformed(Fault.TOO_MANY_VALUES, *expected, limit=MOST) == found  # type: ignore[arg-type]  # of the table
    if expected[1] == "request":
        answer = decode(refusal(found, "2025-11-25") or b"")
        assert isinstance(answer, ErrorResponse)
        assert (expected[0], "the message has more than 20 values (max_values)") == (answer.id, answer.message)
    assert found != decode(frame % b"{}", max_values=MOST)


def test_without_a_limit_values_are_not_counted() -> None:
    assert isinstance(decode(b'{"jsonrpc":"2.0","id":7,"method":"x","params":%b}' % MANY), Request)


def test_an_embedding_and_a_table_fit_into_the_default() -> None:
    table = [{f"column {index}": index * row for index in range(8)} for row in range(2000)]
    for value in ([[0.123456789 * number for number in range(1536)]] * 12, table):
        params = json.dumps({"name": "a", "arguments": {"value": value}})
        frame = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()

        assert isinstance(decode(frame, max_values=Limits().max_values), Request)


# --- views


@pytest.mark.parametrize("is_in_batch", [False, True])
@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"other":"%b"}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"x","params":{"a":1},"other":"%b"}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":1},"other":"%b"}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"other":"%b"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""},"other":"%b"}',
    ],
)
def test_a_small_part_does_not_keep_a_large_frame_in_memory(message: bytes, *, is_in_batch: bool) -> None:
    frame = message % (b"x" * 100_000)
    frame = b"[" + frame + b"]" if is_in_batch else frame
    before = sys.getrefcount(frame)
    found = decode(frame)
    if isinstance(found, Batch):
        (found,) = found.items
    match found:
        case Request(params=part) | Notification(params=part) | Response(result=part) | ErrorResponse(error=part):
            assert isinstance(part, Raw)
            assert len(memoryview(part)) < 100
            assert before == sys.getrefcount(frame)
        case _:
            pytest.fail(f"{found} is not a message")


def test_what_makes_up_most_of_a_frame_is_not_copied() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 100_000 + b'"}}'
    before = sys.getrefcount(frame)
    found = decode(frame)

    assert isinstance(found, Request)
    assert before + 1 == sys.getrefcount(frame)
    assert detached(UNSET, 10_000) is UNSET


# --- memory


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        "Hello, world. [,{ " * 50_000,
        "\u20ac, " * 300_000,
        "\u00e9" * 300_000,
        [{"a": {"a": {"a": {}}}}] * 10_000,
        [[[[[]]]]] * 10_000,
        {f"key {number}": "" for number in range(40_000)},
        [{"id": number, "name": f"name {number}", "ok": True, "x": number / 7} for number in range(10_000)],
        [number / 7 for number in range(10_000)],
        [f"text {number}" for number in range(30_000)],
        [{"one": number} for number in range(20_000)],
    ],
    ids=lambda value: json.dumps(value)[:30],
)
@pytest.mark.slow
def test_the_memory_of_a_message_is_estimated_within_a_factor_of_two(value: Any) -> None:
    source = msgspec.json.encode(value)
    gc.collect()
    tracemalloc.start()
    frame = bytes(bytearray(source))
    decoded = msgspec.json.decode(frame)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del decoded

    assert used / 2 < memory_bytes(frame) < used * 2


def test_the_memory_of_escaped_text_is_that_of_its_widest_character() -> None:
    frame = b'"\\ud83d\\ude00' + b"x" * 1_000_000 + b'"'

    assert memory_bytes(frame) > 5_000_000
    assert 2_000_000 < memory_bytes(frame.replace(b"\\ud83d\\ude00", b"\\u0101")) < 3_100_000
    assert memory_bytes(b"\xff" * 10_000) == 20_000
