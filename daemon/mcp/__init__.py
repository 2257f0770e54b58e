"""The memory as an MCP server, with the same tools and resources over every transport.

Standard input and output (`cli.commands.mcp`) and HTTP (`daemon.mcp.server`) share these modules. Tools only send requests to
the HTTP API, through a `DaemonClient`. The official SDK implements the protocol.
"""
