"""Security headers: a browser may run and show only the page's own files, and may not embed the page in another site."""

from collections.abc import Mapping

SECURITY_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; worker-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types hippod"
)
_LOGIN_POLICY = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def page_headers(nonce: str) -> dict[str, str]:
    """Returns the page's headers. `nonce` allows the style elements that the plotting library creates, and no script.

    With trusted types, the browser refuses to turn text into markup or scripts, whatever its origin. The only exception is the
    URL of the worker's file.
    """
    return {**SECURITY_HEADERS, "Content-Security-Policy": _PAGE_POLICY.format(nonce=nonce)}


def login_headers(digest: str) -> dict[str, str]:
    """Returns the login form's headers. `digest` is the base64 SHA-256 of its only style sheet."""
    return {
        **SECURITY_HEADERS,
        "Content-Security-Policy": _LOGIN_POLICY.format(digest=digest),
        "Cache-Control": "no-store",
    }
