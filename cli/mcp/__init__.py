"""`hippoctl mcp`: an MCP server for agents that start their servers themselves."""
