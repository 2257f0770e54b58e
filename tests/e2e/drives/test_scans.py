"""A scan waits for Tesseract; hippod reads it, without a restart, as soon as the program is installed."""

from pathlib import Path
from shutil import which

import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import until

TESSERACT = which("tesseract")
pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(TESSERACT is None, reason="Tesseract is not installed (Debian: tesseract-ocr)"),
]


def test_a_scan_is_read_when_tesseract_becomes_available(
    hippo: Hippo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    daemon = hippo(schedule={"retry": 1.0, "rescan": "off"}, parsing={"ocr_languages": ["eng"]})
    daemon.write("note.md", "The keeper of the quay is Voss.")
    image = Image.new("L", (1200, 300), 255)
    ImageDraw.Draw(image).text((60, 100), "Sabine Rell ground the first lens", fill=0, font=ImageFont.load_default(48))
    scan = daemon.uri("letter.png")
    image.save(daemon.drive / "letter.png")
    daemon.start().wait()
    assert daemon.status()["skipped"] == {"needs Tesseract": 1}
    assert "install the package tesseract-ocr" in daemon.documents()[scan]["error"]
    assert TESSERACT is not None
    (programs / "tesseract").symlink_to(TESSERACT)
    until(lambda: daemon.documents()[scan]["state"] == "indexed", "the scan is read", patience_s=120)
    document = daemon.documents()[scan]
    [entry] = document["left_out"]
    assert (
        entry["kind"] == "recognised" and "Tesseract 5" in entry["text"] and "(eng), mean confidence 9" in entry["text"]
    )
    passage = daemon.query("first lens of Sabine Rell", "bm25", k=1)[0]
    assert passage["location"] == {"page": 1} and "Sabine Rell ground the first lens" in passage["text"]
    daemon.restart().wait()
    assert daemon.documents()[scan] == document  # the position counts as read: no picture is read again
