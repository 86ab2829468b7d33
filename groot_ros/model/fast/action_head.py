"""The action head for one embodiment and a fixed number of denoising steps, prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name

from groot_ros.model.action_head import ActionHead
from groot_ros.model.attention import Attention, FeedForward, GeluProjection
from groot_ros.model.category_specific import CategorySpecificLinear
from groot_ros.model.dit import DiT, DiTBlock
from groot_ros.model.embeddings import action_time_embedding, transformer_time_embedding
from groot_ros.model.fast.layers import FastLinear, FastNorm, Form, release
from groot_ros.model.fast.prompt import PreparedPrompt
from groot_ros.model.vl_self_attention import SelfAttentionBlock, VLSelfAttention


@dataclass(frozen=True)
class Modulation:
    """Scale and shift of a layer norm in one denoising step: ``scale`` includes the 1 that is added to it."""

    scale: Tensor
    shift: Tensor


@dataclass(frozen=True)
class CrossMemory:
    """Keys and values of a cross-attention block, ``(B, heads, S, head_dim)``, and which of them count."""

    key: Tensor
    value: Tensor
    mask: Tensor | None


@dataclass(frozen=True)
class FastConditions:
    """What stays the same over the denoising steps: the encoded state, and the memory of every cross-attention."""

    state_features: Tensor
    memories: tuple[CrossMemory, ...]


class FastActionHead:
    """The action head of one embodiment.

    Args:
        head: The plain action head; its weights move here.
        embodiment: Which of its projectors to keep.
        steps: Number of denoising steps, whose time embeddings and modulations become tables.
        form: How to compute.

    """

    def __init__(self, head: ActionHead, embodiment: int, steps: int, form: Form) -> None:
        config = head.config
        self._residual = form.residual
        self.horizon = config.action_horizon
        self._norm = FastNorm(head.vlln, form) if isinstance(head.vlln, nn.LayerNorm) else None
        adapter = head.vl_self_attention
        blocks = adapter.transformer_blocks if isinstance(adapter, VLSelfAttention) else ()
        self._adapter = [_AdapterBlock(cast("SelfAttentionBlock", block), form) for block in blocks]
        state, decoder = head.state_encoder, head.action_decoder
        self._state = [_projector(layer, embodiment, form) for layer in (state.layer1, state.layer2)]
        self._decoder = [_projector(layer, embodiment, form) for layer in (decoder.layer1, decoder.layer2)]
        device = head.model.proj_out_2.weight.device
        self.buckets = [int(step / steps * config.num_timestep_buckets) for step in range(steps)]
        buckets = torch.tensor(self.buckets, device=device)
        self._encode_actions(head, embodiment, buckets, form)
        self._transformer = _FastDiT(head.model, buckets, form)

    def conditions(self, hidden: Tensor, state: Tensor, prompt: PreparedPrompt) -> FastConditions:
        """What every denoising step reads, from the backbone's ``(B, L, width)`` and the state ``(B, T, width)``."""
        context = hidden if self._norm is None else self._norm(hidden)
        for block in self._adapter:
            context = block(context)
        first, second = self._state
        state_features = second(F.relu(first(state.flatten(1)[:, None]))).to(self._residual)
        return FastConditions(state_features, self._transformer.memories(context, prompt))

    def velocity(self, conditions: FastConditions, actions: Tensor, step: int) -> Tensor:
        """The velocity of noisy actions ``(B, H, D)`` in a denoising step."""
        hidden = F.silu(self._actions_in(self._actions(actions)) + self._time_bias[step])
        tokens = self._actions_out(hidden).to(self._residual) + self._positions
        output = self._transformer(torch.cat([conditions.state_features, tokens], dim=1), step, conditions.memories)
        first, second = self._decoder
        return second(F.relu(first(output[:, -actions.shape[1] :])))

    def _encode_actions(self, head: ActionHead, embodiment: int, buckets: Tensor, form: Form) -> None:
        encoder, width = head.action_encoder, head.action_encoder.hidden_dim
        self._actions = _projector(encoder.W1, embodiment, form)
        # The time stands beside the actions in the input of this layer: its part of the sum is one row per step.
        weight, bias = encoder.W2.W[embodiment].detach(), encoder.W2.b[embodiment].detach()
        time = action_time_embedding(buckets, width).to(form.residual)
        self._time_bias = time @ weight[width:].to(form.residual) + bias.to(form.residual)
        self._actions_in = FastLinear(weight[:width].T.contiguous(), None, form)
        release(encoder.W2)
        self._actions_out = _projector(encoder.W3, embodiment, form)
        self._positions = torch.zeros((), dtype=form.residual, device=buckets.device)
        if head.position_embedding is not None:
            self._positions = head.position_embedding.weight[: self.horizon].detach().to(form.residual)
            release(head.position_embedding)


class _FastDiT:
    """The diffusion transformer with its modulations as tables."""

    def __init__(self, transformer: DiT, buckets: Tensor, form: Form) -> None:
        self._text_every = transformer.attend_text_every_n_blocks
        blocks = cast("Sequence[DiTBlock]", transformer.transformer_blocks)
        embedder = transformer.timestep_encoder.timestep_embedder
        embedding = transformer_time_embedding(buckets, embedder.linear_1.in_features).to(form.residual)
        time = F.silu(_table(embedder.linear_2, F.silu(_table(embedder.linear_1, embedding))))
        self._norms = []
        for block in blocks:
            scale, shift = _table(block.norm1.linear, time).chunk(2, dim=-1)
            self._norms.append(_modulations(scale, shift))
        shift, scale = _table(transformer.proj_out_1, time).chunk(2, dim=-1)  # shift first here, scale first above
        self._out_norm = _modulations(scale, shift)
        self._blocks = [_Block(block, is_cross=index % 2 == 0, form=form) for index, block in enumerate(blocks)]
        self._out_eps = transformer.norm_out.eps
        self._projection = FastLinear.of([transformer.proj_out_2], form)

    def memories(self, context: Tensor, prompt: PreparedPrompt) -> tuple[CrossMemory, ...]:
        """Keys and values of the cross-attention blocks in their order, over the tokens that each of them sees."""
        if self._text_every is None:
            return tuple(block.memory(context, None) for block in self._blocks[::2])
        text, images = prompt.text.take(context), prompt.images.take(context)
        return tuple(
            block.memory(text, prompt.text.mask)
            if number % self._text_every == 0
            else block.memory(images, prompt.images.mask)
            for number, block in enumerate(self._blocks[::2])
        )

    def __call__(self, hidden: Tensor, step: int, memories: tuple[CrossMemory, ...]) -> Tensor:
        """``(B, T, dim)`` to ``(B, T, output_dim)``."""
        for index, block in enumerate(self._blocks):
            memory = memories[index // 2] if index % 2 == 0 else None
            hidden = block(hidden, self._norms[index][step], memory)
        return self._projection(_modulated(hidden, self._out_norm[step], self._out_eps))


class _Block:
    def __init__(self, block: DiTBlock, *, is_cross: bool, form: Form) -> None:
        attention = block.attn1
        self._heads = attention.heads
        self._eps, self._eps3 = block.norm1.norm.eps, block.norm3.eps
        if is_cross:
            self._query = FastLinear.of([attention.to_q], form)
            self._key_value = FastLinear.of([attention.to_k, attention.to_v], form)
        else:
            self._query_key_value = FastLinear.of([attention.to_q, attention.to_k, attention.to_v], form)
        self._output = _output(attention, form)
        self._expand, self._contract = _feed_forward(block.ff, form)

    def memory(self, context: Tensor, mask: Tensor | None) -> CrossMemory:
        key, value = _heads(self._key_value(context), self._heads, 2)
        return CrossMemory(key.contiguous(), value.contiguous(), mask)

    def __call__(self, hidden: Tensor, modulation: Modulation, memory: CrossMemory | None) -> Tensor:
        normed = _modulated(hidden, modulation, self._eps)
        if memory is None:
            query, key, value = _heads(self._query_key_value(normed), self._heads, 3)
            attended = F.scaled_dot_product_attention(query, key, value)
        else:
            (query,) = _heads(self._query(normed), self._heads, 1)
            attended = F.scaled_dot_product_attention(query, memory.key, memory.value, attn_mask=memory.mask)
        hidden = hidden + self._output(attended.transpose(1, 2).flatten(2))
        normed = F.layer_norm(hidden, hidden.shape[-1:], eps=self._eps3)
        return hidden + self._contract(self._expand(normed))


class _AdapterBlock:
    """A block of the self-attention over the vision-language features, padding included."""

    def __init__(self, block: SelfAttentionBlock, form: Form) -> None:
        attention = block.attn1
        self._heads = attention.heads
        self._norm1, self._norm3 = FastNorm(block.norm1, form), FastNorm(block.norm3, form)
        self._query_key_value = FastLinear.of([attention.to_q, attention.to_k, attention.to_v], form)
        self._output = _output(attention, form)
        self._expand, self._contract = _feed_forward(block.ff, form)

    def __call__(self, hidden: Tensor) -> Tensor:
        query, key, value = _heads(self._query_key_value(self._norm1(hidden)), self._heads, 3)
        attended = F.scaled_dot_product_attention(query, key, value)
        hidden = hidden + self._output(attended.transpose(1, 2).flatten(2))
        return hidden + self._contract(self._expand(self._norm3(hidden)))


def _projector(layer: nn.Module, embodiment: int, form: Form) -> FastLinear:
    """One embodiment's weights of a category-specific layer."""
    specific = cast("CategorySpecificLinear", layer)
    weight = specific.W[embodiment].detach().T.contiguous()
    bias = specific.b[embodiment].detach().clone()
    release(specific)
    return FastLinear(weight, bias, form)


def _output(attention: Attention, form: Form) -> FastLinear:
    return FastLinear.of([attention.to_out[0]], form)


def _feed_forward(layers: FeedForward, form: Form) -> tuple[FastLinear, FastLinear]:
    expand = cast("GeluProjection", layers.net[0]).proj
    return FastLinear.of([expand], form, gelu=True), FastLinear.of([layers.net[2]], form)


def _heads(projected: Tensor, heads: int, parts: int) -> tuple[Tensor, ...]:
    """``(B, T, parts * heads * head_dim)`` to ``parts`` tensors ``(B, heads, T, head_dim)``."""
    batch, tokens, width = projected.shape
    split = projected.view(batch, tokens, parts, heads, width // (parts * heads))
    return tuple(split[:, :, part].transpose(1, 2) for part in range(parts))


def _table(linear: nn.Linear, x: Tensor) -> Tensor:
    """A linear layer in the number type of its input; its weights are let go."""
    result = F.linear(x, linear.weight.detach().to(x.dtype), linear.bias.detach().to(x.dtype))
    release(linear)
    return result


def _modulations(scale: Tensor, shift: Tensor) -> list[Modulation]:
    return [Modulation(1 + a, b) for a, b in zip(scale, shift, strict=True)]


def _modulated(hidden: Tensor, modulation: Modulation, eps: float) -> Tensor:
    return F.layer_norm(hidden, hidden.shape[-1:], modulation.scale, modulation.shift, eps)
