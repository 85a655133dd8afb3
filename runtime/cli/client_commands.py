"""The commands ``inspect``, ``call``, ``read`` and ``prompt``: connect to a server and use it from a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import click
import msgspec

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.client.arguments import (
    InvalidArguments,
    check_names,
    convert_arguments,
    did_you_mean,
    parse_json_object,
    parse_pairs,
)
from mcpgen.runtime.cli.client.client_run import ClientRun, missing_feature
from mcpgen.runtime.cli.client.elicitation_prompt import ElicitationPrompt
from mcpgen.runtime.cli.client.inventory import PROMPTS, TOOLS, fetch_inventory, fetch_list
from mcpgen.runtime.cli.client.options import (
    CLIENT,
    FOLDER,
    MAX_ITEMS,
    SERVER,
    STATUS,
    TARGET,
    ArgumentsCommand,
    ClientOptions,
    ServerOptions,
    options_of,
)
from mcpgen.runtime.cli.client.overview import parameter_lines, write_overview
from mcpgen.runtime.cli.client.progress_display import ProgressDisplay
from mcpgen.runtime.cli.client.result_output import ResultOutput
from mcpgen.runtime.cli.client.terminal import Keyboard, Screen
from mcpgen.runtime.cli.completion_command import complete_target
from mcpgen.runtime.cli.hosts.config_option import ServerCommand, server_target
from mcpgen.runtime.cli.terminal_text import escaped_line
from mcpgen.runtime.errors import (
    InvalidPayload,
    MalformedFrame,
    RequestLost,
    RequestRefused,
    RequestTimedOut,
    UnsupportedByPeer,
)
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect_options import Options
    from mcpgen.runtime.protocol.log_levels import Level

__all__ = ["call", "inspect", "prompt", "read"]

# The input schema of a tool that is not listed.
_ANY_ARGUMENTS: Final = {"type": "object", "additionalProperties": True}


class _Command:
    """The common part of these commands: the server that the command line names, and the two output streams."""

    def __init__(
        self,
        words: Sequence[str],
        roots: Sequence[str] = (),
        log_level: Level | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.out: Screen = Screen(sys.stdout)
        self.err: Screen = Screen(sys.stderr)
        self.is_json: bool = options["is_json"]
        self.results: ResultOutput = ResultOutput(self.out, self.err, is_json=self.is_json)
        self.target = server_target(words, options)
        self.display: ProgressDisplay = ProgressDisplay(self.err)
        self.target.stderr.show = None if options["quiet"] else self.display.server_line
        self.client_run: ClientRun
        self.max_items: int = options.get("max_items", 0)
        self.options_of = options
        self._roots = roots
        self._level: Level | None = log_level

    def prepare(self, **features: Unpack[Options]) -> None:
        """Prepare a client with these options of `connect`."""
        given, note = self.options_of, self.display.note
        revision, seconds = given["revision"], given["seconds"]
        features["cache"] = not given["no_cache"]
        self.client_run = ClientRun(self.target, self.err, note, revision=revision, seconds=seconds, **features)

    def declare_features(self, **more: Unpack[Options]) -> None:
        """Prepare a client with roots and logging; and with elicitation, if a user sits at the terminal."""
        self.display.level = self._level or self.display.level
        options: Options = {**more, "log": self.display.log}
        if self._roots:
            paths = [Path(each).resolve() for each in self._roots]
            options["roots"] = [models.Root(uri=each.as_uri(), name=each.name) for each in paths]
        if Keyboard.is_there():
            prompt = ElicitationPrompt(
                self.err, Keyboard(), server=(self.target.kind, self.target.name), display=self.display
            )
            options |= {"elicit": prompt.elicit, "elicit_url": prompt.elicit_url}
        self.prepare(**options)

    def run(self, work: Callable[[Client], Any]) -> None:
        """Connect, do *work*, and exit with its status."""
        raise SystemExit(self.client_run.run(work))

    async def set_log_level(self, client: Client) -> None:
        """Ask the server for log entries, if ``--log-level`` is given."""
        if self._level is None:
            return
        try:
            await client.set_log_level(self._level)
        except UnsupportedByPeer:
            self.display.note("the server has no logging, so --log-level has no effect")


@click.command(cls=ServerCommand, epilog=STATUS)
@options_of(*SERVER)
@MAX_ITEMS
@click.argument("target", nargs=-1, required=True, metavar="TARGET", shell_complete=complete_target)
def inspect(*, target: tuple[str, ...], **options: Unpack[ServerOptions]) -> None:
    """List the tools, resources and prompts of a server.

    TARGET is the server's URL, its command (in quotes, or after "--"), or FILE.py[:OBJECT] as for "mcpgen serve".
    With --config and without --server, the command does this for each server in the configuration.

    Example: mcpgen inspect -- python server.py
    """
    command = _Command(target, **options)

    async def work(client: Client) -> int:
        inventory = await fetch_inventory(client, command.client_run, command.max_items)
        if command.is_json:
            command.results.json(inventory.as_json())
        else:
            await write_overview(inventory, command.out)
        for method, reason in inventory.incomplete.items():
            command.display.note(f"{method}: {reason}")
        for method, refused in inventory.failures.items():
            command.results.failure(
                escaped_line(f"The server answered {method} with error {refused.code}: {refused.message}")
            )
        return 1 if inventory.failures else 0

    command.prepare()
    command.run(work)


@click.command(cls=ArgumentsCommand, epilog=STATUS)
@options_of(*CLIENT, FOLDER, MAX_ITEMS)
@click.option(
    "--json-args",
    metavar="JSON|@FILE|-",
    help="All arguments as one JSON object: given here, in FILE, or on standard input (-).",
)
@TARGET
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def call(
    *,
    target: str,
    tool: str,
    arguments: tuple[str, ...],
    json_args: str | None,
    output: str | None,
    **options: Unpack[ClientOptions],
) -> None:
    """Call a tool of a server, and show its result.

    TARGET is the server's URL, its command (in quotes), or FILE.py[:OBJECT] as for "mcpgen serve".

    The tool's input schema decides how VALUE is read: as text, as a number, as true or false, or as JSON if the tool
    takes an array or an object. KEY:=JSON passes any JSON value, whatever the schema says. The values of KEY:=JSON and
    of --json-args are not checked.

    Example: mcpgen call server.py price item=tea count=2
    """
    if json_args is not None and arguments:
        raise click.UsageError("Give either KEY=VALUE arguments or `--json-args`, not both.")
    command = _Command([target], **options)
    pairs = parse_pairs(arguments)
    whole = None if json_args is None else parse_json_object(json_args)
    command.declare_features(tasks=True)

    async def work(client: Client) -> int:
        items, problem = await _fetch_tools(client, command)
        listed = _find(items, tool)
        if listed is None and not problem:
            return _report_unknown(command, "tool", tool, items)
        if listed is None:
            command.display.note(f"The arguments are not checked: {problem}")
        schema = _ANY_ARGUMENTS if listed is None else listed.get("inputSchema")
        try:
            given = convert_arguments(pairs, schema) if whole is None else whole
        except InvalidArguments as error:
            return _report_invalid(command, error.reasons, tool, schema)
        await command.set_log_level(client)
        found = await client.call_tool(tool, given, on_progress=command.display.progress)
        command.err.clear_status()
        status = command.results.tool(_tool_result(command.client_run, found), output)
        if found.is_error is True:
            command.err.lines([line for block in found.content for line in missing_feature(getattr(block, "text", ""))])
        return status

    command.run(work)


def _tool_result(client_run: ClientRun, found: models.CallToolResult) -> dict[str, Any]:
    """Return the result of a tool as the server sent it; *found* if the result came in the state of a task."""
    sent: dict[str, Any] = client_run.result("tools/call")
    if sent.get("resultType") != "task" and not ("task" in sent and "content" not in sent):
        return sent
    # Servers of 2025-11-25 send it as the result of `tasks/result`.
    result: dict[str, Any] = client_run.result("tasks/result") or msgspec.to_builtins(found)
    return result


async def _fetch_tools(client: Client, command: _Command) -> tuple[list[Any], str]:
    """Return the tools, and why some or all of them are unknown: a tool can be called although it is not listed."""
    try:
        items, cut = await fetch_list(client, command.client_run, TOOLS, command.max_items)
    except (RequestRefused, RequestTimedOut, InvalidPayload, MalformedFrame, RequestLost) as error:
        return [], f"the server's tools are unknown, because tools/list failed: {error}"
    return items, f"the tool is not listed; {cut}" if cut else ""


@click.command(cls=ServerCommand, epilog=STATUS)
@options_of(*CLIENT)
@click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the content to FILE, not standard output."
)
@TARGET
@click.argument("uri", metavar="URI")
def read(*, target: str, uri: str, output: str | None, **options: Unpack[ClientOptions]) -> None:
    """Read a resource of a server, and write its content.

    TARGET is the server's URL, its command (in quotes), or FILE.py[:OBJECT] as for "mcpgen serve".

    The content goes to standard output, unchanged if that is not a terminal. A terminal shows control characters as
    escapes, and only the type and the size of binary content.
    """
    command = _Command([target], **options)
    command.declare_features()

    async def work(client: Client) -> int:
        await command.set_log_level(client)
        await client.read_resource(uri, on_progress=command.display.progress)
        command.err.clear_status()
        return command.results.resource(command.client_run.result("resources/read"), output)

    command.run(work)


@click.command(cls=ArgumentsCommand, epilog=STATUS)
@options_of(*CLIENT, FOLDER, MAX_ITEMS)
@TARGET
@click.argument("name", metavar="NAME")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def prompt(
    *, target: str, name: str, arguments: tuple[str, ...], output: str | None, **options: Unpack[ClientOptions]
) -> None:
    """Get a prompt of a server, and show its messages.

    TARGET is the server's URL, its command (in quotes), or FILE.py[:OBJECT] as for "mcpgen serve".

    NAME is the name of the prompt. KEY=VALUE sets the argument KEY of the prompt to the text VALUE.

    Example: mcpgen prompt server.py order item=tea
    """
    command = _Command([target], **options)
    given = _text_arguments(parse_pairs(arguments, forms="KEY=VALUE"))
    command.declare_features()

    async def work(client: Client) -> int:
        items, cut = await fetch_list(client, command.client_run, PROMPTS, command.max_items)
        if cut:
            command.display.note(f"prompts/list: {cut}")
        listed = _find(items, name)
        if listed is None:
            return _report_unknown(command, "prompt", name, items, is_cut=bool(cut))
        schema = _input_schema(listed)
        reasons = check_names(given, schema["properties"], schema["required"])
        if reasons:
            return _report_invalid(command, reasons, name, schema)
        await command.set_log_level(client)
        await client.get_prompt(name, given or None, on_progress=command.display.progress)
        command.err.clear_status()
        return command.results.prompt(command.client_run.result("prompts/get"), output)

    command.run(work)


def _text_arguments(pairs: dict[str, tuple[str, bool]]) -> dict[str, str]:
    for key, (_, is_json) in pairs.items():
        if is_json:
            name = escaped_line(key)
            raise click.UsageError(f"Arguments of a prompt are text: write {name}=VALUE, not {name}:=JSON.")
    return {key: text for key, (text, _) in pairs.items()}


def _input_schema(prompt: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a prompt as a JSON schema, like the input schema of a tool."""
    found = prompt.get("arguments")
    arguments = [each for each in found if is_object(each)] if is_array(found) else []
    return {
        "properties": {
            str(each.get("name")): {"type": "string", "description": each.get("description") or each.get("title") or ""}
            for each in arguments
        },
        "required": [str(each.get("name")) for each in arguments if each.get("required") is True],
    }


def _find(items: Sequence[Any], name: str) -> dict[str, Any] | None:
    return next((each for each in items if is_object(each) and each.get("name") == name), None)


def _report_unknown(command: _Command, kind: str, name: str, items: Sequence[Any], *, is_cut: bool = False) -> int:
    names = [str(each.get("name")) for each in items if is_object(each)]
    hint = did_you_mean(name, names)
    shown = f"{kind} {escaped_line(name)!r}"
    # The rest of a list that is cut may have it.
    said = f"There is no {shown} in the part of the list that was read." if is_cut else f"The server has no {shown}."
    command.results.failure(f"{said}{hint}")
    if not hint:
        owner = f"The {kind}s in this part" if is_cut else f"Its {kind}s"
        command.err.line(f"{owner}: {', '.join(map(escaped_line, sorted(names))) or 'none'}")
    return 2


def _report_invalid(command: _Command, reasons: Sequence[str], name: str, schema: object) -> int:
    for reason in reasons:
        command.results.failure(reason)
    table = parameter_lines(schema, command.err)
    command.err.line()
    command.err.line(f"Arguments of {escaped_line(name)}:" if table else f"{escaped_line(name)} takes no arguments.")
    command.err.lines(table)
    return 2
