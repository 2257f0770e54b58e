"""A reload applies changeable settings, and reports each time which settings need a restart."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from daemon.api.access.client import ClientRule
from daemon.config import ConfigError, load_config
from daemon.runtime.reload import ActiveConfig, serve_reloads

HOME = {"HOME": "/nowhere"}


class Edge:
    """Replaces the schedule and the API, and records its calls."""

    def __init__(self) -> None:
        self.token_files: list[Path | None] = []
        self.clients: tuple[ClientRule, ...] = ()

    def reload(self, _times: object) -> None:
        return

    def use_clients(self, clients: tuple[ClientRule, ...]) -> None:
        self.clients = clients

    def use_token_file(self, path: Path | None) -> None:
        self.token_files.append(path)


@pytest.fixture
def reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`begin(text)` starts with a configuration; `again(text)` writes another and returns the event that its reload logs."""
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr("daemon.runtime.reload.set_level", lambda _level: None)
    monkeypatch.setattr("daemon.runtime.reload.mask", lambda _token: None)
    file, edge = tmp_path / "config.toml", Edge()
    lives: list[ActiveConfig] = []

    def begin(text: str) -> ActiveConfig:
        file.write_text(text)
        lives.append(ActiveConfig(load_config(file, HOME), file))
        return lives[-1]

    def again(text: str) -> Any:
        file.write_text(text)
        with capture_logs() as logged:
            asyncio.run(lives[-1].reload(edge, edge))  # type: ignore[arg-type]
        return logged[-1]

    return SimpleNamespace(begin=begin, again=again, edge=edge, folder=tmp_path)


def test_every_reload_reports_changes_that_still_need_a_restart(reload: Any) -> None:
    live = reload.begin("")
    changed = '[daemon]\nqueue_passages = 7\ninbox_documents = 9\nstop_timeout_s = 5\nlog_level = "debug"\n'
    first, second = reload.again(changed), reload.again(changed)
    assert first["changed"] == ["daemon.log_level", "daemon.stop_timeout_s"]
    assert second["changed"] == []
    for event in (first, second):
        assert event["needs_restart"] == ["daemon.inbox_documents", "daemon.queue_passages"]
    daemon = live.config.daemon
    assert (daemon.stop_timeout_s, daemon.log_level) == (5, "debug")
    assert (daemon.queue_passages, daemon.inbox_documents) == (768, 100_000)
    # After reverting the change there is nothing to report.
    assert reload.again("")["needs_restart"] == []


def test_token_file_added_or_removed_with_tcp_needs_a_restart(reload: Any) -> None:
    for name in ("one", "two"):
        (reload.folder / name).write_text(f"token-{name}\n")
    tcp = '[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "one"\n'
    live = reload.begin(tcp)
    for _ in range(2):
        event = reload.again("")
        assert event["needs_restart"] == ["api.tcp", "api.token_file"]
        assert event["changed"] == []
    assert reload.edge.token_files == []
    # TCP is still present, and so is its changed token.
    event = reload.again(tcp.replace("one", "two"))
    assert (event["changed"], event["needs_restart"]) == (["api.token_file"], [])
    assert reload.edge.token_files == [reload.folder / "two"]
    assert live.config.api.token_file == reload.folder / "two"


def test_reload_works_again_after_a_failed_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []

    class Failing:
        async def reload(self, _schedule: object, _api: object) -> None:
            served.append("reload")
            raise OSError(116, "Stale file handle")

    async def run() -> None:
        requested = asyncio.Event()
        notifier = SimpleNamespace(reloading=lambda: None, ready=lambda status: served.append(status))
        task = asyncio.create_task(serve_reloads(requested, Failing(), None, None, notifier, lambda: "ready"))  # type: ignore[arg-type]
        for _ in range(2):
            requested.set()
            async with asyncio.timeout(60):
                while served[-1:] != ["ready"] or requested.is_set():
                    await asyncio.sleep(0.01)
            served.append("seen")
        task.cancel()

    with capture_logs() as logged:
        asyncio.run(run())
    assert served == ["reload", "ready", "seen"] * 2
    assert [event["event"] for event in logged] == ["reload_refused"] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become somebody else for a moment")
def test_unreadable_configuration_folder_is_a_config_error(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    (shut / "hippod.toml").write_text("")
    tmp_path.chmod(0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match="cannot be accessed"):
            load_config(shut / "hippod.toml", HOME)
    finally:
        os.seteuid(0)
