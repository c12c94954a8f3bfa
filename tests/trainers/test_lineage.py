"""A version says which commit its team's code was at."""

import json
import shutil
import subprocess
from pathlib import Path

from assembly.build import Build
from assembly.loading import load
from serving.registry.lineage import lineage_of
from trainers.checkpoints import TrainerState
from trainers.exporting import write_lineage

SHOP = Path(__file__).parent


def git(folder: Path, *args: str) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", folder, *who, *args], check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_the_users_code(tmp_path: Path) -> None:
    """Null outside of a repository; then the commit, and whether a file has been changed since."""
    for name in ("little_shop.py", "little_shop.yaml"):
        shutil.copy(SHOP / name, tmp_path)
    version = tmp_path / "run" / "version"
    version.mkdir(parents=True)
    result = {"status": "done", "score": 0.9, "eval": {"return_mean": 3.5}, "baselines": {"random": 0.1}}
    (version.parent / "result.json").write_text(json.dumps(result))
    (version.parent / "audit.json").write_text(json.dumps({"ok": True, "findings": [], "waived": []}))

    def told() -> dict[str, object]:
        build = Build(load(tmp_path / "little_shop.yaml"), tmp_path)
        write_lineage(version, build, TrainerState(), version.parent)
        return lineage_of(version, parent="v1")

    assert told()["commit"] is None
    git(tmp_path, "init", "-q")
    assert told()["commit"] is None, "there is no commit yet"
    git(tmp_path, "add", "little_shop.py", "little_shop.yaml")
    git(tmp_path, "commit", "-q", "-m", "the shop")
    commit = git(tmp_path, "rev-parse", "HEAD")
    lineage = told()
    assert lineage["commit"] == commit
    assert (lineage["parent"], lineage["experiment"], lineage["seed"]) == ("v1", "little_shop", 0)
    assert lineage["evaluation"] == {k: result[k] for k in ("score", "eval", "baselines")}
    assert lineage["audit"] == {"ok": True, "findings": [], "waived": []}
    (tmp_path / "little_shop.py").write_text((SHOP / "little_shop.py").read_text() + "# changed\n")
    assert told()["commit"] == f"{commit}-dirty"
