"""The MCP server on standard input and output; it ends when its input does."""

import asyncio


def serve(socket: str, *, write: bool) -> None:
    """Answers one client. Whether the daemon is there is found out at each call, not here."""
    asyncio.run(_serve(socket, write))


async def _serve(socket: str, write: bool) -> None:
    # Only here: the SDK comes with a web server, and hippoctl is to start fast.
    from mcp.server.stdio import stdio_server

    from daemon.contract.agents.door import Door
    from daemon.contract.agents.server import memory_server

    door = Door(socket)
    server = memory_server(door, write=write)
    try:
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())
    finally:
        await door.close()
