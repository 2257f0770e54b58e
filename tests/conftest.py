"""In what order the suite runs: some processes take whole modules, and the longest must not begin last."""

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background has it ignore Ctrl-C, and with it every program that a test starts and
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "store/test_order_independence.py",
    "store/test_histories.py",
    "consumers/kafka/test_faults.py",
    "consumers/kafka/test_feed.py",
    "memory/llm/test_client.py",
    "e2e/test_start_and_reload.py",
    "crash/test_crash_store.py",
    "memory/encoder/test_minilm.py",
    "e2e/test_commands.py",
    "e2e/test_followed_folder.py",
    "systemd/test_watchdog.py",
    "fuzz/test_fuzz.py",
    "daemon/api/conformance/test_conformance.py",
)
"""Modules that take twenty seconds and more, in the order in which they begin."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, module in enumerate(LONGEST) if path.endswith(f"tests/{module}")), len(LONGEST))

    items.sort(key=place)
