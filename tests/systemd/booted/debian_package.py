"""A Debian package like another one, but for a few files: from one stream into another, not unpacked in between.

Nothing is compressed: that alone would take minutes.
"""

import io
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

Edit = Callable[[str, bytes], bytes]
"""What a file is to hold, from its name and what it holds."""


def rewrite(source: Path, target: Path, edits: Mapping[str, Edit]) -> None:
    """`edits` go by the names in the package, such as `./control` or `./usr/bin/x`; each must be there."""
    left = set(edits)
    with target.open("wb") as made:
        made.write(b"!<arch>\n")
        _member(made, "debian-binary", lambda: made.write(b"2.0\n"))
        for name, option in (("control.tar", "--ctrl-tarfile"), ("data.tar", "--fsys-tarfile")):
            _member(made, name, partial(_copy, source, option, made, edits, left))
    assert not left, f"not in the package: {left}"


def _member(made: BinaryIO, name: str, write: Callable[[], object]) -> None:
    """A member of the archive (ar's format). Its header, which tells the size, is written once that is known."""
    header = made.tell()
    made.write(b" " * 60)
    write()
    end = made.tell()
    made.seek(header)
    made.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{end - header - 60:<10}`\n".encode())
    made.seek(end)
    made.write(b"\n" * (end % 2))


def _copy(source: Path, option: str, made: BinaryIO, edits: Mapping[str, Edit], left: set[str]) -> None:
    """Copies a tar within the package; removes from `left` which of `edits` were in it."""
    with subprocess.Popen(["dpkg-deb", option, source], stdout=subprocess.PIPE) as reading:
        with (
            tarfile.open(fileobj=reading.stdout, mode="r|") as files,
            tarfile.TarFile(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, copybufsize=1 << 20) as copy,
        ):
            for each in files:
                content: IO[bytes] | None = files.extractfile(each) if each.isreg() else None
                if content is not None and each.name in edits:
                    changed = edits[each.name](each.name, content.read())
                    each.size, content = len(changed), io.BytesIO(changed)
                    left.discard(each.name)
                copy.addfile(each, content)
        assert reading.wait() == 0
