"""Read a function's signature: its parameters with their types, which of them get the `Context`, and its result type.

Annotations are resolved one by one, so that an error can name the parameter. A parameter that a request cannot fill is
refused; the error names the function and the parameter, and says what to write instead.
"""

from __future__ import annotations

import inspect
import typing
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from msgspec import NODEFAULT, Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.value_types import pydantic_type, uses_pydantic
from mcpgen.runtime.server.functions import docstrings

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.access import Access

__all__ = [
    "Annotation",
    "BaseContext",
    "Dependency",
    "Function",
    "Parameter",
    "Signature",
    "arms",
    "bare",
    "label_of",
    "origin_of",
    "read_result",
    "read_signature",
]


# A type as annotations write it: a class, a union, or a generic of either. Python has no type for all of them.
Annotation: TypeAlias = Any

Function: TypeAlias = Callable[..., Any]


class BaseContext:
    """The base of `Context`, by which a parameter for it is recognised.

    `mcpgen.runtime.server.context` declares `Context`, and needs this package.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def peer(self) -> Peer:
        """The client: its revision, era, name and capabilities."""

    @property
    @abstractmethod
    def debug(self) -> bool:
        """Whether errors tell the client which exception a function raised: ``Server(debug=True)``."""

    @property
    def access(self) -> Access | None:
        """What the access token of the request allows; None if the server takes no tokens."""
        return None

    @property
    def _hides(self) -> bool:
        """Whether lists omit what the token of the request does not allow."""
        return False


class Dependency(Struct, frozen=True):
    """What `Depends` returns: the mark of a parameter that gets the value of a function."""

    function: Function


class Parameter(Struct, frozen=True):
    """One argument that a request can give.

    Attributes:
        annotation: The resolved type, with the metadata of `typing.Annotated`.
        default: The value if the request omits the argument; NODEFAULT if the argument is required.
        description: Its description in the docstring; may be empty.
    """

    name: str
    annotation: Annotation
    default: object
    description: str


class Signature(Struct, frozen=True):
    """A function as a request sees it.

    Attributes:
        label: The function's name in error messages.
        name: Its ``__name__``; empty if it has none, such as a partial.
        description: The prose of its docstring.
        parameters: The arguments of a request, in order; all are passed by name.
        context: The parameters that get the `Context`.
        dependencies: The parameters that get the value of another function, each with that function.
    """

    label: str
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    context: tuple[str, ...]
    dependencies: tuple[tuple[str, Function], ...]


def read_signature(function: Function, *, is_dependency: bool = False) -> Signature:
    """Read the signature of a function that requests are to call, or on which such a function depends.

    Raises:
        UsageError: A request cannot call this function.
    """
    label = label_of(function)
    _check_function(function, label, is_dependency=is_dependency)
    target = _annotated_function(function)
    doc = docstrings.parse(target.__doc__ or (None if inspect.isroutine(function) else type(function).__doc__))
    # A request must not change an argument that a partial binds.
    bound = _bound_arguments(function)
    parameters: list[Parameter] = []
    context: list[str] = []
    dependencies: list[tuple[str, Function]] = []
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise UsageError(f"{label} has no readable signature ({error}); wrap it in a function that has one") from error
    for each in found.parameters.values():
        if each.name in bound:
            continue
        _check_parameter(each, label, is_dependency=is_dependency)
        if isinstance(each.default, Dependency):  # its annotation is for type checkers only
            dependencies.append((each.name, each.default.function))
            continue
        annotation = _resolved(each.annotation, target, f"parameter `{each.name}` of {label}")
        description = _annotated_description(annotation, f"parameter `{each.name}` of {label}")
        if _is_context(annotation):
            context.append(each.name)
            continue
        if (dependency := _annotated_dependency(annotation, f"parameter `{each.name}` of {label}")) is not None:
            dependencies.append((each.name, dependency.function))
            continue
        if uses_pydantic(annotation):
            annotation = pydantic_type(annotation, f"parameter `{each.name}` of {label}")
        default = NODEFAULT if each.default is each.empty else each.default
        parameters.append(Parameter(each.name, annotation, default, doc.parameters.get(each.name, description)))
    name = getattr(function, "__name__", "")
    return Signature(label, name, doc.description, tuple(parameters), tuple(context), tuple(dependencies))


def _bound_arguments(function: object) -> dict[str, Any]:
    return cast("Any", function).keywords if isinstance(function, partial) else {}


def read_result(function: Function) -> Annotation:
    """Return the resolved annotation of a function's result; `inspect.Signature.empty` if there is none.

    Raises:
        UsageError: A name in it does not exist at run time.
    """
    annotation = inspect.signature(function).return_annotation
    return _resolved(annotation, _annotated_function(function), f"the result of {label_of(function)}")


def label_of(function: object) -> str:
    """Return the name of a function for error messages, with its module, so that its author finds it."""
    name = getattr(function, "__qualname__", None) or repr(function)
    module = getattr(function, "__module__", None)
    return f"{module}.{name}()" if module and hasattr(function, "__qualname__") else str(name)


def origin_of(annotation: Annotation) -> Annotation:
    """Return the origin of a generic type, such as ``list`` for ``list[int]``; None for any other type."""
    origin: Annotation = typing.get_origin(annotation)
    return origin


def bare(annotation: Annotation) -> Annotation:
    """Return a type without the metadata of `typing.Annotated`."""
    while origin_of(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def arms(annotation: Annotation) -> tuple[Annotation, ...]:
    """Return the arms of a union, flattened, without the metadata of `typing.Annotated`; the type itself otherwise."""
    annotation = bare(annotation)
    if origin_of(annotation) in (typing.Union, UnionType):
        return tuple(inner for arm in typing.get_args(annotation) for inner in arms(arm))
    return (annotation,)


def _check_function(function: object, label: str, *, is_dependency: bool) -> None:
    if not callable(function):
        if is_dependency:
            raise UsageError(f"`Depends` needs a function, not {function!r}; pass the function without calling it")
        raise UsageError(f"{label} is not a function; {_remedy(function)}")
    if inspect.isclass(function):
        verb = "pass" if is_dependency else "register"
        raise UsageError(f"{label} is a class; {verb} a function that returns an instance of it")
    if is_dependency:
        return
    if getattr(function, "__name__", "") == "<lambda>":
        raise UsageError(f"{label} is a lambda, which has no name and no annotations; write a function with `def`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{label} is a generator function, but a call has one result; return a list")


def _remedy(function: object) -> str:
    """Return what to do about an object that is not a function."""
    if isinstance(function, str):
        return f"to set the name, write `name={function!r}`"
    if isinstance(function, classmethod | property):
        kind = type(cast("object", function)).__name__
        return (
            f"it is a {kind} in the body of its class; after the `class` statement, register a method of the class or "
            "of an instance"
        )
    if inspect.iscoroutine(function):
        function.close()  # else Python warns that nothing awaited it
        return "it is a coroutine; register the function without calling it"
    return "register a function"


def _check_parameter(each: inspect.Parameter, label: str, *, is_dependency: bool) -> None:
    what = f"parameter `{each.name}` of {label}"
    if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
        wrapper = "; if a decorator made this function, write @functools.wraps above it" if "<locals>" in label else ""
        raise UsageError(
            f"{label} takes `{stars}{each.name}`, which a schema cannot describe; write out each parameter, or one "
            f"parameter of the type `{'list' if stars == '*' else 'dict'}`{wrapper}"
        )
    if each.kind is each.POSITIONAL_ONLY:
        raise UsageError(
            f"{what} is positional-only, but requests pass arguments by name; remove the `/` after it, or wrap the "
            "function in one without `/`"
        )
    if each.annotation is each.empty and not isinstance(each.default, Dependency):
        gets_context = each.name in ("ctx", "context") or (is_dependency and each.default is each.empty)
        kind = "Context" if gets_context else "str"
        if each.name == "self":
            raise UsageError(f"{label} takes `self`; if it is a method of a class, register the method of an instance")
        raise UsageError(f"{what} has no annotation; write its type, such as `{each.name}: {kind}`")
    if each.name.startswith("__"):
        raise UsageError(f"{what} has a name that is reserved in Python; rename it")


def _annotated_description(annotation: Annotation, what: str) -> str:
    """Return the string in ``Annotated``, which is a description; refuse constraints that msgspec would ignore."""
    found = ""
    while origin_of(annotation) is Annotated:
        annotation, *beside = typing.get_args(annotation)
        for each in beside:
            if isinstance(each, str):
                found = each
            elif type(each).__module__.partition(".")[0] in ("annotated_types", "pydantic"):
                kind = type(each).__name__
                raise UsageError(
                    f"{what} has the constraint {kind} in `Annotated`, which is not supported; use `msgspec.Meta`, "
                    "such as `Meta(ge=0)`"
                )
    return found


def _annotated_dependency(annotation: Annotation, what: str) -> Dependency | None:
    """Return the `Dependency` in ``Annotated``; None if there is none."""
    while origin_of(annotation) is Annotated:
        annotation, *beside = typing.get_args(annotation)
        for each in beside:
            if isinstance(each, Dependency):
                return each
            if getattr(each, "__name__", "") == "Depends":
                raise UsageError(f"`Depends` in `Annotated` of {what} has no function; write Depends(function)")
    return None


def _annotated_function(function: Any) -> Callable[..., object]:
    """Return the function in whose module the annotations of *function* are written."""
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
    """Return an annotation with its names resolved.

    Raises:
        UsageError: A name in it does not exist at run time.
    """
    if annotation is inspect.Signature.empty:
        return annotation

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        hints = typing.get_type_hints(holder, getattr(target, "__globals__", {}), include_extras=True)
    except Exception as error:  # an annotation is any expression, so evaluating it may raise anything
        raise UsageError(
            f"the annotation {annotation!r} of {what} cannot be resolved: {error}; import its names at run time (not "
            "under `if TYPE_CHECKING:`), and define types at the top level of a module, above the function"
        ) from error
    return hints["it"]


def _is_context(annotation: Annotation) -> bool:
    """Whether a type is `Context`, a subclass of it, or a union with one."""
    for arm in arms(annotation):
        origin = origin_of(arm) or arm
        if isinstance(origin, type) and issubclass(origin, BaseContext):
            return True
    return False
