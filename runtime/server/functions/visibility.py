"""Which registered functions are shown to clients: the rules of `enable` and `disable`.

Theory of operation. Each call of `enable` or `disable` adds a rule. The last rule that matches a function decides; a
function that no rule matches is shown. Rules also hold for functions that are registered later, so a server can hide a
tag before anything has it. So that the rules do not grow without a limit while a server runs,

* a rule is dropped when a later one matches everything that it matches;
* a name in a rule is dropped when a later rule matches all functions of this name that the rule matches, and when the
  function is removed;
* two rules in sequence that differ only in names become one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Self

    from mcpgen.runtime.server.functions.function_registry import FunctionRegistry

__all__ = ["Component", "Rule", "Visibility", "VisibleFunctions", "check_names", "make_rule"]

Component: TypeAlias = Literal["tool", "resource", "template", "prompt"]
"""A kind of function that a server lists."""

_COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)


class Rule(Struct, frozen=True):
    """Functions that are shown, or not; None matches all.

    Attributes:
        names: Names of tools and prompts, URIs of resources, and templates.
        tags: It matches a function that has one of them.
        components: The kinds of functions.
    """

    is_shown: bool
    names: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    components: frozenset[str] | None = None

    def matches(self, component: Component, name: str, tags: frozenset[str]) -> bool:
        """Return whether it holds for a function."""
        return (
            (self.names is None or name in self.names)
            and (self.tags is None or not self.tags.isdisjoint(tags))
            and (self.components is None or component in self.components)
        )

    @property
    def label(self) -> str:
        """A text that is the same for the same rule, in every process."""
        parts = (self.names, self.tags, self.components)
        return repr([None if each is None else sorted(each) for each in parts])

    def includes(self, other: Rule) -> bool:
        """Return whether it matches everything that *other* matches."""
        pairs = ((self.names, other.names), (self.tags, other.tags), (self.components, other.components))
        return all(mine is None or (theirs is not None and theirs <= mine) for mine, theirs in pairs)

    def rest_of(self, other: Rule) -> Rule | None:
        """Return the part of *other*, an earlier rule, that this one does not decide; None if it decides all of it."""
        if self.includes(other):
            return None
        if self.names is None or other.names is None or self.names.isdisjoint(other.names):
            return other
        is_decided = replace(self, names=None).includes(other)
        return replace(other, names=other.names - self.names) if is_decided else other


class Visibility:
    """The rules that say which functions are shown.

    Attributes:
        rules: Oldest first. The tuple is replaced by each change.
    """

    def __init__(self) -> None:
        self.rules: tuple[Rule, ...] = ()

    def shows(self, component: Component, name: str, tags: frozenset[str]) -> bool:
        """Return whether a function is shown."""
        for each in reversed(self.rules):
            if each.matches(component, name, tags):
                return each.is_shown
        return True

    def add(self, rule: Rule) -> None:
        """Add a rule, which precedes all others."""
        kept = [rest for each in self.rules if (rest := rule.rest_of(each)) is not None]
        last = kept[-1].names if kept else None
        if last is not None and rule.names is not None and kept[-1] == replace(rule, names=last):
            kept[-1] = replace(rule, names=last | rule.names)
        else:
            kept.append(rule)
        self.rules = tuple(kept)

    def show_only(self, rule: Rule) -> None:
        """Show what *rule* matches, and nothing else."""
        self.rules = (Rule(is_shown=False), rule)

    def forget(self, name: str) -> None:
        """Drop *name* from all rules, because no function has it any more."""
        kept = [each if each.names is None else replace(each, names=each.names - {name}) for each in self.rules]
        self.rules = tuple(each for each in kept if each.names is None or each.names)


class VisibleFunctions:
    """Enable and disable registered functions: a base of `Server`."""

    _registry: FunctionRegistry

    def _changing(self, *, registers: bool = True) -> AbstractContextManager[None]:
        """Change the registered functions, or which of them are shown, within the block."""
        raise NotImplementedError

    def enable(
        self,
        *,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        components: Iterable[Component] | None = None,
        only: bool = False,
    ) -> Self:
        """Show functions again that `disable` has hidden, and notify the clients. The last call decides.

        Args:
            names: Names of tools and prompts, URIs of resources, or templates.
            tags: It matches the functions that have one of these tags, those that are registered later included.
            components: It matches only functions of these kinds: ``tool``, ``resource``, ``template`` or ``prompt``.
            only: Whether all other functions are hidden.

        Raises:
            UsageError: An argument is not valid, or no function has one of the names.
        """
        with self._changing(registers=False):
            rule = make_rule(self._registry, is_shown=True, names=names, tags=tags, components=components)
            (self._registry.visibility.show_only if only else self._registry.visibility.add)(rule)
        return self

    def disable(
        self,
        *,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        components: Iterable[Component] | None = None,
    ) -> Self:
        """Hide functions, and notify the clients. A call of a hidden tool gets the error of an unknown tool.

        Args:
            names: As for `enable`.
            tags: As for `enable`.
            components: As for `enable`.

        Raises:
            UsageError: An argument is not valid, or no function has one of the names.
        """
        with self._changing(registers=False):
            rule = make_rule(self._registry, is_shown=False, names=names, tags=tags, components=components)
            self._registry.visibility.add(rule)
        return self


def make_rule(
    registry: FunctionRegistry,
    *,
    is_shown: bool,
    names: Iterable[str] | None,
    tags: Iterable[str] | None,
    components: Iterable[str] | None,
) -> Rule:
    """Make a rule of the arguments of `VisibleFunctions.enable`.

    Raises:
        UsageError: An argument is not valid, or no function has one of the names.
    """
    if names is None and tags is None and components is None:
        raise UsageError("no functions are selected; pass `names`, `tags` or `components`")
    rule = Rule(
        is_shown,
        names=None if names is None else check_names("names", names),
        tags=None if tags is None else check_names("tags", tags),
        components=None if components is None else check_names("components", components),
    )
    if unknown := (rule.components or frozenset()).difference(_COMPONENTS):
        raise UsageError(f"`components` has {min(unknown)!r}; it may have {', '.join(_COMPONENTS)}")
    known = {key for each in registry.lists.values() for key in each.registered}
    if missing := sorted((rule.names or frozenset()) - known):
        raise UsageError(
            f"`names` has {missing[0]!r}, but there is no function of that name; registered: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    return rule


def check_names(argument: str, given: Iterable[str]) -> frozenset[str]:
    """Return a set of strings that was given as *argument*.

    Raises:
        UsageError: It is something else, such as a single string.
    """
    value = cast("object", given)
    if not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
        members = list(cast("Iterable[object]", value))
        if all(isinstance(each, str) for each in members):
            return frozenset(cast("list[str]", members))
    example = _COMPONENTS[0] if argument == "components" else "admin"
    raise UsageError(f'`{argument}` must be a list of strings, such as ["{example}"], not {given!r}')
