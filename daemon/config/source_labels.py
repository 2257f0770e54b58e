"""Labels of sources: `labels` of a `[[folder]]` or a `[[kafka]]`, which all its documents have beside their own."""

from daemon.config.config import Config
from daemon.sources.registry import SOURCE_KINDS


def source_labels(config: Config) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(name of a source, its labels) of every configured one, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in SOURCE_KINDS:
        for table in config.tables(kind):
            found[table.source_name] = (*found.get(table.source_name, ()), *table.labels)
    return tuple(sorted((name, tuple(sorted(set(labels)))) for name, labels in found.items()))
