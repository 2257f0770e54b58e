"""What agents meet over the Model Context Protocol: the same tools and resources, however an agent gets in.

A part of the contract, because both ways in must be the same: standard input and output (`cli.mcp`) and HTTP (`daemon.mcp`).
What a tool does, it does by requests to the socket API, through a `Door`, and by nothing else. The protocol is the official
SDK's; it is imported here only, and nothing else of the contract imports this.
"""
