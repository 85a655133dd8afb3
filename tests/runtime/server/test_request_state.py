"""State that a client holds for us: nobody else's, for nothing else, not for long, and not changed by one byte."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.server import request_state
from mcpgen.runtime.server.params_digest import params_digest
from mcpgen.runtime.server.request_state import (
    MIN_KEY_BYTES,
    RequestStateSealer,
    StateRefused,
    StateTooLarge,
)

if TYPE_CHECKING:
    from types import FrameType

KEY = bytes(range(32))
OTHER_KEY = bytes(range(32, 64))
DIGEST = params_digest(Raw(b'{"name":"deploy","arguments":{"to":"production"}}'))
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

# What this key makes of the content "ticket" for the binding below at time 1000, and has to make of it tomorrow: other
# processes, perhaps of another release, open what this one seals.
SEALED = "AQAAAAAAGGoAdGlja2V0U-OsBe6dIt2KfIlieUyAxmZ2iDMUFtWpk4fvBBPALuA"


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def sealer(*keys: bytes, clock: Clock | None = None, **options: Any) -> RequestStateSealer:
    return RequestStateSealer(keys or KEY, clock=clock or Clock(), **options)


def seal(with_sealer: RequestStateSealer, content: bytes = b"ticket") -> str:
    return with_sealer.seal(content, principal="alice", method="tools/call", digest=DIGEST)


def unseal(with_sealer: RequestStateSealer, state: str) -> bytes:
    return with_sealer.open(state, principal="alice", method="tools/call", digest=DIGEST)


def refusal(with_sealer: RequestStateSealer, state: str, **binding: Any) -> StateRefused:
    bound = {"principal": "alice", "method": "tools/call", "digest": DIGEST, **binding}
    with pytest.raises(StateRefused) as caught:
        with_sealer.open(state, **bound)
    return caught.value


@pytest.mark.slow
@given(content=st.binary(max_size=300), principal=st.text(), method=st.text(), digest=st.binary(max_size=64))
def test_what_was_sealed_comes_back(content: bytes, principal: str, method: str, digest: bytes) -> None:
    state = sealer().seal(content, principal=principal, method=method, digest=digest)

    assert content == sealer().open(state, principal=principal, method=method, digest=digest)


def test_a_state_is_text_that_goes_anywhere() -> None:
    state = seal(sealer(), bytes(range(256)))

    assert set(state) <= set(ALPHABET)


def test_the_format_is_what_it_was() -> None:
    assert SEALED == seal(sealer())


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@given(data=st.data(), content=st.binary(max_size=40))
def test_a_state_with_one_other_character_is_refused(data: st.DataObject, content: bytes) -> None:
    state = seal(sealer(), content)
    place = data.draw(st.integers(0, len(state) - 1))
    character = data.draw(st.sampled_from(ALPHABET + "+/= \n\0é€").filter(lambda each: each != state[place]))

    assert "invalid" == refusal(sealer(), state[:place] + character + state[place + 1 :]).reason


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@given(data=st.data(), content=st.binary(max_size=40))
@pytest.mark.slow
def test_a_state_with_one_other_byte_is_refused(data: st.DataObject, content: bytes) -> None:
    state = seal(sealer(), content)
    raw = bytearray(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    forged = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    assert "invalid" == refusal(sealer(), forged).reason


@given(data=st.data())
def test_a_state_that_is_cut_or_drawn_out_is_refused(data: st.DataObject) -> None:
    state = seal(sealer())
    shorter = state[: data.draw(st.integers(0, len(state) - 1))]
    longer = state + data.draw(st.text(ALPHABET + "=\n ", min_size=1))

    assert "invalid" == refusal(sealer(), shorter).reason
    assert "invalid" == refusal(sealer(), longer).reason


@given(state=st.text(max_size=200))
def test_any_other_text_is_refused(state: str) -> None:
    assert "invalid" == refusal(sealer(), state).reason


@pytest.mark.parametrize("content", [b"", b"a", b"ab", b"abc"])
def test_there_is_one_way_to_write_a_state(content: bytes) -> None:
    state = seal(sealer(), content)
    raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
    same = [state[:-1] + each for each in ALPHABET if _decoded(state[:-1] + each) == raw]

    assert content == unseal(sealer(), state)
    assert [state] == [each for each in same if _opens(each)]
    assert not _opens(state + "=" * (-len(state) % 4) if len(state) % 4 else state + "\n")


def _decoded(state: str) -> bytes:
    return base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))


def _opens(state: str) -> bool:
    try:
        unseal(sealer(), state)
    except StateRefused:
        return False
    return True


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "8d48e778", "f1f78e5b")
@pytest.mark.parametrize(
    "binding",
    [
        {"principal": "mallory"},
        {"principal": ""},
        {"method": "prompts/get"},
        {"digest": params_digest(Raw(b'{"name":"deploy","arguments":{"to":"Production"}}'))},
        {"principal": "alicetools", "method": "/call"},
        {"principal": "alice\0"},
        {"digest": b""},
    ],
)
def test_a_state_of_another_principal_or_request_is_refused(binding: dict[str, Any]) -> None:
    assert "invalid" == refusal(sealer(), seal(sealer()), **binding).reason


@given(
    ours=st.tuples(*[st.text(max_size=4)] * 3, st.binary(max_size=4)),
    theirs=st.tuples(*[st.text(max_size=4)] * 3, st.binary(max_size=4)),
)
def test_no_two_bindings_read_alike(ours: tuple[str, str, str, bytes], theirs: tuple[str, str, str, bytes]) -> None:
    assert (ours == theirs) == (request_state._binding(*ours) == request_state._binding(*theirs))


def test_a_state_of_a_server_with_the_same_key_and_another_audience_is_refused() -> None:
    state = seal(sealer(audience="shop"))

    assert b"ticket" == unseal(sealer(audience="shop"), state)
    for other in ("", "bank", "shopalice"):
        assert "invalid" == refusal(sealer(audience=other), state).reason


def test_a_state_whose_handler_waits_does_not_expire() -> None:
    clock = Clock()
    ours = sealer(clock=clock, lifetime_seconds=60)
    state, bound = seal(ours), {"principal": "alice", "method": "tools/call", "digest": DIGEST}
    clock.now += 10_000

    assert b"ticket" == ours.open(state, **bound, is_waiting=lambda content: content == b"ticket")
    assert "expired" == refusal(ours, state).reason
    with pytest.raises(StateRefused, match="not valid"):
        ours.open(state, **(bound | {"principal": "mallory"}), is_waiting=lambda _: True)


def test_any_name_of_a_principal_will_do() -> None:
    state = sealer().seal(b"ticket", principal="\ud800", method="tools/call", digest=DIGEST)

    assert b"ticket" == sealer().open(state, principal="\ud800", method="tools/call", digest=DIGEST)
    assert "invalid" == refusal(sealer(), state, principal="?").reason


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
def test_a_state_expires() -> None:
    clock = Clock()
    ours = sealer(clock=clock, lifetime_seconds=60)
    state = seal(ours)

    clock.now += 59.999
    assert b"ticket" == unseal(ours, state)

    clock.now += 0.001
    assert "expired" == refusal(ours, state).reason


def test_of_a_state_that_is_not_ours_not_even_its_age_is_told() -> None:
    clock = Clock()
    ours = sealer(clock=clock, lifetime_seconds=60)
    state = seal(ours)
    clock.now += 3600

    assert "invalid" == refusal(ours, state, principal="mallory").reason
    assert "invalid" == refusal(sealer(OTHER_KEY, clock=clock), state).reason


def test_a_lifetime_of_parts_of_a_millisecond_is_one() -> None:
    ours = sealer(lifetime_seconds=1e-9)

    assert b"ticket" == unseal(ours, seal(ours))


def test_a_refusal_is_an_answer_that_tells_expired_from_invalid_and_no_more() -> None:
    expired, invalid = StateRefused("expired"), StateRefused("invalid")

    assert (-32602, {"reason": "expired"}) == (expired.code, expired.data)
    assert "The requestState has expired; send the request without it" == expired.message
    assert (-32602, {"reason": "invalid"}) == (invalid.code, invalid.data)
    assert "The requestState is not valid for this request" == invalid.message


def test_the_first_key_seals_and_all_of_them_open() -> None:
    before, during, after = sealer(OTHER_KEY), sealer(KEY, OTHER_KEY), sealer(KEY)

    assert b"ticket" == unseal(during, seal(before))
    assert b"ticket" == unseal(during, seal(during))
    assert b"ticket" == unseal(after, seal(during))
    assert "invalid" == refusal(after, seal(before)).reason
    assert "invalid" == refusal(before, seal(during)).reason


@pytest.mark.parametrize("key", [b"", b"x" * 31, "secret", [], [KEY, b"short"], ["x" * 32]])
def test_a_key_that_is_too_short_or_none_is_the_callers_mistake(key: Any) -> None:
    with pytest.raises(UsageError, match=f"at least {MIN_KEY_BYTES} bytes"):
        RequestStateSealer(key, clock=Clock())


@pytest.mark.parametrize("key", [b"x" * 32, b"x" * 33, b"x" * 64, b"x" * 65, b"x" * 1000])
def test_a_longer_key_is_another_key(key: bytes) -> None:
    state = seal(sealer(key))

    assert b"ticket" == unseal(sealer(key), state)
    assert "invalid" == refusal(sealer(key + b"\0"), state).reason  # which HMAC itself would take for the same
    assert "invalid" == refusal(sealer(b"x" * 128), state).reason


def test_a_sealer_without_a_key_makes_its_own() -> None:
    asked: list[int] = []

    def random_bytes(count: int) -> bytes:
        asked.append(count)
        return KEY

    ours = RequestStateSealer(clock=Clock(), random_bytes=random_bytes)

    assert [32] == asked
    assert b"ticket" == unseal(sealer(KEY), seal(ours))
    assert "invalid" == refusal(RequestStateSealer(clock=Clock()), seal(RequestStateSealer(clock=Clock()))).reason


@pytest.mark.parametrize(
    "options",
    [
        {"lifetime_seconds": 0},
        {"lifetime_seconds": -1},
        {"lifetime_seconds": float("inf")},
        {"lifetime_seconds": float("nan")},
        {"max_content_bytes": 0},
    ],
)
def test_limits_have_to_be_above_zero(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="greater than 0"):
        sealer(**options)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_as_much_as_the_limit_comes_back(limit: int) -> None:
    ours = sealer(max_content_bytes=limit)

    assert b"x" * limit == unseal(ours, seal(ours, b"x" * limit))


def test_more_than_the_limit_is_not_sealed() -> None:
    ours = sealer(max_content_bytes=10)

    with pytest.raises(StateTooLarge, match="has 11 bytes, which is over the limit of 10") as caught:
        seal(ours, b"x" * 11)
    assert (11, 10) == (caught.value.size_bytes, caught.value.limit_bytes)


def test_a_longer_state_than_any_of_ours_is_not_even_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(_state: str) -> bytes:
        pytest.fail("was decoded")

    longer = seal(sealer(max_content_bytes=100), b"x" * 13)
    ours = sealer(max_content_bytes=10)
    monkeypatch.setattr(request_state, "urlsafe_b64decode", decode)

    assert "invalid" == refusal(ours, longer).reason


def test_each_key_is_tried_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    unseal(sealer(KEY, OTHER_KEY), seal(sealer()))

    assert [(32, 32), (32, 32)] == compared


def test_a_digest_is_what_it_was() -> None:
    assert "0c04681aab2d2336ddc7fa9dc43ac38ce082e32dce1f9ce45033c7843d7cdfbc" == DIGEST.hex()
    assert hashlib.sha256(b'{"arguments":{"to":"production"},"name":"deploy"}').digest() == DIGEST


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":[{"c":2,"d":3}]}', b' { "b" : [ { "d":3, "c" : 2 } ] ,\t"a":1 }\r\n'),
        (b'{"a":"\\u00e9\\/\\u0041"}', '{"a":"é/A"}'.encode()),
        (b'{"\\u0061":1}', b'{"a":1}'),
        (b'{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'.encode()),
        (b'{"a":1,"_meta":{"progressToken":1}}', b'{"_meta":{"progressToken":2},"a":1}'),
        (b'{"a":1}', b'{"a":1,"_meta":null,"inputResponses":{"k":{"action":"accept"}},"requestState":"AQ"}'),
        (b'{"a":1}', b'{"_meta":1,"a":1,"_meta":2}'),
        (b"{}", b'{"\\u005fmeta":{}}'),
    ],
)
def test_what_a_retry_may_write_otherwise_makes_no_difference(one: bytes, other: bytes) -> None:
    assert params_digest(Raw(one)) == params_digest(Raw(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":100.0}', b'{"a":1e2}'),
        (b'{"a":0}', b'{"a":-0}'),
        (b'{"a":1}', b'{"a":"1"}'),
        (b'{"a":1}', b'{"a":true}'),
        (b'{"a":null}', b"{}"),
        (b'{"a":null}', b'{"a":"null"}'),
        (b'{"a":[1,2]}', b'{"a":[2,1]}'),
        (b'{"a":[]}', b'{"a":{}}'),
        (b'{"a":[[1],2]}', b'{"a":[[1,2]]}'),
        (b'{"a":9007199254740993}', b'{"a":9007199254740992}'),
        (b'{"a":9007199254740993.0}', b'{"a":9007199254740992.0}'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"a":2}', b'{"a":1}'),
        (b'{"a":1,"a":2}', b'{"a":2,"a":1}'),
        (b'{"a":"b\\",\\"c\\":\\"d"}', b'{"a":"b","c":"d"}'),
        (b'{"a":"x"}', b'{"a":"x\\u0000"}'),
        ('{"a":"é"}'.encode(), '{"a":"e\u0301"}'.encode()),
        (b'{"a":{"_meta":1}}', b'{"a":{"_meta":2}}'),
        (b'{"a":{"requestState":1}}', b'{"a":{}}'),
        (b'{"_Meta":1}', b"{}"),
        (b'{"a":"\\ud800"}', b'{"a":"?"}'),
    ],
)
def test_whatever_a_handler_may_take_for_something_else_is(one: bytes, other: bytes) -> None:
    assert params_digest(Raw(one)) != params_digest(Raw(other))


def test_a_text_in_many_levels_is_not_copied_at_each_of_them() -> None:
    text, returned = "é" * 100_000, 0

    def count(frame: FrameType, event: str, value: Any) -> None:
        nonlocal returned
        if event == "return" and frame.f_code.co_filename == params_digest.__code__.co_filename:
            returned += len(value) if isinstance(value, str) else 0

    nested = '{"a":[' * 200 + f'"{text}"' + "]}" * 200
    sys.setprofile(count)
    try:
        params_digest(nested.encode())
    finally:
        sys.setprofile(None)

    assert returned <= 10 * len(nested.encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
params = st.dictionaries(
    st.text().filter(lambda key: key not in {"_meta", "inputResponses", "requestState"}), json_values
)


@pytest.mark.slow
@given(value=params, retry=json_values)
def test_a_digest_depends_on_the_values_alone(value: dict[str, Any], retry: Any) -> None:
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()
    backwards = json.dumps({"requestState": retry, **dict(reversed(value.items()))}, indent=1, ensure_ascii=False)

    assert params_digest(compact) == params_digest(backwards.encode())


@pytest.mark.slow
@given(one=params, other=params)
def test_other_values_have_another_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    digests = [params_digest(json.dumps(each).encode()) for each in (one, other)]

    assert (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)) == (digests[0] == digests[1])


@pytest.mark.parametrize(
    "params",
    [b"", b"[]", b"null", b"1", b"{", b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1}x', b'{"a":"\xff"}', b'{"a":01}'],
)
def test_what_is_no_object_has_no_digest(params: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        params_digest(params)
    assert -32602 == caught.value.code


@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused_and_not_survived_by_luck(brackets: tuple[bytes, bytes]) -> None:
    deep = b'{"a":' + brackets[0] * 100_000 + b"1" + brackets[1] * 100_000 + b"}"

    with pytest.raises(RequestError) as caught:
        params_digest(deep)
    assert -32602 == caught.value.code


def test_large_numbers_are_read_without_working_on_them() -> None:
    large = b'{"a":' + b"9" * 100_000 + b',"b":1e999999999}'

    assert params_digest(large) != params_digest(large.replace(b"1e9", b"1e8"))


def test_params_are_read_as_the_envelope_leaves_them() -> None:
    message = msgspec.json.decode(b'{"params": {"name": "x"} }', type=dict[str, Raw])

    assert params_digest(b'{"name":"x"}') == params_digest(message["params"])
