"""Builds hippod's container image: `python systemd/package/image.py`, run by `make image`.

No image is pulled. mmdebstrap builds the smallest Debian that runs Python, of this machine's release, from Debian's packages.
The program is the virtual environment of the Debian package (`deb.py`). buildah combines both, one layer each, and writes one
file for `podman load` and `docker load`.

The image uses Docker's format, because OCI's has no health check.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import deb
from version import NoVersion, build_version, for_image

NAME = "localhost/hippod"
TOOLS = {"mmdebstrap": "mmdebstrap", "buildah": "buildah"}
SYSTEM = ("python3", "libstdc++6", "ca-certificates")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
"""Omitted files of Debian's packages; their copyright files stay."""
REMOVED = ("usr/share/perl", "usr/lib/*/perl", "usr/lib/*/libperl.so*", "usr/lib/*/gconv")
"""Parts of Debian's packages that only their installation uses: Perl's modules beyond perl-base, and glibc's converters, in
whose place Python has its own."""
USER = 10001
"""User id of hippod in the container. A bind mount that replaces the volume must belong to it."""
HOME = "/var/lib/hippod"


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds hippod's container image.")
    parser.add_argument("--python", type=Path, default=Path("/usr/bin/python3"), help="the distribution's Python")
    parser.add_argument("--work", type=Path, default=deb.ROOT / "build" / "image", help="where it is put together")
    parser.add_argument("--out", type=Path, default=deb.ROOT / "dist", help="where the image goes")
    given = parser.parse_args()
    try:
        made = build(given.python, given.work.absolute(), given.out.absolute())
    except (deb.Cannot, NoVersion) as reason:
        print(f"make image: {reason}", file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size / 1e6:.0f} MB. Load it with: podman load --input {made}")
    return 0


def build(python: Path, work: Path, out: Path) -> Path:
    """Builds and returns the image file."""
    if missing := [package for tool, package in TOOLS.items() if shutil.which(tool) is None]:
        raise deb.Cannot(f"install {' and '.join(missing)} first: sudo apt install {' '.join(missing)}")
    if os.geteuid() != 0:
        raise deb.Cannot("it needs root: sudo make image")
    minor, _ = deb.distribution_python(python)
    shutil.rmtree(work, ignore_errors=True)
    (work / "root").mkdir(parents=True)
    deb.say("a Debian with Python and little else")
    debian(work)
    deb.say("the virtual environment")
    version = build_version()
    deb.environment(python, minor, work / "root" / deb.PREFIX.relative_to("/"), work, deb.PREFIX, version)
    files(work / "root")
    deb.say("the image")
    return close(work, out, for_image(version))


def release() -> str:
    """Returns this machine's release, such as `bookworm`: the environment's libraries are compiled for its Python."""
    found = platform.freedesktop_os_release().get("VERSION_CODENAME")
    if found is None:
        raise deb.Cannot("/etc/os-release names no release; an image is built on Debian or a system made from it")
    return found


def debian(work: Path) -> None:
    """Builds the system as `debian.tar`."""
    command: list[object] = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(SYSTEM)}"]
    command += [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
    command += ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]
    # The user's lines are written directly: so small a system has no useradd.
    removed = " ".join(f'"$1"/{path}' for path in ("var/cache/*", "var/log/*", *REMOVED))
    hook = (
        f"echo 'hippod:x:{USER}:{USER}:hippod:{HOME}:/usr/sbin/nologin' >> \"$1/etc/passwd\"; "
        f"echo 'hippod:x:{USER}:' >> \"$1/etc/group\"; rm -rf {removed}"
    )
    deb.run([*command, f"--customize-hook={hook}", release(), work / "debian.tar"])


def files(root: Path) -> None:
    """Writes all of hippod's files outside the virtual environment."""
    (root / "etc/hippod").mkdir(parents=True)
    shutil.copy(deb.HERE / "container.toml", root / "etc/hippod/config.toml")
    shutil.copy(deb.HERE / "healthcheck.py", root / deb.PREFIX.relative_to("/"))
    (root / "usr/bin").mkdir(parents=True)
    for name in deb.OWN_SCRIPTS:
        (root / "usr/bin" / name).symlink_to(deb.PREFIX / "bin" / name)
    documents = root / "usr/share/doc/hippod"
    documents.mkdir(parents=True)
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(deb.ROOT / name, documents)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent == root / deb.PREFIX.relative_to("/") / "bin" else 0o644)


def close(work: Path, out: Path, version: str) -> Path:
    """Combines the two layers, Debian's and hippod's, with the runtime's settings. buildah's own storage is below `work`."""
    storage: list[object] = ["--root", work / "storage", "--runroot", work / "run", "--storage-driver", "vfs"]

    def buildah(*command: object) -> str:
        done = subprocess.run(
            ["buildah", *map(str, storage), *map(str, command)],
            env=os.environ | {"BUILDAH_FORMAT": "docker"},
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise deb.Cannot(f"buildah {' '.join(map(str, command))} failed with {done.returncode}")
        return done.stdout.strip()

    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, work / "debian.tar", "/")
    (work / "debian.tar").unlink()
    container = buildah("from", buildah("commit", "--quiet", "--rm", "--format", "docker", container))
    buildah("add", "--quiet", "--chown", "0:0", container, work / "root", "/")
    volume = work / "volume"
    volume.mkdir()
    buildah("add", "--quiet", "--chown", f"{USER}:{USER}", "--chmod", "0700", container, volume, HOME)
    check = f"CMD {deb.PREFIX}/bin/python -I -S {deb.PREFIX}/healthcheck.py"
    settings: dict[str, str] = {
        "--user": f"{USER}:{USER}",
        # Temporary files go to /tmp if the runtime provides one, else here: Python then uses the working directory.
        "--workingdir": HOME,
        "--volume": HOME,
        "--port": "7411",
        "--entrypoint": f'["{deb.PREFIX}/bin/hippod"]',
        "--cmd": "",
        "--stop-signal": "SIGTERM",
        "--healthcheck": check,
        "--healthcheck-interval": "30s",
        "--healthcheck-timeout": "10s",
        "--healthcheck-start-period": "120s",
        "--healthcheck-retries": "4",
    }
    buildah(
        "config", *(f"{name}={value}" for name, value in settings.items()), *environment(), *labels(version), container
    )
    image = buildah("commit", "--quiet", "--rm", "--format", "docker", container)
    out.mkdir(parents=True, exist_ok=True)
    made = out / f"hippod_{version}_{platform.machine()}.image.tar"
    made.unlink(missing_ok=True)
    buildah("push", "--quiet", image, f"docker-archive:{made}:{NAME}:{version}")
    shutil.rmtree(work, ignore_errors=True)
    return deb.only_build(made, f"hippod_*_{platform.machine()}.image.tar")


def environment() -> list[str]:
    values = {
        "HIPPOD_CONFIG": "/etc/hippod/config.toml",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return [f"--env={name}={value}" for name, value in values.items()]


def labels(version: str) -> list[str]:
    values = {"title": "hippod", "version": version, "licenses": "Apache-2.0", "base.name": f"debian:{release()}"}
    return [f"--label=org.opencontainers.image.{name}={value}" for name, value in values.items()]


if __name__ == "__main__":
    sys.exit(main())
