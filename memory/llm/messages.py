"""Builds the messages of a prompt. All prompts use these functions, so that all quoted material is neutralised.

System messages, and the examples of answers, contain the operator's text. User messages contain material: text of documents,
names, triples, earlier answers, and questions.

A model's server puts each message between control tokens. Many servers convert the spelling of a control token inside a message
to the token itself. A document that contains such a spelling could end its own message and begin a message of the operator
(`neutralise_control_tokens`).
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from memory.llm.chat_completion import ChatMessage


def system_message(text: str) -> ChatMessage:
    """Returns a message with the operator's own text: the task, and the format of the answer."""
    return {"role": "system", "content": text}


def example_answer(text: str) -> ChatMessage:
    """Returns a message with the operator's example of an answer."""
    return {"role": "assistant", "content": text}


def user_message(text: str) -> ChatMessage:
    """All parts of the material must be joined first, because a control token may span two parts."""
    return {"role": "user", "content": neutralise_control_tokens(text)}


def quoted(name: str, text: str, number: int | None = None) -> str:
    """Returns `text` between marks that it cannot contain: «name 1» and «/name»."""
    opening = name if number is None else f"{name} {number}"
    return f"«{opening}»\n{without_quote_marks(text)}\n«/{name}»"


def without_quote_marks(text: str) -> str:
    """Returns `text` without the marks that quote material in a prompt."""
    return text.replace("«", "‹").replace("»", "›")


def shown_text(text: str) -> str:
    """Returns `text` as a prompt shows it to a model. Text that the model repeats must be compared with this form.
    Idempotent."""
    return neutralise_control_tokens(without_quote_marks(text))


@dataclass(frozen=True, slots=True)
class TemplateTokens:
    """The control tokens of one family of chat templates. `source` is the document that defines the tokens."""

    source: str
    tokens: tuple[str, ...]
    own_case: tuple[str, ...] = ()
    """Tokens that are also ordinary words in brackets, such as "[args]" in manuals; they are matched in this letter case
    only."""


CONTROL_TOKENS: Mapping[str, TemplateTokens] = {
    "ChatML": TemplateTokens(
        "https://github.com/openai/openai-python/blob/release-v0.28.1/chatml.md; tokenizer_config.json of Qwen/Qwen3-8B",
        (
            "<|im_start|>",
            "<|im_end|>",
            "<|im_sep|>",
            "<|endoftext|>",
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<tool_response>",
            "</tool_response>",
        ),
    ),
    "Harmony": TemplateTokens(
        "https://github.com/openai/harmony, its page on the format of responses",
        (
            "<|start|>",
            "<|end|>",
            "<|message|>",
            "<|channel|>",
            "<|constrain|>",
            "<|return|>",
            "<|call|>",
            "<|startoftext|>",
        ),
    ),
    "Llama 2": TemplateTokens(
        "https://github.com/meta-llama/llama/blob/main/llama/generation.py",
        ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<unk>"),
    ),
    "Llama 3 and 4": TemplateTokens(
        "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/ and …/llama4/",
        (
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|eom_id|>",
            "<|python_tag|>",
            "<|finetune_right_pad_id|>",
            "<|header_start|>",
            "<|header_end|>",
            "<|eot|>",
            "<|eom|>",
            "<|python_start|>",
            "<|python_end|>",
            "<|image|>",
        ),
    ),
    "Mistral": TemplateTokens(
        "https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/tokens/tokenizers/base.py",
        (
            "<s>",
            "</s>",
            "<unk>",
            "<pad>",
            "[INST]",
            "[/INST]",
            "[AVAILABLE_TOOLS]",
            "[/AVAILABLE_TOOLS]",
            "[TOOL_CALLS]",
            "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]",
            "[TOOL_CONTENT]",
            "[SYSTEM_PROMPT]",
            "[/SYSTEM_PROMPT]",
            "[MODEL_SETTINGS]",
            "[/MODEL_SETTINGS]",
            "[CALL_ID]",
            "[THINK]",
            "[/THINK]",
            "[IMG_BREAK]",
            "[IMG_END]",
            "[BEGIN_AUDIO]",
        ),
        ("[ARGS]", "[IMG]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[AUDIO]", "[TRANSCRIBE]"),
    ),
    "Gemma": TemplateTokens(
        "https://ai.google.dev/gemma/docs/core/prompt-structure; https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4",
        (
            "<bos>",
            "<eos>",
            "<pad>",
            "<unk>",
            "<start_of_turn>",
            "<end_of_turn>",
            "<start_of_image>",
            "<end_of_image>",
            "<|turn>",
            "<turn|>",
            "<|channel>",
            "<channel|>",
            "<|tool_call>",
            "<tool_call|>",
        ),
    ),
    "Phi": TemplateTokens(
        "tokenizer_config.json of microsoft/Phi-3-mini-4k-instruct and microsoft/phi-4",
        (
            "<|system|>",
            "<|user|>",
            "<|assistant|>",
            "<|end|>",
            "<|endoftext|>",
            "<|im_start|>",
            "<|im_sep|>",
            "<|im_end|>",
        ),
    ),
    "DeepSeek": TemplateTokens(
        "tokenizer_config.json of deepseek-ai/DeepSeek-V3, deepseek-ai/DeepSeek-R1 and deepseek-ai/DeepSeek-V3.2",
        (
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁outputs▁begin｜>",
            "<｜tool▁outputs▁end｜>",
            "<｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜>",
            "<｜tool▁sep｜>",
            "<｜fim▁begin｜>",
            "<｜fim▁hole｜>",
            "<｜fim▁end｜>",
            "｜DSML｜",
            "<think>",
            "</think>",
        ),
    ),
    "StarCoder 2 and SmolLM2": TemplateTokens(
        "tokenizer_config.json of bigcode/starcoder2-3b and HuggingFaceTB/SmolLM2-135M-Instruct",
        (
            "<file_sep>",
            "<gh_stars>",
            "<issue_start>",
            "<issue_comment>",
            "<issue_closed>",
            "<jupyter_start>",
            "<jupyter_text>",
            "<jupyter_code>",
            "<jupyter_output>",
            "<jupyter_script>",
            "<empty_output>",
        ),
    ),
}
"""Control tokens by template family. Role names ("User:", "### Instruction:") are plain text, not tokens.

The table omits `<filename>`, `<repo_name>` and `<reponame>` of StarCoder 2 and SmolLM2. Manuals use them as placeholders. They
mark files of the training text, and cannot end a message.
"""


_BARRED = r"<\|[^\s<>|]{1,64}\|?>|<[^\s<>|]{1,64}\|>"
"""The general forms `<|…|>`, `<|…>` and `<…|>`, which models outside the table use too."""


_GAP = r"\s{0,3}"
"""Spaces between the parts of a token; matching ignores them."""


_STAND_INS = str.maketrans("<>[]", "‹›⟦⟧")


_BARS = str.maketrans("|｜", "¦¦")
"""Replacements for delimiters: similar characters that no normalisation converts back."""


def neutralise_control_tokens(text: str) -> str:
    """Replaces the brackets of every part of `text` that a server could parse as a control token.

    One character replaces one character, so the text keeps its length and remains readable. Tokens are recognised in any case,
    with spaces or invisible characters in them, and in every spelling that Unicode normalises to the token. Idempotent.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    if not any(opener in plain for opener in "<[|"):
        return text
    out: list[str] = []
    end = 0
    for first, last in _spans(text):
        out += text[end:first], _other_brackets(text[first:last])
        end = last
    return "".join([*out, text[end:]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields the positions of tokens in the text, in ascending order."""
    if text.isascii():
        yield from (found.span() for found in _TOKEN.finditer(text))
        return
    plain: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for each in char if char.isascii() else _visible(char):
            plain.append(each)
            places.append(place)
    for found in _TOKEN.finditer("".join(plain)):
        yield places[found.start()], places[found.end() - 1] + 1


@lru_cache(65_536)
def _visible(char: str) -> str:
    """Returns the normalised character without invisible parts (combining marks and zero-width characters)."""
    return "".join(
        each
        for each in unicodedata.normalize("NFKD", char)
        if unicodedata.category(each) not in ("Cf", "Mn", "Me") and each not in _BLANK_LETTERS
    )


_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"
"""Blank letters and symbols: Hangul fillers, and the empty Braille pattern."""


def _other_brackets(token: str) -> str:
    replaced = "".join(_stand_in(char) for char in token)
    return replaced if replaced != token else token.translate(_BARS)


def _stand_in(char: str) -> str:
    """Returns the replacement of a bracket of any width; other characters unchanged."""
    plain = char if char.isascii() else _visible(char)
    return plain.translate(_STAND_INS) if plain in ("<", ">", "[", "]") else char


def _pattern(token: str) -> str:
    return _GAP.join(map(re.escape, re.findall(r"\w+|\W", unicodedata.normalize("NFKD", token))))


def _compiled() -> re.Pattern[str]:
    any_case = {token for family in CONTROL_TOKENS.values() for token in family.tokens}
    own_case = {token for family in CONTROL_TOKENS.values() for token in family.own_case}
    patterns = [_pattern(token) for token in sorted(any_case, key=len, reverse=True)]
    patterns += [f"(?-i:{_pattern(token)})" for token in sorted(own_case)]
    return re.compile("|".join([*patterns, _BARRED]), re.IGNORECASE)


_TOKEN = _compiled()
