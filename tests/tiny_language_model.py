"""Tiny random language models on disk: a folder as the hub's, or a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

HEADS, GROUPS, SIZE, LAYERS = 4, 2, 16, 3
CONTEXT_LIMIT = 512
START, END = "<s>", "</s>"
VOCABULARY = 259
SPACE = "\u0120"  # as byte-level tokenizers write it
# ChatML with a start token of its own, as Llama's and SmolLM2's templates have it.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def tiny_tokenizer(template: str | None = None, *, starts: bool = True) -> Any:
    """A tokenizer of single bytes and of two spaces.

    With `starts` it puts the start token before a plain text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [START, END, *sorted(pre_tokenizers.ByteLevel.alphabet()), SPACE * 2]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[(SPACE, SPACE)]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    if starts:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{START} $A", special_tokens=[(START, 0)]
        )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        bos_token=START,
        eos_token=END,
        chat_template=template,
    )


def tiny_model(family: str = "llama", seed: int = 0, **fields: Any) -> Any:
    """A random causal language model over the vocabulary of `tiny_tokenizer`."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        family,
        **{
            "hidden_size": HEADS * SIZE,
            "intermediate_size": 96,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": GROUPS,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": CONTEXT_LIMIT,
            "initializer_range": 0.1,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": None,
        }
        | fields,
    )
    model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    return model.eval().requires_grad_(False)


def write_folder(
    folder: Path,
    family: str = "llama",
    template: str | None = None,
    *,
    starts: bool = True,
    **fields: Any,
) -> Any:
    """Write model and tokenizer into a folder; the model itself."""
    model = tiny_model(family, **fields)
    model.save_pretrained(folder)
    tiny_tokenizer(template, starts=starts).save_pretrained(folder)
    return model


def write_gguf(path: Path, template: str | None = TEMPLATE, kind: str = "gpt-2") -> Any:
    """Write a tiny Llama as a GGUF file, the way llama.cpp's converter does; the model itself."""
    from gguf import GGUFWriter

    model, tokenizer = tiny_model(tie_word_embeddings=True), tiny_tokenizer()
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT_LIMIT)
    writer.add_embedding_length(HEADS * SIZE)
    writer.add_feed_forward_length(96)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_rope_dimension_count(SIZE)
    writer.add_rope_freq_base(model.config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(kind)
    pieces = [one for one, _ in sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])]
    writer.add_token_list(pieces)
    writer.add_token_types([3, 3, *[1] * (VOCABULARY - 2)])
    writer.add_token_merges([f"{SPACE} {SPACE}"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    if template:
        writer.add_chat_template(template)
    for name, tensor in _gguf_tensors(model):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _gguf_tensors(model: Any) -> list[tuple[str, NDArray[np.float32]]]:
    names = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    found = [
        ("token_embd.weight", weights["model.embed_tokens.weight"]),
        ("output_norm.weight", weights["model.norm.weight"]),
    ]
    for layer in range(LAYERS):
        for name, short in names.items():
            weight = weights[f"model.layers.{layer}.{name}.weight"]
            if short in ("attn_q", "attn_k"):
                weight = _interleaved(weight)
            found.append((f"blk.{layer}.{short}.weight", np.ascontiguousarray(weight)))
    return found


def _interleaved(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows in llama.cpp's order of rotation: the halves of a head one by one."""
    heads = weight.reshape(-1, 2, SIZE // 2, weight.shape[1])
    return heads.swapaxes(1, 2).reshape(weight.shape)
