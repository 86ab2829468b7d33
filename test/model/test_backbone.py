"""The backbone against transformers' own Qwen3-VL, and what it refuses."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden import load_case
from support.networks import backbone_config, encode, golden_inputs, tiny_network, weights
from transformers import Qwen3VLConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

from groot_ros.errors import ModelError
from groot_ros.model import GrootN17

PREFIX = "backbone.model.model."
IMAGE, VISION_START, VISION_END = 268, 265, 266


@pytest.fixture(scope="module")
def reference() -> Qwen3VLModel:
    """Qwen3-VL as the installed transformers builds it, with the golden weights and its first four layers."""
    config = backbone_config()
    config["text_config"]["num_hidden_layers"] = 4
    model = Qwen3VLModel._from_config(Qwen3VLConfig(**config), attn_implementation="sdpa").eval()
    missing, surplus = model.load_state_dict(
        {name.removeprefix(PREFIX): tensor for name, tensor in weights().items() if name.startswith(PREFIX)},
        strict=False,
    )
    assert not missing
    assert not surplus
    return model


@st.composite
def prompts(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    """A padded batch of prompts with images of several sizes between their words."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, grids = [], []
    for images in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
        row = [10]
        for _ in range(images):
            height, width = 2 * draw(st.integers(1, 5)), 2 * draw(st.integers(1, 5))
            grids.append([1, height, width])
            row += [VISION_START, *[IMAGE] * (height * width // 4), VISION_END]
        rows.append(row + generator.integers(0, 256, draw(st.integers(0, 9))).tolist())
    length = max(map(len, rows))
    patches = sum(height * width for _, height, width in grids)
    return {
        "input_ids": torch.tensor([[257] * (length - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows]),
        "image_grid_thw": torch.tensor(grids),
        "pixel_values": torch.from_numpy(generator.uniform(-1, 1, (patches, 1536)).astype(np.float32)),
    }


@settings(max_examples=15, deadline=None)
@given(inputs=prompts())
def test_any_prompt_gives_what_transformers_feeds_to_its_final_norm(
    network: GrootN17, reference: Qwen3VLModel, inputs: dict[str, torch.Tensor]
) -> None:
    before_norm: list[torch.Tensor] = []
    hook = reference.language_model.norm.register_forward_pre_hook(lambda _, args: before_norm.append(args[0]))
    extra = {}
    if "mm_token_type_ids" in inspect.signature(reference.forward).parameters:
        extra["mm_token_type_ids"] = (inputs["input_ids"] == IMAGE).int()
    with torch.no_grad():
        reference(**inputs, **extra, use_cache=False)
    hook.remove()
    features = encode(network, inputs)
    torch.testing.assert_close(features.hidden_states, before_norm[0], atol=1e-4, rtol=1e-3)


def test_the_features_of_padding_do_not_depend_on_the_pad_token_of_others(network: GrootN17) -> None:
    """A query that sees no key gets zero from attention, so padding is the same whatever the other samples hold."""
    inputs = golden_inputs(load_case("model", "model_only_b3"))
    features = encode(network, inputs)
    padding = features.hidden_states[~features.attention_mask]
    torch.testing.assert_close(padding, padding[:1].expand_as(padding), atol=1e-6, rtol=0)
    assert padding.isfinite().all()


def test_the_final_norm_is_not_applied(network: GrootN17) -> None:
    inputs = golden_inputs(load_case("model", "model_only_b1"))
    changed = tiny_network()
    changed.backbone.language_model.norm.weight.data.fill_(100.0)
    assert torch.equal(encode(network, inputs).hidden_states, encode(changed, inputs).hidden_states)


def test_the_patch_embedding_is_the_convolution(network: GrootN17) -> None:
    embedding = network.backbone.visual.patch_embed
    pixels = torch.rand(7, 1536, generator=torch.Generator().manual_seed(0))
    convolved = embedding.proj(pixels.view(7, 3, 2, 16, 16)).flatten(1)
    torch.testing.assert_close(embedding(pixels), convolved, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_grid_thw": [[1, 4, 4]]}, r"pixel_values has 24 patches, but image_grid_thw describes 16"),
        ({"image_grid_thw": [[2, 4, 3]]}, r"entry \[2, 4, 3\]; images have time 1"),
        ({"image_grid_thw": [[1, 8, 3]]}, r"height and width in multiples of 2 patches"),
        ({"image_grid_thw": [[1, 4, 4], [1, 2, 4]]}, r"image tokens of sample 0 do not fit image_grid_thw"),
    ],
)
def test_images_that_do_not_fit_the_prompt_are_refused(
    network: GrootN17, change: dict[str, list[list[int]]], message: str
) -> None:
    inputs = golden_inputs(load_case("model", "model_only_b1"))
    inputs |= {key: torch.tensor(value) for key, value in change.items()}
    with pytest.raises(ModelError, match=message):
        encode(network, inputs)


def test_a_prompt_without_its_image_tokens_is_refused(network: GrootN17) -> None:
    inputs = golden_inputs(load_case("model", "model_only_b1"))
    inputs["input_ids"] = torch.full_like(inputs["input_ids"], 7)
    with pytest.raises(ModelError, match="image_grid_thw names 1 images, more than input_ids has room for"):
        encode(network, inputs)
