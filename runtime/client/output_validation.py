"""Checking the structured content of a tool against the output schema that its server listed.

The policy is ``off``, ``warn`` (log what is wrong, and return the result) or ``strict`` (raise, with the result). Only
tools that the caller has listed are checked: the client requests no list by itself.

Schema and content come from a server that may be hostile. Nothing is fetched. A schema that cannot be checked reliably
in bounded time (see `schema_cost`) is reported as uncheckable; it never counts as a schema that allows everything.
Patterns are matched in linear time; those with look-around get a limit on backtracking, and short texts only.

Dialects: 2020-12 (the default), 2019-09, draft-07, draft-06, draft-04. Formats are annotations.

Spec:
    2025-06-18, 2025-11-25 and 2026-07-28, server/tools, "Output Schema"; 2025-11-25 and 2026-07-28, basic/index, "JSON
    Schema Usage". docs/adr/0012 says why the default is ``off`` all the same.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import UNSET

from mcpgen.runtime.adapt.json_pointer import is_object, pointer_to
from mcpgen.runtime.client.keyword_cost import long_numbers
from mcpgen.runtime.client.schema_cost import SchemaGraph, SchemaRefused, SchemaTooCostly
from mcpgen.runtime.errors import InvalidStructuredContent, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import jsonschema_rs

__all__ = ["OutputValidator", "Policy"]

Policy = Literal["off", "warn", "strict"]
"""What to do about structured content that does not match its schema, or cannot be checked."""

MAX_SCHEMA_BYTES: Final = 256 * 1024
"""The size of the longest output schema that is checked. Results of a tool with a longer one are not checked."""

MAX_TOOLS: Final = 10_000
"""The largest number of tools whose output schema is stored."""

MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
"""The largest total size of the stored names and schemas."""

MAX_COMPILED: Final = 64
"""The number of compiled schemas that are kept: the last used ones. Each takes a megabyte or more."""

MAX_COMPILED_BYTES: Final = 64 * 1024 * 1024
"""About the memory that these may take together; the last used one may take more."""

MAX_PATTERN_BYTES: Final = 16 * 1024 * 1024
"""The largest total size of the compiled patterns of one schema: 100 of the longest take 100 MB, and 0.5 s."""

MAX_REPORTED: Final = 10_000
"""The largest number of warnings. There is one for each tool, and a server can list any number of tools."""

MAX_BACKTRACKS: Final = 500
"""The largest number of backtracks in one match of a pattern with look-around. Real patterns need a few dozen."""

MAX_BACKTRACKING_TEXT: Final = 1000
"""The longest text for such a pattern. The time grows with the square of its length: 7 s for 100,000 characters."""

MAX_REASON_LENGTH: Final = 300
MAX_POINTER_LENGTH: Final = 500

_LOG: Final = logging.getLogger("mcpgen.results")

# What a byte of a schema takes when it is compiled. Measured: 64 for short constants, and 50 for short subschemas.
_COMPILED_BYTES: Final = 64

# $schema without scheme and fragment: the class of the library, and the keyword that identifies a schema.
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
    """A way to compile the patterns of a schema, and the highest cost of matching them."""

    size_limit: int  # bytes of each compiled pattern; the time per character is proportional
    looks_around: bool
    text_units: int  # units of the schema graph per character; measured: 10, 90 and 90 µs at worst


# The first one that compiles all patterns is used. The second is for patterns such as ^.{1,1000}$.
_MATCHINGS: Final = (
    _Matching(64 * 1024, looks_around=False, text_units=200),
    _Matching(1024 * 1024, looks_around=False, text_units=2000),
    _Matching(16 * 1024, looks_around=True, text_units=2000),
)

_OUR_TEXTS: Final = {  # for kinds of errors whose text is unclear about a value that is named *it*
    "Contains": "too few or too many of its items match the schema of `contains`",
    "FalseSchema": "the schema is `false`, which accepts no value",
    "Format": "it is not a regular expression, or is too large",
    "Not": "it matches the schema of `not`",
}


class _Finding(NamedTuple):
    """A fault of one result."""

    kind: Kind
    pointer: str
    reason: str


class OutputValidator:
    """Checks the results of one client, by the output schemas that its server listed."""

    def __init__(self, policy: Policy) -> None:
        """Follow *policy*.

        Raises:
            UsageError: There is no such policy, or the extra that it needs is not installed.
        """
        if policy not in get_args(Policy):
            raise UsageError(f"`structured` is {policy!r}; it must be off, warn or strict")
        self._policy = policy
        self._library: Any = None if policy == "off" else _library(policy)
        self._listed: dict[str, bytes] = {}  # schemas as JSON; empty for one that is too long
        self._stale: set[str] = set()  # from an earlier listing: removed first if there is no room
        self._kept_bytes = 0
        self._full = False
        self._compiled: dict[str, _Compiled | SchemaRefused] = {}
        self._reported: set[tuple[str, Kind]] = set()

    @property
    def is_on(self) -> bool:
        """Whether results are checked."""
        return self._policy != "off"

    def learn(self, tools: Iterable[Any], *, is_first_page: bool = False) -> None:
        """Store the output schemas of one page of `tools/list`, whose *tools* are those of any revision.

        A first page begins a new listing. The tools of the earlier listing stay until there is no room: a caller that
        stops half-way does not know whether the other tools are gone.
        """
        if self._policy == "off":
            return
        if is_first_page:
            self._stale = set(self._listed)
            self._full = False
        for tool in tools:
            self._keep(tool.name, _encoded(getattr(tool, "output_schema", UNSET)))

    def forget(self) -> None:
        """Remove all schemas: the server has reported that its tools have changed."""
        self._listed.clear()
        self._stale.clear()
        self._compiled.clear()
        self._kept_bytes = 0
        self._full = False

    def prepare(self, name: str) -> bool:
        """Compile the schema of a tool, if there is one. Return whether that was necessary; it may take 100 ms."""
        schema = self._listed.get(name)
        if schema is None:
            return False
        compiled = self._compiled.pop(name, None)
        is_new = compiled is None
        if compiled is None:
            try:
                compiled = _Compiled(self._library, schema)
            except SchemaRefused as error:
                compiled = error.with_traceback(None)
        self._compiled[name] = compiled  # as the last one: the order is that of use
        while len(self._compiled) > MAX_COMPILED or (
            len(self._compiled) > 1 and sum(map(_memory, self._compiled.values())) > MAX_COMPILED_BYTES
        ):
            del self._compiled[next(iter(self._compiled))]
        return is_new

    def check(self, revision: str, name: str, returned: Any, result: object = None) -> None:
        """Check the result of a tool.

        Results with `isError`, and those of revisions without structured content, are not checked.

        Args:
            revision: The server's revision.
            name: The name of the tool.
            returned: The result in that revision's types.
            result: The result that the error carries; by default *returned*.

        Raises:
            InvalidStructuredContent: The content does not match or is uncheckable, and the policy is ``strict``.
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
        size = _kept_size(name, schema)
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
        self._kept_bytes -= _kept_size(name, self._listed.pop(name))
        self._compiled.pop(name, None)

    def _finding(self, name: str, content: object) -> _Finding | None:
        schema = self._listed.get(name)
        if schema is None:
            if self._full and content is not UNSET:
                return _uncheckable("the server lists too many or too large output schemas: some were not stored")
            return None
        if content is UNSET:
            return _Finding("missing", "", "the result has no structured content, but the tool has an output schema")
        self.prepare(name)
        compiled = self._compiled[name]
        if isinstance(compiled, SchemaRefused):
            return _uncheckable(str(compiled))
        return compiled.finding(content)


class _Compiled:
    """A compiled schema.

    Attributes:
        size_bytes: About what it takes in memory.
    """

    def __init__(self, library: Any, schema: bytes) -> None:
        self._library = library
        if not schema:
            raise SchemaRefused(f"the output schema is nested too deeply, or has more than {MAX_SCHEMA_BYTES} bytes")
        try:
            document = msgspec.json.decode(schema)
        except (ValueError, RecursionError):  # it is our own encoding, so it is nested too deeply
            raise SchemaRefused("the output schema is nested too deeply") from None
        if not is_object(document):
            raise SchemaRefused("the output schema is not a JSON object")
        dialect, id_key = _dialect(document)
        try:
            self._graph = SchemaGraph(document, id_key=id_key)
        except SchemaRefused as error:
            raise SchemaRefused(f"the output schema is not supported: {error}") from None
        make: type[jsonschema_rs.Validator] = getattr(library, dialect)
        count = len(self._graph.patterns)
        self._validator, self._matching = _validator(library, make, document, MAX_PATTERN_BYTES // max(count, 1))
        self.size_bytes: int = _COMPILED_BYTES * len(schema) + count * self._matching.size_limit

    def finding(self, content: Any) -> _Finding | None:
        """Return the fault of *content*; None if it matches the schema."""
        try:
            encoded = msgspec.json.encode(content)
            longest = MAX_BACKTRACKING_TEXT if self._matching.looks_around else None
            numbers, units = long_numbers(content, encoded), self._matching.text_units
            may_explain = self._graph.admit(content, len(encoded), numbers, text_units=units, longest=longest)
            if _guarded(self._validator.is_valid, content):
                return None
            if not may_explain:
                if self._matching.looks_around:
                    return _uncheckable(
                        "either the content does not match the schema, or matching a `pattern` took too long; the "
                        "client cannot find out which, because the content is too large or nested too deeply"
                    )
                reason = "it does not match the schema; it is too large, or nested too deeply, to find out where"
                return _Finding("misfit", "", reason)
            _guarded(self._validator.validate, content)
        except (SchemaTooCostly, SchemaRefused) as error:
            return _uncheckable(str(error))
        except self._library.ValidationError as error:
            kinds = self._library.ValidationErrorKind
            if isinstance(error.kind, (kinds.BacktrackLimitExceeded, kinds.RegexEngineFailure)):
                return _uncheckable("matching a `pattern` of the output schema takes too long")
            return _Finding("misfit", _shortened(pointer_to(error.instance_path), MAX_POINTER_LENGTH), _why(error))
        except (TypeError, ValueError, RecursionError) as error:
            return _uncheckable(f"it is not valid JSON: {_why(error)}")
        return _uncheckable("the JSON Schema validator (jsonschema_rs) gave contradictory results")


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
    """Return *schema* as JSON; empty if it is too long, None if there is none."""
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
        raise SchemaRefused("the dialect of the output schema (`$schema`) is not a string")
    known = _DIALECTS.get(named.removeprefix("https://").removeprefix("http://").removesuffix("#"))
    if known is None:
        raise SchemaRefused(f"the dialect of the output schema is not supported: {_shortened(named, 100)!r}")
    return known


def _validator(
    library: Any, make: type[jsonschema_rs.Validator], document: dict[str, Any], pattern_bytes: int
) -> tuple[jsonschema_rs.Validator, _Matching]:
    why = ""
    for each in _MATCHINGS:
        matching = each._replace(size_limit=min(each.size_limit, pattern_bytes))
        patterns = library.RegexOptions(size_limit=matching.size_limit)
        if matching.looks_around:
            patterns = library.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, size_limit=matching.size_limit)
        try:
            # offline: neither network nor files, however the library was built.
            made = _guarded(make, document, offline=True, validate_formats=False, pattern_options=patterns, mask="it")
        except ValueError as error:
            why, place = _why(error), _shortened(pointer_to(getattr(error, "instance_path", ())), MAX_POINTER_LENGTH)
            why = f"the value at {place}{why[2:]}" if place and why.startswith("it ") else why
        else:
            return made, matching
    raise SchemaRefused(f"the output schema cannot be used: {why}")


def _guarded(function: Callable[..., _T], *arguments: object, **options: object) -> _T:
    """Call the library. A server that finds a defect in it must not end the client."""
    try:
        return function(*arguments, **options)
    except BaseException as error:
        # A panic in Rust becomes a BaseException, whose class the library does not export.
        if type(error).__name__ != "PanicException":
            raise
        raise SchemaRefused("the JSON Schema validator (jsonschema_rs) crashed") from error


def _kept_size(name: str, schema: bytes) -> int:
    return sys.getsizeof(name) + len(schema)  # one emoji makes each character of a name four bytes long


def _memory(compiled: _Compiled | SchemaRefused) -> int:
    return 0 if isinstance(compiled, SchemaRefused) else compiled.size_bytes


def _uncheckable(reason: str) -> _Finding:
    return _Finding("uncheckable", "", f"it cannot be checked: {reason}")


def _why(error: Exception) -> str:
    ours = _OUR_TEXTS.get(type(getattr(error, "kind", None)).__name__)
    return ours or _shortened(getattr(error, "message", None) or str(error), MAX_REASON_LENGTH)


def _shortened(text: str, length: int) -> str:
    # The text comes from the server, and may be printed on a terminal.
    shown = text if len(text) <= length else f"{text[: length - 1]}…"
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in shown)
