"""`python random_gguf.py FILE`: a llama of random weights that llama.cpp loads, half a megabyte.

What it says is nonsense; how llama.cpp says it is not.

Its tokens are the 256 bytes and the printable ASCII characters, so that it can write whatever a grammar asks for. Needs `gguf`.
"""

import sys

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, FEED_FORWARD = 64, 2, 4, 128
CONTEXT = 8192
CHARACTERS = [chr(code) for code in range(32, 127)]
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "


def write(path: str, seed: int = 7) -> None:
    """Every run gives the same file."""
    dice = np.random.default_rng(seed)
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *("\u2581" if c == " " else c for c in CHARACTERS),
    ]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * len(CHARACTERS)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, dice.normal(0.0, 0.05, shape).astype(np.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    tensor("output.weight", len(tokens), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        tensor(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        tensor(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, WIDTH)
        tensor(f"blk.{layer}.ffn_down.weight", WIDTH, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
