"""Add a new document to ``schema/``, or compare a file with a vendored document."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from hashlib import sha256
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.canonical import canonical_bytes, reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.document import check_document, check_mcp, parse_document, read_bytes
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.extension_document import Base, completed, linked
from mcpgen.codegen.json_pointers import Json
from mcpgen.codegen.keywords import shown
from mcpgen.codegen.output import signals_held
from mcpgen.codegen.overlay import Overlay, load_shared
from mcpgen.codegen.pinned import PINNED, ExtensionPin, Pin, Pins, SchemaRoom, is_dated, is_label

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

if sys.platform != "win32":
    import fcntl

__all__ = ["Candidate", "candidate", "differences", "extension_candidate", "pins_bytes", "vendor", "vendor_extension"]

_IN_THE_WAY = (FileExistsError, IsADirectoryError, NotADirectoryError)
_OUT_OF_THE_WAY = "Move it away, or choose another label or name. Nothing was changed."


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A document that has been read and reduced."""

    document: dict[str, Json]  # without descriptions
    content: bytes  # the document in canonical form
    official_sha256: str  # of the original file
    warnings: tuple[Diagnostic, ...]


def candidate(path: Path) -> Candidate:
    """Return the document in the file at *path*, reduced.

    Raises:
        Refused: The file cannot be read, is not a supported schema, or does not define MCP messages.
    """
    official = read_bytes(path)
    document = parse_document(official, name=str(path))
    found = check_document(document)
    if not any(finding.code == "MG010" for finding in found):
        found += check_mcp(document)
    if any(finding.severity == "error" for finding in found):
        raise Refused(found)
    return _candidate(document, official, found)


def extension_candidate(path: Path, room: SchemaRoom, base: str) -> Candidate:
    """Return the document of an extension of *base* in the file at *path*, reduced.

    Raises:
        Refused: The file cannot be read, or the document is not a supported schema together with that of *base*.
    """
    official = read_bytes(path)
    document = parse_document(official, name=str(path))
    if found := [each for each in check_document(document) if each.code == "MG010"]:
        raise Refused(found)
    whole = completed(document, Base.of(room, base), Overlay(), load_shared(room.root / "overlay.toml"))
    found = check_document(linked(simplified(whole)))
    if any(finding.severity == "error" for finding in found):
        raise Refused(found)
    return _candidate(document, official, found)


def _candidate(document: dict[str, Json], official: bytes, warnings: list[Diagnostic]) -> Candidate:
    reduced = reduce(document)
    return Candidate(
        document=reduced,
        content=canonical_bytes(reduced),
        official_sha256=sha256(official).hexdigest(),
        warnings=tuple(warnings),
    )


def vendor(room: SchemaRoom, folder: Path, pin: Pin, content: bytes) -> bool:
    """Write *content* as the document of ``pin.revision`` and pin it. Return False if this is already done.

    The change is atomic: the document is written first and has no effect until its hash is recorded. If two
    processes do this at the same time, the second waits for the first and sees its pin.

    Args:
        room: The schema room. It is read again under the lock.
        folder: The folder of the room.
        pin: The new pin.
        content: The document in canonical form.

    Raises:
        Refused: MG304, the label is not valid; MG305, the revision has other content; MG307, the document cannot be
            written, or a file without a recorded hash is in its place.
    """
    with _changing(folder):
        return _vendor(SchemaRoom(room.root), folder / pin.revision / "schema.json", pin, content)


def vendor_extension(room: SchemaRoom, folder: Path, pin: ExtensionPin, content: bytes, *, replace: bool) -> bool:
    """Write *content* as the document of the extension ``pin.name`` and pin it. Return False if this is already done.

    Args:
        room: The schema room. It is read again under the lock.
        folder: The folder of the room.
        pin: The new pin.
        content: The document in canonical form.
        replace: Whether the document may replace that of another version, with its pin.

    Raises:
        Refused: MG304, the name is not valid or the identifier has another name; MG305, the extension has another
            document or pin, and *replace* is false; MG307, as in `vendor`.
    """
    target = folder / "extensions" / pin.name / "schema.json"
    with _changing(folder):
        return _vendor_extension(SchemaRoom(room.root), target, pin, content, replace=replace)


@contextmanager
def _changing(folder: Path) -> Generator[None]:
    """Hold the lock on *folder*, and report an error of the file system as MG307."""
    try:
        with _alone(folder):
            yield
    except OSError as error:
        message = f"cannot write {error.filename or folder}: {error.strerror or error}"
        hint = _OUT_OF_THE_WAY if isinstance(error, _IN_THE_WAY) else "Make the folder writable. Nothing was changed."
        raise Refused([Diagnostic(code="MG307", message=message, hint=hint)]) from error


def _vendor(room: SchemaRoom, target: Path, pin: Pin, content: bytes) -> bool:
    if pin.revision in room.revisions:
        if room.document_bytes(pin.revision) == content:
            return False
        message = f"schema/ already has another document for the revision {pin.revision}, and it must not change"
        hint = (
            f"`mcpgen schema verify {pin.revision} FILE` shows the differences. To add a draft, choose another label."
        )
        raise Refused([Diagnostic(code="MG305", message=message, hint=hint)])
    _check_label(pin.revision, room)
    _check_place(target, content)
    _store(target, content, target.parents[1] / PINNED, _with(room.pins, pin))
    return True


def _vendor_extension(room: SchemaRoom, target: Path, pin: ExtensionPin, content: bytes, *, replace: bool) -> bool:
    _check_name(pin, room)
    others = [each for each in room.pins.extension if each.name != pin.name]
    known = next((each for each in room.pins.extension if each.name == pin.name), None)
    if known == pin and target.exists() and target.read_bytes() == content:
        return False
    if known is not None and not replace:
        raise Refused([_other_version(known, pin)])
    _check_place(target, None if known else content)
    extensions = tuple(sorted((*others, pin), key=lambda each: each.name))
    pins = msgspec.structs.replace(room.pins, extension=extensions)
    _store(target, content, target.parents[2] / PINNED, pins)
    return True


def _other_version(known: ExtensionPin, pin: ExtensionPin) -> Diagnostic:
    """Return why *pin* does not replace *known*, the pin of the same extension."""
    message = f"schema/ already has another document for the extension {pin.name}"
    hint = f"`mcpgen schema verify {pin.name} FILE` shows the differences. Add `--replace` to replace the document."
    differing = [each for each in ("base", "source", "official_sha256") if getattr(known, each) != getattr(pin, each)]
    if known.sha256 == pin.sha256 and differing:  # `schema verify` shows no difference
        listed = ", ".join(f"`{each}`" for each in differing)
        message = f"schema/{PINNED} already records the document of the extension {pin.name}, with another {listed}"
        hint = "Add `--replace` to replace this record."
    return Diagnostic(code="MG305", message=message, hint=hint)


def _store(target: Path, content: bytes, pinned: Path, pins: Pins) -> None:
    """Write *content* to *target*, then *pins* to *pinned*; restore *target* if that fails."""
    before = target.read_bytes() if target.exists() else None
    new_folder = not target.parent.exists()
    with signals_held():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write(target, content)
            _write(pinned, pins_bytes(pins))
        except BaseException:
            if before is None:
                target.unlink(missing_ok=True)
            else:
                _write(target, before)
            if new_folder:
                target.parent.rmdir()
            raise


def pins_bytes(pins: Pins) -> bytes:
    """Return *pins* as the text of ``PINNED.toml``."""
    lines = [*_HEADER, f"repository = {_toml(pins.repository)}"]
    for pin in pins.document:
        lines += ["", "[[document]]", f"revision = {_toml(pin.revision)}"]
        lines += [f"{name} = {_toml(text)}" for name, text in (("path", pin.path), ("commit", pin.commit)) if text]
        lines += [f"date = {pin.date.isoformat()}"] if pin.date else []
        lines += [f"official_sha256 = {_toml(pin.official_sha256)}", f"sha256 = {_toml(pin.sha256)}"]
    for each in pins.extension:
        lines += ["", "[[extension]]"]
        lines += [f"{name} = {_toml(text)}" for name, text in msgspec.structs.asdict(each).items()]
    return ("\n".join(lines) + "\n").encode("utf-8")


def differences(ours: Json, theirs: Json) -> Iterator[Diagnostic]:
    """Yield a finding for each difference of *theirs* from *ours*. 1, 1.0 and true are three different values."""
    pending: list[tuple[Json, Json, tuple[str | int, ...]]] = [(ours, theirs, ())]
    while pending:
        left, right, path = pending.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            yield from (_differs("this key is missing in the file", (*path, key)) for key in left if key not in right)
            yield from (_differs("this key is only in the file", (*path, key)) for key in right if key not in left)
            shared = [key for key in left if key in right]
            if shared != [key for key in right if key in left]:
                yield _differs("the keys have another order in the file", path)
            pending += ((left[key], right[key], (*path, key)) for key in reversed(shared))
        elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            pending += ((left[index], right[index], (*path, index)) for index in reversed(range(len(left))))
        elif isinstance(left, list) and isinstance(right, list):
            yield _differs(f"the document in schema/ has {len(left)} items here, and the file has {len(right)}", path)
        elif type(left) is not type(right) or left != right:
            yield _differs(f"the document in schema/ has {shown(left)} here, and the file has {shown(right)}", path)


_HEADER = (
    "# The schema documents that the bindings are generated from, oldest revision first.",
    "#",
    "# `path` is the place in the repository of the specification; `commit` and `date` are those of the last change.",
    "# `official_sha256` is the hash of the official file. `sha256` is the hash of schema/<revision>/schema.json: the",
    "# document without descriptions, in canonical form (codegen/canonical.py). `mcpgen schema add` writes this file.",
    "# An extension extends the revision `base`; of its official file, only the beginning of the hash may be known.",
    "",
)


def _toml(text: str) -> str:
    # Basic strings of TOML are JSON strings, except that TOML requires an escape for U+007F.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with(pins: Pins, pin: Pin) -> Pins:
    """Return *pins* with *pin* added: dated revisions by date, then drafts in the order in which they were added."""
    after = 0
    for index, other in enumerate(pins.document):
        if is_dated(other.revision) and not (is_dated(pin.revision) and pin.revision < other.revision):
            after = index + 1
    if not is_dated(pin.revision):
        after = len(pins.document)
    return msgspec.structs.replace(pins, document=(*pins.document[:after], pin, *pins.document[after:]))


def _check_label(label: str, room: SchemaRoom) -> None:
    if not is_label(label):
        message = f"{shown(label)} is not a valid label of a revision"
        hint = (
            f"Use a date (2025-11-25), or at most {names.MAX_LABEL_LENGTH} ASCII letters and digits, separated by "
            "single dots or hyphens. Do not use a name that Windows reserves, such as CON or NUL."
        )
        raise Refused([Diagnostic(code="MG304", message=message, hint=hint)])
    taken = {names.package(revision).casefold(): revision for revision in room.revisions}
    if other := taken.get(names.package(label).casefold()):
        message = f"{label} and the revision {other} would use the same generated package {names.package(label)}"
        raise Refused([Diagnostic(code="MG304", message=message, hint="Choose another label.")])


def _check_name(pin: ExtensionPin, room: SchemaRoom) -> None:
    """Refuse a name that cannot be that of a package, or that another document has."""
    name = pin.name
    if not (is_label(name.replace("_", "-")) and name.isidentifier() and name == names.snake(name)) or iskeyword(name):
        message = f"{shown(name)} is not a valid name of an extension"
        hint = "Use ASCII letters in lower case, digits and single underscores, and start with a letter."
        raise Refused([Diagnostic(code="MG304", message=message, hint=hint)])
    if name in room.revisions:
        hint = "Choose another name."
        raise Refused([Diagnostic(code="MG304", message=f"{name} is the label of a revision", hint=hint)])
    for each in room.pins.extension:
        if (each.name == name) != (each.id == pin.id):
            message = f"schema/ has the extension {each.id} under the name {each.name}"
            hint = (
                f"To add a version of this extension, give the name {each.name} and `--id {each.id}`. To add another "
                "extension, choose a new name and a new identifier."
            )
            raise Refused([Diagnostic(code="MG304", message=message, hint=hint)])


def _check_place(target: Path, content: bytes | None) -> None:
    """Refuse to overwrite a file that this command did not write, or to write through a link.

    *content* is what a file there may have; None stands for any content.
    """
    for path in (target.parent, target):
        if path.is_symlink():
            message = f"{path} is a symbolic link, and the document is not written through links"
            raise Refused([Diagnostic(code="MG307", message=message, hint=_OUT_OF_THE_WAY)])
    # Equal content is left from a process that was killed before it wrote the pin.
    if content is not None and target.exists() and target.read_bytes() != content:
        message = f"{target} exists already and has no recorded hash, so it is not overwritten"
        raise Refused([Diagnostic(code="MG307", message=message, hint=_OUT_OF_THE_WAY)])


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Hold a lock on *folder*, so that only one process at a time adds a document.

    The lock is on the folder itself and ends with the process, so no stale lock can remain. Windows has no such lock:
    there, two processes that start in the same instant can conflict.
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
    """Write *content* to a file beside *target*, then rename it, so that a reader never sees half of it."""
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
    hint = (
        "If the official document has changed, review the change, then add the new document with `mcpgen schema add`. "
        "For a revision, choose another label. For an extension, add `--replace`."
    )
    return Diagnostic(code="MG306", pointer=pointer_to(*path), message=message, hint=hint)
