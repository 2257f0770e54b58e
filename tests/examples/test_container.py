"""The compose file and the image's configuration name what there is. `make test-image` runs the image."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from daemon.config.load import load_config

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "examples/container/compose.yaml").read_text("utf-8"))
    return found


def test_compose_image_has_the_current_version(compose: dict[str, Any]) -> None:
    # Between releases, the example names the next one.
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"].partition(".dev")[0]
    assert compose["services"]["hippod"]["image"] == f"localhost/hippod:{version}"
    assert f"hippod_{version}_" in (ROOT / "examples/container/README.md").read_text("utf-8")


def test_settings_of_the_compose_file_are_valid(compose: dict[str, Any], tmp_path: Path) -> None:
    service = compose["services"]["hippod"]
    environ = dict(service["environment"])
    token, drive, config = tmp_path / "token", tmp_path / "drive", tmp_path / "config.toml"
    assert environ["HIPPOD_API__TOKEN_FILE"] == f"/run/secrets/{service['secrets'][0]}"
    assert [volume.split(":")[1] for volume in service["volumes"]] == ["/drive", "/var/lib/hippod"]
    token.write_text("0123456789abcdef0123456789abcdef")
    drive.mkdir()
    text = (ROOT / "systemd/package/container.toml").read_text("utf-8")
    assert '"/drive"' in text
    config.write_text(text.replace("/drive", str(drive)).replace("/var/lib/hippod", str(tmp_path)))
    loaded = load_config(config, environ | {"HIPPOD_API__TOKEN_FILE": str(token)})
    assert (
        loaded.llm.base_url
        == f"http://model:{compose['services']['model']['command'].split('--port ')[1].split()[0]}/v1"
    )
    assert loaded.openie.backend == "llm"
    assert str(loaded.api.tcp) == "0.0.0.0:7411"
    assert service["ports"] == ["127.0.0.1:7411:7411"]


def test_compose_stop_grace_period_exceeds_stop_timeout(compose: dict[str, Any]) -> None:
    grace = float(compose["services"]["hippod"]["stop_grace_period"].removesuffix("s"))
    config = ROOT / "systemd/package/container.toml"
    assert "stop_timeout_s" not in config.read_text("utf-8")
    default = next(
        line for line in (ROOT / "config.toml").read_text("utf-8").splitlines() if line.startswith("#stop_timeout_s")
    )
    assert grace > float(default.partition("= ")[2])
