"""The check that keeps other sites' pages out. Whatever answers a browser uses this one function.

A page of another site can make a browser send requests to hippod. The browser says so, in `Sec-Fetch-Site` or `Origin`.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

SAFE_METHODS = ("GET", "HEAD")


def same_origin(method: str, headers: Iterable[tuple[str, str]], *, by_cookie: bool) -> bool:
    """Whether no page of another origin sent the request.

    `headers` are all header lines as (name, value), repeated ones too: each of them must pass. The port is part of an
    origin: another server on the same machine is another site. A link that is followed from another site's page does not
    pass either.

    `by_cookie`: a browser adds a cookie, or a form's fields, by itself. A request that is let in by these and changes
    something must say where it comes from, and one that says nothing does not pass. A token in a header is sent by programs,
    which say nothing, or by a script of our own page.
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
    """Host and port of an http or https origin; empty for anything else, `null` for instance."""
    scheme, separator, authority = origin.partition("://")
    try:
        parsed = urlsplit(origin)
    except ValueError:
        return ""
    return authority if separator and scheme in ("http", "https") and parsed.netloc == authority else ""


def cookie_value(header: str, name: str) -> str:
    """The cookie called `name` in a Cookie header; empty where there is none."""
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
