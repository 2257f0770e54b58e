"""Another `[encoder]`: hippod keeps the old vectors until `hippoctl reencode` has replaced them, through kills and restores."""

import shutil
import time
from random import Random

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, hippod, until

pytestmark = pytest.mark.daemon

OLD, NEW = "256", "64"
"""Dimensions of the hash encoder."""
KILLS = 3
NAMES = ("Odile Brandt", "Sabine Rell", "Emil Strand", "Ada Quill", "Jonas Heron", "Mira Otter", "Ines Lantern")


def write_drive(daemon: Daemon, files: int) -> None:
    for file in range(files):
        person, other = NAMES[file % len(NAMES)], NAMES[(3 * file + 1) % len(NAMES)]
        daemon.write(f"{file}.md", f"# {person}\n\n{person} built the gauge {file} in Aldersund for {other}.\n")


def set_encoder(daemon: Daemon, model: str | None) -> None:
    """Sets the dimension of the hash encoder; None removes the section."""
    lines, kept, inside = daemon.config.read_text().splitlines(), [], False
    for line in lines:
        inside = line == "[encoder]" if line.startswith("[") else inside
        if not inside:
            kept.append(line)
    section = [] if model is None else ["[encoder]", 'backend = "hash"', f'model = "{model}"']
    daemon.config.write_text("\n".join([*kept, *section]) + "\n")


def reencoded(daemon: Daemon) -> bool:
    return "unapplied" not in daemon.status()


def test_reencoding_survives_kills_and_restores_and_loses_nothing(hippo: Hippo) -> None:
    daemon = hippo()
    set_encoder(daemon, OLD)
    write_drive(daemon, 40)
    daemon.start().wait()
    before, last = daemon.export(), daemon.status()["commit"]
    daemon.ctl_json("backup", daemon.home / "backup")
    assert daemon.stop() == 0

    # Another encoder is configured: the old one is in use, and every report names the command.
    set_encoder(daemon, NEW)
    daemon.start().wait()
    [difference] = daemon.status()["unapplied"]
    assert difference["command"] == "hippoctl reencode"
    assert (OLD in difference["content"], NEW in difference["configured"]) == (True, True)
    assert "hippoctl reencode" in daemon.ctl("status").out
    assert "hippoctl reencode" in daemon.ctl("doctor").out
    assert daemon.export() == before and daemon.query("gauge 7 Aldersund")

    # Killed at any moment, it continues by itself; documents that arrive meanwhile are in the memory afterwards.
    random = Random(51)
    daemon.ctl_json("reencode", "--no-wait")
    for kill in range(KILLS):
        daemon.write(f"new {kill}.md", f"# Nadia Fern\n\nNadia Fern painted the buoy {kill} in Aldersund.\n")
        time.sleep(random.uniform(0, 0.3))
        daemon.kill()
        daemon.start()
        assert daemon.query("gauge 7 Aldersund")
    until(lambda: reencoded(daemon), "the encoder was replaced")
    daemon.wait()
    assert not (daemon.store / "reencode").exists()
    after = daemon.export()
    assert daemon.ask("POST", "/v1/verify")["problems"] == []
    assert daemon.ctl_json("reencode")["running"] is False
    assert daemon.query("buoy 2 Aldersund", k=1)[0]["text"].startswith("Nadia Fern painted the buoy 2")
    refused = daemon.ctl("query", "gauge", "--as-of", str(last))
    assert refused.code == 1 and "is the earliest" in refused.err
    daemon.ctl_json("backup", daemon.home / "later backup")
    assert daemon.stop() == 0

    # A configuration without an encoder keeps the store's.
    set_encoder(daemon, None)
    daemon.start().wait()
    assert reencoded(daemon) and daemon.export() == after
    assert daemon.stop() == 0

    # The export is that of a fresh build.
    shutil.move(daemon.store, daemon.home / "reencoded store")
    set_encoder(daemon, NEW)
    daemon.start().wait()
    assert daemon.export() == after
    assert daemon.stop() == 0

    # A backup states its encoder, and is opened with it.
    for backup, dim, expected in (("backup", OLD, None), ("later backup", NEW, after)):
        restored = hippod(daemon.home, "--config", str(daemon.config), "--restore", str(daemon.home / backup))
        assert restored.code == 0 and f"({dim} dimensions)" in restored.out
        daemon.start().wait()
        assert reencoded(daemon) == (dim == NEW)
        assert expected is None or daemon.export() == expected
        if dim == OLD:
            assert daemon.ctl_json("reencode")["passages"] > 0
            assert reencoded(daemon) and daemon.export() == after
        assert daemon.stop() == 0
