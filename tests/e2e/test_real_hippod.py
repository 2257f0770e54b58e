"""The log events that tests look for are events that hippod logs."""

from pathlib import Path

import pytest

from tests.e2e.real_hippod import Daemon, event_names

pytestmark = pytest.mark.daemon


def test_an_event_that_hippod_does_not_log_is_not_asked_for(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    try:
        assert daemon.events("request_failed") == []
        daemon.log.write_text('{"event": "request_failed"}\n')
        assert daemon.events("request_failed") == [{"event": "request_failed"}]
        with pytest.raises(AssertionError, match="'request failed'"):
            daemon.events("request failed")
    finally:
        daemon.close()


def test_the_table_of_events_is_read_whole() -> None:
    assert {"backfill_failed", "request_failed", "request_refused"} <= event_names()
    assert not {"uri", "event"} & event_names()
