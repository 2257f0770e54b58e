"""Exits with 0 if `GET /healthz` on hippod's socket says ready, else 1. The container's HEALTHCHECK.

`hippoctl status` would say more, but costs ten times as much, every half minute.
"""

import socket
import sys

SOCKET = "/var/lib/hippod/hippod.sock"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\n\r\n"


def main() -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        try:
            connection.connect(sys.argv[1] if len(sys.argv) > 1 else SOCKET)
            connection.sendall(REQUEST)
            answer = connection.recv(64)
        except OSError as error:
            print(f"hippod does not answer: {error}")
            return 1
    status = answer.split(b"\r\n", 1)[0].decode("ascii", "replace")
    print(status)
    return 0 if status.startswith("HTTP/1.1 200") else 1


if __name__ == "__main__":
    sys.exit(main())
