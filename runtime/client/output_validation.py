"""What a tool returns as structured content, against the schema that its server listed for it.

The host chooses: ``off``, ``warn`` (the log says what is wrong, and the result is passed on) or ``strict`` (the call
raises, with the result). Only what the host has listed is known; nothing is requested behind its back, so a tool that
it never listed is not checked.

Schema and content both come from a server that may be hostile. Nothing is ever fetched, and a schema that cannot be
used for certain and in bounded time (`schema_graph` says how that is known) is a finding, too: it never counts as one
that allows everything. Patterns are matched in linear time. Those that look around cannot be, and get a limit to how
far they go back, on short texts only.

Dialects: 2020-12, which is meant where none is named, 2019-09, draft-07, draft-06, draft-04. Formats are annotations.

Spec:
    2025-06-18, 2025-11-25 and 2026-07-28, server/tools, "Output Schema"; 2025-11-25 and 2026-07-28, basic/index, "JSON
    Schema Usage". docs/adr/0012 says why the default is ``off`` all the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar, get_args

import msgspec
from msgspec import UNSET

from mcpgen.runtime.adapt.json_pointer import is_object, pointer_to
from mcpgen.runtime.client.schema_cost import SchemaGraph, SchemaRefused, SchemaTooCostly
from mcpgen.runtime.errors import InvalidStructuredContent, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import jsonschema_rs

__all__ = ["OutputValidator", "Policy"]

Policy = Literal["off", "warn", "strict"]
"""What is done about structured content that does not fit, or cannot be checked."""

MAX_SCHEMA_BYTES: Final = 256 * 1024
"""Of one output schema; longer ones are not kept, and their tools cannot be checked."""

MAX_TOOLS: Final = 10_000
"""How many tools with an output schema are kept."""

MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
"""Of names and schemas together."""

MAX_COMPILED: Final = 64
"""Schemas are compiled when they are first used; those of the tools called last stay so, a megabyte or more each."""

MAX_REPORTED: Final = 10_000
"""After so many warnings nothing is logged any more: a server can make up names for ever."""

MAX_BACKTRACKS: Final = 500
"""Of one match of a pattern that looks around; real ones, for e-mail addresses above all, need some dozens."""

MAX_BACKTRACKING_TEXT: Final = 1000
"""The longest text that such a pattern is tried on; the time grows with its square, to 7 s for 100,000 characters."""

MAX_REASON_LENGTH: Final = 300

MAX_POINTER_LENGTH: Final = 500

_LOG: Final = logging.getLogger("mcpgen.results")

# By $schema, without what people add to it or leave out; the class in the library, and the keyword that names schemas.
_DIALECTS: Final = {
    "json-schema.org/draft/2020-12/schema": ("Draft202012Validator", "$id"),
    "json-schema.org/draft/2019-09/schema": ("Draft201909Validator", "$id"),
    "json-schema.org/draft-07/schema": ("Draft7Validator", "$id"),
    "json-schema.org/draft-06/schema": ("Draft6Validator", "$id"),
    "json-schema.org/draft-04/schema": ("Draft4Validator", "id"),
}
_DEFAULT_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_T = TypeVar("_T")

Kind = Literal["missing", "misfit", "uncheckable"]


class _Matching(NamedTuple):
    """A way to compile the patterns of a schema, and the worst that matching then costs."""

    size_limit: int  # bytes of each compiled pattern; the time for a character is in proportion
    looks_around: bool
    text_units: int  # of the graph, each up to 50 ns: for a character we measured 10, 90 and 90 us at worst


# The first that compiles all patterns is taken. The second is for the likes of ^.{1,1000}$.
_MATCHINGS: Final = (
    _Matching(64 * 1024, looks_around=False, text_units=200),
    _Matching(1024 * 1024, looks_around=False, text_units=2000),
    _Matching(16 * 1024, looks_around=True, text_units=2000),
)


class ListedTool(Protocol):
    """A tool, as far as it matters here; those of any revision with output schemas are."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def output_schema(self) -> object:
        """What its structured content fits; UNSET if the server did not say."""
        ...


class _Finding(NamedTuple):
    """What is wrong with one result."""

    kind: Kind
    pointer: str
    reason: str


class OutputValidator:
    """The policy of one client, and the output schemas that its server listed."""

    def __init__(self, policy: Policy) -> None:
        """Follow *policy*.

        Raises:
            UsageError: There is no such policy, or the extra that it takes is not installed.
        """
        if policy not in get_args(Policy):
            raise UsageError(f"there is no policy {policy!r} for structured content; it is off, warn or strict")
        self._policy = policy
        self._library: Any = None if policy == "off" else _library(policy)
        self._listed: dict[str, bytes] = {}  # schemas as JSON; empty for one that is too large
        self._stale: set[str] = set()  # of an earlier listing: the first to go
        self._kept_bytes = 0
        self._full = False
        self._compiled: dict[str, _Compiled | SchemaRefused] = {}
        self._reported: set[tuple[str, Kind]] = set()

    @property
    def is_on(self) -> bool:
        """Whether anything is checked."""
        return self._policy != "off"

    def learn(self, tools: Iterable[ListedTool], *, is_first_page: bool = False) -> None:
        """Take a page of a listing; what it lists anew replaces what was known of these tools.

        With a first page a new listing begins. What the earlier one had stays until this one needs the room: a host
        that stops half-way did not hear that the rest is gone.
        """
        if self._policy == "off":
            return
        if is_first_page:
            self._stale = set(self._listed)
            self._full = False
        for tool in tools:
            self._keep(tool.name, _encoded(getattr(tool, "output_schema", UNSET)))

    def forget(self) -> None:
        """Forget all that was listed: the server says that it has changed."""
        self._listed.clear()
        self._stale.clear()
        self._compiled.clear()
        self._kept_bytes = 0
        self._full = False

    def check(self, revision: str, name: str, returned: Any, result: object = None) -> None:
        """Check what the tool *name* of a server that speaks *revision* returned.

        Results that say they are errors are not checked, nor are those of revisions without structured content.

        Args:
            revision: What the server speaks.
            name: The tool.
            returned: Its result in that revision's types, as `learn` got the tool.
            result: What an error should carry; *returned*, unless it is given.

        Raises:
            InvalidStructuredContent: It does not fit, or that cannot be known, and the policy is strict.
        """
        if not self.is_on or not hasattr(returned, "structured_content") or returned.is_error is True:
            return
        finding = self._finding(name, returned.structured_content)
        if finding is None:
            return
        if self._policy == "strict":
            raise InvalidStructuredContent(
                revision=revision,
                pointer=finding.pointer,
                tool=name,
                reason=finding.reason,
                result=returned if result is None else result,
            )
        if (name, finding.kind) not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add((name, finding.kind))
            place = f" at {finding.pointer}" if finding.pointer else ""
            _LOG.warning("structured content of the tool %r%s: %s", name[:100], place, finding.reason)

    def _keep(self, name: str, schema: bytes | None) -> None:
        self._stale.discard(name)
        known = self._listed.get(name)
        if known == schema:
            return
        if known is not None:
            self._drop(name)
        if schema is None:
            return
        size = len(name) + len(schema)
        while self._stale and self._lacks_room(size):
            self._drop(self._stale.pop())
        if self._lacks_room(size):
            self._full = True
            return
        self._listed[name] = schema
        self._kept_bytes += size

    def _lacks_room(self, size: int) -> bool:
        return len(self._listed) >= MAX_TOOLS or self._kept_bytes + size > MAX_KEPT_BYTES

    def _drop(self, name: str) -> None:
        self._kept_bytes -= len(name) + len(self._listed.pop(name))
        self._compiled.pop(name, None)

    def _finding(self, name: str, content: object) -> _Finding | None:
        schema = self._listed.get(name)
        if schema is None:
            if self._full and content is not UNSET:
                return _uncheckable("the server lists more schemas than are kept")
            return None
        if content is UNSET:
            return _Finding("missing", "", "there is none, but the tool has an output schema")
        compiled = self._compiled.pop(name, None)
        if compiled is None:
            try:
                compiled = _Compiled(self._library, schema)
            except SchemaRefused as error:
                compiled = error.with_traceback(None)
        self._compiled[name] = compiled  # the last, therefore
        if len(self._compiled) > MAX_COMPILED:
            del self._compiled[next(iter(self._compiled))]
        if isinstance(compiled, SchemaRefused):
            return _uncheckable(str(compiled))
        return compiled.finding(content)


class _Compiled:
    """A schema, ready to check with."""

    def __init__(self, library: Any, schema: bytes) -> None:
        self._library = library
        if not schema:
            raise SchemaRefused(f"its schema is nested too deep, or has more than {MAX_SCHEMA_BYTES} bytes")
        try:
            document = msgspec.json.decode(schema)
        except (ValueError, RecursionError):  # what we encoded ourselves, unless it is nested too deep
            raise SchemaRefused("its schema cannot be read") from None
        if not is_object(document):
            raise SchemaRefused("its schema is not an object")
        dialect, id_key = _dialect(document)
        try:
            self._graph = SchemaGraph(document, id_key=id_key)
        except SchemaRefused as error:
            raise SchemaRefused(f"its schema is not used: {error}") from None
        make: type[jsonschema_rs.Validator] = getattr(library, dialect)
        self._validator, self._matching = _validator(library, make, document)

    def finding(self, content: Any) -> _Finding | None:
        """Return what is wrong with *content*, if anything is."""
        try:
            size = len(msgspec.json.encode(content))
            longest = MAX_BACKTRACKING_TEXT if self._matching.looks_around else None
            may_explain = self._graph.admit(content, size, text_units=self._matching.text_units, longest_text=longest)
            if _guarded(self._validator.is_valid, content):
                return None
            if not may_explain:
                if self._matching.looks_around:
                    return _uncheckable("it does not fit, or a pattern takes too long; it is too large to say which")
                return _Finding("misfit", "", "it does not fit the schema, and is too large to say where")
            _guarded(self._validator.validate, content)
        except SchemaTooCostly as error:
            return _uncheckable(str(error))
        except SchemaRefused as error:
            return _uncheckable(str(error))
        except self._library.ValidationError as error:
            kinds = self._library.ValidationErrorKind
            if isinstance(error.kind, (kinds.BacktrackLimitExceeded, kinds.RegexEngineFailure)):
                return _uncheckable("a pattern of its schema takes too long")
            return _Finding("misfit", _shortened(pointer_to(error.instance_path), MAX_POINTER_LENGTH), _why(error))
        except (TypeError, ValueError, RecursionError) as error:
            return _uncheckable(f"it is no JSON that can be read: {_why(error)}")
        return _uncheckable("the library contradicts itself")


def _library(policy: str) -> Any:
    try:
        import jsonschema_rs  # noqa: PLC0415 (takes 20 ms, and comes with an extra)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"checking structured content ({policy}) needs the module {error.name!r}, which is not installed; "
            'install it with: pip install "mcpgen[validate]"'
        ) from error
    return jsonschema_rs


def _encoded(schema: object) -> bytes | None:
    """Return *schema* as JSON; nothing if it is too large, None if there is none."""
    if schema is UNSET:
        return None
    try:
        encoded = msgspec.json.encode(schema)
    except RecursionError:
        return b""
    return encoded if len(encoded) <= MAX_SCHEMA_BYTES else b""


def _dialect(document: dict[str, Any]) -> tuple[str, str]:
    named = document.get("$schema", _DEFAULT_DIALECT)
    if not isinstance(named, str):
        raise SchemaRefused("the dialect of its schema is not a text")
    known = _DIALECTS.get(named.removeprefix("https://").removeprefix("http://").removesuffix("#"))
    if known is None:
        raise SchemaRefused(f"the dialect of its schema is not supported: {_shortened(named, 100)!r}")
    return known


def _validator(
    library: Any, make: type[jsonschema_rs.Validator], document: dict[str, Any]
) -> tuple[jsonschema_rs.Validator, _Matching]:
    why = ""
    for matching in _MATCHINGS:
        if matching.looks_around:
            patterns = library.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, size_limit=matching.size_limit)
        else:
            patterns = library.RegexOptions(size_limit=matching.size_limit)
        try:
            # offline: neither the network nor files, whatever else the library was built to reach.
            made = _guarded(make, document, offline=True, validate_formats=False, pattern_options=patterns, mask="it")
        except ValueError as error:
            why = _why(error)
        else:
            return made, matching
    raise SchemaRefused(f"its schema is not valid: {why}")


def _guarded(function: Callable[..., _T], *arguments: object, **options: object) -> _T:
    """Call into the library; a defect that a server finds there must not end the client."""
    try:
        return function(*arguments, **options)
    except BaseException as error:
        # What Rust's panics become is no Exception, and can be named by nobody.
        if type(error).__name__ != "PanicException":
            raise
        raise SchemaRefused("the library failed at it") from error


def _uncheckable(reason: str) -> _Finding:
    return _Finding("uncheckable", "", f"cannot be checked: {reason}")


def _why(error: Exception) -> str:
    return _shortened(getattr(error, "message", None) or str(error), MAX_REASON_LENGTH)


def _shortened(text: str, length: int) -> str:
    # The server chose it, and it may end up on a terminal.
    shown = text if len(text) <= length else f"{text[: length - 1]}…"
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in shown)
