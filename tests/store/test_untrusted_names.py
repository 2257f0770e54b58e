"""Untrusted names stay inside their folder, and no code joins them in another way."""

import ast
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.untrusted_names import UnsafeName, inside, open_inside

ROOT = Path(__file__).parents[2]

OUTSIDE = ["", ".", "..", "/etc/passwd", "a/../b", "../a", "a/..", "a//b", "a/", "/", "a/./b", "a\0b", "//a"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_name_that_leads_outside_the_folder_is_refused(tmp_path, name):
    for create in (False, True):
        with pytest.raises(UnsafeName):
            open_inside(tmp_path, name, create=create)
    with pytest.raises(UnsafeName):
        inside(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@given(st.text(alphabet=st.sampled_from("ab./\\~ \0"), max_size=12))
def test_accepted_names_lie_inside_the_folder(name):
    root = Path("/nonexistent/root")
    try:
        path = inside(root, name)
    except UnsafeName:
        return
    assert os.path.normpath(path).startswith(f"{root}/")


def test_links_and_special_files_are_refused_anywhere_in_a_path(tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "secret").write_text("secret")
    (root / "file").write_text("text")
    (root / "folder").symlink_to(other)
    (root / "link").symlink_to(other / "secret")
    (root / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(root / "socket"))
        for name in ("folder/secret", "folder/new", "link", "dangling", "pipe", "socket", "file/below"):
            with pytest.raises(UnsafeName):
                inside(root, name)
            with pytest.raises((UnsafeName, OSError)):
                os.close(open_inside(root, name))
            with pytest.raises(OSError):
                os.close(open_inside(root, name, create=True))
    assert sorted(each.name for each in other.iterdir()) == ["secret"]
    assert not (tmp_path / "absent").exists()


def test_files_are_created_privately_and_read_inside_the_folder(tmp_path):
    before = os.umask(0)
    try:
        with os.fdopen(open_inside(tmp_path, "a/b/c", create=True), "w") as file:
            file.write("text")
    finally:
        os.umask(before)
    assert inside(tmp_path, "a/b/c").read_text() == "text"
    with os.fdopen(open_inside(tmp_path, "a/b/c")) as file:
        assert file.read() == "text"
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("a", "a/b", "a/b/c")] == [
        "0o700",
        "0o700",
        "0o600",
    ]
    with pytest.raises(FileExistsError):
        open_inside(tmp_path, "a/b/c", create=True)


def test_root_folder_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    os.close(open_inside(tmp_path / "root", "a", create=True))
    assert inside(tmp_path / "root", "a").is_file()


# No other join in the modules that store or accept files.

ROOMS = (
    "store/backup",
    "store/backup_layout.py",
    "store/upgrade_backup.py",
    "store/checkpoint",
    "store/index/part.py",
    "store/lance",
    "store/log",
    "store/maintenance",
    "store/sessions.py",
    "store/store.py",
    "store/durable_files.py",
    "store/private_files.py",
    "consumers/parsing",
    "consumers/records",
    "daemon/backfill",
    "daemon/pipeline",
    "daemon/services",
    "daemon/parser_pool",
    "daemon/observe/crashes.py",
    "cli/client",
    "cli/document_files.py",
)

TRUSTED = {
    "names made of constants, numbers and words of the code": {
        "store/backup/local.py": [
            "parent / name",
            "store.folder / folder",
        ],
        "store/index/part.py": [
            "before / file.name",
            "self.place / f'{name}.arrow'",
            "self.place / f'{name}.npy'",
        ],
        "store/checkpoint/writer.py": ["folder / f'{PREFIX}{commit}'", "self._folder / f'{PREFIX}{commit.seq}'"],
        "store/durable_files.py": [
            "path.with_name(path.name + PART)",
            "store / (name if number == 1 else f'{name}-{number}')",
        ],
        "store/lance/layout.py": [
            "store / f'{table}{TABLE_SUFFIX}'",
            "table / folder",
        ],
        "store/log/write_ahead_log.py": [
            "self._folder / f'{commit:020}-{secrets.token_hex(_SALT_BYTES)}{SUFFIX}'",
            "folder / f'{path.stem}-{at}{SUFFIX}'",
        ],
        "daemon/backfill/shard_reader.py": ["Path(place, name)"],
        "cli/client/http.py": ["folder / f'{template}.service'"],
        "consumers/parsing/programs/libreoffice.py": ["Path(folder, f'document.{ending}')"],
    },
    "the name of an entry, from a listing of a folder": {
        "store/backup/local.py": ["aside / old.name", "folder / new.name"],
        "store/lance/versions.py": ["store / FOLDER / f'{table}-{manifest.name}'"],
        "store/lance/checksums.py": ["self._store / name", "store / name"],
        "store/private_files.py": ["store / name"],
    },
    "a member of an archive that is read in memory": {
        "consumers/parsing/formats/office/package.py": [
            "posixpath.join('/', folder, unquote(target))",
            "posixpath.join(folder, '_rels', f'{name}.rels')",
        ],
        "consumers/parsing/formats/epub.py": [
            "posixpath.join(folder, unquote(address))",
            "posixpath.join(folder, unquote(item.get('href') or ''))",
        ],
    },
    "numbers": {
        "cli/client/uploads.py": ["at * last / max(COMPARED_DOCUMENTS - 1, 1)"],
        "daemon/services/provenance.py": ["passages * (ms or 0.0) / 1000 / self._at_once"],
        "daemon/pipeline/commit/content_index.py": ["sum((ms for _, ms in times)) / count"],
        "consumers/parsing/formats/pdf/document.py": [
            "(right - left) * (top - bottom) / max(width * height, 1.0)",
            "_MAX_PIXELS / max(width * height, 1.0)",
        ],
        "consumers/parsing/ocr/tesseract.py": [
            "sum((each.confidence * len(each.text) for each in paragraphs)) / letters",
            "sum((float(row[_CONFIDENCE]) * len(row[_TEXT].strip()) for row in members)) / letters",
        ],
        "consumers/parsing/formats/csv.py": ["seen / widths.total()"],
        "consumers/parsing/formats/markup/boilerplate.py": ["self.link_chars / self.chars"],
        "daemon/services/passage_languages.py": ["n / len(sample)"],
        "daemon/services/progress.py": [
            "(done - before) / (now - since)",
            "done / total",
            "max(total - done, 0) / rate",
        ],
        "store/maintenance/synonym_recall.py": ["self.found / self.pairs"],
    },
}
"""Joins without the function: the reason, by file."""


def joins(tree: ast.AST):
    """Yields expressions that look like a join of a path with something that is not constant, as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = [node.right]
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            joins_first = name in ("joinpath", "with_name", "with_stem", "with_segments")
            joins_more = name in ("join", "Path", "PurePath", "PosixPath")
            if not (joins_first or joins_more):
                continue
            if name == "join" and not ast.unparse(node.func).endswith("path.join"):
                continue
            parts = node.args if joins_first else node.args[1:]
        else:
            continue
        if any(not is_constant(part) for part in parts):
            yield ast.unparse(node)


def is_constant(part: ast.expr) -> bool:
    """Whether the expression is a literal or a module's constant."""
    if isinstance(part, ast.Constant):
        return True
    name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
    return name.isupper()


def test_every_join_of_a_path_and_an_untrusted_name_uses_inside():
    files = [
        path for room in ROOMS for path in ([ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py"))
    ]
    found = {
        (path.relative_to(ROOT).as_posix(), join)
        for path in files
        for join in joins(ast.parse(path.read_text("utf-8")))
    }
    trusted = {(file, join) for by_file in TRUSTED.values() for file, these in by_file.items() for join in these}
    assert sorted(found - trusted) == [], (
        "join through store.untrusted_names.inside, or say here why the name is trusted"
    )
    assert sorted(trusted - found) == [], "these joins are gone: take them out"


@pytest.mark.parametrize(
    "code",
    [
        "folder / name",
        "folder / f'{name}.x'",
        "Path(a, b)",
        "os.path.join(a, b)",
        "a.joinpath(b)",
        "a.with_name(f'{b}')",
    ],
)
def test_each_kind_of_join_is_seen(code):
    assert list(joins(ast.parse(code))) == [ast.unparse(ast.parse(code))]


@pytest.mark.parametrize(
    "code", ["folder / 'x'", "folder / HEAD", "inside(folder, name)", "Path(a)", "', '.join(a)", "a.with_name('b')"]
)
def test_joins_with_constants_and_through_inside_are_allowed(code):
    assert list(joins(ast.parse(code))) == []
