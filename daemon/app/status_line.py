"""The line about the daemon's present work: `STATUS=`, which `systemctl status` shows."""

from daemon.services.status import RunningParts

WELL = ("starting", "scanning", "watching", "joining", "following")
"""States of a source that need no attention; also `polling`, if configured."""


def status_line(memory: RunningParts) -> str:
    """Returns the present work, most urgent first, without content of documents.

    Uses counters only, because it is called every few seconds.
    """
    committer, extraction_queue = memory.pipeline.committer, memory.extraction_queue
    waiting = len(memory.pipeline.intake)
    parts = []
    if committer.trouble is not None:
        what = "cannot encode" if committer.trouble.event == "encoder_away" else "cannot commit"
        parts.append(f"{what}, trying again: {committer.trouble.loggable[:200]}")
    if memory.paused is not None:
        parts.append(memory.paused)
    if waiting:
        at = f", {committer.step[0].removesuffix('e')}ing" if committer.step is not None else ""
        parts.append(f"indexing, {count(waiting, 'document')} pending{at}")
    if len(extraction_queue):
        waits_for = extraction_queue.waits_for
        why = f": {waits_for.loggable[:200]}" if waits_for is not None else ""
        verb = "waits" if len(extraction_queue) == 1 else "wait"
        parts.append(f"{count(len(extraction_queue), 'passage')} {verb} for the model{why}")
    for source in memory.sources:
        status = source.status(0)
        detail = getattr(status, "detail", None)
        if status.state not in WELL and (status.state != "polling" or detail):
            parts.append(
                f"{status.kind} {status.name} is {status.state}" + (f" ({str(detail)[:100]})" if detail else "")
            )
    snapshot = memory.store.snapshot()
    holds = f"{count(snapshot.living_passages, 'passage')}, following {count(len(memory.sources), 'source')}"
    parts.append(f"{'' if parts else 'up to date '}at commit {snapshot.commit}: {holds}")
    return "; ".join(parts)


def count(number: int, thing: str) -> str:
    """Formats a count: `1 passage`, `2 passages`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
