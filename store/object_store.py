"""Opens pyarrow's file systems by URL: `s3://bucket/prefix` on any S3-compatible server, `file:///folder` on this machine.

Credentials come from the sources that the AWS tools use. AWS_ENDPOINT_URL sets the address of a server other than Amazon's;
hippod reads it because pyarrow 26 does not.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from pyarrow import fs

CLIENT_TRIES = 5
"""Attempts of one request in the AWS client, with growing pauses."""
TRIES = 5
"""Number of attempts of an operation. Each includes all attempts of the client, so up to 24 successive connections may
break."""
RETRY_PAUSE_S = 0.2
"""Pause in seconds before the second attempt; doubled before each further one."""
CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 60.0
CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)

Result = TypeVar("Result")


def file_system(url: str) -> tuple[fs.FileSystem, str]:
    """Returns the file system of a URL and the path in it, without a trailing `/`. Does not connect yet. Raises ValueError."""
    parts = urlsplit(url)
    path = (parts.netloc + parts.path).rstrip("/")
    if parts.scheme == "s3" and parts.netloc and not parts.query and not parts.fragment:
        return _s3(), path
    if parts.scheme == "file" and not parts.netloc and path.startswith("/"):
        return fs.LocalFileSystem(), path
    raise ValueError(f'"{url}" is not a valid target; write s3://bucket/prefix, or file:///folder')


def again(once: Callable[[], Result]) -> Result:
    """Calls `once`, up to `TRIES` times if a connection breaks during a transfer; the client itself retries only requests.

    Raises the last OSError; raises FileNotFoundError without another attempt.
    """
    for number in range(TRIES):
        try:
            return once()
        except FileNotFoundError:
            raise
        except OSError:
            if number + 1 == TRIES:
                raise
            time.sleep(RETRY_PAUSE_S * 2**number)
    raise AssertionError("the last try returns or raises")


def explained(error: OSError, url: str) -> str:
    """Returns the file system's error about `url`, with its meaning and what to do."""
    message = str(error)
    if not url.startswith("s3://"):
        return f"{url}: {message}"
    bucket = urlsplit(url).netloc
    if "NO_SUCH_BUCKET" in message:
        return f'{url}: there is no bucket "{bucket}"; create it first; hippod creates none'
    if any(
        word in message for word in ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT", "HTTP status 403")
    ):
        if not _credentials_found():
            return (
                f"{url}: the server refuses it: {message}. No credentials were found: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY in the environment of hippod, or AWS_PROFILE and ~/.aws/credentials of its user"
            )
        return (
            f"{url}: the server refuses it: {message}. Its key needs the rights to list, read, write and delete there"
        )
    if "NETWORK_CONNECTION" in message or "curl" in message.lower():
        where = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "Amazon's S3"
        return f"{url}: {where} does not answer, or the connection broke: {message}"
    return f"{url}: {message}"


def _s3() -> fs.FileSystem:
    options = {}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        parts = urlsplit(endpoint)
        options = {"endpoint_override": parts.netloc + parts.path.rstrip("/"), "scheme": parts.scheme}
    return fs.S3FileSystem(
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        background_writes=False,
        allow_delayed_open=True,  # a file of less than 5 MiB is one request
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=CLIENT_TRIES),
        **options,
    )


def _credentials_found() -> bool:
    home = os.environ.get("HOME", "/")
    shared = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", f"{home}/.aws/credentials")
    return any(os.environ.get(name) for name in CREDENTIALS) or Path(shared).exists()
