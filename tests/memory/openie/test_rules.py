"""What the rules read out of English prose."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from memory.phrase_normalisation import normalise_phrase
from store.types import MENTION, Extraction, PassageText, Triple


def _extract(title: str, text: str) -> Extraction:
    return RulesExtractor().extract([PassageText("p1", title, text)])[0]


def _triples(title: str, text: str) -> set[Triple]:
    return set(_extract(title, text).triples)


def test_a_verb_relates_subject_and_object() -> None:
    assert ("wanda meriton", "surveyed", "marrow shaft") in _triples(
        "Marrow Shaft", "Wanda Meriton surveyed Marrow Shaft."
    )


def test_a_verb_with_a_preposition_is_the_relation() -> None:
    found = _triples("Ann Lee", "Ann Lee was born in Oslo and moved to Bergen.")
    assert ("ann lee", "was born in", "oslo") in found
    assert ("ann lee", "moved to", "bergen") in found


def test_the_object_between_verb_and_preposition_is_part_of_the_relation() -> None:
    found = _triples("Ann Lee", "Ann Lee was a professor of physics at the University of Copenhagen.")
    assert any(o == "university of copenhagen" and "professor" in p for s, p, o in found if s == "ann lee")


def test_copula_relates_the_title_to_its_kind() -> None:
    found = _triples("Physics Letters", "Physics Letters is a scientific journal. It is published by Elsevier Press.")
    assert ("physics letters", "is", "scientific journal") in found
    assert ("physics letters", "is published by", "elsevier press") in found


def test_a_participle_belongs_to_the_noun_before_it() -> None:
    found = _triples("Long Night", "Long Night is a 1977 film directed by Eva Holm and starring Jan Berg.")
    assert ("long night", "directed by", "eva holm") in found
    assert ("long night", "starring", "jan berg") in found


def test_verbs_that_share_a_preposition_are_each_a_relation() -> None:
    found = _triples("Long Night", "Long Night was written and directed by Eva Holm.")
    assert any(p.endswith("written by") for s, p, o in found if o == "eva holm")
    assert any(p.endswith("directed by") for s, p, o in found if o == "eva holm")


def test_apposition_describes_the_name() -> None:
    found = _triples("Marie Curie", "Paris, the capital of France, hosted Marie Curie.")
    assert ("paris", "is capital of", "france") in found
    assert ("paris", "hosted", "marie curie") in found


def test_description_before_a_name_describes_the_name() -> None:
    assert ("carl rogers", "is", "psychologist") in _triples(
        "Therapy", "Therapy was founded by psychologist Carl Rogers."
    )


def test_role_before_a_comma_describes_the_name_after_it() -> None:
    assert ("jan solovej", "is", "current editor") in _triples("Journal X", "The current editor, Jan Solovej, retired.")


def test_coordinated_objects_are_split() -> None:
    found = _triples("Long Night", "Long Night stars Eva Holm, Jan Berg and Ida Moe.")
    assert {o for s, p, o in found if s == "long night" and p == "stars"} == {"eva holm", "jan berg", "ida moe"}


def test_coordinated_subjects_are_split() -> None:
    found = _triples("", "Eva Holm and Jan Berg founded Nordlys Press.")
    assert ("eva holm", "founded", "nordlys press") in found
    assert ("jan berg", "founded", "nordlys press") in found


def test_a_pronoun_means_the_title() -> None:
    found = _triples("Ann Lee", "Ann Lee lives in Oslo. She studied at Bergen College.")
    assert ("ann lee", "studied at", "bergen college") in found


def test_a_sentence_that_opens_with_a_pronoun_is_about_the_title() -> None:
    assert ("heron gauge", "was built by", "casimir dorn") in _triples("Heron Gauge", "It was built by Casimir Dorn.")


def test_pronoun_she_does_not_refer_to_a_title_that_is_a_thing() -> None:
    found = _triples("Otter current meter", "Sabine Rell built it in 1997. She lives in Tollmin.")
    assert ("sabine rell", "lives in", "tollmin") in found


def test_first_person_pronouns_are_no_subject() -> None:
    found = _triples("Nordlys Press", "Eva Holm is the editor. We moved to Bergen. I sold it to Bo Ek.")
    assert {subject for subject, predicate, _ in found if predicate != MENTION} == {"eva holm"}


def test_kind_noun_refers_to_the_title_after_the_title_is_called_one() -> None:
    found = _triples("Physics Letters", "Physics Letters is a journal. The journal was sold to Elsevier Press.")
    assert ("physics letters", "was sold to", "elsevier press") in found


def test_a_surname_alone_means_the_title() -> None:
    found = _triples("Etan Boritzer", "Etan Boritzer is an American writer. Boritzer lives in Venice.")
    assert ("etan boritzer", "lives in", "venice") in found


def test_a_name_in_full_means_the_title() -> None:
    found = _triples("Kevin Durant", "Kevin Wayne Durant was born in Washington.")
    assert ("kevin durant", "was born in", "washington") in found


def test_part_of_a_title_is_not_the_title() -> None:
    found = _triples("Bank of Norway", "The Bank of Norway is the central bank of Norway.")
    assert ("bank of norway", "is central bank of", "norway") in found


def test_surname_refers_to_the_full_name_before_it() -> None:
    found = _triples("Observatory", "Odile Brandt founded the observatory. Brandt lives in Tollmin.")
    assert ("odile brandt", "lives in", "tollmin") in found


def test_possession_is_a_relation_of_the_owner() -> None:
    found = _triples("Hugh Holm", "Hugh married Guy's widow, Marozia. His father was Lothar Holm.")
    assert any(o == "marozia" and "widow" in p for s, p, o in found if s == "guy")
    assert ("hugh holm", "father was", "lothar holm") in found


def test_a_name_after_a_possession_takes_the_verb() -> None:
    found = _triples(
        "Yrsa Kolbeck",
        "Yrsa Kolbeck is a chemist and lives in Tollmin. Her brother, Ruben Kolbeck, plays the old organ.",
    )
    assert ("yrsa kolbeck", "brother", "ruben kolbeck") in found
    assert ("ruben kolbeck", "plays", "old organ") in found
    assert ("yrsa kolbeck", "lives in", "tollmin") in found


def test_genitive_relation_is_attributed_to_the_owner() -> None:
    assert ("france", "capital is", "paris") in _triples("France", "The capital of France is Paris.")


def test_a_relative_clause_speaks_of_the_noun_before_it() -> None:
    found = _triples("", "Nadia Ferrol met Emil Strand, who lives in Tollmin.")
    assert ("emil strand", "lives in", "tollmin") in found


@pytest.mark.parametrize(
    "text", ["Jo Tan (2 June 1904 – 10 July 1989) was a poet.", "Jo Tan( 2 June 1904 -- 10 July 1989) was a poet."]
)
def test_two_dates_in_brackets_are_birth_and_death(text: str) -> None:
    found = _triples("Jo Tan", text)
    assert ("jo tan", "born", "2 june 1904") in found
    assert ("jo tan", "died", "10 july 1989") in found


def test_a_verb_in_brackets_relates_its_date() -> None:
    found = _triples("Jo Tan", "Jo Tan (born February 28, 1983) is a poet.")
    assert ("jo tan", "born", "february 28 1983") in found


def test_a_name_in_brackets_is_another_name() -> None:
    found = _triples("", "The American Psychological Association (APA) moved to Washington.")
    assert ("american psychological association", "also known as", "apa") in found


def test_dates_and_numbers_are_objects() -> None:
    found = _triples("Heron Gauge", "Casimir Dorn built the Heron gauge in 1971. It weighs 12 kilograms.")
    assert ("casimir dorn", "built heron gauge in", "1971") in found
    assert ("casimir dorn", "built", "heron gauge") in found
    assert ("heron gauge", "weighs", "12 kilograms") in found


def test_an_opening_date_belongs_to_the_verb() -> None:
    found = _triples("Ann Lee", "In 1950, Ann Lee moved to Oslo.")
    assert ("ann lee", "moved in", "1950") in found


def test_names_of_several_words_are_kept_whole() -> None:
    found = _triples("", "Ann Lee works for the Institute for Advanced Study and the University of the Arts.")
    assert any(o == "university of the arts" for _, _, o in found)


def test_a_place_lies_in_the_one_after_the_comma() -> None:
    found = _triples("Ann Lee", "Ann Lee was born in Austin, Texas.")
    assert ("austin", "is in", "texas") in found
    assert ("ann lee", "was born in", "texas") in found


def test_every_name_is_tied_to_the_title() -> None:
    found = _triples("Spring news", "Bruno Castle built the Wren hygrometer. Dagny Orme waters the flowers.")
    tied = {o for s, _, o in found if s == "spring news"}
    assert {"bruno castle", "wren hygrometer", "dagny orme"} <= tied


def test_bracketed_qualifier_describes_the_title() -> None:
    found = _triples("Theodred II (Bishop of Elmham)", "Theodred II was a medieval bishop.")
    assert ("theodred ii", "is", "bishop of elmham") in found
    assert ("theodred ii", "also known as", "theodred ii bishop of elmham") in found


def test_the_last_heading_is_the_subject_and_part_of_its_document() -> None:
    found = _triples("Annual report › Heron gauge", "The Heron gauge was built by Casimir Dorn.")
    assert ("heron gauge", "was built by", "casimir dorn") in found
    assert ("heron gauge", MENTION, "annual report") in found


def test_a_pronoun_under_a_heading_means_no_title() -> None:
    found = _triples("Saint Ursa Cavern › The tour", "It was opened by Tobias Wenlock.")
    assert found == {("saint ursa cavern", MENTION, "tobias wenlock")}


def test_reply_prefixes_are_removed_from_the_title_entity() -> None:
    assert _extract("Re: Fwd: Telescope shipment", "Ann Lee agreed.").entities[0] == "telescope shipment"


def test_table_rows_give_triples_by_column() -> None:
    found = _triples(
        "Staff", "name: Ann Lee; role: head of optics; city: Oslo\nname: Bo Ek; role: driver; manager: Ann Lee"
    )
    assert ("ann lee", "role", "head of optics") in found
    assert ("ann lee", "city", "oslo") in found
    assert ("bo ek", "manager", "ann lee") in found


def test_a_markdown_table_is_read_by_its_columns() -> None:
    text = (
        "| Instrument | Keeper | Year |\n| --- | --- | --- |\n| Heron gauge | Odile Brandt | 1971 |\n| Moth | Bo Ek | |"
    )
    found = _triples("Inventory", text)
    assert ("heron gauge", "keeper", "odile brandt") in found
    assert ("heron gauge", "year", "1971") in found
    assert ("moth", "keeper", "bo ek") in found
    # A row's first cell is only named on the page, and a column without a name says nothing of its value.
    assert {predicate for subject, predicate, object_ in found if (subject, object_) == ("inventory", "moth")} == {
        MENTION
    }
    assert ("moth", MENTION, "cabinet b") in _triples(
        "Inventory", "| Instrument | |\n| --- | --- |\n| Moth | Cabinet B |\n| Heron gauge | Cabinet C |"
    )


def test_an_empty_first_cell_shifts_no_column() -> None:
    text = "| Name | City | Population |\n| --- | --- | --- |\n|| Bergen | 7 |\n| Lars Ek | Oslo ||\n|| Tromso ||"
    found = _triples("Branches", text)
    assert ("bergen", "population", "7") in found
    assert ("lars ek", "city", "oslo") in found
    assert not any("name" in predicate and object != "lars ek" for _, predicate, object in found)
    assert not any("city" in predicate and object == "7" for _, predicate, object in found)


def test_mail_headers_belong_to_the_message() -> None:
    found = _triples("Shipment", "From: Ann Lee <ann@example.org>\nTo: Bo Ek, Carla Ruiz\n\nIt left Oslo.")
    assert {("shipment", "from", "ann lee"), ("shipment", "to", "bo ek"), ("shipment", "to", "carla ruiz")} <= found


def test_list_items_are_parsed_as_separate_sentences_without_markup() -> None:
    found = _triples(
        "Minutes", "- **Bo Ek** orders the mirror from [Zeiss](https://zeiss.example)\n- [x] Ann Lee moved to Bergen"
    )
    assert ("bo ek", "orders mirror from", "zeiss") in found
    assert ("ann lee", "moved to", "bergen") in found


def test_lines_that_were_wrapped_are_one_sentence() -> None:
    found = _triples(
        "Widow Shaft",
        "In the early summer of the long dry year that followed the flood Anselm\nRook descended Widow Shaft.",
    )
    assert any(s == "anselm rook" and o == "widow shaft" for s, _, o in found)


def test_tokenised_text_gives_the_triples_of_plain_text() -> None:
    found = _triples("Jo Tan", "Jo Tan( born 1950) is Ann 's half- brother and wrote `` Long Night ''.")
    assert ("jo tan", "born", "1950") in found
    assert ("jo tan", "is half brother of", "ann") in found
    assert ("jo tan", "wrote", "long night") in found


_TEXTS = [
    (
        "Report › Sales",
        "Revenue grew by 12% to €4.2 million. Maria Keller, head of sales, signed a contract; it runs until 2027.",
    ),
    ("notes.txt", "call mum\nbuy milk, eggs\nBo's number 555-1234"),
    ("東京", "東京は日本の首都である。《源氏物語》は紫式部の作品。"),
    ("Köln", "Die Stadt Köln liegt am Rhein. Konrad Adenauer war Oberbürgermeister."),
    ("", "Ann Lee built the Heron gauge (1971) in Oslo. It was sold to Bo Ek, her cousin."),
    ("x", "((( ' 's , ; . and or the of to 's"),
]


@pytest.mark.parametrize(("title", "text"), _TEXTS)
def test_extracted_phrases_are_normalised_and_nonempty(title: str, text: str) -> None:
    found = _extract(title, text)
    parts = [*found.entities, *(part for triple in found.triples for part in triple)]
    assert all(part == normalise_phrase(part) for part in parts)
    assert all(subject and object_ for subject, _, object_ in found.triples) and all(found.entities)
    assert len(set(found.triples)) == len(found.triples)
    assert all(subject != object_ for subject, _, object_ in found.triples)


def test_an_extraction_depends_on_title_and_text_alone() -> None:
    extractor = RulesExtractor()
    passages = [PassageText(str(i), title, text) for i, (title, text) in enumerate(_TEXTS)]
    together = extractor.extract(passages)
    apart = [RulesExtractor().extract([passage])[0] for passage in reversed(passages)][::-1]
    assert [(e.passage, e.entities, e.triples) for e in together] == [(e.passage, e.entities, e.triples) for e in apart]


def test_an_extraction_names_its_passage_and_extractor() -> None:
    found = _extract("Ann Lee", "Ann Lee lives in Oslo.")
    assert (found.passage, found.extractor) == ("p1", RulesExtractor.name)
    assert found.prompt_tokens == found.completion_tokens == 0
    assert found.entities[0] == "ann lee"


def test_no_passages_give_no_extractions() -> None:
    assert RulesExtractor().extract([]) == []


def test_pronoun_at_the_start_of_a_paragraph_refers_to_the_title() -> None:
    text = "Version 4.1 ran on Debian 11.\n\nThe installer copies tarnd to Varnhem. It needs the library libserial."
    found = set(RulesExtractor().extract([PassageText("p", "Tarn", text)])[0].triples)
    assert ("tarn", "installer copies tarnd to", "varnhem") in found
    assert all(subject != "version 4 1" for subject, predicate, _ in found if predicate != "ran on")


def test_negated_subject_is_not_the_subject_of_the_next_sentence() -> None:
    text = "Tarn runs on Debian. No new gauge is supported by Tarn. The installer was written by Signe Falk."
    found = RulesExtractor().extract([PassageText("p", "Notes", text)])[0].triples
    assert not [triple for triple in found if triple[0] == "new gauge" and "not" not in triple[1].split()]
