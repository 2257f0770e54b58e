"""Builds hippod's Debian package: `python systemd/package/deb.py`, run by `make deb`.

The package contains a virtual environment, units, manual pages, completions and a configuration. This script assembles it, and
dpkg-deb packs it. dh-virtualenv, the usual tool, has had no release since 2020 and requires a debian/ folder and debhelper; no
other maintained tool packs a virtual environment for Debian.

**Staging folder.** The environment is built in a staging folder, so that the build needs neither root nor /opt. Python finds
its packages relative to its executable. Only a few files name the folder in which they were made: the first line of scripts,
pyvenv.cfg, pip's record of the sources, and the file names in compiled code. Scripts of libraries are omitted, hippod's scripts
are rewritten, and code is compiled with the final names. The build fails if any file still names the staging folder.

**A folder for each version.** dpkg keeps the environment in /opt/hippod/package. The program runs from /opt/hippod/current, a
link to /opt/hippod/versions/NAME, which the package's script creates from hard links and switches at once. The running version
therefore keeps its files while dpkg replaces those of the package, and an interrupted upgrade does not affect it.

**One Python.** Compiled libraries require one minor version of Python, that of the distribution: the package depends on it by
name and is built on the release that it is for.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from slim import slim
from version import NoVersion, build_version, for_debian, set_version

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SYSTEMD = ROOT / "systemd"
PREFIX = Path("/opt/hippod")
PACKAGED = PREFIX / "package"
CURRENT = PREFIX / "current"
EXTRAS = PREFIX / "extras"
"""Folder to which an administrator adds packages of extras. They cannot replace packages of the environment."""
ROOMS = ("consumers", "memory", "store", "daemon", "cli")
OWN_SCRIPTS = ("hippod", "hippod-backfill", "hippod-worker", "hippoctl")
MODULES = {
    "hippod": "daemon.main",
    "hippod-backfill": "daemon.backfill_main",
    "hippod-worker": "daemon.worker_main",
    "hippoctl": "cli.main",
}
UNITS = ("hippod.service", "hippod.socket", "hippod@.service", "hippod@.socket")
DOCUMENTS = (
    "README.md",
    "LICENSE",
    "NOTICE",
    "SECURITY.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "config.toml",
    "docs",
    "examples/container",
    "examples/grafana",
    "examples/langchain_retriever.py",
    "examples/llama",
    "examples/llamaindex_retriever.py",
    "systemd/drop-ins",
    "systemd/instance.toml",
    "systemd/hippod-vllm.service",
    "systemd/hippod-worker.service",
    "systemd/sysusers.d/hippod-vllm.conf",
)
NOT_READ = ("site", "__pycache__")
"""Names that only a documentation site needs; the package omits them."""
ELSEWHERE = (
    "usr/lib/systemd/system",
    "usr/lib/sysusers.d",
    "usr/lib/tmpfiles.d",
    "usr/share/hippod",
    "usr/share/man",
    "usr/share/doc/hippod",
    "usr/share/lintian/overrides",
)
SHELLS = {
    "bash": "usr/share/bash-completion/completions/{name}",
    "zsh": "usr/share/zsh/vendor-completions/_{name}",
    "fish": "usr/share/fish/vendor_completions.d/{name}.fish",
}
MAINTAINER = "The authors of hippod <hippod@hippod.invalid>"


class Cannot(Exception):
    """The package cannot be built. The message says why and what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds hippod's Debian package.")
    parser.add_argument("--python", type=Path, default=Path("/usr/bin/python3"), help="the distribution's Python")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "deb", help="where it is put together")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the package goes")
    given = parser.parse_args()
    try:
        made = build(given.python, given.work.absolute(), given.out.absolute())
    except (Cannot, NoVersion) as reason:
        print(f"make deb: {reason}", file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size / 1e6:.0f} MB. Install it with: sudo apt install {made}")
    return 0


def build(python: Path, work: Path, out: Path) -> Path:
    """Builds and returns the package."""
    for tool in ("dpkg-deb", "dpkg"):
        if shutil.which(tool) is None:
            raise Cannot(f"{tool} is not here; a package for Debian is built on Debian or a system made from it")
    minor, package = distribution_python(python)
    root = work / "root"
    shutil.rmtree(work, ignore_errors=True)
    root.mkdir(parents=True)
    say(f"the virtual environment, with {package}")
    version = build_version()
    name = f"{for_debian(version)}-{made_from(package)}"
    environment(python, minor, root / PACKAGED.relative_to("/"), work, PREFIX / "versions" / name, version)
    (root / PACKAGED.relative_to("/") / "version").write_text(f"{name}\n")
    say("units, manual pages, completions, configuration")
    files(root, work)
    say("closing")
    return close(root, out, for_debian(version), package)


def made_from(python: str) -> str:
    """Returns eight hexadecimal digits that identify the environment's input: sources, pins, and the Python."""
    digest = hashlib.sha256(python.encode())
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*") if "__pycache__" not in path.parts]
    recipes = [
        ROOT / "pyproject.toml",
        ROOT / "constraints.txt",
        *(HERE / name for name in ("slim.py", "used_modules.py", "wheel_backend.py")),
    ]
    for path in sorted([*rooms, *recipes]):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def distribution_python(python: Path) -> tuple[str, str]:
    """Returns the minor version, such as `3.11`, and the Debian package of the Python."""
    if not python.exists():
        raise Cannot(f"there is no {python}; name the distribution's Python with: make deb DEB_PYTHON=…")
    asked = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2], sys.version_info < (3, 11))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True)
    if done.returncode:
        raise Cannot(f"{python} cannot make virtual environments; install its package python3-venv")
    minor, old = done.stdout.split()
    if old == "True":
        raise Cannot(f"{python} is Python {minor}; hippod needs 3.11 or newer")
    owner = subprocess.run(["dpkg", "-S", python.resolve()], capture_output=True, text=True)
    if owner.returncode:
        raise Cannot(
            f"{python.resolve()} belongs to no package of this system, so no other machine could be made to have it; name "
            "the distribution's Python with: make deb DEB_PYTHON=/usr/bin/python3"
        )
    return minor, f"python{minor}"


def copy_sources(target: Path, version: str) -> None:
    """What a wheel is built from, with the version of the build. From the checkout itself, setuptools would take stale modules
    of earlier builds, and leave its folders there."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "systemd/package/wheel_backend.py"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    set_version(target / "pyproject.toml", version)


def environment(python: Path, minor: str, staged: Path, work: Path, final: Path, version: str) -> None:
    """Builds the virtual environment in the folder `staged`, ready to be moved to `final`."""
    staged.parent.mkdir(parents=True, exist_ok=True)
    sources = work / "sources"
    sources.mkdir()
    copy_sources(sources, version)
    run([python, "-m", "venv", "--symlinks", staged])
    options: list[object] = ["--no-compile", "--constraint", ROOT / "constraints.txt"]
    run([staged / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *options, sources])
    packages = staged / f"lib/python{minor}/site-packages"
    complete(sources, packages)
    for folder in packages.glob("pip*"):
        shutil.rmtree(folder)
    for note in packages.glob("hippod-*.dist-info/direct_url.json"):
        note.unlink()
    slim(packages, sealed=True)
    (packages / "extras.pth").write_text(f"{EXTRAS}\n")
    for folder in (staged / "include", staged / "share/man"):
        shutil.rmtree(folder, ignore_errors=True)
    scripts(staged, minor, final)
    (staged / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nexecutable = /usr/bin/python{minor}\n"
    )
    for cache in [*staged.rglob("__pycache__")]:
        shutil.rmtree(cache)
    # Only what hippod imports, a third of all modules: Python compiles the others when they are imported.
    loaded = subprocess.run(
        [staged / "bin/python", "-B", HERE / "used_modules.py", packages], capture_output=True, text=True, check=True
    )
    listed = work / "compiled"
    listed.write_text(
        "\n".join(
            path for path in json.loads(loaded.stdout.splitlines()[-1])["files"] if Path(path).is_relative_to(staged)
        )
    )
    # Compiled code is never checked against the sources, which never change; the service cannot write here anyway.
    # -B: otherwise Python would compile what it imports at startup under the staging folder's name, and compileall would keep
    # that.
    compiling: list[str | Path] = [
        staged / "bin/python",
        "-B",
        "-m",
        "compileall",
        "-q",
        "-j",
        "2",
        "--invalidation-mode",
        "unchecked-hash",
    ]
    done = subprocess.run([*compiling, "-s", staged, "-p", final, "-i", listed], capture_output=True, text=True)
    if "hippod" in done.stdout and "/daemon/" in done.stdout:  # libraries ship files for other versions of Python
        raise Cannot(f"compiling failed:\n{done.stdout}")
    if left := list(naming(staged, str(work))):
        raise Cannot(f"the staging folder is still named in {', '.join(map(str, left[:5]))}")


def complete(sources: Path, packages: Path) -> None:
    """Raises Cannot if one of hippod's files was not installed, such as a template that pyproject.toml does not name."""
    wanted = {path.relative_to(sources) for room in ROOMS for path in (sources / room).rglob("*") if path.is_file()}
    if missing := sorted(str(path) for path in wanted if not (packages / path).exists()):
        raise Cannot(f"not in [tool.setuptools.package-data] of pyproject.toml: {', '.join(missing[:10])}")


def scripts(staged: Path, minor: str, final: Path) -> None:
    """Keeps only Python and hippod's own scripts in `bin`, and points the scripts to the final Python."""
    folder = staged / "bin"
    for path in folder.iterdir():
        if path.name not in OWN_SCRIPTS:
            path.unlink()
    (folder / f"python{minor}").symlink_to(f"/usr/bin/python{minor}")
    for name in ("python3", "python"):
        (folder / name).symlink_to(f"python{minor}")
    for name in OWN_SCRIPTS:
        path = folder / name
        first, _, rest = path.read_text().partition("\n")
        if not re.fullmatch(r"#!.*python[0-9.]*", first):
            raise Cannot(f"{path} begins with {first!r}, which is not understood")
        path.write_text(f"#!{final}/bin/python\n{rest}")


def naming(folder: Path, text: str) -> Iterator[Path]:
    """Yields the files that contain `text`."""
    wanted = text.encode()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and wanted in path.read_bytes():
            yield path


def files(root: Path, work: Path) -> None:
    """Writes all files of the package outside the virtual environment."""
    staged = root / PACKAGED.relative_to("/")
    for folder in (*ELSEWHERE, "usr/bin", "etc/hippod"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in UNITS:
        shutil.copy(SYSTEMD / name, root / "usr/lib/systemd/system")
    shutil.copy(SYSTEMD / "sysusers.d/hippod.conf", root / "usr/lib/sysusers.d")
    shutil.copy(SYSTEMD / "tmpfiles.d/hippod.conf", root / "usr/lib/tmpfiles.d")
    # postinst copies it to /etc. As a conffile, dpkg would ask about it at each upgrade: every administrator has changed it.
    shutil.copy(SYSTEMD / "hippod.toml", root / "usr/share/hippod/config.toml")
    for name in OWN_SCRIPTS:
        (root / "usr/bin" / name).symlink_to(CURRENT / "bin" / name)
    run([staged / "bin/python", "-B", HERE / "manual.py", work / "man"])
    for page in (work / "man").iterdir():
        section = root / f"usr/share/man/man{page.suffix[1:]}"
        section.mkdir(exist_ok=True)
        compress(page, section / f"{page.name}.gz")
    documents(root / "usr/share/doc/hippod")
    shutil.copy(HERE / "lintian-overrides", root / "usr/share/lintian/overrides/hippod")
    completions(root, staged)


def documents(folder: Path) -> None:
    """Copies the documentation. Linked files keep their relative places, so that the links work."""
    for name in DOCUMENTS:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(*NOT_READ))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for name in UNITS:
        (folder / "systemd" / name).symlink_to(Path("../../../../lib/systemd/system") / name)
    shutil.copy(HERE / "copyright", folder)


def changelog(folder: Path, version: str) -> None:
    """Writes Debian's changelog, which refers to CHANGELOG.md."""
    changed = float(os.environ.get("SOURCE_DATE_EPOCH", (ROOT / "CHANGELOG.md").stat().st_mtime))
    entry = f"hippod ({version}) unstable; urgency=medium\n\n  * What changed: see CHANGELOG.md in this folder.\n\n"
    entry += f" -- {MAINTAINER}  {format_datetime(datetime.fromtimestamp(int(changed), UTC))}\n"
    (folder / "changelog.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))


def completions(root: Path, staged: Path) -> None:
    for name in OWN_SCRIPTS:
        for shell, place in SHELLS.items():
            # Do not run the installed script: its first line names a Python that does not exist yet.
            asking = f"import sys; sys.argv = ['{name}']; from {MODULES[name]} import main; main()"
            environ = os.environ | {f"_{name.upper().replace('-', '_')}_COMPLETE": f"{shell}_source"}
            done = subprocess.run(
                [staged / "bin/python", "-B", "-c", asking], env=environ, capture_output=True, text=True, check=True
            )
            path = root / place.format(name=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(done.stdout)


def close(root: Path, out: Path, version: str, python: str) -> Path:
    """Sets modes, writes checksums and control files, then builds the package."""
    changelog(root / "usr/share/doc/hippod", version)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent == root / PACKAGED.relative_to("/") / "bin" else 0o644)
    sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    control = root / "DEBIAN"
    sums = "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    )
    control.mkdir()
    (control / "md5sums").write_text(sums)
    for script in (HERE / "scripts").iterdir():
        (control / script.name).write_text(script.read_text())
        (control / script.name).chmod(0o755)
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (control / "control").write_text(
        f"""Package: hippod
Version: {version}
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {sum(sizes) // 1024}
Depends: {python}, libc6 (>= 2.28), libstdc++6, passwd
Suggests: systemd, bash-completion, tesseract-ocr, libreoffice-writer-nogui, libreoffice-impress-nogui, libreoffice-draw-nogui
Section: misc
Priority: optional
Description: long-term memory for language models, as a daemon
 hippod follows folders and Kafka topics, turns every new passage into phrases,
 triples and vectors, and answers multi-hop questions over a local socket while
 it learns. It needs no language model, no GPU and no network: an encoder and an
 extractor come with it, in virtual environments under /opt/hippod.
"""
    )
    out.mkdir(parents=True, exist_ok=True)
    made = out / f"hippod_{version}_{architecture}.deb"
    # xz: on a sample of these files a sixth smaller than zstd -9, and 7 % smaller than zstd -19, which takes as long.
    # An interrupted build leaves no package that looks complete.
    unfinished = made.with_suffix(".unfinished")
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, unfinished])
    return only_build(unfinished.replace(made), f"hippod_*_{architecture}.deb")


def only_build(made: Path, pattern: str) -> Path:
    """Deletes earlier builds, which match `pattern`, in the folder of `made`, so that a command can name the build by the
    pattern. Returns `made`."""
    for path in made.parent.glob(pattern):
        if path != made:
            path.unlink()
    return made


def compress(source: Path, target: Path) -> None:
    # Without time and name, so that equal text gives equal bytes.
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def run(command: Sequence[object]) -> None:
    """Runs a program without showing its output; raises Cannot if it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL)
    if done.returncode:
        raise Cannot(f"this failed with {done.returncode}: {' '.join(map(str, command))}")


def say(text: str) -> None:
    print(f"hippod: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
