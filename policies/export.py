"""A trained team on disk: safetensors and JSON only, named by the hash of its content. Loading one never unpickles."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from policies.features import from_state
from policies.featurize import TextFeaturizer
from policies.playing import EncoderPolicy
from runtime.errors import RepertoryError

if TYPE_CHECKING:
    from torch import Tensor

    from policies.encoder import Actor, EncoderSpec

MANIFEST = "manifest.json"


class BadExport(RepertoryError):
    """An export is not what its manifest says, or not of a kind this version loads."""


def content_hash(files: Mapping[str, bytes]) -> str:
    """The name of a set of files: SHA-256 over their names and contents, in order of names."""
    told = sha256()
    for name in sorted(files):
        told.update(f"{name}\x1f{sha256(files[name]).hexdigest()}\x1e".encode())
    return told.hexdigest()[:32]


def encoder_files(name: str, actor: "Actor", spec: "EncoderSpec", features: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of one encoder policy: weights, and what they need to be used."""
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {k: v.detach().cpu().contiguous() for k, v in actor.state_dict().items()}
    about = {"kind": "encoder", "spec": spec.as_json(), "features": features}
    return {f"policies/{name}.safetensors": save(tensors), f"policies/{name}.json": as_json(about)}


def as_json(value: Any) -> bytes:
    """Readable JSON, the same bytes for the same value."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()


def write(directory: Path, files: Mapping[str, bytes]) -> str:
    """Write an export and its manifest; returns its name. The manifest comes last: without it there is no export."""
    name = content_hash(files)
    for path, data in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    listed = {p: sha256(d).hexdigest() for p, d in files.items()}
    (directory / MANIFEST).write_bytes(as_json({"version": name, "files": listed}))
    return name


def read(directory: Path) -> tuple[str, dict[str, bytes]]:
    """An export's name and files, checked against the manifest.

    Raises:
        BadExport: a file is missing, changed or unlisted, or the name is not the content's hash.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        listed: dict[str, str] = manifest["files"]
        files = {p: _inside(directory, p).read_bytes() for p in listed}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadExport(f"{directory} is not an export: {error}") from None
    changed = [p for p, d in files.items() if sha256(d).hexdigest() != listed[p]]
    if changed or manifest.get("version") != content_hash(files):
        raise BadExport(f"{directory} was changed after it was written: {', '.join(changed) or MANIFEST}")
    return manifest["version"], files


def _inside(directory: Path, path: str) -> Path:
    target = (directory / path).resolve()
    if not target.is_relative_to(directory.resolve()):
        raise BadExport(f"{directory}: {path!r} lies outside the export")
    return target


def encoder_policy(name: str, files: Mapping[str, bytes]) -> EncoderPolicy:
    """The encoder policy of that name, ready to play a team.

    Raises:
        BadExport: it is missing, of another kind, or its weights do not fit its shape.
    """
    from safetensors.torch import load

    from policies.encoder import Actor

    try:
        about = json.loads(files[f"policies/{name}.json"])
        if about["kind"] != "encoder" or about["features"] is None:
            raise BadExport(f"policy {name} is a {about['kind']} without text features: it cannot be played on its own")
        actor = Actor(_spec(about["spec"]))
        actor.load_state_dict(load(files[f"policies/{name}.safetensors"]))
        featurize = TextFeaturizer(from_state(about["features"]))
    except (KeyError, RuntimeError, ValueError, TypeError, SafetensorError) as error:
        raise BadExport(f"policy {name}: {error}") from None
    return EncoderPolicy(actor, featurize)


def kind_of(name: str, files: Mapping[str, bytes]) -> str:
    """Which kind of policy that is. Raises BadExport if it is missing."""
    try:
        return json.loads(files[f"policies/{name}.json"])["kind"]
    except (KeyError, ValueError, TypeError) as error:
        raise BadExport(f"policy {name}: {error!r}") from None


def _spec(fields: Mapping[str, Any]) -> "EncoderSpec":
    from policies.encoder import EncoderSpec

    known: dict[str, Any] = {**fields, "hidden": tuple(fields["hidden"])}
    return EncoderSpec(**known)
