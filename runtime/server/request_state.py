"""State that a client holds for us and cannot forge: who got it, for which request, and until when.

Theory of operation. A sealed state is base64url text of

    format (1 byte) | expiry (8 bytes, milliseconds of Unix time) | content | tag (32 bytes)

The tag is HMAC-SHA256 over all before it and over the *binding*: principal, method and digest of the params, each
behind its length, so that no two bindings read alike. The binding itself is not in the text: whoever opens a state says
what it has to be bound to, and any other binding has another tag. Each key is used through a key derived from it, so
that a key which also serves something else never makes a tag that means something here.

The content is authenticated, not hidden: the client that holds it can read it. Nor is a state used up by being opened;
what may happen once only, the engine has to remember.

Spec:
    2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)": request state is attacker-controlled input;
    servers SHOULD bind it to the principal, to a short expiry and to the request, and MUST reject what fails
    verification.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

from mcpgen.runtime.errors import McpgenError, RequestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgspec import Raw

__all__ = ["MAX_CONTENT_BYTES", "MIN_KEY_BYTES", "RequestStateSealer", "StateRefused", "StateTooLarge", "params_digest"]

# What HMAC-SHA256 is as strong as. A shorter secret is most often a password, which can be guessed from one state.
MIN_KEY_BYTES: Final = 32

# A token is 32 bytes; what makes a state large is the answers that a replay carries, and one of those may be a picture
# of some hundred kilobytes. It comes back inside a message, which is read up to 4 MiB.
MAX_CONTENT_BYTES: Final = 1024 * 1024

# A retry says these anew. All else has to be what the first request said.
_OF_THE_RETRY: Final = frozenset({"_meta", "inputResponses", "requestState"})

_INVALID_PARAMS: Final = -32602  # in every revision

_PURPOSE: Final = b"mcpgen request state 1"
_FORMAT: Final = b"\x01"
_EXPIRY_BYTES: Final = 8
_TAG_BYTES: Final = hashlib.sha256().digest_size
_HEAD_BYTES: Final = len(_FORMAT) + _EXPIRY_BYTES


class StateRefused(RequestError):  # noqa: N818 (named as those of runtime/errors.py are)
    """A request brings a state that is not opened for it; as it is, an answer to that request.

    Attributes:
        reason: ``expired`` is said of a genuine state of this very request. Of all else no more is told than that it is
            ``invalid``: what is wrong with it would help nobody but a forger.
    """

    def __init__(self, reason: Literal["expired", "invalid"]) -> None:
        self.reason = reason
        told = "has expired; send the request without it" if reason == "expired" else "is not valid for this request"
        super().__init__(_INVALID_PARAMS, f"The requestState {told}", {"reason": reason})


class StateTooLarge(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """There is more to be sealed than a client is given to hold.

    Attributes:
        size_bytes: How much it is.
        limit_bytes: How much it may be.
    """

    def __init__(self, *, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(size_bytes, limit_bytes)

    def __str__(self) -> str:
        return f"a request state of {self.size_bytes} bytes is over the limit of {self.limit_bytes}"


class RequestStateSealer:
    """Seals what a client is to bring back, and opens it again.

    Args:
        key: At least 32 random bytes; every process that has to open the states of another needs the same. Several: the
            first one seals, all of them open, so that a key can be replaced while its states are still about. None: a
            key of this object alone, and states that die with it.
        lifetime_seconds: How long a state can be brought back.
        max_content_bytes: The most that is sealed at once. Longer states are refused unread.
        clock: Seconds of Unix time, which processes have in common (``time.time``).
        random_bytes: Makes the key where none is given.

    Raises:
        UsageError: A key is too short, there is none in the sequence, or a limit is not above zero.
    """

    def __init__(
        self,
        key: bytes | Sequence[bytes] | None = None,
        *,
        clock: Callable[[], float],
        lifetime_seconds: float = 600,
        max_content_bytes: int = MAX_CONTENT_BYTES,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        if key is None:
            key = random_bytes(MIN_KEY_BYTES)
        keys = [bytes(key)] if isinstance(key, bytes | bytearray | memoryview) else list(key)
        if not keys or any(len(each) < MIN_KEY_BYTES for each in keys):
            raise UsageError(f"a key for request states needs at least {MIN_KEY_BYTES} bytes")
        if not (math.isfinite(lifetime_seconds) and lifetime_seconds > 0 and max_content_bytes > 0):
            raise UsageError("the lifetime and the size of request states have to be above zero")
        self._keys = [hmac.digest(_PURPOSE, each, "sha256") for each in keys]
        self._clock = clock
        self._lifetime_ms = math.ceil(lifetime_seconds * 1000)
        self._max_content_bytes = max_content_bytes
        self._max_characters = -(-(_HEAD_BYTES + max_content_bytes + _TAG_BYTES) * 4 // 3)

    def seal(self, content: bytes, *, principal: str, method: str, digest: bytes) -> str:
        """Return *content* as text that only this *principal* can bring back, with a request like this one.

        Args:
            content: What to bring back. The client can read it.
            principal: Whom the request is made for; the empty string where nobody is told apart.
            method: The method of the request.
            digest: What `params_digest` makes of its params.

        Raises:
            StateTooLarge: *content* is over the limit.
        """
        if len(content) > self._max_content_bytes:
            raise StateTooLarge(size_bytes=len(content), limit_bytes=self._max_content_bytes)
        expiry = self._now_ms() + self._lifetime_ms
        sealed = _FORMAT + expiry.to_bytes(_EXPIRY_BYTES, "big") + content
        tag = _tag(self._keys[0], _binding(principal, method, digest), sealed)
        return urlsafe_b64encode(sealed + tag).rstrip(b"=").decode("ascii")

    def open(self, state: str, *, principal: str, method: str, digest: bytes) -> bytes:
        """Return the content of *state*, which a request of this *principal*, *method* and *digest* has brought.

        Raises:
            StateRefused: It has expired, or is not ours, or was sealed for something else.
        """
        raw = self._decode(state)
        sealed, tag = raw[:-_TAG_BYTES], raw[-_TAG_BYTES:]
        binding = _binding(principal, method, digest)
        matches = [hmac.compare_digest(_tag(key, binding, sealed), tag) for key in self._keys]
        if not any(matches) or not sealed.startswith(_FORMAT):
            raise StateRefused("invalid")
        if int.from_bytes(sealed[len(_FORMAT) : _HEAD_BYTES], "big") <= self._now_ms():
            raise StateRefused("expired")
        return sealed[_HEAD_BYTES:]

    def _decode(self, state: str) -> bytes:
        if len(state) > self._max_characters:
            raise StateRefused("invalid")
        try:
            raw = urlsafe_b64decode(state + "=" * (-len(state) % 4))
        except ValueError:  # not ASCII, or of no possible length
            raise StateRefused("invalid") from None
        # The decoder skips what is not base64 and ignores bits that are left over: many texts are the same bytes to it.
        # One of them is ours.
        if len(raw) < _HEAD_BYTES + _TAG_BYTES or urlsafe_b64encode(raw).rstrip(b"=") != state.encode("ascii"):
            raise StateRefused("invalid")
        return raw

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def params_digest(params: Raw | bytes) -> bytes:
    """Return a digest of the JSON of *params*, without ``_meta``, ``inputResponses`` and ``requestState``.

    Key order, white space and escapes in strings make no difference: a client may write its retry anew. Everything else
    does. Numbers are taken as they are written (1 is not 1.0, nor is 1e2 100.0), since a handler can tell some of these
    apart; and a repeated key stays repeated, since readers differ in which one they take.

    Raises:
        RequestError: They are no JSON object, or nest too deeply to be read.
    """
    try:
        members = _decode_exactly(bytes(params).decode("utf-8"))
        if not isinstance(members, _Members):
            raise RequestError(_INVALID_PARAMS, "The params are no object")
        told = _Members(member for member in members if member[0] not in _OF_THE_RETRY)
        return hashlib.sha256(_canonical(told).encode("ascii")).digest()
    except (ValueError, RecursionError):
        raise RequestError(_INVALID_PARAMS, "The params cannot be read") from None


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Members(tuple[tuple[str, "_Json"], ...]):
    """An object: its keys, as often as they occur, with their values."""

    __slots__ = ()


_Json: TypeAlias = "_Number | _Members | list[_Json] | str | bool | None"


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError  # NaN and Infinity, which are no JSON


# Not msgspec, which keeps one of two equal keys and forgets how a number was written. Off the hot path: only requests
# that ask something back have a digest.
_decode_exactly: Final = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant, object_pairs_hook=_Members
).decode


def _canonical(value: _Json) -> str:
    """Return the one way to write *value*, in ASCII."""
    if isinstance(value, _Number):
        return value
    if isinstance(value, _Members):  # sorted by key alone: equal keys keep their order, which decides who is the last
        inner = [f"{json.dumps(key)}:{_canonical(each)}" for key, each in sorted(value, key=_key)]
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_canonical(each) for each in value]) + "]"
    return json.dumps(value)


def _key(member: tuple[str, _Json]) -> str:
    return member[0]


def _binding(principal: str, method: str, digest: bytes) -> bytes:
    # A lone surrogate is no reason to fail: a principal is whatever an authorization server calls somebody.
    parts = (principal.encode("utf-8", "surrogatepass"), method.encode("utf-8", "surrogatepass"), digest)
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _tag(key: bytes, binding: bytes, sealed: bytes) -> bytes:
    return hmac.digest(key, binding + sealed, "sha256")
