"""The log events that tests look for are events that hippod logs."""

from pathlib import Path

import pytest

from tests.e2e.real_hippod import Daemon, event_names

pytestmark = pytest.mark.daemon


def test_helper_refuses_names_of_unknown_log_events(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    try:
        assert daemon.events("request_failed") == []
        daemon.log.write_text('{"event": "request_failed"}\n')
        assert daemon.events("request_failed") == [{"event": "request_failed"}]
        with pytest.raises(AssertionError, match="'request failed'"):
            daemon.events("request failed")
    finally:
        daemon.close()


def test_log_event_table_is_parsed_completely() -> None:
    assert {"backfill_failed", "request_failed", "request_refused"} <= event_names()
    assert not {"uri", "event"} & event_names()
