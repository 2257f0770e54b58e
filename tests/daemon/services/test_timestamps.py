"""Files and messages have times of any year; no time may prevent a list from being shown."""

from datetime import UTC, datetime

import pytest

from cli.terminal_text import local_time
from daemon.contract.base import utc_time
from daemon.contract.documents import DocumentEntry
from daemon.services.documents.document_references import document_entry
from store.types import Document


@pytest.mark.parametrize("seconds", [1.7e15, -1e15, 1e300, float("inf"), float("nan"), 253402300800.0])
def test_time_outside_the_calendar_is_omitted(seconds: float) -> None:
    listed = document_entry(Document("file:///a", "test", modified_at=seconds))
    assert listed.modified_at is None
    assert DocumentEntry.model_validate_json(listed.model_dump_json()) == listed


def test_times_in_years_1_and_9999_can_be_shown_in_any_time_zone() -> None:
    for year in (1, 9999):
        assert local_time(datetime(year, 1, 1, tzinfo=UTC)).endswith(":00")
        assert local_time(datetime(year, 12, 31, 23, 59, tzinfo=UTC)).endswith(":00")
    assert utc_time(0.0) == datetime(1970, 1, 1, tzinfo=UTC)
