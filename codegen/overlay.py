"""What a schema document gets wrong or cannot say: ``schema/overlay.toml`` and ``schema/<revision>/overlay.toml``.

An overlay turns the vendored document into the *patched* one, which the bindings are generated from and the oracles
validate against. Every change states what it expects to find, so that an upstream fix makes it fail instead of rot.
A pointer is RFC 6901 with one addition: a ``*`` token stands for every key or index at its place.
"""

from __future__ import annotations

import copy
import json
import math
import re
import tomllib
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import MAX_DEPTH
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.places import Json, Place, objects, places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

_T = TypeVar("_T")

# It becomes a member of an enumeration. What Python and Enum use themselves (``import``, ``mro``) has no capitals.
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables of an overlay: a misspelt key is an error."""


class Patch(_Table, frozen=True, kw_only=True):
    """Replace *old* by *new* at each of *pointers*; without *old* there must be nothing yet."""

    pointers: list[str]
    old: Any = UNSET
    new: Any
    reason: str

    def __post_init__(self) -> None:
        _check_json(self.old)
        _check_json(self.new)


class Open(_Table, frozen=True, kw_only=True):
    """Mark the objects at *pointers* as open, where the document fails to: they keep keys that are not known."""

    pointers: list[str]
    reason: str


class Extract(_Table, frozen=True, kw_only=True):
    """Give the equal inline schemas at *pointers* a definition, under the *name* that later revisions use."""

    name: str
    pointers: list[str]
    reason: str


class MethodFacts(_Table, frozen=True, kw_only=True):
    """What the document does not say about a method."""

    result: str = ""  # the definition of its result, where it is not <Method>Result
    task_result: str = ""  # the definition of its result when the request asked for a task


class ErrorCode(_Table, frozen=True, kw_only=True):
    """An error code of the revision."""

    code: int
    name: str
    text: str

    def __post_init__(self) -> None:
        if not _ERROR_NAME.fullmatch(self.name):
            raise ValueError(f"the name of an error code has capitals, digits and underscores only, not {self.name!a}")


class Deprecation(_Table, frozen=True, kw_only=True):
    """Definitions that the revision deprecates."""

    names: list[str]
    reason: str


class Overlay(_Table, frozen=True, kw_only=True):
    """The overlay of one revision.

    Attributes:
        reserved_errors: The lowest and the highest reserved error code; only `errors` may define one of them.
        meta_keys: Reserved keys of ``_meta`` that the specification describes and the document lacks, and their texts.
    """

    era: Literal["handshake", "stateless"] = "handshake"
    reserved_errors: tuple[int, int] | None = None
    patch: list[Patch] = []
    open: list[Open] = []
    extract: list[Extract] = []
    methods: dict[str, MethodFacts] = {}
    errors: list[ErrorCode] = []
    deprecated: list[Deprecation] = []
    meta_keys: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.reserved_errors is not None and self.reserved_errors[0] > self.reserved_errors[1]:
            raise ValueError("reserved_errors has the highest code before the lowest")


class Capabilities(_Table, frozen=True, kw_only=True):
    """Which capability, as a path of keys, follows from serving a method."""

    server: dict[str, list[str]] = {}
    client: dict[str, list[str]] = {}


class SharedOverlay(_Table, frozen=True, kw_only=True):
    """What holds for every document, also for those that are not vendored."""

    open_properties: list[str] = []
    methods: dict[str, MethodFacts] = {}
    capabilities: Capabilities = Capabilities()
    errors: list[ErrorCode] = []


def load_overlay(file: Traversable) -> Overlay:
    """Read the overlay of a revision; a revision without the file has an empty one."""
    return _load(file, Overlay) if file.is_file() else Overlay()


def load_shared(file: Traversable) -> SharedOverlay:
    """Read the overlay that all documents share."""
    return _load(file, SharedOverlay)


def _load(file: Traversable, shape: type[_T]) -> _T:
    return read_toml(file, shape, code="MG312", hint="See CONTRIBUTING.md for the tables of an overlay.")


def read_toml(file: Traversable, shape: type[_T], *, code: str, hint: str) -> _T:
    """Read *file* as *shape*.

    Raises:
        Refused: With *code* and *hint*, it cannot be read, is not TOML, or not of that shape.
    """
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), shape)
    # ValueError: it is not TOML or not UTF-8, or an integer has more digits than Python converts.
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        reason = getattr(error, "strerror", None) or reason
        raise Refused([Diagnostic(code=code, message=f"{file.name}: {reason}", hint=hint)]) from error


def apply_overlay(document: dict[str, Any], overlay: Overlay, shared: SharedOverlay) -> dict[str, Any]:
    """Return *document* with both overlays applied: patches, then openness, then extracted definitions.

    Raises:
        Refused: A change did not find what it expects (MG310, MG311, MG313), one diagnostic for each.
    """
    applied = _Application(copy.deepcopy(document))
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
    """Return the vendored document of *revision* with its overlays applied: what the bindings are exact for.

    Raises:
        Refused: The revision is not pinned, its file is not the pinned one, or an overlay does not fit.
    """
    room = room or SchemaRoom()
    overlay = load_overlay(room.root / revision / "overlay.toml")
    return apply_overlay(room.document(revision), overlay, load_shared(room.root / "overlay.toml"))


class _Application:
    """One document while its overlay is applied."""

    def __init__(self, document: dict[str, Json]) -> None:
        self.document = document
        self.diagnostics: list[Diagnostic] = []
        self._keyword = "$defs" if "$defs" in document else "definitions"
        definitions = document.get(self._keyword)
        self._definitions = definitions if isinstance(definitions, dict) else {}

    def patch(self, patch: Patch) -> None:
        for place in self._places(patch.pointers):
            found = place.get()
            if not _is_same(found, patch.old):
                expected, actual = ("nothing" if each is UNSET else repr(each) for each in (patch.old, found))
                self._report("MG310", place.pointer, f"expected {expected}, found {actual} (patch: {patch.reason})")
                continue
            place.put(copy.deepcopy(patch.new))

    def open(self, opened: Open) -> None:
        for place in self._places(opened.pointers):
            node = self._followed(place.get())
            if not isinstance(node, dict) or "additionalProperties" in node:
                self._report("MG310", place.pointer, "expected an object that is not marked open yet")
                continue
            node["additionalProperties"] = {}

    def open_by_name(self, keys: list[str]) -> None:
        """Open the object schema of every property in *keys*, wherever it stands."""
        for node in list(objects(self.document)):
            properties = node.get("properties")
            found = properties if isinstance(properties, dict) else {}
            for key in keys:
                target = self._followed(found.get(key))
                if isinstance(target, dict) and target.get("properties"):
                    target.setdefault("additionalProperties", {})

    def extract(self, extract: Extract) -> None:
        for place in self._places(extract.pointers):
            found = place.get()
            if isinstance(found, UnsetType):
                self._report("MG311", place.pointer, f"there is nothing to extract as {extract.name}")
            elif not _is_same(self._definitions.setdefault(extract.name, found), found):
                self._report("MG313", place.pointer, f"differs from the schema extracted as {extract.name}")
            else:
                place.put({"$ref": f"#/{self._keyword}/{extract.name}"})

    def _followed(self, node: Json | UnsetType) -> Json | UnsetType:
        """Return the definition that *node* refers to, or *node*."""
        if isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            return self._definitions.get(ref.rsplit("/", 1)[-1])
        return node

    def _places(self, pointers: list[str]) -> Iterator[Place]:
        for pointer in pointers:
            found = places(self.document, pointer)
            if not found:
                self._report("MG311", pointer, "there is no such place in the document")
            yield from found

    def _report(self, code: str, pointer: str, message: str) -> None:
        hint = "Upstream may have changed the document: compare, then correct or delete this table of the overlay."
        self.diagnostics.append(Diagnostic(code=code, pointer=pointer, message=message, hint=hint))


def _is_same(one: object, other: object) -> bool:
    """Return whether both are the same JSON, in which 1, 1.0 and true are three values, or neither is there."""
    if one is UNSET or other is UNSET:
        return one is other
    texts = (json.dumps(each, sort_keys=True) for each in (one, other))
    return next(texts) == next(texts)


def _check_json(value: Json | UnsetType) -> None:
    """Refuse a *value* that no document can hold: TOML also has dates, times, infinities and NaN.

    Raises:
        ValueError: With the reason; msgspec adds where it stands.
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
                raise ValueError(f"JSON has no value like {found}")
