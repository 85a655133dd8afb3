"""Sealed request states, which a client holds and cannot forge.

Theory of operation. A sealed state is base64url text of

    format (1 byte) | expiry (8 bytes, milliseconds of Unix time) | content | tag (32 bytes)

The tag is HMAC-SHA256 over all before it and over the *binding*: audience, principal, method and digest of the params,
each after its length, so that no two bindings have the same bytes. The audience is the server: another server with the
same keys refuses the state. The binding is not in the text: the caller of `open` states
it, and another binding has another tag. Tags are made with a key derived from the given one, so that a key which is
also used elsewhere makes no tag that is valid here.

The client can read the content: it is authenticated, not encrypted. A state can be opened more than once; the engine
remembers which ones were used.

Spec:
    2026-07-28, basic/patterns/mrtr, "Server Requirements (Basic Workflow)": request state is attacker-controlled input;
    servers SHOULD bind it to the principal, to a short expiry and to the request, and MUST reject what fails
    verification.
"""

from __future__ import annotations

import copy
import math
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from mcpgen.runtime.errors import McpgenError, RequestError, UsageError
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MAX_CONTENT_BYTES", "MIN_KEY_BYTES", "RequestStateSealer", "StateRefused", "StateTooLarge"]

# The strength of HMAC-SHA256. A shorter secret is usually a password, which can be guessed from one state.
MIN_KEY_BYTES: Final = 32

# A state is large because of the client's earlier responses, for a replay, and one of those may be an image of some
# hundred kilobytes. It comes back in a message, which may have 4 MiB.
MAX_CONTENT_BYTES: Final = 1024 * 1024

_PURPOSE: Final = b"mcpgen request state 1"
_FORMAT: Final = b"\x01"
_EXPIRY_BYTES: Final = 8
_TAG_BYTES: Final = 32  # of SHA-256
_HEAD_BYTES: Final = len(_FORMAT) + _EXPIRY_BYTES


_PROBLEMS: Final = {
    "expired": "has expired; send the request without it",
    "displaced": (
        "belongs to a handler that was cancelled to make room for those of other clients (max_waiting, "
        "max_waiting_bytes, max_threads); send the request without it"
    ),
    "ended": "belongs to a handler that has ended; send the request without it",
    "elsewhere": (
        "belongs to a handler in another process of this server, and that process may have ended; "
        "send the request to that process, or without the requestState"
    ),
    "invalid": "is not valid for this request",
}


class StateRefused(RequestError):  # noqa: N818 (named as those of runtime/errors.py are)
    """A request has a state that is not valid for it; the error is the response to the request.

    Attributes:
        reason: For a genuine state of this request: ``expired``; ``displaced``, if its handler made room for another
            client's; ``ended``, if the handler that waited in this process does not any more; ``elsewhere``, if another
            process has or had it. Otherwise ``invalid``: more would help a forger.
    """

    def __init__(self, reason: Literal["expired", "displaced", "ended", "elsewhere", "invalid"]) -> None:
        self.reason = reason
        super().__init__(ErrorCode.INVALID_PARAMS, f"The requestState {_PROBLEMS[reason]}", {"reason": reason})


class StateTooLarge(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The content of a state exceeds the limit.

    Attributes:
        size_bytes: The size of the content.
        limit_bytes: The limit.
    """

    def __init__(self, *, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(size_bytes, limit_bytes)

    def __str__(self) -> str:
        return f"the request state has {self.size_bytes} bytes, which is over the limit of {self.limit_bytes}"


class RequestStateSealer:
    """Seal request states, and open them.

    Args:
        key: At least 32 random bytes; processes that open each other's states need the same key. A sequence: the first
            key seals, all of them open, so that a key can be replaced while its states are valid. None: a random key.
        audience: The name of the server, or of all servers that open each other's states.
        lifetime_seconds: How long a state is valid.
        max_content_bytes: The size limit of a content. A longer state is refused unread.
        clock: Seconds of Unix time, which processes have in common (``time.time``).
        random_bytes: Makes the random key.

    Attributes:
        is_keyless: Whether *key* was None.

    Raises:
        UsageError: A key is too short, the sequence is empty, or a limit is not above zero.
    """

    def __init__(  # noqa: PLR0913 (the parts that a seal is made of)
        self,
        key: bytes | Sequence[bytes] | None = None,
        *,
        clock: Callable[[], float],
        audience: str = "",
        lifetime_seconds: float = 600,
        max_content_bytes: int = MAX_CONTENT_BYTES,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.is_keyless: bool = key is None
        if key is None:
            key = random_bytes(MIN_KEY_BYTES)
        if isinstance(key, bytes | bytearray | memoryview):
            key = [bytes(key)]
        given: list[Any] = list(key) if isinstance(cast("object", key), Iterable) else []
        is_valid = all(
            isinstance(cast("object", each), bytes | bytearray | memoryview) and len(each) >= MIN_KEY_BYTES
            for each in given
        )
        if not given or not is_valid:
            raise UsageError(
                f"`state_keys` must hold at least one key, and each key must be `bytes`, with at least {MIN_KEY_BYTES} "
                "bytes, such as secrets.token_bytes(32)"
            )
        if not (math.isfinite(lifetime_seconds) and lifetime_seconds > 0):
            raise UsageError(
                f"the lifetime of request states (`waiting_seconds` of Limits) is {lifetime_seconds}; use a finite "
                "number greater than 0"
            )
        if max_content_bytes <= 0:
            raise UsageError("`max_content_bytes` of request states must be greater than 0")
        self._keys = self._own_keys = [bytes(each) for each in given]
        self._clock = clock
        self._audience = audience
        self._lifetime_ms = math.ceil(lifetime_seconds * 1000)
        self._max_content_bytes = max_content_bytes
        self._max_characters = -(-(_HEAD_BYTES + max_content_bytes + _TAG_BYTES) * 4 // 3)

    def share(self, keys: Sequence[bytes]) -> None:
        """Seal with the first of *keys* from now on; all of them open, and so does what was given before."""
        self._keys = [*keys, *self._own_keys]

    def for_another_audience(self, name: str) -> RequestStateSealer:
        """Return a sealer with the same keys, for a part of the audience that is called *name*."""
        sealer = copy.copy(self)
        sealer._audience = f"{self._audience}\n{name}"  # noqa: SLF001 (a copy of this object)
        return sealer

    def seal(self, content: bytes, *, principal: str, method: str, digest: bytes) -> str:
        """Return *content* as a state that is valid for this *principal* and a request like this one.

        Args:
            content: Any bytes. The client can read them.
            principal: The user that sends the request; empty if users are not known.
            method: The method of the request.
            digest: The digest of its params.

        Raises:
            StateTooLarge: *content* exceeds the limit.
        """
        if len(content) > self._max_content_bytes:
            raise StateTooLarge(size_bytes=len(content), limit_bytes=self._max_content_bytes)
        expiry = self._now_ms() + self._lifetime_ms
        sealed = _FORMAT + expiry.to_bytes(_EXPIRY_BYTES, "big") + content
        tag = _tag(self._keys[0], _binding(self._audience, principal, method, digest), sealed)
        return urlsafe_b64encode(sealed + tag).rstrip(b"=").decode("ascii")

    def open(
        self,
        state: str,
        *,
        principal: str,
        method: str,
        digest: bytes,
        is_waiting: Callable[[bytes], bool] = lambda _: False,
    ) -> bytes:
        """Return the content of *state*, which came with a request of this *principal*, *method* and *digest*.

        Args:
            state: The text that `seal` returned.
            principal: The user that sends the request.
            method: The method of the request.
            digest: The digest of its params.
            is_waiting: Whether a handler of this process waits for a content. Then the state has not expired, whatever
                the clock says, which may have been set.

        Raises:
            StateRefused: It has expired, was sealed for another request or user, or is not one of ours.
        """
        import hmac  # noqa: PLC0415 (see `_tag`)

        raw = self._decode(state)
        sealed, tag = raw[:-_TAG_BYTES], raw[-_TAG_BYTES:]
        binding = _binding(self._audience, principal, method, digest)
        matches = [hmac.compare_digest(_tag(key, binding, sealed), tag) for key in self._keys]
        if not any(matches) or not sealed.startswith(_FORMAT):
            raise StateRefused("invalid")
        content = sealed[_HEAD_BYTES:]
        if int.from_bytes(sealed[len(_FORMAT) : _HEAD_BYTES], "big") <= self._now_ms() and not is_waiting(content):
            raise StateRefused("expired")
        return content

    def unverified(self, state: str) -> bytes:
        """Return the content of *state*, which may be forged.

        Raises:
            StateRefused: It has not the form of a state.
        """
        return self._decode(state)[_HEAD_BYTES:-_TAG_BYTES]

    def _decode(self, state: str) -> bytes:
        if len(state) > self._max_characters:
            raise StateRefused("invalid")
        try:
            raw = urlsafe_b64decode(state + "=" * (-len(state) % 4))
        except ValueError:  # not ASCII, or of no possible length
            raise StateRefused("invalid") from None
        # The decoder skips other characters and ignores spare bits, so many texts decode to the same bytes. Only one of
        # them is ours.
        if len(raw) < _HEAD_BYTES + _TAG_BYTES or urlsafe_b64encode(raw).rstrip(b"=") != state.encode("ascii"):
            raise StateRefused("invalid")
        return raw

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _binding(audience: str, principal: str, method: str, digest: bytes) -> bytes:
    # A lone surrogate must not fail: an authorization server may name a user by any text.
    parts = (*(each.encode("utf-8", "surrogatepass") for each in (audience, principal, method)), digest)
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _tag(key: bytes, binding: bytes, sealed: bytes) -> bytes:
    import hmac  # noqa: PLC0415 (it loads OpenSSL, and most servers seal nothing)

    return hmac.digest(hmac.digest(_PURPOSE, key, "sha256"), binding + sealed, "sha256")
