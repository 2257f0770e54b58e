"""Checks the store without opening it: its lock, permissions, format, encoder, checkpoint, and the free space on its disk."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from consumers.splitting import SplitSettings
from daemon.config import Config
from daemon.config.store_settings import cannot_open, choose_encoder, split_of_store
from daemon.config_types.mounts import NETWORK_FILE_SYSTEMS, mount_of
from daemon.contract.finding import ASK_ROOT, Finding, not_visible
from daemon.doctor.access_rights import closed, nearest
from daemon.doctor.machine import clock
from daemon.observe.resource_use import bytes_below
from memory.encoder.calibration import known_calibration
from memory.encoder.packaged_model import PACKAGED_MODELS
from store.backup_layout import RESTORING
from store.checkpoint.files import PREFIX, CheckpointUnusable, SavedCheckpoint, newest
from store.errors import RESTORE, StoreDamaged, describe_error, refusal
from store.lance.layout import table_folder
from store.lance.schema import FORMAT
from store.log.store_lock import lock_owner
from store.log.store_summary import NoCommits, StoreSummary, summarize_store
from store.reencode.new_vectors import target_of
from store.types import SynonymRule
from store.upgrade_backup import kept_until, upgrade_backups

OLD_CHECKPOINT_COMMITS = 2000
"""A start applies this many commits after a checkpoint within seconds."""
FULL_BYTES = 100 << 20
"""Below this number of free bytes, commits fail now or soon."""
SPARE_BYTES = 1 << 30
"""Bytes that should stay free, however small the store is."""
FEWEST_INODES, FEW_INODES = 1_000, 10_000
"""Numbers of free inodes: below the first number the check fails, below the second it warns. A commit creates dozens of files;
rewriting a table creates hundreds."""


def store(config: Config) -> Iterator[Finding]:
    folder = config.store.path
    shut = closed(folder)
    others = shut is not None and shut.stat().st_uid != os.geteuid()
    yield not_visible("store directory", folder) if others else writable(folder)
    kind = mount_of(folder).type
    if kind in NETWORK_FILE_SYSTEMS:
        hint = "move it to a local disk ([store] path): locks and syncing are not reliable there"
        yield Finding("store", "fail", f"{folder} is on a network drive ({kind})", hint)
    if shut is not None:
        return
    if not table_folder(folder, "commits").is_dir():
        yield Finding("store", "ok", f"{folder} contains no store yet")
        return
    yield lock(folder)
    if os.access(table_folder(folder, "commits"), os.R_OK | os.X_OK, effective_ids=True):
        yield from contents(config, folder)
    else:
        yield not_visible("store", table_folder(folder, "commits"))


def writable(folder: Path) -> Finding:
    place = nearest(folder)
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        owner, user = place.stat().st_uid, os.geteuid()
        denied = f"{place} (owned by uid {owner}) cannot be written by this user"
        pid = lock_owner(folder)
        if pid is not None and owner != user:  # hippod runs as another user, who can write to the store
            return Finding("store directory", "warn", f"{denied}; process {pid} has it open", ASK_ROOT)
        if owner == user:
            return Finding("store directory", "fail", denied, f"chmod u+rwx {place}")
        hint = f"chown -R it to hippod's user, or run hippod as the user with id {owner}"
        return Finding("store directory", "fail", denied, hint)
    if foreign := _foreign_entries(folder):
        hint = f"chown -R --reference={folder} {folder}"
        detail = f"{len(foreign)} of {folder}'s entries belong to another user, such as {foreign[0]}"
        return Finding("store directory", "warn", detail, hint)
    return Finding("store directory", "ok", str(folder))


def _foreign_entries(folder: Path) -> list[str]:
    """Returns the entries whose owner differs from the directory's owner."""
    found = []
    if folder.exists():
        owner = folder.stat().st_uid
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # a running hippod has just replaced it
                if entry.stat(follow_symlinks=False).st_uid != owner:
                    found.append(entry.name)
    return found


def lock(folder: Path) -> Finding:
    """Reports which process holds the lock. The kernel releases a lock when its process ends, for whatever reason."""
    pid = lock_owner(folder)
    if pid is not None:
        try:
            confined = Path(f"/proc/{pid}/attr/current").read_text().strip("\0\n ")
        except OSError:
            confined = ""
        confinement = f", confined by {confined}" if "enforce" in confined else ""
        return Finding("lock", "ok", f"held by process {pid}{confinement}")
    try:
        last_holder = (folder / "lock").read_text(errors="replace").strip()
    except OSError:
        last_holder = ""
    return Finding("lock", "ok", f"free (last held by process {last_holder})" if last_holder else "free")


def contents(config: Config, folder: Path) -> Iterator[Finding]:
    if (folder / RESTORING).exists():
        hint = "run `hippod --restore DIR` again"
        yield Finding("store", "fail", f"a restore of {folder} was interrupted", hint)
        return
    try:
        log = summarize_store(folder)
    except NoCommits:
        yield Finding("store", "ok", f"{folder} contains no commit yet")
        return
    except (StoreDamaged, OSError, RuntimeError, ValueError, LookupError, MemoryError) as error:
        yield Finding("store", "fail", f"{folder} cannot be read ({describe_error(error)})", remedy(error))
        return
    if log.format > FORMAT:
        hint = "upgrade hippod, or set another [store] path"
        yield Finding("store", "fail", f"has format {log.format}, this hippod reads up to {FORMAT}", hint)
        return
    when = datetime.fromtimestamp(log.time, UTC).isoformat(timespec="seconds")
    clock_finding = clock(time.time(), log.time, "the store's last commit")
    if clock_finding.status != "ok":
        yield clock_finding
    yield Finding("store", "ok", f"{folder}: commit {log.commit} of {when}, format {log.format}")
    yield from map(upgrade_backup, upgrade_backups(folder))
    yield encoder_of_store(config, log, folder)
    rule = config.synonym_rule(known_calibration(log.encoder) or log.calibration)
    yield graph_settings(rule, log.edges_rule)
    yield passage_settings(config.passages.split, split_of_store(log.positions))
    yield checkpoint(folder, log.commit, log.encoder.dim, rule)


def remedy(error: Exception) -> str:
    """Returns what to do if the log cannot be read."""
    if isinstance(error, LookupError):  # a file has wrong content, or hippod has an error
        return "start hippod, which checks the files, and names those that are damaged"
    return refusal(error) or RESTORE


def upgrade_backup(place: Path) -> Finding:
    try:
        until = datetime.fromtimestamp(kept_until(place), UTC).date().isoformat()
    except ValueError as error:
        return Finding(
            "upgrade backup", "warn", f"{place} cannot be read ({error})", "delete it, if you do not need it"
        )
    return Finding("upgrade backup", "ok", f"{place}: the store before an upgrade, kept until {until}")


def encoder_of_store(config: Config, log: StoreSummary, folder: Path) -> Finding:
    made_by, choice = log.encoder, choose_encoder(config, log)
    description = f"{made_by.name} ({made_by.dim} dimensions)"
    if any(made_by == model.beginnings_only for model in PACKAGED_MODELS):
        description += ", of an earlier release: vectors lack the text after the first 256 tokens of a passage"
    if choice.replacement is None:
        return Finding("store encoder", "ok", description)
    detail = f"the content is encoded by {description}; the configuration has {choice.configured}"
    if target_of(folder) is not None:
        return Finding("store encoder", "ok", f"{detail}; the content is being encoded again")
    if (missing := cannot_open(choice.opened)) is not None:
        hint = (
            f"{missing}; or set [encoder] back; or start with `hippod --reencode`: until the content is encoded again, "
        )
        return Finding("store encoder", "fail", detail, f"{hint}queries are answered by words only")
    hint = "`hippoctl reencode` encodes the content again in the background; or set [encoder] back"
    return Finding("store encoder", "warn", detail, hint)


def graph_settings(configured: SynonymRule, made: SynonymRule) -> Finding:
    text = _graph_text(made)
    if configured == made:
        return Finding("store graph", "ok", text)
    detail = f"the synonym edges were made with {text}; [graph] has {_graph_text(configured)}"
    return Finding("store graph", "warn", detail, "restart hippod: it derives the edges again before it is ready")


def passage_settings(configured: SplitSettings, made: SplitSettings) -> Finding:
    text = _passages_text(made)
    if configured == made:
        return Finding("store passages", "ok", text)
    detail = f"the followed files were split with {text}; [passages] has {_passages_text(configured)}"
    hint = (
        "restart hippod: it splits these files again; documents of topics and clients change when they are sent again"
    )
    return Finding("store passages", "warn", detail, hint)


def _passages_text(split: SplitSettings) -> str:
    return f"max_tokens {split.max_tokens}, min_tokens {split.min_tokens}"


def _graph_text(rule: SynonymRule) -> str:
    return f"synonym_threshold {rule.threshold:g}, synonym_variants {str(rule.variants).lower()}"


def checkpoint(folder: Path, seq: int, dim: int, rule: SynonymRule) -> Finding:
    place = newest(folder)
    if place is None:
        status = "ok" if seq < OLD_CHECKPOINT_COMMITS else "warn"
        hint = (
            "the next start is slow, because it derives the index again; is [schedule] snapshot off?"
            if status == "warn"
            else ""
        )
        return Finding("checkpoint", status, "none yet", hint)  # type: ignore[arg-type]
    try:
        SavedCheckpoint(place, dim, rule)
    except CheckpointUnusable as error:
        hint = (
            f"nothing is lost: the next start is slow and writes a new checkpoint; remove {place} if this finding stays"
        )
        return Finding("checkpoint", "warn", str(error), hint)
    behind = seq - int(place.name[len(PREFIX) :])
    age = f"of commit {place.name[len(PREFIX) :]}, {behind:,} commits old"
    if behind > OLD_CHECKPOINT_COMMITS:
        return Finding("checkpoint", "warn", age, "starts are slow: see job_failed in the log, and [schedule] snapshot")
    return Finding("checkpoint", "ok", age)


def disk(config: Config) -> Iterator[Finding]:
    folder = config.store.path
    place = nearest(folder)
    mount_point = mount_of(folder).at
    if mount_point and not place.is_relative_to(mount_point):
        return  # the store's disk is mounted below a directory that this user may not access, so `place` is on another disk
    usage, inodes = shutil.disk_usage(place), os.statvfs(place)
    free_space = f"{usage.free >> 20:,} MiB free of {usage.total >> 20:,} at {place}"
    needed = max(SPARE_BYTES, largest_part_bytes(folder))
    if usage.free < FULL_BYTES:
        hint = "make room at once, or give the store a larger disk ([store] path): documents wait, queries continue"
        yield Finding("disk", "fail", free_space, hint)
    elif usage.free < needed:
        hint = f"make room: {needed >> 20:,} MiB should stay free, because a table is rewritten before the old one is deleted"
        yield Finding("disk", "warn", free_space, hint)
    elif inodes.f_files and inodes.f_favail < FEW_INODES:
        fails = inodes.f_favail < FEWEST_INODES
        detail = f"only {inodes.f_favail:,} inodes are free at {place}"
        yield Finding("disk", "fail" if fails else "warn", detail, "delete small files")
    else:
        yield Finding("disk", "ok", free_space)


def largest_part_bytes(folder: Path) -> int:
    """Returns the bytes of the largest table or checkpoint, which is rewritten while its old files still exist."""
    try:
        parts = [each.path for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return 0
    return max((bytes_below(Path(part)) for part in parts), default=0)
