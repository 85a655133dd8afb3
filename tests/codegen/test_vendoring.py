"""Vendoring a document overwrites nothing of anybody else, and loses nothing, whoever comes at the same time."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from mcpgen.codegen import vendoring
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.pinned import PINNED, Pin, SchemaRoom
from mcpgen.codegen.vendoring import vendor

SCHEMA = Path(str(files("mcpgen"))) / "schema"
CONTENT = b'{"$defs": {}}\n'
HASH = sha256(CONTENT).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the schema room."""
    shutil.copytree(SCHEMA, tmp_path / "schema")
    return tmp_path / "schema"


def add(folder: Path, label: str = "DRAFT", *, room: SchemaRoom | None = None) -> bool:
    pin = Pin(revision=label, official_sha256=HASH, sha256=HASH)
    return vendor(room or SchemaRoom(folder), folder, pin, CONTENT)


def refused(folder: Path, label: str = "DRAFT") -> str:
    """Return the code of the one finding about an attempt that must change nothing."""
    before = content_of(folder.parent)
    with pytest.raises(Refused) as caught:
        add(folder, label)
    (finding,) = caught.value.diagnostics

    assert before == content_of(folder.parent)
    assert finding.hint
    return finding.code


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def test_a_document_of_ones_own_that_is_not_pinned_is_not_overwritten(folder: Path) -> None:
    (folder / "DRAFT").mkdir()
    (folder / "DRAFT" / "schema.json").write_bytes(b"mine")

    assert "MG307" == refused(folder)


def test_a_document_whose_pin_a_killed_process_did_not_come_to_write_is_pinned(folder: Path) -> None:
    (folder / "DRAFT").mkdir()
    (folder / "DRAFT" / "schema.json").write_bytes(CONTENT)

    assert add(folder)
    assert "DRAFT" in SchemaRoom(folder).revisions


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", ["DRAFT", "DRAFT/schema.json"])
def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path, name: str, *, dangling: bool) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    if not dangling:
        (tmp_path / "elsewhere").mkdir()

    assert "MG307" == refused(folder)


@pytest.mark.parametrize("label", ["CON", "nul", "2027-13-45"])
def test_a_label_that_is_reserved_or_only_looks_like_a_date_is_refused(folder: Path, label: str) -> None:
    assert "MG304" == refused(folder, label)


def test_who_comes_second_waits_and_sees_what_the_first_has_pinned(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, pinning, going_on = vendoring._write, threading.Event(), threading.Event()

    def write_slowly(target: Path, content: bytes) -> None:
        if target.name == PINNED and not pinning.is_set():
            pinning.set()
            assert going_on.wait(10)
        write(target, content)

    monkeypatch.setattr(vendoring, "_write", write_slowly)
    room = SchemaRoom(folder)  # which both have read before either has written
    first, second = (
        threading.Thread(target=add, args=(folder, label), kwargs={"room": room}) for label in ("FIRST", "SECOND")
    )
    first.start()
    assert pinning.wait(10)
    second.start()
    second.join(0.2)
    waits = second.is_alive()
    going_on.set()
    first.join(10)
    second.join(10)

    assert waits
    assert ("FIRST", "SECOND") == SchemaRoom(folder).revisions[-2:]
    with pytest.raises(Refused, match="MG305"):
        vendor(room, folder, Pin(revision="FIRST", official_sha256=HASH, sha256=HASH), b"{}")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["schema.json", PINNED])
def test_an_interrupt_waits_until_the_document_is_pinned(
    folder: Path, name: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = vendoring._write

    def write_interrupted(target: Path, content: bytes) -> None:
        if when == "after":
            write(target, content)
        if target.name == name:
            os.kill(os.getpid(), signal.SIGINT)
        if when == "before":
            write(target, content)

    monkeypatch.setattr(vendoring, "_write", write_interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            add(folder)
    finally:
        signal.signal(signal.SIGINT, before)

    assert CONTENT == SchemaRoom(folder).document_bytes("DRAFT")
    assert ["schema.json"] == [path.name for path in (folder / "DRAFT").iterdir()]
