"""What two sections must agree on."""

import re
from itertools import pairwise

from daemon.config.model import Config
from daemon.config.problems import value_text


def disagreements(config: Config) -> list[str]:
    """One sentence for each pair of settings that cannot stand together, key first."""
    return [*_model_needed(config), *_folders_apart(config), *_topics_apart(config), *_kafka_options(config)]


def _model_needed(config: Config) -> list[str]:
    problems = []
    needs = 'needs a model: set llm.base_url and llm.model, such as base_url = "http://localhost:8000/v1"'
    if not config.llm.configured:
        if config.llm.model is not None and config.llm.base_url is None and config.openie.backend != "vllm":
            problems.append(
                f'llm.base_url is not set; llm.model = "{config.llm.model}" needs the server\'s address beside it'
            )
        if config.openie.backend == "llm":
            problems.append(f'openie.backend = "llm" {needs}; or write "rules", which needs none')
        if config.retrieval.filter == "llm":
            problems.append(f'retrieval.filter = "llm" {needs}; or write "auto" or "none"')
    if config.openie.backend == "vllm" and config.llm.model is None:
        problems.append('openie.backend = "vllm" needs llm.model: the name or folder of the model that vLLM is to load')
    if config.encoder.backend == "openai" and config.llm.base_url is None and config.encoder.base_url is None:
        problems.append(
            'encoder.backend = "openai" needs a server: set encoder.base_url or llm.base_url; '
            'or write "sentence-transformers"'
        )
    return problems


def _folders_apart(config: Config) -> list[str]:
    """A file that two sources deliver under one name would be removed by either; the store would read itself."""
    problems = []
    places = sorted((folder.path.resolve(), number) for number, folder in enumerate(config.folder))
    for (outer, first), (inner, second) in pairwise(places):
        if inner == outer:
            problems.append(f'folder[{second}].path = "{inner}" is folder[{first}]\'s too; leave one of them out')
        elif inner.is_relative_to(outer):
            problems.append(
                f'folder[{second}].path = "{inner}" lies inside folder[{first}] ("{outer}"); '
                "follow the outer one only and choose its files with include and exclude"
            )
    store = config.store.path.resolve()
    for place, number in places:
        if store.is_relative_to(place):
            problems.append(
                f'store.path = "{store}" lies inside folder[{number}] ("{place}"), whose files are read as documents; '
                "move the store out of it"
            )
    return problems


def _topics_apart(config: Config) -> list[str]:
    """A topic that two sections deliver would give its documents two owners, and its positions too."""
    problems = []
    owners: dict[str, int] = {}
    for number, kafka in enumerate(config.kafka):
        for topic in kafka.topics:
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
                problems.append(
                    f'kafka[{number}].topics names "{topic}"; allowed are up to 249 letters, digits, ".", "_" and "-"'
                )
            elif topic in owners:
                problems.append(f'kafka[{number}].topics names "{topic}" as kafka[{owners[topic]}] does; leave one out')
            owners[topic] = number
    for number, kafka in enumerate(config.kafka):
        if kafka.dead_letter in owners:
            problems.append(
                f'kafka[{number}].dead_letter = "{kafka.dead_letter}" is followed as a topic too; name another topic'
            )
    return problems


def _kafka_options(config: Config) -> list[str]:
    """What kafka-python would refuse, asked without connecting."""
    if not config.kafka:
        return []
    from consumers.kafka.checking import problems  # the client is loaded where topics are followed
    from consumers.kafka.settings import KafkaSettings

    found = []
    for number, kafka in enumerate(config.kafka):
        settings = KafkaSettings(
            kafka.brokers, kafka.topics, kafka.group, kafka.format, kafka.start, kafka.dead_letter, kafka.options
        )
        for option, reason in problems(settings):
            value = f" = {value_text(option, kafka.options[option])}" if option in kafka.options else ""
            found.append(f"kafka[{number}].options.{option}{value}: {reason}")
    return found
