"""Converts old office files with LibreOffice: confined, without a window, with a new profile for each file.

The profile disables macros, links, updates and active content. The confinement denies the network and all other files. A
conversion runs in a temporary folder, which is removed afterwards.
"""

import tempfile
from contextlib import suppress
from dataclasses import replace
from hashlib import md5
from os import fsencode, getuid
from pathlib import Path
from time import monotonic

from consumers.parsing.limits import Limits
from consumers.parsing.programs.confinement import SOCKET_FOLDERS
from consumers.parsing.programs.installed import CONVERTER
from consumers.parsing.programs.run import ProgramFailed, run_program

_RESTART = 81
"""Exit status with which LibreOffice requests a restart after it has filled a new profile."""
_STARTS = 3
_READABLE = ("/var/lib/libreoffice", "/var/spool/libreoffice", "/var/cache/fontconfig")
_COMMON = "/org.openoffice.Office.Common"
_SETTINGS = (
    (f"{_COMMON}/Security/Scripting", "DisableMacrosExecution", "true"),
    (f"{_COMMON}/Security/Scripting", "MacroSecurityLevel", "3"),
    (f"{_COMMON}/Security/Scripting", "DisableActiveContent", "true"),
    (f"{_COMMON}/Security/Scripting", "DisableOLEAutomation", "true"),
    (f"{_COMMON}/Security/Scripting", "DisablePythonRuntime", "true"),
    (f"{_COMMON}/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    (f"{_COMMON}/Security/Scripting", "CheckDocumentEvents", "true"),
    (f"{_COMMON}/Load", "UpdateDocMode", "0"),
    (f"{_COMMON}/Misc", "UseOpenCL", "false"),
    ("/org.openoffice.Office.Writer/Content/Update", "Link", "0"),
    ("/org.openoffice.Office.Writer/Content/Update", "Field", "false"),
    ("/org.openoffice.Office.WriterWeb/Content/Update", "Link", "0"),
    ("/org.openoffice.Office.Calc/Content/Update", "Link", "1"),
    ("/org.openoffice.Office.Jobs/Jobs/org.openoffice.Office.Jobs:Job['UpdateCheck']/Arguments", "AutoCheckEnabled", "false"),
)  # fmt: skip
"""(path, property, value) of each setting. For links, "never" is 0 in Writer and 1 in Calc."""


def convert(data: bytes, ending: str, target: str, limits: Limits) -> bytes:
    """Converts a file to the format `target`. `ending` is the ending of the file's name. Raises ProgramFailed."""
    program = limits.programs[CONVERTER]
    with tempfile.TemporaryDirectory(prefix="hippod-") as folder:
        profile = Path(folder, "profile")
        (profile / "user").mkdir(parents=True)
        (profile / "user" / "registrymodifications.xcu").write_text(_registry(), "utf-8")
        source = Path(folder, f"document.{ending}")
        source.write_bytes(data)
        out = Path(folder, "out")
        command = [
            program.path,
            f"-env:UserInstallation={profile.as_uri()}",
            *("--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"),
            *("--convert-to", target, "--outdir", str(out), str(source)),
        ]
        try:
            _run_to_end(command, profile, folder, limits)
        finally:
            _remove_sockets(profile)
        for found in sorted(out.glob("*")) if out.is_dir() else ():
            if found.stat().st_size <= limits.file_bytes:
                return found.read_bytes()
            raise ProgramFailed(f"the converted file is larger than {limits.file_bytes:,} bytes")
    raise ProgramFailed("LibreOffice could not open it")


def _run_to_end(command: list[str], profile: Path, folder: str, limits: Limits) -> None:
    environment = {"HOME": folder, "TMPDIR": folder, "SAL_USE_VCLPLUGIN": "svp", "XDG_RUNTIME_DIR": folder}
    until = monotonic() + limits.program_seconds
    for start in range(_STARTS):
        left = replace(limits, program_seconds=max(until - monotonic(), 1.0))
        try:
            run_program(command, left, folder=folder, readable=_READABLE, environment=environment)
            return
        except ProgramFailed as error:
            if error.status != _RESTART or start == _STARTS - 1:
                raise
            _remove_sockets(profile)


def _remove_sockets(profile: Path) -> None:
    """Removes LibreOffice's socket, which the confined LibreOffice cannot remove. The socket's name is derived from the
    profile."""
    digest = md5(profile.as_uri().encode("utf-16-le"), usedforsecurity=False).digest()
    name = f"OSL_PIPE_{getuid()}_SingleOfficeIPC_" + "".join(f"{byte:x}" for byte in digest)
    for folder in SOCKET_FOLDERS:
        with suppress(OSError):
            Path((folder + b"/" + fsencode(name)).decode()).unlink()


def _registry() -> str:
    items = "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>\n'
        for path, name, value in _SETTINGS
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        f"{items}</oor:items>\n"
    )
