"""From texts to vectors. `make_encoder` is the door; each backend is one module behind it."""

from memory.encoder import packaged
from memory.encoder.errors import EncoderUnavailable
from memory.types import Encoder
from store.types import EncoderIdentity

__all__ = ["EncoderUnavailable", "identity_before_loading", "make_encoder"]


def make_encoder(backend: str, model: str, batch_size: int, device: str) -> Encoder:
    """Loads the encoder that the configuration names. Takes up to seconds; may run in any thread.

    `backend`: "sentence-transformers" or "hash". `model`: for "sentence-transformers" a model's name or folder
    ("all-MiniLM-L6-v2" is installed with hippod and never touches the network); for "hash" the dimension in digits, any
    other text meaning 256. `batch_size`: most texts that go through a model at once. `device`: "cpu", "cuda", "cuda:1",
    "mps", or "auto" for the best there is; "hash" has none.

    Raises `ValueError` for a backend, batch size or dimension that cannot be, `EncoderUnavailable` when the model cannot be
    loaded.
    """
    if batch_size < 1:
        raise ValueError(f"[encoder] batch_size is {batch_size}; it must be at least 1.")
    if backend == "hash":
        from memory.encoder.hashing import HashEncoder

        return HashEncoder(_hash_dim(model))
    if backend == "sentence-transformers":
        return _sentence_transformers(model, batch_size, device)
    raise ValueError(f'[encoder] backend is "{backend}"; it must be "sentence-transformers" or "hash".')


def identity_before_loading(backend: str, model: str) -> EncoderIdentity | None:
    """The identity that the encoder will have, where it is known without loading a model; else `None`."""
    if backend == "hash":
        from memory.encoder.hashing import NAME

        return EncoderIdentity(NAME, _hash_dim(model))
    if backend == "sentence-transformers" and packaged.is_packaged(model):
        return EncoderIdentity(packaged.NAME, packaged.DIM)
    return None


def _hash_dim(model: str) -> int:
    from memory.encoder.hashing import DEFAULT_DIM

    return int(model) if model.isascii() and model.isdigit() else DEFAULT_DIM


def _sentence_transformers(model: str, batch_size: int, device: str) -> Encoder:
    chosen = _device(device)
    if not packaged.is_packaged(model):
        from memory.encoder.library import LibraryEncoder

        return LibraryEncoder(model, model, batch_size, chosen)
    folder = packaged.model_dir()
    if chosen == "cpu":
        from memory.encoder.minilm import MiniLMEncoder

        return MiniLMEncoder(folder, batch_size)
    from memory.encoder.library import LibraryEncoder

    return LibraryEncoder(str(folder), packaged.NAME, batch_size, chosen)


def _device(device: str) -> str:
    """What torch is to be told: "auto" becomes an accelerator if torch finds one, else "cpu"."""
    if device != "auto":
        return device
    import torch

    return str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"
