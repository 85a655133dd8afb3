"""Putting a new document into the schema room, or proving that one equals what is there."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.canonical import canonical_bytes, reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.document import check_document, check_mcp, parse_document, read_bytes
from mcpgen.codegen.json_pointers import Json
from mcpgen.codegen.keywords import shown
from mcpgen.codegen.output import signals_held
from mcpgen.codegen.pinned import PINNED, Pin, Pins, SchemaRoom, is_dated, is_label

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

if sys.platform != "win32":
    import fcntl

__all__ = ["Candidate", "candidate", "differences", "pins_bytes", "vendor"]

_IN_THE_WAY = (FileExistsError, IsADirectoryError, NotADirectoryError)
_OUT_OF_THE_WAY = "Move it away, or choose another label; nothing was changed."


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A document that has been read and reduced."""

    document: dict[str, Json]  # without prose
    content: bytes  # the same in canonical form
    official_sha256: str  # of the file as it was
    warnings: tuple[Diagnostic, ...]


def candidate(path: Path) -> Candidate:
    """Return the document in the file at *path*, reduced.

    Raises:
        Refused: The file cannot be read, is not a schema that can be generated from, or defines no MCP messages.
    """
    official = read_bytes(path)
    document = parse_document(official, name=str(path))
    found = check_document(document)
    if not any(finding.code == "MG010" for finding in found):
        found += check_mcp(document)
    if any(finding.severity == "error" for finding in found):
        raise Refused(found)
    reduced = reduce(document)
    return Candidate(
        document=reduced,
        content=canonical_bytes(reduced),
        official_sha256=sha256(official).hexdigest(),
        warnings=tuple(found),
    )


def vendor(room: SchemaRoom, folder: Path, pin: Pin, content: bytes) -> bool:
    """Write *content* as the document of ``pin.revision``, and pin it; say whether anything had to be written.

    Nothing is changed unless everything is: the document is written first, and counts only once it is pinned. Where
    two do this at once, the second waits for the first and sees what it has pinned.

    Args:
        room: The schema room, which is read again.
        folder: Where the room is.
        pin: The new pin.
        content: The document in canonical form.

    Raises:
        Refused: MG304, the label cannot be used; MG305, the revision has other content; MG307, it cannot be written,
            or somebody else's document is in its place.
    """
    try:
        with _alone(folder):
            return _vendor(SchemaRoom(room.root), folder / pin.revision / "schema.json", pin, content)
    except OSError as error:
        message = f"cannot write {error.filename or folder}: {error.strerror or error}"
        hint = _OUT_OF_THE_WAY if isinstance(error, _IN_THE_WAY) else "Make the folder writable; nothing was changed."
        raise Refused([Diagnostic(code="MG307", message=message, hint=hint)]) from error


def _vendor(room: SchemaRoom, target: Path, pin: Pin, content: bytes) -> bool:
    if pin.revision in room.revisions:
        if room.document_bytes(pin.revision) == content:
            return False
        message = f"revision {pin.revision} is already vendored, and this document differs from it"
        hint = f"See how with: mcpgen schema verify {pin.revision} FILE. A pinned document does not change."
        raise Refused([Diagnostic(code="MG305", message=message, hint=hint)])
    _check_label(pin.revision, room)
    _check_place(target, content)
    new_folder, new_document = not target.parent.exists(), not target.exists()
    with signals_held():
        target.parent.mkdir(exist_ok=True)
        try:
            _write(target, content)
            _write(target.parents[1] / PINNED, pins_bytes(_with(room.pins, pin)))
        except BaseException:
            if new_document:
                target.unlink(missing_ok=True)
            if new_folder:
                target.parent.rmdir()
            raise
    return True


def pins_bytes(pins: Pins) -> bytes:
    """Return *pins* as the text of ``PINNED.toml``."""
    lines = [*_HEADER, f"repository = {_toml(pins.repository)}"]
    for pin in pins.document:
        lines += ["", "[[document]]", f"revision = {_toml(pin.revision)}"]
        lines += [f"{name} = {_toml(text)}" for name, text in (("path", pin.path), ("commit", pin.commit)) if text]
        lines += [f"date = {pin.date.isoformat()}"] if pin.date else []
        lines += [f"official_sha256 = {_toml(pin.official_sha256)}", f"sha256 = {_toml(pin.sha256)}"]
    return ("\n".join(lines) + "\n").encode("utf-8")


def differences(ours: Json, theirs: Json) -> Iterator[Diagnostic]:
    """Yield where *theirs* differs from *ours*, in the order of ours; 1, 1.0 and true are three values."""
    pending: list[tuple[Json, Json, tuple[str | int, ...]]] = [(ours, theirs, ())]
    while pending:
        left, right, path = pending.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            yield from (_differs("is missing in the file", (*path, key)) for key in left if key not in right)
            yield from (_differs("is only in the file", (*path, key)) for key in right if key not in left)
            shared = [key for key in left if key in right]
            if shared != [key for key in right if key in left]:
                yield _differs("has its keys in another order in the file", path)
            pending += ((left[key], right[key], (*path, key)) for key in reversed(shared))
        elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            pending += ((left[index], right[index], (*path, index)) for index in reversed(range(len(left))))
        elif isinstance(left, list) and isinstance(right, list):
            yield _differs(f"has {len(left)} items here and {len(right)} in the file", path)
        elif type(left) is not type(right) or left != right:
            yield _differs(f"is {shown(left)} here and {shown(right)} in the file", path)


_HEADER = (
    "# The schema documents that the bindings are generated from, oldest revision first.",
    "#",
    "# `path`, `commit` and `date`: where upstream keeps the official document, and the commit that last changed it.",
    "# `official_sha256` is the hash of the official file; `sha256` is that of schema/<revision>/schema.json, the same",
    "# document without its prose in canonical form (codegen/canonical.py). `mcpgen schema add` writes this file.",
    "",
)


def _toml(text: str) -> str:
    # Basic strings of TOML are JSON strings but for U+007F, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with(pins: Pins, pin: Pin) -> Pins:
    """Return *pins* with *pin* in its place: dated revisions by date, before drafts, which stay in order of arrival."""
    after = 0
    for index, other in enumerate(pins.document):
        if is_dated(other.revision) and not (is_dated(pin.revision) and pin.revision < other.revision):
            after = index + 1
    if not is_dated(pin.revision):
        after = len(pins.document)
    return msgspec.structs.replace(pins, document=(*pins.document[:after], pin, *pins.document[after:]))


def _check_label(label: str, room: SchemaRoom) -> None:
    if not is_label(label):
        message = f"{shown(label)} cannot be the label of a revision"
        hint = (
            f"Use a date (2025-11-25), or up to {names.MAX_LABEL_LENGTH} ASCII letters and digits with single dots and "
            "hyphens between them, but no name that Windows reserves, like CON or NUL."
        )
        raise Refused([Diagnostic(code="MG304", message=message, hint=hint)])
    taken = {names.package(revision).casefold(): revision for revision in room.revisions}
    if other := taken.get(names.package(label).casefold()):
        message = f"{label} would share the generated package {names.package(label)} with revision {other}"
        raise Refused([Diagnostic(code="MG304", message=message, hint="Choose another label.")])


def _check_place(target: Path, content: bytes) -> None:
    """Refuse to write over what somebody has in the place of the document, or elsewhere through a link."""
    for path in (target.parent, target):
        if path.is_symlink():
            message = f"{path} is a link: a document is not written through it"
            raise Refused([Diagnostic(code="MG307", message=message, hint=_OUT_OF_THE_WAY)])
    # Equal content is what a process that was killed before it could write the pin has left.
    if target.exists() and target.read_bytes() != content:
        message = f"{target} is there already, and not pinned: it is not ours to overwrite"
        raise Refused([Diagnostic(code="MG307", message=message, hint=_OUT_OF_THE_WAY)])


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Wait until no other process adds to *folder*, and let none do so until the block is left.

    The lock is the folder's own and goes with the process, so that none is ever left behind. Windows has no such lock;
    there, two that come within the same instant are not told apart.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(target: Path, content: bytes) -> None:
    """Write *content* beside *target*, then rename: whoever reads it sees the old content or the new, never half."""
    handle, aside = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(aside).chmod(0o644)  # mkstemp keeps its files private
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _differs(message: str, path: tuple[str | int, ...]) -> Diagnostic:
    hint = "Where upstream changed a published document, look at the change and vendor it deliberately."
    return Diagnostic(code="MG306", pointer=pointer_to(*path), message=message, hint=hint)
