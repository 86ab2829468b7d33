"""The kept decoder layers, prepared."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's own name
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextDecoderLayer

from groot_ros.model.fast.layers import FastLinear, FastRMSNorm, Form, rotate
from groot_ros.model.fast.prompt import PreparedPrompt
from groot_ros.model.language import LanguageLayers


class FastLanguage:
    """The decoder layers without logits, cache, final norm, or states that nobody reads."""

    def __init__(self, language: LanguageLayers, form: Form) -> None:
        self._layers = [_Layer(layer, language.head_dim, form) for layer in language.layers]  # type: ignore[arg-type]

    def __call__(self, image_features: Tensor, deepstack: Sequence[Tensor], prompt: PreparedPrompt) -> Tensor:
        """Image features ``(image tokens, hidden)`` to the hidden states of all tokens, ``(B, L, hidden)``."""
        embeddings = prompt.embeddings
        flat = embeddings.flatten(0, 1).index_copy(0, prompt.image_places, image_features.to(embeddings.dtype))
        hidden = flat.view_as(embeddings)
        for index, layer in enumerate(self._layers):
            hidden = layer(hidden, prompt)
            if index < len(deepstack):
                added = deepstack[index].to(hidden.dtype)
                hidden = hidden.flatten(0, 1).index_add(0, prompt.image_places, added).view_as(hidden)
        return hidden


class _Layer:
    def __init__(self, layer: Qwen3VLTextDecoderLayer, head_dim: int, form: Form) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self._head_dim = head_dim
        widths = [linear.out_features for linear in (attention.q_proj, attention.k_proj, attention.v_proj)]
        self._heads = [width // head_dim for width in widths]
        self._input_norm = FastRMSNorm(layer.input_layernorm, form)
        self._qkv = FastLinear.of([attention.q_proj, attention.k_proj, attention.v_proj], form)
        self._query_norm, self._key_norm = FastRMSNorm(attention.q_norm, form), FastRMSNorm(attention.k_norm, form)
        self._output = FastLinear.of([attention.o_proj], form)
        self._mlp_norm = FastRMSNorm(layer.post_attention_layernorm, form)
        self._activation = mlp.act_fn
        self._gate_and_up = FastLinear.of([mlp.gate_proj, mlp.up_proj], form)
        self._down = FastLinear.of([mlp.down_proj], form)

    def __call__(self, hidden: Tensor, prompt: PreparedPrompt) -> Tensor:
        hidden = hidden + self._output(self._attend(self._qkv(self._input_norm(hidden)), prompt))
        gate, up = self._gate_and_up(self._mlp_norm(hidden)).chunk(2, dim=-1)
        return hidden + self._down(self._activation(gate) * up)

    def _attend(self, qkv: Tensor, prompt: PreparedPrompt) -> Tensor:
        batch, tokens, _ = qkv.shape
        heads = qkv.view(batch, tokens, -1, self._head_dim).transpose(1, 2)
        query, key, value = torch.split(heads, self._heads, dim=1)
        query = rotate(self._query_norm(query), *prompt.text_rotary).to(qkv.dtype)
        key = rotate(self._key_norm(key), *prompt.text_rotary).to(qkv.dtype)
        repeats = self._heads[0] // self._heads[1]
        attended = F.scaled_dot_product_attention(
            query,
            key.repeat_interleave(repeats, dim=1),
            value.repeat_interleave(repeats, dim=1),
            attn_mask=prompt.causal,
            is_causal=prompt.causal is None,
        )
        return attended.transpose(1, 2).flatten(2)
