"""The documents name the code as it is: every file, module, class and function of ours that they name exists, every link leads
somewhere, and the code names documents that exist.

A name in backticks counts as ours when it begins with one of the rooms (`consumers.folder`, `store/lance/layout.py`). A class
alone (`FolderWatcher`) is not checked: it may be a library's. A path with a placeholder is one of data.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.markdown_links import broken

ROOT = Path(__file__).parents[1]
ROOMS = ("consumers", "memory", "store", "daemon", "cli", "tests", "bench", "examples", "systemd", "docs")
DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/README.md"))
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
DOCUMENT = re.compile(r"\bdocs/[\w./-]+\.md\b")
PATH = re.compile(rf"(?:{'|'.join(ROOMS)})/[\w./-]+(?![\w./<…*-])")
DOTTED = re.compile(rf"(?:{'|'.join(ROOMS)})(?:\.[A-Za-z_]\w*)+")


def test_check_reports_names_that_do_not_exist_in_the_code() -> None:
    assert missing("`store/lance/layout.py` and `consumers.folder.FolderWatcher`") == []
    gone = "`store/lance/no_such_file.py`, `consumers.folder.no_such_module`, `store.store.Store.no_such_method`"
    assert missing(gone) == gone.replace("`", "").split(", ")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_code_name_in_a_document_exists(document: str) -> None:
    assert missing((ROOT / document).read_text("utf-8")) == []


@pytest.mark.parametrize("document", [*DOCUMENTS, *EXAMPLES])
def test_every_link_leads_to_a_file_and_a_heading(document: str) -> None:
    assert broken([ROOT / document], Path("/")) == []


def test_check_reports_links_to_missing_files_and_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one), [b](#two), [c](gone.md), [d](https://example.org)\n```\n[e](code.md)\n```\n")
    assert broken([page], Path("/")) == [f"{page}: #two", f"{page}: gone.md"]


def test_the_code_names_documents_that_exist() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")] + [ROOT / "config.toml", ROOT / "Makefile"]
    named = {name: path for path in files for name in DOCUMENT.findall(path.read_text("utf-8"))}
    assert len(named) > 8
    assert {name: str(path) for name, path in named.items() if not (ROOT / name).exists()} == {}


def test_every_module_has_a_docstring() -> None:
    rooms = set(ROOMS) - {"tests"}
    files = [path for room in sorted(rooms) for path in (ROOT / room).rglob("*.py") if path.name != "__init__.py"]
    said = {str(path): ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for path in files}
    assert [path for path, docstring in said.items() if len(docstring.split()) < 3] == []


def missing(text: str) -> list[str]:
    """The paths and dotted names in backticks that are not in the repository."""
    without_blocks = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for quoted in IN_BACKTICKS.findall(without_blocks):
        # NAME stands for what the reader chooses.
        paths = [path for path in PATH.findall(quoted) if "NAME" not in path]
        found += [path for path in paths if not (ROOT / path.rstrip("./")).exists()]
        name = quoted.partition("(")[0]  # a call counts as its function
        if DOTTED.fullmatch(name) and not _is_setting(name) and not _exists(name):
            found.append(name)
    return found


def _is_setting(name: str) -> bool:
    """Whether the name is a key of the configuration (`store.path`), as `config.toml` has it."""
    section, _, key = name.partition(".")
    lines = (ROOT / "config.toml").read_text("utf-8").partition(f"[{section}]")[2].partition("\n[")[0].splitlines()
    return any(re.match(rf"#?\s*{key}\s*=", line) for line in lines)


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module defines."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ROOT.joinpath(*parts[:length])
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if file.is_file():
                rest = parts[length:]
                return not rest or ".".join(rest[:2]) in _definitions(file)
        if module.is_dir() and length == len(parts):
            return True
    return False


@cache
def _definitions(file: Path) -> frozenset[str]:
    """What a module defines or imports at its top, and `Class.member` for its classes."""
    names: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        names |= _names_of(node)
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                names |= {f"{node.name}.{name}" for name in _names_of(member)}
                if isinstance(member, ast.FunctionDef):
                    names |= {
                        f"{node.name}.{target.attr}"
                        for target in ast.walk(member)
                        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
                    }
    return frozenset(names)


def _names_of(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name for alias in node.names}
        case ast.Assign():
            return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()
