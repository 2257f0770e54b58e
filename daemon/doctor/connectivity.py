"""Checks the encoder's files, and the model servers by a request with a time limit."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2

from daemon.config import Config, model_key
from daemon.contract.finding import Finding, not_visible
from daemon.doctor.access_rights import closed
from daemon.model_settings import model_settings
from memory.encoder import EncoderUnavailable
from memory.encoder.packaged_model import packaged_model, verified_weights
from memory.encoder.registry import ENCODER_BACKENDS
from memory.llm.client import ModelClient
from memory.llm.errors import ModelError

ANSWER_TIMEOUT_S = 20.0
"""Time limit of a request. An idle server may load its model first."""


def encoder(config: Config) -> Iterator[Finding]:
    section = config.encoder
    backend = ENCODER_BACKENDS[section.backend]
    if backend.needs_server:
        yield embedding_server(config)
    if not backend.loads_model_files:
        return
    if (packaged := packaged_model(section.model)) is not None:
        try:
            yield Finding("encoder model", "ok", f"{section.model}, in {verified_weights(packaged).parent}")
        except EncoderUnavailable as error:
            yield Finding(
                "encoder model", "fail", str(error), "install hippod again: `make install`, or the package again"
            )
    else:
        yield model_files(section.model)


def model_files(model: str) -> Finding:
    """Checks a folder with a model, or Hugging Face's cache. Downloads nothing."""
    folder = Path(model).expanduser()
    if folder.is_absolute() and closed(folder) is not None:
        return not_visible("encoder model", folder)
    if folder.is_dir():
        if any(folder.rglob("*.safetensors")):
            return Finding("encoder model", "ok", str(folder))
        hint = "name a folder with safetensors weights"
        return Finding("encoder model", "fail", f"{folder} contains no *.safetensors", hint)
    from huggingface_hub import try_to_load_from_cache

    names = [model] if "/" in model else [model, f"sentence-transformers/{model}"]
    if any(isinstance(try_to_load_from_cache(name, "config.json"), str) for name in names):
        return Finding("encoder model", "ok", f"{model}, in Hugging Face's cache")
    hint = "download it on a machine with a network (hf download), name a folder, or use all-MiniLM-L6-v2, which is installed"
    return Finding("encoder model", "fail", f"{model} is not on this machine", hint)


def embedding_server(config: Config) -> Finding:
    base = (config.encoder.base_url or config.llm.base_url or "").rstrip("/")
    key = model_key(config.llm)
    body = {"model": config.encoder.model, "input": ["one"]}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    hint = "start the embeddings server, or correct [encoder] base_url and model"
    try:
        answer = httpx2.post(f"{base}/embeddings", json=body, headers=headers, timeout=ANSWER_TIMEOUT_S)
        answer.raise_for_status()
        dim = len(answer.json()["data"][0]["embedding"])
    except httpx2.HTTPStatusError as error:
        return Finding(
            "encoder model", "fail", f"{base} answers {error.response.status_code} for {config.encoder.model}", hint
        )
    except (httpx2.HTTPError, ValueError, LookupError, TypeError) as error:
        return Finding("encoder model", "fail", f"{base} does not answer correctly ({type(error).__name__})", hint)
    return Finding("encoder model", "ok", f"{config.encoder.model} at {base}: {dim} dimensions")


def llm(config: Config) -> Iterator[Finding]:
    """Asks the model for a few tokens, because a server that accepts connections may have no model."""
    settings = model_settings(config)
    if settings is None:
        yield Finding("llm", "ok", "none is configured: `ask` and recognition memory are disabled")
        return
    timeout_s = min(ANSWER_TIMEOUT_S, settings.timeout_s)

    async def ask() -> None:
        client = ModelClient(replace(settings, timeout_s=timeout_s, max_retries=0))
        try:
            async with asyncio.timeout(timeout_s + 1):
                await client.probe()
        finally:
            await client.close()

    try:
        asyncio.run(ask())
    except (ModelError, TimeoutError) as error:
        reason = str(error) or f"no answer in {timeout_s:g} s"
        hint = "start the model server, or correct [llm] base_url, model and key; passages wait meanwhile"
        yield Finding("llm", "fail", f"{settings.base_url}: {reason}", hint)
        return
    yield Finding("llm", "ok", f"{settings.model} at {settings.base_url} answers")
