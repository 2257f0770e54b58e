"""What a browser may do with the page: run and show its own files alone, and nothing of it inside another site."""

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
    """`nonce` is for the styles that the drawing library makes in its own corners of the page; scripts have none.

    With trusted types, no text can become markup or a script, wherever it comes from: the browser itself refuses. The one
    policy there is names the worker's file.
    """
    return {**SECURITY_HEADERS, "Content-Security-Policy": _PAGE_POLICY.format(nonce=nonce)}


def login_headers(digest: str) -> dict[str, str]:
    """`digest`: base64 of the SHA-256 of the one style sheet that the login page holds."""
    return {
        **SECURITY_HEADERS,
        "Content-Security-Policy": _LOGIN_POLICY.format(digest=digest),
        "Cache-Control": "no-store",
    }
