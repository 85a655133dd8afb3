"""Negotiate the revision: those that are served, the one that a handshake chooses, and the one that a request names.

Theory of operation. A handshake chooses a revision once. A stateless request names its own in ``params._meta``, with
the client's name and capabilities. The revision has to be known before the params can be decoded. So `read_meta` reads
these members only, and never fails: it treats a member of the wrong type as absent, and the error is found later, when
the params are checked against the revision.

Spec:
    2025-11-25, basic/lifecycle, "Version Negotiation"; 2026-07-28, basic/versioning, and basic/index, "_meta".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated import registry
from mcpgen.runtime.errors import RequestError, UnknownRevision, UsageError
from mcpgen.runtime.limits import MAX_RESPONSE_VALUES
from mcpgen.runtime.protocol.argument_checks import check_lists
from mcpgen.runtime.protocol.malformed import same_id
from mcpgen.runtime.protocol.message_size import too_many_values
from mcpgen.runtime.protocol.newest import ErrorCode, MetaKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.messages import Request

__all__ = [
    "RELATED_TASK",
    "RequestMeta",
    "choose_revision",
    "missing_fields",
    "oversized_part",
    "revisions_of_era",
    "read_meta",
    "read_meta_object",
    "selected_revisions",
    "unsupported_revision",
]

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key in `_meta` that names a task; of 2025-11-25 only."""

_PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 (the name of a member, no secret)
_REQUEST_STATE: Final = "requestState"
_INPUT_RESPONSES: Final = "inputResponses"
_COMPLETE: Final = "completion/complete"


def selected_revisions(revisions: Iterable[str] | None) -> tuple[str, ...]:
    """Return *revisions*, each once, oldest first; all released revisions for None.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UsageError: *revisions* is empty, or a string instead of a collection of strings.
    """
    if revisions is None:
        return tuple(each.label for each in registry.REVISIONS)
    if isinstance(revisions, str):
        raise UsageError(f"`revisions` must be a list of labels, not a string; write [{revisions!r}]")
    check_lists(revisions=revisions)
    wanted = list(revisions)
    for each in wanted:
        try:
            registry.revision(each)
        except (registry.UnknownRevision, TypeError):  # TypeError: it is no string
            raise UnknownRevision(each) from None
    if not wanted:
        raise UsageError("`revisions` is empty; name at least one revision, or leave it out for all")
    return tuple(each.label for each in registry.known() if each.label in wanted)


def revisions_of_era(labels: Iterable[str], era: Literal["handshake", "stateless"]) -> tuple[str, ...]:
    """Return those of *labels* that belong to *era*, in the same order."""
    return tuple(label for label in labels if registry.revision(label).era == era)


def choose_revision(offered: str, handshakes: Sequence[str]) -> str:
    """Return the revision that ``initialize`` is answered with: *offered* if it is served, or else the newest.

    Args:
        offered: The client's string, which may be no revision at all.
        handshakes: The served handshake revisions, oldest first.

    Raises:
        UsageError: *handshakes* is empty. Answer ``initialize`` with the error that `unsupported_revision` returns.

    Spec:
        2025-11-25, basic/lifecycle, "Version Negotiation".
    """
    if not handshakes:
        raise UsageError(
            "`handshakes` is empty: the server supports no revision that uses `initialize`; answer the client with the "
            "error from mcpgen.runtime.protocol.negotiation.unsupported_revision()"
        )
    return offered if offered in handshakes else handshakes[-1]


class RequestMeta(Struct, frozen=True, gc=False):
    """The members of a request's params that are read first; UNSET if they are absent or of the wrong type.

    Attributes:
        revision: Its revision, if the request is a stateless one.
        client_info: Undecoded.
        client_capabilities: Undecoded.
        log_level: The least severe level that the client wants; it may be an unknown level.
        progress_token: The token of progress notifications, if the client wants them.
        request_state: The server's sealed state, if the request is a retry.
        input_responses: The answers to the server's requests, undecoded, if the request is a retry.
        name: The name of a tool or prompt.
        arguments: Its arguments, undecoded.
        is_plain: Whether all members had the right type, and the request is neither a retry nor a task, nor of one.
        related_task: What names the task that the request belongs to, undecoded.
    """

    revision: str | UnsetType = UNSET
    client_info: Raw | UnsetType = UNSET
    client_capabilities: Raw | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    progress_token: str | int | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    input_responses: Raw | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    is_plain: bool = False
    related_task: Raw | UnsetType = UNSET


class _Meta(Struct, frozen=True, gc=False):
    revision: str | UnsetType = field(name=MetaKey.PROTOCOL_VERSION, default=UNSET)
    client_info: Raw | UnsetType = field(name=MetaKey.CLIENT_INFO, default=UNSET)
    client_capabilities: Raw | UnsetType = field(name=MetaKey.CLIENT_CAPABILITIES, default=UNSET)
    log_level: str | UnsetType = field(name=MetaKey.LOG_LEVEL, default=UNSET)
    progress_token: str | int | UnsetType = field(name=_PROGRESS_TOKEN, default=UNSET)
    related_task: Raw | UnsetType = field(name=RELATED_TASK, default=UNSET)


class _Params(Struct, frozen=True, gc=False):
    meta: _Meta | UnsetType = field(name="_meta", default=UNSET)
    request_state: str | UnsetType = field(name=_REQUEST_STATE, default=UNSET)
    input_responses: Raw | UnsetType = field(name=_INPUT_RESPONSES, default=UNSET)
    task: Raw | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET


_NO_META: Final = _Meta()
_NOTHING: Final = RequestMeta()
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_params: Final = msgspec.json.Decoder(_Params).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_token: Final = msgspec.json.Decoder(str | int | float).decode


def read_meta(params: Raw | UnsetType) -> RequestMeta:
    """Return the `RequestMeta` of a request's params; invalid params never raise.

    Spec:
        2026-07-28, basic/index, "_meta"; basic/patterns/mrtr; basic/patterns/progress.
    """
    if params is UNSET:
        return _NOTHING
    try:
        found = _decode_params(params)
    except _UNREADABLE:
        return _member_by_member(params)
    meta = _NO_META if found.meta is UNSET else found.meta
    return RequestMeta(
        meta.revision,
        meta.client_info,
        meta.client_capabilities,
        meta.log_level,
        meta.progress_token,
        found.request_state,
        found.input_responses,
        found.name,
        found.arguments,
        found.request_state is UNSET
        and found.input_responses is UNSET
        and found.task is UNSET
        and meta.related_task is UNSET,
        meta.related_task,
    )


def read_meta_object(params: Raw | UnsetType) -> dict[str, Any]:
    """Return the whole `_meta` of a request's params; an empty one if there is none, or it is invalid."""
    try:
        meta = _members(params).get("_meta")
        found: object = {} if meta is None else msgspec.json.decode(meta)
    except _UNREADABLE:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON


def _member_by_member(params: Raw) -> RequestMeta:
    members = _members(params)
    meta = _members(members.get("_meta", UNSET))
    return RequestMeta(
        revision=_read(_decode_text, meta.get(MetaKey.PROTOCOL_VERSION)),
        client_info=meta.get(MetaKey.CLIENT_INFO, UNSET),
        client_capabilities=meta.get(MetaKey.CLIENT_CAPABILITIES, UNSET),
        log_level=_read(_decode_text, meta.get(MetaKey.LOG_LEVEL)),
        progress_token=same_id(_read(_decode_token, meta.get(_PROGRESS_TOKEN))),
        request_state=_read(_decode_text, members.get(_REQUEST_STATE)),
        input_responses=members.get(_INPUT_RESPONSES, UNSET),
        name=_read(_decode_text, members.get("name")),
        arguments=members.get("arguments", UNSET),
        related_task=meta.get(RELATED_TASK, UNSET),
    )


def _members(value: Raw | UnsetType) -> dict[str, Raw]:
    try:
        return {} if value is UNSET else _decode_members(value)
    except _UNREADABLE:
        return {}


def _read(decode: Callable[[Raw], Any], value: Raw | None) -> Any:  # noqa: ANN401 (what *decode* returns, or UNSET)
    try:
        return UNSET if value is None else decode(value)
    except _UNREADABLE:
        return UNSET


def oversized_part(request: Request, meta: RequestMeta, limits: Limits) -> RequestError | None:
    """Return the error response to a request whose id, metadata or completion is too large; None if nothing is."""
    token, params, max_chars = meta.progress_token, request.params, limits.max_id_chars
    if isinstance(request.id, str) and len(request.id) > max_chars:
        return RequestError(ErrorCode.INVALID_REQUEST, f"the id has more than {max_chars} characters (max_id_chars)")
    if isinstance(token, str) and len(token) > max_chars:
        reason = f"the progress token has more than {max_chars} characters (max_id_chars)"
        return RequestError(ErrorCode.INVALID_PARAMS, reason)
    if params is UNSET:
        return None
    max_bytes, size = limits.max_meta_bytes, len(memoryview(params))
    if request.method == _COMPLETE and (fault := _oversized_completion(params, limits.max_completion_bytes)):
        return fault
    if meta.input_responses is not UNSET and (fault := _too_many_responses(params, meta.arguments)):
        return fault
    if size <= max_bytes:
        return None
    if meta.arguments is not UNSET and size - len(memoryview(meta.arguments)) <= max_bytes:
        return None
    whole = _members(params).get("_meta")
    if whole is None or len(memoryview(whole)) <= max_bytes:
        return None
    return RequestError(ErrorCode.INVALID_PARAMS, f"params._meta has more than {max_bytes} bytes (max_meta_bytes)")


def _too_many_responses(params: Raw, arguments: Raw | UnsetType) -> RequestError | None:
    """Return the error for *params* whose input responses have too many values; None if they have not."""
    if len(memoryview(params)) <= MAX_RESPONSE_VALUES:
        return None
    rest = bytes(params)
    if arguments is not UNSET:
        rest = rest.replace(bytes(arguments), b"0", 1)
    if not too_many_values(rest, MAX_RESPONSE_VALUES):
        return None
    reason = (
        f"the params have more than {MAX_RESPONSE_VALUES} values outside of `arguments`; send fewer in "
        "`inputResponses` or `_meta`"
    )
    return RequestError(ErrorCode.INVALID_PARAMS, reason)


def _oversized_completion(params: Raw, max_bytes: int) -> RequestError | None:
    """Return the error for *params* of a completion that are too long without their `_meta`; None if they are not."""
    size = len(memoryview(params))
    if size <= max_bytes:
        return None
    whole = _members(params).get("_meta")
    if size - (0 if whole is None else len(memoryview(whole))) <= max_bytes:
        return None
    reason = f"the params have more than {max_bytes} bytes (max_completion_bytes)"
    return RequestError(ErrorCode.INVALID_PARAMS, reason)


def unsupported_revision(requested: str, served: Iterable[str]) -> RequestError:
    """Return the error response to a request of a revision that is not served.

    Args:
        requested: The revision that the request names.
        served: The served revisions, oldest first.

    Spec:
        2026-07-28, basic/versioning, "Protocol Version Negotiation".
    """
    supported = list(served)[::-1]
    if requested in supported:
        # An initialize that names a stateless revision, or a stateless request that names a handshake revision.
        message = (
            f"the protocol revision {requested!r} has no initialize; name it in the `_meta` of each request"
            if registry.revision(requested).era == "stateless"
            else f"the protocol revision {requested!r} has sessions; negotiate it with initialize, and do not name it "
            "in the `_meta` of requests"
        )
    else:
        message = (
            f"this server does not support the protocol revision {requested[:40]!r}; it supports {', '.join(supported)}"
        )
    return RequestError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, message, {"supported": supported, "requested": requested}
    )


def missing_fields(meta: RequestMeta) -> RequestError | None:
    """Return the error response to a stateless request without the required fields; None if it has them.

    Spec:
        2026-07-28, basic/index, "_meta": "A request missing any required field is malformed".
    """
    if meta.revision is not UNSET and meta.client_capabilities is not UNSET:
        return None
    found = (
        (f"{MetaKey.PROTOCOL_VERSION} (a string)", meta.revision),
        (MetaKey.CLIENT_CAPABILITIES, meta.client_capabilities),
    )
    missing = " and ".join(key for key, value in found if value is UNSET)
    return RequestError(ErrorCode.INVALID_PARAMS, f"params._meta lacks {missing}")
