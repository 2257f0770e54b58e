"""The MCP server over streamable HTTP, on the daemon's TCP address."""

from typing import TYPE_CHECKING

from daemon.config import Config

if TYPE_CHECKING:
    from daemon.mcp.mount import Mount

PATH = "/mcp"


async def mounted(config: Config, socket: str) -> dict[str, "Mount"]:
    """What is served below which path on TCP: nothing where there is no TCP. `socket`: where the daemon's own socket is."""
    if config.api.tcp is None:
        return {}
    from daemon.mcp.mount import Mount  # the SDK is loaded, and its 30 MB taken, where it is of use

    mount = Mount(socket, write=config.mcp.write)
    await mount.start()
    return {PATH: mount}
