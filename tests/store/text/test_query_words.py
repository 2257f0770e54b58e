"""Words that only mark a query as a question are not searched for."""

import numpy as np
import pytest

from store.index.words.postings import Postings
from store.text.query_words import content_words, query_language

QUESTIONS = {
    "de": ("Womit wandelt man eine Textdatei in eine andere um?", ["wandelt", "textdatei", "andere"]),
    "fr": (
        "Comment quitter vim sans enregistrer les modifications ?",
        ["quitter", "vim", "enregistrer", "modifications"],
    ),
    "es": ("¿Cómo se cambia la contraseña de un grupo?", ["cambia", "contraseña", "grupo"]),
    "it": ("Con quale comando si cambia la password di un gruppo?", ["comando", "cambia", "password", "gruppo"]),
    "pt": ("Qual é o comando que muda a senha de um grupo?", ["comando", "muda", "senha", "grupo"]),
    "nl": (
        "Met welke opdracht wijzigt men het wachtwoord van een groep?",
        ["opdracht", "wijzigt", "wachtwoord", "groep"],
    ),
    "zh": ("怎样创建并启用交换空间？", ["创建", "启用", "用交", "交换", "换空", "空间"]),
    "en": ("How is a group's password changed?", ["how", "is", "a", "group", "s", "password", "changed"]),
}


@pytest.mark.parametrize("code", QUESTIONS)
def test_question_words_and_function_words_of_a_language_are_left_out(code: str) -> None:
    query, words = QUESTIONS[code]
    assert content_words(query) == tuple(words)
    assert query_language(query) == code


def test_a_query_of_function_words_alone_keeps_them() -> None:
    for query in ("wie wo was", "什么", "?", ""):
        assert content_words(query) == tuple(word for word in ("wie", "wo", "was", "什么") if word in query)


def test_an_english_question_with_a_foreign_name_is_english() -> None:
    for query in ("Who is the author of Die Verwandlung?", "When was the film La Haine released?", "die hard 2"):
        assert content_words(query) == tuple(query.lower().rstrip("?").split())


def test_latin_words_in_a_chinese_query_are_kept() -> None:
    assert content_words("怎样在 Linux 上运行 Windows 程序？") == ("linux", "上运", "运行", "windows", "程序")
    assert content_words("LVM2 是什么？") == ("lvm2",)


def test_chinese_question_words_do_not_match_passages() -> None:
    found = Postings()
    texts = [
        "怎样在命令行写入媒介，怎样在别处写入。",
        "为系统创建交换空间，然后启用交换分区。",
        *["面包师在日出之前揉面。"] * 8,
    ]
    length = sum(found.extend(row, text) for row, text in enumerate(texts))
    scores = found.scores("怎样创建并启用交换空间？", np.ones(len(texts), np.bool_), length)
    assert scores.argmax() == 1
    assert scores[0] == 0
