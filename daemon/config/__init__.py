"""Configuration: reads, validates and resolves the file and the environment, or reports all reasons why they cannot be used."""

from daemon.config.config import Config
from daemon.config.load import ConfigError, NoConfigFile, load_config, unsupported
from daemon.config.model_sections import model_key
from daemon.config.to_toml import render

__all__ = ["Config", "ConfigError", "NoConfigFile", "load_config", "model_key", "render", "unsupported"]
