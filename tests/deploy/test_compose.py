"""compose.yaml and the files it mounts, as far as they can be judged without an engine."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = (DEPLOY / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
COLLECTOR: dict[str, Any] = yaml.safe_load((DEPLOY / "otel-collector.yaml").read_text())
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("name", ["compose.yaml", "compose.gpu.yaml"])
def test_a_compose_file_keeps_the_specification(name: str) -> None:
    """An unknown key or a wrong type is refused, as an engine would."""
    asked = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / name]
    checked = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_misspelled_key_would_be_noticed(tmp_path: Path) -> None:
    """The check above can fail."""
    bad = tmp_path / "compose.yaml"
    bad.write_text(COMPOSE.replace("stop_grace_period", "stop_grace_periode"))
    asked = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", bad]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 1


def test_no_secret_has_a_default() -> None:
    """A password or token that is not set ends the command with its name, on every line that uses it."""
    used = re.findall(r"\$\{(\w*(?:PASSWORD|TOKEN))([^}]*)\}", COMPOSE)
    assert {name for name, _ in used} == {"VALKEY_PASSWORD", "REPERTORY_TOKEN", "GRAFANA_PASSWORD"}
    assert all(rest.startswith(":?") for _, rest in used)


def test_ports_are_published_on_this_machine_only() -> None:
    """Whoever wants them elsewhere puts something in front that knows who asks."""
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_service_is_bounded_and_checked() -> None:
    """Each has limits; each has a health check, or says that it has none."""
    for name, service in SERVICES.items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        ours = service.get("image") == SERVICES["trainer"]["image"]
        assert ours or "healthcheck" in service, name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["networks"] == ["inner"], name


def test_who_depends_on_a_service_waits_until_it_is_healthy() -> None:
    """Only the collector, whose image cannot be asked from inside, is waited for until it has started."""
    waits = [(on, how["condition"]) for s in SERVICES.values() for on, how in s.get("depends_on", {}).items()]
    assert ("valkey", "service_healthy") in waits
    assert ("doctor", "service_completed_successfully") in waits
    assert {on for on, condition in waits if condition == "service_started"} == {"otel-collector"}


def test_the_experiment_is_read_only_and_state_is_one_volume() -> None:
    """Nothing writes beside the user's files; a SQLite file and its log lie on one file system."""
    for name in ("doctor", "trainer"):
        (experiment,) = [v for v in SERVICES[name]["volumes"] if v["target"] == "/experiment"]
        assert experiment["read_only"] is True
    stores = [v["source"] for v in SERVICES["serve"]["volumes"] if v["target"].startswith("/state")]
    assert stores == ["state"]


def test_what_is_mounted_is_there() -> None:
    """A file that is missing would be made a folder by the engine, silently."""
    sources = [v["source"] for s in SERVICES.values() for v in s.get("volumes", []) if v["type"] == "bind"]
    paths = [re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", source) for source in sources if ":?" not in source]
    assert [path for path in paths if not (DEPLOY / path).exists()] == []


def test_commands_are_modules_of_ours() -> None:
    """What a container starts is a command that the image has."""
    for name in ("doctor", "trainer", "serve"):
        asked = [sys.executable, "-m", SERVICES[name]["command"][0], "--help"]
        assert subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_the_mounted_serving_file_is_accepted() -> None:
    """It is what ``serving.run`` reads."""
    asked = [sys.executable, "-m", "serving.run", DEPLOY / "serving.yaml", "--check"]
    checked = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_pipelines_name_only_what_is_declared() -> None:
    """The collector ends at a name that it does not know."""
    for pipeline in COLLECTOR["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(COLLECTOR[kind])
    assert set(COLLECTOR["service"]["extensions"]) == set(COLLECTOR["extensions"])


def test_memory_is_limited_first_and_batches_are_made_last() -> None:
    """What is too much is refused before it is held; what is sent is sent together."""
    for name, pipeline in COLLECTOR["service"]["pipelines"].items():
        assert pipeline["processors"][0] == "memory_limiter", name
        assert pipeline["processors"][-1] == "batch", name


def test_the_collector_is_configured_with_documented_fields() -> None:
    """The fields that the components' documentation names, and no others."""
    known = {
        "memory_limiter": {
            "check_interval",
            "limit_mib",
            "spike_limit_mib",
            "limit_percentage",
            "spike_limit_percentage",
        },
        "batch": {"timeout", "send_batch_size", "send_batch_max_size", "metadata_keys", "metadata_cardinality_limit"},
        "transform/units": {"error_mode", "metric_statements", "trace_statements", "log_statements"},
    }
    assert set(COLLECTOR["processors"]) == set(known)
    assert all(set(fields) <= known[name] for name, fields in COLLECTOR["processors"].items())
    limiter = COLLECTOR["processors"]["memory_limiter"]
    assert 0 < limiter["spike_limit_percentage"] < limiter["limit_percentage"] < 100


def test_services_meet_at_the_ports_they_name() -> None:
    """The collector listens where our processes send and where Prometheus looks."""
    listens = COLLECTOR["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rpartition(":")[2]
    shows = COLLECTOR["exporters"]["prometheus"]["endpoint"].rpartition(":")[2]
    sends = yaml.safe_load((DEPLOY / "serving.yaml").read_text())["telemetry"]["otlp"]
    assert sends == f"http://otel-collector:{listens}"
    scraped = yaml.safe_load((DEPLOY / "prometheus-compose.yaml").read_text())["scrape_configs"][0]
    (target,) = scraped["static_configs"][0]["targets"]
    assert target == f"otel-collector:{shows}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Debian's prometheus")
def test_promtool_accepts_prometheus_configuration() -> None:
    """Syntax only: the rules lie at a container's path."""
    asked = ["promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus-compose.yaml"]
    checked = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
