"""What each optimisation of the prepared network saves in one prediction at the released dimensions, one by one.

    python -m benchmarks.speed_parts

Each row times the work that is left out, or both forms of the work that is done otherwise, in one layer, and multiplies
by how often it occurs: two cameras of 640x480, 212 tokens, 41 state and action tokens, 4 steps, bfloat16 weights.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's own name

from groot_ros.model.fast.layers import rotate, signed

TOKENS, IMAGE_TOKENS, ROWS, STEPS, PATCHES = 212, 176, 41, 4, 704
VOCABULARY, TEXT, VISION, DIT, HEADS, HEAD_DIM = 151_936, 2048, 1024, 1536, 32, 48
CROSS_BLOCKS, BLOCKS, VISION_BLOCKS = 16, 32, 24
RUNS = 9

Work = Callable[[], object]


@dataclass(frozen=True)
class Part:
    """One optimisation.

    Attributes:
        name: What is done.
        before: The work as the plain network or the peer does it.
        after: The work instead; None where there is none left.
        times: How often it occurs in a prediction.

    """

    name: str
    before: Work
    after: Work | None
    times: int


def milliseconds(work: Work | None) -> float:
    """Of the fastest of some runs."""
    if work is None:
        return 0.0
    work()
    fastest = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest * 1e3


def parts() -> list[Part]:
    """Every part; its tensors are made once."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    context, image_context, tokens = random(1, TOKENS, TEXT), random(1, IMAGE_TOKENS, TEXT), random(1, ROWS, DIT)
    key_value = random(2 * DIT, TEXT)
    query, key = random(1, HEADS, ROWS, HEAD_DIM), random(1, HEADS, TOKENS, HEAD_DIM)
    image_key, mask = random(1, HEADS, IMAGE_TOKENS, HEAD_DIM), torch.ones(1, 1, 1, TOKENS, dtype=torch.bool)
    modulation, time_vector = random(2 * DIT, DIT), random(1, DIT)
    projectors, identity = random(32, 2 * DIT, DIT), torch.tensor([10])
    joined, bias = random(1, ROWS, 2 * DIT), random(1, 1, DIT)
    action_weight = random(DIT, DIT)
    logits_weight = random(VOCABULARY // 16, TEXT)
    wide, feed = random(PATCHES, VISION), random(4 * VISION, VISION)
    packed = torch.ops.mkldnn._reorder_linear_weight(feed)
    expanded, expand = random(1, ROWS, DIT), random(4 * DIT, DIT)
    packed_expand = torch.ops.mkldnn._reorder_linear_weight(expand)
    heads = random(PATCHES, 3, 16, 64)
    cosine, sine = random(PATCHES, 1, 1, 64, dtype=torch.float32), random(PATCHES, 1, 1, 64, dtype=torch.float32)
    signed_sine = signed(sine)

    def plain_rotation() -> Tensor:
        x = heads[:, :2].float()
        first, second = x.chunk(2, dim=-1)
        return (x * cosine + torch.cat([-second, first], dim=-1) * sine).bfloat16()

    return [
        Part("no logits of the whole vocabulary", lambda: F.linear(context, logits_weight), None, 16),
        Part("cross-attention keys and values once", lambda: F.linear(context, key_value), None, CROSS_BLOCKS * 3),
        Part(
            "and only over the tokens that a block sees (images)",
            lambda: F.linear(context, key_value),
            lambda: F.linear(image_context, key_value),
            CROSS_BLOCKS // 2,
        ),
        Part(
            "attention without a mask over all tokens (images)",
            lambda: F.scaled_dot_product_attention(query, key, key, attn_mask=mask),
            lambda: F.scaled_dot_product_attention(query, image_key, image_key),
            CROSS_BLOCKS // 2 * STEPS,
        ),
        Part("modulations as tables", lambda: F.linear(time_vector, modulation), None, (BLOCKS + 1) * STEPS),
        Part(
            "one embodiment's weights, no gather, time as a row",
            lambda: torch.baddbmm(bias, joined, projectors[identity]),
            lambda: F.linear(tokens, action_weight),
            STEPS,
        ),
        Part(
            "packed weights, GELU inside (704 rows)",
            lambda: F.gelu(F.linear(wide, feed), approximate="tanh"),
            lambda: torch.ops.mkldnn._linear_pointwise(wide, packed, None, "gelu", [], "tanh"),
            VISION_BLOCKS,
        ),
        Part(
            "packed weights, GELU inside (41 rows)",
            lambda: F.gelu(F.linear(expanded, expand), approximate="tanh"),
            lambda: torch.ops.mkldnn._linear_pointwise(expanded, packed_expand, None, "gelu", [], "tanh"),
            BLOCKS * STEPS,
        ),
        Part(
            "rotary angles in place", plain_rotation, lambda: rotate(heads[:, :2], cosine, signed_sine).bfloat16(), 24
        ),
        Part(
            "last block only for the rows that are read",
            lambda: torch.ops.mkldnn._linear_pointwise(expanded, packed_expand, None, "gelu", [], "tanh"),
            lambda: torch.ops.mkldnn._linear_pointwise(expanded[:, 1:], packed_expand, None, "gelu", [], "tanh"),
            STEPS * 2,
        ),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print("| optimisation | before | after | saved in one prediction |\n| --- | --- | --- | --- |")
    with torch.inference_mode():
        for part in parts():
            before, after = (part.times * milliseconds(work) for work in (part.before, part.after))
            print(f"| {part.name} | {before:.0f} ms | {after:.0f} ms | {before - after:.0f} ms |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
