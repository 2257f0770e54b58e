"""Declares the OpenIE backends. Configuration, cross checks, the daemon, `doctor` and the docs derive from the declarations.

The code of a backend is in its own file, imported when the backend is made, so this module imports nothing heavy. The three
kinds of backends differ in where and when they read passages:

- `WorkerBackend`: in the worker processes, before the passage is committed. For extractors that compute.
- `ServerBackend`: by calls of the model server, after the commit. For extractors that wait.
- `BulkBackend`: in the daemon's process, hundreds of passages per call, on `hippoctl backfill`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memory.llm.client import ModelClient
    from memory.llm.limiter import Limiter
    from memory.openie.llm.extractor import LoadEntities, SaveEntities
    from memory.types import Extractor
    from store.types import Extraction, PassageText

CountDropped = Callable[[str, int], None]
"""Called with the reason why triples were dropped, and their number. Reasons: "parts" (not three), "empty", "long", "repeated",
"ungrounded" (neither end occurs in the passage), "excess"."""
ReportUnread = Callable[[str, str], None]
"""Called with the id of a passage that the model could not read, and the reason."""


_VERSIONED = re.compile(r"(?P<family>.+)/(?P<version>[0-9]+)(?:[+-][a-z]+)?")


class PassageReader(Protocol):
    """Reads one passage per call; calls run concurrently."""

    async def read(self, passage: "PassageText", load: "LoadEntities", save: "SaveEntities") -> "Extraction":
        """Raises ModelDown if the server fails, and ModelRefused or BadAnswer if this passage cannot be read."""
        ...


class BulkExtractor(Protocol):
    """Reads many passages per call; the call blocks its thread."""

    def extract(self, passages: "Sequence[PassageText]", unread: ReportUnread | None = None) -> "list[Extraction]":
        """Returns one extraction per passage, in order, except for passages reported to `unread`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIEBackend:
    """`extractor_name(llm_model)`: the name under which the store keeps the extractions."""

    name: str
    """Value of `[openie] backend`."""
    summary: str
    """One sentence for docs and `doctor`."""
    extractor_name: Callable[[str], str]
    needs: tuple[str, ...] = ()
    """Required configuration keys."""
    needs_text: str = ""
    """The backend's requirements, for the error if a key is missing."""
    package: str | None = None
    """Python package that must be installed in addition to hippod's requirements."""
    install_text: str = ""
    """Advice if the package is missing: how to install it, or which other backend to use."""
    calls_per_passage: int = 0
    """Model calls for a passage of usual length. 0 if extraction costs only this machine's time."""

    def present_names(self, llm_model: str) -> tuple[str, ...]:
        """Returns the names of extractions that this backend would not change."""
        return (self.extractor_name(llm_model),)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBackend(OpenIEBackend):
    make: "Callable[[], Extractor]"
    """Called once in each worker process."""
    extra_name: Callable[[], str]
    """Returns the name of extractions that depend on an extra; it tells whether the extra is installed."""
    untagged_languages: Callable[[], frozenset[str]]
    """Languages whose taggers are not installed, by code of the language detector."""

    def present_names(self, llm_model: str) -> tuple[str, ...]:
        return (self.extractor_name(llm_model), self.extra_name())

    def is_outdated(self, extractor: str) -> bool:
        """Whether `extractor` names an earlier version of this backend, or this version before the extra was installed or
        removed. For example, "rules/5" and "rules/6-multilingual" are outdated if "rules/6+multilingual" is present."""
        present, found = (_VERSIONED.fullmatch(name) for name in (self.extractor_name(""), extractor))
        if present is None or found is None or extractor in self.present_names(""):
            return False
        return found["family"] == present["family"] and int(found["version"]) <= int(present["version"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBackend(OpenIEBackend):
    make: "Callable[[ModelClient, Limiter, CountDropped], PassageReader]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkBackend(OpenIEBackend):
    make: Callable[[str, float, CountDropped], BulkExtractor]
    """Called with the model's name and the temperature; may take minutes."""


def _rules() -> "Extractor":
    from memory.openie.rules.extractor import RulesExtractor

    return RulesExtractor()


def _rules_name(_model: str) -> str:
    from memory.openie.rules.extractor import RulesExtractor

    return RulesExtractor.name


def _rules_extra_name() -> str:
    from memory.openie.rules.extractor import RulesExtractor

    return RulesExtractor.tagged_name


def _rules_untagged() -> frozenset[str]:
    from memory.openie.rules.languages.optional_taggers import INSTALLED, TAGGED_LANGUAGES

    return frozenset() if INSTALLED else TAGGED_LANGUAGES


def _llm(client: "ModelClient", limiter: "Limiter", count_dropped: CountDropped) -> PassageReader:
    from memory.openie.llm.extractor import LLMExtractor

    return LLMExtractor(client, limiter, count_dropped)


def _llm_name(model: str) -> str:
    from memory.openie.llm.extractor import extractor_name

    return extractor_name(model)


def _vllm(model: str, temperature: float, count_dropped: CountDropped) -> BulkExtractor:
    from memory.openie.llm.vllm import VLLMExtractor

    return VLLMExtractor(model, temperature, count_dropped)


_REGISTERED: tuple[WorkerBackend | ServerBackend | BulkBackend, ...] = (
    WorkerBackend(
        name="rules",
        summary="Without a model: statements of English sentences and of tables; names in other languages.",
        extractor_name=_rules_name,
        make=_rules,
        extra_name=_rules_extra_name,
        untagged_languages=_rules_untagged,
    ),
    ServerBackend(
        name="llm",
        summary="The model behind [llm] base_url reads each passage in two calls, `concurrency` calls at a time.",
        extractor_name=_llm_name,
        needs=("llm.base_url", "llm.model"),
        needs_text=(
            'needs a model: set llm.base_url and llm.model, such as base_url = "http://localhost:8000/v1"; '
            'or write "rules", which needs none'
        ),
        make=_llm,
        calls_per_passage=2,
    ),
    BulkBackend(
        name="vllm",
        summary="vLLM runs the model in hippod's own process on a GPU when `hippoctl backfill` asks for it.",
        extractor_name=_llm_name,
        needs=("llm.model",),
        needs_text="needs llm.model: the name or folder of the model that vLLM is to load",
        package="vllm",
        install_text=(
            'vLLM is not installed; install hippod with the extra "vllm" on a machine with a GPU, '
            'or write "llm" and let `vllm serve` run beside hippod'
        ),
        make=_vllm,
    ),
)

OPENIE_BACKENDS = {backend.name: backend for backend in _REGISTERED}
"""All backends by name, in the order in which users see them."""
WORKER_BACKENDS = {backend.name: backend for backend in _REGISTERED if isinstance(backend, WorkerBackend)}
"""Backends that may extract until a model has read the passage (`[openie] fallback`)."""
