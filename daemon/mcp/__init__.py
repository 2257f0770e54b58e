"""The MCP server over streamable HTTP, on the daemon's TCP address."""
