"""Small revisions, the steps that are declared between them, and the adapters that come of both, imported and used."""

from __future__ import annotations

import copy
import importlib
import itertools
import json
import shutil
import types
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen.codegen import names
from mcpgen.codegen.adapters.build import generate_adapters
from mcpgen.codegen.adapters.declared import module_name, read_declared
from mcpgen.codegen.adapters.plan import plan_steps
from mcpgen.codegen.changes import vocabulary
from mcpgen.codegen.changes.vocabulary import Change, Step
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from tests.codegen.editions import any_of, obj, read, ref, request
from tests.codegen.packages import SUPPORT, build, load_folder, write_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mcpgen.codegen.adapters.declared import Declared
    from mcpgen.codegen.adapters.plan import StepPlan
    from mcpgen.codegen.diff import Edition

LABELS = "123456789"
SAYS = "It changed."

Definitions = dict[str, Any]
"""What a revision of a test defines beside the message ``go``, whose params, result and metadata hold an ``A``."""
Losses = list[tuple[str, str]]
"""Severity and pointer of each loss."""

_numbers = itertools.count()


def definitions(given: Definitions) -> Definitions:
    """Return all definitions of a revision: those that are *given*, and a message that holds ``A``, if that is one."""
    around: Definitions = {
        "ClientRequest": any_of(ref("GoRequest")),
        "GoRequest": request("go", params=ref("GoParams")),
        "GoParams": obj("a", a=ref("A")) if "A" in given else obj(),
        "GoResult": obj(),
    }
    return around | given


def editions(*revisions: Definitions, errors: Sequence[Any] = ()) -> list[Edition]:
    """Return editions called 1, 2, 3, ...; *errors* are those of each, if they are compared."""
    found = [
        msgspec.structs.replace(read(**definitions(each)), label=label)
        for label, each in zip(LABELS, revisions, strict=False)
    ]
    known = zip(found, errors, strict=True) if errors else ()
    return [msgspec.structs.replace(each, errors=tuple(codes)) for each, codes in known] or found


def change(covers: str | tuple[str, ...] = (), at: str | tuple[str, ...] = (), **fields: Any) -> Change:
    """Return a change that says `SAYS`, named after what it is about unless it is given another name."""
    covers, at = ((each,) if isinstance(each, str) else each for each in (covers, at))
    name = names.snake("-".join([*covers, *at])).replace("_", "-")
    return Change(**{"name": name, "says": SAYS, "spec": "2, place#part", "covers": covers, "at": at} | fields)


def declare(*steps: Sequence[Change], source: str = "", renames: Mapping[str, str] | None = None) -> list[Declared]:
    """Return what is declared of the steps 1 to 2, 2 to 3, ...; *source* and *renames* are of the first one."""
    return [
        read_declared(
            Step(
                old=old,
                new=new,
                changes=tuple(changes),
                renames=dict(renames or {}) if old == LABELS[0] else {},
            ),
            source if old == LABELS[0] else "",
            f"{module_name(old, new)}.py",
        )
        for (old, new), changes in zip(itertools.pairwise(LABELS), steps, strict=False)
    ]


def functions(source: str) -> types.SimpleNamespace:
    """Return the functions that *source*, the text of a module of changes, defines."""
    scope: dict[str, Any] = {}
    exec("from __future__ import annotations\n" + source, scope)  # noqa: S102 the text of a test
    return types.SimpleNamespace(**scope)


def plans(
    *revisions: Definitions,
    changes: Sequence[Change] = (),
    later: Sequence[Sequence[Change]] = (),
    source: str = "",
    renames: Mapping[str, str] | None = None,
    errors: Sequence[Any] = (),
) -> list[StepPlan]:
    """Return the plans of the steps between *revisions*.

    Args:
        revisions: Oldest first.
        changes: Those of the first step.
        later: Those of the steps that follow, where there are any.
        source: Of the functions that the first step declares.
        renames: Of the first step.
        errors: The error codes of each revision.
    """
    steps = [changes, *later, *[()] * len(revisions)][: len(revisions) - 1]
    return plan_steps(editions(*revisions, errors=errors), declare(*steps, source=source, renames=renames))


def findings(*revisions: Definitions, **options: Any) -> list[Diagnostic]:
    """Return why there is no plan; none if there is one. Takes what `plans` takes."""
    try:
        plans(*revisions, **options)
    except Refused as refused:
        return list(refused.diagnostics)
    return []


def told(found: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """Return the code of each finding and what it says of the step."""
    return [(each.code, each.message.partition(": ")[2]) for each in found]


class Adapters:
    """The adapters of small revisions, as a package of their own."""

    def __init__(self, folder: Path, revisions: Sequence[Definitions], planned: Sequence[StepPlan]) -> None:
        self.plans = planned
        self.files = generate_adapters(planned)
        self._name = f"adapted_{next(_numbers)}_for_{folder.name}".replace("-", "_")
        root = folder / self._name
        root.mkdir()
        (root / "__init__.py").touch()
        _write(root / "adapters", self.files)
        shutil.copytree(SUPPORT, root / "_support", ignore=shutil.ignore_patterns("__pycache__"))
        for label, each in zip(LABELS, revisions, strict=False):
            if any(f'Fields("{names.package(label)}")' in content for content in self.files.values()):
                _write(root / names.package(label), _bindings(json.dumps(each), label))
        load_folder(root, self._name)
        self.adapting = importlib.import_module(f"{self._name}._support.steps")

    def step(self, old: str = "1") -> Any:
        """Return the module of the step from the revision *old*."""
        new = LABELS[LABELS.index(old) + 1]
        return importlib.import_module(f"{self._name}.adapters.{module_name(old, new)}")

    def text(self, old: str = "1") -> str:
        """Return the source of the step from the revision *old*."""
        return self.files[f"{module_name(old, LABELS[LABELS.index(old) + 1])}.py"]

    def up(self, value: Any, name: str = "A", *, old: str = "1") -> tuple[Any, Losses]:
        """Return what a value of the definition *name* becomes, and the losses; it must not have been touched."""
        return self._run(self.step(old).UP.definitions[name][1].adapt, value)

    def down(self, value: Any, name: str = "A", *, old: str = "1") -> tuple[Any, Losses]:
        """Return the same, going from the newer side of the step from *old*."""
        return self._run(self.step(old).DOWN.definitions[name][1].adapt, value)

    def part(self, way: str, part: str, value: Any, *, method: str = "go", old: str = "1") -> tuple[Any, Losses]:
        """Return what the ``params``, the ``result`` or the ``error`` of *method* becomes."""
        return self._run(getattr(getattr(self.step(old), way).messages[method], part).adapt, value)

    def refusal(self, way: str, value: Any, name: str = "A") -> tuple[str, str, str | None]:
        """Return where, why and with which service a value is refused."""
        return self.refusal_of(getattr(self.step(), way).definitions[name][1], value)

    def refusal_of(self, part: Any, value: Any) -> tuple[str, str, str | None]:
        """Return the same of a part."""
        with pytest.raises(self.adapting.Refusal) as refused:
            part.adapt(value, (), self.adapting.Losses("step"))
        loss = refused.value.loss
        assert ("step", "refused") == (loss.step, loss.severity)
        return loss.pointer, loss.reason, refused.value.service

    def losses(self, part: Any, value: Any) -> list[Any]:
        """Return all losses of a part, whole."""
        losses = self.adapting.Losses("step")
        part.adapt(value, (), losses)
        found: list[Any] = losses.found
        return found

    def _run(self, adapt: Any, value: Any) -> tuple[Any, Losses]:
        before, losses = copy.deepcopy(value), self.adapting.Losses("step")
        result = adapt(value, (), losses)
        assert before == value, "it changed what it was given"
        assert list(_order(before)) == list(_order(value)), "it changed the order of what it was given"
        return result, [(each.severity, each.pointer) for each in losses.found]


def compiled(folder: Path, *revisions: Definitions, **options: Any) -> Adapters:
    """Write the adapters between *revisions*, and the bindings that these ask, into *folder* and import them.

    Takes what `plans` takes.
    """
    return Adapters(folder, revisions, plans(*revisions, **options))


def pasted(stub: str, *, fill: Mapping[str, str], **scope: Any) -> tuple[Change, ...]:
    """Return the change of a *stub* as somebody pastes it, with each of *fill* put in for its placeholder."""
    for placeholder, text in fill.items():
        stub = stub.replace(placeholder, text)
    made: tuple[Change, ...] = eval(f"({stub}\n)", vars(vocabulary) | scope)  # noqa: S307 our own text
    return made


def _order(value: Any) -> Any:
    if isinstance(value, dict):
        for key, held in value.items():
            yield key
            yield from _order(held)
    elif isinstance(value, list):
        for each in value:
            yield from _order(each)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    write_files(folder, files)


@cache
def _bindings(given: str, label: str) -> Mapping[str, str]:
    schema = "https://json-schema.org/draft/2020-12/schema"
    return build({"$schema": schema, "$defs": definitions(json.loads(given))}, label=label, alone=False).files
