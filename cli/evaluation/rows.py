"""One row of an evaluation: how its questions are retrieved and answered. `eval` compares rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from daemon.contract.choices import NO_RETRIEVAL, Answerer


@dataclass(frozen=True, slots=True)
class Row:
    """`retrieval`: filter and settings; `answering`: steps, length and the like; both as fields of a request. `answerer` is
    None if only retrieval is measured. `read`: passages that an answer reads, None for the answerer's default.
    """

    name: str | None = None
    mode: str | None = None
    answerer: Answerer | None = None
    retrieval: Mapping[str, Any] = field(default_factory=dict)
    answering: Mapping[str, Any] = field(default_factory=dict)
    read: int | None = None

    @property
    def is_queried(self) -> bool:
        """Whether a separate query measures the row's retrieval. Answers in several steps report their own."""
        return self.mode != NO_RETRIEVAL and self.answerer in (None, Answerer.SINGLE)
