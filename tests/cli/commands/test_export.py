"""`export`: a file appears whole or not at all."""

from pathlib import Path

from tests.cli.scripted_daemon import Here, Reply, Scripted, problem

LINES = [b'{"kind": "phrase", "text": "a"}\n', '{"kind": "phrase", "text": "ü"}\n'.encode()]


def test_export_writes_the_daemons_answer_to_the_file(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    ended = here("export", "memory.jsonl")
    assert (ended.code, ended.out) == (0, "2 lines, 65 B, in memory.jsonl\n")
    assert (tmp_path / "memory.jsonl").read_bytes() == b"".join(LINES)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.jsonl"]


def test_an_export_that_breaks_off_leaves_the_old_file(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=[LINES[0], ConnectionError()])
    (tmp_path / "memory.jsonl").write_text("old")
    ended = here("export", "memory.jsonl")
    assert (ended.code, "closed the connection" in ended.err) == (3, True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("memory.jsonl", "old")]


def test_an_export_that_is_refused_makes_no_file(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = problem("busy", 503, "4 exports are under way.")
    ended = here("export", "memory.jsonl")
    assert (ended.code, ended.err) == (1, "hippoctl: 4 exports are under way.\n")
    assert list(tmp_path.iterdir()) == []


def test_permissions_and_links_of_the_old_file_stay(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    assert here("export", "link").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"".join(LINES)
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_unwritable_export_path_is_named(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    ended = here("export", "absent/memory.jsonl")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "hippoctl: absent/memory.jsonl cannot be written: No such file or directory.\n"


def test_export_to_a_folder_or_a_full_device_names_the_reason(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    (tmp_path / "folder").mkdir()
    for name, reason in (("folder", "Is a directory"), ("/dev/full", "No space left on device")):
        ended = here("export", name)
        assert (ended.code, ended.out, ended.err) == (1, "", f"hippoctl: {name} cannot be written: {reason}.\n")


def test_export_to_a_dash_writes_only_the_export_to_standard_output(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    for arguments in (["export", "-"], ["export", "-", "--json"]):
        assert here(*arguments).out.encode() == b"".join(LINES)
    scripted.answers["GET /v1/export"] = Reply(pieces=[LINES[0], ConnectionError()])
    assert here("export", "-", "--json").out.encode() in (b"", LINES[0])


def test_export_to_an_archive_file_name_is_a_usage_error(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/export"] = Reply(pieces=LINES)
    for name in ("memory.zip", "memory.JSONL.GZ", "memory.tar"):
        ended = here("export", name)
        assert ended.code == 2 and "no archive is written" in ended.err
    assert list(tmp_path.iterdir()) == []
    assert here("export", "memory.zip", "--format", "jsonl").code == 0
