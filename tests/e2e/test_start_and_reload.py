"""hippod as a process: refused starts, exit codes, the log, and the effect of a reload."""

import json
import shutil
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest

from store.lance.import_shim import lancedb
from store.log.mark import Mark, read_mark, write_mark
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import hippod, until, write_config

pytestmark = pytest.mark.daemon

CLEAN, BAD_CONFIG, NO_STORE = 0, 2, 3


def sections(home: Path, **changed: Any) -> dict[str, Any]:
    """Returns a configuration that would start."""
    (home / "drive").mkdir(exist_ok=True)
    return {
        "store": {"path": str(home / "store")},
        "api": {"socket": str(home / "s")},
        "encoder": {"backend": "hash"},
        "folder": [{"path": "drive"}],
    } | changed


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a key that nobody knows": ({"store": {"pth": "x"}}, ["store.pth", "path"]),
    "a section that nobody knows": ({"stor": {"path": "x"}}, ["stor", "store"]),
    "a wrong type": ({"graph": {"synonym_max": "many"}}, ["graph.synonym_max", "many", "number"]),
    "a value out of range": ({"retrieval": {"damping": 1.5}}, ["retrieval.damping", "1.5", "at most 0.99"]),
    "vectors without a dimension": (
        {"encoder": {"backend": "hash", "model": "0"}},
        ["encoder.model", '"0"', "from 1 to 8192"],
    ),
    "vectors that no machine has room for": (
        {"encoder": {"backend": "hash", "model": "99999999"}},
        ["encoder.model", '"99999999"', "from 1 to 8192"],
    ),
    "a store that is a file": ({"store": {"path": "bad.toml"}}, ["store.path", "bad.toml is a file", "a directory"]),
    "a mode that there is not": ({"retrieval": {"mode": "magic"}}, ["retrieval.mode", "magic", "hipporag2", "bm25"]),
    "a folder that is missing": ({"folder": [{"path": "nowhere"}]}, ["folder[0].path", "nowhere", "create it"]),
    "TCP without a token": ({"api": {"tcp": "127.0.0.1:7411"}}, ["api", "token_file"]),
    "a token file that is missing": (
        {"api": {"tcp": "127.0.0.1:7411", "token_file": "no-token"}},
        ["api.token_file", "no-token"],
    ),
    "a model's key that is not there": (
        {"llm": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "NO_SUCH_KEY"}},
        ["llm.api_key_env", "NO_SUCH_KEY"],
    ),
    "topics that are missing": ({"kafka": [{"brokers": ["localhost:9092"]}]}, ["kafka[0].topics"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_configuration_is_refused_with_file_key_and_allowed_values(name: str, tmp_path: Path) -> None:
    changed, said = REFUSED[name]
    config = write_config(tmp_path / "bad.toml", sections(tmp_path, **changed))
    for arguments in (["--config", str(config)], ["--config", str(config), "--check"]):
        ran = hippod(tmp_path, *arguments)
        assert (ran.code, ran.out) == (BAD_CONFIG, "")
        assert "bad.toml" in ran.err
        assert all(word in ran.err for word in said), ran.err
        assert "Traceback" not in ran.err
        assert len(ran.err.splitlines()) < 5
    assert not (tmp_path / "store").exists()


def test_a_token_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-of-the-test")
    token.chmod(0)
    api = {"socket": str(tmp_path / "s"), "tcp": "127.0.0.1:7411", "token_file": "token"}
    config = write_config(tmp_path / "hippod.toml", sections(tmp_path, api=api))
    ran = hippod(tmp_path, "--config", str(config), "--check")
    assert ran.code == BAD_CONFIG
    assert "api.token_file" in ran.err
    assert "secret-of-the-test" not in ran.err


def test_broken_toml_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[store\npath = 1")
    for name in ("broken.toml", "absent.toml"):
        ran = hippod(tmp_path, "--config", str(tmp_path / name))
        assert ran.code == BAD_CONFIG
        assert name in ran.err


def test_check_prints_the_effective_configuration_with_environment_overrides(tmp_path: Path) -> None:
    config = write_config(tmp_path / "hippod.toml", sections(tmp_path))
    ran = hippod(tmp_path, "--config", str(config), "--check", env={"HIPPOD_RETRIEVAL__TOP_TRIPLES": "9"})
    assert ran.code == CLEAN
    printed = tomllib.loads(ran.out)
    assert printed["store"]["path"] == str(tmp_path / "store")
    assert printed["folder"][0]["path"] == str(tmp_path / "drive")
    assert (printed["retrieval"]["top_triples"], printed["retrieval"]["seed_phrases"]) == (9, 5)
    assert not (tmp_path / "store").exists()


def test_configuration_is_found_by_variable_and_in_the_users_directory(tmp_path: Path) -> None:
    write_config(tmp_path / "one.toml", sections(tmp_path, graph={"synonym_max": 11}))
    home = tmp_path / "config" / "hippod"
    home.mkdir(parents=True)
    write_config(home / "config.toml", sections(home, graph={"synonym_max": 22}))
    found = hippod(tmp_path, "--check", env={"XDG_CONFIG_HOME": str(tmp_path / "config")})
    assert tomllib.loads(found.out)["graph"]["synonym_max"] == 22
    named = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HIPPOD_CONFIG": str(tmp_path / "one.toml")}
    assert tomllib.loads(hippod(tmp_path, "--check", env=named).out)["graph"]["synonym_max"] == 11


def test_version_and_help_options_exit_with_0(tmp_path: Path) -> None:
    assert hippod(tmp_path, "--version").out.startswith("hippod")
    usage = hippod(tmp_path, "--help")
    assert usage.code == CLEAN
    assert all(word in usage.out for word in ("--config", "--check", "SIGTERM", "Exit codes"))
    assert hippod(tmp_path, "--no-such-option").code == 2


def test_a_second_hippod_on_one_store_exits_and_names_the_first(hippo: Hippo) -> None:
    first = hippo().start()
    assert first.process is not None
    second = dict(first.sections, api={"socket": str(first.socket) + "2"})
    config = write_config(first.home / "second.toml", second)
    ran = hippod(first.home, "--config", str(config))
    assert ran.code == NO_STORE
    assert str(first.process.pid) in ran.err
    assert str(first.store) in ran.err
    assert first.status()["state"] == "ready"


def test_a_second_hippod_on_one_socket_leaves_the_first_alone(hippo: Hippo) -> None:
    first = hippo().start()
    config = write_config(first.home / "second.toml", dict(first.sections, store={"path": str(first.home / "other")}))
    ran = hippod(first.home, "--config", str(config))
    assert ran.code == 1
    assert str(first.socket) in ran.err
    assert first.status()["state"] == "ready"


def test_start_reads_the_tables_only_after_an_unclean_stop(hippo: Hippo) -> None:
    daemon = hippo(schedule={"snapshot": "off", "rescan": "off"})
    daemon.write("a.txt", "Hjalmar Quist owns the brig.")
    daemon.start().wait()
    before = daemon.export()
    daemon.restart()
    assert len(daemon.events("checkpoint_written")) == 1
    daemon.write("b.txt", "The brig sails to Tromso.")
    daemon.wait()
    after = daemon.export()
    daemon.kill()
    daemon.start()
    assert daemon.export() == after != before
    for checkpoint in daemon.store.glob("snapshot-*"):
        shutil.rmtree(checkpoint)
    daemon.kill()
    daemon.start()
    assert daemon.export() == after
    started = [event["started_from"].split(";")[0].split(" of ")[0] for event in daemon.events("store_opened")]
    assert started == ["rebuilt from the tables", "checkpoint", "checkpoint", "rebuilt from the tables"]


def test_changed_settings_of_the_index_are_applied_at_the_next_start(hippo: Hippo) -> None:
    daemon = hippo()
    daemon.write(
        "a.txt", "\n\n".join(f"Brig {n} sails to harbour {n} with cargo {n * n}, and returns." for n in range(20))
    )
    daemon.start().wait()
    assert daemon.status()["passages"] == 1
    daemon.sections |= {"passages": {"max_tokens": 40, "min_tokens": 16}, "graph": {"synonym_threshold": 0.5}}
    write_config(daemon.config, daemon.sections)
    daemon.restart().wait()
    assert daemon.status()["passages"] > 3
    assert daemon.ctl("verify").code == CLEAN
    daemon.restart().wait()
    [cut], [settled] = daemon.events("passages_cut_anew"), daemon.events("synonyms_settling")
    assert (cut["files"], cut["max_tokens"], settled["synonym_threshold"]) == (1, 40, 0.5)


def test_a_store_of_a_newer_format_is_refused(hippo: Hippo) -> None:
    daemon = hippo().start()
    daemon.stop()
    table = lancedb.connect(daemon.store).open_table("commits")
    facts = json.loads(table.to_arrow().sort_by("seq").to_pylist()[0]["facts"])
    table.update(where="facts LIKE '%format%'", values={"facts": json.dumps(facts | {"format": 99})})
    mark = read_mark(daemon.store)
    assert mark is not None
    write_mark(daemon.store, Mark(mark.commit, {**mark.versions, "commits": table.version}))
    ran = hippod(daemon.home, "--config", str(daemon.config))
    assert ran.code == NO_STORE
    assert "99" in ran.err
    assert "Traceback" not in ran.err


def test_a_socket_that_a_crash_left_behind_does_not_stop_the_next_start(hippo: Hippo) -> None:
    daemon = hippo().start()
    daemon.kill()
    assert daemon.socket.exists()
    assert daemon.start().status()["state"] == "ready"


def test_both_stop_signals_end_it_with_0_and_the_log_is_json_lines(hippo: Hippo) -> None:
    daemon = hippo().start()
    daemon.signal(signal.SIGINT)
    assert daemon.stop() == CLEAN
    lines = daemon.log_text().splitlines()
    assert lines
    assert all(line.startswith("{") for line in lines)
    for name in ("listening", "store_opened", "ready", "stopping", "stopped"):
        [event] = daemon.events(name)
        assert {"time", "level", "event", "logger"} <= set(event)


def test_the_text_of_documents_is_not_logged(hippo: Hippo) -> None:
    daemon = hippo()
    daemon.write("secret.txt", "The combination of the safe is Xylocarp.")
    daemon.write("broken.json", '{"text": "Xylocarp", ')
    daemon.start().wait()
    daemon.query("Xylocarp")
    daemon.stop()
    assert "xylocarp" not in daemon.log_text().lower()


def test_reload_applies_retrieval_and_log_level_and_refuses_invalid_settings(hippo: Hippo) -> None:
    daemon = hippo(retrieval={"top_triples": 2}, daemon={"log_level": "warning"})
    names = ("Anders", "Berit", "Claes", "Disa", "Einar", "Frida")
    for name in names:
        daemon.write(f"{name}.txt", f"{name} Lindqvist founded the {name} Theatre.")
    daemon.start().wait()

    def linked() -> int:
        answer = daemon.ask("POST", "/v1/query", json={"query": "Who founded the theatre?"})
        return len(answer["triples"])

    assert linked() == 2
    assert not daemon.events("committed")
    changed = daemon.sections | {
        "retrieval": {"top_triples": 4},
        "daemon": {"log_level": "info"},
        "graph": {"synonym_max": 7},
    }
    write_config(daemon.config, changed)
    daemon.signal(signal.SIGHUP)
    [event] = until(lambda: daemon.events("reloaded"), "the reload is logged")
    assert event["changed"] == ["daemon.log_level", "retrieval.top_triples"]
    assert event["needs_restart"] == ["graph.synonym_max"]
    assert linked() == 4
    daemon.write("late.txt", "Gustava Lindqvist closed the theatre.")
    until(lambda: daemon.events("committed"), "more is logged than before")

    daemon.config.write_text("[retrieval]\ntop_triples = 'many'\n")
    daemon.signal(signal.SIGHUP)
    [refused] = until(lambda: daemon.events("reload_refused"), "the refusal is logged")
    assert "retrieval.top_triples" in refused["error"]
    assert linked() == 4
    assert daemon.stop() == CLEAN
