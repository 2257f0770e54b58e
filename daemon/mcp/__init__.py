"""The memory as an MCP server: the same tools and resources, however an agent gets in.

Standard input and output (`cli.commands.mcp`) and HTTP (`daemon.mcp.http`) share these files. A tool works by requests to the
socket API, through a `DaemonClient`, and by nothing else. The official SDK speaks the protocol.
"""
