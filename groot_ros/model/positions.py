"""Positions of patches and tokens: Qwen3-VL's grid interpolation, its rotary angles and its three-axis token positions.

Everything here is computed from the configuration when it is needed. There is no buffer that a load could leave
uninitialised or in half precision. Frequencies and angles are float32 values, as in the original; the powers, cosines
and sines between them are taken in float64, so that they are the correctly rounded ones on every processor. The
float32 functions of different processors are not, and the network amplifies the last place.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from groot_ros.errors import ModelError

Grid = tuple[int, int]
"""Height and width of one image, in patches."""

_VISION_ROPE_THETA = 10_000.0


def patch_coordinates(grids: Sequence[Grid], merge_size: int) -> Tensor:
    """Row and column of every patch, in the order of the pixel rows: merge blocks first, patches inside a block next.

    Args:
        grids: Height and width of every image, in patches.
        merge_size: Patches along one side of a merge block.

    Returns:
        int64 ``(patches of all images, 2)``.

    """
    coordinates = [
        torch.cartesian_prod(torch.arange(height), torch.arange(width))
        .view(height // merge_size, merge_size, width // merge_size, merge_size, 2)
        .permute(0, 2, 1, 3, 4)
        .reshape(-1, 2)
        for height, width in grids
    ]
    return torch.cat(coordinates)


def interpolate_position_grid(grids: Sequence[Grid], side: int, merge_size: int) -> tuple[Tensor, Tensor]:
    """Bilinear resampling of the learned square position grid to the grid of each image.

    Args:
        grids: Height and width of every image, in patches.
        side: Side of the learned grid.
        merge_size: Patches along one side of a merge block.

    Returns:
        Rows of the position embedding, int64 ``(4, patches)``, and their weights, float32 ``(4, patches)``.

    """
    exact = []
    for height, width in grids:
        coordinates = patch_coordinates([(height, width)], merge_size)
        rows = torch.linspace(0, side - 1, height)[coordinates[:, 0]]
        columns = torch.linspace(0, side - 1, width)[coordinates[:, 1]]
        exact.append(torch.stack([rows, columns]))
    rows, columns = torch.cat(exact, dim=1)
    top, left = rows.long(), columns.long()
    bottom, right = (top + 1).clamp(max=side - 1), (left + 1).clamp(max=side - 1)
    down, across = rows - top, columns - left
    indices = torch.stack([top * side + left, top * side + right, bottom * side + left, bottom * side + right])
    weights = torch.stack([(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across])
    return indices, weights


def vision_rotary(coordinates: Tensor, head_dim: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles of the patches, float32 ``(patches, head_dim)`` each."""
    frequencies = _frequencies(_VISION_ROPE_THETA, head_dim // 2, coordinates.device)
    angles = (coordinates[..., None].float() * frequencies).flatten(1)
    return _cosine_and_sine(torch.cat([angles, angles], dim=-1))


def token_positions(image_mask: Tensor, valid: Tensor, grids: Sequence[Grid], merge_size: int) -> Tensor:
    """Temporal, height and width position of every token.

    Text advances all three axes together. The tokens of an image share the temporal position and count rows and
    columns from there; text goes on after the larger side. Padding has position 0, which nothing sees.

    Args:
        image_mask: Tokens that stand for image patches, bool ``(B, L)`` on the CPU.
        valid: Tokens that are not padding, bool ``(B, L)`` on the CPU.
        grids: Height and width of every image of the batch in order, in patches.
        merge_size: Patches along one side of a merge block.

    Returns:
        int64 ``(3, B, L)``.

    Raises:
        ModelError: The image tokens do not fit the grids.

    """
    positions = torch.zeros(3, *image_mask.shape, dtype=torch.long)
    next_grid = iter([(height // merge_size, width // merge_size) for height, width in grids])
    for sample, (is_image, is_valid) in enumerate(zip(image_mask, valid, strict=True)):
        pieces: list[Tensor] = []
        start = 0
        for of_image, run in itertools.groupby(is_image[is_valid].tolist()):
            length = sum(1 for _ in run)
            if not of_image:
                pieces.append((torch.arange(length) + start).expand(3, -1))
                start += length
                continue
            # Between two images there is always text, if only the marks of their end and start.
            height, width = next(next_grid, (0, 0))
            if length != height * width:
                msg = f"The image tokens of sample {sample} do not fit image_grid_thw {[(1, *grid) for grid in grids]}."
                raise ModelError(msg)
            rows, columns = torch.cartesian_prod(torch.arange(height), torch.arange(width)).T
            pieces.append(torch.stack([torch.zeros_like(rows), rows, columns]) + start)
            start += max(height, width)
        positions[:, sample, is_valid] = torch.cat(pieces, dim=1)
    if next(next_grid, None) is not None:
        msg = f"image_grid_thw names {len(grids)} images, more than input_ids has room for."
        raise ModelError(msg)
    return positions


def text_rotary(
    positions: Tensor, *, head_dim: int, theta: float, sections: tuple[int, int, int]
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles of the tokens, the three axes interleaved over the frequencies.

    Args:
        positions: int64 ``(3, B, L)``.
        head_dim: Width of an attention head.
        theta: Base of the frequencies.
        sections: Frequencies of the temporal, height and width axis.

    Returns:
        float32 ``(B, L, head_dim)`` each.

    """
    angles = positions[..., None].float() * _frequencies(theta, head_dim, positions.device)
    mixed = angles[0].clone()
    for axis in (1, 2):
        frequencies = slice(axis, sections[axis] * 3, 3)
        mixed[..., frequencies] = angles[axis, ..., frequencies]
    return _cosine_and_sine(torch.cat([mixed, mixed], dim=-1))


def _frequencies(theta: float, dim: int, device: torch.device) -> Tensor:
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim
    return 1.0 / (theta ** exponents.double()).float()


def _cosine_and_sine(angles: Tensor) -> tuple[Tensor, Tensor]:
    exact = angles.double()
    return exact.cos().float(), exact.sin().float()
