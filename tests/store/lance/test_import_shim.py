"""The omitted parts of LanceDB raise an error that says so."""

import subprocess
import sys

import pytest

from store.lance.import_shim import CLIENT, lancedb


@pytest.mark.process
def test_catalogue_clients_are_not_imported_and_raise_not_implemented() -> None:
    """Loading them would take a third of every start."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import daemon.app.lifecycle, sys; print([m for m in sys.modules if m.endswith('api_client')])",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert CLIENT in told, "the package is loaded no more at all: nothing need be spared"
    spared = sys.modules[f"{CLIENT}.api.table_api"]
    with pytest.raises(NotImplementedError, match="this machine"):
        spared.TableApi()


def test_lancedb_with_the_shim_creates_and_searches_a_table(tmp_path) -> None:
    table = lancedb.connect(str(tmp_path)).create_table("words", [{"word": "oak", "vector": [1.0, 0.0]}])
    assert table.search().where("word = 'oak'").to_list()[0]["word"] == "oak"
