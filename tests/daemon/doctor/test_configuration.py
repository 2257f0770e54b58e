"""Whether the configuration can be used, and by whom that can be told."""

from pathlib import Path

import pytest

from daemon.doctor import inspect
from daemon.doctor.configuration import configuration, directory_permissions


def test_invalid_configuration_is_one_finding_and_skips_checks_that_need_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[api]\nmode = "rw"\n[store]\npth = 1\n')
    findings = {each.name: each for each in inspect(file)}
    assert set(findings) == {"python", "clock", "configuration"}
    assert findings["configuration"].status == "fail"
    assert all(key in findings["configuration"].detail for key in ("api.mode", "store.pth"))
    file.write_text("")
    config, finding = configuration(file)
    assert config is not None
    assert (finding.status, finding.detail) == ("ok", str(file))


def test_no_configuration_at_the_usual_places_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIPPOD_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("daemon.contract.paths.SYSTEM_CONFIG", tmp_path / "etc/config.toml")
    config, finding = configuration(None)
    assert (config, finding.status) == (None, "warn")
    monkeypatch.setenv("HIPPOD_CONFIG", str(tmp_path / "absent.toml"))
    assert configuration(None)[1].status == "fail"


def test_missing_systemd_credentials_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    file = tmp_path / "config.toml"
    file.write_text('[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n')
    _, finding = configuration(file)
    assert (finding.status, f"HIPPOD_CONFIG={file} hippoctl doctor" in finding.hint) == ("warn", True)
    file.write_text(file.read_text() + "[store]\npth = 1\n")
    assert configuration(file)[1].status == "fail"


def test_world_writable_configuration_directory_is_a_warning(tmp_path: Path) -> None:
    assert list(directory_permissions(tmp_path)) == []
    tmp_path.chmod(0o777)
    assert [finding.status for finding in directory_permissions(tmp_path)] == ["warn"]
    tmp_path.chmod(0o700)


def test_hint_loads_the_credentials_of_a_unit_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    file = tmp_path / "notes.toml"
    file.write_text('[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n')
    _, finding = configuration(file)
    loads = "-p LoadCredential=token:/etc/hippod/credentials/notes-token "
    assert f"systemd-run --quiet --pipe --wait {loads}-E HIPPOD_CONFIG={file} hippoctl doctor" in finding.hint
