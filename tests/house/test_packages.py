"""The rooms of the house, and the one direction in which imports between them point."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = ("codegen", "generated", "runtime", "schema", "templates")
HOLDS = {
    "codegen": {".py"},
    "generated": {".py"},
    "runtime": {".py"},
    "schema": {".json", ".toml"},
    "templates": {".jinja"},
}
ALLOWED = {"codegen": {"codegen"}, "generated": {"generated"}, "runtime": {"runtime", "generated"}}
# Beside the standard library. Whoever adds one writes an ADR first.
FRONT_END = {"datamodel_code_generator", "pydantic"}
DEPENDENCIES = {
    "codegen": {"black", "click", "jinja2", "msgspec", *FRONT_END},
    "generated": {"msgspec"},
    # trio is imported only where it runs already: a task that belongs to nobody is its own to start.
    "runtime": {
        "anyio",
        "click",
        "cryptography",  # of PyJWT, for the keys of DPoP
        "httpcore",
        "httptools",
        "httpx",
        "jsonschema_rs",
        "jwt",
        "keyring",  # of `KeyringTokenStore`
        "msgspec",
        "opentelemetry",  # only in a program that has imported it
        # Only for functions whose types are pydantic models, which their author has imported.
        "pydantic",
        "pydantic_core",
        "redis",  # of `Redis(…)`
        "trio",
        "typing_extensions",  # for type checkers only, which have its stubs
        "uvicorn",
        "uvloop",
        "watchfiles",  # of `mcpgen serve --reload`
    },
}
PACKAGE = Path(str(files("mcpgen")))
under_nox = pytest.mark.skipif(
    "NOX_CURRENT_SESSION" not in os.environ,
    reason="whoever runs pytest by hand may do so from the checkout; the nox sessions must not",
)
REVISIONS = sorted(path.name for path in (PACKAGE / "generated").glob("v*") if path.is_dir())


def imports(source: str, module: tuple[str, ...], *, is_package: bool) -> Iterator[str]:
    """Yield the absolute name of everything that *source*, the text of *module*, imports by statement or by string."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(level=0, module=str(origin), names=names):
                # "from mcpgen import codegen" imports a room by name too.
                yield from (f"{origin}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level, module=origin, names=names):
                base = module[: len(module) - level + is_package]
                yield from (".".join((*base, *filter(None, [origin]), alias.name)) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(target)), *_],
            ) if not target.startswith("."):
                yield target


@cache  # to parse the runtime takes a second
def imports_of(path: Path) -> frozenset[str]:
    parts = ("mcpgen", *path.relative_to(PACKAGE).with_suffix("").parts)
    is_package = parts[-1] == "__init__"
    module = parts[:-1] if is_package else parts
    return frozenset(imports(path.read_text(encoding="utf-8"), module, is_package=is_package))


def imports_of_room(room: str) -> set[str]:
    return {name for path in (PACKAGE / room).rglob("*.py") for name in imports_of(path)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from . import b", {"mcpgen.runtime.b"}),
        ("from .. import codegen", {"mcpgen.codegen"}),
        ("from ..codegen.ir import Named", {"mcpgen.codegen.ir.Named"}),
        ("def f():\n    import a", {"a"}),
        ('importlib.import_module("mcpgen.codegen")', {"mcpgen.codegen"}),
    ],
)
def test_this_test_sees_every_way_to_import(source: str, expected: set[str]) -> None:
    assert expected == set(imports(source, ("mcpgen", "runtime", "session"), is_package=False))


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_point_one_way(room: str) -> None:
    entered = {name.split(".")[1] for name in imports_of_room(room) if name.startswith("mcpgen.")} & set(ROOMS)

    assert entered <= ALLOWED[room]


@pytest.mark.parametrize("room", ALLOWED)
@pytest.mark.slow
def test_a_room_imports_no_package_but_those_declared(room: str) -> None:
    foreign = {name.partition(".")[0] for name in imports_of_room(room)} - sys.stdlib_module_names - {"mcpgen"}

    assert foreign <= DEPENDENCIES[room]


@pytest.mark.slow
def test_one_module_imports_the_front_end() -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        # A checkout links the rooms, and rglob does not follow links.
        for path in (*PACKAGE.glob("*.py"), *(each for room in PACKAGE.iterdir() for each in room.rglob("*.py")))
        if any(name.partition(".")[0] in FRONT_END for name in imports_of(path))
    }

    # The runtime validates pydantic models of users; it has nothing to do with the front end.
    assert {"codegen/frontend.py", "runtime/protocol/failing_fast.py", "runtime/protocol/value_types.py"} == users


@pytest.mark.parametrize("folder", [*REVISIONS, "_support"])
def test_a_revision_imports_its_own_modules_and_its_support_and_only_relatively(folder: str) -> None:
    for path in (PACKAGE / "generated" / folder).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        # Named from an empty package, so that a relative import that leaves the folder comes out with another root.
        module = ("here", *path.relative_to(PACKAGE / "generated" / folder).with_suffix("").parts)
        is_package = module[-1] == "__init__"
        names = set(imports(source, module[:-1] if is_package else module, is_package=is_package))

        roots = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
        assert roots <= {"here", "msgspec", *(["_support"] if folder != "_support" else [])}, path.name


@pytest.mark.slow
def test_nothing_imports_a_room_by_its_bare_folder_name(checkout: Path) -> None:
    sources = [*PACKAGE.rglob("*.py"), *(checkout / "tests").rglob("*.py"), checkout / "noxfile.py"]
    guilty = [
        path.name
        for path in sources
        for name in imports(path.read_text(encoding="utf-8"), ("mcpgen", path.stem), is_package=False)
        if name.partition(".")[0] in ROOMS
    ]

    assert [] == guilty


@under_nox
@pytest.mark.parametrize("room", ROOMS)
def test_the_tests_do_not_see_a_room_under_its_bare_folder_name(room: str) -> None:
    assert importlib.util.find_spec(room) is None


@under_nox
def test_the_tests_see_an_installed_package_and_not_the_checkout(checkout: Path) -> None:
    assert not PACKAGE.is_relative_to(checkout / ".package")


def test_there_are_revisions() -> None:
    assert REVISIONS != []  # or the tests that are parametrised with them would prove nothing


@pytest.mark.parametrize("revision", REVISIONS)
def test_importing_the_models_of_a_revision_loads_nothing_else(revision: str) -> None:
    program = f"import mcpgen.generated.{revision}.models, json, sys; print(json.dumps(sorted(sys.modules)))"
    # -I: neither the environment nor the working directory decides what is found.
    done = subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, encoding="utf-8")

    loaded = json.loads(done.stdout)
    others = [name for name in REVISIONS if name != revision]
    forbidden = {
        *(f"mcpgen.generated.{name}" for name in others),
        *("anyio", "black", "click", "datamodel_code_generator", "jinja2", "mcpgen.codegen", "mcpgen.runtime"),
    }
    assert forbidden.isdisjoint(loaded)
    assert f"mcpgen.generated.{revision}.models" in loaded


# The engine's shells: what waits, and what meets descriptors and signals. Everything else is a state machine.
SHELLS = {
    "api/blocking_client.py",
    "api/hosts/client_group.py",
    "api/hosts/group_start.py",
    "api/middleware.py",
    "api/server.py",
    "cli/adapt_command.py",
    "cli/client/client_run.py",
    "cli/client/overview.py",
    "cli/client/elicitation_prompt.py",
    "cli/client/terminal.py",
    "cli/hosts/server_check.py",
    "cli/serve_command.py",
    "cli/server/reloaded_server.py",
    "cli/server/reloader.py",
    "cli/server/request_log.py",
    "cli/server/source_changes.py",
    "cli/server/worker_supervisor.py",
    "cli/trace/http_relay.py",
    "cli/trace/output_buffer.py",
    "cli/trace/stdio_relay.py",
    "cli/trace_command.py",
    "client/changes.py",
    "client/connection_task.py",
    "client/deadlines.py",
    "client/era_store.py",
    "client/input_required.py",
    "client/era_negotiation.py",
    "client/outgoing_requests.py",
    "client/result_cache.py",
    "cli/client/login_page.py",
    "cli/login_command.py",
    "http/client/auth/access_tokens.py",
    "http/client/auth/address_guard.py",
    "http/client/auth/auth_requests.py",
    "http/client/auth/browser.py",
    "http/client/auth/loopback_receiver.py",
    "http/client/auth/page_visit.py",
    "http/client/auth/token_endpoint.py",
    "http/client/auth/code_login.py",
    "http/client/auth/keyring_store.py",
    "http/client/auth/token_store.py",
    "http/client/channel.py",
    "http/client/asyncio_exchange.py",
    "http/client/happy_eyeballs.py",
    "http/client/connection_pool.py",
    "http/client/exchange_choice.py",
    "http/client/get_stream.py",
    "http/client/http_protocol.py",
    "http/client/http11_connection.py",
    "http/client/http_exchange.py",
    "http/client/httpx_exchange.py",
    "http/client/incoming_messages.py",
    "http/client/legacy_sse.py",
    "http/client/post_requests.py",
    "http/client/response_body.py",
    "http/client/transport.py",
    "http/server/auth/introspection.py",
    "http/server/auth/issuer_metadata.py",
    "http/server/auth/jwt_verification.py",
    "http/server/auth/key_sets.py",
    "http/server/auth/token_check.py",
    "http/server/auth/token_expiry.py",
    "http/server/app_state.py",
    "http/server/cluster/home_messages.py",
    "http/server/cluster/request_relay.py",
    "http/server/cluster/session_copies.py",
    "http/server/cluster/shared_events.py",
    "http/server/cluster/shared_rates.py",
    "http/server/cluster/shared_shares.py",
    "http/server/cluster/state_keys.py",
    "http/server/direct_calls.py",
    "http/server/first_step.py",
    "server/event_store.py",
    "http/server/handler_host.py",
    "http/server/open_requests.py",
    "http/server/post_request.py",
    "http/server/read_turns.py",
    "http/server/earlier_streams.py",
    "http/server/refused_bodies.py",
    "http/server/request_body.py",
    "http/server/cycle_protocol.py",
    "http/server/request_cycle.py",
    "http/server/shared_task.py",
    "http/server/response_buffer.py",
    "http/server/responses.py",
    "http/server/timeouts.py",
    "http/server/uvicorn_limits.py",
    "http/server/auth/required_scopes.py",
    "http/server/listener.py",
    "http/server/uvicorn_server.py",
    "server/functions/dependencies.py",
    "server/functions/function_registry.py",
    "server/cluster/memory_cluster.py",
    "server/cluster/message_pieces.py",
    "server/cluster/redis_cluster.py",
    "server/cluster/fair_gate.py",
    "server/cluster/outbox.py",
    "server/cluster/worker.py",
    "server/change_delivery.py",
    "server/connection.py",
    "server/context.py",
    "server/request_results.py",
    "server/engine.py",
    "server/fair_turns.py",
    "server/functions/worker_threads.py",
    "server/tasks/redis_task_store.py",
    "server/tasks/sqlite_task_store.py",
    "server/tasks/task_requests.py",
    "server/tasks/task_worker.py",
    "client/task_state.py",
    "client/tool_tasks.py",
    "server/loop_watchdog.py",
    "server/sync_context.py",
    "transports/auto_reset_event.py",
}
WORLD = {"anyio", "asyncio", "trio", "select", "socket", "subprocess", "threading", "time"}


def test_the_engine_neither_waits_nor_looks_at_a_clock() -> None:
    runtime = PACKAGE / "runtime"
    core = [path for path in runtime.rglob("*.py") if not path.is_relative_to(runtime / "transports")]
    found = {
        path.relative_to(runtime).as_posix()
        for path in core
        if WORLD & {name.partition(".")[0] for name in imports_of(path)}
    }

    assert found <= SHELLS


def test_one_module_of_the_runtime_names_the_newest_revision() -> None:
    newest = importlib.import_module("mcpgen.generated.registry").REVISIONS[-1]
    runtime = PACKAGE / "runtime"
    naming = [
        path.relative_to(runtime).as_posix()
        for path in runtime.rglob("*.py")
        if any(name.startswith(f"mcpgen.generated.{newest.package}") for name in imports_of(path))
    ]

    assert ["protocol/newest.py"] == naming
    assert newest.label == importlib.import_module("mcpgen.runtime.protocol.newest").NEWEST


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_nothing_that_an_editor_or_a_merge_has_left(room: str) -> None:
    found = {path for path in (PACKAGE / room).rglob("*") if path.is_file() and path.parent.name != "__pycache__"}

    assert found
    assert [] == sorted(str(path) for path in found if path.suffix not in HOLDS[room])
