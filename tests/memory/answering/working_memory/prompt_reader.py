"""What a model that reads its prompt knows: which number a point, an entity or a passage was given there."""

import re
from typing import Any

from tests.memory.llm.model_server import Call

Json = dict[str, Any]

POINT = re.compile(r"«point (\d+)»\nEntities: (.*)\n(.*)\n«/point»")
PASSAGE = re.compile(r"«passage (\d+)»\n(.*)\n")
ENTITY = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


class Prompt:
    """The last message of a call."""

    def __init__(self, call: Call) -> None:
        self.text = str(call.body["messages"][-1]["content"])

    @property
    def points(self) -> dict[str, int]:
        """The number of each point, by its description."""
        return {description: int(number) for number, _, description in POINT.findall(self.text)}

    @property
    def passages(self) -> dict[str, int]:
        """The number of each passage, by its title."""
        return {title: int(number) for number, title in PASSAGE.findall(self.text)}

    @property
    def entities(self) -> dict[str, int]:
        """The number of each retrieved entity."""
        part = self.text.partition("\nEntities:\n")[2].partition("\n\nFacts:")[0]
        return {entity: int(number) for number, entity in ENTITY.findall(part)}

    def insert(self, description: str, entities: list[str], passages: list[str], names: tuple[str, ...] = ()) -> Json:
        """A point to insert, as the model would write it."""
        return {
            "description": description,
            "entities": [self.entities[entity] for entity in entities],
            "names": list(names),
            "passages": [self.passages[passage] for passage in passages],
        }

    def update(self, before: str, after: str, passages: list[str]) -> Json:
        numbers = [self.passages[passage] for passage in passages]
        return {"point": self.points[before], "description": after, "passages": numbers}
