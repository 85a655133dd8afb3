"""What a schema document gets wrong or cannot say: ``schema/overlay.toml`` and ``schema/<revision>/overlay.toml``.

An overlay turns the vendored document into the *patched* one, which the bindings are generated from and the oracles
validate against. Every change states what it expects to find, so that an upstream fix makes it fail instead of rot.
A pointer is RFC 6901 with one addition: a ``*`` token stands for every key or index at its place.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from typing import Any, Literal, TypeVar

import msgspec

from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.pinned import SchemaRoom


_T = TypeVar("_T", bound=msgspec.Struct)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables of an overlay: a misspelt key is an error."""


class Patch(_Table, frozen=True, kw_only=True):
    """Replace *old* by *new* at each of *pointers*; without *old* there must be nothing yet."""

    pointers: list[str]
    old: Any = msgspec.UNSET
    new: Any
    reason: str


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


class Deprecation(_Table, frozen=True, kw_only=True):
    """Definitions that the revision deprecates."""

    names: list[str]
    reason: str


class Overlay(_Table, frozen=True, kw_only=True):
    """The overlay of one revision."""

    era: Literal["handshake", "stateless"] = "handshake"
    patch: list[Patch] = []
    open: list[Open] = []
    extract: list[Extract] = []
    methods: dict[str, MethodFacts] = {}
    errors: list[ErrorCode] = []
    deprecated: list[Deprecation] = []


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
    """Read *file* as *shape*; MG312 if it cannot be understood."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), shape)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        hint = "See CONTRIBUTING.md for the tables of an overlay."
        raise Refused([Diagnostic(code="MG312", message=f"{file.name}: {error}", hint=hint)]) from error


def apply_overlay(document: dict[str, Any], overlay: Overlay, shared: SharedOverlay) -> dict[str, Any]:
    """Return *document* with both overlays applied: patches, then openness, then extracted definitions.

    Raises:
        Refused: A change did not find what it expects (MG310, MG311, MG313), one diagnostic for each.
    """
    applied = _Application(copy.deepcopy(document))
    for patch in overlay.patch:
        applied.patch(patch)
    applied.open_by_name(frozenset(shared.open_properties))
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

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.diagnostics: list[Diagnostic] = []
        self._keyword = "$defs" if "$defs" in document else "definitions"

    def patch(self, patch: Patch) -> None:
        for pointer in patch.pointers:
            for holder, key, where in self._places(pointer):
                found = holder[key] if _has(holder, key) else msgspec.UNSET
                if found != patch.old or type(found) is not type(patch.old):
                    expected = "nothing" if patch.old is msgspec.UNSET else repr(patch.old)
                    actual = "nothing" if found is msgspec.UNSET else repr(found)
                    self._report("MG310", where, f"expected {expected}, found {actual} (patch: {patch.reason})")
                    continue
                holder[key] = copy.deepcopy(patch.new)

    def open(self, opened: Open) -> None:
        for pointer in opened.pointers:
            for holder, key, where in self._places(pointer):
                node = self._follow(holder[key]) if _has(holder, key) else None
                if not isinstance(node, dict) or "additionalProperties" in node:
                    self._report("MG310", where, "expected an object that is not marked open yet")
                    continue
                node["additionalProperties"] = {}

    def open_by_name(self, keys: frozenset[str]) -> None:
        """Open the object schema of every property in *keys*, wherever it stands."""
        for node in list(_nodes(self.document)):
            properties = node.get("properties")
            if not isinstance(properties, dict):
                continue
            for key in keys & properties.keys():
                target = self._follow(properties[key])
                if isinstance(target, dict) and target.get("properties"):
                    target.setdefault("additionalProperties", {})

    def extract(self, extract: Extract) -> None:
        definitions = self.document[self._keyword]
        target = {"$ref": f"#/{self._keyword}/{extract.name}"}
        for pointer in extract.pointers:
            for holder, key, where in self._places(pointer):
                if not _has(holder, key):
                    self._report("MG311", where, f"there is nothing to extract as {extract.name}")
                    continue
                found = holder[key]
                if definitions.setdefault(extract.name, found) != found:
                    self._report("MG313", where, f"differs from the schema extracted as {extract.name}")
                    continue
                holder[key] = dict(target)

    def _follow(self, node: Any) -> Any:
        """Return what *node* refers to, or *node*."""
        if isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            return self.document[self._keyword].get(ref.rsplit("/", 1)[-1])
        return node

    def _places(self, pointer: str) -> Iterator[tuple[Any, Any, str]]:
        """Yield (container, key, pointer) of each place that *pointer* names; the last key need not exist."""
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
        places = list(_walk(self.document, tokens, ()))
        if not places:
            self._report("MG311", pointer, "there is no such place in the document")
        yield from places

    def _report(self, code: str, pointer: str, message: str) -> None:
        hint = "Upstream may have changed the document: compare, then correct or delete this table of the overlay."
        self.diagnostics.append(Diagnostic(code=code, pointer=pointer, message=message, hint=hint))


def _walk(node: Any, tokens: list[str], path: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, str]]:
    token, rest = tokens[0], tokens[1:]
    keys: list[Any]
    if isinstance(node, list):
        keys = [*range(len(node))] if token == "*" else [int(token)] if token.isdigit() else []
    elif isinstance(node, dict):
        keys = sorted(node) if token == "*" else [token]
    else:
        keys = []
    for key in keys:
        if not rest:
            yield node, key, pointer_to(*path, key)
        elif _has(node, key):
            yield from _walk(node[key], rest, (*path, key))


def _has(node: Any, key: Any) -> bool:
    return key < len(node) if isinstance(node, list) else key in node


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object inside *node*, itself included, sorted by key."""
    if isinstance(node, dict):
        yield node
        for key in sorted(node):
            yield from _nodes(node[key])
    elif isinstance(node, list):
        for each in node:
            yield from _nodes(each)
