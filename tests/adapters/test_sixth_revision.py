"""A new revision costs its document and one file of declared changes: a build says what, and nothing else is edited."""

from __future__ import annotations

import ast
import json
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.adapters import sixth_older, sixth_step
from tests.adapters.sixth import CHANGES, NEW, Copy

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
INSTANCES = "20"  # of each subject; more are for `nox -s fuzz`, whose revisions are real

TO_DO = {
    ("arm-added ContentBlock[VideoContent]", "/$defs/ContentBlock"),
    ("arm-added CreateMessageResultContent[VideoContent]", "/$defs/CreateMessageResult/properties/content"),
    ("arm-added SamplingMessageContent[VideoContent]", "/$defs/SamplingMessage/properties/content"),
    ("arm-added SamplingMessageContentBlock[VideoContent]", "/$defs/SamplingMessageContentBlock"),
    ("definition-added Folder", "/$defs/Folder"),
    ("error-added -32050", ""),
    ("key-added PromptArgument.secret", "/$defs/PromptArgument/properties/secret"),
    ("key-removed ProgressNotificationParams.message", "/$defs/ProgressNotificationParams/properties/message"),
    ("key-removed ServerCapabilities.completions", "/$defs/ServerCapabilities/properties/completions"),
    ("request-removed client completion/complete", "/$defs/CompleteRequest"),
    ("requiredness-changed Tool.description", "/$defs/Tool/properties/description"),
}


class Stopped(NamedTuple):
    """A build that nobody has declared anything for."""

    copy: Copy
    done: subprocess.CompletedProcess[str]
    findings: list[dict[str, Any]]
    before: dict[str, bytes]
    after: dict[str, bytes]

    @property
    def stubs(self) -> dict[str, str]:
        """What there is to paste."""
        return sixth_step.stubs_of(self.findings)


class Finished(NamedTuple):
    """A build with everything declared."""

    copy: Copy
    done: subprocess.CompletedProcess[str]
    text: str
    before: dict[str, bytes]
    after: dict[str, bytes]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    copy = Copy(tmp_path_factory.mktemp("sixth"))
    added = copy.vendor()
    assert added.returncode == 0, added.stderr
    before = copy.contents()
    done = copy.mcpgen("build", "--all", "--json")
    return Stopped(copy, done, json.loads(done.stdout)["diagnostics"], before, copy.contents())


@pytest.fixture(scope="module")
def finished(stopped: Stopped) -> Finished:
    text = sixth_step.pasted(sixth_step.filled(stopped.stubs))
    stopped.copy.declare(text)
    done = stopped.copy.mcpgen("build", "--all")
    assert done.returncode == 0, done.stderr
    return Finished(stopped.copy, done, text, stopped.before, stopped.copy.contents())


def said(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    return [(each["code"], each["message"]) for each in json.loads(done.stdout)["diagnostics"]]


# What is to do


def test_a_build_stops_with_all_that_is_to_do_and_where(stopped: Stopped) -> None:
    covered = [each["message"].partition("covers `")[2].partition("`: ")[0] for each in stopped.findings]
    found = [(place, each["pointer"]) for place, each in zip(covered, stopped.findings, strict=True)]

    assert sorted(TO_DO) == sorted(found)
    assert {"MG501"} == {each["code"] for each in stopped.findings}
    assert 1 == stopped.done.returncode


def test_a_build_that_stops_writes_nothing(stopped: Stopped) -> None:
    assert stopped.before == stopped.after


def test_what_is_to_do_is_pasteable_from_a_terminal(stopped: Stopped) -> None:
    stopped.copy.root.joinpath(CHANGES).unlink(missing_ok=True)
    printed = stopped.copy.mcpgen("build", "--revision", NEW).stderr

    for stub in stopped.stubs.values():
        ast.parse(f"f(\n{stub}\n)" if stub.startswith("Change") else f"{{\n{stub}\n}}")
        assert textwrap.indent(stub, "    ") in printed


def test_a_stub_is_no_answer(stopped: Stopped) -> None:
    stopped.copy.declare(sixth_step.pasted(stopped.stubs))
    done = stopped.copy.mcpgen("build", "--revision", NEW, "--json")
    stubs = [each for each in stopped.stubs.values() if each.startswith("Change")]

    assert 1 == done.returncode
    assert len(stubs) == len(said(done))
    assert {"MG503"} == {code for code, _ in said(done)}


# When it is done


def test_the_build_passes_its_check(finished: Finished) -> None:
    done = finished.copy.mcpgen("check")

    assert 0 == done.returncode
    assert {"equal to a fresh build"} == {line.partition(": ")[2] for line in done.stdout.splitlines()}


def test_nothing_was_edited_by_hand_but_one_new_file(finished: Finished) -> None:
    changed = {path for path, content in finished.after.items() if finished.before.get(path) != content}
    written = {path for path in changed if path.startswith("generated/")}

    assert finished.before.keys() <= finished.after.keys()
    assert {CHANGES} == changed - written
    assert {"generated/registry.py", "generated/adapters/__init__.py"} < written
    # No binding of another revision: only adapters, to which the keys of a new revision are foreign.
    assert {"adapters", "registry.py", f"v{NEW.replace('-', '_')}"} == {path.split("/")[1] for path in written}


def test_older_adapters_do_what_they_did_to_what_knows_nothing_of_it(finished: Finished) -> None:
    """Their text changes, since its keys are foreign to them all."""
    done = finished.copy.python("-m", "tests.adapters.sixth_older", PYTHONPATH=path_of(finished.copy))
    assert done.returncode == 0, done.stderr
    expected = sixth_older.outcomes()

    assert expected == json.loads(done.stdout)
    assert len(expected) > 50


def test_a_change_too_many_stops_the_build(finished: Finished) -> None:
    stubs = [
        'Change(name="one", says="A.", spec="b", covers=("key-added Tool.nothing",)),',
        'Change(name="two", says="B.", spec="b", at=("Tool.badge",), up=Drop()),',
        'Change(name="three", says="C.", spec="b"),',
    ]
    finished.copy.declare(finished.text.replace("    changes=(\n", "\n".join(["    changes=(", *stubs, ""])))
    done = finished.copy.mcpgen("build", "--revision", NEW, "--json")
    finished.copy.declare(finished.text)
    step = "2026-07-28 to 2099-01-01: the change"

    assert 1 == done.returncode
    assert [
        ("MG502", f"{step} 'one' covers 'key-added Tool.nothing', which matches no difference of this step"),
        ("MG502", f"{step} 'two' declares Drop going up, which is never used"),
        ("MG502", f"{step} 'three' has neither `covers` nor `at`"),
    ] == said(done)


def test_a_rename_to_nothing_stops_the_build(finished: Finished) -> None:
    finished.copy.declare(finished.text.replace('"Root": "Folder"', '"Root": "Nothing"'))
    done = finished.copy.mcpgen("build", "--revision", NEW, "--json")
    finished.copy.declare(finished.text)
    ((code, message),) = said(done)

    assert (1, "MG503") == (done.returncode, code)
    assert "Nothing" in message


def path_of(copy: Copy) -> str:
    """Return where the copy of the package is found, and these tests."""
    return os.pathsep.join([str(copy.folder), str(CHECKOUT)])


def failures(copy: Copy, *arguments: str) -> str:
    """Run tests of this checkout against the copy, those of the new revision alone; return what fails."""
    done = copy.python(
        *("-m", "pytest", "-q", f"--rootdir={CHECKOUT}", "-c", str(CHECKOUT / "pyproject.toml")),
        *("-p", "no:cacheprovider", "-p", "tests.adapters.sixth_judge", "-k", NEW, *arguments),
        PYTHONPATH=path_of(copy),
        MCPGEN_FUZZ=INSTANCES,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_its_bindings_are_exact(finished: Finished) -> None:
    oracle = str(CHECKOUT / "tests" / "oracle" / "test_oracle.py")
    names = ("test_valid_instances_round_trip", "test_random_instances_and_their_mutants_hold_no_surprise")

    assert not failures(finished.copy, *(f"{oracle}::{name}[{NEW}]" for name in names))


def test_its_adapters_obey_the_laws(finished: Finished) -> None:
    assert not failures(finished.copy, str(CHECKOUT / "tests" / "adapters" / "test_properties.py"))
