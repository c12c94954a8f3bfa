"""Exports are kept by their content, and a bad one is refused by the name of its fault, before anybody plays it."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from policies.export import MANIFEST, content_hash
from runtime.store import Store
from serving.errors import RefusedExport, UnknownVersion
from serving.registry import Objects, vetted
from serving.registry.vetting import checked_files
from serving.tables import CHANGES, open_serving_store
from serving.versions import Versions

TEAM = "supply_chain"


@pytest.fixture
def copy(exports: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(exports[0], tmp_path / "copy"))


def relisted(directory: Path) -> None:
    """Write the manifest anew, as somebody would who damages an export on purpose."""
    old = json.loads((directory / MANIFEST).read_bytes())["files"]
    files = {p: (directory / p).read_bytes() for p in old if (directory / p).exists()}
    listed = {p: sha256(d).hexdigest() for p, d in files.items()}
    (directory / MANIFEST).write_text(json.dumps({"version": content_hash(files), "files": listed}))


def cut_weights(directory: Path) -> None:
    file = next((directory / "policies").glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-100])


def flip_weights(directory: Path) -> None:
    file = next((directory / "policies").glob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-3] ^= 0xFF
    file.write_bytes(data)


def lose_weights(directory: Path) -> None:
    next((directory / "policies").glob("*.safetensors")).unlink()


def other_shape(directory: Path) -> None:
    file = next((directory / "policies").glob("*.json"))
    about = json.loads(file.read_bytes())
    about["spec"]["hidden"] = [7, 7]
    file.write_text(json.dumps(about))
    relisted(directory)


def others_weights(directory: Path) -> None:
    """Two policies of one shape exchanged: everything loads, and decides otherwise than at the export."""
    golden = json.loads((directory / "golden.json").read_bytes())
    for each in golden:
        each["action"] = (each["action"] + 1) % len(each["mask"])
        each["logp"] = -5.0
    (directory / "golden.json").write_text(json.dumps(golden))
    relisted(directory)


def other_tools(directory: Path) -> None:
    about = json.loads((directory / "team.json").read_bytes())
    about["source"] = "0" * 64
    (directory / "team.json").write_text(json.dumps(about))
    relisted(directory)


def pickled(directory: Path) -> None:
    import pickle

    file = next((directory / "policies").glob("*.safetensors"))
    file.write_bytes(pickle.dumps({"weights": [1.0]}))
    relisted(directory)


def no_manifest(directory: Path) -> None:
    (directory / MANIFEST).unlink()


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (cut_weights, "truncated"),
        (lose_weights, "truncated"),
        (flip_weights, "corrupt"),
        (other_shape, "foreign_architecture"),
        (others_weights, "foreign_architecture"),
        (other_tools, "tool_mismatch"),
        (pickled, "pickled"),
        (no_manifest, "not_an_export"),
    ],
)
def test_a_bad_export_is_refused_by_name(
    copy: Path, store: Store, tmp_path: Path, damage: Callable[[Path], None], code: str
) -> None:
    """Whatever is wrong, it is said in a word, and nothing is registered or kept."""
    damage(copy)
    versions = Versions(store, {TEAM: Objects(str(tmp_path / "registry"))}, no_redis)
    with pytest.raises(RefusedExport) as refused:
        versions.register(TEAM, copy, by="ada", why="")
    assert refused.value.code == code
    assert versions.known(TEAM) == []
    assert versions.history(TEAM) == []


def no_redis() -> None:
    raise OSError("there is no Redis in this test")


def test_aliases_count_up_and_name_contents(exports: tuple[Path, Path], store: Store, tmp_path: Path) -> None:
    """v1, v2; the same content keeps its alias; where it comes from is on record."""
    versions = Versions(store, {TEAM: Objects(str(tmp_path / "registry"))}, no_redis)
    (exports[1] / "lineage.json").write_text(json.dumps({"experiment": "exp", "seed": 1, "commit": "abc"}))
    assert versions.register(TEAM, exports[0], by="ada", why="the first") == "v1"
    assert versions.register(TEAM, exports[1], by="ada", why="", parent="v1") == "v2"
    assert versions.register(TEAM, exports[0], by="bob", why="") == "v1"
    first, second = versions.known(TEAM)
    assert first.hash == vetted(exports[0]).name
    assert (second.lineage["parent"], second.lineage["commit"], second.lineage["seed"]) == ("v1", "abc", 1)
    assert versions.version(TEAM, second.hash[:8]) == second
    assert [(c.version, c.action, c.by, c.why) for c in versions.history(TEAM)] == [
        ("v1", "register", "ada", "the first"),
        ("v2", "register", "ada", ""),
    ]
    with pytest.raises(UnknownVersion, match="v1, v2"):
        versions.version(TEAM, "v9")
    with pytest.raises(UnknownVersion, match="supply_chain"):
        versions.known("shop")


def test_two_who_register_at_once(exports: tuple[Path, Path], store: Store, tmp_path: Path) -> None:
    """Eight registrations of two exports, from two stores and registries on the same places: two aliases."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    stores = [open_serving_store(url) for _ in range(4)]
    offices = [Versions(s, {TEAM: Objects(str(tmp_path / "registry"))}, no_redis) for s in stores]
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(o.register, TEAM, e, by="x", why="") for o in offices for e in exports]
        aliases = [j.result() for j in jobs]
    assert sorted(set(aliases)) == ["v1", "v2"]
    assert len({aliases[k] for k in range(0, 8, 2)}) == 1
    assert len(offices[0].history(TEAM)) == 2
    for s in stores:
        s.close()


def test_an_export_comes_back_as_it_was(exports: tuple[Path, Path], tmp_path: Path) -> None:
    """Fetched and checked, also from a store in memory; one that was changed in the registry is refused."""
    for url in (str(tmp_path / "registry"), "memory://registry"):
        registry = Objects(url)
        name = registry.put(exports[0])
        fetched = registry.fetch(name, tmp_path / f"into-{url[0] == 'm'}")
        assert checked_files(fetched) == checked_files(exports[0])
        assert registry.fetch(name, fetched.parent) == fetched
    file = next((tmp_path / "registry" / name / "policies").glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(RefusedExport):
        Objects(str(tmp_path / "registry")).fetch(name, tmp_path / "elsewhere")
    with pytest.raises(UnknownVersion):
        Objects(str(tmp_path / "registry")).fetch("0" * 32, tmp_path / "elsewhere")


def test_the_history_is_only_added_to(store: Store, exports: tuple[Path, Path], tmp_path: Path) -> None:
    """The database itself refuses to change or remove a line of it."""
    versions = Versions(store, {TEAM: Objects(str(tmp_path / "registry"))}, no_redis)
    versions.register(TEAM, exports[0], by="ada", why="")
    for statement in (CHANGES.update().values(by="eve"), CHANGES.delete()):
        with pytest.raises(DBAPIError, match="append-only"):
            store.write(lambda c, s=statement: c.execute(s))
    assert [c.by for c in versions.history(TEAM)] == ["ada"]
