"""Finds the external programs for formats that no library reads, and names the packages to install."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_MAX_LANGUAGES = 4
"""If more languages are installed and none is configured, OCR uses only English: many languages make it slow and inaccurate."""
_NOT_LANGUAGES = frozenset(("osd", "equ", "snum"))
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Program:
    """An installed program. `identity` names its version and languages, on which the results depend."""

    path: str
    identity: str
    languages: tuple[str, ...] = ()
    missing_languages: tuple[str, ...] = ()
    """Configured languages that are not installed."""


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """A program that hippod can use. `title` is its name, `package` the Debian package to install; `find` searches for
    it."""

    title: str
    package: str
    purpose: str
    find: Callable[[tuple[str, ...]], Program | None]


def _find_tesseract(languages: tuple[str, ...]) -> Program | None:
    path = shutil.which("tesseract")
    if path is None:
        return None
    try:
        version, listed = _output(path, "--version"), _output(path, "--list-langs")
    except (OSError, subprocess.SubprocessError):
        return None
    installed = [line for line in listed.split("\n")[1:] if line.strip()]
    available = sorted(line.strip() for line in installed if line.strip() not in _NOT_LANGUAGES)
    used = [each for each in languages if each in available]
    if not languages:
        used = available if len(available) <= _MAX_LANGUAGES else [each for each in available if each == "eng"]
    if not used:
        return None
    number = re.search(r"\d+(?:\.\d+)+", version)
    identity = f"Tesseract {number[0] if number else 'of unknown version'} ({'+'.join(used)})"
    missing = tuple(each for each in languages if each not in available)
    return Program(path, identity, tuple(used), missing)


def _find_libreoffice(_languages: tuple[str, ...]) -> Program | None:
    for command in ("soffice", "libreoffice"):
        if (found := shutil.which(command)) is None:
            continue
        # Uses the binary, because the script starts further processes that would outlive it.
        binary = Path(found).resolve().parent / "soffice.bin"
        if not os.access(binary, os.X_OK):
            continue
        # Reads the version from the settings, because starting LibreOffice takes a second.
        version = _setting(binary.with_name("bootstraprc"), "ProductKey") or "LibreOffice of unknown version"
        build = _setting(binary.with_name("versionrc"), "buildid")
        return Program(str(binary), f"{version}, build {build}" if build else version)
    return None


def _setting(file: Path, name: str) -> str:
    try:
        found = re.search(rf"^{name}=(.+)$", file.read_text("utf-8", "replace"), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def _output(path: str, option: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([path, option], capture_output=True, timeout=_SECONDS, check=True, env=environment)  # noqa: S603
    return (done.stdout or done.stderr).decode("utf-8", "replace")


OCR, CONVERTER = "ocr", "converter"
KNOWN_PROGRAMS: Mapping[str, KnownProgram] = {
    OCR: KnownProgram("Tesseract", "tesseract-ocr", "pages without a text layer and pictures", _find_tesseract),
    CONVERTER: KnownProgram(
        "LibreOffice",
        "libreoffice-writer-nogui libreoffice-impress-nogui libreoffice-draw-nogui",
        "old office files",
        _find_libreoffice,
    ),
}
Programs = Mapping[str, Program]
"""The installed programs, by their keys in `KNOWN_PROGRAMS`."""


def find_programs(ocr: str = "auto", languages: tuple[str, ...] = ()) -> dict[str, Program]:
    """Returns the installed programs. With `ocr` "off", the program for OCR counts as not installed."""
    found = {}
    for key, known in KNOWN_PROGRAMS.items():
        if key == OCR and ocr == "off":
            continue
        if (program := known.find(languages)) is not None:
            found[key] = program
    return found


def identities(programs: Programs) -> dict[str, str]:
    """Maps the programs' keys to their identities, for the store."""
    return {key: program.identity for key, program in sorted(programs.items())}
