"""mcp: the memory as an MCP server on standard input and output."""

import os

import click

from cli.address import Address, read_config, table
from cli.errors import Failure
from cli.session import Session, pass_session

VARIABLE = "HIPPOD_MCP__WRITE"


@click.command()
@click.option(
    "--write/--read-only",
    "write",
    default=None,
    help="Whether to serve the tools that add and forget. Default: write in [mcp] of the configuration, else not.",
)
@pass_session
def mcp(session: Session, write: bool | None) -> None:
    """Serve the memory to an agent over the Model Context Protocol, on standard input and output.

    For the configuration of an agent's host, which starts this command itself. It ends when its input does, and waits for
    nothing: while no daemon answers, each call says so.
    """
    address = session.address()
    chosen = write if write is not None else configured(address)
    session.stdout_taken = True
    from cli.mcp.stdio import serve

    serve(address.connectable, write=chosen)


def configured(address: Address) -> bool:
    """`[mcp] write`, as the daemon reads it; false where no configuration says so."""
    said = os.environ.get(VARIABLE)
    if said is not None:
        if said.strip().lower() not in ("true", "false"):
            raise Failure(f"${VARIABLE} is {said!r}; allowed are true and false.")
        return said.strip().lower() == "true"
    value = table(read_config(address.config), "mcp").get("write", False) if address.config is not None else False
    if not isinstance(value, bool):
        raise Failure(f"[mcp] write in {address.config} is {value!r}; allowed are true and false.")
    return value
