"""A draft that is built and registered through the public commands is served like a revision, and obeys all laws."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.adapters import sixth, sixth_step
from tests.adapters.sixth import NEW, OLD, Copy
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
INSTANCES = "20"  # of each subject; more are for `nox -s fuzz`, whose revisions are real


class Registered(NamedTuple):
    """A draft with its package, and a copy of mcpgen whose schema room has its document for the judge."""

    copy: Copy
    out: Path
    unfinished: subprocess.CompletedProcess[str]
    done: subprocess.CompletedProcess[str]
    to_do: str


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Registered:
    folder = tmp_path_factory.mktemp("registered")
    copy = Copy(folder / "package")
    own = folder / "own"
    own.mkdir()
    (own / "next.json").write_text(sixth.text(), encoding="utf-8")
    (own / "next.toml").write_text(sixth.own_overlay(), encoding="utf-8")
    command = [
        *("build", "--schema", own / "next.json", "--revision", NEW, "--based-on", OLD, "--overlay", own / "next.toml"),
        *("--adapters", "--out", own / "out", "--json"),
    ]
    (own / "none.py").write_text(sixth_step.pasted({sixth_step.RENAMES: ""}), encoding="utf-8")
    listed = copy.mcpgen(*command, "--changes", own / "none.py")
    command += ["--changes", own / "changes.py"]
    unfinished = copy.mcpgen(*command)
    to_do = (own / "changes.py").read_text(encoding="utf-8")
    stubs = sixth_step.stubs_of(sixth.findings_of(listed))
    (own / "changes.py").write_text(sixth_step.pasted(sixth_step.filled(stubs)), encoding="utf-8")
    done = copy.mcpgen(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    added = copy.vendor()  # after the build, where the label would be taken
    assert added.returncode == 0, added.stderr
    return Registered(copy, own / "out", unfinished, done, to_do)


def failures(registered: Registered, *arguments: str, chosen: str = NEW) -> str:
    """Run the *chosen* tests of this checkout against the draft; return what fails."""
    done = registered.copy.python(
        *("-m", "pytest", "-q", f"--rootdir={CHECKOUT}", "-c", str(CHECKOUT / "pyproject.toml")),
        *("-p", "no:cacheprovider", "-p", "tests.adapters.registered_judge", "-k", chosen, *arguments),
        PYTHONPATH=os.pathsep.join([str(registered.copy.folder), str(CHECKOUT)]),
        MCPGEN_FUZZ=INSTANCES,
        SIXTH_FOLDER=str(registered.out),
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_first_build_stops_and_writes_a_list_of_what_is_to_do(registered: Registered) -> None:
    assert 1 == registered.unfinished.returncode
    assert f"old={OLD!r}" in registered.to_do
    assert 10 == registered.to_do.count("        Change(")
    assert "has an incomplete entry for each" in registered.unfinished.stdout
    assert "Change(" not in registered.unfinished.stdout
    assert '"Root": "Folder",' in registered.to_do


def test_its_bindings_are_exact(registered: Registered) -> None:
    oracle = str(CHECKOUT / "tests" / "oracle" / "test_oracle.py")
    names = ("test_valid_instances_round_trip", "test_random_instances_and_their_mutants_hold_no_surprise")

    assert not failures(registered, *(f"{oracle}::{name}[{NEW}]" for name in names))


def test_its_adapters_obey_the_laws(registered: Registered) -> None:
    """With its neighbour and the oldest revision; `test_sixth_revision` has all of them, whose steps are the same."""
    laws = str(CHECKOUT / "tests" / "adapters" / "test_properties.py")

    assert not failures(registered, laws, chosen=f"{NEW} and ({OLD} or {REVISIONS[0]})")
