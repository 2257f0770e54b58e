"""What tells a page of ours from a page of anybody else's, for whoever takes a cookie for a credential."""

from collections.abc import Mapping
from urllib.parse import urlsplit

SAFE = ("GET", "HEAD")


def same_origin(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser sent this for a page that came from the host it is sent to. Names of `headers` are in lower case.

    Another site's page may make a browser send requests here, and the browser says so: in Sec-Fetch-Site, or in Origin. A
    request that changes something must carry one of the two. A port counts: another server of this machine is another site.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    if origin is not None and _authority(origin) != headers.get("host", "").strip().lower():
        return False
    return method in SAFE or site is not None or origin is not None


def _authority(origin: str) -> str:
    try:
        parts = urlsplit(origin.strip().lower())
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""


def cookie_value(header: str, name: str) -> str:
    """One cookie of a Cookie header; empty where it is not there."""
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
