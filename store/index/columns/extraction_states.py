"""The state of each passage's extraction."""

import json
from dataclasses import astuple

import numpy as np
import pyarrow as pa

from store.index.part import Part, PartFiles, PartWriter
from store.types import ExtractionState, extraction_state


class ExtractionStates(dict[int, ExtractionState], Part):
    """Maps the row of each passage that has an extraction to the extraction's state."""

    def copy(self) -> "ExtractionStates":
        return ExtractionStates(self)

    def save(self, files: PartWriter, name: str) -> None:
        number = {state: n for n, state in enumerate(dict.fromkeys(self.values()))}
        files.table(name, pa.table({"state": [json.dumps(astuple(state)) for state in number]}))
        files.array(f"{name}-rows", np.array(list(self), np.int32))
        files.array(f"{name}-numbers", np.array([number[state] for state in self.values()], np.int32))

    def load(self, files: PartFiles, name: str) -> None:
        """Loads the states; equal states become one shared object."""
        states = [extraction_state(*json.loads(text)) for text in files.table(name)["state"].to_pylist()]
        rows, numbers = files.array(f"{name}-rows").tolist(), files.array(f"{name}-numbers").tolist()
        self.update((row, states[number]) for row, number in zip(rows, numbers, strict=True))
