"""A folder that is followed from further up keeps all that is known of it, failures and their retries among it."""

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import until, write_config

pytestmark = pytest.mark.daemon


def test_a_failed_document_is_retried_after_its_folder_became_a_part_of_another(hippo: Hippo) -> None:
    daemon = hippo()
    failed = daemon.write("below/report.pdf", "Jadwiga Holt wrote this report as plain text.")
    write_config(daemon.config, daemon.sections | {"folder": [{"path": str(daemon.drive / "below")}]})
    daemon.start().wait()
    assert list(daemon.documents(state="failed")) == [failed]
    daemon.stop()
    write_config(daemon.config, daemon.sections)
    daemon.start().wait()
    assert daemon.ctl_json("retry")["requeued"] == 1
    until(lambda: daemon.documents()[failed]["attempts"] == 2, "it is tried again")
    assert list(daemon.documents(state="failed")) == [failed]
