"""The whole configuration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr, create_model

from daemon.config.client import ClientSection
from daemon.config.sections import (
    LLM,
    MCP,
    Api,
    Daemon,
    Deep,
    Encoder,
    Graph,
    OpenIE,
    Parsing,
    Passages,
    Retrieval,
    ScheduleTimes,
    Store,
    Worker,
)
from daemon.config_types.section import Section
from daemon.sources.registry import SOURCE_KINDS

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
    """All settings, checked; attribute names are those of the file (`config.folder` holds all `[[folder]]` tables)."""

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

    @property
    def file(self) -> Path | None:
        """The file that the configuration was read from."""
        return self._file
