"""The commands by name, with the module and a summary of each command. A module is loaded when its command runs.

The summary begins the command's help.
"""

COMMANDS = {
    "add": ("add", "Add documents: files of any known format, or JSON lines on standard input (-)."),
    "ask": ("query", "Answer TEXT from the memory, with citations."),
    "backfill": (
        "background",
        "Extract triples from all waiting passages with vLLM in the daemon, for the first load of a large drive.",
    ),
    "backup": ("backup", "Back up the memory as of the last commit to URL: a new directory, or s3://bucket/prefix."),
    "completion": ("completion", "Print the completion script for SHELL (by default that of $SHELL)."),
    "confirm": (
        "documents",
        "Remove the documents that hippod keeps for the folder SOURCE until you confirm their removal.",
    ),
    "costs": ("costs", "Show the model calls, their tokens and their price, by UTC day, source and purpose."),
    "doctor": ("doctor", "Check this machine, the configuration, the socket, and the state of the daemon."),
    "eval": (
        "eval",
        "Measure recall (and, with --answers, exact match and F1) on files of QUESTIONS with known answers.",
    ),
    "export": (
        "export",
        "Export the memory as JSON lines, or its graph as GraphML, to FILE or to standard output (-).",
    ),
    "graph": (
        "graph",
        "Write the graph around the question TEXT to files: passages, their phrases, and the edges between them.",
    ),
    "import": (
        "add",
        "Import records (a Parquet file, a folder of them, or an s3:// prefix), or a HippoRAG OpenIE results file.",
    ),
    "ls": ("documents", "List documents by URI with their state, and the reason if a document failed or was skipped."),
    "mcp": ("mcp", "Serve the memory to an agent over the Model Context Protocol, on standard input and output."),
    "query": ("query", "Find the passages that answer TEXT, and show the triples that led to them."),
    "reencode": ("background", "Encode the whole memory anew with the configured encoder, in the background."),
    "reextract": (
        "background",
        "Extract triples again, with the configured extractor, from passages that another extractor has processed.",
    ),
    "restore": (
        "backup",
        "Restore the backup at URL. hippod must not be running; the previous store stays in the store's folder.",
    ),
    "retry": ("documents", "Try failed documents again now: those named, or all."),
    "rm": ("documents", "Remove documents, with all passages, phrases and triples that only these documents contain."),
    "scopes": (
        "scopes",
        "List the sources, labels and folders that a question can be limited to, with their document counts.",
    ),
    "sessions": (
        "sessions",
        "List the sessions of `ask --deep --session NAME` with their questions and points; `rm` removes sessions.",
    ),
    "show": (
        "documents",
        "Show a document, passage, phrase or triple with its connections, or draw the steps of an answer.",
    ),
    "status": ("status", "Show the daemon's state, the size of the memory, and each source with its lag."),
    "ui": ("ui", "Open hippod's page in a browser."),
    "verify": ("backup", "Derive the memory again from its tables and compare; exits with 1 if there is a difference."),
    "wait": ("status", "Wait until everything that the sources contain now is committed or failed."),
    "watch": ("status", "Print events, one per line, until hippod stops or you interrupt the command."),
}
"""(module in `cli.commands`, summary) by command name."""
COMMON_WORDS = {
    "search": "query", "find": "query", "list": "ls", "documents": "ls", "files": "ls", "get": "show", "cat": "show",
    "remove": "rm", "delete": "rm", "forget": "rm", "health": "doctor", "check": "doctor", "info": "status",
    "stats": "status", "events": "watch", "log": "watch", "logs": "watch", "save": "export", "dump": "export",
    "reindex": "reencode", "reembed": "reencode", "embed": "reencode", "page": "ui", "web": "ui", "upload": "add", "put": "add",
    "spent": "costs", "money": "costs", "tokens": "costs", "usage": "costs",
}  # fmt: skip
"""Commands by the words that other programs use for them; suggested if no command has a similar spelling."""
