"""What a reload can change while hippod runs, and what it cannot."""

from typing import Any

from daemon.config.model import Config
from daemon.config.problems import dotted

LIVE_SECTIONS = ("retrieval", "schedule")
LIVE_KEYS = ("daemon.log_level", "daemon.stop_timeout_s", "api.token_file")


def diff_reload(old: Config, new: Config) -> tuple[list[str], list[str]]:
    """Dotted keys that differ: those that take effect at once, and those that need a restart; each in order."""
    before, after = _flat(old), _flat(new)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    live = [key for key in changed if key in LIVE_KEYS or key.partition(".")[0] in LIVE_SECTIONS]
    return live, [key for key in changed if key not in live]


def _flat(config: Config) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(config, name)
        for number, table in enumerate(value if isinstance(value, tuple) else (value,)):
            path = (name, number) if isinstance(value, tuple) else (name,)
            flat |= {dotted((*path, key)): getattr(table, key) for key in type(table).model_fields}
    return flat
