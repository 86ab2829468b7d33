"""Processor: everything between observations and the network, and between the network and physical actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groot_ros.checkpoint import Checkpoint
from groot_ros.errors import CheckpointError, ObservationError
from groot_ros.observation import Observation
from groot_ros.processing.action import ActionCodec, EncodedActions
from groot_ros.processing.frames import CameraFrames, Frames
from groot_ros.processing.images import image_geometry
from groot_ros.processing.inputs import ModelInputs
from groot_ros.processing.patches import PatchEncoder
from groot_ros.processing.prompt import PromptEncoder
from groot_ros.processing.state import StateEncoder
from groot_ros.processing.threads import in_parallel


class Processor:
    """The processing of one embodiment of a checkpoint, as the checkpoint was trained.

    It remembers nothing of the robot: what is relative is decoded against the observations that are handed in.

    Args:
        checkpoint: The checkpoint; its weights are not read.
        embodiment_tag: One of the checkpoint's embodiments.

    Attributes:
        embodiment: The embodiment.
        geometry: How frames are shaped before they become patches.
        cameras: Checks and order of the cameras.
        patches: Frames to pixel values.
        prompts: Instructions to token ids.
        state: The state's normalisation.
        actions: The actions' normalisation, both ways.

    Raises:
        CheckpointError: The checkpoint does not know the tag, or its files do not fit each other.

    """

    def __init__(self, checkpoint: Checkpoint, embodiment_tag: str) -> None:
        config = checkpoint.processor
        self.embodiment = checkpoint.embodiment(embodiment_tag)
        modalities, statistics = self.embodiment.modalities, self.embodiment.statistics
        self.geometry = image_geometry(config, checkpoint.origin)
        self.cameras = CameraFrames(modalities.video, embodiment_tag)
        self.patches = PatchEncoder.from_preprocessor(checkpoint.backbone.preprocessor)
        self.prompts = PromptEncoder(checkpoint.backbone.directory, formalize_language=config.formalize_language)
        self.state = StateEncoder(modalities, statistics, config, embodiment_tag)
        self.actions = ActionCodec(modalities, statistics, config, embodiment_tag)
        self._check_image_token(checkpoint)

    @property
    def action_dimensions(self) -> dict[str, int]:
        """Number of dimensions of each action group, in the order of the tag."""
        return dict(self.actions.dimensions)

    def prepare(self, observations: Sequence[Observation]) -> ModelInputs:
        """Make the network's inputs from observations; the batch has one row for each.

        Returns:
            Tensors on the CPU, float32.

        Raises:
            ObservationError: An observation does not fit the embodiment, or its instruction holds a control token.

        """
        for observation in observations:
            self.prompts.refuse_control_tokens(observation.instruction)
        state = self.state.encode([observation.state for observation in observations])
        return self.collate(
            self.batch_frames(observations), [observation.instruction for observation in observations], state
        )

    def prompt_size(self, observation: Observation) -> tuple[int, int]:
        """Tokens of an observation's prompt, and of each of its images: prompts of one size need no padding.

        Raises:
            ObservationError: The cameras do not fit the embodiment.

        """
        before = [frames.shape[1:3] for frames in self.cameras.ordered(observation.images)]
        after = [self.geometry.size(height, width) for height, width in before]
        self.cameras.require_one_size(after, before)
        tokens, images = self.patches.tokens(*after[0]), len(before) * self.cameras.history
        return len(self.prompts.token_ids(observation.instruction, [tokens] * images)), tokens

    def frames(self, observation: Observation) -> Frames:
        """The frames of all cameras as the checkpoint's geometry shapes them, uint8 ``(T * cameras, h, w, 3)``."""
        return self.batch_frames([observation])[0]

    def batch_frames(self, observations: Sequence[Observation]) -> list[Frames]:
        """What :meth:`frames` gives for each observation; the cameras of all of them are shaped side by side."""
        batch = [self.cameras.ordered(observation.images) for observation in observations]
        shaped = iter(in_parallel(self.geometry, [frames for cameras in batch for frames in cameras]))
        return [self.cameras.interleaved([next(shaped) for _ in cameras], cameras) for cameras in batch]

    def collate(self, frames: Sequence[Frames], instructions: Sequence[str], state: NDArray[np.float32]) -> ModelInputs:
        """Put samples together whose frames are shaped already: by :meth:`frames`, or by the draws of training.

        Args:
            frames: For each of B samples the shaped frames, uint8 ``(images, h, w, 3)``.
            instructions: For each sample the task in words.
            state: Normalised, float32 ``(B, T, max_state_dim)``.

        """
        if not frames:
            msg = "no observations were given; a batch needs at least one"
            raise ObservationError(msg)
        shapes = [images.shape[:3] for images in frames]
        return self.assemble(shapes, instructions, state, self.patches.pixel_values(frames))

    def assemble(
        self,
        shapes: Sequence[tuple[int, int, int]],
        instructions: Sequence[str],
        state: NDArray[np.float32],
        pixel_values: Tensor,
    ) -> ModelInputs:
        """Put samples together whose frames are patches already.

        Args:
            shapes: For each of B samples the number of its images, and their height and width before the patches.
            instructions: For each sample the task in words.
            state: Normalised, float32 ``(B, T, max_state_dim)``.
            pixel_values: The patches of all samples, ``(patches, values of a patch)``.

        """
        prompts = [
            self.prompts.token_ids(instruction, [self.patches.tokens(height, width)] * images)
            for instruction, (images, height, width) in zip(instructions, shapes, strict=True)
        ]
        grids = [self.patches.grid(height, width) for images, height, width in shapes for _ in range(images)]
        input_ids, attention_mask = self.prompts.pad_left(prompts)
        return ModelInputs(
            input_ids=torch.from_numpy(input_ids),
            attention_mask=torch.from_numpy(attention_mask),
            pixel_values=pixel_values,
            image_grid_thw=torch.tensor(grids, dtype=torch.int64),
            state=torch.from_numpy(state),
            embodiment_id=torch.full((len(shapes),), self.embodiment.id, dtype=torch.int64),
        )

    def processed_frames(self, observation: Observation) -> dict[str, Frames]:
        """The frames of each camera as the network sees them, uint8 RGB ``(T, h, w, 3)``.

        Raises:
            ObservationError: The observation does not fit the embodiment.

        """
        cameras = self.cameras.ordered(observation.images)
        return {
            key: self.patches.resize(self.geometry(frames))
            for key, frames in zip(self.cameras.keys, cameras, strict=True)
        }

    def decode(
        self, action_pred: NDArray[np.floating], observations: Sequence[Observation]
    ) -> list[dict[str, NDArray[np.float64]]]:
        """Turn predictions into physical actions.

        Args:
            action_pred: Normalised ``(B, H, D)``, as the network gives it.
            observations: The B observations that the predictions were made from.

        Returns:
            For each observation float64 ``(T, d)`` by action group, T the tag's horizon.

        Raises:
            ProcessingError: A prediction has another shape, or is not finite.
            ObservationError: A state that a group is relative to is missing, or does not fit.

        """
        decoded = self.actions.decode(action_pred, [observation.state for observation in observations])
        return [{key: values[row] for key, values in decoded.items()} for row in range(len(observations))]

    def encode_actions(self, groups: Mapping[str, NDArray[np.floating]], observation: Observation) -> EncodedActions:
        """Turn physical actions into training targets, or into the prefix of real-time chunking.

        Args:
            groups: ``(T, d)`` by action group in physical units, T at most the horizon.
            observation: What the relative groups are relative to.

        Raises:
            ProcessingError: A group is missing, unknown, of another shape or not finite.
            ObservationError: A state that a group is relative to is missing, or does not fit.

        """
        return self.actions.encode(groups, observation.state)

    def _check_image_token(self, checkpoint: Checkpoint) -> None:
        expected = checkpoint.backbone.config.get("image_token_id")
        if expected != self.prompts.image_token_id:
            msg = (
                f"{checkpoint.backbone.directory}: image_token_id of config.json is {expected}, but the tokenizer's "
                f"image placeholder is {self.prompts.image_token_id}; the files belong to different backbones"
            )
            raise CheckpointError(msg)
