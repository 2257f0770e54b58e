"""Requirements of hippod-worker on the configuration, beyond those of hippod."""

from daemon.config import Config
from memory.openie.registry import OPENIE_BACKENDS, BulkBackend


def worker_problems(config: Config) -> list[str]:
    """Returns one sentence for each problem, with file and key first."""
    section = config.worker
    problems = []
    if not section.topics:
        problems.append('worker.topics is not set; name the topics of articles, such as topics = ["articles"]')
    if section.output is None:
        problems.append('worker.output is not set; name the topic that takes the records, such as output = "records"')
    if section.output in section.topics or (section.output is not None and section.output == section.dead_letter):
        problems.append(f'worker.output = "{section.output}" is read, or takes dead letters, too; name another topic')
    if section.dead_letter in section.topics:
        problems.append(f'worker.dead_letter = "{section.dead_letter}" is read too; name another topic')
    if isinstance(OPENIE_BACKENDS[config.openie.backend], BulkBackend):
        problems.append(
            f'openie.backend = "{config.openie.backend}" reads in bulk only; hippod-worker takes "llm" and a server '
            '(`vllm serve`), or "rules"'
        )
    if section.options:
        from consumers.kafka.validate import (
            option_problems,  # imports kafka-python, so only if there are options to check
        )

        found = option_problems(section.settings, sends=True)
        problems += [f"worker.options.{option}: {reason}" for option, reason in found]
    return [f"{config.file or 'configuration'}: {problem}" for problem in problems]
