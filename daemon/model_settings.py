"""Settings for the client of the configured model server."""

from daemon.config import Config, model_key
from daemon.config.model_sections import ModelServer
from daemon.observe.logs import mask
from memory.llm.client import ModelSettings


def model_settings(config: Config) -> ModelSettings | None:
    """Returns the settings; None if no model is configured. The key is masked in the log from here on."""
    return _settings(config, config.llm)


def judge_settings(config: Config) -> ModelSettings | None:
    """Returns the settings of `[llm.judge]`; None if the section sets nothing. The key of `[llm]` is sent to the judge's server
    only if both have the same address."""
    llm, judge = config.llm, config.llm.judge
    overrides = {name: value for name in ("base_url", "model") if (value := getattr(judge, name)) is not None}
    if not judge.model_fields_set:
        return None
    has_key = judge.api_key_env is not None or judge.api_key_file is not None
    keyed = judge if has_key or judge.base_url not in (None, llm.base_url) else llm
    keys = {"api_key_env": keyed.api_key_env, "api_key_file": keyed.api_key_file}
    return _settings(config, llm.model_copy(update={**overrides, **keys, "temperature": judge.temperature}))


def _settings(config: Config, server: ModelServer) -> ModelSettings | None:
    if server.base_url is None or server.model is None:
        return None
    key = model_key(server)
    if key is not None:
        mask(key)
    llm = config.llm
    return ModelSettings(server.base_url, server.model, key, llm.timeout_s, llm.max_retries, server.temperature)
