"""mcp: the memory as an MCP server on standard input and output."""

import asyncio
import os

import click

from cli.client.address import Address, read_config, table
from cli.errors import CommandError
from cli.options.global_options import Invocation, command

CONFIG_VARIABLE = "HIPPOD_MCP__WRITE"


@command("mcp", json=False)
@click.option(
    "--write/--read-only",
    "write",
    default=None,
    help="Whether to offer the tools that add and forget documents. Default: [mcp] write of the configuration.",
)
def mcp(invocation: Invocation, write: bool | None) -> None:
    """Name this command in the configuration of an agent's host, which starts it. It ends when its input ends. While no daemon
    answers, each call returns an error that says so.
    """
    address = invocation.address()
    chosen = write if write is not None else configured(address)
    invocation.stdout_taken = True
    asyncio.run(serve(address.connectable, write=chosen))


async def serve(socket: str, *, write: bool) -> None:
    """Answers one client until its input ends. If no daemon answers, each call returns an error that says so."""
    # Imported here because the SDK imports a web server, and hippoctl must start fast.
    from mcp.server.stdio import stdio_server

    from daemon.mcp.daemon_client import DaemonClient
    from daemon.mcp.server import memory_server

    client = DaemonClient(socket)
    server = memory_server(client, write=write)
    try:
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())
    finally:
        await client.close()


def configured(address: Address) -> bool:
    """Returns `[mcp] write` as the daemon reads it; false if it is not configured."""
    value_in_environment = os.environ.get(CONFIG_VARIABLE)
    if value_in_environment is not None:
        if value_in_environment.strip().lower() not in ("true", "false"):
            raise CommandError(f"${CONFIG_VARIABLE} is {value_in_environment!r}; allowed are true and false.")
        return value_in_environment.strip().lower() == "true"
    value = table(read_config(address.config), "mcp").get("write", False) if address.config is not None else False
    if not isinstance(value, bool):
        raise CommandError(f"[mcp] write in {address.config} is {value!r}; allowed are true and false.")
    return value
