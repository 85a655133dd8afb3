"""The commands ``inspect``, ``call``, ``read`` and ``prompt``: look at a server, and use it, from a terminal."""

from __future__ import annotations

from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, TypeVar, Unpack

import click

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.arguments import InvalidArguments, check_names, converted, json_object, pairs_of, similar
from mcpgen.runtime.cli.elicitation_prompt import ElicitationPrompt
from mcpgen.runtime.cli.inventory import PROMPTS, TOOLS, inventory_of, listed_by
from mcpgen.runtime.cli.keyboard import Keyboard
from mcpgen.runtime.cli.overview import overview, parameters
from mcpgen.runtime.cli.progress_display import ProgressDisplay
from mcpgen.runtime.cli.result_output import Results
from mcpgen.runtime.cli.screen import Screen, stderr, stdout
from mcpgen.runtime.cli.server_visit import ServerVisit
from mcpgen.runtime.cli.target import target_of
from mcpgen.runtime.cli.terminal_text import escaped_line, joined
from mcpgen.runtime.errors import UnsupportedByPeer
from mcpgen.runtime.protocol.log_levels import LEVELS
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect import Options
    from mcpgen.runtime.protocol.log_levels import Level

__all__ = ["call", "inspect", "prompt", "read"]

F = TypeVar("F", bound="Callable[..., object]")

_Pairs: TypeAlias = "dict[str, tuple[str, bool]]"

_REVISION: Final = click.option("--revision", metavar="R", help="Speak this revision, or none.")
_JSON: Final = click.option("--json", "is_json", is_flag=True, help="Write what the server has sent, exactly.")
_TIMEOUT: Final = click.option(
    "--timeout", "seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Wait so many seconds at most."
)
_ENV: Final = click.option("--env", multiple=True, metavar="KEY=VALUE", help="Set this in the server's environment.")
_CWD: Final = click.option(
    "--cwd", type=click.Path(exists=True, file_okay=False), metavar="DIR", help="Where the server runs."
)
_HEADER: Final = click.option(
    "--header", "headers", multiple=True, metavar='"NAME: VALUE"', help="Send this header; for a URL."
)
_BEARER: Final = click.option(
    "--bearer-env", metavar="VARIABLE", help="Send the token that this variable of the environment has; for a URL."
)
_ROOT: Final = click.option(
    "--root", "roots", multiple=True, type=click.Path(exists=True), metavar="PATH", help="A root to tell the server of."
)
_LOG_LEVEL: Final = click.option(
    "--log-level", type=click.Choice(list(LEVELS)), help="Have the server log, from this level on; to standard error."
)
_FOLDER: Final = click.option(
    "--output", type=click.Path(file_okay=False), metavar="DIR", help="Save images and the like in DIR."
)
_TARGET: Final = click.argument("target", metavar="TARGET")


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


_SERVER: Final = (_REVISION, _JSON, _TIMEOUT, _ENV, _CWD, _HEADER, _BEARER)
_WORK: Final = (*_SERVER, _ROOT, _LOG_LEVEL)


class _ServerOptions(TypedDict):
    revision: str | None
    is_json: bool
    seconds: float | None
    env: tuple[str, ...]
    cwd: str | None
    headers: tuple[str, ...]
    bearer_env: str | None


class _Session:
    """What all of these commands do: see to the server that the command line means, and to the two screens."""

    def __init__(self, words: Sequence[str], **options: Unpack[_ServerOptions]) -> None:
        self.out: Screen = stdout()
        self.err: Screen = stderr()
        self.is_json: bool = options["is_json"]
        self.results: Results = Results(self.out, self.err, is_json=self.is_json)
        self.target = target_of(words, options["env"], options["cwd"], options["headers"], options["bearer_env"])
        self.telling: ProgressDisplay = ProgressDisplay(self.err)
        self.visit: ServerVisit
        self._open = partial(
            ServerVisit,
            self.target,
            self.err,
            self.telling.note,
            revision=options["revision"],
            seconds=options["seconds"],
        )
        self._level: Level | None = None

    def look(self) -> None:
        """Offer the server nothing."""
        self.visit = self._open()

    def work(self, roots: Sequence[str], log_level: Level | None) -> None:
        """Offer it what the command line says, and to ask whoever sits at the terminal."""
        self._level = log_level
        self.telling.level = log_level or self.telling.level
        offered: Options = {"log": self.telling.log}
        if roots:
            paths = [Path(each).resolve() for each in roots]
            offered["roots"] = [models.Root(uri=each.as_uri(), name=each.name) for each in paths]
        if Keyboard.is_there():
            consent = ElicitationPrompt(
                self.err, Keyboard(), server=(self.target.place, self.target.name), telling=self.telling
            )
            offered |= {"elicit": consent.elicit, "elicit_url": consent.elicit_url}
        self.visit = self._open(**offered)

    def run(self, do: Callable[[Client], Any]) -> None:
        """Do it, and exit."""
        raise SystemExit(self.visit.run(do))

    async def begin(self, client: Client) -> None:
        """Do what comes before every piece of work."""
        if self._level is None:
            return
        try:
            await client.set_log_level(self._level)
        except UnsupportedByPeer:
            self.err.line("The server has no log.")


@click.command()
@_options(*_SERVER)
@click.argument("target", nargs=-1, required=True, metavar="TARGET")
def inspect(*, target: tuple[str, ...], **options: Unpack[_ServerOptions]) -> None:
    """Show what a server has.

    TARGET is the server's URL, its command, in quotes or behind "--", or FILE.py[:OBJECT] as for "mcpgen serve".
    """
    session = _Session(target, **options)

    async def do(client: Client) -> int:
        inventory = await inventory_of(client, session.visit)
        if session.is_json:
            session.results.json(inventory.as_json())
        else:
            session.out.lines(overview(inventory, session.out))
        for method, refused in inventory.failures.items():
            session.results.failure(
                escaped_line(f"{method} was answered with an error: {refused.message} ({refused.code})")
            )
        return 1 if inventory.failures else 0

    session.look()
    session.run(do)


@click.command()
@_options(*_WORK, _FOLDER)
@click.option("--json-args", metavar="JSON|@FILE|-", help="All arguments, as a JSON object.")
@_TARGET
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def call(  # noqa: PLR0913 (one parameter for each option)
    *,
    target: str,
    tool: str,
    arguments: tuple[str, ...],
    json_args: str | None,
    output: str | None,
    roots: tuple[str, ...],
    log_level: Level | None,
    **options: Unpack[_ServerOptions],
) -> None:
    """Call a tool.

    TARGET is the server's URL, its command, in quotes, or FILE.py[:OBJECT]. What a VALUE is, the tool's schema says:
    text as it is, numbers, true and false, lists and objects in JSON. KEY:=JSON says it itself.
    """
    if json_args is not None and arguments:
        raise click.UsageError("Give KEY=VALUE or --json-args, not both.")
    session = _Session([target], **options)
    pairs = pairs_of(arguments)
    whole = None if json_args is None else json_object(json_args)
    session.work(roots, log_level)

    async def do(client: Client) -> int:
        items = await listed_by(client, session.visit, TOOLS)
        listed = _named(items, tool)
        if listed is None:
            return _unknown(session, "tool", tool, items)
        schema = listed.get("inputSchema")
        try:
            given = converted(pairs, schema) if whole is None else whole
        except InvalidArguments as misfit:
            return _misfit(session, misfit, tool, parameters(schema, session.err))
        await session.begin(client)
        await client.call_tool(tool, given, on_progress=session.telling.progress)
        session.err.clear_status()
        return session.results.of_tool(session.visit.result("tools/call"), output)

    session.run(do)


@click.command()
@_options(*_WORK)
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the content to FILE.")
@_TARGET
@click.argument("uri", metavar="URI")
def read(
    *,
    target: str,
    uri: str,
    output: str | None,
    roots: tuple[str, ...],
    log_level: Level | None,
    **options: Unpack[_ServerOptions],
) -> None:
    """Read a resource.

    TARGET is the server's URL, its command, in quotes, or FILE.py[:OBJECT]. The content goes to standard output as it
    is; on a terminal, of what is no text only its type and size.
    """
    session = _Session([target], **options)
    session.work(roots, log_level)

    async def do(client: Client) -> int:
        await session.begin(client)
        await client.read_resource(uri, on_progress=session.telling.progress)
        session.err.clear_status()
        return session.results.of_resource(session.visit.result("resources/read"), output)

    session.run(do)


@click.command()
@_options(*_WORK, _FOLDER)
@_TARGET
@click.argument("name", metavar="NAME")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def prompt(  # noqa: PLR0913 (one parameter for each option)
    *,
    target: str,
    name: str,
    arguments: tuple[str, ...],
    output: str | None,
    roots: tuple[str, ...],
    log_level: Level | None,
    **options: Unpack[_ServerOptions],
) -> None:
    """Show a prompt, filled in.

    TARGET is the server's URL, its command, in quotes, or FILE.py[:OBJECT].
    """
    session = _Session([target], **options)
    given = _texts(pairs_of(arguments))
    session.work(roots, log_level)

    async def do(client: Client) -> int:
        items = await listed_by(client, session.visit, PROMPTS)
        listed = _named(items, name)
        if listed is None:
            return _unknown(session, "prompt", name, items)
        schema = _schema_of(listed)
        reasons = check_names(given, schema["properties"], schema["required"])
        if reasons:
            return _misfit(session, InvalidArguments(reasons), name, parameters(schema, session.err))
        await session.begin(client)
        await client.get_prompt(name, given or None, on_progress=session.telling.progress)
        session.err.clear_status()
        return session.results.of_prompt(session.visit.result("prompts/get"), output)

    session.run(do)


def _texts(pairs: _Pairs) -> dict[str, str]:
    for key, (_, is_forced) in pairs.items():
        if is_forced:
            raise click.UsageError(f"The arguments of a prompt are text: {escaped_line(key)}=VALUE.")
    return {key: text for key, (text, _) in pairs.items()}


def _schema_of(listed: dict[str, Any]) -> dict[str, Any]:
    """Return what a prompt takes, as a tool would say it."""
    found = listed.get("arguments")
    arguments = [each for each in found if is_object(each)] if is_array(found) else []
    return {
        "properties": {
            str(each.get("name")): {"type": "string", "description": each.get("description") or each.get("title") or ""}
            for each in arguments
        },
        "required": [str(each.get("name")) for each in arguments if each.get("required") is True],
    }


def _named(items: Sequence[Any], name: str) -> dict[str, Any] | None:
    return next((each for each in items if is_object(each) and each.get("name") == name), None)


def _unknown(session: _Session, kind: str, name: str, items: Sequence[Any]) -> int:
    names = [str(each.get("name")) for each in items if is_object(each)]
    hint = similar(name, names)
    session.results.failure(f"the server has no {kind} {escaped_line(name)!r}{hint or '.'}")
    if not hint:
        listed = joined(map(escaped_line, sorted(names)), "and") if names else "none"
        session.err.line(f"It has {listed}.")
    return 2


def _misfit(session: _Session, misfit: InvalidArguments, name: str, table: Sequence[str]) -> int:
    for reason in misfit.reasons:
        session.results.failure(reason)
    session.err.line()
    session.err.line(f"{escaped_line(name)} takes{':' if table else ' no arguments.'}")
    session.err.lines(table)
    return 2
