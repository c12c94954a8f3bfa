"""Exports as objects: ``URL/HASH/…``, in a directory or whatever else fsspec opens."""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policies.export import MANIFEST, content_hash
from serving.errors import RefusedExport, UnknownVersion
from serving.registry.vetting import checked_files

LINEAGE = "lineage.json"
"""Beside the content, not part of it: where the version comes from."""


class Objects:
    """Exports by the hash of their content. Nothing in here is ever changed.

    Args:
        url: a directory, or ``s3://…``, ``gs://…`` and the like where fsspec's package for it is installed.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        self.url = url
        self._writing = threading.Lock()  # fsspec has one transaction a file system
        found: tuple[Any, str] = url_to_fs(url, skip_instance_cache=True)
        self._files, self._root = found

    def has(self, name: str) -> bool:
        """Whether the export of that hash is here, whole: its manifest is written last."""
        return bool(self._files.exists(f"{self._root}/{name}/{MANIFEST}"))

    def put(self, directory: Path) -> str:
        """Keep an export; returns its hash. Two who put the same one at once write the same.

        Raises:
            RefusedExport: it is damaged, or holds more than data.
        """
        files = checked_files(directory)
        name = content_hash(files)
        if not self.has(name):
            lineage = directory / LINEAGE
            more = {LINEAGE: lineage.read_bytes()} if lineage.is_file() else {}
            self._write(name, {**files, **more})
            self._write(name, {MANIFEST: (directory / MANIFEST).read_bytes()})
        return name

    def fetch(self, name: str, into: Path) -> Path:
        """The export in a local directory, checked; one that is there already is checked again, and used.

        Raises:
            UnknownVersion: there is no such export.
            RefusedExport: it is not what its hash says.
        """
        target = into / name
        if not target.is_dir():
            self._download(name, target)
        if (found := content_hash(checked_files(target))) != name:
            shutil.rmtree(target)
            raise RefusedExport("corrupt", f"the export {name} has the content of {found}")
        return target

    def json(self, name: str, path: str) -> Any:
        """A file of an export, as JSON; None: it has none of that name."""
        try:
            return json.loads(self._files.cat_file(f"{self._root}/{name}/{path}"))
        except FileNotFoundError:
            return None

    def _write(self, name: str, files: Mapping[str, bytes]) -> None:
        with self._writing, self._files.transaction:  # a local file appears whole, under its name
            for path, data in files.items():
                target = f"{self._root}/{name}/{path}"
                self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
                with self._files.open(target, "wb") as out:
                    out.write(data)

    def _download(self, name: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
        try:
            manifest = self._files.cat_file(f"{self._root}/{name}/{MANIFEST}")
            paths = [*json.loads(manifest)["files"], MANIFEST]
            if self._files.exists(f"{self._root}/{name}/{LINEAGE}"):
                paths.append(LINEAGE)
            for path in paths:
                self._one(name, path, part)
            os.rename(part, target)  # noqa: PTH104 - fails, as it should, where another process was faster
        except FileNotFoundError as error:
            raise UnknownVersion(f"the registry {self.url} has no whole export {name}: {error}") from None
        except OSError:
            if not target.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _one(self, name: str, path: str, into: Path) -> None:
        local = (into / path).resolve()
        if not local.is_relative_to(into.resolve()):
            raise RefusedExport("corrupt", f"{path!r} lies outside the export")
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(self._files.cat_file(f"{self._root}/{name}/{path}"))
