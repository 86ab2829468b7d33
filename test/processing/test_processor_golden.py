"""Observations to model inputs, whole: what the original and LeRobot's port hand to the network."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.golden import GOLDEN, TINY_SHARDED, TINY_SINGLE, case_names, load_case
from support.processing import processor_config

from groot_ros.checkpoint import CheckpointOrigin, open_checkpoint, parse_statistics
from groot_ros.errors import CheckpointError, ObservationError, ProcessingError
from groot_ros.observation import Observation
from groot_ros.processing.processor import Processor

LEROBOT_CHANGES = {
    "torch_geometry__libero_sim": {"use_albumentations": False, "shortest_image_edge": None, "crop_fraction": None},
    "torch_geometry_letterbox__simpler_env_widowx": {
        "use_albumentations": False,
        "shortest_image_edge": None,
        "crop_fraction": None,
        "letter_box_transform": True,
    },
    "no_target_size__simpler_env_widowx": {"image_crop_size": None, "image_target_size": None},
}
REFUSED_CASES = {"b07_nan_inf_state", "c02_batch2_formalize_off"}  # shown refused, and equal beneath, further down
EVALUATION_CASES = [
    ("preprocess", name)
    for name in case_names("preprocess", "[abc]*")
    if name not in REFUSED_CASES and "expect_error" not in load_case("preprocess", name).meta
] + [("model", name) for name in case_names("model", "*_b[12]") if not name.startswith("model_only")]


@pytest.fixture(name="tiny", scope="module")
def open_tiny():
    return open_checkpoint(TINY_SINGLE)


def processor_for(checkpoint, case):
    config = processor_config(TINY_SINGLE, case.meta["processor_kwargs_overrides"])
    tag, statistics = case.meta["tag"], dict(checkpoint.statistics)
    if "statistics" in case.meta:
        statistics[tag] = parse_statistics({tag: case.meta["statistics"]}, case.name)[tag]
    return Processor(replace(checkpoint, processor=config, statistics=statistics), tag)


def observations_of(case):
    return [
        Observation(
            images={key: frames[sample] for key, frames in case.raw("video").items()},
            state={key: values[sample] for key, values in case.raw("state").items()},
            instruction=str(case["raw.language"][sample]),
            stamp_ns=0,
        )
        for sample in range(case.meta["batch"])
    ]


def assert_equal_to_the_original(inputs, case):
    for name in ("input_ids", "attention_mask", "image_grid_thw", "embodiment_id"):
        found = getattr(inputs, name)
        assert found.dtype == torch.int64
        assert np.array_equal(found.numpy(), case[f"in.{name}"]), name
    assert_equal_pixels(inputs.pixel_values, case)
    assert inputs.state.dtype == torch.float32
    np.testing.assert_allclose(inputs.state.numpy(), case["in.state"], rtol=0, atol=2e-6)


def assert_equal_pixels(pixel_values, case):
    assert pixel_values.dtype == torch.float32
    assert pixel_values.shape == tuple(case["in.pixel_values.shape"])
    levels = np.rint(pixel_values.numpy() * 127.5 + 127.5).astype(np.uint8)
    assert hashlib.sha256(levels.tobytes()).hexdigest() == str(case["in.pixel_values.sha256_u8"])
    exact = (levels.astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
    assert np.array_equal(pixel_values.numpy(), exact)


@pytest.mark.parametrize(("folder", "name"), EVALUATION_CASES)
def test_the_network_is_handed_what_the_original_hands_it(tiny, folder, name):
    case = load_case(folder, name)
    processor = processor_for(tiny, case)
    assert_equal_to_the_original(processor.prepare(observations_of(case)), case)
    texts = [
        processor.prompts.chat_text(text, len(case["in.image_grid_thw"]) // len(case["texts"]))
        for text in case["raw.language"]
    ]
    assert texts == list(case["texts"])


def test_the_sharded_checkpoint_with_its_processor_folder_gives_the_same():
    case = load_case("model", "new_embodiment_b2")
    processor = Processor(open_checkpoint(TINY_SHARDED), "new_embodiment")
    assert_equal_to_the_original(processor.prepare(observations_of(case)), case)


@pytest.mark.parametrize("name", sorted(LEROBOT_CHANGES))
def test_a_checkpoint_of_lerobot_gets_lerobots_pixels_and_state(tiny, name):
    """The network and the vocabulary of these cases are not here, so the ids are not compared."""
    with np.load(GOLDEN / "lerobot" / f"{name}.npz") as archive:
        case = {key: archive[key] for key in archive.files}
    folder, tag = GOLDEN / "lerobot", str(case["embodiment_tag"])
    config = processor_config(folder, LEROBOT_CHANGES[name], CheckpointOrigin.LEROBOT)
    path = folder / "statistics.json"
    checkpoint = replace(
        tiny,
        origin=CheckpointOrigin.LEROBOT,
        config=replace(tiny.config, max_state_dim=132, max_action_dim=132, action_horizon=40),
        processor=config,
        statistics=parse_statistics(json.loads(path.read_text()), str(path)),
    )
    inputs = Processor(checkpoint, tag).prepare(
        [
            Observation(
                images={key: case[f"raw::video.{key}"][0] for key in case["raw_video_keys"]},
                state={key: case[f"raw::state.{key}"][0] for key in case["raw_state_keys"]},
                instruction=str(case["raw::language"][0]),
                stamp_ns=0,
            )
        ]
    )
    assert np.array_equal(inputs.pixel_values.numpy(), case["in::inputs.pixel_values"])
    assert np.array_equal(inputs.image_grid_thw.numpy(), case["in::inputs.image_grid_thw"])
    np.testing.assert_allclose(inputs.state.numpy(), case["in::inputs.state"], rtol=0, atol=2e-6)


def test_infinite_and_missing_numbers_in_the_state_are_refused_and_the_rest_is_as_the_original(tiny):
    case = load_case("preprocess", "b07_nan_inf_state")
    processor, observations = processor_for(tiny, case), observations_of(case)
    with pytest.raises(ObservationError, match=r"state of 'new_embodiment': group .* is (nan|inf|-inf)"):
        processor.prepare(observations)
    state = processor.state.encode_unchecked([observation.state for observation in observations])
    frames = [processor.frames(observation) for observation in observations]
    inputs = processor.collate(frames, [observation.instruction for observation in observations], state)
    assert_equal_to_the_original(inputs, case)


def test_a_control_token_in_the_task_is_refused_and_the_tokenizer_alone_reads_it_as_the_original(tiny):
    case = load_case("preprocess", "c02_batch2_formalize_off")
    processor, observations = processor_for(tiny, case), observations_of(case)
    with pytest.raises(ObservationError, match=r"<\|im_end\|> would be read as a control token"):
        processor.prepare(observations)
    inputs = processor.collate(
        [processor.frames(observation) for observation in observations],
        [observation.instruction for observation in observations],
        processor.state.encode([observation.state for observation in observations]),
    )
    assert_equal_to_the_original(inputs, case)


def test_cameras_that_end_at_different_sizes_are_refused_by_name_and_size(tiny):
    case = load_case("preprocess", "a11_mixed_aspect_error")
    with pytest.raises(ObservationError) as caught:
        processor_for(tiny, case).prepare(observations_of(case))
    assert "image 48x64 becomes 64x85, wrist_image 64x64 becomes 64x64" in str(caught.value)
    assert "one aspect ratio" in str(caught.value)


def test_decoded_actions_of_each_observation_of_a_batch(tiny):
    case = load_case("model", "new_embodiment_b2")
    processor, observations = processor_for(tiny, case), observations_of(case)
    decoded = processor.decode(case["action_pred"], observations)
    for sample, groups in enumerate(decoded):
        assert {key: values.shape[1] for key, values in groups.items()} == processor.action_dimensions
        for key, values in groups.items():
            np.testing.assert_allclose(values, case[f"decoded.{key}"][sample], rtol=1e-7, atol=1e-7)
            assert values.dtype == np.float64


def test_encoded_actions_of_an_observation(tiny):
    case = load_case("model", "new_embodiment_b2")
    processor, observation = processor_for(tiny, case), observations_of(case)[0]
    encoded = processor.encode_actions({key: values[0] for key, values in case.raw("action").items()}, observation)
    np.testing.assert_allclose(encoded.values, case["train.action"][0], rtol=0, atol=2e-6)
    assert np.array_equal(encoded.mask, case["train.action_mask"][0] == 1)


class TestWhatAnObservationMustBe:
    @pytest.fixture(name="case")
    def droid_case(self):
        return load_case("model", "oxe_droid_b1")

    @pytest.fixture(name="processor")
    def droid_processor(self, tiny, case):
        return processor_for(tiny, case)

    @pytest.fixture(name="observation")
    def droid_observation(self, case):
        return observations_of(case)[0]

    @pytest.mark.parametrize(
        ("camera", "frames", "sentence"),
        [
            (
                "wrist_image_left",
                None,
                r"'wrist_image_left' missing; the groups are .*, found \['exterior_image_1_left'\]",
            ),
            ("wrsit", np.zeros((2, 8, 8, 3), np.uint8), "'wrsit' unknown"),
            ("wrist_image_left", np.zeros((2, 8, 8, 3), np.float32), "found float32 values, but frames must be uint8"),
            (
                "wrist_image_left",
                np.zeros((1, 8, 8, 3), np.uint8),
                r"found shape \(1, 8, 8, 3\), but it must be \(2, height, width, 3\): .* delta_indices \[-15, 0\]",
            ),
            ("wrist_image_left", np.zeros((2, 8, 8, 4), np.uint8), r"found shape \(2, 8, 8, 4\)"),
            ("wrist_image_left", np.zeros((2, 0, 8, 3), np.uint8), "at least 1 pixel"),
            ("wrist_image_left", np.zeros((8, 8, 3), np.uint8), r"found shape \(8, 8, 3\)"),
        ],
    )
    def test_cameras_that_do_not_fit_are_refused(self, processor, observation, camera, frames, sentence):
        images = {**observation.images, camera: frames}
        if frames is None:
            del images[camera]
        with pytest.raises(ObservationError, match=sentence):
            processor.prepare([replace(observation, images=images)])

    def test_cameras_in_any_order_of_the_dictionary_are_read_in_the_order_of_the_tag(self, processor, observation):
        turned = dict(reversed(observation.images.items()))
        assert list(turned) != list(observation.images)
        found = processor.prepare([replace(observation, images=turned)])
        assert torch.equal(found.pixel_values, processor.prepare([observation]).pixel_values)

    def test_cameras_are_handed_on_without_a_copy(self, processor, observation):
        cameras = processor.cameras.ordered(observation.images)
        assert all(
            np.shares_memory(frames, observation.images[key])
            for key, frames in zip(processor.cameras.keys, cameras, strict=True)
        )

    def test_an_empty_batch_is_refused(self, processor):
        with pytest.raises(ObservationError, match="at least one"):
            processor.prepare([])

    def test_a_prediction_that_is_not_finite_is_refused(self, processor, observation, case):
        broken = case["action_pred"].copy()
        broken[0, 3, 1] = np.nan
        with pytest.raises(ProcessingError, match="is nan"):
            processor.decode(broken, [observation])

    def test_processed_frames_are_what_the_patches_show(self, processor, observation):
        shown = processor.processed_frames(observation)
        assert {key: frames.shape for key, frames in shown.items()} == {
            "exterior_image_1_left": (2, 256, 448, 3),
            "wrist_image_left": (2, 256, 448, 3),
        }
        order = [shown[key][step] for step in (0, 1) for key in processor.cameras.keys]
        together = processor.patches.pixel_values([np.stack(order)])
        assert torch.equal(together, processor.prepare([observation]).pixel_values)

    def test_number_types_of_the_network_touch_pixels_and_state_only(self, processor, observation):
        inputs = processor.prepare([observation])
        moved = inputs.to("cpu", torch.bfloat16)
        assert moved.pixel_values.dtype == moved.state.dtype == torch.bfloat16
        assert torch.equal(moved.state, inputs.state.to(torch.bfloat16))
        for name in ("input_ids", "attention_mask", "image_grid_thw", "embodiment_id"):
            assert torch.equal(getattr(moved, name), getattr(inputs, name))


def test_a_backbone_whose_placeholder_is_not_the_tokenizers_is_refused(tiny):
    backbone = replace(tiny.backbone, config={**tiny.backbone.config, "image_token_id": 151655})
    with pytest.raises(CheckpointError, match=r"image_token_id of config.json is 151655, .* image placeholder is 268"):
        Processor(replace(tiny, backbone=backbone), "libero_sim")
