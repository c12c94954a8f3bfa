"""Looking an export over before anybody plays with it: each fault by its name, and nothing is ever unpickled."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.export import MANIFEST, BadExport
from serving.errors import RefusedExport

if TYPE_CHECKING:
    from assembly.versions import Version

HARMLESS = (".json", ".safetensors", ".txt", ".jinja", ".model", ".gguf")
"""Endings of files that hold only data. Everything else is refused."""
PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK\x03\x04")
"""How pickles, and the archives that PyTorch puts them into, begin."""


def vetted(directory: Path, team: str = "") -> "Version":
    """The version in an export, which has shown that it decides as it did when it was exported.

    Args:
        directory: the export.
        team: the team that it must be a version of; empty: any.

    Raises:
        RefusedExport: what is wrong with it, by its name.
    """
    files = checked_files(directory)
    version = _loaded(directory, files)
    if team and version.team.name != team:
        raise RefusedExport("other_team", f"this is a version of {version.team.name}, not of {team}")
    if difference := version.proves_itself():
        raise RefusedExport("foreign_architecture", f"it does not decide as it did at its export: {difference}")
    return version


def checked_files(directory: Path) -> dict[str, bytes]:
    """The files of an export, each compared with its hash in the manifest.

    Raises:
        RefusedExport: the export is none, or is damaged, or holds what could run code.
    """
    listed = _listed(directory)
    files = {path: _read(directory, path) for path in listed}
    for path, data in files.items():
        _harmless(path, data)
        if sha256(data).hexdigest() != listed[path]:
            code = "truncated" if _cut_short(path, data) else "corrupt"
            raise RefusedExport(code, f"{path} is not what was exported ({len(data)} bytes)")
    return files


def _listed(directory: Path) -> Mapping[str, str]:
    try:
        manifest: Any = json.loads((directory / MANIFEST).read_bytes())
        listed: dict[str, str] = {str(k): str(v) for k, v in manifest["files"].items()}
    except OSError:
        raise RefusedExport("not_an_export", f"{directory} has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedExport("corrupt", f"{MANIFEST} cannot be read: {error}") from None
    if not listed:
        raise RefusedExport("not_an_export", f"{MANIFEST} lists no files")
    return listed


def _read(directory: Path, path: str) -> bytes:
    target = (directory / path).resolve()
    if not target.is_relative_to(directory.resolve()):
        raise RefusedExport("corrupt", f"{path!r} lies outside the export")
    try:
        return target.read_bytes()
    except OSError:
        raise RefusedExport("truncated", f"{path} is listed and missing") from None


def _harmless(path: str, data: bytes) -> None:
    if not path.endswith(HARMLESS) or data.startswith(PICKLED):
        raise RefusedExport("pickled", f"{path} is neither JSON nor safetensors: it could run code when it is loaded")


def _cut_short(path: str, data: bytes) -> bool:
    """Whether a file ends before it should, as far as its form tells."""
    if path.endswith(".safetensors"):
        return len(data) < 8 or len(data) < _promised(data)
    if path.endswith(".json"):
        return not data.rstrip().endswith((b"}", b"]", b'"'))
    return False


def _promised(data: bytes) -> int:
    """The length that a safetensors file says it has (bytes)."""
    head = int.from_bytes(data[:8], "little")
    try:
        tensors = json.loads(data[8 : 8 + head])
        return 8 + head + max((t["data_offsets"][1] for n, t in tensors.items() if n != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 8 + head


def _loaded(directory: Path, files: Mapping[str, bytes]) -> "Version":
    from assembly.versions import load_version

    try:
        return load_version(directory)
    except BadExport as error:
        raise RefusedExport(_reason(str(error)), str(error)) from None
    except (ImportError, AttributeError) as error:
        about = json.loads(files.get("team.json", b"{}"))
        raise RefusedExport("tool_mismatch", f"{about.get('use')} cannot be imported here: {error}") from None


def _reason(said: str) -> str:
    if "tools of" in said:
        return "tool_mismatch"
    if "not run live" in said:
        return "not_live"
    return "foreign_architecture" if "policy " in said else "corrupt"
