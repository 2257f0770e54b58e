"""Checks that need more than one section, for hippod and for hippod-worker."""

from pathlib import Path

from daemon.config.config import Config
from daemon.config_types.path_validators import make_token, read_token
from daemon.sources.registry import SOURCE_KINDS
from memory.encoder.registry import ENCODER_BACKENDS
from memory.openie.registry import OPENIE_BACKENDS, BulkBackend, WorkerBackend


def disagreements(config: Config) -> list[str]:
    """Returns one sentence for each contradiction between settings, beginning with a key."""
    own_paths = {"store.path": config.store.path}
    if (url := config.schedule.backup_to) is not None and url.startswith("file://"):
        own_paths["schedule.backup_to"] = Path(url.removeprefix("file://"))
    conflicts = [sentence for kind in SOURCE_KINDS for sentence in kind.conflicts(config.tables(kind), own_paths)]
    return [
        *_token_needed(config),
        *_clients(config),
        *_model_needed(config),
        *_price_needed(config),
        *conflicts,
    ]


def _token_needed(config: Config) -> list[str]:
    if config.api.tcp is None or config.api.token_file is not None or any(each.token_file for each in config.client):
        return []
    return [
        f'api.token_file is not set; must be set: api.tcp = "{config.api.tcp}" needs it: the path of a file with the '
        f'bearer token; {make_token("token")}, in the folder of this file; then token_file = "token"'
    ]


def _clients(config: Config) -> list[str]:
    """Checks clients for duplicates: clients with one name would share stored data, and one token must identify one client."""
    problems = []
    names: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for number, each in enumerate(config.client):
        first = names.setdefault(each.client_name, number)
        if first != number:
            problems.append(
                f'client[{number}].name = "{each.client_name}" is the name of client[{first}] too; give each client its own'
            )
        if each.token_file is None:
            continue
        try:
            first = tokens.setdefault(read_token(each.token_file), number)
        except ValueError:  # the key's own check reports it
            continue
        if first != number:
            problems.append(
                f'client[{number}].token_file = "{each.token_file}" contains client[{first}]\'s token; give each client its own'
            )
    return problems


def _model_needed(config: Config) -> list[str]:
    problems = []
    backend = OPENIE_BACKENDS[config.openie.backend]
    needs = 'needs a model: set llm.base_url and llm.model, such as base_url = "http://localhost:8000/v1"'
    if not config.llm.configured:
        address_needed = "llm.model" not in backend.needs or "llm.base_url" in backend.needs
        if config.llm.model is not None and config.llm.base_url is None and address_needed:
            problems.append(
                f'llm.base_url is not set; llm.model = "{config.llm.model}" also needs the server\'s address'
            )
        if config.retrieval.filter == "llm":
            problems.append(f'retrieval.filter = "llm" {needs}; or write "auto" or "none"')
        if _value(config, "retrieval.entities") == "llm":
            problems.append(f'retrieval.entities = "llm" {needs}; or write "auto" or "rules"')
    if any(_value(config, key) is None for key in backend.needs):
        problems.append(f'openie.backend = "{backend.name}" {backend.needs_text}')
    if config.openie.reextract == "idle" and not isinstance(backend, WorkerBackend):
        problems.append(
            'openie.reextract = "idle" needs openie.backend = "rules", which costs no '
            'model calls; write "off", and run `hippoctl reextract` to extract passages again with a model'
        )
    encoder = ENCODER_BACKENDS[config.encoder.backend]
    if encoder.needs_server and config.llm.base_url is None and config.encoder.base_url is None:
        problems.append(
            f'encoder.backend = "{encoder.name}" needs a server: set encoder.base_url or llm.base_url; '
            'or write "sentence-transformers"'
        )
    return problems


def _price_needed(config: Config) -> list[str]:
    if config.llm.budget_money_per_day is None or config.llm.price_per_million is not None:
        return []
    return [
        "llm.price_per_million is not set; llm.budget_money_per_day needs it: the prices of a million prompt tokens and a "
        "million completion tokens, such as [0.15, 0.6]"
    ]


def _value(config: Config, key: str) -> object:
    """Returns the value of a key such as "llm.model"."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def worker_problems(config: Config) -> list[str]:
    """Returns one sentence for each problem, beginning with file and key."""
    section = config.worker
    problems = []
    if not section.topics:
        problems.append('worker.topics is not set; name the topics of articles, such as topics = ["articles"]')
    if section.output is None:
        problems.append('worker.output is not set; name the topic that takes the records, such as output = "records"')
    if section.output in section.topics or (section.output is not None and section.output == section.dead_letter):
        problems.append(
            f'worker.output = "{section.output}" is also a topic of articles or dead letters; name another topic'
        )
    if section.dead_letter in section.topics:
        problems.append(f'worker.dead_letter = "{section.dead_letter}" is also a topic of articles; name another topic')
    if isinstance(OPENIE_BACKENDS[config.openie.backend], BulkBackend):
        problems.append(
            f'openie.backend = "{config.openie.backend}" extracts in bulk only; for hippod-worker, set "llm" and a server '
            '(`vllm serve`), or "rules"'
        )
    if section.options:
        from consumers.kafka.validate import (
            option_problems,  # only if there are options to check, because it imports kafka-python
        )

        found = option_problems(section.settings, sends=True)
        problems += [f"worker.options.{option}: {reason}" for option, reason in found]
    return [f"{config.file or 'configuration'}: {problem}" for problem in problems]
