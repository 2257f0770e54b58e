"""Files that the user names. Errors of the operating system become `CommandError`."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cli.errors import CommandError
from cli.output import print_note


@contextmanager
def file_errors(path: Path | str, action: str) -> Iterator[None]:
    """Converts an error of the operating system to a CommandError: `path` cannot be "read" or "written"."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader closed the pipe, which `run` handles
    except OSError as error:
        raise CommandError(f"{path} cannot be {action}: {error.strerror or error}.") from None


def read_json(path: Path) -> Any:
    """Returns the parsed content. Raises CommandError."""
    try:
        with file_errors(path, "read"):
            return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Yields a temporary file that replaces `path` once it is completely on disk."""
    with file_errors(path, "written"):
        if path.exists() and not path.is_file():
            # A pipe or a device, such as /dev/stdout, cannot be replaced.
            with path.open("wb") as stream:
                yield stream
            return
        target = path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            temporary.replace(target)
        finally:
            try:
                temporary.unlink(missing_ok=True)
            except OSError as error:
                print_note(f"{temporary} could not be deleted: {error.strerror}")
