"""Probes of this machine: models, GPU and libraries, disk, memory, open files."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from assembly.doctor.examining import Seen
from assembly.doctor.services import at_address, reachable
from runtime.errors import ServiceUnavailable

GB = 1e9
LOW_DISK, NO_DISK = 2.0, 0.2
"""Free GB below which to warn, and to stop."""
LOW_MEMORY = 1.5
"""Free GB below which to warn: a sampler takes some 0.7 of them."""
FEW_FILES, TOO_FEW_FILES = 4096, 1024
"""Open files that a process may have: Ray takes one for each worker and connection."""
WEIGHTS = (".safetensors", ".gguf", ".bin")
"""What files of weights end in."""
GPU_S = 30.0
"""How long PyTorch may take to be loaded and asked, s."""
RAY_S = 15.0
"""How long Ray's own check of a cluster may take, s: most of it is Ray being loaded."""
RAY_REMEDY = "start one with `ray start --head`, or leave the key out to use this machine"
ASK_TORCH = """
import json, torch
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda, "gpus": torch.cuda.device_count(),
    "cudnn": torch.backends.cudnn.version(), "cxx11_abi": torch._C._GLIBCXX_USE_CXX11_ABI,
    "names": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
}))
"""


def model(name: str, folder: Path) -> Seen:
    """A model's files are on this machine, and can be read."""
    from policies.lm.loading import WeightsMissing, model_place

    try:
        place = model_place(name, folder)
    except WeightsMissing as error:
        raise ServiceUnavailable(name, str(error), "") from None
    weights = [place] if place.is_file() else [p for p in place.iterdir() if p.suffix in WEIGHTS]
    if not weights:
        raise ServiceUnavailable(name, f"{place} holds no weights", "copy the whole model there")
    for path in weights:
        with path.open("rb") as stream:
            stream.read(1)
    size = sum(p.stat().st_size for p in weights) / GB
    return Seen(what=f"{place} ({size:.2f} GB of weights)")


def gpus(wanted: int) -> Seen:
    """As many GPUs as are asked for, seen by the driver and by PyTorch."""
    driver = _driver()
    torch = _torch()
    built = f"torch {torch['torch']}, CUDA {torch['cuda'] or 'none'}, cuDNN {torch['cudnn'] or 'none'}"
    if torch["gpus"] >= wanted:
        return Seen(what=f"{', '.join(torch['names'])}; driver {driver or 'unknown'}; {built}")
    if torch["cuda"] is None:
        raise ServiceUnavailable("gpus", f"PyTorch was built without CUDA ({built})", "install a CUDA build of torch")
    if driver is None:
        raise ServiceUnavailable("gpus", f"no NVIDIA driver answers (nvidia-smi); {built}", "install the driver")
    seen = f"driver {driver} answers, and PyTorch finds {torch['gpus']} GPUs of {wanted}; {built}"
    remedy = "the driver may be older than torch's CUDA, or CUDA_VISIBLE_DEVICES hides them"
    raise ServiceUnavailable("gpus", seen, remedy)


def _driver() -> str | None:
    """The NVIDIA driver's version; None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    asked = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=GPU_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().partition("\n")[0] or None


def _torch() -> dict[str, Any]:
    """What PyTorch says of itself, in a process of its own: a wrong driver can kill whoever loads it."""
    done = subprocess.run(  # noqa: S603 - our own words, our own interpreter
        [sys.executable, "-c", ASK_TORCH], capture_output=True, text=True, timeout=GPU_S, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
        remedy = "reinstall torch for this driver and this C++ library"
        raise ServiceUnavailable("torch", f"cannot be loaded: {last}", remedy)
    return json.loads(done.stdout)


def disk(folder: Path) -> Seen:
    """Room for checkpoints and records."""
    try:
        there = next(p for p in (folder, *folder.resolve().parents) if p.exists())
        usage = shutil.disk_usage(there)
    except ValueError:  # no path at all: whoever wants to write there says so
        return Seen(what="no place to look at")
    if not usage.total:
        return Seen(what=f"{there} does not tell its room")
    free = usage.free / GB
    if free < NO_DISK:
        raise ServiceUnavailable("disk", f"{free:.2f} GB are free at {there}", "make room, or write elsewhere (--out)")
    if free < LOW_DISK:
        return Seen(what=f"only {free:.1f} GB are free at {there}", state="warning", remedy="make room")
    return Seen(what=f"{free:.0f} GB free")


def memory(processes: int) -> Seen:
    """Room for the processes that were asked for."""
    import psutil

    free = psutil.virtual_memory().available / GB
    wanted = LOW_MEMORY + 0.7 * processes
    if free < wanted:
        seen = f"{free:.1f} GB are free, and {processes} further processes take some {wanted:.1f}"
        return Seen(what=seen, state="warning", remedy="ask for fewer processes, or end others")
    return Seen(what=f"{free:.0f} GB free")


def open_files() -> Seen:
    """How many files a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FEW_FILES:
        return Seen(what=f"{soft:,} allowed")
    remedy = f"ulimit -n {min(65_536, hard) if hard > 0 else 65_536}"
    if soft < TOO_FEW_FILES:
        raise ServiceUnavailable("open files", f"{soft:,} are allowed", remedy)
    return Seen(what=f"only {soft:,} are allowed", state="warning", remedy=remedy)


def ray_cluster(address: str) -> Seen:
    """A Ray cluster answers; of one behind Ray's client, that its port is open."""
    if address in ("auto", "local"):
        return Seen(what="looked for when Ray starts")
    host, port = at_address(address, 10001 if address.startswith("ray://") else 6379)
    reachable(host, port, address, RAY_REMEDY)
    if address.startswith("ray://"):
        return Seen(what=f"port {port} is open")
    asked = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", f"{host}:{port}"]
    quiet = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(asked, capture_output=True, timeout=RAY_S, env=quiet, check=False)  # noqa: S603
    if done.returncode:
        raise ServiceUnavailable(address, f"something listens at {host}:{port}, and it is no Ray head", RAY_REMEDY)
    return Seen(what="a Ray head answers")
