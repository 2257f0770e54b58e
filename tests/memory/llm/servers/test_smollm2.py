"""SmolLM2-135M-Instruct behind llama.cpp's server: a real model, small and often wrong, with hippod's client and extractor.

No test depends on the model's knowledge: its answers are used, dropped and counted, or reported. The last test prints the
measurements of docs/explanation/benchmarks.md.
"""

import asyncio
import json
import subprocess
import urllib.request
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import BadAnswer, ModelDown, ModelError, ModelRefused
from memory.llm.json_answers import parse
from memory.llm.limiter import Limiter
from memory.llm.messages import neutralise_control_tokens, user_message
from memory.llm.response_format import BY_JSON_OBJECT, BY_SCHEMA, BY_WORDS_ALONE
from memory.openie.llm.extractor import LLMExtractor, parse_entities
from memory.openie.llm.prompts import ENTITIES_SCHEMA
from store.types import PassageText
from tests.memory.llm.servers.llama_server import PYTHON, needs_llama_cpp
from tests.memory.llm.servers.smollm2 import ANSWER_S, MODEL, PASSAGES, needs_smollm2, smollm2
from tests.memory.llm.servers.throttled_proxy import throttled

pytestmark = [pytest.mark.model_server, pytest.mark.timeout(3600), needs_llama_cpp, needs_smollm2]
DRIVE = Path(__file__).parents[4] / "examples" / "drive"
PLACEHOLDERS = {"<filename>", "<repo_name>", "<reponame>"}
"""Control tokens that manuals use as ordinary words (memory/llm/messages.py)."""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with smollm2(tmp_path_factory.mktemp("smollm2")) as address:
        yield address


def asking(url, work, json_mode=None, **settings):
    """What `work(client)` gives, and the outcomes and tokens of its calls."""
    outcomes: list[tuple[str, str]] = []
    tokens: list[tuple[str, int, int]] = []

    async def run():
        made = ModelSettings(url, "smollm2", **{"timeout_s": ANSWER_S, "max_retries": 1, **settings})
        client = ModelClient(made, lambda *call: outcomes.append(call), lambda *counts: tokens.append(counts))
        if json_mode is not None:
            client._capabilities.json_mode = json_mode
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run()), outcomes, tokens


def tokenized(url: str, text: str) -> list[int]:
    """Returns the tokens of a text in a prompt, as the server makes them."""
    address = url.removesuffix("/v1") + "/tokenize"
    body = json.dumps({"content": text, "parse_special": True}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return list(json.load(answer)["tokens"])


def test_no_control_token_of_its_tokenizer_gets_into_a_message(url):
    script = Path(__file__).with_name("gguf_tokens.py")
    printed = subprocess.run([str(PYTHON), str(script), MODEL], check=True, capture_output=True).stdout
    control = {int(number): text for number, text in json.loads(printed).items()}
    assert {"<|im_start|>", "<|im_end|>", "<file_sep>"} < set(control.values())
    hidden_tokens = {number: text for number, text in control.items() if text not in PLACEHOLDERS}
    for number, text in hidden_tokens.items():
        assert number in tokenized(url, f"a {text} b"), "the server makes the token of its spelling"
        for hidden in (text, f"a{text}b", text.upper(), text.replace("|", "｜"), f"{text}system\n{text}"):
            neutral = neutralise_control_tokens(hidden)
            assert not hidden_tokens.keys() & set(tokenized(url, neutral)), (hidden, neutral)


@pytest.mark.parametrize("json_mode", [BY_SCHEMA, BY_WORDS_ALONE])
def test_extraction_with_smollm2_succeeds_or_is_refused_with_token_counts(url, json_mode):
    """By schema a grammar binds the answer, and in words alone nothing does."""

    async def work(client):
        try:
            return await LLMExtractor(client, Limiter(2)).read(PASSAGES[0])
        except (BadAnswer, ModelRefused) as error:
            return error

    found, outcomes, tokens = asking(url, work, json_mode)
    assert not {outcome for _, outcome in outcomes} & {"5xx", "protocol", "connection", "timeout"}, outcomes
    assert all(prompt > 100 and completion > 0 for _, prompt, completion in tokens)
    text = PASSAGES[0].full.lower()
    if not isinstance(found, ModelError):
        assert {purpose for purpose, *_ in tokens} == {"entities", "triples"}
        assert all(subject in text or object_ in text for subject, _, object_ in found.triples)


def test_two_clients_at_once_are_both_answered(url):
    async def work(client):
        asked = [client.ask("answer", [user_message(f"Say {n}.")], ENTITIES_SCHEMA, dict, max_tokens=8) for n in (1, 2)]
        return await asyncio.gather(*asked, return_exceptions=True)

    found, _, tokens = asking(url, work, BY_JSON_OBJECT)
    assert not any(isinstance(each, ModelDown) for each in found), found
    assert len(tokens) >= 2


def test_a_prompt_beyond_its_context_is_refused_as_too_long(url):
    async def work(client):
        with pytest.raises(ModelRefused) as refused:
            await client.ask("entities", [user_message("word " * 5000)], ENTITIES_SCHEMA, parse_entities)
        return refused.value.too_long

    assert asking(url, work)[0]


def test_cancelled_stream_is_counted_and_does_not_block_the_next_call(url):
    async def work(client):
        messages = [user_message("Count from one to a thousand.")]
        stream = client.stream("answer", messages, ENTITIES_SCHEMA, max_tokens=500)
        replies = []
        async for reply in stream:
            replies.append(reply.text)
            if len(replies) > 5:
                break
        await stream.aclose()
        await client.probe()
        return replies

    replies, outcomes, tokens = asking(url, work, BY_WORDS_ALONE)
    assert all(after.startswith(before) for before, after in pairwise(replies))
    assert outcomes[-1] == ("probe", "ok")
    assert len(tokens) == 1 and tokens[0][2] > 0


def test_slow_stream_that_progresses_does_not_time_out(url):
    """A token is an event of about 200 bytes: forty of them take longer than the time limit."""

    async def work(client):
        messages = [user_message("Count from one to a hundred in words.")]
        began = asyncio.get_running_loop().time()
        replies = [r async for r in client.stream("answer", messages, ENTITIES_SCHEMA, max_tokens=40)]
        return replies, asyncio.get_running_loop().time() - began

    with throttled(url, 500.0) as slow:
        (replies, took_s), outcomes, _ = asking(slow, work, BY_WORDS_ALONE, timeout_s=10.0)
    assert outcomes == [("answer", "ok")] and replies[-1].text
    assert took_s > 10.0


def test_a_whole_answer_that_takes_too_long_is_streamed_at_the_next_try(url):
    """The model repeats a name up to 2,000 tokens, which takes longer than the limit on an idle machine, too."""

    async def work(client):
        messages = [user_message("List the rivers of Europe in JSON.")]
        return await client.ask("entities", messages, ENTITIES_SCHEMA, parse_entities, max_tokens=2000)

    async def tried(client):
        try:
            return await work(client)
        except (BadAnswer, ModelRefused) as error:
            return error

    _, outcomes, tokens = asking(url, tried, BY_SCHEMA, timeout_s=5.0, max_retries=2)
    assert outcomes[0] == ("entities", "timeout")
    assert outcomes[-1][1] not in ("timeout", "connection", "5xx", "protocol") and tokens


def test_shares_of_valid_answers_and_grounded_triples_are_measured(url, capsys):
    files = sorted(DRIVE.glob("places/*.txt"))[:3]
    passages = [PassageText(file.stem, file.stem, file.read_text("utf-8").strip()) for file in files]
    dropped: Counter[str] = Counter()
    valid: Counter[bool] = Counter()

    async def work(client):
        extractor = LLMExtractor(client, Limiter(1), lambda why, count: dropped.update({why: count}))
        ask = client._chat.complete

        async def counted(*arguments):
            reply = await ask(*arguments)
            try:
                valid[parse(reply.text).how == "ok"] += 1
            except BadAnswer:
                valid[False] += 1
            return reply

        client._chat.complete = counted
        loop = asyncio.get_running_loop()
        began, kept, failed = loop.time(), 0, 0
        for passage in passages:
            try:
                kept += len((await extractor.read(passage)).triples)
            except (BadAnswer, ModelRefused):
                failed += 1
        return kept, failed, loop.time() - began

    (kept, failed, took_s), _, tokens = asking(url, work)
    answers, count = sum(valid.values()), len(passages)
    well_formed = kept + dropped["ungrounded"]
    measured = {
        "passages": count,
        "failed": failed,
        "valid JSON": round(valid[True] / answers, 2),
        "grounded triples": round(kept / well_formed, 2) if well_formed else None,
        "dropped": dict(dropped),
        "calls a passage": round(answers / count, 2),
        "seconds a passage": round(took_s / count, 1),
        "prompt tokens a passage": sum(prompt for _, prompt, _ in tokens) // count,
        "completion tokens a passage": sum(completion for _, _, completion in tokens) // count,
    }
    assert answers >= count > 0
    with capsys.disabled():
        print(json.dumps(measured, indent=1))
