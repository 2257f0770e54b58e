"""Rejects requests of other sites' pages. Everything that serves a browser uses this function.

A page of another site can make a browser send requests to hippod; the browser reports this in `Sec-Fetch-Site` or `Origin`.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

SAFE_METHODS = ("GET", "HEAD")


def same_origin(method: str, headers: Iterable[tuple[str, str]], *, by_cookie: bool) -> bool:
    """Returns False if a page of another origin sent the request.

    `headers` are all header lines as (name, value), including repeated ones; each of them must pass. The port is part of an
    origin, so another server on the same machine is another site. A request from a link on another site's page does not pass.

    `by_cookie` means that the request is authenticated by data that a browser sends by itself: a cookie or a form's fields.
    Such a request must state its origin if it changes something. A token in a header is sent only by programs, which state no
    origin, or by a script of the page itself.
    """
    lines = [(name.lower(), value.strip().lower()) for name, value in headers]
    hosts = [value for name, value in lines if name == "host"]
    sites = [value for name, value in lines if name == "sec-fetch-site"]
    origins = [value for name, value in lines if name == "origin"]
    if any(site not in ("same-origin", "none") for site in sites):
        return False
    if origins and (len(hosts) != 1 or not hosts[0]):
        return False
    if any(_authority(origin) != hosts[0] for origin in origins):
        return False
    return not by_cookie or method in SAFE_METHODS or bool(sites or origins)


def _authority(origin: str) -> str:
    """Returns host and port of an http or https origin; "" for anything else, such as `null`."""
    scheme, separator, authority = origin.partition("://")
    try:
        parsed = urlsplit(origin)
    except ValueError:
        return ""
    return authority if separator and scheme in ("http", "https") and parsed.netloc == authority else ""


def cookie_value(header: str, name: str) -> str:
    """Returns the value of the cookie `name` in a Cookie header, or ""."""
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
