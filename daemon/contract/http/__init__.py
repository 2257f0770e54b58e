"""How HTTP is spoken on the socket: paths and media types, problem documents, what every client does, the same-origin check."""
