"""The vision-language backbone: images and a prompt to one feature per token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn

from groot_ros.errors import ModelError
from groot_ros.model.backbone_config import parse_backbone_config
from groot_ros.model.language import LanguageLayers
from groot_ros.model.positions import Grid, token_positions
from groot_ros.model.vision import VisionTower


@dataclass(frozen=True)
class VisionLanguageFeatures:
    """What the backbone hands to the action head.

    Attributes:
        hidden_states: One feature per token, ``(B, L, backbone_embedding_dim)``, before the final norm of the
            language model. Those of padding matter too: the action head does not mask them everywhere.
        attention_mask: Tokens that are not padding, bool ``(B, L)``.
        image_mask: Tokens that stand for image patches, bool ``(B, L)``.

    """

    hidden_states: Tensor
    attention_mask: Tensor
    image_mask: Tensor


class Backbone(nn.Module):
    """Qwen3-VL cut off after ``select_layer`` decoder layers.

    Args:
        raw_config: The backbone's parsed ``config.json``.
        select_layer: Number of decoder layers that are kept.

    Raises:
        ModelError: The configuration is incomplete or describes another network.

    """

    def __init__(self, raw_config: Mapping[str, Any], select_layer: int) -> None:
        super().__init__()
        self.config = parse_backbone_config(raw_config)
        if not 0 < select_layer <= self.config.num_text_layers:
            msg = (
                f"select_layer is {select_layer}, but the backbone has {self.config.num_text_layers} decoder layers; "
                f"allowed is 1 to {self.config.num_text_layers}."
            )
            raise ModelError(msg)
        vision_language = nn.ModuleDict(
            {
                "visual": VisionTower(self.config.vision),
                "language_model": LanguageLayers(self.config, select_layer),
            }
        )
        # Two levels deep, because the parameter names of the checkpoint are.
        self.model = nn.ModuleDict({"model": vision_language})

    @property
    def visual(self) -> VisionTower:
        """The vision tower."""
        return cast("VisionTower", cast("nn.ModuleDict", self.model["model"])["visual"])

    @property
    def language_model(self) -> LanguageLayers:
        """The kept decoder layers."""
        return cast("LanguageLayers", cast("nn.ModuleDict", self.model["model"])["language_model"])

    def forward(
        self, *, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor, image_grid_thw: Tensor
    ) -> VisionLanguageFeatures:
        """Encode a batch.

        Args:
            input_ids: int64 ``(B, L)``, left padded.
            attention_mask: 1 for tokens, 0 for padding, ``(B, L)``.
            pixel_values: Patches of all images in the order of the prompt, ``(patches, 1536)``.
            image_grid_thw: Time, height and width of every image in patches, int64 ``(images, 3)``.

        Raises:
            ModelError: Patches, grids and image tokens do not belong together.

        """
        visual, language_model = self.visual, self.language_model
        grids = image_grids(image_grid_thw, self.visual.merge_size)
        require_patches(pixel_values, sum(height * width for height, width in grids))
        valid = attention_mask.bool()
        image_mask = input_ids == self.config.image_token_id
        positions = token_positions(image_mask.cpu(), valid.cpu(), grids, visual.merge_size)

        image_features, deepstack = visual(pixel_values, grids)
        embeddings = language_model.embed_tokens(input_ids)
        embeddings = embeddings.masked_scatter(image_mask[..., None], image_features)
        hidden_states = language_model(
            embeddings,
            positions=positions.to(input_ids.device),
            valid=valid,
            image_mask=image_mask,
            deepstack=deepstack,
        )
        return VisionLanguageFeatures(hidden_states=hidden_states, attention_mask=valid, image_mask=image_mask)


def image_grids(image_grid_thw: Tensor, merge_size: int) -> list[Grid]:
    """Height and width of every image, in patches.

    Raises:
        ModelError: An entry describes no image.

    """
    grids: list[Grid] = []
    for time, height, width in image_grid_thw.tolist():
        if time != 1 or height % merge_size or width % merge_size:
            msg = (
                f"image_grid_thw has the entry {[time, height, width]}; images have time 1 and "
                f"height and width in multiples of {merge_size} patches."
            )
            raise ModelError(msg)
        grids.append((height, width))
    return grids


def require_patches(pixel_values: Tensor, described: int) -> None:
    """Require as many patches as the grids describe.

    Raises:
        ModelError: There are more or fewer.

    """
    if pixel_values.shape[0] != described:
        msg = f"pixel_values has {pixel_values.shape[0]} patches, but image_grid_thw describes {described}."
        raise ModelError(msg)
