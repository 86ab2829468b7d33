"""The frames of all cameras of an observation: checked, shaped, and put in the order that the network reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from groot_ros.checkpoint import ModalityConfig
from groot_ros.errors import ObservationError
from groot_ros.processing.checks import require_keys

Frames = NDArray[np.uint8]


class CameraFrames:
    """The cameras of one embodiment.

    Args:
        video: The embodiment's video modality: the cameras in their order, and the history.
        embodiment_tag: For messages.

    """

    def __init__(self, video: ModalityConfig, embodiment_tag: str) -> None:
        self.keys = video.modality_keys
        self.history = len(video.delta_indices)
        self._delta_indices = video.delta_indices
        self._where = f"cameras of {embodiment_tag!r}"

    def ordered(self, images: Mapping[str, Frames]) -> tuple[Frames, ...]:
        """The cameras in the order of the tag, ``(T, H, W, 3)`` each, sharing storage with what came in.

        Raises:
            ObservationError: A camera is missing or unknown, or its frames are not T RGB images of uint8.

        """
        require_keys(images, self.keys, what=self._where, error=ObservationError)
        for key in self.keys:
            self._check(key, images[key])
        return tuple(images[key] for key in self.keys)

    def interleaved(self, shaped: Sequence[Frames], cameras: Sequence[Frames]) -> Frames:
        """Put shaped frames in the network's order: time step by time step, and in each the cameras in order.

        Args:
            shaped: For each camera its frames ``(T, h, w, 3)`` after the geometry.
            cameras: The same before the geometry, for the message.

        Returns:
            uint8 ``(T * cameras, h, w, 3)``.

        Raises:
            ObservationError: The cameras end at different sizes.

        """
        self.require_one_size([frames.shape[1:3] for frames in shaped], [frames.shape[1:3] for frames in cameras])
        together: Frames = np.stack(list(shaped), axis=1)
        return together.reshape(-1, *together.shape[2:])

    def require_one_size(self, after: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> None:
        """Refuse cameras that end at different sizes.

        Args:
            after: For each camera height and width after the geometry.
            before: The same before the geometry, for the message.

        Raises:
            ObservationError: The cameras end at different sizes.

        """
        if len({tuple(size) for size in after}) > 1:
            sizes = ", ".join(
                f"{key} {old[0]}x{old[1]} becomes {new[0]}x{new[1]}"
                for key, old, new in zip(self.keys, before, after, strict=True)
            )
            msg = (
                f"{self._where}: the frames end at different sizes (height x width): {sizes}; this checkpoint keeps "
                "the aspect ratio and adds no bars (letter_box_transform is false), so crop or set all cameras to one "
                "aspect ratio"
            )
            raise ObservationError(msg)

    def _check(self, key: str, frames: Frames) -> None:
        where = f"{self._where}, {key!r}"
        if frames.dtype != np.uint8:
            msg = f"{where}: found {frames.dtype} values, but frames must be uint8, 0 to 255, RGB"
            raise ObservationError(msg)
        if frames.ndim != 4 or frames.shape[-1] != 3 or len(frames) != self.history or 0 in frames.shape:
            steps = ", ".join(map(str, self._delta_indices))
            msg = (
                f"{where}: found shape {frames.shape}, but it must be ({self.history}, height, width, 3): one RGB "
                f"frame of at least 1 pixel for each time step in delta_indices [{steps}]"
            )
            raise ObservationError(msg)
