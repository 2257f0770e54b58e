"""In what order the suite runs: some processes take whole modules, and the longest must not begin last."""

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background has it ignore Ctrl-C, and with it every program that a test starts and
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "store/test_order_independence.py",
    "kafka/test_kafka_faults.py",
    "kafka/test_kafka_feed.py",
    "models/test_models_asking.py",
    "e2e/test_e2e_process.py",
    "crash/test_crash_store.py",
    "memory/test_encoder_minilm.py",
    "e2e/test_e2e_commands.py",
    "e2e/test_e2e_following.py",
    "service/test_service_stuck.py",
    "fuzz/test_fuzz.py",
    "api/test_api_conformance.py",
)
"""Modules that take twenty seconds and more, in the order in which they begin."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, module in enumerate(LONGEST) if path.endswith(f"tests/{module}")), len(LONGEST))

    items.sort(key=place)
