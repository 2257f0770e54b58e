"""doctor: finds problems of the installation and says how to fix them.

`hippod --inspect` makes the checks that need the server's code but no running daemon. The other checks concern the socket and
the status that the daemon reports.
"""

import json
import os
import shutil
import socket as sockets
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from cli.client.address import Address, find_config
from cli.client.http import Client, group_name, permission_hint
from cli.client.typed_answers import parse_answer
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, command
from cli.render.lines import STATE_STYLES, text
from cli.render.status import provenance_rows, reason_counts, room_words
from cli.terminal_text import count, duration, one_line, size, truncate
from daemon.contract.advice import PROGRAM_OF_REASON, encoder_advice, foreign_languages
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentList
from daemon.contract.finding import ASK_ROOT, Finding, Verdict, guarded
from daemon.contract.http.routes import Route
from daemon.contract.paths import SOCKET_BYTES_MAX
from daemon.contract.status import (
    BAD_SOURCE_STATES,
    DaemonState,
    SourceStatus,
    Status,
)

INSPECT_TIMEOUT_S = 150.0
"""Seconds; longer than the time limits of hippod's own checks (`daemon.doctor`) plus its start on a busy machine."""
SOON_FULL_S = 86_400.0
"""A memory that will be full within this number of seconds causes a warning."""
MOST_LANGUAGES = 4
"""Maximum number of languages that a finding names."""


@command("doctor")
def doctor(invocation: Invocation) -> None:
    """Each check prints one line: ok, warn or fail, and what to do. The exit code is that of the worst failure."""
    checks = list(_checks(invocation))
    invocation.emit({"checks": [check.to_json() for check in checks]}, lambda: _finding_lines(checks), wrap=False)
    code = worst(checks)
    if code is not Exit.DONE:
        sys.exit(code)


def worst(findings: Iterable[Finding]) -> Exit:
    """Returns the highest exit code of the failed checks. Warnings do not count."""
    return max((Exit(each.exit_code) for each in findings if each.status == "fail"), default=Exit.DONE)


def _checks(invocation: Invocation) -> Iterator[Finding]:
    file = find_config(os.environ, Path.cwd())
    yield from guarded("inspection", lambda: inspection(file, find_hippod()))
    try:
        address: Address = invocation.address()
    except CommandError as failure:
        yield Finding("socket", "fail", failure.message, failure.hint or "", failure.code)
        return
    yield from daemon(address, invocation.client)


def _finding_lines(checks: Sequence[Finding]) -> list[Text]:
    longest = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        hint = f" — {check.hint}" if check.hint else ""
        mark = (f"{check.status:<4}", STATE_STYLES[check.status])
        lines.append(text(mark, f"  {check.name:<{longest}}  ", check.detail, hint))
    return lines


def inspection(file: Path | None, hippod: str | None) -> Iterator[Finding]:
    """Yields the findings of `hippod --inspect` about the configuration `file`; None means the configuration that hippod
    finds."""
    if hippod is None:
        hint = "install hippod here, or run this command on the machine where hippod is"
        yield Finding("inspection", "warn", "nothing was inspected: hippod is not installed next to hippoctl", hint)
        return
    command = [hippod, *([] if file is None else ["--config", str(file)]), "--inspect"]
    detail = "it cannot be run"
    try:
        done = subprocess.run(  # noqa: S603 - the program installed next to this one, no shell
            command, capture_output=True, timeout=INSPECT_TIMEOUT_S, check=False
        )
        detail = one_line(done.stderr.decode("utf-8", "replace")) or "it prints nothing"
        found = [_finding(each) for each in json.loads(done.stdout)["findings"]]
    except subprocess.TimeoutExpired:
        hint = "the machine is busy, or the disk with hippod's program hangs; try again later"
        yield Finding("inspection", "fail", f"`hippod --inspect` did not finish within {INSPECT_TIMEOUT_S:g} s", hint)
    except (OSError, ValueError, KeyError, TypeError):
        yield Finding("inspection", "fail", truncate(detail, 400), "install hippod again")
    else:
        yield from found


def find_hippod() -> str | None:
    """Returns the path of the hippod that is installed next to hippoctl, or else of the hippod on $PATH."""
    beside = Path(sys.executable).parent / "hippod"
    return str(beside) if beside.is_file() else shutil.which("hippod")


def _finding(found: Mapping[str, Any]) -> Finding:
    status: Verdict = "fail" if found["status"] == "fail" else "ok" if found["status"] == "ok" else "warn"
    name, detail, hint = (one_line(str(found.get(key, ""))) for key in ("name", "detail", "hint"))
    # An invalid configuration is a usage error, as in `hippod --check`.
    return Finding(name, status, detail, hint, Exit.USAGE if name == "configuration" else Exit.FAILED)


def daemon(address: Address, connect: Callable[[], Client]) -> Iterator[Finding]:
    for found in guarded("socket", lambda: [socket(address)]):
        yield found
        if found.status == "fail":
            return
    try:
        yield from guarded("daemon", lambda: daemon_findings(connect), passing=CommandError)
    except CommandError as failure:
        yield Finding("daemon", "fail", failure.message, failure.hint or "", failure.code)


def daemon_findings(connect: Callable[[], Client]) -> Iterator[Finding]:
    """Yields the findings about the daemon's status."""
    client = connect()
    status = parse_answer(Status, client.call("GET", Route.STATUS, patience_s=0, limit_s=10))
    yield answering(status)
    yield from commits(status)
    yield encoder(status)
    yield from languages(status)
    yield from memory(status)
    yield from extraction(status)
    yield from contents(status)
    yield from programs(status)
    yield from (source(each) for each in status.sources)
    if not status.sources:
        yield Finding("sources", "warn", "no folder or topic is followed", "add [[folder]] to the configuration")
    yield documents(client, status)


def socket(address: Address) -> Finding:
    """Checks that the path is a socket on which a process listens, and that this user may write to it."""
    path = address.path
    where = f"{path} ({address.origin})"
    if len(os.fsencode(address.connectable)) > SOCKET_BYTES_MAX:
        hint = f"set a shorter [api] socket: {SOCKET_BYTES_MAX} bytes are the most"
        return Finding("socket", "fail", f"{where} is too long for a socket", hint, Exit.NO_DAEMON)
    try:
        status = path.stat()
    except OSError as error:
        hint = "start hippod, or name its socket with --socket"
        if isinstance(error, PermissionError):
            hint = f"its directory is closed to this user: {ASK_ROOT}"
        return Finding("socket", "fail", f"{where}: {error.strerror}", hint, Exit.NO_DAEMON)
    if not stat.S_ISSOCK(status.st_mode):
        return Finding(
            "socket", "fail", f"{where} is not a socket", "name hippod's socket with --socket", Exit.NO_DAEMON
        )
    if _stale(address.connectable):
        hint = "start hippod, which replaces it; the one that made it has ended"
        return Finding("socket", "fail", f"{where}: no process listens on it", hint, Exit.NO_DAEMON)
    rights = f"{stat.S_IMODE(status.st_mode):04o}, group {group_name(status.st_gid)}"
    if not os.access(path, os.R_OK | os.W_OK):
        hint = permission_hint(path)
        return Finding("socket", "fail", f"{where}: no permission ({rights})", hint, Exit.NO_DAEMON)
    if status.st_mode & stat.S_IWOTH:
        return Finding("socket", "warn", f"{where}: every user may write ({rights})", 'set [api] mode = "0660"')
    return Finding("socket", "ok", f"{where}, mode {rights}")


def _stale(path: str) -> bool:
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:  # later checks report a missing permission or a full queue
            return False
    return False


def programs(status: Status) -> Iterator[Finding]:
    """Warns of each missing program that skipped documents need."""
    for reason, (program, packages) in PROGRAM_OF_REASON.items():
        if waiting := status.skipped.get(reason):
            detail = f"{count(waiting, 'document')} {'waits' if waiting == 1 else 'wait'} for {program}"
            yield Finding("programs", "warn", detail, f"install {packages}; hippod then reads them without a restart")


def answering(status: Status) -> Finding:
    detail = f"{status.state.value}, commit {status.commit}, up {duration(status.uptime_s)}, {size(status.rss_bytes)}"
    if status.state is DaemonState.READY:
        return Finding("daemon", "ok", detail)
    return Finding("daemon", "warn", detail, "wait until it is ready")


def commits(status: Status) -> Iterator[Finding]:
    """Reports why commits fail, or why the log cannot be written to the tables."""
    if status.trouble is not None:
        hint = "correct the cause named here: new documents may wait until then, queries continue; hippod's log has details"
        yield Finding("commits", "fail", one_line(status.trouble), hint)


def encoder(status: Status) -> Finding:
    detail = f"{status.encoder}; openie {status.openie}"
    if status.encoder.startswith("hash"):
        hint = 'set [encoder] backend = "sentence-transformers" to find by meaning'
        return Finding("encoder", "warn", f"{detail}: finds words, not meaning", hint)
    return Finding("encoder", "ok", detail)


def languages(status: Status) -> Iterator[Finding]:
    """Warns if encoder or extractor are unsuitable for the documents' languages."""
    if status.extractor_advice is not None:
        detail = f"{status.openie} lacks taggers of these documents' languages"
        yield Finding("languages", "warn", detail, one_line(status.extractor_advice))
    found = status.indistinct_phrases
    advice = encoder_advice(status.encoder, status.phrases, found, status.languages)
    if advice is None:
        return
    if found is not None and found.is_serious(status.phrases):
        detail = (
            f"{status.encoder} cannot tell apart {found.unknown + found.crowded:,} of {count(status.phrases, 'phrase')}: of "
            f"{found.unknown:,} it knows nothing, {found.crowded:,} have nearly one vector"
        )
    else:
        foreign = list(foreign_languages(status.encoder, status.languages).items())[:MOST_LANGUAGES]
        listed = ", ".join(f"{share:.0%} {one_line(code)}" for code, share in foreign)
        detail = f"{status.encoder} was trained on English; about {listed} of the passages are found by words more than meaning"
    yield Finding("languages", "warn", detail, advice)


def memory(status: Status) -> Iterator[Finding]:
    """Reports the memory in use, and when its limit will be reached."""
    use = status.memory
    if use is None:
        return
    room = room_words(use)
    hint = "raise [store] memory_limit, give the machine more memory, or remove documents"
    if use.paused is not None:
        yield Finding("memory limit", "fail", f"{room}; sources are paused", hint)
    elif use.full_in_s is not None and use.full_in_s < SOON_FULL_S:
        yield Finding("memory limit", "warn", room, hint)
    else:
        yield Finding("memory limit", "ok", room)


def extraction(status: Status) -> Iterator[Finding]:
    """Reports passages that wait for the model, and passages whose extraction failed."""
    found = status.extraction
    if found is None:
        return
    detail = f"{count(found.waiting, 'passage')} waiting, {found.failed:,} failed"
    if found.waiting_for:
        hint = "start the model server, or check [llm] base_url, model and key; passages go on waiting"
        yield Finding("model", "warn", f"{detail}: {one_line(found.waiting_for)}", hint)
    elif found.failed:
        yield Finding(
            "model", "warn", detail, "`hippoctl ls --state failed` shows the reasons, `hippoctl retry` tries again"
        )
    else:
        yield Finding("model", "ok", detail)


def contents(status: Status) -> Iterator[Finding]:
    """Reports which programs made the stored data. Warns if a part is outdated and is not being extracted again."""
    rows = provenance_rows(status)
    if not rows:
        return
    detail = "; ".join(f"{head} {words}" for head, words in rows)
    outdated = any(each.left_s is not None for each in status.extractors)
    if outdated and all(each.task not in ("extract", "reextract") for each in status.progress):
        hint = 'run `hippoctl reextract`, or set [openie] reextract = "idle": the present rules may find other triples'
        yield Finding("contents", "warn", detail, hint)
    elif status.unapplied and all(each.task != "reencode" for each in status.progress):
        hint = f"run {', '.join(f'`{one_line(each.command)}`' for each in status.unapplied)}, or restore the earlier settings"
        yield Finding("contents", "warn", detail, hint)
    else:
        yield Finding("contents", "ok", detail)


def source(each: SourceStatus) -> Finding:
    name = f"{each.kind} {one_line(each.name)}"
    lag = "" if each.lag is None else ", up to date" if each.lag == 0 else f", {count(each.lag, 'change')} to read"
    extra = each.model_extra or {}
    detail = next((one_line(str(extra[key])) for key in ("error", "detail", "note") if extra.get(key)), "")
    why = f": {detail}" if detail else ""
    if each.state in BAD_SOURCE_STATES or extra.get("error"):
        hint = "make it readable and reachable for hippod; the log has details"
        if each.kind == "folder" and each.state in ("missing", "error") and os.access(each.name, os.R_OK | os.X_OK):
            hint = (
                "this user sees it and hippod does not: the unit hides it (ProtectHome=, BindReadOnlyPaths=), AppArmor or "
                "SELinux forbids it (journalctl -k), or hippod's user may not read it"
            )
        return Finding(name, "fail", f"{each.state}{lag}{why}", hint)
    excluded = extra.get("excluded") or {}
    left_out = f", {sum(excluded.values()):,} excluded ({reason_counts(excluded)})" if excluded else ""
    # A working source with a detail uses a fallback, or waits for a confirmation.
    return Finding(name, "warn" if detail else "ok", f"{each.state}{lag}{left_out}{why}")


def documents(client: Client, status: Status) -> Finding:
    """Reports the numbers of indexed, failed and skipped documents, and the first failed document with its reason."""
    skipped = sum(status.skipped.values())
    detail = f"{count(status.documents, 'document')}, {status.pending:,} pending, "
    detail += f"{status.failed:,} failed" if status.failed or skipped else "none failed"
    detail += f", {skipped:,} skipped ({reason_counts(status.skipped)})" if skipped else ""
    if not status.failed:
        return Finding("documents", "ok", detail, "`hippoctl ls --state skipped` says why" if skipped else "")
    listed = client.call("GET", Route.DOCUMENTS, params={"state": DocumentState.FAILED.value, "limit": 1})
    first = next(iter(parse_answer(DocumentList, listed).documents), None)
    example = f", such as {truncate(first.uri, 200)}: {truncate(first.error or 'no reason', 200)}" if first else ""
    hint = "`hippoctl ls --state failed` lists them, `hippoctl retry` tries them again"
    return Finding("documents", "warn", f"{detail}{example}", hint)
