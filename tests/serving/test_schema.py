"""The HTTP contract as it is published, tried out by a program that knows nothing else of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from serving.http.routes import application
from serving.rollout.plan import RewardRule
from tests.serving.conftest import TEAM
from tests.serving.house import House, house

TOKENS = {name: f"{name}-token-0123456789" for name in ("admin", "ada")}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, exports: tuple[Path, Path]) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("house"), TEAM, exports, TOKENS) as running:
        yield running


OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in application(MagicMock(), RewardRule()).openapi()["paths"].items()
    for method in methods
]


@pytest.fixture(scope="module")
def schema(server: House) -> Any:
    """What the running server publishes."""
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_route_is_as_its_schema_says(schema: Any, operation: str) -> None:
    """What fits the schema and what does not: never a fault of the server, always an answer that the schema knows."""
    method, path = operation.split()
    described = schema[path][method.lower()]

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(case=described.as_strategy() | described.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def asked(case: Any) -> None:
        if "{team}" in path:
            case.path_parameters = {**case.path_parameters, "team": TEAM}
        case.call_and_validate(headers={"authorization": f"Bearer {TOKENS['admin']}"}, checks=CHECKS, timeout=30)

    asked()
