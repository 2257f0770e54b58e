"""Installs torch with the pip of the Python that runs this: `python torch_install.py torch==VERSION [PIP'S OPTIONS]`.

For Linux the plain package index has torch for NVIDIA's GPUs alone. PyTorch keeps an index with the build for processors, a
fourteenth of that to download. On a machine without an NVIDIA GPU it is taken from there, if the environment variable
TORCH_INDEX names that index and it answers. Otherwise pip takes what its configuration finds, and this says how large it is.

`make install`, `make deb` and `make image` run it before everything else, so that no looser requirement pulls another build.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

CPU_SIZE = "about 0.2 GB to download and 0.8 GB on disk"
CUDA_SIZE = "about 2.7 GB to download and 4.8 GB on disk"
"""Of torch 2.13.0 and what it needs of NVIDIA's, for Linux on x86-64."""
PATIENCE_S = 5.0
GPU_SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidia0", "/dev/nvidiactl")


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, as far as its driver shows."""
    return any(Path(sign).exists() for sign in GPU_SIGNS) or shutil.which("nvidia-smi") is not None


def silent(index: str) -> str | None:
    """Why an index gives no answer within a few seconds; None if it has torch."""
    if urlsplit(index).scheme not in ("http", "https", "file"):
        return f"{index!r} is no address of an index"
    url = f"{index.rstrip('/')}/torch/"
    if url.startswith("file:"):
        folder = Path(unquote(urlsplit(url).path))
        return None if folder.is_dir() else f"there is no {folder}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return None if answer.status == 200 else f"it answered {answer.status}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def is_installed(requirement: str) -> bool:
    """Whether this Python has the version already, in whatever build."""
    name, _, wanted = requirement.partition("==")
    try:
        return version(name).partition("+")[0] == wanted
    except PackageNotFoundError:
        return False


def resolved(requirement: str, pip: Sequence[str]) -> str | None:
    """Where pip would take torch from, without installing it; None if pip has no answer (it says why when it installs)."""
    command = [*pip, "--dry-run", "--ignore-installed", "--no-deps", "--report", "-", requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        url: str = json.loads(done.stdout)["install"][0]["download_info"]["url"]
    except (ValueError, LookupError):
        return None
    return unquote(url)


def main(requirement: str, options: Sequence[str]) -> int:
    if is_installed(requirement):
        return 0
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *options]
    index, gpu = os.environ.get("TORCH_INDEX", ""), has_gpu()
    if index and not gpu:
        if (reason := silent(index)) is None:
            say(f"torch for processors, {CPU_SIZE}, from TORCH_INDEX (no NVIDIA GPU here)")
            # Alone: what torch needs comes from the plain index, as everything else does.
            return subprocess.run([*pip, "--no-deps", "--index-url", index, requirement]).returncode
        say(f"TORCH_INDEX gives no answer ({reason}); pip's own index is asked")
    url = resolved(requirement, pip)
    if url is None or url.startswith("file:") or "+cpu" in url:
        say(f"torch, {'from a file of this machine' if url and url.startswith('file:') else 'as pip finds it'}")
    elif gpu:
        say(f"torch for NVIDIA GPUs, {CUDA_SIZE}")
    else:
        say(f"torch for NVIDIA GPUs, {CUDA_SIZE}: pip's index has no other. Without a GPU {CPU_SIZE} would do:")
        say('stop this and set TORCH_INDEX to the index that PyTorch\'s page "Get Started" shows for pip and CPU')
    return subprocess.run([*pip, requirement]).returncode


def say(text: str) -> None:
    print(f"hippod: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
