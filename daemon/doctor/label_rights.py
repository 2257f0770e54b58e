"""Warns if documents can state their own labels although labels determine which client sees a document."""

from collections.abc import Iterator

from daemon.config import Config
from daemon.contract.finding import Finding


def label_rights(config: Config) -> Iterator[Finding]:
    """Warns of each source whose documents' own labels count. Without `[[client]]`, labels give no rights."""
    if not config.client:
        return
    stating = [name for name, labels in config.source_labels() if labels.from_documents]
    for name in stating:
        detail = f"documents of {name} choose by their own labels which [[client]] sees them"
        hint = "if not everyone who writes there may do that, set labels_from_documents = false in its section"
        yield Finding("labels", "warn", detail, hint)
    if not stating:
        yield Finding("labels", "ok", "only the configuration gives labels to followed documents")
