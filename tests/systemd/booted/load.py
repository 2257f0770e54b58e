"""Queries at a steady rate on hippod's socket, whatever becomes of those before: `load.py SOCKET RATE SECONDS`, run inside.

Prints one JSON object: how often each outcome came (a status, "reset", "refused", …), refusals that did not say when to try
again, the longest wait for an answer in seconds, and the longest time in which no query was answered with 200.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from pathlib import Path

PATIENCE_S = 120.0
BODY = b'{"query": "Who wrote notes about the Analytical Engine?", "k": 3}'
REQUEST = (
    b"POST /v1/query HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


async def query(socket: str) -> tuple[str, bool]:
    """The outcome, and whether a refusal says when to try again."""
    try:
        reader, writer = await asyncio.open_unix_connection(socket)
    except OSError as error:
        return type(error).__name__, True
    try:
        writer.write(REQUEST)
        answer = await reader.read(-1)
    except OSError:
        return "reset", True
    finally:
        writer.close()
    if not answer:
        return "closed without an answer", True
    return answer.split()[1].decode(), b"retry-after:" in answer.lower()


async def main(socket: str, rate: float, seconds: float) -> None:
    outcomes: Counter[str] = Counter()
    silent_refusals, longest, answered = 0, 0.0, [time.monotonic()]

    async def one() -> None:
        nonlocal silent_refusals, longest
        began = time.monotonic()
        try:
            outcome, says_when = await asyncio.wait_for(query(socket), PATIENCE_S)
        except asyncio.TimeoutError:  # noqa: UP041 - another class before Python 3.11
            outcome, says_when = "no answer in time", True
        outcomes[outcome] += 1
        silent_refusals += outcome == "503" and not says_when
        if outcome == "200":
            longest = max(longest, time.monotonic() - began)
            answered.append(time.monotonic())

    began, tasks = time.monotonic(), []
    stop = Path("/run/load-stop")
    while time.monotonic() - began < seconds and not stop.exists():
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(max(began + len(tasks) / rate - time.monotonic(), 0))
    await asyncio.gather(*tasks)
    gap = max((later - before for before, later in itertools.pairwise(answered)), default=0.0)
    summary = {"outcomes": outcomes, "silent_refusals": silent_refusals, "longest_s": longest, "gap_s": gap}
    print(json.dumps(summary))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
