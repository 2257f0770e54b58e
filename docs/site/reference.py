"""Writes the generated pages of the reference: `python -m docs.site.reference FOLDER`.

None of them is written by hand or kept in the repository. The commands say what they take (`--help`), the configuration's model
and `config.toml` what may be set, and the application what its routes take and give (`GET /openapi.json`). Commands and
configuration are the package's manual pages, in Markdown. Run it with a Python that has hippod.
"""

import json
import sys
from pathlib import Path

from docs.site import http_api
from docs.site.markdown import MarkdownPage

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "systemd" / "package"))

import manual  # noqa: E402  (beside the script that builds the package, which runs it as a file)

GENERATED = {
    "hippoctl.md": manual.client_page,
    "hippod.md": manual.daemon_page,
    "hippod-worker.md": manual.worker_page,
    "configuration.md": manual.configuration_page,
}
HTTP_API, OPENAPI = "http-api.md", "openapi.json"


def write(folder: Path) -> None:
    """Every generated page, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, say in GENERATED.items():
        page = MarkdownPage()
        say(page)
        (folder / name).write_text(str(page), "utf-8")
    document = http_api.document()
    (folder / OPENAPI).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / HTTP_API).write_text(http_api.page(document), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
