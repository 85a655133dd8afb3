"""What the tests of functions share: both backends, a catalogue, a peer of it, and all revisions."""

from __future__ import annotations

from typing import cast

import pytest

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from tests.runtime.server.functions.callers import Caller


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture
def catalogue() -> FunctionHandlers:
    return FunctionHandlers()


@pytest.fixture
def caller(catalogue: FunctionHandlers) -> Caller:
    return Caller(catalogue)


@pytest.fixture(params=[each.label for each in REVISIONS])
def revision(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)
