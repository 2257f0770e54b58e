"""A virtual environment with only what `make install` installs: no extras, no test tools."""

import json
import os
import shutil
import subprocess
import sysconfig
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.e2e.real_hippod import clean_environment

ROOT = Path(__file__).parents[1]
PACKAGES = Path(sysconfig.get_path("purelib"))


def plain_environment(folder: Path, apart: bool = False) -> Path:
    """Creates the environment in `folder`; returns its Python.

    Its packages are symbolic links, because copies take long. `apart`: its files are hard links, or copies on another file
    system, and may be removed or replaced.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    target = packages_of(folder)
    own = {path.name for path in PACKAGES.glob("hippod[-_]*") if path.is_dir()}
    for name in sorted(own | _files_of(_required())):
        source = PACKAGES / name
        if not apart:
            (target / name).symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, target / name, copy_function=_link)
        else:
            _link(source, target / name)
    return folder / "bin" / "python"


def packages_of(folder: Path) -> Path:
    [found] = folder.glob("lib/python*/site-packages")
    return found


def run(python: Path, *arguments: str | Path) -> str:
    """Runs Python in the environment, with hippod's modules; returns standard output. Fails with standard error."""
    done = subprocess.run([python, *arguments], capture_output=True, text=True, env=clean_environment(python.parent))
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def missing_modules(python: Path) -> set[str]:
    """Returns the modules that hippod imports, anywhere in its code, and that the environment lacks."""
    program = ROOT / "systemd" / "package" / "used_modules.py"
    return set(json.loads(run(python, program, ROOT).splitlines()[-1])["missing"])


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def add_extra(python: Path, extra: str) -> None:
    """Adds the packages of one of hippod's extras to the environment."""
    target = packages_of(python.parents[1])
    for name in _files_of(_required(extra)):
        if not (target / name).exists():
            (target / name).symlink_to(PACKAGES / name)


def _required(extra: str | None = None) -> set[str]:
    """Returns the distributions that hippod, or only one of its extras, requires, directly or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    waiting = [Requirement(text) for text in named]
    found: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            key = canonicalize_name(requirement.name), extra
            if key not in found:
                found.add(key)
                wanted = map(Requirement, distribution(requirement.name).requires or ())
                waiting += [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def _files_of(names: set[str]) -> set[str]:
    """Returns the entries of the packages' folder that belong to these distributions."""
    found = {file.parts[0] for name in names for file in distribution(name).files or ()}
    return {entry for entry in found if entry not in ("..", "__pycache__") and (PACKAGES / entry).exists()}
