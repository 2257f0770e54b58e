"""hippod's parsers compared with another program or library for each format, on real files.

The files are samples from the source packages in `SAMPLES` and from the environment, or those in the folder
`HIPPOD_BENCH_READERS`. The published figures also include test files from Debian's source packages of Apache POI, LibreOffice,
Gnumeric, Calligra, AbiWord, Calibre, pandoc, notmuch, public-inbox, Okular, UnRTF and others. The other readers are installed
commands, or libraries in their own environment (`bench.support.second_extractors`). Words are compared after normalisation:
Unicode's NFKC (ligatures become letters), lower case, no soft hyphens; words divided by a hyphen at the end of a line are
joined. Words are runs of letters and digits, or a Chinese or Japanese character.

- missing: words of the other reader, counted with repetitions, that hippod has in no passage, title, property, location or
  account of omissions.
- invented: distinct words of hippod's passages that neither the other reader nor the file's own content has, such as two words
  without the space between them. Repetitions are not counted, because names of columns repeat by design. hippod's own labels
  ("Slide 3", "Comment by") do not count.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.support.data import ROOT
from bench.support.scanned_pages import encoded, scanned_pages
from bench.support.second_extractors import EXTRACTORS
from bench.support.tables import table
from consumers.parsing import Limits
from consumers.parsing.parse_file import parse_data
from consumers.parsing.programs.installed import OCR, find_programs
from consumers.splitting import SplitSettings

SAMPLES = (
    "agate==1.14.2", "csvkit==2.2.0", "flanker==0.9.11", "html2text==2025.4.15", "nbconvert==7.17.2", "odfpy==1.4.1",
    "pikepdf==10.18.0", "pyexcel-ods==0.6.0", "pyexcel-xlsx==0.6.1", "pysrt==1.1.2", "python-docx==1.2.0", "python-pptx==1.0.2",
    "readability-lxml==0.9", "tabula-py==2.10.0", "talon==1.4.4", "trafilatura==2.3.1", "webvtt-py==0.6.0",
)  # fmt: skip
READERS = (
    "beautifulsoup4==4.15.0", "docx2python==3.7.1", "EbookLib==0.20", "extract-msg==0.57.0", "mail-parser==4.8.0",
    "odfpy==1.4.1", "pdfminer.six==20260107", "pysubs2==1.8.1", "python-calamine==0.9.1", "python-pptx==1.0.2",
    "striprtf==0.0.35", "xlrd==2.0.2",
)  # fmt: skip
TARGET = 0.005
MOST_FILES = 120
"""Maximum number of files per format, in the order of their names."""
LARGEST_BYTES = 2_000_000
REASONS = {
    r"(jo|kampo|simple3)\.pdf$": "vertical text, which PDFium does not read: the account counts its pieces",
    r"nlp2004slides\.pdf$": "page numbers, which hippod counts; the other reader joins words of columns",
    r"(f1040nr|naacl06-shinyama|data_dtype|kjsfunctionstest|jbig2global)\.pdf$": "the other reader joins or splits words",
    r"(additionalFormActions|simpleCalculate|pdf-doc)\.pdf$": "the other reader omits comments and values of forms",
    r"test_(latin1|utf16_big|utf16_little)\.csv$": "the other reader decodes every file as UTF-8",
    r"comments-rich-para\.docx$": "the other reader omits comments with links",
    r"(num-having-numbering-part|shp-inline-shape-access)\.docx$": "the other reader omits charts and numbers of lists",
    r"(2129393649|fdo77129|tdf135413|notes|table_captions_no_field|unicode)\.docx$": "marks of the other reader",
    r"forcepoint92\.doc$": "a damaged file",
    r"\.doc$": "codes of fields (PAGE, HYPERLINK), which the other reader gives, or another code page",
    r"(tdf131269|tdf93124)\.ppt$": "the other reader omits texts of tables and shapes",
    r"\.ppt$": "names of templates, which the other reader gives",
    r"(/cht-[\w-]+|tdf106217|tdf115107-2)\.pptx$": "the other reader omits axes and legends, and converts values of charts",
    r"/(ph-populated-placeholders|shp-[\w-]+|test_slides|smartart-[\w-]+)\.pptx$": "the other reader omits diagrams",
    r"/(datefuns|mathfuns|operator|yalta2008)\.xls$": "the other reader writes numbers and times in another form",
    r"/dg-text\.xls$": "the other reader omits text boxes",
    r"tdf134817_HeaderFooter\w+\.xlsx$": "the other reader omits headers and footers",
    r"/(FormatChoice|NumberFormatApprox)Tests\.xlsx$": "the other reader omits formulas without a stored result",
    r"/(imageslabels|tdf10894[49]\w+|tdf113289|endnote|tdf136620|xscriptprovider)\.odt$": "the other reader joins notes, "
    "captions and lines with the words before them",
    r"(ooo96040-2|CalligraOoxml)\.odt$": "a contents table that is longer than the account quotes",
    r"\.odt$": "a table's name that a program made up",
    r"emb_spreadsheet\.odp$": "the other reader omits embedded tables and gives the name of a slide that has a title",
    r"(/standard_replies/\w+|reply-quotations-share-block|charset|v1\.0\.0|alpine|encrypted-signed|mbox-attachment)\.eml$":
        "the other reader rewrites dates",
    r"\.eml$": "the other reader does not decode headers and bodies in other encodings",
    r"(chinese-traditional|cyrillic_message)\.msg$": "the other reader decodes it in another code page",
    r"(unsent|attachment_msg_pdf)\.msg$": "the other reader omits the date, or attached messages",
    r"/(836|redline|emfpict)\.rtf$": "the other reader gives deleted text, and ignores code pages and fields",
    r"docs/api/\w+\.rst$": "a list that is longer than the account quotes",
    r"signedmail\.mbox$": "the other reader omits attached texts",
    r"(layout|mozilla\.org[\w.]*)\.html$": "a menu or footer that is longer than what the account quotes",
    r"(demo|su[bp]_tag)\.html$": "the other reader takes subscripts for words",
    r"features\.epub$": "the other reader takes spans for words",
    r"\.(srt|vtt)$": "the other reader keeps comments and marks of times",
    r"\.ipynb$": "what the code printed is longer than what the account quotes",
    r"writer\.fb2$": "superscripts, which the other reader marks, and words without a space in the file",
    r"-reader\.(rst|wiki)$|writer\.(rst|org)$|select-tags\.org$": "superscripts and formulas, which the other reader marks",
    r"\.rst$": "the other reader numbers the items of lists and names directives (note, image)",
    r"blank\.msg$": "the other reader omits the date",
}  # fmt: skip
"""The reason why a file exceeds the target, by a pattern of its path."""
_BROKEN = re.compile(r"(\w)-[ \t]*\n\s*(\w)")
_LABEL = re.compile(r"^Slide \d+$|^Comment(?: on [A-Z]+\d+)?(?: by [^:\n]*)?: |(?<= › )Slide \d+$", re.MULTILINE)
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|(?:(?![\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])[^\W_])+"
)
"""A run of letters and digits. Chinese and Japanese have no spaces, so each character is a word."""


def run(results: dict[str, Any]) -> str:
    given = os.environ.get("HIPPOD_BENCH_READERS")
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(given) if given else _download(Path(folder))
        python = os.environ.get("HIPPOD_BENCH_READERS_PYTHON") or _environment(Path(folder))
        compared = list(_compare(_files(samples), python, samples))
    results["readers"] = compared
    results["ocr"] = recognised = dict(_recognised_shares())
    return f"{_table(compared)}\n\n{_exceptions(compared)}\n\n{_ocr_table(recognised)}"


def _recognised_shares() -> Iterator[tuple[str, float]]:
    """Yields (kind of page, share of its words that OCR recognises); nothing without Tesseract."""
    limits = Limits(ocr="now", programs=find_programs("auto", ("eng",)), program_seconds=300)
    if OCR not in limits.programs:
        return
    for kind, page in scanned_pages().items():
        found: set[str] = set()
        for document in parse_data(encoded({kind: page}, "PDF"), b"a.pdf", "file:///a.pdf", SplitSettings(), limits):
            found.update(word for passage in document.passages for word in _WORD.findall(passage.text.casefold()))
        yield kind, sum(word in found for word in page.words) / len(page.words)


def _ocr_table(shares: dict[str, float]) -> str:
    if not shares:
        return "OCR: Tesseract is not installed."
    return table(("page, read by OCR", "words recognised"), [(kind, f"{share:.1%}") for kind, share in shares.items()])


def _download(folder: Path) -> Path:
    """Returns the folder of the unpacked source packages. The packages' build code is not executed."""
    target = folder / "samples"
    for package in SAMPLES:
        options = [
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--no-build-isolation",
            "--dest",
            str(folder),
            package,
        ]
        subprocess.run([sys.executable, "-m", "pip", "download", *options], check=False, timeout=300)
    target.mkdir()
    for archive in folder.glob("*.tar.gz"):
        subprocess.run(["tar", "xzf", str(archive), "-C", str(target)], check=True)
    return target


def _environment(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "environment")], check=True)
    python = str(folder / "environment" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *READERS], check=True, timeout=600)
    return python


def _files(samples: Path) -> list[Path]:
    """Returns at most `MOST_FILES` files of each format, including HTML pages and mails of the installed packages."""
    installed = Path(json.__file__).parent.parent
    kept: dict[str, list[Path]] = defaultdict(list)
    found = [*sorted(samples.rglob("*")), *sorted(Path(sys.prefix).rglob("*.html")), *sorted(installed.rglob("*.eml"))]
    for path in found:
        ending = path.suffix.lower().removeprefix(".")
        if ending in EXTRACTORS and path.is_file() and 0 < path.stat().st_size <= LARGEST_BYTES:
            kept[ending].append(path)
    return [path for paths in kept.values() for path in paths[:MOST_FILES]]


def _compare(paths: list[Path], python: str, samples: Path) -> Iterator[dict[str, Any]]:
    script = ROOT / "bench/support/second_extractors.py"
    given = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([python, str(script)], input=given, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        other = json.loads(line)
        path = Path(other["path"])
        name = str(path.relative_to(samples)) if path.is_relative_to(samples) else path.name
        yield {"file": name, "format": path.suffix.lower()[1:], "by": other["by"], **_counts(path, other)}


def _counts(path: Path, other: dict[str, Any]) -> dict[str, Any]:
    limits = Limits(programs=find_programs("off"), program_seconds=120)
    documents = list(parse_data(path.read_bytes(), path.name.encode(), path.as_uri(), SplitSettings(), limits))
    errors = [document.error for document in documents if document.error]
    if "error" in other or (errors and len(errors) == len(documents)):
        return {"refused": errors[0] if errors else "", "other_refused": other.get("error", "")}
    kept, shown = Counter[str](), Counter[str]()
    for document in documents:
        passages = "\n".join(f"{passage.title}\n{passage.text}" for passage in document.passages)
        account = "\n".join(omission.text for omission in document.left_out)
        places = " ".join(str(passage.location) for passage in document.passages)
        shown += _words(_LABEL.sub("", passages))
        kept += _words(f"{passages}\n{account}\n{document.title}\n{document.metadata}\n{places}")
    theirs = _words(other["text"])
    missing = {word: count - kept[word] for word, count in theirs.items() if count > kept[word]}
    # A word is not lost if hippod only has it fewer times (a table's header, a statement for many rows).
    lost = {word: count for word, count in missing.items() if not kept[word]}
    content = _words(other["content"])
    invented = [word for word in shown if word not in theirs and word not in content]
    return {
        "words": theirs.total(),
        "missing": sum(lost.values()),
        "fewer": sum(missing.values()) - sum(lost.values()),
        "kinds": len(shown),
        "invented": len(invented),
        "examples": {"missing": sorted(lost)[:8], "invented": invented[:8]},
    }


def _words(text: str) -> Counter[str]:
    text = unicodedata.normalize("NFKC", text).replace("\u00ad", "").casefold()
    return Counter(_WORD.findall(_BROKEN.sub(r"\1\2", text)))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _table(compared: list[dict[str, Any]]) -> str:
    lines: list[tuple[object, ...]] = []
    for name in EXTRACTORS:
        rows = [each for each in compared if each["format"] == name and "words" in each]
        if rows:
            totals = {key: sum(row[key] for row in rows) for key in ("words", "missing", "kinds", "invented")}
            missing = _share(totals["missing"], totals["words"])
            shares = f"{missing:.2%}", f"{_share(totals['invented'], totals['kinds']):.2%}"
            above = sum(map(_is_above, rows))
            lines.append((name, len(rows), rows[0]["by"], f"{totals['words']:,}", *shares, above))
    heads = ("format", "files", "compared with", "words", "missing", "invented", "files above 0.5 %")
    return table(heads, lines)


def _is_above(row: dict[str, Any]) -> bool:
    return _share(row["missing"], row["words"]) > TARGET or _share(row["invented"], row["kinds"]) > TARGET


def _exceptions(compared: list[dict[str, Any]]) -> str:
    lines = []
    for row in compared:
        if "words" in row and _is_above(row):
            reason = next((reason for end, reason in REASONS.items() if re.search(end, row["file"])), "")
            shown = reason or f"not explained: {row['examples']}"
            counts = f"{row['missing']} of {row['words']}", f"{row['invented']} of {row['kinds']}"
            lines.append((row["file"], *counts, shown))
    return table(("file", "missing", "invented", "reason"), lines)
