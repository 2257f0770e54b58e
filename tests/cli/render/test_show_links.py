"""`show` lists a document's names and links."""

from cli.render.show import card_lines
from daemon.contract.documents import ShowDocument
from tests.cli.sample_answers import SHOW


def test_show_prints_names_and_links_of_a_document() -> None:
    lines = [line.plain for line in card_lines(ShowDocument.model_validate(SHOW), 80)]
    assert any("names" in line and "Søren" in line for line in lines)
    assert "Links  1" in lines
    assert any("../hut.md#Door" in line and "the hut" in line for line in lines)
