"""A file is replaced at once or not at all, and a copy of what it was is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpgen import UsageError
from mcpgen.runtime.cli.hosts.file_replacement import FileSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(b"old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_the_new_content_is_there_and_the_old_one_beside_it(file: Path, tmp_path: Path) -> None:
    file.chmod(0o660)
    backup = FileSnapshot(file).replace(b"new")

    assert backup is not None
    assert (b"new", b"old", "config.json.bak") == (file.read_bytes(), backup.read_bytes(), backup.name)
    assert ["config.json", "config.json.bak"] == names(tmp_path)
    if os.name == "posix":
        assert [0o660, 0o660] == [stat.S_IMODE(each.stat().st_mode) for each in (file, backup)]


def test_no_backup_is_overwritten(file: Path, tmp_path: Path) -> None:
    for number in range(3):
        FileSnapshot(file).replace(f"{number}".encode())

    assert ["config.json", "config.json.bak", "config.json.bak1", "config.json.bak2"] == names(tmp_path)
    assert [b"old", b"0", b"1"] == [(tmp_path / each).read_bytes() for each in names(tmp_path)[1:]]


def test_a_new_file_is_only_for_its_user_and_has_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "config.json"

    assert FileSnapshot(file).replace(b"new") is None
    assert ["config.json"] == names(tmp_path)
    if os.name == "posix":
        assert 0o600 == stat.S_IMODE(file.stat().st_mode)


def test_a_link_stays_and_what_it_leads_to_is_replaced(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.json"
    link.symlink_to(file)
    snapshot = FileSnapshot(link)
    snapshot.replace(b"new")

    assert (file, True, b"new") == (snapshot.path, link.is_symlink(), file.read_bytes())
    assert ["link.json"] == names(folder)


def test_a_link_to_a_file_that_is_not_there_yet_makes_that_file(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "config.json")
    FileSnapshot(link).replace(b"new")

    assert (True, b"new") == (link.is_symlink(), (tmp_path / "config.json").read_bytes())


def _append(path: Path) -> None:
    path.write_bytes(b"old and more")


CHANGES: dict[str, Callable[[Path], object]] = {
    "is written": _append,
    "is removed": Path.unlink,
    "is emptied": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_has_changed_meanwhile_stays_as_it_is(change: str, file: Path, tmp_path: Path) -> None:
    snapshot = FileSnapshot(file)
    CHANGES[change](file)
    now = [(each.name, each.read_bytes()) for each in tmp_path.iterdir()]

    with pytest.raises(UsageError, match=r"config\.json has changed meanwhile, so nothing was written; try again"):
        snapshot.replace(b"new")
    assert now == [(each.name, each.read_bytes()) for each in tmp_path.iterdir()]


def test_a_file_that_changes_while_its_copy_is_written_stays_as_it_is(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = FileSnapshot(file)
    synced: list[int] = []

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:  # of the new content, and of the copy
            file.write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UsageError, match="has changed meanwhile"):
        snapshot.replace(b"new")
    assert [(file.name, b"theirs")] == [(each.name, each.read_bytes()) for each in tmp_path.iterdir()]


def test_a_file_that_has_come_meanwhile_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    snapshot = FileSnapshot(file)
    file.write_bytes(b"theirs")

    with pytest.raises(UsageError, match="has changed meanwhile"):
        snapshot.replace(b"new")
    assert (b"theirs", ["config.json"]) == (file.read_bytes(), names(tmp_path))


def test_a_failure_at_the_last_step_leaves_everything_as_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    snapshot = FileSnapshot(file)
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UsageError, match="cannot be written: No space left on device; nothing was changed"):
        snapshot.replace(b"new")

    assert (b"old", ["config.json"]) == (file.read_bytes(), names(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
def test_a_read_only_file_is_refused(file: Path) -> None:
    file.chmod(0o444)

    with pytest.raises(UsageError, match=r"config\.json is read-only; change its permissions"):
        FileSnapshot(file).check_writable()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="a folder is read-only for ordinary users of POSIX")
def test_a_read_only_folder_is_refused(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(UsageError, match="is read-only; change its permissions"):
            FileSnapshot(file).check_writable()
    finally:
        tmp_path.chmod(0o755)


def test_a_folder_is_made_if_that_is_wanted_and_only_then(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*\.vscode"):
        FileSnapshot(tmp_path / ".vscode" / "mcp.json")
    with pytest.raises(UsageError, match=r"there is no folder .*none; create it, or name another file"):
        FileSnapshot(tmp_path / "none" / ".vscode" / "mcp.json", makes_folder=True)
    snapshot = FileSnapshot(tmp_path / ".vscode" / "mcp.json", makes_folder=True)
    snapshot.check_writable()
    assert [] == names(tmp_path)

    snapshot.replace(b"new")

    assert b"new" == (tmp_path / ".vscode" / "mcp.json").read_bytes()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")

    for name, reason in (
        ("loop", "loop is a loop of symbolic links"),
        ("folder", "folder is not a file"),
        ("file/mcp.json", "there is no folder .*file"),
    ):
        with pytest.raises(UsageError, match=reason):
            FileSnapshot(tmp_path / name)
