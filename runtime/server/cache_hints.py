"""Cache hints: how long clients of 2026-07-28 may reuse a result, and for whom.

Spec:
    2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "CacheHint",
    "CacheHints",
    "CacheableMethod",
    "check_cache_hint",
    "check_cache_hints",
    "not_cacheable",
]

CacheableMethod: TypeAlias = Literal[
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
]
"""A method whose results carry a cache hint."""

CacheHints: TypeAlias = Mapping[CacheableMethod, "CacheHint"]

_METHODS: Final[tuple[str, ...]] = get_args(CacheableMethod)
_SCOPES: Final = ("public", "private")


class CacheHint(Struct, frozen=True):
    """How long clients may reuse a result, and for whom.

    Attributes:
        ttl_ms: The time in milliseconds after the receipt of the result; 0 means that the result is stale at once.
        scope: ``public`` lets caches share the result among all users. ``private`` lets them reuse it only for requests
            with the same authorization.
    """

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a result that hold this hint."""
        return {"ttl_ms": self.ttl_ms, "cache_scope": self.scope}

    def for_one_user(self) -> Self:
        """Return this hint with the scope ``private``."""
        return replace(self, scope="private")


def check_cache_hint(argument: str, given: CacheHint) -> CacheHint:
    """Return a hint that was given as *argument*.

    Raises:
        UsageError: It is not valid.
    """
    if not isinstance(cast("object", given), CacheHint):
        raise UsageError(f"`{argument}` must be a CacheHint, such as CacheHint(ttl_ms=60_000), not {given!r}")
    ttl_ms = cast("object", given.ttl_ms)
    if not isinstance(ttl_ms, int) or isinstance(ttl_ms, bool) or ttl_ms < 0:
        raise UsageError(
            f"`ttl_ms` of `{argument}` is {ttl_ms!r}; it must be a whole number of milliseconds, 0 or more"
        )
    if given.scope not in _SCOPES:
        raise UsageError(f"`scope` of `{argument}` is {given.scope!r}; it must be public or private")
    return given


def check_cache_hints(given: CacheHints | None, *, has_handlers: bool) -> CacheHints:
    """Return the ``cache_hints`` of a server.

    Raises:
        UsageError: They are not valid, or the server has handlers, which state the hints in their results.
    """
    if given is None:
        return {}
    if not isinstance(cast("object", given), Mapping):
        raise UsageError(
            f'`cache_hints` must be a dict, such as {{"tools/list": CacheHint(ttl_ms=60_000)}}, not {given!r}'
        )
    for method in cast("Mapping[object, object]", given):
        if method not in _METHODS:
            raise UsageError(
                f"`cache_hints` has {method!r}, but only the results of {', '.join(_METHODS)} can have a cache hint; "
                "remove this hint"
            )
        if has_handlers and method != "server/discover":
            raise UsageError(
                f"`cache_hints` has {method!r}, but the server has `handlers`; remove this hint; handlers of "
                "2026-07-28 set `ttl_ms` and `cache_scope` in their results"
            )
    return {method: check_cache_hint(f"cache_hints[{method!r}]", hint) for method, hint in given.items()}


def not_cacheable(result: Any) -> Any:
    """Return *result* with the hint that nothing may reuse it, because it depends on the input of a user.

    Spec:
        2026-07-28, server/utilities/caching, "Cache Key": the results of retries MUST NOT be cached.
    """
    if hasattr(result, "ttl_ms"):
        return replace(result, **CacheHint().fields)
    if is_object(result) and "ttlMs" in result:  # a handler returned the JSON of its result
        return {**result, "ttlMs": 0, "cacheScope": "private"}
    return result
