"""The whole configuration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr, create_model

from daemon.config.client import ClientSection
from daemon.config.model_sections import LLM, Encoder, OpenIE
from daemon.config.sections import (
    MCP,
    Api,
    Daemon,
    Deep,
    Graph,
    Parsing,
    Passages,
    Retrieval,
    ScheduleTimes,
    Store,
    Worker,
)
from daemon.config_types.values import Section
from daemon.sources.base import LabelsBySource, SourceLabels
from daemon.sources.registry import SOURCE_KINDS
from store.types import Calibration, SynonymRule

if TYPE_CHECKING:
    from daemon.sources.base import SourceKind


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class _StoreAndApi(Section):
    store: Store = Field(default_factory=Store)
    api: Api = Field(default_factory=Api)


if TYPE_CHECKING:
    _WithSources = _StoreAndApi
else:
    _TABLES = {kind.table: (Annotated[tuple[kind.section, ...], BeforeValidator(_tuple)], ()) for kind in SOURCE_KINDS}
    _WithSources = create_model("_WithSources", __base__=_StoreAndApi, **_TABLES)


class Config(_WithSources):
    """All settings, validated; attributes have the names of the file (`config.folder` contains all `[[folder]]` tables)."""

    passages: Passages = Field(default_factory=Passages)
    parsing: Parsing = Field(default_factory=Parsing)
    openie: OpenIE = Field(default_factory=OpenIE)
    llm: LLM = Field(default_factory=LLM)
    encoder: Encoder = Field(default_factory=Encoder)
    graph: Graph = Field(default_factory=Graph)
    retrieval: Retrieval = Field(default_factory=Retrieval)
    deep: Deep = Field(default_factory=Deep)
    worker: Worker = Field(default_factory=Worker)
    mcp: MCP = Field(default_factory=MCP)
    schedule: ScheduleTimes = Field(default_factory=ScheduleTimes)
    daemon: Daemon = Field(default_factory=Daemon)
    client: Annotated[tuple[ClientSection, ...], BeforeValidator(_tuple)] = ()

    _file: Path | None = PrivateAttr(None)

    def tables(self, kind: "SourceKind[Any]") -> tuple[Any, ...]:
        """Returns the tables of one kind of source, in the file's order."""
        tables: tuple[Any, ...] = getattr(self, kind.table)
        return tables

    def source_labels(self) -> LabelsBySource:
        """Returns the labels of every configured source.

        Sections with the same name are one source. The source has the labels of all these sections, and the documents' own
        labels count if all these sections allow it.
        """
        found: dict[str, SourceLabels] = {}
        for kind in SOURCE_KINDS:
            for table in self.tables(kind):
                before = found.get(table.source_name, SourceLabels())
                found[table.source_name] = SourceLabels(
                    tuple(sorted({*before.labels, *table.labels})),
                    before.from_documents and table.labels_from_documents,
                )
        return tuple(sorted(found.items(), key=lambda source: source[0]))

    def synonym_rule(self, calibration: Calibration) -> SynonymRule:
        """Returns the rule for synonyms. For "auto", the threshold comes from the encoder's calibration."""
        threshold = self.graph.synonym_threshold
        return SynonymRule(
            calibration.synonym_threshold if threshold == "auto" else threshold, self.graph.synonym_variants
        )

    @property
    def file(self) -> Path | None:
        """The file that the configuration was read from."""
        return self._file
