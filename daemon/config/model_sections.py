"""The sections of the configuration about models: extraction, the language model, its judge, and the encoder.

`daemon.config.sections` contains the other sections. A model's key comes from the environment or a file, never from the
configuration.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from daemon.config_types.path_validators import ABSENT, readable_secret, usable_prompts
from daemon.config_types.values import Count, OptionalPath, OptionalText, Seconds, Section, at, or_none
from memory.encoder.registry import ENCODER_BACKENDS
from memory.openie.registry import OPENIE_BACKENDS, WORKER_BACKENDS

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


if TYPE_CHECKING:
    EncoderBackendName = str
    OpenIEBackendName = str
    FallbackName = str
else:  # type checkers cannot use names that are computed at run time
    EncoderBackendName = Literal[tuple(ENCODER_BACKENDS)]
    OpenIEBackendName = Literal[tuple(OPENIE_BACKENDS)]
    FallbackName = Literal[("none", *WORKER_BACKENDS)]


class OpenIE(Section):
    backend: OpenIEBackendName = "rules"
    """A backend of `memory.openie.registry`."""
    concurrency: Count = 8
    """Maximum concurrent model calls; fewer if the server accepts fewer. `rules` makes no calls."""
    fallback: FallbackName = "none"
    """Extractor that supplies triples until the model has extracted the passage."""
    reextract: Literal["off", "idle"] = "off"
    """idle: while hippod has nothing else to do, it extracts passages again that older rules have extracted."""


def _check_address(base_url: str | None) -> None:
    if base_url is not None and not re.fullmatch(r"https?://[^\s/]\S*", base_url):
        raise at("base_url", 'an address such as "http://localhost:8000/v1"')


class ModelServer(Section):
    base_url: OptionalText = None
    """Address of a server with OpenAI's protocol, including `/v1`; without it there is no model."""
    model: OptionalText = None
    api_key_env: OptionalText = None
    """Name of the environment variable that holds the key."""
    api_key_file: Annotated[OptionalPath, AfterValidator(readable_secret)] = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0

    @model_validator(mode="after")
    def _one_server_one_key(self) -> Self:
        _check_address(self.base_url)
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env, re.ASCII):
            raise at("api_key_env", "the name of an environment variable that contains the key, not the key itself")
        if self.api_key_env is not None and self.api_key_file is not None:
            raise at("api_key_file", "api_key_env or api_key_file, not both")
        return self

    @property
    def configured(self) -> bool:
        """Whether a model is configured."""
        return self.base_url is not None and self.model is not None


class Judge(ModelServer):
    """The model that judges answers. Omitted settings default to `[llm]`; the API key only if both use the same server."""


def _price(value: Any) -> Any:
    if (value := or_none(value)) is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("the prices of a million prompt tokens and a million completion tokens, such as [0.15, 0.6]")
    return tuple(value)


class LLM(ModelServer):
    timeout_s: Seconds = 60.0
    max_retries: Annotated[int, Field(ge=0, le=100)] = 5
    prompts: Annotated[OptionalPath, AfterValidator(usable_prompts)] = None
    """Folder of prompts that replace hippod's own, one file NAME.txt each."""
    price_per_million: Annotated[tuple[Price, Price] | None, BeforeValidator(_price)] = None
    """Money for a million prompt tokens and a million completion tokens, in any currency."""
    budget_tokens_per_day: Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(or_none)] = None
    """Maximum prompt and completion tokens per UTC day; then extraction pauses until the next day."""
    budget_money_per_day: Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(or_none)] = None
    """Maximum money per UTC day; then extraction pauses until the next day."""
    judge: Judge = Field(default_factory=Judge)


class Encoder(Section):
    backend: EncoderBackendName = "sentence-transformers"
    """A backend of `memory.encoder.registry`."""
    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    """Name of the model; the default model is packaged and needs no network."""
    base_url: OptionalText = None
    """For `openai`: the server's address, including `/v1`, if it differs from `[llm] base_url`."""
    query_prefix: OptionalText = None
    """For `openai`: prefix of a query, for a model whose prefix hippod does not know."""
    passage_prefix: OptionalText = None
    """For `openai`: prefix of an indexed text."""
    triple_query_prefix: OptionalText = None
    """Prefix of a query for the comparison with triples, if the model needs another instruction for facts."""
    phrase_query_prefix: OptionalText = None
    """For `openai`: prefix of a query for the comparison with phrases (mode `query-to-node`)."""
    name_query_prefix: OptionalText = None
    """For `openai`: prefix of a name from a query for the comparison with phrases (modes `ner-to-node` and `hipporag`)."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")] = "auto"

    @model_validator(mode="after")
    def _address_and_model_that_the_backend_can_have(self) -> "Encoder":
        _check_address(self.base_url)
        try:
            ENCODER_BACKENDS[self.backend].check_model(self.model)
        except ValueError as error:
            raise at("model", str(error)) from None
        return self


def model_key(server: ModelServer) -> str | None:
    """Returns the key; None if none is configured. Raises ValueError, whose message contains no secret."""
    if server.api_key_env is not None:
        key = os.environ.get(server.api_key_env, "").strip()
        if not key:
            raise ValueError("the environment variable named there is not set, or empty; set it for hippod's process")
        return _usable(key)
    if server.api_key_file is not None:
        key = Path(server.api_key_file).read_text("utf-8", "replace").strip()
        if not key:
            raise ValueError(f"{server.api_key_file} is empty; write the key to it")
        if key.startswith(ABSENT):
            raise ValueError(f"systemd provides no key: {key.removeprefix(ABSENT)}")
        return _usable(key)
    return None


def _usable(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("the content is not a key: a key has no spaces, line ends or non-ASCII letters")
    return key


def key_problem(llm: LLM) -> str | None:
    """Returns one sentence about a missing or unusable key, with the configuration key first."""
    for name, server in (("llm", llm), ("llm.judge", llm.judge)):
        try:
            model_key(server)
        except (ValueError, OSError) as error:
            return f"{name}.{'api_key_env' if server.api_key_env is not None else 'api_key_file'}: {error}"
    return None
