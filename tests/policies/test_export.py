"""Exports: the same decisions after a round trip, and nothing loaded that is not what was written."""

import json
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from policies.export import MANIFEST, BadExport, as_json, content_hash, encoder_files, encoder_policy, read, write
from policies.features import HashingFeatures
from tests.policies.small import SPEC, actor, policy, turns

WEIGHTS, ABOUT = "policies/triage.safetensors", "policies/triage.json"


def files() -> dict[str, bytes]:
    return encoder_files("triage", actor(), SPEC, HashingFeatures(SPEC.features).state())


def relisted(directory: Path, data: dict[str, bytes]) -> None:
    """A manifest that fits whatever lies there."""
    listed = {p: sha256(d).hexdigest() for p, d in data.items()}
    (directory / MANIFEST).write_bytes(as_json({"version": content_hash(data), "files": listed}))


def test_a_policy_decides_the_same_after_a_round_trip(tmp_path: Path) -> None:
    """Bit by bit: actions, and the probabilities of all candidates."""
    name = write(tmp_path / "v", files())
    found, read_back = read(tmp_path / "v")
    assert found == name
    loaded = encoder_policy("triage", read_back)
    for greedy in (True, False):
        assert loaded.decide(turns(), greedy) == policy().decide(turns(), greedy)


def test_an_export_holds_safetensors_and_json_only(tmp_path: Path) -> None:
    """Everything but the weights can be read by eye."""
    write(tmp_path, files())
    kinds = {p.suffix for p in tmp_path.rglob("*") if p.is_file()}
    assert kinds == {".safetensors", ".json"}
    assert json.loads((tmp_path / ABOUT).read_text())["spec"]["hidden"] == [16]


def test_the_name_is_the_contents_hash_whatever_the_order() -> None:
    """And changes with any byte or name."""
    one = files()
    name = content_hash(one)
    assert content_hash(dict(reversed(one.items()))) == name
    assert content_hash(files()) == name
    assert content_hash({**one, WEIGHTS: one[WEIGHTS][:-1] + b"\x00\x01"}) != name
    assert content_hash({"policies/other.json": one[ABOUT], WEIGHTS: one[WEIGHTS]}) != name
    assert content_hash({"a": b"bc"}) != content_hash({"ab": b"c"})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def rename(path: Path) -> None:
    path.rename(path.with_suffix(".old"))


@pytest.mark.parametrize("place", [WEIGHTS, ABOUT])
@pytest.mark.parametrize(("spoil", "why"), [(flip, "was changed"), (rename, "is not an export")])
def test_a_changed_or_missing_file_is_refused(
    tmp_path: Path, place: str, spoil: Callable[[Path], None], why: str
) -> None:
    """One bit is enough, and the file is named."""
    write(tmp_path, files())
    spoil(tmp_path / place)
    with pytest.raises(BadExport, match=why) as error:
        read(tmp_path)
    assert place in str(error.value)


@pytest.mark.parametrize("manifest", [b"", b"{}", b"[]", b'{"version": "x", "files": 3}', b"\x80\x04K\x01."])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, manifest: bytes) -> None:
    """Torn, empty, of another form, or a pickle."""
    write(tmp_path, files())
    (tmp_path / MANIFEST).write_bytes(manifest)
    with pytest.raises(BadExport, match="is not an export"):
        read(tmp_path)


def test_without_its_manifest_there_is_no_export(tmp_path: Path) -> None:
    """It is written last, so a half-written export is none."""
    with pytest.raises(BadExport, match="is not an export"):
        read(tmp_path)


def test_a_wrong_name_is_refused(tmp_path: Path) -> None:
    """The name is what serving and records refer to."""
    write(tmp_path, files())
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_bytes(as_json({**manifest, "version": "0" * 32}))
    with pytest.raises(BadExport, match="was changed"):
        read(tmp_path)


@pytest.mark.parametrize("place", ["../secret.json", "policies/../../secret.json", "ABSOLUTE"])
def test_a_path_outside_the_export_is_refused(tmp_path: Path, place: str) -> None:
    """Whatever the manifest says, nothing else on the machine is read."""
    secret = tmp_path / "secret.json"
    secret.write_bytes(b"{}")
    directory = tmp_path / "export"
    directory.mkdir()
    relisted(directory, {str(secret) if place == "ABSOLUTE" else place: b"{}"})
    with pytest.raises(BadExport, match="lies outside the export"):
        read(directory)


def test_a_link_out_of_the_export_is_refused(tmp_path: Path) -> None:
    """It is a path outside by another name."""
    secret = tmp_path / "secret.json"
    secret.write_bytes(b"{}")
    directory = tmp_path / "export"
    directory.mkdir()
    (directory / "inside.json").symlink_to(secret)
    relisted(directory, {"inside.json": b"{}"})
    with pytest.raises(BadExport, match="lies outside the export"):
        read(directory)


class Trap:
    """Unpickled, it writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Path, str]]:
        return Path.write_text, (self.mark, "was here")


@pytest.mark.parametrize("place", [WEIGHTS, ABOUT])
def test_a_pickle_is_refused_and_never_run(tmp_path: Path, place: str) -> None:
    """Even where the manifest vouches for it."""
    mark = tmp_path / "mark"
    spoilt = {**files(), place: pickle.dumps(Trap(mark))}
    write(tmp_path / "v", spoilt)
    with pytest.raises(BadExport, match="policy triage"):
        encoder_policy("triage", read(tmp_path / "v")[1])
    assert not mark.exists()


def about(**changes: object) -> dict[str, bytes]:
    whole = files()
    return {**whole, ABOUT: as_json({**json.loads(whole[ABOUT]), **changes})}


@pytest.mark.parametrize(
    "spoilt",
    [
        about(kind="causal_lm"),
        about(features=None),
        about(features={"kind": "words"}),
        about(spec={**SPEC.as_json(), "outputs": 9}),
        about(spec={**SPEC.as_json(), "unknown": 1}),
        about(spec=None),
        {ABOUT: files()[ABOUT]},
        {WEIGHTS: files()[WEIGHTS]},
        {**files(), WEIGHTS: files()[WEIGHTS][:100]},
        {**files(), WEIGHTS: b""},
        {**files(), ABOUT: b"[]"},
    ],
)
def test_what_does_not_fit_is_refused_with_the_policys_name(spoilt: dict[str, bytes]) -> None:
    """Another kind, another shape, a part missing or torn."""
    with pytest.raises(BadExport, match="policy triage"):
        encoder_policy("triage", spoilt)
