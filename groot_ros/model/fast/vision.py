"""The vision tower, prepared."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's own name
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionBlock, Qwen3VLVisionPatchMerger

from groot_ros.model.fast.layers import FastLinear, FastNorm, Form, release, rotate
from groot_ros.model.fast.prompt import PreparedPrompt
from groot_ros.model.vision import VisionTower


class FastVision:
    """The vision tower; images of one size go through attention together."""

    def __init__(self, tower: VisionTower, form: Form) -> None:
        projection = tower.patch_embed.proj
        assert projection.bias is not None  # Qwen3-VL's always has one
        self._patch = FastLinear(projection.weight.detach().flatten(1), projection.bias.detach(), form)
        release(projection)
        self._blocks = [_Block(block, tower.head_dim, form) for block in tower.blocks]  # type: ignore[arg-type]
        self._deepstack_indexes = tower.deepstack_indexes
        self._deepstack = [_Merger(merger, form) for merger in tower.deepstack_merger_list]  # type: ignore[arg-type]
        self._merger = _Merger(tower.merger, form)

    def __call__(self, pixel_values: Tensor, prompt: PreparedPrompt) -> tuple[Tensor, list[Tensor]]:
        """Patches ``(patches, values)`` to image features and one deepstack tensor of the same shape per entry."""
        hidden = self._patch(pixel_values) + prompt.patch_positions
        deepstack = []
        for index, block in enumerate(self._blocks):
            hidden = block(hidden, prompt)
            if index in self._deepstack_indexes:
                deepstack.append(self._deepstack[self._deepstack_indexes.index(index)](hidden))
        return self._merger(hidden), deepstack


class _Block:
    def __init__(self, block: Qwen3VLVisionBlock, head_dim: int, form: Form) -> None:
        self._head_dim = head_dim
        self._norm1, self._norm2 = FastNorm(block.norm1, form), FastNorm(block.norm2, form)
        self._qkv = FastLinear.of([block.attn.qkv], form)
        self._projection = FastLinear.of([block.attn.proj], form)
        self._expand = FastLinear.of([block.mlp.linear_fc1], form, gelu=True)
        self._contract = FastLinear.of([block.mlp.linear_fc2], form)

    def __call__(self, hidden: Tensor, prompt: PreparedPrompt) -> Tensor:
        hidden = hidden + self._projection(self._attend(self._qkv(self._norm1(hidden)), prompt))
        return hidden + self._contract(self._expand(self._norm2(hidden)))

    def _attend(self, qkv: Tensor, prompt: PreparedPrompt) -> Tensor:
        """Attention inside each image."""
        parts = qkv.view(len(qkv), 3, -1, self._head_dim)
        rotated = rotate(parts[:, :2], *prompt.patch_rotary).to(qkv.dtype)
        attended, first = [], 0
        for count, patches in prompt.image_groups:
            rows = slice(first, first + count * patches)
            query, key, value = (
                tensor[rows].reshape(count, patches, -1, self._head_dim).transpose(1, 2)
                for tensor in (rotated[:, 0], rotated[:, 1], parts[:, 2])
            )
            attended.append(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2).flatten(0, 1))
            first = rows.stop
        return attended[0] if len(attended) == 1 else torch.cat(attended)


class _Merger:
    def __init__(self, merger: Qwen3VLVisionPatchMerger, form: Form) -> None:
        self._width: int = merger.hidden_size
        self._norm_after: bool = merger.use_postshuffle_norm
        self._norm = FastNorm(merger.norm, form)
        self._first = FastLinear.of([merger.linear_fc1], form)
        self._second = FastLinear.of([merger.linear_fc2], form)

    def __call__(self, hidden: Tensor) -> Tensor:
        if self._norm_after:
            merged = self._norm(hidden.view(-1, self._width))
        else:
            merged = self._norm(hidden).view(-1, self._width)
        return self._second(F.gelu(self._first(merged)))
