"""What a worker makes: one batch of bytes and numbers, ready to be moved to the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from groot_ros.dataset.windows import TrainingWindows, Window
from groot_ros.errors import GrootError, TrainingError
from groot_ros.observation import ImageInputFormat
from groot_ros.processing.images_torch import TorchGeometry
from groot_ros.processing.processor import Processor
from groot_ros.training.augmentation import augmented, crop_boxes
from groot_ros.training.draws import DrawOptions, SampleDraws
from groot_ros.training.order import SampleKey
from groot_ros.training.packing import pack_cameras

Batch = dict[str, Any]
Frames = NDArray[np.uint8]
FAILURE = "failure"


class BatchMaker(TorchDataset[Batch]):
    """Makes batches of training windows.

    Video decoding, the cv2 geometry, augmentation and tokenisation happen here, in a worker. Frames leave it as bytes.

    Args:
        windows: The data.
        processor: The embodiment's processing.
        options: From what is drawn.
        state_dropout: Probability of the state to be all zeros.
        input_format: What the policy wants to be handed as images.
        augment: False crops the centre, keeps every state, and leaves colours alone, as the policy does; noise and
            time are drawn all the same.

    """

    def __init__(
        self,
        windows: TrainingWindows,
        processor: Processor,
        options: DrawOptions,
        *,
        state_dropout: float,
        input_format: ImageInputFormat,
        augment: bool = True,
    ) -> None:
        self.windows = windows
        self.processor = processor
        self.options = options
        self.state_dropout = state_dropout if augment else 0.0
        self.input_format = input_format
        self.augment = augment
        self._torch_geometry = processor.geometry if isinstance(processor.geometry, TorchGeometry) else None

    def __len__(self) -> int:
        """Return the number of samples of one pass."""
        return len(self.windows)

    def __getitem__(self, key: SampleKey) -> Batch:
        """Make a batch of one sample."""
        return self.__getitems__([key])

    def __getitems__(self, keys: Sequence[SampleKey]) -> Batch:
        """Make the batch of some samples.

        Returns:
            ``images`` (for each camera ``(B, T, 3, H, W)``), for the torch geometry ``crop_boxes`` ``(V, B, T, 2)``,
            ``input_ids``, ``attention_mask``, ``image_grid_thw``, ``state``, ``embodiment_id``, ``action``,
            ``action_mask`` ``(B, H, D)``, ``noise`` ``(B, K, H, D)`` and ``time`` ``(B, K)``; or, where a sample cannot
            be made, ``failure``: the sentence that says why.

        """
        try:
            windows = [self.windows[key.number] for key in keys]
            return self.make(windows, [self.options.draw(key.epoch, key.number) for key in keys])
        except GrootError as error:
            return {FAILURE: str(error)}

    def make(self, windows: Sequence[Window], draws: Sequence[SampleDraws]) -> Batch:
        """Make the batch of windows with given draws.

        Raises:
            GrootError: A window does not fit the embodiment.

        """
        processor = self.processor
        for window in windows:
            processor.prompts.refuse_control_tokens(window.observation.instruction)
        cameras = [processor.cameras.ordered(window.observation.images) for window in windows]
        state = processor.state.encode([window.observation.state for window in windows])
        for row, draw in zip(state, draws, strict=True):
            if draw.state_uniform < self.state_dropout:
                row[:] = 0.0
        encoded = [processor.encode_actions(window.actions, window.observation) for window in windows]
        images, boxes, sizes = self._images(cameras, draws)
        return {
            "images": images,
            **({} if boxes is None else {"crop_boxes": boxes}),
            **self._prompts([window.observation.instruction for window in windows], sizes),
            "state": torch.from_numpy(state),
            "embodiment_id": torch.full((len(windows),), processor.embodiment.id, dtype=torch.int64),
            "action": torch.from_numpy(np.stack([actions.values for actions in encoded])),
            "action_mask": torch.from_numpy(np.stack([actions.mask for actions in encoded]).astype(np.float32)),
            "noise": torch.from_numpy(np.stack([draw.noise for draw in draws])),
            "time": torch.from_numpy(np.stack([draw.time for draw in draws])),
        }

    def _images(
        self, cameras: Sequence[tuple[Frames, ...]], draws: Sequence[SampleDraws]
    ) -> tuple[tuple[Tensor, ...], Tensor | None, tuple[int, int]]:
        """Frames, crop boxes of the torch geometry, and the size of a frame after the geometry."""
        if self._torch_geometry is not None:
            boxes = torch.from_numpy(
                np.stack([self._boxes(sample, draw) for sample, draw in zip(cameras, draws, strict=True)], axis=1)
            )
            return self._packed(cameras), boxes, self._torch_geometry.final_size
        shaped = [self._shaped(sample, draw) for sample, draw in zip(cameras, draws, strict=True)]
        return self._packed(shaped), None, (shaped[0][0].shape[1], shaped[0][0].shape[2])

    def _shaped(self, cameras: tuple[Frames, ...], draws: SampleDraws) -> tuple[Frames, ...]:
        geometry = self.processor.geometry
        if self.augment:
            shaped = augmented(cameras, geometry, draws.images)
        else:
            shaped = tuple(geometry(frames) for frames in cameras)
        if len({frames.shape[1:3] for frames in shaped}) > 1:
            self.processor.cameras.interleaved(shaped, cameras)  # refuses with the sizes
        return shaped

    def _boxes(self, cameras: tuple[Frames, ...], draws: SampleDraws) -> NDArray[np.int64]:
        """Top and left of every crop of the torch geometry, ``(V, T, 2)``: the sizes are known without the pixels."""
        geometry = self._torch_geometry
        assert geometry is not None
        # A view without pixels of the right size stands for the shrunk frames.
        shrunk = [np.broadcast_to(np.uint8(0), (len(frames), *geometry.first_size, 3)) for frames in cameras]
        if self.augment:
            boxes = crop_boxes(shrunk, geometry, draws.images.crops)
        else:
            boxes = [[geometry.center_box(*geometry.first_size)] * len(frames) for frames in cameras]
        return np.array([[(box.top, box.left) for box in row] for row in boxes], dtype=np.int64)

    def _packed(self, samples: Sequence[tuple[Frames, ...]]) -> tuple[Tensor, ...]:
        """Write each camera's frames into one block of bytes."""
        blocks = []
        for camera, key in enumerate(self.processor.cameras.keys):
            shapes = {sample[camera].shape for sample in samples}
            if len(shapes) > 1:
                sizes = ", ".join(sorted(f"{shape[1]}x{shape[2]}" for shape in shapes))
                msg = (
                    f"camera {key!r} has frames of different sizes in one batch: {sizes} (height x width); convert all "
                    "episodes to one size"
                )
                raise TrainingError(msg)
            block = torch.empty((len(samples), *samples[0][camera].shape), dtype=torch.uint8)
            for target, sample in zip(block.numpy(), samples, strict=True):
                np.copyto(target, sample[camera])
            blocks.append(block)
        return pack_cameras(blocks, self.input_format)

    def _prompts(self, instructions: Sequence[str], size: tuple[int, int]) -> dict[str, Tensor]:
        processor = self.processor
        images = len(processor.cameras.keys) * processor.cameras.history
        tokens = [processor.patches.tokens(*size)] * images
        input_ids, attention_mask = processor.prompts.pad_left(
            [processor.prompts.token_ids(instruction, tokens) for instruction in instructions]
        )
        grid = torch.tensor(processor.patches.grid(*size), dtype=torch.int64)
        return {
            "input_ids": torch.from_numpy(input_ids),
            "attention_mask": torch.from_numpy(attention_mask),
            "image_grid_thw": grid.repeat(len(instructions) * images, 1),
        }
