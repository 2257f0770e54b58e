"""Backups by URL: only new content is sent, restored content is verified, old backups are deleted."""

import gzip
import json
import shutil
import time
from pathlib import Path

import pyarrow.fs
import pytest

from store import object_store
from store.backup import remote
from store.backup.remote import fetch, send
from store.backup.repository import BackupError, Repository
from store.errors import StoreLocked
from tests.store.backup.s3_server import BreakingProxy, s3_server
from tests.store.small_store import complete, exported, numbered_documents, open_store


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 8), []))
        yield opened


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/away"


def contents(url):
    return sorted((Path(url.removeprefix("file://")) / "objects").rglob("*"))


def restored(url, folder):
    fetch(url, folder)
    with open_store(folder) as opened:
        return exported(opened)


def test_an_interrupted_upload_to_a_mounted_drive_leaves_no_object(url):
    """A later backup recognises an object by its name and length, which a power loss can keep without the content."""
    repository, path = Repository(url), Repository(url).object_path("ab12")

    def pieces():
        yield b"half"
        assert not Path(path).exists()
        raise OSError("the drive is gone")

    with pytest.raises(OSError, match="gone"):
        repository.put(path, pieces())
    assert "ab12" not in repository.objects()
    repository.put(path, [b"whole"])
    assert repository.objects()["ab12"] == 5


@pytest.mark.parametrize("files", [[], "x", {"a": {"digest": 1, "size": 2, "modified_ns": 3, "inode": 4}}])
def test_a_list_with_other_types_is_a_damaged_list(url, files):
    repository = Repository(url)
    content = {"format": 1, "commit": 1, "time": 1.0, "made": 1.0, "files": files}
    name = "20261123T021900.417Z-42.json.gz"
    repository.put(f"{repository._root}/backups/{name}", [gzip.compress(json.dumps(content).encode())])
    with pytest.raises(BackupError, match="cannot be read"):
        repository.read_list(name)


@pytest.mark.slow
def test_only_new_files_are_uploaded_and_every_backup_can_be_restored(store, url, tmp_path, monkeypatch):
    expected = exported(store)
    first = send(store, url)
    assert first.sent_files > 5
    read = []
    digest = remote._digest

    def note(path):
        read.append(path)
        return digest(path)

    monkeypatch.setattr(remote, "_digest", note)
    again = send(store, url)
    # The list of checksums is copied for each backup, because the next commit appends to it.
    assert (again.sent_files, again.sent_bytes, [path.name for path in read]) == (0, 0, ["checksums"])
    store.commit(complete(store, numbered_documents(20, 21), ["d1"]))
    second = send(store, url)
    assert 0 < second.sent_files <= len(read)  # some are equal to existing ones
    assert second.sent_bytes < first.sent_bytes
    assert not (store.folder / remote.SENDING).exists()
    later = exported(store)
    store.compact()
    store.commit(complete(store, numbered_documents(30, 40), []))
    assert restored(url, tmp_path / "new") == later
    assert restored(f"{url}/backups/{first.name}", tmp_path / "old") == expected
    assert not list((tmp_path / "old").glob("backup.*"))


@pytest.mark.slow
def test_expired_backups_are_pruned_and_the_newest_is_kept(store, url, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "ORPHAN_AGE_S", -60.0)
    for number in range(3):
        store.commit(complete(store, numbered_documents(50 + number, 51 + number), []))
        monkeypatch.setattr(time, "time", lambda at=1_800_000_000.0 + 86400 * number: at)
        sent = send(store, url, keep_s=1.5 * 86400)
        store.compact()
    assert sent.pruned == 1
    assert len(Repository(url).lists()) == 2
    monkeypatch.setattr(time, "time", lambda: 1_900_000_000.0)
    sent = send(store, url, keep_s=0)
    assert Repository(url).lists() == [sent.name]
    named = {entry.digest for entry in Repository(url).read_list(sent.name).files.values()}
    assert {path.name for path in contents(url) if path.is_file()} == named
    expected = exported(store)
    assert restored(url, tmp_path / "new") == expected


def test_recent_object_that_no_backup_lists_is_not_pruned(store, url):
    send(store, url)
    other = Path(url.removeprefix("file://")) / "objects" / "ab" / ("ab" * 32)
    other.parent.mkdir(exist_ok=True)
    other.write_text("of a backup that is under way")
    store.commit(complete(store, numbered_documents(50, 51), []))
    time.sleep(0.002)
    assert send(store, url, keep_s=0).pruned == 1
    assert other.exists()


@pytest.mark.slow
def test_restore_of_remote_backup_with_damaged_or_missing_object_is_refused(store, url, tmp_path):
    first = send(store, url)
    expected = exported(store)
    store.commit(complete(store, numbered_documents(20, 21), []))
    second = send(store, url)
    entries = Repository(url).read_list(second.name).files
    older = {entry.digest for entry in Repository(url).read_list(first.name).files.values()}
    name, entry = next((name, each) for name, each in entries.items() if each.digest not in older)
    path = Path(Repository(url).object_path(entry.digest))
    whole = path.read_bytes()
    path.write_bytes(bytes(len(whole)))
    with pytest.raises(BackupError, match=f"{name} was downloaded with wrong content"):
        fetch(url, tmp_path / "new")
    path.unlink()
    with pytest.raises(BackupError, match=f"an incomplete backup: {name}.*choose an older backup"):
        fetch(url, tmp_path / "new")
    assert not (tmp_path / "new" / "documents.lance").exists()
    assert restored(f"{url}/backups/{first.name}", tmp_path / "new") == expected
    # The next backup repairs missing or truncated files.
    kept = min(older & {each.digest for each in entries.values()})
    Path(Repository(url).object_path(kept)).write_bytes(b"")
    assert send(store, url).sent_files == 2
    assert restored(url, tmp_path / "newer") == exported(store)


@pytest.mark.slow
def test_interrupted_restore_resumes_without_fetching_finished_files_again(store, url, tmp_path, monkeypatch):
    send(store, url)
    fetched: list[str] = []

    def download(repository, entry, path, name, really=remote._download):
        if len(fetched) == 4:
            raise BackupError("the power went")
        fetched.append(name)
        really(repository, entry, path, name)

    monkeypatch.setattr(remote, "TRANSFERS", 1)
    with monkeypatch.context() as patched:
        patched.setattr(remote, "_download", download)
        with pytest.raises(BackupError, match="power"):
            fetch(url, tmp_path / "new")
    before = list(fetched)
    finish = remote._download

    def note(*given):
        fetched.append(given[3])
        return finish(*given)

    monkeypatch.setattr(remote, "_download", note)
    assert restored(url, tmp_path / "new") == exported(store)
    assert len(fetched) == len(set(fetched)) > len(before)


def test_a_list_of_files_that_names_a_place_outside_is_refused(store, url, tmp_path):
    sent = send(store, url)
    path = Path(url.removeprefix("file://")) / "backups" / sent.name
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["files"]["../escaped"] = next(iter(content["files"].values()))
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    with pytest.raises(BackupError, match=r"'\.\./escaped'"):
        fetch(url, tmp_path / "new")
    assert not (tmp_path / "new" / "escaped").exists()


def test_backup_errors_name_wrong_url_missing_backup_and_open_store(store, url, tmp_path):
    for wrong in ("ftp://host/x", "s3://", "file://host/x", "s3://bucket/x?y=1"):
        with pytest.raises(BackupError, match="write s3://bucket/prefix"):
            send(store, wrong)
    with pytest.raises(BackupError, match="has no complete backup"):
        fetch(url, tmp_path / "new")
    send(store, url)
    with pytest.raises(BackupError, match=r"has no backup 20.*; its last backups: 20"):
        fetch(f"{url}/backups/20200101T000000.000Z-1.json.gz", tmp_path / "new")
    with pytest.raises(StoreLocked):
        fetch(url, store.folder)
    with pytest.raises(BackupError, match="cancelled"):
        send(store, url, cancelled=lambda: True)


@pytest.fixture(scope="module")
def server():
    with s3_server() as port:
        yield port


@pytest.fixture
def proxy(server, monkeypatch, tmp_path):
    made = BreakingProxy(server)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files = pyarrow.fs.S3FileSystem(endpoint_override=f"127.0.0.1:{server}", scheme="http", allow_bucket_creation=True)
    files.create_dir("memories")
    yield made
    made.close()


@pytest.mark.slow
def test_s3_backup_and_restore_survive_broken_connections(store, proxy, tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "RETRY_PAUSE_S", 0.0)
    url = "s3://memories/of/one"
    store.commit(complete(store, {"long": [("Long", "text 1 " * 40_000, None)]}, []))
    expected = exported(store)
    proxy.breaks, proxy.after = 2, 3000
    first = send(store, url)
    assert (proxy.breaks, proxy.broken) == (0, 2)
    assert first.sent_files > 5
    assert send(store, url).sent_files == 0
    proxy.direction, proxy.breaks = "down", 1
    assert restored(url, tmp_path / "new") == expected
    assert proxy.broken == 3
    # A permanent outage: an error that says so, the store unchanged; the next backup sends the remaining files.
    store.commit(complete(store, numbered_documents(20, 30), []))
    proxy.direction, proxy.breaks, proxy.after = "up", 10**9, 0
    monkeypatch.setattr(object_store, "TRIES", 1)
    monkeypatch.setattr(object_store, "CLIENT_TRIES", 1)
    with pytest.raises(BackupError, match="does not answer, or the connection broke"):
        send(store, url)
    proxy.breaks = 0
    assert len(Repository(url).lists()) == 2
    send(store, url)
    shutil.rmtree(tmp_path / "new")
    assert restored(url, tmp_path / "new") == exported(store)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 3000])
def test_each_request_survives_twelve_broken_connections_in_a_row(store, proxy, tmp_path, monkeypatch, after):
    """The client's own retries, with pauses of seconds, are disabled: hippod must retry.

    After 0 bytes the listings break, some within their headers: such an answer looks like an empty one.
    """
    monkeypatch.setattr(object_store, "RETRY_PAUSE_S", 0.0)
    monkeypatch.setattr(object_store, "CLIENT_TRIES", 1)
    monkeypatch.setattr(object_store, "TRIES", 13)
    monkeypatch.setattr(remote, "TRANSFERS", 1)
    url = f"s3://memories/cut/after-{after}"
    proxy.breaks, proxy.after = 12, after
    send(store, url)
    assert (proxy.breaks, proxy.broken) == (0, 12)
    proxy.direction, proxy.breaks = "down", 12
    assert restored(url, tmp_path / "new") == exported(store)
    assert (proxy.breaks, proxy.broken) == (0, 24)


def test_incomplete_listing_prunes_no_backup(store, url, monkeypatch):
    """A listing without the newer backups would make their contents look unused."""
    monkeypatch.setattr(remote, "ORPHAN_AGE_S", -60.0)
    for number in range(3):
        store.commit(complete(store, numbered_documents(50 + number, 51 + number), []))
        monkeypatch.setattr(time, "time", lambda at=1_800_000_000.0 + 86400 * number: at)
        send(store, url)
    really = Repository.lists
    short = iter([1])
    monkeypatch.setattr(Repository, "lists", lambda self: really(self)[: next(short, None)])
    monkeypatch.setattr(time, "time", lambda: 1_900_000_000.0)
    before = contents(url)
    assert send(store, url, keep_s=0).pruned == 0
    assert contents(url) == before


@pytest.mark.slow
def test_s3_errors_name_missing_bucket_and_missing_backup(store, proxy, tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "RETRY_PAUSE_S", 0.0)
    with pytest.raises(BackupError, match='there is no bucket "nowhere"; create it first'):
        send(store, "s3://nowhere/x")
    with pytest.raises(BackupError, match='there is no bucket "nowhere"'):
        fetch("s3://nowhere/x", tmp_path / "new")
    with pytest.raises(BackupError, match="has no complete backup"):
        fetch("s3://memories/nothing", tmp_path / "new")


def test_access_denied_error_distinguishes_missing_credentials_from_missing_rights(monkeypatch, tmp_path):
    refused = OSError("When listing objects: AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert "No credentials were found: set AWS_ACCESS_KEY_ID" in str(Repository("s3://b/p").failed(refused))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    assert "needs the rights to list, read, write and delete" in str(Repository("s3://b/p").failed(refused))
