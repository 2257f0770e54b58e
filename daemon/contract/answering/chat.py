"""`POST /v1/chat/completions` and `GET /v1/models`: the part of OpenAI's protocol that chat programs use.

Names and types are those of OpenAI, so clients for that protocol work unchanged.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from daemon.contract.base import JsonBoolean, Response, is_empty
from daemon.contract.query import NOT_BLANK


class ChatModel(StrEnum):
    """The models. `hippod` answers like `ask`, `hippod-deep` like `ask --deep`; `hippod-search` returns passages and needs no
    language model.
    """

    ASK = "hippod"
    DEEP = "hippod-deep"
    SEARCH = "hippod-search"


class _Lenient(BaseModel):
    """Ignores unknown fields, because OpenAI's clients send many that have no meaning here, such as `temperature`."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class TextPart(_Lenient):
    type: Literal["text"]
    text: str


def _text_or_parts(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        # pydantic would report an error for each type of the union.
        raise PydanticCustomError("text_only", 'must be text, or parts of the type "text"') from None


class ChatMessage(_Lenient):
    """A message. `content` is text, or parts that are text; it may be missing except in the user's messages."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | list[TextPart] | None, WrapValidator(_text_or_parts)] = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


_TEXT: JsonDict = {"type": "string", "pattern": NOT_BLANK}
_PART: JsonDict = {"type": "object", "properties": {"text": _TEXT}, "required": ["text"]}
_QUESTION: JsonDict = {
    "type": "object",
    "properties": {"role": {"const": "user"}, "content": {"anyOf": [_TEXT, {"type": "array", "contains": _PART}]}},
    "required": ["role", "content"],
}


class StreamOptions(_Lenient):
    include_usage: JsonBoolean = False


class ChatRequest(_Lenient):
    """The user's last message is the question. Settings for sampling, tools and length have no effect."""

    model: Annotated[str, Field(json_schema_extra={"enum": [model.value for model in ChatModel]})]
    messages: Annotated[list[ChatMessage], Field(min_length=1, json_schema_extra={"contains": _QUESTION})]
    stream: JsonBoolean | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None


class UrlCitation(Response):
    """A cited document. `start_index` and `end_index` locate the citation's number in the content, in characters."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(Response):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AnswerMessage(Response):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation] = Field(default_factory=list)


class ChatChoice(Response):
    index: int = 0
    message: AnswerMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Usage(Response):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Response):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: ChatModel
    choices: list[ChatChoice]
    usage: Usage


class ChatDelta(Response):
    """The text added since the last event."""

    role: Literal["assistant"] | None = Field(default=None, exclude_if=is_empty)
    content: str = ""
    annotations: list[Annotation] = Field(default_factory=list, exclude_if=is_empty)


class ChunkChoice(Response):
    index: int = 0
    delta: ChatDelta
    finish_reason: Literal["stop"] | None = None


class ChatChunk(Response):
    """One event of a streamed answer. `usage`, if requested, comes in the last event, which has no choice."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: ChatModel
    choices: list[ChunkChoice]
    usage: Usage | None = Field(default=None, exclude_if=is_empty)


class ModelEntry(Response):
    id: ChatModel
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["hippod"] = "hippod"


class ModelList(Response):
    object: Literal["list"] = "list"
    data: list[ModelEntry]


class OpenAiError(Response):
    """An error in OpenAI's form, contained in the problem document as `error`."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None

    def as_extension(self) -> dict[str, Any]:
        return {"error": self.model_dump()}
