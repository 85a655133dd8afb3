"""The schema room and its pins."""

from __future__ import annotations

import shutil
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.pinned import PINNED, SchemaRoom, is_label, load_pins
from mcpgen.codegen.vendoring import pins_bytes

SCHEMA = Path(str(files("mcpgen"))) / "schema"

# From upstream's repository, where each can be looked up: schema/<revision>/schema.json at the pinned commit.
OFFICIAL = {
    "2024-11-05": "61cea2392d4f284092d09bc84b9ac488c0d5618ac2b38a56942fc5b99fd960ce",
    "2025-03-26": "e720669548c8100a4282c49e580efd6ddf7f28899ea786fc8db251dbdb356131",
    "2025-06-18": "af845e7e5b9d27107d1690f0936022546177a1403e63ffb11470135b296a2e01",
    "2025-11-25": "268a5f82ba70fd7e4b6dc4aa1e64f116f74b4d0edcb69dc046829c79dd4e97e7",
    "2026-07-28": "ef70b61f99b6d2e5e3b46863822eab08dff6a45bedc7a08914e0e5b133f40203",
}


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A copy of the schema room."""
    shutil.copytree(SCHEMA, tmp_path / "schema")
    return tmp_path / "schema"


def codes(refused: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [finding.code for finding in refused.value.diagnostics]


def test_the_released_revisions_are_pinned_oldest_first() -> None:
    room = SchemaRoom(SCHEMA)

    released = {name: room.pin(name).official_sha256 for name in room.revisions if name in OFFICIAL}
    assert list(released.items()) == list(OFFICIAL.items())


def test_every_vendored_file_has_its_pinned_hash() -> None:
    room = SchemaRoom(SCHEMA)

    for pin in room.pins.document:
        assert sha256((SCHEMA / pin.revision / "schema.json").read_bytes()).hexdigest() == pin.sha256
        assert room.document_bytes(pin.revision) == (SCHEMA / pin.revision / "schema.json").read_bytes()


def test_every_folder_with_a_document_is_pinned() -> None:
    assert {path.parent.name for path in SCHEMA.glob("*/schema.json")} == set(SchemaRoom(SCHEMA).revisions)


def test_the_package_carries_the_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    room = SchemaRoom()

    assert room.document("2025-11-25") == SchemaRoom(SCHEMA).document("2025-11-25")


def test_the_checkout_around_the_working_directory_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: Path
) -> None:
    (tmp_path / ".package" / "mcpgen").mkdir(parents=True)
    (tmp_path / ".package" / "mcpgen" / "__init__.py").touch()
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "docs" / "deep")

    assert find_checkout() == tmp_path
    assert SchemaRoom().root == room


@pytest.mark.parametrize("missing", [".package/mcpgen/__init__.py", "schema/PINNED.toml"])
def test_a_folder_that_only_resembles_the_project_is_no_checkout(tmp_path: Path, missing: str) -> None:
    for mark in (".package/mcpgen/__init__.py", "schema/PINNED.toml"):
        (tmp_path / mark).parent.mkdir(parents=True)
        (tmp_path / mark).touch()
    (tmp_path / missing).unlink()

    assert find_checkout(tmp_path) is None


def test_a_changed_document_is_not_handed_out(room: Path) -> None:
    path = room / "2025-11-25" / "schema.json"
    path.write_bytes(path.read_bytes() + b"\n")

    with pytest.raises(Refused) as caught:
        SchemaRoom(room).document("2025-11-25")

    assert codes(caught) == ["MG301"]


def test_a_missing_document_is_a_diagnostic(room: Path) -> None:
    (room / "2025-11-25" / "schema.json").unlink()

    with pytest.raises(Refused) as caught:
        SchemaRoom(room).document("2025-11-25")

    assert codes(caught) == ["MG301"]


def test_an_unknown_revision_says_which_exist() -> None:
    with pytest.raises(Refused) as caught:
        SchemaRoom(SCHEMA).pin("2025-11-26")

    assert codes(caught) == ["MG303"]
    assert all(revision in caught.value.diagnostics[0].hint for revision in OFFICIAL)


def test_a_room_without_pins_is_a_diagnostic(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        SchemaRoom(tmp_path)

    assert codes(caught) == ["MG302"]


PIN = f'[[document]]\nrevision = "a"\nofficial_sha256 = "{"0" * 64}"\nsha256 = "{"0" * 64}"\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "repository = ",
        f"repository = {'1' * 5000}",
        f"repository = 1\n{PIN}",
        f'repository = "r"\n{PIN}surprise = 1\n',
        f'repository = "r"\n{PIN.replace("0", "O", 1)}',
        f'repository = "r"\n{PIN}{PIN}',
        f'repository = "r"\n{PIN.replace(chr(34) + "a" + chr(34), chr(34) + "../a" + chr(34))}',
        'repository = "\x80"',
    ],
)
def test_pins_that_cannot_be_understood_are_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        load_pins(text.encode("latin-1"))

    assert codes(caught) == ["MG302"]


def test_pins_are_written_as_they_are_read() -> None:
    content = (SCHEMA / PINNED).read_bytes()

    assert pins_bytes(load_pins(content)) == content


@pytest.mark.parametrize(
    ("label", "usable"),
    [
        ("2025-11-25", True),
        ("DRAFT", True),
        ("DRAFT-2026-v1", True),
        ("draft.2", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a..b", False),
        ("../a", False),
        ("a/b", False),
        ("a\\b", False),
        (".hidden", False),
        ("-rf", False),
        ("a-", False),
        ("a b", False),
        ("a\n", False),
        ("é", False),
        ("٣", False),
        ("a" * 81, False),
        ("CON", False),  # what Windows reserves, whatever the case and the suffix
        ("nul", False),
        ("Aux.2", False),
        ("com1", False),
        ("LPT9.x.y", False),
        ("CONE", True),
        ("nul-2", True),
        ("com10", True),
        ("2028-02-29", True),
        ("2027-13-45", False),  # looks like a date
        ("2027-02-29", False),
        ("0000-01-01", False),
        ("2027-13-45-draft", True),
    ],
)
def test_labels_cannot_leave_their_folder(label: str, usable: bool) -> None:  # noqa: FBT001
    assert is_label(label) is usable


def test_overlay_and_docs_are_optional(room: Path) -> None:
    (room / "2025-11-25" / "overlay.toml").write_bytes(b"x = 1\n")
    (room / "docs.toml").write_bytes(b"y = 1\n")
    opened = SchemaRoom(room)
    assert (opened.overlay_bytes("2025-11-25"), opened.docs_bytes()) == (b"x = 1\n", b"y = 1\n")
    (room / "2025-11-25" / "overlay.toml").unlink()
    (room / "docs.toml").unlink()

    assert (opened.overlay_bytes("2025-11-25"), opened.docs_bytes()) == (None, None)
