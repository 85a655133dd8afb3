"""Register a draft: make a package that `mcpgen build --schema` wrote known to this process.

Theory of operation. A draft joins the revisions that can be chosen. It does not join those that are chosen by default.
Its bindings are those of its package. Its adapter leads to its base, from where the steps between released revisions
lead on. For the rules that no schema states (batches, headers, polling), a draft is like its base.

An installed package can name itself as an entry point of the group ``mcpgen.revisions``, under its label. It is
registered when a program first uses that label.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from mcpgen.generated import registry
from mcpgen.runtime.adapt.steps import GENERATED, Unadapted
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "register", "register_installed"]

GROUP = "mcpgen.revisions"
"""The group of entry points; the name of an entry point is a label, its value is a package."""

_tried: set[str] = set()


def register(package: ModuleType | str) -> str:
    """Make the draft in *package* known to this process, and return its label.

    A registered draft can be named wherever a revision can: ``Server(revisions=[…])``, `connect`, and
    `mcpgen.runtime.adapt`. No default changes. Registering a package again does nothing.

    Args:
        package: A package that `mcpgen build --schema` wrote, or its full name. Without an adapter (``--adapters``),
            its messages can be exchanged only with peers of the same draft.

    Raises:
        UsageError: It is not such a package, its label is taken, or its adapter leads to another revision.
    """
    from importlib.util import find_spec  # noqa: PLC0415 (few programs register a revision)

    if not isinstance(cast("object", package), str | ModuleType) or not package:
        raise UsageError(
            f"`package` must be a package that `mcpgen build --schema` wrote, or its full name, not {package!r}"
        )
    if isinstance(package, str) and not all(each.isidentifier() for each in package.split(".")):
        raise UsageError(
            f"`package` is {package!r}, which is not the full name of a package; write names with dots between them, "
            "such as my_package.vDRAFT_2027"
        )
    found = _imported(package) if isinstance(package, str) else package
    ours = {each.label: f"{registry.__package__}.{each.package}" for each in registry.REVISIONS}
    if found.__name__ in (registry.__package__, *ours.values()):
        raise UsageError(f"`package` is {found.__name__}, which is part of mcpgen; do not register it")
    methods: Any = getattr(found, "methods", None)
    label, era = getattr(methods, "REVISION", None), getattr(methods, "ERA", None)
    if not isinstance(label, str) or era not in ("handshake", "stateless"):
        inner = ", ".join(_packages_in(found))
        if inner:
            raise UsageError(f"the package {found.__name__} has no bindings itself; name a package in it: {inner}")
        raise UsageError(
            f"the package {found.__name__} has no bindings of a revision; name a package that `mcpgen build --schema` "
            "wrote"
        )
    if label in ours:
        raise UsageError(
            f"the package {found.__name__} has the bindings of {label}; do not register it, but use {ours[label]}"
        )
    taken = {each.label: each for each in registry.known()}.get(label)
    if taken is not None and taken.package == found.__name__:
        return label
    if taken is not None:
        raise UsageError(
            f"the label {label} of `package` {found.__name__} is taken; build it again with another `--revision`"
        )
    adapter = import_module(f"{found.__name__}.adapter") if find_spec(f"{found.__name__}.adapter") else None
    same_era = [each.label for each in registry.REVISIONS if each.era == era]
    base = same_era[-1] if adapter is None else _base(adapter, label)
    like = base if base in same_era else same_era[-1]
    registry.register(registry.Revision(label=label, era=era, package=found.__name__), like)
    GENERATED.add(label, base, Unadapted(base, label) if adapter is None else adapter)
    return label


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # the package imports another one, which is missing
            raise
        outer = f"{error.name}".rpartition(".")[0]
        inner = ", ".join(_packages_in(import_module(outer))) if outer else ""
        advice = "install it, or add the folder that contains it to PYTHONPATH"
        if outer == registry.__package__:  # the packages in it cannot be registered
            advice = "name a package that `mcpgen build --schema` wrote"
        elif inner:
            advice = f"name a package that is in {outer}: {inner}"
        raise UsageError(f"there is no package {error.name}; {advice}") from None


def _packages_in(package: ModuleType) -> list[str]:
    """Return the names of the packages in *package* that may have bindings of a revision, such as ``drafts.v2027``."""
    from pathlib import Path  # noqa: PLC0415 (only for the message of an error)

    folders = [Path(each) for each in getattr(package, "__path__", ())]
    return sorted(
        f"{package.__name__}.{each.parent.name}" for folder in folders for each in folder.glob("v*/methods.py")
    )


def register_installed(label: str = "") -> None:
    """Register the installed package that has *label* as an entry point; without a label, all of them.

    Raises:
        UsageError: The entry point leads to no such package, or its package has another label.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and most programs do not need it

    for each in entry_points(group=GROUP):
        if label in ("", each.name) and each.name not in _tried:
            _tried.add(each.name)
            _register_entry_point(each)


def _register_entry_point(point: EntryPoint) -> None:
    package = point.load()
    label = getattr(getattr(package, "methods", None), "REVISION", None)
    if label is None:
        raise UsageError(
            f"the entry point {point.name} of {GROUP} leads to {point.value}, which has no bindings of a revision; let "
            "it lead to a package that `mcpgen build --schema` wrote"
        )
    if label != point.name:
        raise UsageError(
            f"the entry point {point.name} of {GROUP} leads to {point.value}, whose label is {label}; rename the entry "
            "point"
        )
    register(package)


def _base(adapter: ModuleType, label: str) -> str:
    """Return the revision that *adapter* leads to from *label*."""
    base: str = adapter.UP.source
    if adapter.UP.target != label or all(each.label != base for each in registry.REVISIONS):
        raise UsageError(
            f"{adapter.__name__} leads from {base} to {adapter.UP.target}, not from a released revision to {label}; "
            "build the package again with `--adapters`"
        )
    return base
