"""Symbolic links are refused, or followed if the settings say so."""

from functools import partial

from tests.consumers.folder.support import Daemon, Folder, digest, until, uri


def has_digests(daemon: Daemon, expected: dict[str, str]) -> bool:
    return daemon.digests == expected


def test_symbolic_links_are_refused_once_each_by_default(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"a")
    (folder.root / "to-dir").symlink_to(outside)
    daemon = folder.scanned()
    (folder.root / "to-file").symlink_to(outside / "a")
    (folder.root / "to-nothing").symlink_to("nowhere")
    until(lambda: len(daemon.refused) == 3)
    folder.rescan()
    assert len(daemon.events) == 3
    assert all(
        "follow_symlinks = true" in event.refusal.reason and not event.refusal.may_recover
        for event in daemon.refused.values()
    )


def test_followed_links_lead_to_files_and_directories_outside(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "a").write_bytes(b"a")
    (folder.root.parent / "file").write_bytes(b"file")
    daemon = folder.scanned(follow_symlinks=True)
    (folder.root / "dir").symlink_to(outside)
    (folder.root / "link").symlink_to(folder.root.parent / "file")
    wanted = {uri(folder.root / "dir/sub/a"): digest(b"a"), uri(folder.root / "link"): digest(b"file")}
    until(lambda: daemon.digests == wanted)
    (outside / "sub" / "b").write_bytes(b"b")
    (folder.root.parent / "file").write_bytes(b"edited")
    wanted |= {uri(folder.root / "dir/sub/b"): digest(b"b"), uri(folder.root / "link"): digest(b"edited")}
    until(lambda: daemon.digests == wanted)
    (folder.root / "dir").unlink()
    until(lambda: set(daemon.digests) == {uri(folder.root / "link")})
    (folder.root.parent / "file").unlink()
    until(lambda: uri(folder.root / "link") in daemon.refused)
    assert "a symbolic link to nothing" in daemon.refused[uri(folder.root / "link")].refusal.reason


def test_a_change_is_reported_for_every_link_to_the_file(folder: Folder) -> None:
    target = folder.root.parent / "file"
    target.write_bytes(b"file")
    links = [folder.root / name for name in ("one", "two", "three")]
    for link in links:
        link.symlink_to(target)
    daemon = folder.scanned(follow_symlinks=True)
    for content in (b"edited", b"edited once more"):
        target.write_bytes(content)
        expected = {uri(link): digest(content) for link in links}
        until(partial(has_digests, daemon, expected))
    links.pop(0).unlink()
    until(lambda: len(daemon.digests) == 2)
    target.write_bytes(b"edited again")
    until(lambda: daemon.digests == {uri(link): digest(b"edited again") for link in links})


def test_circular_symbolic_links_end(folder: Folder) -> None:
    (folder.root / "a" / "b").mkdir(parents=True)
    (folder.root / "a" / "f").write_bytes(b"f")
    (folder.root / "a" / "b" / "up").symlink_to("../..")
    (folder.root / "a" / "b" / "self").symlink_to("self")
    for one in ("x", "y", "z"):
        (folder.root / one).mkdir()
        for other in ("x", "y", "z"):
            (folder.root / one / f"to-{other}").symlink_to(f"../{other}")
    daemon = folder.scanned(follow_symlinks=True)
    assert daemon.digests == {uri(folder.root / "a/f"): digest(b"f")}
    assert len(daemon.refused) == 11
    assert "followed already" in daemon.refused[uri(folder.root / "a/b/up")].refusal.reason
    assert "circle" in daemon.refused[uri(folder.root / "a/b/self")].refusal.reason


def test_second_link_to_a_directory_is_followed_after_the_first_is_removed(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"f")
    (folder.root / "one").symlink_to(outside)
    (folder.root / "two").symlink_to(outside)
    daemon = folder.scanned(follow_symlinks=True)
    assert set(daemon.digests) == {uri(folder.root / "one/f")}
    (folder.root / "one").unlink()
    until(lambda: set(daemon.digests) == {uri(folder.root / "two/f")})
    (outside / "g").write_bytes(b"g")
    until(lambda: set(daemon.digests) == {uri(folder.root / "two/f"), uri(folder.root / "two/g")})


def test_directory_replaced_by_a_link_loses_its_documents(folder: Folder) -> None:
    (folder.root / "dir").mkdir()
    (folder.root / "dir" / "f").write_bytes(b"f")
    daemon = folder.scanned()
    (folder.root / "dir").rename(folder.root.parent / "elsewhere")
    (folder.root / "dir").symlink_to(folder.root.parent / "elsewhere")
    until(lambda: set(daemon.refused) == {uri(folder.root / "dir")} and not daemon.digests)
