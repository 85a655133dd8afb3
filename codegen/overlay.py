"""Overlays: corrections and additions to schema documents, in ``schema/[<revision>/]overlay.toml``.

An overlay turns the vendored document into the *patched* document. The bindings are generated from it, and the oracle
tests validate against it. A patch states the value that it replaces, and each pointer must match something, so an entry
that does not fit a new document stops the build. A pointer is RFC 6901 with one addition: the token ``*`` matches every
key or index.
"""

from __future__ import annotations

import copy
import json
import math
import re
import tomllib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import MAX_DEPTH, MAX_DOCUMENT_BYTES
from mcpgen.codegen.json_pointers import Json, Location, locations, objects
from mcpgen.codegen.keywords import shown
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

_T = TypeVar("_T")

Era: TypeAlias = Literal["handshake", "stateless"]
"""How peers agree on the revision: once with ``initialize``, or in every request."""

# The name becomes a member of an enum. Keywords and names of Enum itself (``import``, ``mro``) have no capitals.
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables of an overlay. An unknown key is an error."""


class Patch(_Table, frozen=True, kw_only=True):
    """Replace *old* by *new* at each of *pointers*. Without *old*, there must be no value yet."""

    pointers: list[str]
    old: Any = UNSET
    new: Any
    reason: str

    def __post_init__(self) -> None:
        _check_json(self.old)
        _check_json(self.new)


class Open(_Table, frozen=True, kw_only=True):
    """Mark the objects at *pointers* as open, so that they keep unknown keys; the document does not mark them."""

    pointers: list[str]
    reason: str


class Extract(_Table, frozen=True, kw_only=True):
    """Replace the equal inline schemas at *pointers* by a definition *name*, the name that later revisions use."""

    name: str
    pointers: list[str]
    reason: str


class MethodFacts(_Table, frozen=True, kw_only=True):
    """Facts about a method that the document lacks."""

    sender: Literal["", "client", "server"] = ""  # of a message of an extension that no union of a direction lists
    result: str = ""  # the definition of its result, if it is not <Method>Result
    task_result: str = ""  # the definition of its result if the request runs as a task


class ErrorCode(_Table, frozen=True, kw_only=True):
    """An error code of the revision."""

    code: int
    name: str
    text: str

    def __post_init__(self) -> None:
        if not _ERROR_NAME.fullmatch(self.name):
            raise ValueError(
                f"the `name` of an error code must have only capitals, digits and underscores, but is {self.name!a}"
            )


class Deprecation(_Table, frozen=True, kw_only=True):
    """Definitions that the revision deprecates."""

    names: list[str]
    reason: str


class Capabilities(_Table, frozen=True, kw_only=True):
    """The capability, as a path of keys, that a peer declares when it serves a method."""

    server: dict[str, list[str]] = {}
    client: dict[str, list[str]] = {}


class Overlay(_Table, frozen=True, kw_only=True):
    """The overlay of one revision.

    Attributes:
        reserved_errors: The lowest and the highest reserved error code; only `errors` may define one of them.
        meta_keys: Reserved keys of ``_meta`` that the specification describes and the document lacks, and their texts.
        models_only: Whether the messages of an extension go neither to nor from MCP clients and servers.
    """

    era: Era = "handshake"
    reserved_errors: tuple[int, int] | None = None
    patch: list[Patch] = []
    open: list[Open] = []
    extract: list[Extract] = []
    methods: dict[str, MethodFacts] = {}
    capabilities: Capabilities = Capabilities()
    errors: list[ErrorCode] = []
    deprecated: list[Deprecation] = []
    meta_keys: dict[str, str] = {}
    models_only: bool = False

    def __post_init__(self) -> None:
        if self.reserved_errors is not None and self.reserved_errors[0] > self.reserved_errors[1]:
            raise ValueError("the first code in `reserved_errors` must not be higher than the second")


class SharedOverlay(_Table, frozen=True, kw_only=True):
    """The overlay for every document, including those that are not vendored."""

    open_properties: list[str] = []
    methods: dict[str, MethodFacts] = {}
    capabilities: Capabilities = Capabilities()
    errors: list[ErrorCode] = []


def load_overlay(file: Traversable) -> Overlay:
    """Read the overlay of a revision; return an empty one if the file does not exist."""
    return _load(file, Overlay) if file.is_file() else Overlay()


def load_shared(file: Traversable) -> SharedOverlay:
    """Read the overlay that all documents share."""
    return _load(file, SharedOverlay)


def _load(file: Traversable, shape: type[_T]) -> _T:
    return read_toml(file, shape, code="MG312", hint="CONTRIBUTING.md describes the tables of an overlay.")


def read_toml(
    file: Traversable,
    shape: type[_T],
    *,
    code: str,
    hint: str,
    loads: Callable[[str], dict[str, Any]] = tomllib.loads,
) -> _T:
    """Read *file* as *shape*, with *loads*.

    Raises:
        Refused: With *code* and *hint*, the file cannot be read, is not TOML, does not have that structure, or is
            longer than a schema document may be.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES:
            message = f"{file} is larger than {MAX_DOCUMENT_BYTES} bytes"
            raise Refused([Diagnostic(code=code, message=message, hint="Check that this is the right file.")])
        return msgspec.convert(loads(content.decode("utf-8")), shape)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror or error}"
        raise Refused([Diagnostic(code=code, message=message, hint="Check the path.")]) from error
    except tomllib.TOMLDecodeError as error:
        raise Refused([Diagnostic(code=code, message=f"{file.name} is not valid TOML: {error}", hint=hint)]) from error
    except UnicodeDecodeError as error:
        message = f"{file.name} is not UTF-8, at byte {error.start}"
        raise Refused([Diagnostic(code=code, message=message, hint="Save the file as UTF-8.")]) from error
    # ValueError: an integer with more digits than Python converts.
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else _with_choices(str(error))
        raise Refused([Diagnostic(code=code, message=f"{file.name}: {reason}", hint=hint)]) from error


def _with_choices(reason: str) -> str:
    """Return *reason* with the values that are allowed at its place; msgspec does not name them."""
    key = re.search(r"Invalid enum value .*\.(\w+)`$", reason)
    choices = {"era": get_args(Era), "sender": ("client", "server")}.get(key[1], ()) if key else ()
    return f"{reason}; use {' or '.join(choices)}" if choices else reason


def apply_overlay(document: dict[str, Any], overlay: Overlay, shared: SharedOverlay) -> dict[str, Any]:
    """Return *document* with both overlays applied: patches, then openness, then extracted definitions.

    Raises:
        Refused: With a diagnostic (MG310, MG311, MG313) for each entry that does not find what it expects.
    """
    applied = OverlayApplication(copy.deepcopy(document))
    for patch in overlay.patch:
        applied.patch(patch)
    applied.open_by_name(shared.open_properties)
    for each in overlay.open:
        applied.open(each)
    for extract in overlay.extract:
        applied.extract(extract)
    if applied.diagnostics:
        raise Refused(applied.diagnostics)
    return applied.document


def patched_document(revision: str, room: SchemaRoom | None = None) -> dict[str, Any]:
    """Return the vendored document of *revision* with its overlays applied. The bindings are exact for it.

    Raises:
        Refused: The revision is not vendored, its file does not have the recorded hash, or an overlay does not fit.
    """
    room = room or SchemaRoom()
    overlay = load_overlay(room.root / revision / "overlay.toml")
    return apply_overlay(room.document(revision), overlay, load_shared(room.root / "overlay.toml"))


class OverlayApplication:
    """The application of overlays to one document; collects a diagnostic for each entry that does not fit."""

    def __init__(self, document: dict[str, Json]) -> None:
        self.document = document
        self.diagnostics: list[Diagnostic] = []
        self._keyword = "$defs" if "$defs" in document else "definitions"
        definitions = document.get(self._keyword)
        self._definitions = definitions if isinstance(definitions, dict) else {}

    def patch(self, patch: Patch) -> None:
        """Replace values."""
        for place in self._locations(patch.pointers):
            found = place.get()
            if not _is_same(found, patch.old):
                expected, actual = (_shown(each) for each in (patch.old, found))
                self._report("MG310", place.pointer, f"expected {expected}, but found {actual} (patch: {patch.reason})")
                continue
            place.put(copy.deepcopy(patch.new))

    def open(self, opened: Open) -> None:
        """Mark objects as open."""
        for place in self._locations(opened.pointers):
            node = self._followed(place.get())
            if isinstance(node, UnsetType):
                self._report("MG311", place.pointer, "the pointer matches nothing in the document")
                continue
            if not isinstance(node, dict) or "additionalProperties" in node:
                self._report("MG310", place.pointer, "expected an object schema without `additionalProperties`")
                continue
            node["additionalProperties"] = {}

    def open_by_name(self, keys: list[str]) -> None:
        """Mark the object schema of each property in *keys* as open, anywhere in the document."""
        for node in list(objects(self.document)):
            properties = node.get("properties")
            found = properties if isinstance(properties, dict) else {}
            for key in keys:
                target = self._followed(found.get(key))
                if isinstance(target, dict) and target.get("properties"):
                    target.setdefault("additionalProperties", {})

    def extract(self, extract: Extract) -> None:
        """Replace inline schemas by a definition."""
        for place in self._locations(extract.pointers):
            found = place.get()
            if isinstance(found, UnsetType):
                self._report("MG311", place.pointer, f"there is no schema to extract as {extract.name}")
            elif not _is_same(self._definitions.setdefault(extract.name, found), found):
                self._report("MG313", place.pointer, f"this schema differs from the one extracted as {extract.name}")
            else:
                place.put({"$ref": f"#/{self._keyword}/{extract.name}"})

    def _followed(self, node: Json | UnsetType) -> Json | UnsetType:
        """Return the definition that *node* refers to, or *node*."""
        if isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            return self._definitions.get(ref.rsplit("/", 1)[-1])
        return node

    def _locations(self, pointers: list[str]) -> Iterator[Location]:
        for pointer in pointers:
            if not pointer.startswith("/"):
                hint = "Write a JSON Pointer (RFC 6901), such as /$defs/Tool/type."
                message = f"the pointer {shown(pointer)} does not begin with a slash"
                self.diagnostics.append(Diagnostic(code="MG311", message=message, hint=hint))
                continue
            found = locations(self.document, pointer)
            if not found:
                self._report("MG311", pointer, "the pointer matches nothing in the document")
            yield from found

    def _report(self, code: str, pointer: str, message: str) -> None:
        hint = "The document may have changed. Compare, then correct or delete this table of the overlay."
        self.diagnostics.append(Diagnostic(code=code, pointer=pointer, message=message, hint=hint))


def _is_same(one: object, other: object) -> bool:
    """Whether both are equal JSON, apart from descriptions, or absent. 1, 1.0 and true are three different values."""
    if one is UNSET or other is UNSET:
        return one is other
    texts = (json.dumps(_without_prose(each), sort_keys=True) for each in (one, other))
    return next(texts) == next(texts)


def _without_prose(value: object) -> object:
    """Return *value* without descriptions: a text under that key. A property of that name has a schema."""
    if isinstance(value, list):
        return [_without_prose(each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, object]", value).items()
    return {key: _without_prose(each) for key, each in found if key != "description" or not isinstance(each, str)}


def _shown(value: object) -> str:
    return "nothing" if value is UNSET else json.dumps(_without_prose(value), ensure_ascii=True)


def _check_json(value: Json | UnsetType) -> None:
    """Refuse a *value* that JSON cannot express: TOML also has dates, times, infinities and NaN.

    Raises:
        ValueError: With the reason. msgspec adds the place.
    """
    pending: list[tuple[Json | UnsetType, int]] = [(value, 1)]
    while pending:
        found, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"a value is nested more than {MAX_DEPTH} levels deep")
        match found:
            case dict():
                pending += ((each, depth + 1) for each in found.values())
            case list():
                pending += ((each, depth + 1) for each in found)
            case float() if math.isfinite(found):
                pass
            case str() | int() | None | UnsetType():  # a bool is an int
                pass
            case _:
                raise ValueError(f"JSON cannot express {found}")
