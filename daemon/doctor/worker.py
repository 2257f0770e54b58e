"""Checks `[worker]`, if it is set: its settings, its brokers and its topics."""

from collections.abc import Iterator

from daemon.config import Config
from daemon.contract.finding import Finding
from daemon.fleet.requirements import worker_problems

NAME = "hippod-worker"


def worker(config: Config) -> Iterator[Finding]:
    section = config.worker
    if not section.topics and section.output is None:
        return
    if problems := worker_problems(config):
        for problem in problems:
            yield Finding(NAME, "fail", problem, "correct [worker]; `hippod-worker --check` shows the same")
        return
    # kafka-python is imported only if there is a worker to check.
    from consumers.kafka.connect import reachable
    from consumers.kafka.topics import missing_topics

    if not reachable(section.settings):
        hint = "start the broker, or correct brokers in [worker]"
        yield Finding(NAME, "fail", f"none of {', '.join(section.brokers)} can be reached", hint)
        return
    wanted = [*section.topics, section.output or "", *([section.dead_letter] if section.dead_letter else [])]
    try:
        missing = missing_topics(section.settings, wanted)
    except OSError as error:
        yield Finding(NAME, "fail", f"the brokers do not list their topics: {error}", "look at [worker] options")
        return
    if missing:
        yield Finding(
            NAME, "fail", f"the brokers have no topic {', '.join(missing)}", "create it; hippod-worker creates none"
        )
    else:
        yield Finding(NAME, "ok", f"{', '.join(section.topics)} into {section.output}")
