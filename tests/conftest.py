"""The order of the suite's tests, the programs that a test may start, and the tests that may run again.

A process of the suite runs whole modules, so the longest module must not begin last.
"""

import gc
import signal
from collections import Counter
from collections.abc import Generator

import hypothesis
import pytest

import daemon  # noqa: F401 - before numpy, which then computes in one thread, as in hippod
from tests.process_guard import MARKERS, processes_allowed
from tests.temporary_folder import use_memory

use_memory()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background makes it ignore Ctrl-C; programs that a test starts and interrupts would
    # inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time: on a busy machine, any example can take longer than the default 200 ms.
hypothesis.settings.register_profile("hippod", deadline=None)
hypothesis.settings.load_profile("hippod")

LONGEST = (
    "consumers/kafka/test_feed.py",
    "store/maintenance/test_retention.py",
    "consumers/kafka/test_faults.py",
    "store/test_histories.py",
    "e2e/test_crash.py",
    "memory/retrieval/test_reference.py",
    "memory/llm/failures/test_server_failures.py",
    "store/checkpoint/test_restore_index.py",
    "store/backup/test_local.py",
    "systemd/test_slim.py",
    "e2e/test_start_and_reload.py",
    "consumers/kafka/test_worker.py",
    "daemon/page/test_browser.py",
    "store/scope/test_scoped_memory.py",
    "memory/answering/working_memory/test_model_failures.py",
    "store/index/synonyms/test_crowding.py",
    "memory/llm/test_client.py",
    "e2e/test_without_extras.py",
    "e2e/security/test_files.py",
    "daemon/api/conformance/test_conformance.py",
    "e2e/security/test_past_rights.py",
    "consumers/parsing/programs/test_conservation_of_converted_files.py",
    "e2e/security/test_fairness.py",
    "store/log/test_interrupted_upgrade.py",
    "e2e/test_scopes.py",
    "store/log/test_changes.py",
    "systemd/test_watchdog.py",
    "e2e/drives/test_pages.py",
    "e2e/test_documents.py",
    "daemon/api/test_tcp.py",
    "e2e/security/test_extraction_ownership.py",
    "daemon/parser_pool/test_pool.py",
    "memory/encoder/test_minilm.py",
    "store/backup/test_remote.py",
    "store/reencode/test_switch_encoder.py",
    "fuzz/test_fuzz.py",
    "daemon/doctor/test_doctor.py",
)
"""Modules that take longest, in the order in which they begin: modules that wait alternate with modules that compute."""

RERUNS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help="A skipped test fails the run, which names what is missing."
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if (
        session.config.getoption("no_skips")
        and skip_reasons(session.config)
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("no_skips"):
        for reason, number in skip_reasons(config).items():
            terminalreporter.write_line(f"FAILED: {number} tests were skipped, and may not be: {reason}", red=True)


def skip_reasons(config: pytest.Config) -> Counter[str]:
    """Returns the number of skipped tests by reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    return Counter(str(each.longrepr[2]).removeprefix("Skipped: ") for each in skipped)


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_finish() -> None:
    """Excludes the seven thousand tests and their modules from garbage collections, each of which would visit them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with processes_allowed(frozenset(MARKERS) & {mark.name for mark in item.iter_markers()}):
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if again := item.get_closest_marker("may_rerun"):
            [_reason] = again.args
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, module in enumerate(LONGEST) if path.endswith(f"tests/{module}")), len(LONGEST))

    items.sort(key=place)
