"""The language of a passage."""

from unicodedata import normalize

import pytest

from store.text.language import detect_language

TEXTS = {
    "en": "The old lighthouse was rebuilt in stone after the storm, and its keeper stayed for thirty years.",
    "de": "Der alte Leuchtturm wurde nach dem Sturm aus Stein neu gebaut, und sein Wärter blieb dreißig Jahre.",
    "fr": "Le vieux phare a été reconstruit en pierre après la tempête, et son gardien y est resté trente ans.",
    "es": "El viejo faro fue reconstruido en piedra después de la tormenta, y su guardián se quedó treinta años.",
    "it": "Il vecchio faro fu ricostruito in pietra dopo la tempesta, e il suo guardiano vi rimase trent'anni.",
    "pt": "O velho farol foi reconstruído em pedra depois da tempestade, e o seu guarda ficou lá trinta anos.",
    "nl": "De oude vuurtoren werd na de storm van steen herbouwd, en de wachter bleef er dertig jaar.",
    "zh": "旧灯塔在暴风雨之后用石头重建，守塔人在那里住了三十年。",
    "ja": "古い灯台は嵐のあと石で建て直され、灯台守はそこに三十年とどまった。",
    "ru": "Старый маяк после бури был заново построен из камня, и смотритель прожил там тридцать лет.",
    "sv": "Den gamla fyren byggdes upp igen av sten efter stormen, och fyrvaktaren stannade där i trettio år.",
}


@pytest.mark.parametrize("code", TEXTS)
def test_language_of_a_text_is_detected(code):
    assert detect_language(TEXTS[code]) == code


def test_majority_language_of_a_mixed_text_is_detected():
    assert detect_language(f"{TEXTS['de']} {TEXTS['de'][:60]} hello world") == "de"


@pytest.mark.parametrize("text", ["", " ", "42 17 2015", "\ud800", "\x00\x01", "☃ ☃ ☃", "#!/%$"])
def test_text_without_a_recognisable_language_has_none(text):
    assert detect_language(text) == ""


@pytest.mark.parametrize("dirt", ["\x00", "\x1b[0m", "\ud83d", "\ufffe", "\u200b", "\x7f\x85"])
def test_control_characters_do_not_change_the_detected_language(dirt):
    assert detect_language(f"{TEXTS['fr']}{dirt}{TEXTS['fr']}") == "fr"


@pytest.mark.parametrize("code", TEXTS)
def test_language_is_detected_in_decomposed_text(code):
    assert detect_language(normalize("NFD", TEXTS[code])) == code


def test_language_of_a_short_decomposed_sentence_is_detected():
    assert detect_language(normalize("NFD", "École\nL'école de Béziers a été fondée par Hélène Père en 1902.")) == "fr"
