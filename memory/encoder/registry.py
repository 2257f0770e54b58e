"""The encoder backends, each declared once: configuration, cross checks, the daemon, `doctor` and the docs derive from here.

A backend's code stands in its own file and is imported when the encoder is made, so this module imports nothing heavy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memory.encoder import packaged_model
from memory.encoder.errors import EncoderUnavailable

if TYPE_CHECKING:
    from memory.types import Encoder
    from store.types import EncoderIdentity

GIB = 1 << 30
HASH_DIM_MAX = 8192
"""Twice what usual models have. Hashing more texts at once into longer vectors would take gigabytes."""


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingServer:
    """Where the embeddings come from, for a backend that asks a server. `key` is the secret itself."""

    base_url: str
    key: str | None = None
    timeout_s: float = 60.0
    max_retries: int = 5
    query_prefix: str | None = None
    """None: as the model's makers document it."""
    passage_prefix: str | None = None
    triple_query_prefix: str | None = None
    """None: that of a query where one is set, else an instruction for facts where the model takes instructions."""
    known_dim: int | None = None
    """Length of the vectors, where an earlier run learnt it."""
    phrase_query_prefix: str | None = None
    """Of a query that is compared with phrases; None: as for triples, an instruction of its own."""
    name_query_prefix: str | None = None
    """Of a name in a query that is compared with phrases."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """`[encoder]`. `batch_size`: most texts that go through a model at once."""

    model: str
    batch_size: int
    device: str
    server: EmbeddingServer | None = None
    triple_query_prefix: str | None = None
    """For a model that runs here: put before a query that is compared with triples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderBackend:
    name: str
    """As `[encoder] backend` has it."""
    summary: str
    """One sentence for docs and `doctor`."""
    make: "Callable[[EncoderSettings], Encoder]"
    identity: "Callable[[str], EncoderIdentity | None]" = lambda _model: None
    """The identity that an encoder of this model will have, None where only loading it tells."""
    check_model: Callable[[str], object] = lambda _model: None
    """Raises `ValueError`, which says what is allowed, for a model that cannot be. Loads nothing."""
    needs_server: bool = False
    missing_package: Callable[[str, str], str | None] = lambda _model, _device: None
    """What to install before this model can run on this device; None if nothing is missing. Loads nothing."""
    loads_model_files: bool = False
    """Whether `[encoder] model` names files on this machine, which `doctor` looks for."""
    memory_bytes: int
    """What an empty hippod with this encoder takes: its libraries, the model, two parsers at work."""


def _hash(settings: EncoderSettings) -> "Encoder":
    from memory.encoder.hashing import HashEncoder

    dim = _hash_dim(settings.model)
    return HashEncoder() if dim is None else HashEncoder(dim)


def _hash_identity(model: str) -> "EncoderIdentity":
    from memory.encoder.hashing import DEFAULT_DIM, HASH_ENCODER_NAME
    from store.types import EncoderIdentity

    return EncoderIdentity(HASH_ENCODER_NAME, _hash_dim(model) or DEFAULT_DIM)


def _hash_dim(model: str) -> int | None:
    """The dimension in digits; None, the default one, for any other text. Raises as `check_model` does."""
    if not (model.isascii() and model.isdigit()):
        return None
    dim = float(model)  # Python makes no whole number of thousands of digits
    if not 1 <= dim <= HASH_DIM_MAX:
        raise ValueError(
            f'for backend = "hash" a number of dimensions from 1 to {HASH_DIM_MAX}, or a name, which means 256'
        )
    return int(dim)


def _sentence_transformers(settings: EncoderSettings) -> "Encoder":
    model, batch_size = settings.model, settings.batch_size
    if missing := _missing_torch(model, settings.device):
        raise EncoderUnavailable(f"The encoder {model} cannot be loaded: {missing}.")
    device = _torch_device(settings.device)
    if not packaged_model.is_packaged(model):
        from memory.encoder.sentence_transformer import SentenceTransformerEncoder

        return SentenceTransformerEncoder(model, model, batch_size, device, settings.triple_query_prefix)
    folder = packaged_model.model_dir()
    if device == "cpu":
        from memory.encoder.minilm import MiniLMEncoder

        return MiniLMEncoder(folder, batch_size)
    from memory.encoder.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(str(folder), packaged_model.PACKAGED_MODEL, batch_size, device)


def _missing_torch(model: str, device: str) -> str | None:
    """The packaged model runs on the CPU without torch; other models and devices need the extra."""
    if packaged_model.is_packaged(model) and device in ("cpu", "auto"):
        return None
    if find_spec("sentence_transformers") is not None:
        return None
    return (
        "models other than the packaged all-MiniLM-L6-v2, and devices other than the CPU, need the extra hippod[torch]; "
        "install it with `make install EXTRAS=torch` in a checkout, or with pip install 'hippod[torch]'"
    )


def _sentence_transformers_identity(model: str) -> "EncoderIdentity | None":
    from store.types import EncoderIdentity

    if not packaged_model.is_packaged(model):
        return None
    return EncoderIdentity(packaged_model.PACKAGED_MODEL, packaged_model.PACKAGED_MODEL_DIM)


def _torch_device(device: str) -> str:
    """`device` for torch: "auto" becomes an accelerator if torch is installed and finds one, else "cpu"."""
    if device != "auto":
        return device
    if find_spec("sentence_transformers") is None:
        return "cpu"
    import torch

    return str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"


def _openai(settings: EncoderSettings) -> "Encoder":
    from memory.encoder.openai import OpenAIEncoder

    if settings.server is None:
        raise ValueError('[encoder] backend = "openai" needs a server.')
    return OpenAIEncoder(settings.model, settings.batch_size, settings.server)


ENCODER_BACKENDS = {
    backend.name: backend
    for backend in (
        EncoderBackend(
            name="sentence-transformers",
            summary="A sentence-transformers model runs here. all-MiniLM-L6-v2 comes with hippod; others need the extra torch.",
            make=_sentence_transformers,
            identity=_sentence_transformers_identity,
            missing_package=_missing_torch,
            loads_model_files=True,
            memory_bytes=GIB * 8 // 10,
        ),
        EncoderBackend(
            name="openai",
            summary="A server that speaks OpenAI's protocol makes the vectors.",
            make=_openai,
            needs_server=True,
            memory_bytes=GIB // 2,
        ),
        EncoderBackend(
            name="hash",
            summary="Feature hashing without a model finds little but equal words: for tests and very small machines.",
            make=_hash,
            identity=_hash_identity,
            check_model=_hash_dim,
            memory_bytes=GIB // 2,
        ),
    )
}
"""By name, in the order in which they are offered."""


def make_encoder(
    backend: str,
    model: str,
    batch_size: int,
    device: str,
    server: EmbeddingServer | None = None,
    triple_query_prefix: str | None = None,
) -> "Encoder":
    """Loads the encoder that the configuration names. Takes up to seconds; may run in any thread.

    `backend`: a key of `ENCODER_BACKENDS`. `model`: for "sentence-transformers" a model's name or folder ("all-MiniLM-L6-v2"
    is installed with hippod and never touches the network); for "hash" the dimension in digits (to 8192), else it is 256.
    `batch_size`: most texts that go through a model at once. `device`: "cpu", "cuda", "cuda:1", "mps", or "auto" for the
    best there is; "hash" and "openai" have none. `triple_query_prefix`: of a sentence-transformers model by name.

    Raises `ValueError` for a backend, batch size or dimension that cannot be, `EncoderUnavailable` when the model cannot be
    loaded.
    """
    if batch_size < 1:
        raise ValueError(f"[encoder] batch_size is {batch_size}; it must be at least 1.")
    if backend not in ENCODER_BACKENDS:
        *names, last = (f'"{name}"' for name in ENCODER_BACKENDS)
        raise ValueError(f'[encoder] backend is "{backend}"; it must be {", ".join(names)} or {last}.')
    return ENCODER_BACKENDS[backend].make(EncoderSettings(model, batch_size, device, server, triple_query_prefix))


def identity_before_loading(backend: str, model: str) -> "EncoderIdentity | None":
    """The identity that the encoder will have, where it is known without loading a model; else `None`."""
    return ENCODER_BACKENDS[backend].identity(model) if backend in ENCODER_BACKENDS else None
