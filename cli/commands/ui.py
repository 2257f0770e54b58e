"""ui: the page that shows the memory, for users with only the Unix socket."""

import os
import sys

import click

from cli.errors import CommandError
from cli.options.global_options import Invocation, command
from cli.output import print_json, print_note
from daemon.contract.http.routes import Route


@command("ui")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on. Default: a free one."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def ui(invocation: Invocation, port: int, no_browser: bool) -> None:
    """The command serves the page on 127.0.0.1 until Ctrl-C. The printed address works once, in the browser that opens it
    first."""
    from cli.ui.server import PageServer  # the HTTP client is loaded only if it is needed

    address = invocation.address()
    invocation.call("GET", Route.STATUS)  # reports a missing daemon here instead of in the browser
    try:
        server = PageServer(address, port)
    except OSError as error:
        raise CommandError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}.", hint="Choose another --port."
        ) from None
    with server:
        if invocation.json:
            print_json({"url": server.url, "socket": str(address.path)})
        else:
            click.echo(f"{server.url}\n\nThe address works once. Ctrl-C ends the page.")
        if not no_browser:
            _open_browser(server.url)
        server.serve_until_interrupted()
        if sys.stderr.isatty():
            sys.stderr.write("\n")


def _open_browser(url: str) -> None:
    """Opens the browser if there is a desktop; a text browser would take over the terminal."""
    import webbrowser

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        print_note("No desktop was found: open the address yourself.")
    elif not webbrowser.open(url):
        print_note("No browser could be opened: open the address yourself.")
