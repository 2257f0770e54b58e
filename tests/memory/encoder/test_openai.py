"""Embeddings from a server: normalised, prefixed as the model wants it, and held to the store's dimension."""

import json

import numpy as np
import pytest

from memory.encoder import EmbeddingServer, EncoderUnavailable
from memory.encoder.hashing import HashEncoder
from memory.encoder.openai import OpenAIEncoder
from tests.memory.llm.model_server import Raw, Status, obedient


def embedding(dim=64, scale=3.0):
    """Vectors of the hash encoder, not normalised, in another order than asked."""
    encoder = HashEncoder(dim)

    def script(call):
        if call.purpose != "embeddings":
            return obedient(call)
        vectors = encoder.encode(call.body["input"]) * scale
        data = [{"object": "embedding", "index": n, "embedding": v.tolist()} for n, v in enumerate(vectors)]
        return {
            "object": "list",
            "data": data[::-1],
            "model": call.body["model"],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }

    return script


def encoder(server, model="some-model", batch_size=8, retries=2, prefixes=(None, None)):
    return OpenAIEncoder(model, batch_size, EmbeddingServer(server.url, "k", 5.0, retries, *prefixes))


def test_vectors_have_unit_length_keep_the_order_and_are_fetched_in_batches(serve):
    server = serve(embedding())
    made = encoder(server)
    texts = [f"text number {n}" for n in range(20)]
    vectors = made.encode(texts)
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    assert np.allclose(vectors, HashEncoder(64).encode(texts), atol=1e-6)
    assert [len(call.body["input"]) for call in server.calls[1:]] == [8, 8, 4]
    assert (made.identity.name, made.identity.dim) == ("openai/some-model", 64)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("BAAI/bge-large-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_a_model_gets_the_prefixes_it_was_trained_with(serve, model, query, passage):
    server = serve(embedding())
    made = encoder(server, model)
    made.encode(["a text"])
    made.encode_query("a question")
    assert [call.body["input"] for call in server.calls[1:]] == [[f"{passage}a text"], [f"{query}a question"]]


@pytest.mark.parametrize(
    ("model", "prefixes", "asked"),
    [
        ("nvidia/NV-Embed-v2", (None, None), ["passages that answer it", "facts that match it"]),
        ("GritLM/GritLM-7B", (None, None), ["passages that answer it", "facts that match it"]),
        ("nvidia/NV-Embed-v2", ("Q ", None), ["Q a question"]),
        ("nvidia/NV-Embed-v2", ("Q ", None, "F "), ["Q a question", "F a question"]),
        ("BAAI/bge-large-en-v1.5", (None, None), ["a question"]),
    ],
)
def test_triple_queries_use_their_own_instruction_if_the_model_has_one(serve, model, prefixes, asked):
    """Equal prefixes are one vector, and one call."""
    server = serve(embedding())
    made = encoder(server, model, prefixes=prefixes)
    first, second = made.encode_query("a question"), made.encode_triple_query("a question")
    [*sent] = [call.body["input"][0] for call in server.calls[1:]]
    assert len(sent) == len(asked)
    assert all(part in text for part, text in zip(asked, sent, strict=True))
    assert np.array_equal(first, second) is (len(asked) == 1)


@pytest.mark.parametrize(
    ("model", "prefixes", "asked"),
    [
        ("nvidia/NV-Embed-v2", (None, None), ["passages that answer it", "phrases that it mentions", "mean the same"]),
        ("nvidia/NV-Embed-v2", ("Q ", None), ["Q a question"]),
        (
            "BAAI/bge-large-en-v1.5",
            (None, None, None, None, "P ", "N "),
            ["a question", "P a question", "N a question"],
        ),
        ("BAAI/bge-m3", (None, None), ["a question"]),
    ],
)
def test_phrase_queries_use_their_own_instructions(serve, model, prefixes, asked):
    server = serve(embedding())
    made = encoder(server, model, prefixes=prefixes)
    made.encode_query("a question")
    for is_name in (False, True):
        made.encode_phrase_query("a question", is_name)
    sent = [call.body["input"][0] for call in server.calls[1:]]
    assert len(sent) == len(asked)
    assert all(part in text for part, text in zip(asked, sent, strict=True))


def test_configured_prefixes_replace_the_known_prefixes(serve):
    server = serve(embedding())
    made = encoder(server, "intfloat/e5-base-v2", prefixes=("Q ", "P "))
    made.encode(["a text"])
    made.encode_query("a question")
    assert [call.body["input"] for call in server.calls[1:]] == [["P a text"], ["Q a question"]]


def test_failing_embedding_server_is_retried_and_named_in_the_error(serve):
    script = embedding()
    answers = iter([Status(500), Status(429, headers={"Retry-After": "0"})])
    server = serve(lambda call: next(answers, None) or script(call))
    made = encoder(server)
    server.script = lambda call: Raw("no vectors")
    with pytest.raises(EncoderUnavailable, match=r"127\.0\.0\.1"):
        made.encode(["x"])
    server.script = embedding(dim=32)
    with pytest.raises(EncoderUnavailable, match="32 dimensions"):
        made.encode(["x"])
    server.stop()
    with pytest.raises(OSError, match="model"):
        made.encode_query("never asked before")


def test_key_cut_by_the_end_of_an_error_message_is_hidden_completely(serve):
    key = "sk-" + "x1" * 20
    server = serve(lambda _call: Status(401, json.dumps({"error": {"message": "a" * 240 + key}})))
    with pytest.raises(EncoderUnavailable, match="aaa") as caught:
        OpenAIEncoder("some-model", 8, EmbeddingServer(server.url, key, 5.0, 0))
    assert "sk-x1" not in str(caught.value)


def test_redirect_of_the_embedding_server_is_refused_and_receives_no_text(serve):
    server, other = serve(embedding()), serve(embedding())
    made = encoder(server)
    server.script = lambda call: Status(307, headers={"Location": f"{other.url}/embeddings"})
    with pytest.raises(EncoderUnavailable, match=f"redirects to {other.url}") as refused:
        made.encode(["a secret"])
    assert other.calls == []
    assert other.url not in refused.value.loggable


def test_refused_connection_is_named_in_the_loggable_error(serve):
    """Nothing was sent, so nothing of a text can be in it."""
    server = serve(embedding())
    made = encoder(server, retries=0)
    server.stop()
    with pytest.raises(EncoderUnavailable) as refused:
        made.encode(["a secret"])
    assert "refused" in refused.value.loggable


@pytest.mark.daemon
def test_embeddings_server_outage_delays_indexing_and_wrong_dimension_is_refused(serve, hippo):
    server = serve(embedding())
    daemon = hippo(server, openie={"backend": "rules"}, encoder={"backend": "openai", "model": "some-model"})
    daemon.start()
    daemon.add({"id": "1", "title": "Light", "text": "Ada Kerr built Skellan Light."})
    assert daemon.wait()["encoder"] == "openai/some-model"
    assert daemon.query("Skellan Light")[0]["document"] == "added:1"
    server.stop()
    refused = daemon.ctl("--json", "query", "quite another question", "--mode", "dense")
    assert (refused.code, refused.json["status"]) == (1, 502)
    daemon.add({"id": "2", "title": "Harbour", "text": "Tolm Harbour lies on Orrey."})
    server.start()
    assert daemon.wait()["documents"] == 2
    assert daemon.stop() == 0
    # Started while the server does not answer: the store knows the vectors' length, and what needs none is answered.
    server.stop()
    daemon.start()
    assert daemon.query("Tolm Harbour", "bm25")[0]["document"] == "added:2"
    daemon.add({"id": "3", "title": "Mill", "text": "Orrey Mill grinds barley."})
    server.start()
    assert daemon.wait()["documents"] == 3
    assert daemon.stop() == 0
    server.script = embedding(dim=32)
    daemon.launch()
    assert daemon._ended(60) == 3
    assert "openai/some-model (64)" in daemon.log_text() and "openai/some-model (32)" in daemon.log_text()
