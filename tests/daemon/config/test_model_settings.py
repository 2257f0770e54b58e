"""The models of `[llm]` and `[llm.judge]`: what the second does not set is as in the first, but a key stays with its server."""

from pathlib import Path

import pytest

from daemon.config.load import ConfigError, load_config
from daemon.config.to_toml import render
from daemon.model_settings import judge_settings, model_settings

LLM = '[llm]\nbase_url = "http://one:1/v1"\nmodel = "small"\napi_key_env = "FIRST_KEY"\ntemperature = 0.8\ntimeout_s = 7.0\n'
ENVIRON = {"HOME": "/h", "FIRST_KEY": "first", "SECOND_KEY": "second"}


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ("", None),
        ("temperature = 0.3", ("http://one:1/v1", "small", "first", 0.3)),
        ('model = "large"', ("http://one:1/v1", "large", "first", 0.0)),
        ('base_url = "http://two:2/v1"', ("http://two:2/v1", "small", None, 0.0)),
        (
            'base_url = "http://two:2/v1"\nmodel = "large"\napi_key_env = "SECOND_KEY"\ntemperature = 0.3',
            ("http://two:2/v1", "large", "second", 0.3),
        ),
    ],
    ids=["none", "temperature alone", "model", "server", "both"],
)
def test_judge_settings_inherit_from_llm_except_the_key_of_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str, expected: tuple[str, str, str | None, float] | None
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "c.toml").write_text(f"{LLM}[llm.judge]\n{judge}\n")
    config = load_config(tmp_path / "c.toml", ENVIRON)
    settings = judge_settings(config)
    assert (settings and (settings.base_url, settings.model, settings.key, settings.temperature)) == expected
    if settings is not None:
        assert settings.timeout_s == 7.0
    own = model_settings(config)
    assert own is not None
    assert (own.model, own.temperature) == ("small", 0.8)
    (tmp_path / "again.toml").write_text(render(config))
    assert load_config(tmp_path / "again.toml", ENVIRON).llm == config.llm


def test_unset_api_key_variable_of_the_judge_is_named_with_its_section(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[llm.judge]\nmodel = "large"\napi_key_env = "NO_SUCH_KEY"\n')
    with pytest.raises(ConfigError, match=r"llm\.judge\.api_key_env names \$NO_SUCH_KEY, which is not set"):
        load_config(tmp_path / "c.toml", {"HOME": "/h"})
