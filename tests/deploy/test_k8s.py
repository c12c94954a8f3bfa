"""The files for Kubernetes: core kinds by their schemas, KubeRay's by the fields they are made of."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from assembly.loading import draft

ROOT = Path(__file__).parents[2]
K8S = ROOT / "deploy" / "k8s"
RAY = ("rayjob.yaml", "rayservice.yaml")
CORE = sorted(p.name for p in K8S.glob("*.yaml") if p.name not in (*RAY, "kustomization.yaml"))
PINNED = (ROOT / "constraints.txt").read_text()
SPEC_FIELDS = {
    "RayJob": {
        "entrypoint",
        "submissionMode",
        "backoffLimit",
        "shutdownAfterJobFinishes",
        "ttlSecondsAfterFinished",
        "rayClusterSpec",
    },
    "RayService": {"upgradeStrategy", "excludeHeadPodFromServeSvc", "serveConfigV2", "rayClusterConfig"},
}
"""Of KubeRay's API ray.io/v1, the fields that are used here."""


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((K8S / name).read_text()))


def cluster(name: str) -> dict[str, Any]:
    spec = documents(name)[0]["spec"]
    return spec.get("rayClusterSpec") or spec["rayClusterConfig"]


def pods(name: str) -> list[dict[str, Any]]:
    """The pod templates of a Ray cluster: head first."""
    asked = cluster(name)
    return [asked["headGroupSpec"]["template"], *(group["template"] for group in asked["workerGroupSpecs"])]


def validated(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("kubernetes-validate"), "--strict", *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_core_kinds_keep_their_schemas() -> None:
    """No unknown field, no wrong type."""
    checked = validated(*(K8S / name for name in CORE))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_pods_of_ray_clusters_keep_the_schema_of_pods(tmp_path: Path) -> None:
    """What KubeRay puts into pods is looked at as pods are."""
    for name in RAY:
        for place, template in enumerate(pods(name)):
            pod = {"apiVersion": "v1", "kind": "Pod", **template}
            pod["metadata"] = {"name": "ray", **template["metadata"]}
            (tmp_path / f"{place}-{name}").write_text(yaml.safe_dump(pod))
    checked = validated(*tmp_path.iterdir())
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_misspelled_field_would_be_noticed(tmp_path: Path) -> None:
    """The checks above can fail."""
    bad = tmp_path / "valkey.yaml"
    bad.write_text((K8S / "valkey.yaml").read_text().replace("readinessProbe", "readynessProbe"))
    assert validated(bad).returncode != 0


@pytest.mark.parametrize("name", RAY)
def test_ray_kinds_have_only_known_fields(name: str) -> None:
    """The operator drops a field that it does not know without a word."""
    (document,) = documents(name)
    assert document["apiVersion"] == "ray.io/v1"
    assert set(document["spec"]) <= SPEC_FIELDS[document["kind"]]
    asked = cluster(name)
    assert set(asked) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    for group in asked["workerGroupSpecs"]:
        assert set(group) == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.parametrize("name", RAY)
def test_the_cluster_runs_the_ray_of_the_image(name: str) -> None:
    """Two versions of Ray do not talk to each other."""
    assert f"\nray=={cluster(name)['rayVersion']}\n" in PINNED


@pytest.mark.parametrize("name", RAY)
def test_pods_are_nobody_and_bounded(name: str) -> None:
    """As the namespace demands: not root, no more rights, limits on everything, no token of the cluster."""
    for template in pods(name):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}


def test_secrets_are_references() -> None:
    """No file holds one: every variable that is secret comes from the secret `repertory`."""
    text = "".join(path.read_text() for path in K8S.glob("*.yaml"))
    named = re.findall(r"\{name: (\w*(?:PASSWORD|TOKEN|STORE)\w*), (\w+):", text)
    assert named
    assert {how for _, how in named} == {"valueFrom"}
    assert not re.search(r"^kind: Secret$", text, re.MULTILINE)


def test_every_file_is_applied() -> None:
    """The kustomization forgets none."""
    resources = set(documents("kustomization.yaml")[0]["resources"])
    assert resources == {*CORE, *RAY}


def test_the_training_job_is_a_command_that_is_accepted() -> None:
    """Its overrides, `ray_address: auto` among them, pass on the experiment that it names."""
    words = shlex.split(documents("rayjob.yaml")[0]["spec"]["entrypoint"])
    assert words[:3] == ["python", "-m", "trainers.run"]
    overrides = [value for flag, value in pairwise(words) if flag == "--set"]
    accepted = draft(ROOT / "experiments" / Path(words[3]).name, overrides).accepted()
    assert accepted.resources.ray_address == "auto"


def test_the_mounted_serving_file_is_accepted(tmp_path: Path) -> None:
    """It is what ``serving.run`` reads."""
    file = tmp_path / "serving.yaml"
    file.write_text(documents("serving.yaml")[0]["data"]["serving.yaml"])
    asked = [sys.executable, "-m", "serving.run", file, "--check"]
    checked = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
