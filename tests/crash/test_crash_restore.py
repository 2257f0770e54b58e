"""verify, backup and restore with the real programs."""

import gzip
import json

import igraph
import pytest

from tests.e2e.real_hippod import Daemon, hippod

pytestmark = pytest.mark.daemon


def read_graph(daemon, folder):
    """Returns the graph by each way of requesting it; all must give the same bytes."""
    plain = folder / "memory.graphml"
    packed = folder / "memory.graphmlz"
    assert daemon.ctl("export", str(plain)).code == 0
    assert daemon.ctl("export", str(packed)).code == 0
    assert daemon.ctl("export", str(folder / "other"), "--format", "graphml").code == 0
    assert (folder / "other").read_bytes() == plain.read_bytes() == gzip.decompress(packed.read_bytes())
    return igraph.Graph.Read_GraphMLz(str(packed))


def test_backup_of_a_running_daemon_restores_the_memory_of_its_commit(tmp_path):
    with Daemon(tmp_path / "home") as daemon:
        first = daemon.write("first.md", "# Marie Curie\n\nMarie Curie was born in Warsaw.\n")
        daemon.wait()
        expected = daemon.export()
        graph = read_graph(daemon, tmp_path)
        told = [json.loads(line) if isinstance(line, str) else line for line in expected]
        assert sorted(graph.vs["text"]) == sorted(
            line["text"] for line in told if line["kind"] in ("passage", "phrase")
        )
        assert sorted(graph.es["type"]) == sorted(line["type"] for line in told if line["kind"] == "edge")
        assert daemon.ctl_json("verify")["problems"] == []
        made = daemon.ctl_json("backup", str(tmp_path / "backup"))
        assert made["files"] > 0
        again = daemon.ctl("backup", str(tmp_path / "backup"))
        assert again.code == 1
        assert "exists already" in again.err
        then = daemon.status()["commit"]
        (daemon.drive / "first.md").unlink()
        daemon.write("second.md", "# Pierre Curie\n\nPierre Curie was born in Paris.\n")
        daemon.wait()
        past = daemon.ctl_json("query", "--as-of", str(then), "Where was Marie Curie born?")
        assert past["commit"] == then
        assert past["passages"][0]["title"] == "Marie Curie"
        refused = hippod(tmp_path / "home", "--config", str(daemon.config), "--restore", str(tmp_path / "backup"))
        assert refused.code == 3
        assert "pid" in refused.err
        daemon.stop()
        (daemon.drive / "second.md").unlink()
        daemon.write("first.md", "# Marie Curie\n\nMarie Curie was born in Warsaw.\n")
        assert daemon.ctl("restore", str(tmp_path / "backup"), "--config", str(daemon.config)).code == 0
        daemon.start()
        daemon.wait()
        assert daemon.export() == expected
        assert first in daemon.documents()
        assert daemon.ctl_json("verify")["problems"] == []
