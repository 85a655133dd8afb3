"""What a function's signature says: its arguments with their types, which of them is the Context, what it returns.

Annotations are resolved one by one, so that a message can name the parameter. Only what a request can fill is accepted:
each refusal says which function, which parameter, and what to write instead.
"""

from __future__ import annotations

import inspect
import typing
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from msgspec import NODEFAULT, Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.functions import docstrings

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Annotation", "Parameter", "Signature", "arms", "bare", "origin_of", "read_result", "read_signature"]


# A type as annotations write it: a class, a union, what typing makes of either. Python has no type for all of them.
Annotation: TypeAlias = Any


class Parameter(Struct, frozen=True):
    """One argument that a request can give.

    Attributes:
        annotation: Its type, resolved, with what `typing.Annotated` adds.
        default: What the function gets if the request leaves it out; NODEFAULT if it must not.
        description: What the docstring says of it; empty if nothing.
    """

    name: str
    annotation: Annotation
    default: object
    description: str


class Signature(Struct, frozen=True):
    """A function as a request sees it.

    Attributes:
        label: What messages call the function.
        name: Its ``__name__``; empty if it has none, as a partial.
        description: The prose of its docstring.
        parameters: What a request can give, in order; all are passed by name.
        context: The parameters that get the Context.
    """

    label: str
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    context: tuple[str, ...]


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read what can be called by name.

    Raises:
        UsageError: A request cannot call this function.
    """
    label = label_of(function)
    _refuse_what_is_no_function(function, label)
    target = _annotated_by(function)
    doc = docstrings.parse(target.__doc__ or (None if inspect.isroutine(function) else type(function).__doc__))
    # What a partial binds is settled: a request must not change it.
    bound = _bound_names(function)
    parameters: list[Parameter] = []
    context: list[str] = []
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise UsageError(f"{label} has no readable signature: {error}") from error
    for each in found.parameters.values():
        if each.name in bound:
            continue
        _refuse_parameter(each, label)
        annotation = _resolved(each.annotation, target, f"parameter {each.name!r} of {label}")
        said = _said_beside(annotation, f"parameter {each.name!r} of {label}")
        if _is_context(annotation):
            context.append(each.name)
            continue
        default = NODEFAULT if each.default is each.empty else each.default
        parameters.append(Parameter(each.name, annotation, default, doc.parameters.get(each.name, said)))
    name = getattr(function, "__name__", "")
    return Signature(label, name, doc.description, tuple(parameters), tuple(context))


def read_result(function: Callable[..., Any]) -> Annotation:
    """Return the annotation of a function's result, resolved; `inspect.Signature.empty` if there is none.

    Raises:
        UsageError: A name in it is not there at run time.
    """
    annotation = inspect.signature(function).return_annotation
    return _resolved(annotation, _annotated_by(function), f"the result of {label_of(function)}")


def label_of(function: object) -> str:
    """Return what to call a function in a message, so that its author finds it."""
    name = getattr(function, "__qualname__", None) or repr(function)
    module = getattr(function, "__module__", None)
    return f"{module}.{name}()" if module and hasattr(function, "__qualname__") else str(name)


def origin_of(annotation: Annotation) -> Annotation:
    """Return what a type is made of, ``list`` of ``list[int]``; None if it is not made of anything."""
    origin: Annotation = typing.get_origin(annotation)
    return origin


def bare(annotation: Annotation) -> Annotation:
    """Return a type without what `typing.Annotated` adds to it."""
    while origin_of(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def arms(annotation: Annotation) -> tuple[Annotation, ...]:
    """Return the arms of a union, nested ones flat, without what `typing.Annotated` adds; the type itself otherwise."""
    annotation = bare(annotation)
    if origin_of(annotation) in (typing.Union, UnionType):
        return tuple(inner for arm in typing.get_args(annotation) for inner in arms(arm))
    return (annotation,)


def _refuse_what_is_no_function(function: object, label: str) -> None:
    if not callable(function):
        named = f"; to name a function, write name={function!r}" if isinstance(function, str) else ""
        raise UsageError(f"{label} is not a function{named}")
    if inspect.isclass(function):
        raise UsageError(f"{label} is a class; register a function that makes one")
    if getattr(function, "__name__", "") == "<lambda>":
        raise UsageError(f"{label} is a lambda, which has no name and no annotations; write a function with def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{label} yields; an answer is one value: return a list")


def _refuse_parameter(each: inspect.Parameter, label: str) -> None:
    what = f"parameter {each.name!r} of {label}"
    if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
        raise UsageError(
            f"{label} takes {stars}{each.name}, which no schema can name; write each parameter out, or one "
            f"parameter of type {'list' if stars == '*' else 'dict'}"
        )
    if each.kind is each.POSITIONAL_ONLY:
        raise UsageError(f"{what} is positional-only, but arguments come by name; remove the / after it")
    if each.annotation is each.empty:
        kind = "Context" if each.name in ("ctx", "context") else "str"
        if each.name == "self":
            raise UsageError(f"{label} is a method of a class; register the method of an instance of it")
        raise UsageError(f"{what} has no annotation; write its type, such as `{each.name}: {kind}`")
    if each.name.startswith("__"):
        raise UsageError(f"{what} has a name that Python keeps for itself; rename it")


def _said_beside(annotation: Annotation, what: str) -> str:
    """Return the description that a text in ``Annotated`` is; refuse constraints that would be lost."""
    found = ""
    while origin_of(annotation) is Annotated:
        annotation, *beside = typing.get_args(annotation)
        for each in beside:
            if isinstance(each, str):
                found = each
            elif type(each).__module__.partition(".")[0] in ("annotated_types", "pydantic"):
                kind = type(each).__name__
                raise UsageError(f"{what} has a {kind} beside its type, which would be lost; write msgspec.Meta(ge=…)")
    return found


def _bound_names(function: object) -> frozenset[str]:
    return frozenset(cast("Any", function).keywords) if isinstance(function, partial) else frozenset()


def _annotated_by(function: Any) -> Callable[..., object]:
    """Return the function whose module the annotations of *function* are written in."""
    while True:
        if isinstance(function, partial):
            function = cast("Any", function).func
        elif not inspect.isroutine(function):
            function = cast("Any", type(function)).__call__
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
            function = cast("Any", function).__wrapped__
        else:
            return function


def _resolved(annotation: Annotation, target: object, what: str) -> Annotation:
    """Return an annotation with the names in it resolved.

    Raises:
        UsageError: A name in it is not there at run time.
    """
    if annotation is inspect.Signature.empty:
        return annotation

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        hints = typing.get_type_hints(holder, getattr(target, "__globals__", {}), include_extras=True)
    except Exception as error:  # whatever evaluating a stranger's expression raises, its author has to know the place
        raise UsageError(
            f"the annotation {annotation!r} of {what} cannot be resolved: {error}; import what it names when the "
            "program runs (not under `if TYPE_CHECKING:`), and define types at the top of their module"
        ) from error
    return hints["it"]


def _is_context(annotation: Annotation) -> bool:
    """Whether a type is Context, a Context of something, or a union with one."""
    from mcpgen.runtime.server.context import Context  # noqa: PLC0415 (the context knows its server, which knows its functions)

    for arm in arms(annotation):
        origin = origin_of(arm) or arm
        if isinstance(origin, type) and issubclass(origin, Context):
            return True
    return False
