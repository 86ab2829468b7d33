"""Observations to the network's inputs with the images made on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from groot_ros.errors import ObservationError
from groot_ros.observation import Observation
from groot_ros.processing.device_geometry import DeviceImages
from groot_ros.processing.inputs import ModelInputs
from groot_ros.processing.processor import Processor
from groot_ros.processing.upload import FrameUpload

Cameras = tuple[tuple[Tensor, ...], ...]
"""For each observation the frames of its cameras in the order of the tag, uint8 ``(T, H, W, 3)`` on the device."""


class DeviceProcessor:
    """Prepares as a processor does, bit by bit, but shapes the frames on the device.

    Args:
        processor: The processor.
        device: The network's device.
        dtype: The network's number type.

    """

    def __init__(self, processor: Processor, device: torch.device, dtype: torch.dtype) -> None:
        self._processor = processor
        self._images = DeviceImages(processor.geometry, processor.patches, dtype)
        self._upload = FrameUpload(device)

    def prepare(self, observations: Sequence[Observation]) -> ModelInputs:
        """Make the network's inputs from observations; the batch has one row for each.

        Returns:
            Pixel values on the device in the network's number type, all else on the CPU.

        Raises:
            ObservationError: An observation does not fit the embodiment, or its instruction holds a control token.

        """
        cameras = self.upload(observations)
        return self.assemble(observations, cameras, self.pixel_values(cameras))

    def upload(self, observations: Sequence[Observation]) -> Cameras:
        """Check the cameras of every observation and send their frames on the way.

        Returns:
            For each observation its cameras ``(T, H, W, 3)``, at the same addresses each time.

        Raises:
            ObservationError: There are no observations, or the cameras do not fit the embodiment.

        """
        if not observations:
            msg = "no observations were given; a batch needs at least one"
            raise ObservationError(msg)
        keys = self._processor.cameras.keys
        ordered = [self._processor.cameras.ordered(observation.images) for observation in observations]
        for cameras in ordered:
            before = [frames.shape[1:3] for frames in cameras]
            after = [self._processor.geometry.size(height, width) for height, width in before]
            self._processor.cameras.require_one_size(after, before)
        return tuple(
            tuple(self._upload(f"{row}.{key}", frames) for key, frames in zip(keys, cameras, strict=True))
            for row, cameras in enumerate(ordered)
        )

    def pixel_values(self, cameras: Cameras) -> Tensor:
        """The patches of uploaded frames: tensor operations alone, which can be captured."""
        shaped = self._images.shaped([frames for own in cameras for frames in own])
        views = len(self._processor.cameras.keys)
        # Time step by time step, and in each the cameras in order.
        together = [
            torch.stack(shaped[first : first + views], dim=1).flatten(0, 1) for first in range(0, len(shaped), views)
        ]
        return self._images.pixel_values(together)

    def assemble(self, observations: Sequence[Observation], cameras: Cameras, pixel_values: Tensor) -> ModelInputs:
        """Put the rest beside the pixel values.

        Raises:
            ObservationError: A state does not fit the embodiment, or an instruction holds a control token.

        """
        processor = self._processor
        for observation in observations:
            processor.prompts.refuse_control_tokens(observation.instruction)
        return processor.assemble(
            [(sum(map(len, own)), *processor.geometry.size(*own[0].shape[1:3])) for own in cameras],
            [observation.instruction for observation in observations],
            processor.state.encode([observation.state for observation in observations]),
            pixel_values,
        )
