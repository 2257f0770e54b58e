"""Sphinx's configuration of the site (`make docs`). Its sources are put together by `assemble.py`."""

import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "hippod"
version = release = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["version"]
author = "the authors of hippod"
copyright = "the authors of hippod; Apache License 2.0"
language = "en"

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "attrs_inline"]
# Headings get the anchors that GitHub gives them, so that one link leads to the same place here and there.
myst_heading_anchors = 4
# "--deep" is an option and no dash.
smartquotes = False
# Every link must lead somewhere, to the anchor; `make docs` turns warnings into errors.
nitpicky = True

html_theme = "furo"
html_title = f"hippod {version}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}
# Without a language, code is text: `console`, `toml`, `json` and `python` are named where they are meant.
highlight_language = "text"
pygments_style, pygments_dark_style = "default", "monokai"
