"""Prose in other languages than English gives the title and what it mentions; names are found in every language."""

from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText


@pytest.mark.parametrize(
    ("title", "text", "mentioned"),
    [
        (
            "Marie Curie",
            "Elle a reçu le prix Nobel avec Pierre Curie en 1903 à Stockholm.",
            {"pierre curie", "stockholm"},
        ),
        (
            "Köln",
            "Die alte Stadt liegt am Rhein. Später war Konrad Adenauer dort Bürgermeister.",
            {"rhein", "konrad adenauer"},
        ),
        ("Москва", "Это столица России. Город основал Юрий Долгорукий.", {"россии", "юрий долгорукий"}),
        ("Αθήνα", "Η πρωτεύουσα της Ελλάδας, όπου έζησε ο Σωκράτης Αθηναίος.", {"σωκράτησ αθηναίοσ"}),
        ("北京", "北京是中华人民共和国的首都。故宫是明朝的皇宫。", {"中华人民共和国"}),
        ("東京", "東京は日本の首都である。《源氏物語》は紫式部の作品。", {"日本", "源氏物語", "紫式部"}),
        ("القاهرة", "القاهرة هي عاصمة جمهورية مصر العربية. يقع نهر النيل فيها.", {"عاصمة جمهورية", "نهر النيل"}),
        ("दिल्ली", "दिल्ली भारत की राजधानी है। हुमायूँ का मकबरा यहाँ है।", {"दिल्ली भारत"}),
    ],
    ids=["French", "German", "Russian", "Greek", "Chinese", "Japanese", "Arabic", "Hindi"],
)
def test_names_are_mentions_of_the_title(title: str, text: str, mentioned: set[str]) -> None:
    [found] = RulesExtractor().extract([PassageText("p", title, text)])
    assert {predicate for _, predicate, _ in found.triples} == {MENTION}
    about = found.entities[0]
    assert mentioned <= {object_ for subject, _, object_ in found.triples if subject == about}


@pytest.mark.parametrize(
    ("text", "together"),
    [
        (
            "Фарфоровую лампу купил Юрий Долгорукий вместе с Анной Морозовой. Лето было тёплым.",
            ("юрий долгорукий", "анной морозовой"),
        ),
        ("In diesem Jahr verkaufte Emil Strand das alte Haus an Nadja Ferrol.", ("emil strand", "nadja ferrol")),
        ("En esta casa vivía Nadia Ferrol con Emilio Strand.", ("nadia ferrol", "emilio strand")),
        ("林小梅设计了灯塔，张伟在上海工作。", ("林小梅", "张伟")),
        ("På ön bodde alltid Nils Ek nära Karin Berg. Sommaren var varm och lång.", ("nils ek", "karin berg")),
    ],
    ids=["Russian", "German", "Spanish", "Chinese", "Swedish"],
)
def test_names_in_one_sentence_are_linked_by_a_mention(text, together) -> None:
    [found] = RulesExtractor().extract([PassageText("p", "42", text)])
    assert (together[0], MENTION, together[1]) in found.triples
    assert {predicate for _, predicate, _ in found.triples} <= {MENTION}


def test_mentions_are_bounded_and_the_most_frequent_stay() -> None:
    text = "。".join(f"{chr(0x4E8C + i)}{chr(0x5000 + i)}" for i in range(200)) + "。故宫" * 9
    [found] = RulesExtractor().extract([PassageText("p", "北京", text)])
    assert "故宫" in {object_ for _, _, object_ in found.triples}
    assert len(found.triples) <= 30


def test_english_sentences_in_a_mixed_text_are_extracted() -> None:
    text = "Ann Lee lives in Oslo.\n\nElle a été nommée par Pierre Dupont dans la ville."
    [found] = RulesExtractor().extract([PassageText("p", "Ann Lee", text)])
    assert ("ann lee", "lives in", "oslo") in found.triples
    assert ("ann lee", MENTION, "pierre dupont") in found.triples


def entities(title: str, text: str) -> set[str]:
    [found] = RulesExtractor().extract([PassageText("p", title, text)])
    assert {predicate for _, predicate, _ in found.triples} <= {MENTION}
    return set(found.entities)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("L'école d'Aldersund a été fondée par l'abbé Henri Voss.", "aldersund"),
        ("Il mulino dell'Adige fu costruito da Enrica Voss.", "adige"),
        ("物理学家阿尔伯特·爱因斯坦出生在德国。", "阿尔伯特 爱因斯坦"),
        ("小说家居斯塔夫·福楼拜住在鲁昂。", "居斯塔夫 福楼拜"),
        ("发电机由卡特拉·隆德维护。", "卡特拉 隆德"),
        ("总统弗拉基米尔·泽连斯基访问了巴黎。", "弗拉基米尔 泽连斯基"),
        ("导演约翰·塞巴斯蒂安·巴赫住在莱比锡。", "约翰 塞巴斯蒂安 巴赫"),
        ("列奥纳多·达·芬奇出生于佛罗伦萨。", "列奥纳多 达 芬奇"),
        ("レオナルド・ダ・ヴィンチは画家である。", "レオナルド ダ ヴィンチ"),
        ("我们用 Obsidian Sync 保存笔记。", "obsidian sync"),
        ("1902年にエミル・ストランドは水車を町に売った。", "エミル ストランド"),
        ("私たちは Obsidian Sync を使います。", "obsidian sync"),
    ],
)
def test_name_is_found_in_full(text: str, named: str) -> None:
    assert named in entities("42", text)


def test_first_word_of_a_sentence_is_not_joined_to_the_name_after_it() -> None:
    found = entities("42", "Открой Obsidian на телефоне. Заметки хранит только Obsidian на этом телефоне.")
    assert "obsidian" in found
    assert "открой obsidian" not in found


def test_german_common_nouns_are_no_names() -> None:
    text = "Der Bäcker wohnt mit seiner Katze in einem Haus am Hafen von Rostock. Sein Freund heißt Ole Brandt."
    found = entities("Ein Bäcker", text)
    assert {"rostock", "ole brandt"} <= found
    assert {"katze", "haus", "hafen", "freund"}.isdisjoint(found)


def test_repeated_nouns_are_keywords() -> None:
    text = "版本历史保存每次修改。版本历史可以恢复笔记。打开版本历史。"
    assert "版本历史" in entities("42", text)


@pytest.mark.parametrize("title", ["École", "ガンダ工場"])
def test_decomposed_text_gives_the_same_entities(title: str) -> None:
    text = {
        "École": "Dans l'école de Béziers travaillait Hélène Père en 1902.",
        "ガンダ工場": "ガンダ工場は大阪にある。田中部長がガンダ工場を設立した。",
    }[title]
    apart = entities(normalize("NFD", title), normalize("NFD", text))
    assert len(apart) > 1
    assert apart == entities(title, text)


@pytest.mark.parametrize(
    "text",
    ["的" * 3000, "。，" * 3000, "Der " * 3000 + "ist schön.", "Ä" * 5000 + " ist der Ort.", "·".join("阿" * 2000)],
    ids=["of", "marks", "articles", "letters", "dots"],
)
def test_hostile_prose_gives_a_limited_number_of_entities(text: str) -> None:
    assert len(entities("Der Titel ist das", text + " Das ist der Ort, in dem wir wohnen.")) < 400


def test_threads_may_share_the_taggers() -> None:
    texts = [
        (title, f"{text} {n}")
        for n in range(6)
        for title, text in (
            ("Köln", "Hier lebte Konrad Adenauer."),
            ("北京", "张伟在上海工作。"),
            ("東京", "田中花子は大阪で働いた。"),
        )
    ]
    alone = [entities(*each) for each in texts]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda each: entities(*each), texts)) == alone


@pytest.mark.parametrize(
    ("text", "junk"),
    [
        ("Откройте Настройки. Здесь хранят заметки.", "откройте настройки"),
        ("Für Android: im Menü auf Öffnen gehen.", "öffnen"),
        ("Dans le menu, le bouton Ouvrir est bleu.", "ouvrir"),
        ("En el menú, el botón Abrir es azul.", "abrir"),
        ("выберите папку, которую хотите, и нажмите кнопку.", "которую хотите"),
        ("يمكنك استخدام الملاحظات في الهاتف المحمول.", "يمكنك استخدام"),
    ],
)
def test_imperatives_and_user_interface_words_are_no_names(text: str, junk: str) -> None:
    [found] = RulesExtractor().extract([PassageText("p", "42", text)])
    assert junk not in {*found.entities, *(end for subject, _, object_ in found.triples for end in (subject, object_))}


def test_a_key_phrase_is_repeated_in_its_passage() -> None:
    once = "сайт хранит личное сообщение, а почта хранит письма."
    assert "личное сообщение" not in entities("42", once)
    assert "личное сообщение" in entities("42", f"{once} кто прочитал личное сообщение?")


def test_a_particle_is_no_part_of_a_latin_name() -> None:
    found = entities("42", "노트는 Obsidian Sync를 통해 저장됩니다. 여기에서 Obsidian이 열립니다.")
    assert {"obsidian sync", "obsidian"} <= found


@pytest.mark.parametrize("title", ["Example", "Общие", "Allgemein", "Example › General"])
def test_a_generic_heading_has_no_edges(title: str) -> None:
    [found] = RulesExtractor().extract([PassageText("p", title, "Hier wohnt Emil Strand mit Nadja Ferrol in Bonn.")])
    ends = {end for subject, _, object_ in found.triples for end in (subject, object_)}
    assert "emil strand" in ends
    assert not {"example", "общие", "allgemein", "general"} & {*ends, *found.entities}


def statements_of_page(content: str, uri: str = "file:///a.html") -> set[tuple[str, str, str]]:
    [document] = parse_data(content.encode(), uri.rpartition("/")[2].encode(), uri, SplitSettings())
    texts = [PassageText(str(i), passage.title, passage.text) for i, passage in enumerate(document.passages)]
    return {t for extraction in RulesExtractor().extract(texts) for t in extraction.triples if t[1] != MENTION}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (  # a table without a header
            "<tr><td>F1<td>Hineinzoomen<tr><td>F2<td>Herauszoomen<tr><td>Leerzeichen<td>Setze die Position",
            set(),
        ),
        (
            "<tr><td>Name der Abteilung*<td>Der Name der Abteilung<tr><td>Kategorie<td>Die Kategorie der Abteilung",
            set(),
        ),
        (  # a column whose name contains brackets, and keys without letters
            "<tr><th>Taste (1)<th>Bereich<tr><td>◾◽◽<td>Liste der Nutzer<tr><td>Ctrl+▲<td>Menü der Nutzer",
            set(),
        ),
        (  # a long value is prose in its own language
            "<tr><th>Code<th>Parameter<th>Beschreibung<tr><td>G80<td>(X, Y, Z oder U, V, W gelten für Zyklen, je nach der "
            "aktiven Ebene im Programm)<td>Zyklus abbrechen",
            {("g80", "beschreibung", "zyklus abbrechen")},
        ),
        (
            "<tr><th>Preis (netto)<th>Artikel<th>Lager<tr><td>4 Euro<td>Kupferdraht<td>Halle 2",
            {("4 euro", "artikel", "kupferdraht"), ("4 euro", "lager", "halle 2")},
        ),
        (  # an emoji after a name
            "<tr><th>Stufe<th>Wirkung<tr><td>Beliebt 🏆<td>Alle Nutzer kommen wieder",
            {("beliebt", "wirkung", "alle nutzer kommen wieder")},
        ),
    ],
    ids=["keys", "explanations", "symbols", "long value", "brackets", "emoji"],
)
def test_german_table_rows_state_only_values_of_named_columns(table: str, expected: set[tuple[str, str, str]]) -> None:
    intro = (
        "<p>Die folgende Übersicht zeigt alle Angaben, die das Programm auf dieser Seite für die Benutzer anbietet.</p>"
    )
    assert statements_of_page(f"<html lang=de><h1>Angaben</h1>{intro}<table>{table}</table></html>") == expected


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("色彩管理为何非常重要", "屏幕上的颜色与打印出来的颜色常常不同。\n\ndesc: 站在墙壁上的鸟\nframe: 上下"),
        ("印刷", "プリンターの設定を確認します。\n\ninfo: このガイドは削除されました"),
        ("表格", "表格用于展示多条结构类似的数据。\n\nname: '王小虎',\ndate: '2016-05-02',"),
    ],
)
def test_markup_of_a_page_in_another_script_states_nothing(title: str, text: str) -> None:
    [extraction] = RulesExtractor().extract([PassageText("p", title, text)])
    assert {triple for triple in extraction.triples if triple[1] != MENTION} == set()


def test_capitalised_latin_key_in_a_page_of_another_script_is_a_predicate() -> None:
    text = "ボールトの設定を確認します。\n\nWindows: 設定ファイル\nmacOS: 環境設定"
    [extraction] = RulesExtractor().extract([PassageText("p", "ボールトの設定", text)])
    assert ("ボールトの設定", "windows", "設定ファイル") in extraction.triples


@pytest.mark.parametrize(
    ("text", "filler"),
    [
        (
            "Dans l'application Obsidian, l'option est là. Sous Format, le réglage des notes est en anglais.",
            "sous format",
        ),
        ("La aplicación Obsidian tiene notas. En Formato está el ajuste de las notas del usuario.", "en formato"),
        ("사용자는 마우스 오른쪽 버튼으로 메뉴를 봅니다. 마우스 오른쪽 메뉴는 작은 창을 보여 줍니다.", "마우스 오른쪽"),
    ],
)
def test_half_a_phrase_is_no_name(text: str, filler: str) -> None:
    [extraction] = RulesExtractor().extract([PassageText("p", "Obsidian", text)])
    assert filler not in extraction.entities
    assert "obsidian" in extraction.entities
