"""OpenAI's client with the memory: answers, streams, passages without a model, refusals."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse, Citation
from daemon.contract.base import Problem
from daemon.contract.http.routes import Route
from daemon.contract.query import Tokens
from daemon.errors import UpstreamFailed
from tests.daemon.api.harness import Served, served

TOKEN = "correct-horse-battery-staple"
QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who built it?"}]
INVALID = openai.UnprocessableEntityError
URI = "file:///drive/a%20(b).md"
CONTENT = "Emil did [1].\n\n- [1] [Rain \\[gauge\\]](file:///drive/a%20%28b%29.md)"


class Reader:
    """Answers like a language model, or fails, depending on the question."""

    def __init__(self) -> None:
        self.asked: list[AskRequest] = []

    async def ask(self, request: AskRequest) -> AskResponse:
        self.asked.append(request)
        if "fail" in request.question:
            raise UpstreamFailed("The model server is away.")
        return AskResponse(
            question=request.question,
            answer="Emil did [1].",
            citations=[Citation(rank=1, document=URI, title="Rain [gauge]", text="Emil Strand built it.")],
            steps=[],
            tokens=Tokens(prompt=20, completion=5),
            took_ms=1.0,
        )

    async def stream(self, request: AskRequest) -> AsyncGenerator[Any, None]:
        answer = await self.ask(request)
        for text in ("Emil", "Emil did"):
            yield AskProgress(text=text)
        if "repeat" in request.question:
            yield AskProgress(text=f"{answer.answer} {answer.answer}")
        if "break" in request.question:
            raise UpstreamFailed("The model server went away.")
        yield answer


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="module")
def api(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    token_file = Path(tmp_path_factory.mktemp("chat")) / "token"
    token_file.write_text(TOKEN)
    with served(asks=reader, tcp=("127.0.0.1", 0), token_file=token_file) as running:
        yield running


def client_of(api: Served, token: str = TOKEN) -> openai.OpenAI:
    assert api.server.tcp_address is not None
    address = f"http://127.0.0.1:{api.server.tcp_address[1]}/v1"
    return openai.OpenAI(base_url=address, api_key=token, max_retries=0, timeout=60)


@pytest.fixture(scope="module")
def client(api: Served) -> Iterator[openai.OpenAI]:
    with client_of(api) as made:
        yield made


def message_of(refused: openai.APIStatusError) -> str:
    assert isinstance(refused.body, dict)
    return str(refused.body["message"])


def test_an_answer_has_its_citations_as_links_and_annotations(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="hippod", messages=QUESTION, temperature=0.5)
    message = answer.choices[0].message
    assert (message.role, message.content, answer.choices[0].finish_reason) == ("assistant", CONTENT, "stop")
    assert answer.usage is not None and answer.usage.total_tokens == 25
    assert message.annotations is not None
    cited = message.annotations[0].url_citation
    assert (cited.url, cited.title, CONTENT[cited.start_index : cited.end_index]) == (URI, "Rain [gauge]", "[1]")


def test_streamed_chat_answer_equals_the_unstreamed_one(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="hippod", messages=QUESTION, stream=True, stream_options={"include_usage": True}
    ) as stream:
        pieces = list(stream)
    deltas = [piece.choices[0].delta for piece in pieces if piece.choices]
    assert "".join(delta.content or "" for delta in deltas) == CONTENT
    assert [delta.content for delta in deltas][1:3] == ["Emil", " did"]
    added = deltas[-2].model_extra
    assert added is not None and added["annotations"][0]["url_citation"]["url"] == URI
    assert [piece.choices[0].finish_reason for piece in pieces if piece.choices][-2:] == [None, "stop"]
    assert pieces[-1].usage is not None and pieces[-1].usage.prompt_tokens == 20
    assert len({piece.id for piece in pieces}) == 1


def test_stream_does_not_resend_a_final_answer_shorter_than_the_text_sent(client: openai.OpenAI) -> None:
    repeated: list[ChatCompletionMessageParam] = [{"role": "user", "content": "repeat"}]
    with client.chat.completions.create(model="hippod", messages=repeated, stream=True) as stream:
        text = "".join(piece.choices[0].delta.content or "" for piece in stream)
    answer, _, sources = CONTENT.partition("\n\n")
    assert text == f"{answer} {answer}\n\n{sources}"


def test_search_model_answers_with_the_passages(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="hippod-search", messages=QUESTION)
    assert answer.choices[0].message.content == "[1] T (u:1)\n\n> x"
    with client.chat.completions.create(model="hippod-search", messages=QUESTION, stream=True) as stream:
        assert "".join(piece.choices[0].delta.content or "" for piece in stream) == "[1] T (u:1)\n\n> x"


def test_deep_model_asks_deeply_and_includes_earlier_questions(client: openai.OpenAI, reader: Reader) -> None:
    turns: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Zero?"},
        {"role": "user", "content": "What is\nit?"},
        {"role": "assistant", "content": "A gauge."},
        {"role": "user", "content": "x" * 1000},
        {"role": "user", "content": [{"type": "text", "text": "And when?"}]},
    ]
    client.chat.completions.create(model="hippod-deep", messages=turns)
    assert reader.asked[-1].deep
    assert reader.asked[-1].question == f"(Asked before: What is it?)\n(Asked before: {'x' * 400})\nAnd when?"
    client.chat.completions.create(model="hippod", messages=turns[:2])
    assert (reader.asked[-1].deep, reader.asked[-1].question) == (False, "Zero?")


def test_models_without_an_llm_are_only_the_search_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["hippod", "hippod-deep", "hippod-search"]
    with served() as without:
        listed = without.client.get(Route.MODELS).json()["data"]
        assert [model["id"] for model in listed] == ["hippod-search"]
        refused = without.client.post(Route.CHAT, json={"model": "hippod", "messages": QUESTION})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not-configured")
        assert "hippod-search" in refused.json()["error"]["message"]
        found = without.client.post(Route.CHAT, json={"model": "hippod-search", "messages": QUESTION})
        assert found.status_code == 200


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({"model": "gpt-9", "messages": QUESTION}, openai.NotFoundError, "hippod-search"),
        ({"model": "hippod", "messages": [{"role": "assistant", "content": "No."}]}, INVALID, "question"),
        ({"model": "hippod", "messages": [{"role": "user", "content": "x" * 31_000}]}, INVALID, "31,000"),
        ({"model": "hippod", "messages": QUESTION, "n": 2}, INVALID, "n"),
        ({"model": "hippod", "messages": [{"role": "user", "content": "fail"}]}, openai.InternalServerError, "away"),
    ],
)  # fmt: skip
def test_refused_chat_request_raises_the_matching_openai_error(
    client: openai.OpenAI, asked: Any, kind: Any, message: str
) -> None:
    with pytest.raises(kind) as refused:
        client.chat.completions.create(**asked)
    assert isinstance(refused.value, openai.APIStatusError)
    assert message in message_of(refused.value)
    assert Problem.model_validate_json(refused.value.response.content).status == refused.value.status_code


PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"messages": QUESTION, "n": 2}, "n: input should be 1."),
        ({"messages": PICTURE}, 'messages[0].content: must be text, or parts of the type "text".'),
        (
            {"messages": PICTURE, "n": 2},
            'messages[0].content: must be text, or parts of the type "text"; n: input should be 1',
        ),
    ],
)
def test_an_invalid_field_is_named_once(client: openai.OpenAI, asked: Any, message: str) -> None:
    with pytest.raises(INVALID) as refused:
        client.chat.completions.create(model="hippod", **asked)
    assert message_of(refused.value) == message


def test_wrong_token_raises_the_openai_authentication_error(api: Served) -> None:
    with client_of(api, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_failed_stream_raises_an_openai_error_with_the_cause(client: openai.OpenAI) -> None:
    broken: list[ChatCompletionMessageParam] = [{"role": "user", "content": "break"}]
    with (
        client.chat.completions.create(model="hippod", messages=broken, stream=True) as stream,
        pytest.raises(openai.APIError, match="went away"),
    ):
        list(stream)
    with pytest.raises(openai.InternalServerError, match="away"):
        client.chat.completions.create(model="hippod", messages=[{"role": "user", "content": "fail"}], stream=True)


def test_every_operation_has_a_unique_identifier_and_a_summary(api: Served) -> None:
    """Open WebUI and similar programs name a tool by `operationId` and describe it by `summary`."""
    document = api.client.get(Route.OPENAPI).json()
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names) and {"query", "ask", "chat_completions", "models"} <= set(names)
    assert all(each["summary"] and name.isidentifier() for each, name in zip(operations, names, strict=True))
