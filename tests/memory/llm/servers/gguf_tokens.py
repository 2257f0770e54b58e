"""Prints the control tokens of a GGUF file as JSON: `gguf_tokens.py FILE`. Needs `gguf`."""

import json
import sys

from gguf import GGUFReader, TokenType


def control_tokens(path: str) -> dict[int, str]:
    """Returns the spellings of the tokens that structure a conversation, by number."""
    fields = GGUFReader(path).fields
    texts = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    structuring = (TokenType.CONTROL, TokenType.USER_DEFINED)
    return {number: text for number, (text, kind) in enumerate(zip(texts, kinds, strict=True)) if kind in structuring}


if __name__ == "__main__":
    json.dump(control_tokens(sys.argv[1]), sys.stdout)
