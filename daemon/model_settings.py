"""Settings for the client of the configured model server."""

from daemon.config import Config, model_key
from daemon.observe.logs import mask
from memory.llm.client import ModelSettings


def model_settings(config: Config) -> ModelSettings | None:
    """Returns the settings; None if no model is configured. The key is masked in the log from here on."""
    llm = config.llm
    if llm.base_url is None or llm.model is None:
        return None
    key = model_key(llm)
    if key is not None:
        mask(key)
    return ModelSettings(llm.base_url, llm.model, key, llm.timeout_s, llm.max_retries, llm.temperature)
