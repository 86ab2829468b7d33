"""What the network is handed: tensors of one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of the network for B observations.

    Attributes:
        input_ids: int64 ``(B, L)``, padded on the left.
        attention_mask: int64 ``(B, L)``, 0 where padded.
        pixel_values: float ``(patches of all images, values of a patch)``, sample by sample, oldest frame first, and
            the cameras of one time step in the order of the tag.
        image_grid_thw: int64 ``(images, 3)``: patches in time, down and across of every image.
        state: float ``(B, T, max_state_dim)``, normalised, padded with zeros.
        embodiment_id: int64 ``(B,)``.

    """

    input_ids: Tensor
    attention_mask: Tensor
    pixel_values: Tensor
    image_grid_thw: Tensor
    state: Tensor
    embodiment_id: Tensor

    def to(self, device: torch.device | str, dtype: torch.dtype) -> ModelInputs:
        """The same on a device, pixels and state in the number type of the network; ids and grids stay whole."""
        return ModelInputs(
            input_ids=self.input_ids.to(device),
            attention_mask=self.attention_mask.to(device),
            pixel_values=self.pixel_values.to(device, dtype),
            image_grid_thw=self.image_grid_thw.to(device),
            state=self.state.to(device, dtype),
            embodiment_id=self.embodiment_id.to(device),
        )
