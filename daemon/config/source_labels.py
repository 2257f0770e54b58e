"""Labels of sources: `labels` and `labels_from_documents` of every `[[folder]]` and `[[kafka]]`."""

from daemon.config.config import Config
from daemon.sources.base import LabelsBySource, SourceLabels
from daemon.sources.registry import SOURCE_KINDS

__all__ = ["LabelsBySource", "source_labels"]


def source_labels(config: Config) -> LabelsBySource:
    """Returns the labels of every configured source.

    Sections with the same name are one source: it has the labels of all, and the documents' own labels count if all sections
    allow them.
    """
    found: dict[str, SourceLabels] = {}
    for kind in SOURCE_KINDS:
        for table in config.tables(kind):
            before = found.get(table.source_name, SourceLabels())
            found[table.source_name] = SourceLabels(
                tuple(sorted({*before.labels, *table.labels})), before.from_documents and table.labels_from_documents
            )
    return tuple(sorted(found.items(), key=lambda source: source[0]))
