"""The login form. It needs no other file, so nothing else is served without a token."""

from base64 import b64encode
from hashlib import sha256

from starlette.responses import HTMLResponse

from daemon.page.security_headers import login_headers

LOGIN_PATH = "/page/login"
FIELD_NAME = "token"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #f7f6f2; --card: #fff; --line: #8a919c; --act: #0b5c6b;
  --bad: #a3221f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #14181d; --card: #1d232a; --line: #7d8794; --act: #7fd0dd; --bad: #ffa39c; }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
form { width: min(22rem, calc(100vw - 2rem)); padding: 1.75rem; box-sizing: border-box; background: var(--card);
  border-radius: .75rem; display: grid; gap: .75rem; }
h1 { margin: 0; font-size: 1.25rem; }
p { margin: 0; }
[role=alert] { color: var(--bad); }
input, button { font: inherit; padding: .6rem .75rem; border-radius: .4rem; border: 1px solid var(--line); }
input { background: var(--paper); color: inherit; }
button { background: var(--act); color: var(--card); border-color: transparent; cursor: pointer; }
:focus-visible { outline: 3px solid var(--act); outline-offset: 2px; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · hippod</title>
<link rel="icon" href="data:,">
<style>{style}</style>
<main>
<form method="post" action="{path}">
<h1>hippod</h1>
{note}<label for="token">Token</label>
<input id="token" name="{field}" type="password" autocomplete="current-password" required autofocus>
<button>Open the memory</button>
<p>The token is the line in the file that <code>token_file</code> names in the configuration.</p>
</form>
</main>
</html>
"""


def login_page(wrong: bool = False) -> HTMLResponse:
    """Returns the form with status 401. `wrong` adds that the token sent was wrong."""
    note = '<p role="alert">That is not the token.</p>\n' if wrong else ""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    headers = {**login_headers(digest), "WWW-Authenticate": 'Bearer realm="hippod"'}
    return HTMLResponse(_PAGE.format(style=_STYLE, path=LOGIN_PATH, field=FIELD_NAME, note=note), 401, headers)
