"""The schema room: which documents are pinned, and proof that they are what they were.

``PINNED.toml`` names every revision, oldest first, with the hash of the official document and that of the vendored one.
A document whose bytes do not have the pinned hash is never handed out.
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

__all__ = ["PINNED", "Pin", "Pins", "SchemaRoom", "is_dated", "is_label", "load_pins"]

PINNED = "PINNED.toml"

_Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

# A label becomes a folder's name, here and (made an identifier) in generated/: no separators, no "..", not hidden, and
# none of the names of devices, which Windows reserves with any suffix.
_LABEL = re.compile(r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z))[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*")
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where one vendored document comes from, and the hashes that hold it in place."""

    revision: str
    path: str = ""  # in the upstream repository; empty where `schema add` was not told
    commit: str = ""  # the last one that changed the official file
    date: dt.date | None = None  # of that commit
    official_sha256: _Hash  # of the file with its prose
    sha256: _Hash  # of schema/<revision>/schema.json


class Pins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``PINNED.toml``."""

    repository: str
    document: tuple[Pin, ...] = ()  # oldest revision first: this is the order of the revisions, whatever their labels


def is_label(text: str) -> bool:
    """Say whether *text* can be the label of a pinned revision; what looks like a date has to be one."""
    if len(text) > MAX_LABEL_LENGTH or _LABEL.fullmatch(text) is None:
        return False
    return not is_dated(text) or _is_date(text)


def is_dated(label: str) -> bool:
    """Say whether *label* is that of a released revision, which is a date."""
    return _DATED.fullmatch(label) is not None


def load_pins(content: bytes) -> Pins:
    """Return what *content*, the bytes of a ``PINNED.toml``, says.

    Raises:
        Refused: MG302, it is not TOML, or not of this shape.
    """
    try:
        pins = msgspec.convert(tomllib.loads(content.decode("utf-8")), Pins)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise Refused([_unusable(str(error) or type(error).__name__)]) from error
    seen: set[str] = set()
    for pin in pins.document:
        if not is_label(pin.revision):
            raise Refused([_unusable(f"{pin.revision!a} cannot be the label of a revision")])
        if pin.revision in seen:
            raise Refused([_unusable(f"{pin.revision} is pinned twice")])
        seen.add(pin.revision)
    return pins


class SchemaRoom:
    """The vendored documents, read from the checkout if there is one around the working directory, else the package."""

    def __init__(self, root: Traversable | None = None) -> None:
        """Open the room at *root*, a folder that holds ``PINNED.toml``.

        Raises:
            Refused: MG302, the pins are missing or cannot be understood.
        """
        if root is None:
            checkout = find_checkout()
            root = files("mcpgen") / "schema" if checkout is None else checkout / "schema"
        self.root = root
        try:
            content = (root / PINNED).read_bytes()
        except OSError as error:
            raise Refused([_unusable(str(error))]) from error
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
        finding = Diagnostic(code="MG303", message=f"there is no revision {revision!a}", hint=f"There are {known}.")
        raise Refused([finding])

    def document_bytes(self, revision: str) -> bytes:
        """Return the vendored document of *revision* as it is stored, which is canonical form.

        Raises:
            Refused: MG303, it is not pinned; MG301, the file is missing or does not have the pinned hash.
        """
        pin = self.pin(revision)
        name = f"schema/{revision}/schema.json"
        try:
            content = (self.root / revision / "schema.json").read_bytes()
        except OSError as error:
            raise Refused([_changed(f"{name} cannot be read: {error.strerror or error}")]) from error
        if (found := sha256(content).hexdigest()) != pin.sha256:
            raise Refused([_changed(f"{name} has sha256 {found[:12]}…, not {pin.sha256[:12]}… as pinned")])
        return content

    def document(self, revision: str) -> dict[str, Json]:
        """Return the vendored document of *revision*, proven to have the pinned hash.

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
        """Return ``docs.toml``, our words for definitions and fields, or None where the room has none."""
        docs = self.root / "docs.toml"
        return docs.read_bytes() if docs.is_file() else None


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _unusable(reason: str) -> Diagnostic:
    hint = "Restore schema/PINNED.toml from version control."
    return Diagnostic(code="MG302", message=f"{PINNED} cannot be used: {reason}", hint=hint)


def _changed(message: str) -> Diagnostic:
    hint = "Restore the file: a defect of the document is patched in overlay.toml, never in place."
    return Diagnostic(code="MG301", message=message, hint=hint)
