"""The vendored schema documents, each verified against its pinned hash.

``PINNED.toml`` lists the revisions, oldest first, with the hash of the official document and of the vendored one. A
document that does not have its pinned hash is never returned.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import msgspec

from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import parse_document
from mcpgen.codegen.names import MAX_LABEL_LENGTH

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from mcpgen.codegen.json_pointers import Json

__all__ = ["PINNED", "ExtensionPin", "Pin", "Pins", "SchemaRoom", "is_dated", "is_label", "load_pins"]

PINNED = "PINNED.toml"

_Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

# A label becomes a folder name in schema/, and as an identifier in generated/. So it has no path separators and no
# "..", does not start with a dot, and is not a device name, which Windows reserves with any suffix.
_LABEL = re.compile(r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z))[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*")
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The origin of one vendored document, and its hashes."""

    revision: str
    path: str = ""  # in the repository of the specification; empty if `schema add` did not get it
    commit: str = ""  # the last commit that changed the official file
    date: dt.date | None = None  # of that commit
    official_sha256: _Hash  # of the file with its prose
    sha256: _Hash  # of schema/<revision>/schema.json


class ExtensionPin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The origin of the vendored document of one extension, and its hashes."""

    name: str  # of its folders in schema/extensions/ and generated/extensions/
    id: str
    base: str  # the revision that it extends
    source: str  # where the official file is, with its version
    official_sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8,64}\Z")]  # of that file, or how it begins
    sha256: _Hash  # of schema/extensions/<name>/schema.json


class Pins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``PINNED.toml``."""

    repository: str
    document: tuple[Pin, ...] = ()  # oldest revision first; this order counts, not the labels
    extension: tuple[ExtensionPin, ...] = ()  # by name


def is_label(text: str) -> bool:
    """Whether *text* can be the label of a pinned revision. A label that looks like a date must be a date."""
    if len(text) > MAX_LABEL_LENGTH or _LABEL.fullmatch(text) is None:
        return False
    return not is_dated(text) or _is_date(text)


def is_dated(label: str) -> bool:
    """Whether *label* looks like a date, as the labels of released revisions do."""
    return _DATED.fullmatch(label) is not None


def load_pins(content: bytes) -> Pins:
    """Return the pins in *content*, the bytes of a ``PINNED.toml``.

    Raises:
        Refused: MG302, it is not TOML or does not have this structure.
    """
    try:
        pins = msgspec.convert(tomllib.loads(content.decode("utf-8")), Pins)
    # ValueError: not UTF-8, not TOML, or an integer with more digits than Python converts.
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise Refused([_unusable(str(error) or type(error).__name__)]) from error
    seen: set[str] = set()
    for pin in pins.document:
        if not is_label(pin.revision):
            raise Refused([_unusable(f"{pin.revision!a} is not a valid label of a revision")])
        if pin.revision in seen:
            raise Refused([_unusable(f"{pin.revision} is pinned twice")])
        seen.add(pin.revision)
    return pins


class SchemaRoom:
    """The vendored documents: those of the checkout around the working directory, else those of the package."""

    def __init__(self, root: Traversable | None = None) -> None:
        """Open the folder *root*, which contains ``PINNED.toml``.

        Raises:
            Refused: MG302, the pins are missing or not valid.
        """
        if root is None:
            checkout = find_checkout()
            root = files("mcpgen") / "schema" if checkout is None else checkout / "schema"
        self.root = root
        try:
            content = (root / PINNED).read_bytes()
        except OSError as error:
            raise Refused([_unusable(error.strerror or str(error), problem="cannot be read")]) from error
        self.pins: Pins = load_pins(content)

    @property
    def revisions(self) -> tuple[str, ...]:
        """The pinned revisions, oldest first."""
        return tuple(pin.revision for pin in self.pins.document)

    def pin(self, revision: str) -> Pin:
        """Return the pin of *revision*.

        Raises:
            Refused: MG303, it is not pinned.
        """
        for pin in self.pins.document:
            if pin.revision == revision:
                return pin
        known = ", ".join(self.revisions)
        finding = Diagnostic(code="MG303", message=f"there is no revision {revision!a}", hint=f"Use one of {known}.")
        raise Refused([finding])

    def address(self, revision: str) -> str:
        """Return a regular expression for the addresses of the official document of *revision*, at any commit.

        It is empty if the place of that document is not recorded.

        Raises:
            Refused: MG303, it is not pinned.
        """
        path, host = self.pin(revision).path, "https://github.com/"
        if not path or not self.pins.repository.startswith(host):
            return ""
        repository = re.escape(self.pins.repository.removeprefix(host))
        hosts = r"github\.com|raw\.githubusercontent\.com"
        return rf"https://(?:{hosts})/{repository}/[^#?]+/{re.escape(path)}"

    def document_bytes(self, revision: str) -> bytes:
        """Return the vendored document of *revision* in the canonical form in which it is stored.

        Raises:
            Refused: MG303, it is not vendored; MG301, the file is missing or does not have the recorded hash.
        """
        return self._verified(self.pin(revision).sha256, revision)

    def _verified(self, pinned: str, *folder: str) -> bytes:
        """Return the document in *folder*, after its hash is verified."""
        name = "/".join(("schema", *folder, "schema.json"))
        try:
            content = self.root.joinpath(*folder, "schema.json").read_bytes()
        except OSError as error:
            raise Refused([_changed(f"{name} cannot be read: {error.strerror or error}")]) from error
        if (found := sha256(content).hexdigest()) != pinned:
            raise Refused([_changed(f"{name} has sha256 {found[:12]}…, but {pinned[:12]}… is pinned")])
        return content

    @property
    def extensions(self) -> tuple[str, ...]:
        """The names of the pinned extensions."""
        return tuple(pin.name for pin in self.pins.extension)

    def extension_pin(self, name: str) -> ExtensionPin:
        """Return the pin of the extension *name*.

        Raises:
            Refused: MG303, it is not pinned.
        """
        for pin in self.pins.extension:
            if pin.name == name:
                return pin
        hint = f"Use one of {', '.join(self.extensions)}."
        raise Refused([Diagnostic(code="MG303", message=f"there is no extension {name!a}", hint=hint)])

    def extension_document(self, name: str) -> dict[str, Json]:
        """Return the vendored document of the extension *name*, after its hash is verified.

        Raises:
            Refused: MG303, it is not vendored; MG301, the file is missing or does not have the recorded hash.
        """
        content = self._verified(self.extension_pin(name).sha256, "extensions", name)
        return parse_document(content, name=f"schema/extensions/{name}/schema.json")

    def document(self, revision: str) -> dict[str, Json]:
        """Return the vendored document of *revision*, after its hash is verified.

        Raises:
            Refused: As ``document_bytes``.
        """
        return parse_document(self.document_bytes(revision), name=f"schema/{revision}/schema.json")

    def overlay_bytes(self, revision: str) -> bytes | None:
        """Return the overlay of *revision*, or None if it has none.

        Raises:
            Refused: MG303, the revision is not pinned.
        """
        overlay = self.root / self.pin(revision).revision / "overlay.toml"
        return overlay.read_bytes() if overlay.is_file() else None

    def docs_bytes(self) -> bytes | None:
        """Return ``docs.toml``, our descriptions of definitions and fields, or None if the file does not exist."""
        docs = self.root / "docs.toml"
        return docs.read_bytes() if docs.is_file() else None


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _unusable(reason: str, *, problem: str = "is not valid") -> Diagnostic:
    hint = "Restore schema/PINNED.toml from version control."
    return Diagnostic(code="MG302", message=f"{PINNED} {problem}: {reason}", hint=hint)


def _changed(message: str) -> Diagnostic:
    hint = "Restore the file from version control. Correct defects of a document in its overlay.toml."
    return Diagnostic(code="MG301", message=message, hint=hint)
