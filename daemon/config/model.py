"""The configuration as a whole."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PrivateAttr

from daemon.config.sections import (
    LLM,
    MCP,
    Api,
    Daemon,
    Encoder,
    Folder,
    Graph,
    Kafka,
    OpenIE,
    Parsing,
    Passages,
    Retrieval,
    ScheduleTimes,
    Section,
    Store,
)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class Config(Section):
    """All settings, checked; attribute names are those of the file (`config.folder` holds all `[[folder]]` tables)."""

    store: Store = Field(default_factory=Store)
    api: Api = Field(default_factory=Api)
    folder: Annotated[tuple[Folder, ...], BeforeValidator(_tuple)] = ()
    kafka: Annotated[tuple[Kafka, ...], BeforeValidator(_tuple)] = ()
    passages: Passages = Field(default_factory=Passages)
    parsing: Parsing = Field(default_factory=Parsing)
    openie: OpenIE = Field(default_factory=OpenIE)
    llm: LLM = Field(default_factory=LLM)
    encoder: Encoder = Field(default_factory=Encoder)
    graph: Graph = Field(default_factory=Graph)
    retrieval: Retrieval = Field(default_factory=Retrieval)
    mcp: MCP = Field(default_factory=MCP)
    schedule: ScheduleTimes = Field(default_factory=ScheduleTimes)
    daemon: Daemon = Field(default_factory=Daemon)

    _file: Path | None = PrivateAttr(None)

    @property
    def file(self) -> Path | None:
        """The file that this was read from."""
        return self._file
