"""Confines an external program: no network, no files except program files and one folder, limits of memory and time.

`confine` runs between `fork` and `exec`. It restricts files with Landlock and sockets with seccomp. Landlock and seccomp need
no privileges, and a program cannot undo them. On a kernel without Landlock (before 5.13), only file permissions and the
service's unit restrict which files the program opens.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
from collections.abc import Iterable, Sequence

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 1, 22, 38, 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIRECTORY, _MAKE_SOCKET = 1, 2, 4, 8, 1 << 9
_ALL_FILE_RIGHTS = (1 << 13) - 1
_TRUNCATE_SINCE, _TRUNCATE = 3, 1 << 14
_RIGHTS_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
PROGRAM_FOLDERS = (b"/usr", b"/lib", b"/lib32", b"/lib64", b"/bin", b"/etc", b"/opt", b"/nix/store")
"""Folders with programs, libraries and settings, but no documents. Any confined program may read these folders."""
SOCKET_FOLDERS = (b"/tmp", b"/var/tmp")
"""Folders in which a program may create Unix sockets, but no files: LibreOffice does not start without its socket."""
_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/random", b"/dev/urandom")
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41, 42), "aarch64": (0xC00000B7, 198, 203)}
"""By machine: (audit architecture, number of the system call `socket`, number of `connect`)."""
_IO_URING_SETUP, _X32_CALLS = 425, 0x40000000
_AF_UNIX, _EACCES, _ECONNREFUSED = 1, 13, 111
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def confine(folders: Sequence[bytes], writable: bytes | None, memory_bytes: int, seconds: float, niceness: int) -> None:
    """Confines the calling process. It may read `PROGRAM_FOLDERS` and `folders`, and write below `writable`.

    Raises OSError if seccomp refuses the filter, so that no program runs with network access.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.nice(niceness)
    for limit, maximum in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, memory_bytes),
    ):
        hard = resource.getrlimit(limit)[1]
        maximum = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
        resource.setrlimit(limit, (maximum, maximum))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    _restrict_files(libc, [*PROGRAM_FOLDERS, *folders], writable)
    _forbid_network(libc)


def _restrict_files(libc: ctypes.CDLL, readable: Iterable[bytes], writable: bytes | None) -> None:
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        return
    all_rights = _ALL_FILE_RIGHTS | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    attributes = struct.pack("=Q", all_rights)
    rules = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return
    # No rule allows moving a file to another folder: Landlock's first version always denies it.
    for path in readable:
        _allow(libc, rules, path, _EXECUTE | _READ_FILE | _READ_DIRECTORY)
    for path in _DEVICES:
        _allow(libc, rules, path, _READ_FILE | _WRITE_FILE)
    if writable is not None:
        _allow(libc, rules, writable, all_rights)
        for path in SOCKET_FOLDERS:
            _allow(libc, rules, path, _MAKE_SOCKET)
    libc.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: bytes, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - paths are bytes here
        rights &= _RIGHTS_OF_FILES
    libc.syscall(_LANDLOCK_ADD_RULE, rules, _LANDLOCK_PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def _forbid_network(libc: ctypes.CDLL) -> None:
    """Denies `connect` and all sockets except Unix sockets, which LibreOffice needs internally."""
    known = _SOCKET_CALLS.get(platform.machine())
    if known is None:
        raise OSError("no seccomp filter is known for this machine")
    architecture, socket, connect = known
    program = (
        (_LOAD, 0, 0, 4),  # the architecture
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_JUMP_AT_LEAST, 5, 0, _X32_CALLS),
        (_JUMP_EQUAL, 4, 0, _IO_URING_SETUP),
        (_JUMP_EQUAL, 4, 0, connect),
        (_JUMP_EQUAL, 0, 4, socket),
        (_LOAD, 0, 0, 16),  # the first argument
        (_JUMP_EQUAL, 2, 0, _AF_UNIX),
        (_RETURN, 0, 0, _ERROR | _EACCES),
        (_RETURN, 0, 0, _ERROR | _ECONNREFUSED),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp refused the filter")
