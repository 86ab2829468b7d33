"""The vision tower: Qwen3-VL's blocks from transformers, run by our own loop, so that every release does the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the field's own name
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionBlock, Qwen3VLVisionPatchMerger

from groot_ros.model.positions import Grid, interpolate_position_grid, patch_coordinates, vision_rotary


class PatchEmbedding(nn.Module):
    """Embeds patches. The weight has the shape of a 3-D convolution, but a patch is one row, so this is a product.

    The convolution kernels for this shape are slower by orders of magnitude in bfloat16 on some GPUs.
    """

    def __init__(self, config: Qwen3VLVisionConfig) -> None:
        super().__init__()
        kernel = cast("tuple[int, int, int]", (config.temporal_patch_size, config.patch_size, config.patch_size))
        self.proj = nn.Conv3d(config.in_channels, config.hidden_size, kernel_size=kernel, stride=kernel)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """``(patches, channels * time * height * width)`` to ``(patches, hidden)``."""
        return F.linear(pixel_values, self.proj.weight.flatten(1), self.proj.bias)


class VisionTower(nn.Module):
    """Patches of several images to merged image features, and the deepstack features of some blocks."""

    def __init__(self, config: Qwen3VLVisionConfig) -> None:
        super().__init__()
        self.merge_size: int = config.spatial_merge_size
        self.head_dim: int = config.hidden_size // config.num_heads
        self.grid_side = math.isqrt(config.num_position_embeddings)
        self.deepstack_indexes: list[int] = list(config.deepstack_visual_indexes)
        self.patch_embed = PatchEmbedding(config)
        self.pos_embed = nn.Embedding(config.num_position_embeddings, config.hidden_size)
        self.blocks = nn.ModuleList(Qwen3VLVisionBlock(config) for _ in range(config.depth))
        self.merger = Qwen3VLVisionPatchMerger(config)
        self.deepstack_merger_list = nn.ModuleList(
            Qwen3VLVisionPatchMerger(config, use_postshuffle_norm=True) for _ in self.deepstack_indexes
        )

    def forward(self, pixel_values: Tensor, grids: Sequence[Grid]) -> tuple[Tensor, list[Tensor]]:
        """Encode images.

        Args:
            pixel_values: Patches of all images, ``(patches, channels * time * height * width)``.
            grids: Height and width of every image, in patches.

        Returns:
            Features ``(patches / merge_size**2, out)`` and one tensor of the same shape per deepstack block.

        """
        weight = self.pos_embed.weight
        indices, weights = interpolate_position_grid(grids, self.grid_side, self.merge_size)
        corners = self.pos_embed(indices.to(weight.device)) * weights.to(weight.device, weight.dtype)[..., None]
        hidden = self.patch_embed(pixel_values.to(weight.dtype)) + (corners[0] + corners[1] + corners[2] + corners[3])
        rotary = vision_rotary(patch_coordinates(grids, self.merge_size).to(weight.device), self.head_dim)
        # Attention stays inside an image. The blocks read these limits on the CPU.
        limits = torch.tensor([0, *(height * width for height, width in grids)], dtype=torch.int32).cumsum(0).int()
        deepstack = []
        for index, block in enumerate(self.blocks):
            hidden = block(hidden, cu_seqlens=limits, position_embeddings=rotary)
            if index in self.deepstack_indexes:
                merger = self.deepstack_merger_list[self.deepstack_indexes.index(index)]
                deepstack.append(merger(hidden))
        return self.merger(hidden), deepstack
