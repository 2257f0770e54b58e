"""A document counts as committed since its displayed commit time."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from daemon.contract.documents import DocumentEntry
from daemon.services.documents.document_references import document_entry
from daemon.services.documents.document_service import committed_since
from store.types import Document


@given(committed_at=st.floats(0, 4e9))
def test_committed_since_includes_a_document_at_its_displayed_time(committed_at: float) -> None:
    document = Document("test:a", "test", committed_at=committed_at)
    shown = DocumentEntry.model_validate_json(document_entry(document).model_dump_json()).committed_at
    assert isinstance(shown, datetime)
    assert committed_since(document, shown)
    assert not committed_since(document, shown + timedelta(microseconds=1))
