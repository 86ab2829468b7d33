"""Observations to the network's inputs with the images made on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groot_ros.errors import ObservationError
from groot_ros.observation import Observation
from groot_ros.processing.device_geometry import DeviceImages
from groot_ros.processing.inputs import ModelInputs
from groot_ros.processing.processor import Processor
from groot_ros.processing.upload import FrameUpload


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
        if not observations:
            msg = "no observations were given; a batch needs at least one"
            raise ObservationError(msg)
        processor = self._processor
        for observation in observations:
            processor.prompts.refuse_control_tokens(observation.instruction)
        state = processor.state.encode([observation.state for observation in observations])
        ordered = [processor.cameras.ordered(observation.images) for observation in observations]
        uploaded = [
            self._upload(f"{row}.{key}", frames)
            for row, cameras in enumerate(ordered)
            for key, frames in zip(processor.cameras.keys, cameras, strict=True)
        ]
        shaped = self._images.shaped(uploaded)
        views = len(processor.cameras.keys)
        samples = []
        for row, cameras in enumerate(ordered):
            own = shaped[row * views : (row + 1) * views]
            processor.cameras.require_one_size([f.shape[1:3] for f in own], [f.shape[1:3] for f in cameras])
            samples.append(torch.stack(own, dim=1).flatten(0, 1))  # time step by time step, the cameras in order
        return processor.assemble(
            [(len(frames), frames.shape[1], frames.shape[2]) for frames in samples],
            [observation.instruction for observation in observations],
            state,
            self._images.pixel_values(samples),
        )
