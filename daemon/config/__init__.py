"""Configuration: what the file and the environment say, checked and resolved, or every reason why it cannot be used."""

from daemon.config.checks import read_token
from daemon.config.errors import ConfigError
from daemon.config.keys import model_key
from daemon.config.load import load_config
from daemon.config.model import Config
from daemon.config.reload import diff_reload
from daemon.config.render import render
from daemon.config.unsupported import unsupported

__all__ = ["Config", "ConfigError", "diff_reload", "load_config", "model_key", "read_token", "render", "unsupported"]
