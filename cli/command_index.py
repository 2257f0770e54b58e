"""The commands by name: where each is and what it does, in a sentence. A command's own file is loaded when it is called.

The sentence is the beginning of the command's help, as a test holds.
"""

COMMANDS = {
    "add": ("add", "add", "Add documents: files of any known format, or JSON lines on standard input (-)."),
    "ask": ("query", "ask", "Answer TEXT from the memory, with citations."),
    "backfill": (
        "maintenance.reextract",
        "backfill",
        "Read everything that waits for the extractor with vLLM, inside the daemon: for the first load of a large drive.",
    ),
    "backup": (
        "maintenance.backup",
        "backup",
        "Write the memory as of the last commit to URL: a new directory, or s3://bucket/prefix.",
    ),
    "completion": (
        "completion",
        "completion",
        "Print the completion script for SHELL (by default that of $SHELL).",
    ),
    "confirm": ("maintenance.confirm", "confirm", "Forget the documents that a folder did not find any more."),
    "doctor": (
        "doctor",
        "doctor",
        "Check this machine, the configuration, the socket, and what the daemon says of itself.",
    ),
    "eval": (
        "eval",
        "evaluate",
        "Measure recall, and with --answers exact match and F1, with a file of QUESTIONS whose answers are known.",
    ),
    "export": (
        "export",
        "export",
        "Write the memory as JSON lines to FILE, or to standard output (-); or its graph, as GraphML.",
    ),
    "graph": (
        "graph",
        "graph",
        "Write the graph around the question TEXT to files: its passages, the phrases they hold, and what joins them.",
    ),
    "import": (
        "add",
        "import_",
        "Take in files of records (Parquet), one or all of a folder or an s3:// prefix; or a HippoRAG OpenIE results file.",
    ),
    "ls": (
        "documents",
        "list_documents",
        "List documents with their state, in order of URI; of failed and skipped ones, why.",
    ),
    "mcp": (
        "mcp",
        "mcp",
        "Serve the memory to an agent over the Model Context Protocol, on standard input and output.",
    ),
    "query": ("query", "query", "Find the passages that answer TEXT, and show the triples that led there."),
    "reextract": (
        "maintenance.reextract",
        "reextract",
        "Have the configured extractor read every passage again that the rules, another model or another prompt has read.",
    ),
    "restore": (
        "maintenance.backup",
        "restore",
        "Put the backup at URL in the place of the store. hippod must not be running; what was there is kept beside it.",
    ),
    "retry": ("documents", "retry", "Try failed documents again now: those named, or all."),
    "rm": ("documents", "rm", "Remove documents, with every passage, phrase and triple that only they hold."),
    "scopes": (
        "scopes",
        "scopes",
        "List sources, labels and folders, with how many documents each holds: what a question can be limited to.",
    ),
    "sessions": (
        "sessions",
        "sessions",
        "List the sessions of `ask --deep --session NAME`, with their questions and points; remove some with `rm`.",
    ),
    "show": (
        "documents",
        "show",
        "Show a document, passage, phrase or triple with what it is connected to; or draw the steps of an answer.",
    ),
    "status": ("status", "status", "Show the daemon's state, what the memory holds, and each source with its lag."),
    "ui": ("ui", "ui", "Open the page that shows the memory grow."),
    "verify": (
        "maintenance.backup",
        "verify",
        "Derive everything once more from the tables and compare; exits with 1 where something differs.",
    ),
    "wait": ("status", "wait", "Wait until all that the sources hold now is committed or failed."),
    "watch": ("status", "watch", "Print what happens, one event a line, until hippod stops or you interrupt it."),
}
"""By name: the file below `cli.commands`, the function in it, and the sentence."""
COMMON_WORDS = {
    "search": "query", "find": "query", "list": "ls", "documents": "ls", "files": "ls", "get": "show", "cat": "show",
    "remove": "rm", "delete": "rm", "forget": "rm", "health": "doctor", "check": "doctor", "info": "status",
    "stats": "status", "events": "watch", "log": "watch", "logs": "watch", "save": "export", "dump": "export",
    "reindex": "reextract", "page": "ui", "web": "ui", "upload": "add", "put": "add",
}  # fmt: skip
"""What other programs call what a command here does: suggested where no spelling is near."""
HELP = (
    "Ask and feed a running hippod, a long-term memory for language models.",
    "Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 not configured for it, 5 timed out.",
)
OPTIONS = {
    "--socket PATH": "hippod's socket. Default: $HIPPOD_SOCKET, then the configured one.",
    "--json": "Print exactly one JSON document on stdout.",
    "--version": "Show the version.",
    "-h, --help": "Show this message and exit.",
}
"""What `hippoctl --help` says before the commands."""
