"""Arguments of a wrong type: the error names the argument, at once, in place of Python's own error or of no error."""

from __future__ import annotations

import enum
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import pytest
from msgspec import Meta, field

from mcpgen import (
    Client,
    ClientCredentials,
    ClientLimits,
    Depends,
    FileTokenStore,
    Http,
    IdJag,
    Image,
    Introspection,
    Jwt,
    JwtAssertion,
    KeyringTokenStore,
    Limits,
    MemoryEventStore,
    MemoryTaskStore,
    OAuth,
    Process,
    Protect,
    Redis,
    RedisTaskStore,
    ResourceNotFound,
    Server,
    SqliteTaskStore,
    TaskLimits,
    UsageError,
    bearer,
    connect,
    connect_sync,
    read_config,
    register,
    tool_ui,
)
from mcpgen.generated.v2025_11_25 import models as older
from mcpgen.generated.v2026_07_28 import models
from mcpgen.middleware import LoggingMiddleware, ResponseLimitingMiddleware, TimingMiddleware
from mcpgen.runtime.adapt import definition_route

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

ANY: Any = None
FIELD: Any = field(default_factory=list)
GIVEN: Any = "s3cret"


def add(a: int) -> int:
    return a


def with_field(a: list[int] = FIELD) -> int:
    return len(a)


def with_listed_result(a: int) -> Any:
    return [a]


with_listed_result.__annotations__["return"] = [int]


def with_bare_depends(a: Annotated[int, Depends]) -> int:
    return a


def with_a_list_literal(value: Any) -> None: ...


with_a_list_literal.__annotations__["value"] = [int]


class Fraction(enum.Enum):
    HALF = 0.5


def with_fractions(value: Fraction) -> None: ...


def with_a_constraint_of_numbers(value: Annotated[str, Meta(ge=3)]) -> None: ...


def with_lists(value: list[int] | set[int]) -> None: ...


def with_texts(a: bytes | str) -> int:
    return len(a)


async def connected(_: object) -> None: ...


class Calculator:
    @classmethod
    def half(cls, a: int) -> float:
        return a / 2

    @property
    def total(self) -> int:
        return 1

    def __call__(self, a: int) -> int:
        return a


async def events(_: object) -> AsyncGenerator[None]:
    yield


def looping() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["own"] = found
    return found


def named(**more: Any) -> Callable[[], object]:
    return lambda: Server(**{"name": "demo", **more})


def tool(function: Any, **more: Any) -> Callable[[], object]:
    return lambda: Server("demo").tool(function, **more)


def served(**more: Any) -> Callable[[], object]:
    return lambda: Server("demo").asgi(**more)


def protected(**more: Any) -> Callable[[], object]:
    return partial(Protect, **{"resource": "https://example.com/mcp", "issuers": ["https://a.example.com"], **more})


def introspected(**more: Any) -> Callable[[], object]:
    return partial(Introspection, **{"client_id": "a", "client_secret": "b", **more})


def with_key(**more: Any) -> Callable[[], object]:
    return partial(ClientCredentials, "a", private_key="-----BEGIN PRIVATE KEY-----", **more)


def no_arguments() -> str:
    return "a"


CASES: list[tuple[Callable[[], object], str]] = [
    (named(name=b"demo"), "`name` must be a string, not bytes"),
    (named(name=Path("demo")), "`name` must be a string, not "),
    (named(version=add), "`version` must be a string, not function"),
    (named(revisions=5), "`revisions` must be a list, not 5"),
    (tool(with_listed_result), "with_listed_result() has the type [int]; write `list[int]`"),
    (named(name="\ud800"), "surrogates not allowed"),
    (named(instructions=["a"]), "`instructions` must be a string, not list"),
    (named(debug="0"), "`debug` must be True or False, not '0'"),
    (named(strict=1), "`strict` must be True or False, not 1"),
    (named(page_size="5"), "`page_size` must be a whole number, not '5'"),
    (named(state_keys=5), "`state_keys` must hold at least one key"),
    (named(tasks=MemoryTaskStore), "`tasks` must be a task store, such as MemoryTaskStore(), not <class"),
    (named(task_limits=Limits()), "`task_limits` must be a TaskLimits, such as TaskLimits(max_running=10), not Limits"),
    (named(lifespan=asynccontextmanager(events)(1)), "`lifespan` is a context manager already; pass the function with"),
    (named(icons=[models.Icon(src="x.png")]), "`src` of an icon of Server is 'x.png'; write a URI, such as https://"),
    (named(website_url="example"), "`website_url` of Server is 'example'; write a URI, such as https://example.com"),
    (named(lifespan=connected), "`lifespan` is a coroutine function; write @asynccontextmanager above connected"),
    (tool(add, name=5), "`name` of the tool tests.runtime.api.test_argument_types.add() must be a string, not 5"),
    (tool(add, description=b"x"), "`description` in the decorator of "),
    (tool(add, meta=looping()), "`meta` in the decorator of "),
    (tool(add, meta={"a": ANY or object()}), "add() cannot be written as JSON: Encoding objects of type object is"),
    (
        tool(add, meta=5),
        "`meta` in the decorator of tests.runtime.api.test_argument_types.add() is not valid: Expected",
    ),
    (tool(add, icons=5), "`icons` must be a list of Icon, such as [Icon(src='https://…')], not 5"),
    (lambda: Server("demo").resource("a://b", icons=ANY or 5)(no_arguments), "`icons` must be a list of Icon, such as"),
    (lambda: Server("demo").prompt(icons=ANY or 5)(no_arguments), "`icons` must be a list of Icon, such as"),
    (tool(add, meta={"a b": 1}), "add() is not valid at /a b: it is not a valid key of `_meta`, such as com.example/"),
    (
        tool(add, icons=[{"src": "x"}]),
        "`src` of an icon in the decorator of tests.runtime.api.test_argument_types.add()",
    ),
    (tool(add, icons=[{"src": 5}]), "add() is not valid: Expected `str`, got `int` - at `$.icons[0].src`; correct"),
    (
        lambda: Server("demo").resource("a://b", mime_type=ANY or 5)(no_arguments),
        "`mime_type` in the decorator of tests.runtime.api.test_argument_types.no_arguments() is not valid: Exp",
    ),
    (named(version=None), "`version` must be a string, not None"),
    (partial(tool_ui, "greet"), "`tool` must be a Tool, such as one that `Client.tools` returned, not 'greet'"),
    (
        tool(add, annotations={"read_only_hint": True}),
        "add() has the unknown key 'read_only_hint'; write ToolAnnotations(read_only_hint=True), or readOnlyHint",
    ),
    (tool(add, annotations={"readOnly": True}), "add() has the unknown key 'readOnly'; did you mean readOnlyHint?"),
    (tool(add, annotations=models.Annotations()), "add() must be ToolAnnotations(…), not Annotations(…)"),
    (
        lambda: Server("demo").resource("a://b", annotations=ANY or models.ToolAnnotations())(no_arguments),
        "no_arguments() must be Annotations(…), not ToolAnnotations(…)",
    ),
    (tool(add, replay="yes"), "`replay` must be True or False, not 'yes'"),
    (tool(add, structured="yes"), "`structured` must be True or False, not 'yes'"),
    (tool(Calculator()), "has no `__name__`; set the name of the tool with `name=`"),
    (tool(Calculator.__dict__["half"]), "it is a classmethod in the body of its class"),
    (tool(Calculator.__dict__["total"]), "it is a property in the body of its class"),
    (lambda: Server("demo").tool(connected(1)), "it is a coroutine; register the function without calling it"),
    (tool(with_field), "is a field, which only classes have; write the default itself"),
    (tool(with_bare_depends), "has no function; write Depends(function)"),
    (tool(with_texts), "; use one of them, such as `str`"),
    (tool(with_a_list_literal), "; write `list[int]`"),
    (tool(with_fractions), "; change the values, or use `str`"),
    (tool(with_a_constraint_of_numbers), "; remove this constraint, or change the type"),
    (tool(with_lists), "; use one of them, such as `list`"),
    (
        lambda: connect(Server("demo"), extensions=ANY or 3),
        "`extensions` must be a list, such as ['com.example/rooms'], not 3",
    ),
    (partial(TimingMiddleware, level="info"), "`level` must be a whole number, not 'info'"),
    (partial(LoggingMiddleware, include_payloads="no"), "`include_payloads` must be True or False, not 'no'"),
    (partial(ResponseLimitingMiddleware, 5, tools="add"), "`tools` must be a list, not 'add'"),
    (partial(Limits, max_values=1.5), "`max_values` of Limits must be a whole number, not 1.5"),
    (partial(ClientLimits, max_pages=True), "`max_pages` of ClientLimits must be a number, not True"),
    (partial(TaskLimits, min_ttl_ms=10, max_ttl_ms=5), "`min_ttl_ms` of TaskLimits is 10, more than `max_ttl_ms` (5)"),
    (served(path=None), "`path` must be a path, such as '/mcp', not None"),
    (served(health=True), "`health` must be a path, such as '/mcp', not True"),
    (served(health="/mcp"), "`path` and `health` must be different paths, but both are '/mcp'"),
    (served(allowed_origins=[5]), "`allowed_origins` must be a list of strings, but it has 5"),
    (served(bound_to=5), "`bound_to` must be a string, not int"),
    (served(events=MemoryEventStore), "`events` must be an event store, such as MemoryEventStore(), not <class"),
    (protected(implies=["a"]), "`implies` must be a mapping, such as {'admin': ['read']}, not ['a']"),
    (protected(verify=Jwt), "`verify` must be Jwt(), Introspection(…) or an async function"),
    (
        protected(issuers=["https://a.example.com?b=c"]),
        "`issuers` has a URL with a query, in ['https://a.example.com?b",
    ),
    (protected(audience=[""]), "`audience` has an empty name; remove it"),
    (
        partial(Server, "demo", lifespan=lambda: None),
        "`lifespan` must be a function that takes the server, but <lambda>() takes ()",
    ),
    (protected(hide="x"), "`hide` must be True or False, not 'x'"),
    (introspected(cache_seconds="5"), "`cache_seconds` must be a number, not '5'"),
    (introspected(leeway_seconds=float("nan")), "`leeway_seconds` is nan; it must not be negative"),
    (introspected(scope_claims="scp"), "`scope_claims` must be a list of strings, such as ['scp']"),
    (introspected(scope_claims=None), "`scope_claims` must be a list of strings, such as ['scp'], not None"),
    (partial(Jwt, algorithms=None), "`algorithms` must be a list of strings, such as ['RS256'], not None"),
    (partial(Jwt, algorithms=(1, "x")), "`algorithms` must be a list of strings, such as ['RS256'], not (1, 'x')"),
    (partial(Jwt, types=None), "`types` must be a list of strings, such as ['jwt'], not None"),
    (partial(IdJag, ANY, client_id="a", id_token=GIVEN), "`token_endpoint` must be a URL of https"),
    (partial(Jwt, leeway_seconds=float("nan")), "`leeway_seconds` is nan; it must not be negative"),
    (partial(OAuth, login_seconds="5"), "`login_seconds` must be a number, not '5'"),
    (partial(OAuth, visit="x"), "`visit` must be a function that gets the URL of the login page, not 'x'"),
    (
        partial(OAuth, visit=lambda: None),
        "`visit` must be a function that takes the URL of the login page, but <lambda>() takes ()",
    ),
    (partial(ResourceNotFound, 3), "`uri` must be a string, not int"),
    (partial(OAuth, interactive="no"), "`interactive` must be True or False, not 'no'"),
    (partial(OAuth, store=FileTokenStore), "`store` must be a TokenStore, such as FileTokenStore(folder), not <class"),
    (partial(OAuth, client_id=""), "`client_id` is empty; leave it out if the client is not registered"),
    (partial(OAuth, scopes=5), "`scopes` must be a list, such as ['a', 'b'], not 5"),
    (partial(ClientCredentials, "", secret=GIVEN), "`client_id` is empty; the authorization server gives it"),
    (partial(ClientCredentials, "a", private_key=b"x"), "`private_key` must be a string, not bytes"),
    (partial(ClientCredentials, "a", private_key="key.pem"), "pass the text of the PEM file, not its path"),
    (with_key(), "`private_key` is not a PEM key for the algorithm 'ES256'"),
    (with_key(algorithm=None), "`algorithm` must be a string, such as 'ES256', not None"),
    (with_key(algorithm="ES265"), "`algorithm` is 'ES265'; use RS256, "),
    (
        partial(ClientCredentials, "a", private_key="x", algorithm="HS256"),
        "`algorithm` is 'HS256', which has no private",
    ),
    (partial(JwtAssertion, add, client_secret=GIVEN), "`client_secret` needs `client_id`; pass both"),
    (partial(IdJag, "https://a.example.com", client_id="a", id_token=5), "`id_token` must be a string or a function"),
    (partial(IdJag, "https://a.example.com", client_id="a", id_token=GIVEN, scopes="c d"), "such as ['c', 'd']"),
    (partial(bearer, "Bearer abc"), "leave out the word Bearer and the final line break"),
    (partial(bearer, ""), "the bearer token is empty; check where the program reads it from"),
    (
        partial(Http, "https://example.com", headers={"Authorization": "x"}, auth=bearer("y")),
        "`headers` has Authorization, which `auth` sets, too; pass only one of them",
    ),
    (
        partial(Http, "https://example.com", client=httpx.AsyncClient(auth=("a", "b")), auth=OAuth()),
        "`client` has an `auth` of its own, which replaces the tokens of `auth`; pass only one",
    ),
    (partial(Process, "python", directory=5), "`directory` must be a path, as a string or a Path, not 5"),
    (partial(Process, "python", inherit_environment="no"), "`inherit_environment` must be True or False, not 'no'"),
    (partial(Process, "python", on_stderr="x"), "`on_stderr` must be a function that takes a line, not 'x'"),
    (partial(Redis, "redis://h", timeout_seconds="1"), "`timeout_seconds` must be a number, not '1'"),
    (partial(Redis, "redis://h", event_limits={}), "`event_limits` must be an EventLimits"),
    (partial(Redis, "redis://h", options=[1]), "`options` must be a mapping"),
    (partial(RedisTaskStore, "redis://h", name=5), "`name` must be a string, not int"),
    (partial(MemoryTaskStore, max_tasks="5"), "`max_tasks` must be a whole number, not '5'"),
    (partial(MemoryEventStore, max_streams="5"), "`max_streams` must be a whole number, not '5'"),
    (partial(SqliteTaskStore, ANY), "`path` must be a path, as a string or a Path, not None"),
    (partial(SqliteTaskStore, ""), "`path` is ''; write a path that is not empty and has no NUL character"),
    (partial(SqliteTaskStore, "."), "`path` is '.', which is a folder; add the name of a file, such as tasks.db"),
    (partial(SqliteTaskStore, "tasks.db", lock_seconds=-1), "`lock_seconds` is -1; it must be 0 or more"),
    (partial(SqliteTaskStore, __file__), "which is not a database of SQLite; name another file"),
    (partial(FileTokenStore, 5), "`folder` must be a path, as a string or a Path, not 5"),
    (partial(KeyringTokenStore, 5), "`service` must be a string, not int"),
    (partial(Image, data=b"x", format="png", max_bytes="5"), "`max_bytes` must be a whole number, not '5'"),
    (partial(read_config, ANY), "`path` must be a path, as a string or a Path, not None"),
    (partial(register, ANY), "`package` must be a package that `mcpgen build --schema` wrote, or its full name"),
    (partial(register, "./draft"), "`package` is './draft', which is not the full name of a package"),
    (partial(register, ""), "`package` must be a package that `mcpgen build --schema` wrote, or its full name"),
    (lambda: connect(ANY or Client), "or a transport such as Process, not the class Client"),
    (lambda: connect(ANY or Process), "or a transport such as Process, not the class Process"),
    (partial(connect, Server("demo"), title=b"x"), "`title` must be a string, not bytes"),
    (
        partial(connect, Server("demo"), capabilities=["roots"]),
        "`capabilities` must be a mapping, such as {'roots': {}",
    ),
    (
        partial(connect, Server("demo"), roots=[ANY or older.Root(uri="file:///a")]),
        "a Root of mcpgen.generated.v2025_11_25; import Root from mcpgen.generated.v2026_07_28",
    ),
    (partial(definition_route, "2025-11-25", "2024-11-05", ANY or 5), "2025-11-25 has no definition 5"),
]


@pytest.mark.parametrize(("call", "told"), CASES, ids=[told for _, told in CASES])
def test_an_argument_of_a_wrong_type_is_named(call: Callable[[], object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()

    assert told in str(caught.value)
    assert "Client()" not in str(caught.value)


def test_a_lifespan_that_makes_no_async_context_manager_is_named() -> None:
    @contextmanager
    def opened(_: object) -> Generator[None]:
        yield

    server = Server("demo", lifespan=ANY or opened)

    with pytest.raises(UsageError) as caught, connect_sync(server):
        pass

    told = "`lifespan` must return an async context manager, but it returned an object of the type "
    assert str(caught.value).startswith(told)
