"""What type checkers make of typed results, the state of a lifespan, and dependencies."""

from __future__ import annotations

import datetime as dt
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, assert_type

import msgspec

from mcpgen import Client, Context, Depends, Server, ToolFailed, ToolResult, UnexpectedResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator


class Note(msgspec.Struct):
    title: str
    due: dt.date


class Point(TypedDict):
    x: int


class Database:
    def notes(self) -> list[Note]:
        return []


# --- results


async def call(client: Client) -> None:
    assert_type(await client.call_tool("note"), ToolResult)
    assert_type(await client.call_tool("note", {"id": 1}, returns=Note), Note)
    assert_type(await client.call_tool("note", {"id": 1}, returns=Note, timeout_seconds=1.0), Note)
    assert_type(await client.call_tool("notes", returns=list[Note]), list[Note])
    assert_type(await client.call_tool("point", returns=Point), Point)
    assert_type(await client.call_tool("today", returns=dt.date), dt.date)
    found: Note | None = await client.call_tool("find", returns=Note | None)
    assert_type(found, Note | None)
    result = await client.call_tool("note")
    assert_type(result.text, str)
    assert_type(result.is_error, bool | msgspec.UnsetType)
    try:
        await client.call_tool("note", returns=Note)
    except (ToolFailed, UnexpectedResult) as error:
        assert_type(error.result, ToolResult)


# --- the state of a lifespan


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[Database]:
    yield Database()


server = Server("typed", lifespan=lifespan)
assert_type(server, Server[Database])

plain = Server("plain")
assert_type(plain.state, Any)


def state_of(server: Server[Database]) -> Database:
    return server.state


@server.tool
async def count(ctx: Context[Database]) -> int:
    assert_type(ctx.state, Database)
    return len(ctx.state.notes())


@server.tool
def anything(ctx: Context) -> int:
    assert_type(ctx.state, Any)
    return 1


def takes_any_context(ctx: Context[object]) -> None: ...


def is_covariant(ctx: Context[Database]) -> None:
    takes_any_context(ctx)


# --- dependencies


def database(ctx: Context[Database]) -> Database:
    return ctx.state


async def user(ctx: Context) -> str:
    return ctx.user


def transaction() -> Generator[Database]:
    yield Database()


async def session() -> AsyncGenerator[Database]:
    yield Database()


@contextmanager
def opened() -> Generator[Database]:
    yield Database()


@asynccontextmanager
async def opened_async() -> AsyncGenerator[Database]:
    yield Database()


assert_type(Depends(database), Database)
assert_type(Depends(user), str)
assert_type(Depends(transaction), Database)
assert_type(Depends(session), Database)
assert_type(Depends(opened), Database)
assert_type(Depends(opened_async), Database)


@server.tool
def titles(name: Annotated[str, Depends(user)], db: Database = Depends(database)) -> list[str]:
    return [name, *(each.title for each in db.notes())]


server.overrides[database] = transaction
server.overrides.clear()
