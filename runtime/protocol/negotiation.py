"""Which revisions are served, which one a handshake chooses, and what a request says about itself.

Theory of operation. A handshake settles a revision once; a stateless request names its own in ``params._meta``, beside
who sends it and what that client can do. All of that has to be known before the params can be decoded, since it decides
as what. So `read_meta` looks at those members alone, never fails, and takes what is of the wrong type as absent: that
is found when the params are checked against the revision.

Spec:
    2025-11-25, basic/lifecycle, "Version Negotiation"; 2026-07-28, basic/versioning, and basic/index, "_meta".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated import registry
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import RequestError, UnknownRevision, UsageError
from mcpgen.runtime.protocol.malformed import integer
from mcpgen.runtime.protocol.messages import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "NEWEST",
    "RequestMeta",
    "choose_revision",
    "missing_fields",
    "revisions_of_era",
    "read_meta",
    "selected_revisions",
    "unsupported_revision",
]

NEWEST: Final = registry.REVISIONS[-1].label
"""The revision that authors write against unless they say otherwise."""

_REVISION: Final = "io.modelcontextprotocol/protocolVersion"
_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
_PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 (the name of a member, no secret)
_REQUEST_STATE: Final = "requestState"
_INPUT_RESPONSES: Final = "inputResponses"


def selected_revisions(revisions: Iterable[str] | None) -> tuple[str, ...]:
    """Return the revisions that *revisions* names, each once, oldest first; all that there are for None.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UsageError: There is none, or a string instead of a collection of strings.
    """
    known = [each.label for each in registry.REVISIONS]
    if revisions is None:
        return tuple(known)
    if isinstance(revisions, str):
        raise UsageError(f"revisions are a list of labels, such as [{revisions!r}], not a string")
    wanted = list(revisions)
    for each in wanted:
        if each not in known:
            raise UnknownRevision(each)
    if not wanted:
        raise UsageError("there has to be at least one revision")
    return tuple(label for label in known if label in wanted)


def revisions_of_era(labels: Iterable[str], era: Literal["handshake", "stateless"]) -> tuple[str, ...]:
    """Return those of *labels* whose peers agree on the revision in this way, in their order."""
    return tuple(label for label in labels if registry.revision(label).era == era)


def choose_revision(offered: str, handshakes: Sequence[str]) -> str:
    """Return the revision that ``initialize`` is answered with: *offered* if it is served, or else the newest.

    Args:
        offered: What the client wrote; it may name nothing.
        handshakes: The served revisions of the handshake era, oldest first.

    Raises:
        UsageError: None is served, so that ``initialize`` has to be refused; `unsupported_revision` makes the error.

    Spec:
        2025-11-25, basic/lifecycle, "Version Negotiation".
    """
    if not handshakes:
        raise UsageError("no revision with a handshake is served")
    return offered if offered in handshakes else handshakes[-1]


class RequestMeta(Struct, frozen=True, gc=False):
    """What a request says about itself, as far as it is of the right type; what is not there is UNSET.

    Attributes:
        revision: The revision that it is written in. Present: the request is a stateless one.
        client_info: Undecoded.
        client_capabilities: Undecoded.
        log_level: The lowest level wanted; it may be none that there is.
        progress_token: Present: its sender wants to hear of progress.
        request_state: Of a retry: what the server gave the client to keep.
        input_responses: Of a retry: undecoded answers to what the server asked.
        name: What is called or got, where that has a name.
        arguments: What it is called with, undecoded.
        is_plain: Whether all of the above was of the right type, and nothing asks for a retry or a task.
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


class _Meta(Struct, frozen=True, gc=False):
    revision: str | UnsetType = field(name=_REVISION, default=UNSET)
    client_info: Raw | UnsetType = field(name=_CLIENT_INFO, default=UNSET)
    client_capabilities: Raw | UnsetType = field(name=_CLIENT_CAPABILITIES, default=UNSET)
    log_level: str | UnsetType = field(name=_LOG_LEVEL, default=UNSET)
    progress_token: str | int | UnsetType = field(name=_PROGRESS_TOKEN, default=UNSET)


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
    """Return what the params of a request say about it; whatever they are, nothing is raised.

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
        found.request_state is UNSET and found.input_responses is UNSET and found.task is UNSET,
    )


def _member_by_member(params: Raw) -> RequestMeta:
    members = _members(params)
    meta = _members(members.get("_meta", UNSET))
    return RequestMeta(
        revision=_read(_decode_text, meta.get(_REVISION)),
        client_info=meta.get(_CLIENT_INFO, UNSET),
        client_capabilities=meta.get(_CLIENT_CAPABILITIES, UNSET),
        log_level=_read(_decode_text, meta.get(_LOG_LEVEL)),
        progress_token=_token(_read(_decode_token, meta.get(_PROGRESS_TOKEN))),
        request_state=_read(_decode_text, members.get(_REQUEST_STATE)),
        input_responses=members.get(_INPUT_RESPONSES, UNSET),
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


def _token(value: str | float | UnsetType) -> str | int | UnsetType:
    # 2026-07-28, basic/patterns/progress: "a string or integer value"; for JSON Schema, 1.0 is an integer.
    if value is UNSET or isinstance(value, str):
        return value
    number = integer(value)
    return UNSET if number is None else number


def unsupported_revision(requested: str, served: Iterable[str]) -> RequestError:
    """Return the error that answers a request of a revision that is not served.

    Args:
        requested: What the request named.
        served: What would do, oldest first.

    Spec:
        2026-07-28, basic/versioning, "Protocol Version Negotiation".
    """
    supported = list(served)[::-1]
    code = bindings(NEWEST).methods.ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
    if requested in supported:  # it is one with a handshake, and a request that names it stands alone
        message = f"a request of the protocol revision {requested!r} belongs to a session, which initialize begins"
    else:
        message = f"this server does not serve the protocol revision {requested[:40]!r}, but {', '.join(supported)}"
    return RequestError(code, message, {"supported": supported, "requested": requested})


def missing_fields(meta: RequestMeta) -> RequestError | None:
    """Return the error that answers a stateless request which lacks what each must have, or None.

    Spec:
        2026-07-28, basic/index, "_meta": "A request missing any required field is malformed".
    """
    if meta.revision is not UNSET and meta.client_capabilities is not UNSET:
        return None
    found = ((_REVISION, meta.revision), (_CLIENT_CAPABILITIES, meta.client_capabilities))
    missing = " and ".join(key for key, value in found if value is UNSET)
    return RequestError(Code.INVALID_PARAMS, f"params._meta lacks {missing}")
