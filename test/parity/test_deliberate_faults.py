"""Twenty deliberate faults: each makes the comparison fail, and the report names the stage that it is in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np
import pytest
import torch
from support.golden import load_case
from support.golden_embodiment import embodiment_of
from support.parity import artifact_of, decoding_of, observations_of
from torch.nn import functional

import groot_ros.model.dit
import groot_ros.numerics.relative
import groot_ros.processing.action_groups
import groot_ros.processing.patches
from groot_ros.checkpoint import Checkpoint
from groot_ros.model import GrootN17, RealTimeChunking
from groot_ros.model.category_specific import CategorySpecificLinear
from groot_ros.model.language import LanguageLayers
from groot_ros.parity.check import TagReport, check_artifact
from groot_ros.parity.record import record_artifact
from groot_ros.parity.tolerances import Tolerances
from groot_ros.processing.action import ActionCodec
from groot_ros.processing.frames import CameraFrames
from groot_ros.processing.images_cv2 import Cv2Geometry
from groot_ros.processing.processor import Processor
from groot_ros.processing.prompt import PromptEncoder


@dataclass
class Bench:
    """What a fault may be put into; a copy for each fault."""

    processor: Processor
    network: GrootN17
    patch: pytest.MonkeyPatch


# ---------------------------------------------------------------------------------------------------- images, prompt


def another_interpolation(bench: Bench) -> None:
    bench.patch.setattr(cv2, "INTER_AREA", cv2.INTER_LINEAR)


def crop_off_by_one(bench: Bench) -> None:
    center_box = Cv2Geometry.center_box

    def shifted(geometry: Cv2Geometry, height: int, width: int):
        box = center_box(geometry, height, width)
        return replace(box, left=box.left + 1)

    bench.patch.setattr(Cv2Geometry, "center_box", shifted)


def float_bicubic(bench: Bench) -> None:
    def resize(frames: np.ndarray, height: int, width: int, _mode: str) -> np.ndarray:
        images = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
        resized = functional.interpolate(images, (height, width), mode="bicubic", antialias=True)
        return resized.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()

    bench.patch.setattr(groot_ros.processing.patches, "resize_uint8", resize)


def swapped_cameras(bench: Bench) -> None:
    ordered = CameraFrames.ordered
    bench.patch.setattr(CameraFrames, "ordered", lambda cameras, images: ordered(cameras, images)[::-1])


def frame_order(bench: Bench) -> None:
    ordered = CameraFrames.ordered

    def newest_first(cameras: CameraFrames, images: dict[str, np.ndarray]):
        return tuple(frames[::-1] for frames in ordered(cameras, images))

    bench.patch.setattr(CameraFrames, "ordered", newest_first)


def right_padding(bench: Bench) -> None:
    pad_left = PromptEncoder.pad_left

    def pad_right(prompts: PromptEncoder, ids: list[np.ndarray]):
        padded, mask = pad_left(prompts, [row[::-1] for row in ids])
        return padded[:, ::-1].copy(), mask[:, ::-1].copy()

    bench.patch.setattr(PromptEncoder, "pad_left", pad_right)


def unclipped_state(bench: Bench) -> None:
    bench.processor.state._clip = False


# --------------------------------------------------------------------------------------------------------- network


def post_norm_features(bench: Bench) -> None:
    forward = LanguageLayers.forward
    bench.patch.setattr(LanguageLayers, "forward", lambda self, *a, **k: self.norm(forward(self, *a, **k)))


def no_deepstack(bench: Bench) -> None:
    forward = LanguageLayers.forward
    bench.patch.setattr(LanguageLayers, "forward", lambda self, *a, **k: forward(self, *a, **{**k, "deepstack": ()}))


def mask_dropped(bench: Bench) -> None:
    forward = LanguageLayers.forward
    bench.patch.setattr(
        LanguageLayers,
        "forward",
        lambda self, *a, valid, **k: forward(self, *a, valid=torch.ones_like(valid), **k),
    )


def _swap_halves(layer: torch.nn.Linear) -> None:
    for parameter in layer.parameters():
        parameter.data = torch.cat(parameter.data.chunk(2)[::-1])


def swapped_scale_and_shift_in_a_block(bench: Bench) -> None:
    _swap_halves(bench.network.action_head.model.transformer_blocks[3].norm1.linear)


def swapped_scale_and_shift_at_the_output(bench: Bench) -> None:
    _swap_halves(bench.network.action_head.model.proj_out_1)


def text_and_image_blocks_exchanged(bench: Bench) -> None:
    transformer = bench.network.action_head.model
    forward = transformer.forward
    bench.patch.setattr(
        transformer, "forward", lambda *a, image_mask, **k: forward(*a, image_mask=~image_mask, **k), raising=False
    )


def wrong_bucket(bench: Bench) -> None:
    """Steps spread from the first bucket to the last one, as linspace does."""
    head = bench.network.action_head
    velocity, steps = head.velocity, head.config.num_inference_timesteps
    bench.patch.setattr(
        head,
        "velocity",
        lambda conditions, actions, bucket: velocity(
            conditions, actions, (bucket * steps // (steps - 1)).clamp(max=999)
        ),
        raising=False,
    )


def sin_before_cos(bench: Bench) -> None:
    embedding = groot_ros.model.dit.transformer_time_embedding
    bench.patch.setattr(
        groot_ros.model.dit,
        "transformer_time_embedding",
        lambda bucket, dim: torch.cat(embedding(bucket, dim).chunk(2, dim=-1)[::-1], dim=-1),
    )


def another_embodiments_weights(bench: Bench) -> None:
    forward = CategorySpecificLinear.forward
    bench.patch.setattr(CategorySpecificLinear, "forward", lambda self, x, category: forward(self, x, category + 1))


def wrong_ramp(bench: Bench) -> None:
    def linear(chunking: RealTimeChunking, horizon: int) -> list[float]:
        ramp = np.linspace(0, 1, chunking.overlap_steps - chunking.frozen_steps + 2)[1:-1].tolist()
        return [0.0] * chunking.frozen_steps + ramp + [1.0] * (horizon - chunking.overlap_steps)

    bench.patch.setattr(RealTimeChunking, "velocity_strength", linear)


IN_THE_WHOLE: list[tuple[Callable[[Bench], None], str]] = [
    (another_interpolation, "images"),
    (crop_off_by_one, "images"),
    (float_bicubic, "pixel_values"),
    (swapped_cameras, "images"),
    (right_padding, "input_ids"),
    (unclipped_state, "state"),
    (post_norm_features, "language.features"),
    (no_deepstack, "language.layer.1"),
    (mask_dropped, "language.layer.0"),
    (swapped_scale_and_shift_in_a_block, "denoising.0.block.3"),
    (swapped_scale_and_shift_at_the_output, "denoising.0.transformer"),
    (text_and_image_blocks_exchanged, "denoising.0.block.0"),
    (wrong_bucket, "denoising.1.block.0"),
    (sin_before_cos, "denoising.0.block.0"),
    (another_embodiments_weights, "state_features"),
    (wrong_ramp, "rtc action_pred"),
]


@pytest.fixture(scope="module")
def reference(tiny: Checkpoint, tiny_network: GrootN17):
    """Values of the faultless code, which equals the original: two samples, two cameras, prompts of unequal length."""
    observations = observations_of(load_case("model", "new_embodiment_b2"))
    beyond = {key: values + np.float32(10) for key, values in observations[1].state.items()}
    observations[1] = replace(observations[1], state=beyond)
    arrays = record_artifact(Processor(tiny, "new_embodiment"), tiny_network, observations, seed=42)
    return artifact_of("new_embodiment", arrays)


def assert_named(report: TagReport, stage: str) -> None:
    assert not report.passed
    assert report.parting is not None
    assert report.parting.stage == stage, str(report.parting)


def test_without_a_fault_everything_agrees(reference, tiny, tiny_network):
    report = check_artifact(reference, Processor(tiny, "new_embodiment"), tiny_network, Tolerances())
    assert report.passed
    assert report.parting is None


@pytest.mark.parametrize(("fault", "stage"), IN_THE_WHOLE, ids=lambda value: getattr(value, "__name__", ""))
def test_the_fault_is_found_and_its_stage_named(fault, stage, reference, tiny, tiny_network, monkeypatch):
    bench = Bench(Processor(tiny, "new_embodiment"), copy.deepcopy(tiny_network), monkeypatch)
    fault(bench)
    assert_named(check_artifact(reference, bench.processor, bench.network, Tolerances()), stage)


def test_frames_in_the_wrong_order_are_found(tiny, tiny_network, monkeypatch):
    tag = "oxe_droid_relative_eef_relative_joint"
    observations = observations_of(load_case("model", "oxe_droid_b1"))
    arrays = record_artifact(Processor(tiny, tag), tiny_network, observations, seed=42)
    processor = Processor(tiny, tag)
    frame_order(Bench(processor, tiny_network, monkeypatch))
    assert_named(check_artifact(artifact_of(tag, arrays), processor, None, Tolerances()), "images")


# --------------------------------------------------------------------------------------------------------- decoder


def percentiles_on_relative_keys(patch: pytest.MonkeyPatch) -> None:
    scaling_of = groot_ros.processing.action_groups.scaling_of
    patch.setattr(
        groot_ros.processing.action_groups,
        "scaling_of",
        lambda *a, **k: scaling_of(*a, **{**k, "use_percentiles": True}),
    )


def first_instead_of_last_state_row(patch: pytest.MonkeyPatch) -> None:
    reference = ActionCodec._reference
    patch.setattr(
        ActionCodec,
        "_reference",
        lambda self, group, state: reference(self, group, {key: values[:1] for key, values in state.items()}),
    )


def transposed_rot6d(patch: pytest.MonkeyPatch) -> None:
    rotation = groot_ros.numerics.relative.matrix_from_rot6d
    patch.setattr(groot_ros.numerics.relative, "matrix_from_rot6d", lambda rot6d: np.swapaxes(rotation(rot6d), -1, -2))


def one_action_dimension_permuted(patch: pytest.MonkeyPatch) -> None:
    decode = ActionCodec.decode

    def permuted(codec: ActionCodec, action_pred: np.ndarray, states: list[dict[str, np.ndarray]]):
        order = np.arange(action_pred.shape[2])
        order[[0, 1]] = order[[1, 0]]
        return decode(codec, action_pred[:, :, order], states)

    patch.setattr(ActionCodec, "decode", permuted)


IN_THE_DECODER = [
    (percentiles_on_relative_keys, "d06_percentiles", "decoded eef_9d"),
    (first_instead_of_last_state_row, "d16_state_history_last_row", "decoded single_arm"),
    (transposed_rot6d, "d03_relative_eef_rot6d_and_joints", "decoded eef_9d"),
    (one_action_dimension_permuted, "d02_relative_joints", "decoded single_arm"),
]


@pytest.mark.parametrize("name", sorted({name for _, name, _ in IN_THE_DECODER}))
def test_without_a_fault_the_decoder_agrees_with_the_original(name, tiny):
    case = load_case("decode", name)
    assert check_artifact(decoding_of(case), processor_for(tiny, case), None, Tolerances()).passed


@pytest.mark.parametrize(("fault", "name", "stage"), IN_THE_DECODER, ids=lambda value: getattr(value, "__name__", ""))
def test_the_fault_in_the_decoder_is_found_and_its_group_named(fault, name, stage, tiny, monkeypatch):
    case = load_case("decode", name)
    fault(monkeypatch)
    assert_named(check_artifact(decoding_of(case), processor_for(tiny, case), None, Tolerances()), stage)


def processor_for(checkpoint: Checkpoint, case) -> Processor:
    """The processor of a golden case: the tiny checkpoint's, with the changes that the case names."""
    embodiment = embodiment_of(case.meta)
    statistics = {**checkpoint.statistics, embodiment.tag: embodiment.statistics}
    config = replace(checkpoint.config, state_history_length=len(embodiment.modalities.state.delta_indices))
    changed = replace(checkpoint, processor=embodiment.config, statistics=statistics, config=config)
    return Processor(changed, embodiment.tag)
