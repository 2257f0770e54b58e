"""The model that is installed with hippod: where its files lie, and that they are the right ones."""

import hashlib
from pathlib import Path

from memory.encoder.errors import EncoderUnavailable
from memory.packaged_data import packaged_data

PACKAGED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED_MODEL_DIM = 384
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the `model.safetensors` that the model's authors published."""


def is_packaged(model: str) -> bool:
    """Whether `model` names the packaged model, with or without its owner."""
    return model in (PACKAGED_MODEL, PACKAGED_MODEL.partition("/")[2])


def model_dir() -> Path:
    """The folder with the packaged model's files, its weights verified (90 MB hashed: some 0.1 s).

    Raises `EncoderUnavailable` when they are missing or not those that were published.
    """
    try:
        folder = packaged_data(PACKAGED_MODEL.partition("/")[2])
    except FileNotFoundError as error:
        raise EncoderUnavailable(f"The packaged model {PACKAGED_MODEL} is missing: {error}") from None
    verify_checksum(folder / "model.safetensors", _WEIGHTS_SHA256)
    return folder


def verify_checksum(weights: Path, sha256: str) -> None:
    """Raises `EncoderUnavailable` unless the file can be read and has this SHA-256."""
    try:
        with weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EncoderUnavailable(
            f"The encoder's weights {weights} cannot be read ({error.strerror or error}); reinstall hippod."
        ) from error
    if found != sha256:
        raise EncoderUnavailable(
            f"The encoder's weights {weights} are not the published ones (SHA-256 {found}, expected {sha256}); "
            f"reinstall hippod."
        )
