"""A package of another project with the name of one of hippod's."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from daemon.doctor import machine
from daemon.main import main
from daemon.runtime import own_environment
from daemon.runtime.own_environment import packages_of_others


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Installed packages, of which python-daemon has a folder of hippod's."""
    for name, record in {
        "hippod-0.2.0": "daemon/__init__.py,sha256=x,1\n",
        "python_daemon-3.1.2": "daemon/__init__.py,sha256=y,2\ndaemon/daemon.py,,\n",
        "numpy-2.2": "numpy/__init__.py,,\nnumpy/daemon/__init__.py,,\nmystore/__init__.py,,\n",
    }.items():
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "RECORD").write_text(record)
    return tmp_path


def test_only_projects_with_a_conflicting_package_are_named(site: Path) -> None:
    assert packages_of_others(site) == ["python_daemon (daemon)"]
    assert packages_of_others() == []


def test_hippod_and_doctor_refuse_an_environment_with_conflicting_packages(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared() -> list[str]:
        return packages_of_others(site)

    monkeypatch.setattr(machine, "packages_of_others", shared)
    monkeypatch.setattr("daemon.main.packages_of_others", shared)
    refused = CliRunner().invoke(main, ["--check"])
    assert refused.exit_code == 2
    assert "python_daemon (daemon)" in refused.output
    assert own_environment.HINT in refused.output
    found = next(iter(machine.packages(None)))  # type: ignore[arg-type]
    assert (found.status, found.hint) == ("fail", own_environment.HINT)
