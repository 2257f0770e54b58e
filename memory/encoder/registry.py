"""Declares the encoder backends. Configuration, cross checks, the daemon, `doctor` and the docs derive from the declarations.

The code of a backend is in its own file, imported when the encoder is made, so this module imports nothing heavy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memory.encoder import packaged_model as packaged_models
from memory.encoder.errors import EncoderUnavailable

if TYPE_CHECKING:
    from memory.types import Encoder
    from store.types import EncoderIdentity

GIB = 1 << 30
MAX_HASH_DIM = 8192
"""Twice the dimension of usual models. With longer vectors, hashing a batch of texts would take gigabytes."""


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingServer:
    """The server to which a backend sends texts. `key` is the secret itself."""

    base_url: str
    key: str | None = None
    timeout_s: float = 60.0
    max_retries: int = 5
    query_prefix: str | None = None
    """None means the prefix that the model's makers document."""
    passage_prefix: str | None = None
    triple_query_prefix: str | None = None
    """None means `query_prefix` if it is set; otherwise an instruction for facts, if the model takes instructions."""
    known_dim: int | None = None
    """The vectors' dimension, if an earlier run found it."""
    phrase_query_prefix: str | None = None
    """Prefix for encoding a query that is compared with phrases. None means the default of `triple_query_prefix`, but with an
    instruction for phrases."""
    name_query_prefix: str | None = None
    """Prefix for encoding a name in a query that is compared with phrases."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    model: str
    batch_size: int
    device: str
    server: EmbeddingServer | None = None
    triple_query_prefix: str | None = None
    """Prefix for encoding a query that is compared with triples, for a local model."""
    made_by: "EncoderIdentity | None" = None
    """The encoder that made the store; None for a new store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderBackend:
    name: str
    """Value of `[encoder] backend`."""
    summary: str
    """One sentence for docs and `doctor`."""
    make: "Callable[[EncoderSettings], Encoder]"
    identity: "Callable[[str, EncoderIdentity | None], EncoderIdentity | None]" = lambda _model, _made_by: None
    """Receives (model, encoder that made the store); returns the identity of the model's encoder, None if it is unknown before
    loading."""
    check_model: Callable[[str], object] = lambda _model: None
    """Raises `ValueError`, with the allowed values, if the model's name is invalid. Loads nothing."""
    needs_server: bool = False
    passage_prefix: Callable[[str, str | None], str | None] = lambda _model, _given: None
    """Receives (model, configured prefix); returns the prefix of texts to be indexed, None for a backend without such a
    setting."""
    missing_package: Callable[[str, str], str | None] = lambda _model, _device: None
    """Receives (model, device); returns the missing package, or None. Loads nothing."""
    loads_model_files: bool = False
    """Whether `[encoder] model` names files on this machine, which `doctor` checks."""
    memory_bytes: int
    """Memory of an empty hippod with this encoder: libraries, model and two busy parsers."""


def _hash(settings: EncoderSettings) -> "Encoder":
    from memory.encoder.hashing import HashEncoder

    dim = _hash_dim(settings.model)
    return HashEncoder() if dim is None else HashEncoder(dim)


def _hash_identity(model: str, _made_by: "EncoderIdentity | None") -> "EncoderIdentity":
    from memory.encoder.hashing import DEFAULT_DIM, HASH_ENCODER_NAME
    from store.types import EncoderIdentity

    return EncoderIdentity(HASH_ENCODER_NAME, _hash_dim(model) or DEFAULT_DIM)


def _hash_dim(model: str) -> int | None:
    """Returns the dimension if `model` consists of digits; None (the default dimension) for any other text. Raises ValueError
    like `check_model`."""
    if not (model.isascii() and model.isdigit()):
        return None
    dim = float(model)  # int() refuses thousands of digits
    if not 1 <= dim <= MAX_HASH_DIM:
        raise ValueError(
            f'for backend = "hash" a number of dimensions from 1 to {MAX_HASH_DIM}, or a name, which means 256'
        )
    return int(dim)


def _sentence_transformers(settings: EncoderSettings) -> "Encoder":
    model, batch_size = settings.model, settings.batch_size
    if missing := _missing_package(model, settings.device):
        raise EncoderUnavailable(f"The encoder {model} cannot be loaded: {missing}.")
    packaged = packaged_models.packaged_model(model)
    device = "cpu" if packaged is not None and packaged.only_on_cpu else _torch_device(settings.device)
    if packaged is None:
        from memory.encoder.sentence_transformer import SentenceTransformerEncoder

        return SentenceTransformerEncoder(model, model, batch_size, device, settings.triple_query_prefix)
    weights = packaged_models.verified_weights(packaged)
    identity = packaged_models.identity_for(packaged, settings.made_by)
    if packaged is packaged_models.E5:
        from memory.encoder.e5 import load_e5

        return load_e5(weights, identity, batch_size)
    if device == "cpu":
        from memory.encoder.minilm import load_minilm

        return load_minilm(weights, identity, batch_size, windows=identity == packaged.identity)
    from memory.encoder.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(
        str(weights.parent), identity.name, batch_size, device, windows=identity == packaged.identity
    )


def _missing_package(model: str, device: str) -> str | None:
    packaged = packaged_models.packaged_model(model)
    if packaged is not None and packaged.only_on_cpu and device not in ("cpu", "auto"):
        return f'{model} runs on the CPU only; set [encoder] device to "auto" or "cpu"'
    if packaged is not None and device in ("cpu", "auto"):
        try:
            packaged.find_weights()
        except FileNotFoundError as error:
            return str(error)
        return None
    if find_spec("sentence_transformers") is not None:
        return None
    return (
        "models other than the packaged ones, and devices other than the CPU, need the extra hippod[torch]; "
        f"{packaged_models.install_command('torch')}"
    )


def _sentence_transformers_identity(model: str, made_by: "EncoderIdentity | None") -> "EncoderIdentity | None":
    packaged = packaged_models.packaged_model(model)
    return None if packaged is None else packaged_models.identity_for(packaged, made_by)


def _torch_device(device: str) -> str:
    """Returns torch's name of `device`; "auto" means an accelerator if torch finds one, otherwise "cpu"."""
    if device != "auto":
        return device
    if find_spec("sentence_transformers") is None:
        return "cpu"
    import torch

    return str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"


def _openai_prefix(model: str, given: str | None) -> str:
    from memory.encoder.text_preparation import prefixes_of

    return prefixes_of(model)[1] if given is None else given


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
            summary="A sentence-transformers model runs here. all-MiniLM-L6-v2 comes with hippod; others need an extra.",
            make=_sentence_transformers,
            identity=_sentence_transformers_identity,
            missing_package=_missing_package,
            loads_model_files=True,
            memory_bytes=GIB * 8 // 10,
        ),
        EncoderBackend(
            name="openai",
            summary="A server that speaks OpenAI's protocol makes the vectors.",
            make=_openai,
            needs_server=True,
            passage_prefix=_openai_prefix,
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
"""The backends by name, in the order in which users see them."""


def make_encoder(
    backend: str,
    model: str,
    batch_size: int,
    device: str,
    server: EmbeddingServer | None = None,
    triple_query_prefix: str | None = None,
    made_by: "EncoderIdentity | None" = None,
) -> "Encoder":
    """Loads the encoder that the configuration names. Takes up to seconds; may run in any thread.

    `backend`: a key of `ENCODER_BACKENDS`. `model`: for "sentence-transformers", a model's name or folder (the models of
    `packaged_model` never use the network); for "hash", the dimension in digits (at most 8192), otherwise 256. `batch_size`:
    maximum number of texts in one call of a model. `device`: "cpu", "cuda", "cuda:1", "mps", or "auto" for the best one;
    ignored by "hash" and "openai". `triple_query_prefix`: for a sentence-transformers model that is not packaged. `made_by`:
    the encoder that made the store.

    Raises `ValueError` for an invalid backend, batch size or dimension, and `EncoderUnavailable` if the model cannot be loaded.
    """
    if batch_size < 1:
        raise ValueError(f"[encoder] batch_size is {batch_size}; it must be at least 1.")
    if backend not in ENCODER_BACKENDS:
        *names, last = (f'"{name}"' for name in ENCODER_BACKENDS)
        raise ValueError(f'[encoder] backend is "{backend}"; it must be {", ".join(names)} or {last}.')
    return ENCODER_BACKENDS[backend].make(
        EncoderSettings(model, batch_size, device, server, triple_query_prefix, made_by)
    )


def identity_before_loading(
    backend: str, model: str, made_by: "EncoderIdentity | None" = None
) -> "EncoderIdentity | None":
    """Returns the identity of the encoder for a store made by `made_by`; None if it is unknown before loading."""
    return ENCODER_BACKENDS[backend].identity(model, made_by) if backend in ENCODER_BACKENDS else None


def encoder_name(backend: str, model: str) -> str:
    """Returns the name that the encoder gives to a new store."""
    known = identity_before_loading(backend, model)
    if known is not None:
        return known.name
    return f"{backend}/{model}" if ENCODER_BACKENDS[backend].needs_server else model


def backend_and_model(made_by: "EncoderIdentity") -> tuple[str, str]:
    """Returns `[encoder]` backend and model of the encoder that made a store's vectors."""
    if made_by == _hash_identity(str(made_by.dim), None):
        return "hash", str(made_by.dim)
    for model in packaged_models.PACKAGED_MODELS:
        if made_by in (model.identity, model.beginnings_only):
            return "sentence-transformers", model.names[0]
    backend, _, model_name = made_by.name.partition("/")
    if backend in ENCODER_BACKENDS and ENCODER_BACKENDS[backend].needs_server:
        return backend, model_name
    return "sentence-transformers", made_by.name
